//! The text of the lane IR, for people and tests: one operation a line, `%results = name attributes operands`.
//!
//! Deliberately absent: a parser. Lane IR is made by the lowering alone; what people write is `.tir`.

use super::func::{Block, Func, Op, Value};
use super::op::{GroupMma, GroupOperand, MmaAtom, OpKind, Shuffle};
use crate::launch::abi::MapParam;
use std::fmt::{self, Write};

impl fmt::Display for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "lane \"{}\" threads={} lanes={} shared={} {{",
            self.name, self.threads, self.lanes, self.shared_bytes
        )?;
        for (i, slot) in self.slots.iter().enumerate() {
            writeln!(f, "  slot {i}: {slot:?}")?;
        }
        for (i, MapParam { param, elem, extents, swizzle }) in self.maps.iter().enumerate() {
            writeln!(f, "  tensor map {i}: parameter {param}, boxes of {extents:?} {elem}, {swizzle:?}")?;
        }
        self.print_block(f, self.body, 1)?;
        f.write_str("}\n")
    }
}

impl Func {
    fn print_block(&self, f: &mut fmt::Formatter<'_>, block: Block, depth: usize) -> fmt::Result {
        for id in &self.block(block).ops {
            self.print_op(f, self.op(*id), depth)?;
        }
        Ok(())
    }

    fn print_op(&self, f: &mut fmt::Formatter<'_>, op: &Op, depth: usize) -> fmt::Result {
        let pad = "  ".repeat(depth);
        f.write_str(&pad)?;
        if !op.results.is_empty() {
            let results: Vec<String> = op.results.iter().map(|v| format!("{v}: {}", self.ty(*v))).collect();
            write!(f, "{} = ", results.join(", "))?;
        }
        f.write_str(&mnemonic(&op.kind))?;
        if !op.args.is_empty() {
            write!(f, " {}", list(&op.args))?;
        }
        for (i, region) in op.regions.iter().enumerate() {
            let args = &self.block(*region).args;
            let args = if args.is_empty() { String::new() } else { format!(" ({})", list(args)) };
            let between = if matches!(op.kind, OpKind::Roles(_)) { " and" } else { " else" };
            f.write_str(if i == 0 { "" } else { between })?;
            writeln!(f, "{args} {{")?;
            self.print_block(f, *region, depth + 1)?;
            write!(f, "{pad}}}")?;
        }
        f.write_char('\n')
    }
}

fn list(values: &[Value]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The name of an operation with its attributes.
#[expect(clippy::too_many_lines, reason = "a table: one row for each operation")]
#[must_use]
pub fn mnemonic(kind: &OpKind) -> String {
    let mask = |masked: &bool| if *masked { ".masked" } else { "" };
    match kind {
        OpKind::Const(ty, bits) => format!("const.{ty} {bits:#x}"),
        OpKind::Slot(slot) => format!("slot {slot}"),
        OpKind::ThreadId => "thread_id".into(),
        OpKind::LaneId => "lane_id".into(),
        OpKind::WarpId => "warp_id".into(),
        OpKind::ProgramId(axis) => format!("program_id {axis}"),
        OpKind::NumPrograms(axis) => format!("num_programs {axis}"),
        OpKind::SharedBase => "shared_base".into(),
        OpKind::Buffer(buffer) => format!("buffer {buffer}"),
        OpKind::Access { region, write } => format!("{} {region:?}", if *write { "writes" } else { "reads" }),
        OpKind::Int(op) => op.to_string(),
        OpKind::MulWide { signed } => format!("mul_wide.{}", sign(*signed)),
        OpKind::IntCmp { pred, signed } => format!("cmp.{pred}.{}", sign(*signed)),
        OpKind::Extend { from, signed, to } => format!("extend.{}{from}.{to}", sign(*signed)),
        OpKind::Truncate(to) => format!("truncate.{to}"),
        OpKind::FromPred => "from_pred".into(),
        OpKind::Float(op, ty) => format!("{op}.{ty}"),
        OpKind::FloatUn(op, ty) => format!("{op}.{ty}"),
        OpKind::Fma(ty) => format!("fma.{ty}"),
        OpKind::FloatCmp(pred, ty) => format!("cmp.{pred}.{ty}"),
        OpKind::Convert { from, to } => format!("convert.{from}.{to}"),
        OpKind::Select => "select".into(),
        OpKind::Pack => "pack".into(),
        OpKind::Unpack => "unpack".into(),
        OpKind::UnpackBytes { signed } => format!("unpack_bytes.{}", sign(*signed)),
        OpKind::Load { space, bytes, n, offset, masked } => {
            format!("load.{space}.{n}x{bytes}{}{offset:+}", mask(masked))
        }
        OpKind::Store { space, bytes, n, offset, masked } => {
            format!("store.{space}.{n}x{bytes}{}{offset:+}", mask(masked))
        }
        OpKind::Atomic { op, space, masked } => format!("atomic.{op}.{space}{}", mask(masked)),
        OpKind::CompareSwap(space) => format!("compare_swap.{space}"),
        OpKind::CopyAsync { bytes, offset, masked } => format!("copy_async.{bytes}{}{offset:+}", mask(masked)),
        OpKind::CopyCommit => "copy_commit".into(),
        OpKind::CopyWait(n) => format!("copy_wait {n}"),
        OpKind::CopyArrive { masked } => format!("copy_arrive{}", mask(masked)),
        OpKind::MbarrierInit { count, masked } => format!("mbarrier_init{} {count}", mask(masked)),
        OpKind::MbarrierInvalidate { masked } => format!("mbarrier_invalidate{}", mask(masked)),
        OpKind::MbarrierArrive { count, masked } => format!("mbarrier_arrive{} {count}", mask(masked)),
        OpKind::MbarrierWait => "mbarrier_wait".into(),
        OpKind::MbarrierExpect { bytes, masked } => format!("mbarrier_expect{} {bytes}", mask(masked)),
        OpKind::MbarrierFence => "mbarrier_fence".into(),
        OpKind::TensorMap(map) => format!("tensor_map {map}"),
        OpKind::MapCluster => "map_cluster".into(),
        OpKind::MbarrierArriveCluster { masked } => format!("mbarrier_arrive_cluster{}", mask(masked)),
        OpKind::ClusterArrive => "cluster_arrive".into(),
        OpKind::ClusterWait => "cluster_wait".into(),
        OpKind::BulkLoad { rank, multicast: 0, masked } => format!("bulk_load.{rank}d{}", mask(masked)),
        OpKind::BulkLoad { rank, multicast, masked } => {
            format!("bulk_load.{rank}d.multicast{} {multicast:#b}", mask(masked))
        }
        OpKind::BulkStore { rank } => format!("bulk_store.{rank}d"),
        OpKind::BulkCommit => "bulk_commit".into(),
        OpKind::BulkWait { n, read } => format!("bulk_wait{} {n}", if *read { ".read" } else { "" }),
        OpKind::ProxyFence => "proxy_fence".into(),
        OpKind::Elect => "elect".into(),
        OpKind::GroupFence => "group_fence".into(),
        OpKind::GroupMma(mma) => group_mma(mma),
        OpKind::GroupCommit => "group_commit".into(),
        OpKind::GroupWait(n) => format!("group_wait {n}"),
        OpKind::SetMaxRegisters { registers, more } => {
            format!("set_max_registers.{} {registers}", if *more { "inc" } else { "dec" })
        }
        OpKind::StoreRelease { masked } => format!("store_release{}", mask(masked)),
        OpKind::LoadAcquire => "load_acquire".into(),
        OpKind::SequenceWait => "sequence_wait".into(),
        OpKind::Shuffle(Shuffle::Xor(bits)) => format!("shuffle.xor {bits}"),
        OpKind::Shuffle(Shuffle::Up(n)) => format!("shuffle.up {n}"),
        OpKind::Shuffle(Shuffle::Lane(n)) => format!("shuffle.lane {n}"),
        OpKind::Shuffle(Shuffle::Index) => "shuffle.index".into(),
        OpKind::Vote(vote) => format!("vote.{vote}"),
        OpKind::Barrier => "barrier".into(),
        OpKind::NamedBarrier { id, threads, wait } => {
            format!("named_barrier.{} {id} of {threads}", if *wait { "sync" } else { "arrive" })
        }
        OpKind::WarpBarrier => "warp_barrier".into(),
        OpKind::LoadMatrix { n, transposed, offset } => {
            format!("load_matrix.x{n}{}{offset:+}", if *transposed { ".t" } else { "" })
        }
        OpKind::StoreMatrix { n, transposed, offset } => {
            format!("store_matrix.x{n}{}{offset:+}", if *transposed { ".t" } else { "" })
        }
        OpKind::Mma(a) => format!("mma.m{}n{}k{}.{}.{}.{}", a.m, a.n, a.k, a.a, a.b, a.acc),
        OpKind::For => "for".into(),
        OpKind::Loop => "loop".into(),
        OpKind::If => "if".into(),
        OpKind::Roles(roles) => {
            let each = roles.iter().map(|r| format!("{} warps with barrier {}", r.warps, r.barrier));
            format!("roles({})", each.collect::<Vec<_>>().join(", "))
        }
        OpKind::Yield => "yield".into(),
        OpKind::Break(n) => format!("break<{n}>"),
        OpKind::Continue(n) => format!("continue<{n}>"),
        OpKind::Return => "return".into(),
    }
}

fn group_mma(mma: &GroupMma) -> String {
    let MmaAtom { m, n, k, a, b, acc } = mma.atom;
    let turned = |transposed: bool| if transposed { ".t" } else { "" };
    let from = match mma.a {
        GroupOperand::Registers => ".registers",
        GroupOperand::Shared { transposed } => turned(transposed),
    };
    let fresh = if mma.fresh { ".fresh" } else { "" };
    format!("group_mma.m{m}n{n}k{k}.{a}{from}.{b}{}.{acc}{fresh}", turned(mma.b_transposed))
}

const fn sign(signed: bool) -> &'static str {
    if signed { "s" } else { "u" }
}
