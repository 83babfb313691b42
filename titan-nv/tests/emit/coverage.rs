//! No operation of the lane IR is without a case, no row of the tables without a use, and what is refused is known.

use crate::{cases, kernels};
use std::collections::BTreeSet;
use titan_core::ir::Pred;
use titan_core::lane::{AmdOp, Func, Num, NvOp, OpKind, Ty};
use titan_nv::ptx::isa;
use titan_nv::{EmitError, Machine, lower};

/// Names every variant once, so that a new one does not compile before it is here.
macro_rules! variants {
    ($($pattern:pat => $name:literal,)*) => {
        const NAMES: &[&str] = &[$($name),*];

        fn name(kind: &OpKind) -> &'static str {
            match kind { $($pattern => $name,)* }
        }
    };
}

variants! {
    OpKind::Const(..) => "const",
    OpKind::Slot(_) => "slot",
    OpKind::ThreadId => "thread_id",
    OpKind::LaneId => "lane_id",
    OpKind::WarpId => "warp_id",
    OpKind::ProgramId(_) => "program_id",
    OpKind::NumPrograms(_) => "num_programs",
    OpKind::SharedBase => "shared_base",
    OpKind::Buffer(_) => "buffer",
    OpKind::Access { .. } => "access",
    OpKind::Int(_) => "int",
    OpKind::IntUn(_) => "int_un",
    OpKind::MulWide { .. } => "mul_wide",
    OpKind::IntCmp { .. } => "int_cmp",
    OpKind::Extend { .. } => "extend",
    OpKind::Truncate(_) => "truncate",
    OpKind::FromPred => "from_pred",
    OpKind::Float(..) => "float",
    OpKind::FloatUn(..) => "float_un",
    OpKind::Fma(_) => "fma",
    OpKind::FloatCmp(..) => "float_cmp",
    OpKind::Convert { .. } => "convert",
    OpKind::Select => "select",
    OpKind::Pack => "pack",
    OpKind::Unpack => "unpack",
    OpKind::UnpackBytes { .. } => "unpack_bytes",
    OpKind::Load { .. } => "load",
    OpKind::Store { .. } => "store",
    OpKind::Atomic { .. } => "atomic",
    OpKind::CompareSwap(_) => "compare_swap",
    OpKind::Nv(NvOp::CopyAsync { .. }) => "copy_async",
    OpKind::Nv(NvOp::CopyCommit) => "copy_commit",
    OpKind::Nv(NvOp::CopyWait(_)) => "copy_wait",
    OpKind::Nv(NvOp::CopyArrive { .. }) => "copy_arrive",
    OpKind::Nv(NvOp::MbarrierInit { .. }) => "mbarrier_init",
    OpKind::Nv(NvOp::MbarrierInvalidate { .. }) => "mbarrier_invalidate",
    OpKind::Nv(NvOp::MbarrierArrive { .. }) => "mbarrier_arrive",
    OpKind::Nv(NvOp::MbarrierWait) => "mbarrier_wait",
    OpKind::Nv(NvOp::MbarrierExpect { .. }) => "mbarrier_expect",
    OpKind::Nv(NvOp::MbarrierFence) => "mbarrier_fence",
    OpKind::Nv(NvOp::MapCluster) => "map_cluster",
    OpKind::Nv(NvOp::MbarrierArriveCluster { .. }) => "mbarrier_arrive_cluster",
    OpKind::Nv(NvOp::ClusterArrive) => "cluster_arrive",
    OpKind::Nv(NvOp::ClusterWait) => "cluster_wait",
    OpKind::Nv(NvOp::TensorMap(_)) => "tensor_map",
    OpKind::Nv(NvOp::MapEntry(_)) => "map_entry",
    OpKind::Nv(NvOp::MakeMap { .. }) => "make_map",
    OpKind::Nv(NvOp::BulkLoad { .. }) => "bulk_load",
    OpKind::Nv(NvOp::BulkStore { .. }) => "bulk_store",
    OpKind::Nv(NvOp::BulkCommit) => "bulk_commit",
    OpKind::Nv(NvOp::BulkWait { .. }) => "bulk_wait",
    OpKind::Nv(NvOp::ProxyFence { .. }) => "proxy_fence",
    OpKind::Nv(NvOp::Elect) => "elect",
    OpKind::Nv(NvOp::GroupFence) => "group_fence",
    OpKind::Nv(NvOp::GroupMma(_)) => "group_mma",
    OpKind::Nv(NvOp::GroupCommit) => "group_commit",
    OpKind::Nv(NvOp::GroupWait(_)) => "group_wait",
    OpKind::Nv(NvOp::SetMaxRegisters { .. }) => "set_max_registers",
    OpKind::StoreRelease { .. } => "store_release",
    OpKind::LoadAcquire => "load_acquire",
    OpKind::SequenceWait => "sequence_wait",
    OpKind::Shuffle(_) => "shuffle",
    OpKind::Vote(_) => "vote",
    OpKind::Barrier => "barrier",
    OpKind::Nv(NvOp::NamedBarrier { .. }) => "named_barrier",
    OpKind::WarpBarrier => "warp_barrier",
    OpKind::Nv(NvOp::LoadMatrix { .. }) => "load_matrix",
    OpKind::Nv(NvOp::StoreMatrix { .. }) => "store_matrix",
    OpKind::Mma(_) => "mma",
    OpKind::Amd(AmdOp::Buffer) => "amd_buffer",
    OpKind::Amd(AmdOp::BufferLoad { .. }) => "amd_buffer_load",
    OpKind::For => "for",
    OpKind::Loop => "loop",
    OpKind::If => "if",
    OpKind::Roles(_) => "roles",
    OpKind::Yield => "yield",
    OpKind::Break(_) => "break",
    OpKind::Continue(_) => "continue",
    OpKind::Return => "return",
}

/// What back ends never see, or what another vendor's machines have: `refusals.rs` has them.
const GONE_BEFORE: [&str; 4] = ["buffer", "access", "amd_buffer", "amd_buffer_load"];

fn every_function() -> Vec<Func> {
    all().into_iter().map(|case| case.func).chain(kernels::all()).collect()
}

#[test]
fn every_operation_has_a_case() {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for func in every_function() {
        func.walk(&mut |_, op| {
            seen.insert(name(&op.kind));
        });
    }
    let missing: Vec<_> = NAMES.iter().filter(|n| !seen.contains(*n) && !GONE_BEFORE.contains(n)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

/// Whether a machine may refuse a case.
fn may_refuse(case: &cases::Case, machine: &Machine) -> bool {
    use titan_core::lane::AtomicFn::{AddF16x2, AddF32, AddF64};
    let fp8 = |num: &Num| matches!(num, Num::E4m3 | Num::E5m2);
    match &case.kind {
        // Conditions have no order.
        OpKind::IntCmp { pred, .. } => case.args[0] == Ty::Pred && !matches!(pred, Pred::Eq | Pred::Ne),
        OpKind::Atomic { op: AddF32 | AddF16x2, .. } => case.args[0] == Ty::B64,
        OpKind::Atomic { op: AddF64, .. } => case.args[0] == Ty::B32,
        OpKind::Nv(NvOp::MbarrierArrive { count, .. }) => *count > 1 && machine.capability < 90,
        OpKind::Convert { from, to } => from != to && (fp8(from) || fp8(to)) && machine.capability < 89,
        OpKind::Mma(atom) => atom.a.bits() == 8 && atom.a.is_float() && machine.capability < 89,
        kind => crate::groups::refuses(kind, machine),
    }
}

#[test]
fn what_is_refused_is_known_and_named() {
    for machine in Machine::all() {
        for case in all() {
            match lower::lower(&case.func, machine, None) {
                Ok(_) => assert!(!may_refuse(&case, machine), "{} has `{}` after all", machine.name, case.func.name),
                Err(error @ EmitError::Operation { .. }) => {
                    assert!(may_refuse(&case, machine), "{error}");
                    let text = error.to_string();
                    let op = titan_core::lane::mnemonic(&crate::groups::first(&case.kind));
                    assert!(text.contains(&format!("{} has no `{op}`: ", machine.name)), "{text}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn every_row_of_the_tables_is_used_and_is_there_once() {
    let mut used: BTreeSet<String> = BTreeSet::new();
    for func in every_function() {
        for machine in Machine::all() {
            if let Ok(module) = lower::lower(&func, machine, None) {
                used.extend(module.instructions().map(|inst| format!("{} {:?}", inst.form.text, inst.form.slots)));
            }
        }
    }
    let mut seen = BTreeSet::new();
    for form in isa::all() {
        let key = format!("{} {:?}", form.text, form.slots);
        assert!(used.contains(&key), "nothing emits `{key}`");
        // Copies of 4 and 8 bytes are one instruction, told apart by an operand.
        let twice = form.text.starts_with("cp.async.ca");
        assert!(seen.insert(key.clone()) || twice, "`{key}` is there twice");
    }
}

/// Every case.
pub(crate) fn all() -> Vec<cases::Case> {
    let waits = crate::waits::all().into_iter().map(|wait| wait.case).collect();
    let plain = [cases::registers(), cases::signs(), cases::atomics(), cases::accesses(), cases::copies()];
    [plain.concat(), cases::matrices(), waits, crate::groups::all()].concat()
}
