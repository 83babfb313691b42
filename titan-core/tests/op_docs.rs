//! The op table is complete, and the documents that are made from it are current.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use titan_core::ir::op_table::{Group, OpRow, mnemonic, ops, row};
use titan_core::ir::traffic::{On, Order, traffic};
use titan_core::ir::{
    AmdOp, ArgOp, AtomicOp, BinOp, Call, Claim, Collector, Completion, Const, Effect, Elem, Family, FenceSpace,
    FetchOp, Fill, Fold, ForKind, LocalOp, Mma, MmaKind, NvGroup, NvOp, OpKind, Pipe, Pred, Proxy, ReduceOp, RegionOp,
    Scope, Strided, Tcgen05Op, TensorElem, TensorShape, TileShape, TtgOp, UnOp, Unit,
};
use titan_core::text::GRAMMAR;

/// One operation of every mnemonic.
fn kinds() -> Vec<OpKind> {
    let tile = TileShape::new(&[16, 16]).expect("a shape");
    let elem = Elem::F32;
    let mut kinds = vec![
        OpKind::Const(Const::Int(Elem::I32, 0)),
        OpKind::ProgramId(0),
        OpKind::NumPrograms(0),
        OpKind::Dim(0),
        OpKind::Present,
        OpKind::Iota(8),
        OpKind::Splat(tile),
        OpKind::Select,
        OpKind::MulAdd,
        OpKind::Cast(elem),
        OpKind::Bitcast(elem),
        OpKind::Reshape(tile),
        OpKind::Broadcast { axis: 0, n: 2 },
        OpKind::Permute([1, 0, 2, 3]),
        OpKind::Interleave,
        OpKind::Split,
        OpKind::Cut { axis: 0, from: 1, n: 4 },
        OpKind::Concat(0),
        OpKind::ReduceWith(0),
        OpKind::ScanWith(0),
        OpKind::Mma,
        OpKind::Index(0),
        OpKind::Slice(0),
        OpKind::Segment,
        OpKind::Shared,
        OpKind::Get,
        OpKind::Set,
        OpKind::GatherRows { rows: 8, width: 8 },
        OpKind::ScatterRows,
        OpKind::Gather,
        OpKind::Scatter,
        OpKind::Unflatten,
        OpKind::UnflattenGrouped(8),
        OpKind::RaggedCount { rows: 8, cols: 8 },
        OpKind::RaggedTile { rows: 8, cols: 8 },
        OpKind::Print(String::new()),
        OpKind::Assert(String::new()),
        OpKind::For(ForKind::Sequential),
        OpKind::Loop,
        OpKind::If,
        OpKind::Yield,
        OpKind::Break(0),
        OpKind::Continue(0),
        OpKind::Return,
    ];
    kinds.extend(UnOp::ALL.iter().map(|o| OpKind::Unary(*o)));
    kinds.extend(BinOp::ALL.iter().map(|o| OpKind::Binary(*o)));
    kinds.extend(Pred::ALL.iter().map(|o| OpKind::Cmp(*o)));
    kinds.extend(ReduceOp::ALL.iter().flat_map(|o| [OpKind::Reduce(*o, 0), OpKind::Scan(*o, 0)]));
    kinds.extend(ArgOp::ALL.iter().map(|o| OpKind::ArgReduce(*o, 0)));
    kinds.extend(AtomicOp::ALL.iter().flat_map(|o| [OpKind::Atomic(*o), OpKind::AtomicTile(*o)]));
    kinds.extend(FetchOp::ALL.iter().map(|o| OpKind::Fetch(*o)));
    kinds.push(OpKind::CompareExchange);
    kinds.extend(Unit::ALL.iter().flat_map(|u| [OpKind::Load(*u, tile), OpKind::Store(*u)]));
    kinds.extend(pipelines(tile).into_iter().map(OpKind::Ttg));
    kinds.extend(barriers());
    kinds
}

fn pipelines(shape: TileShape) -> Vec<TtgOp> {
    let (pipe, elem) = (Pipe::new(0), Elem::F16);
    let mut ops = vec![
        TtgOp::SourceRows { rows: 8, width: 8 },
        TtgOp::Acquire(pipe),
        TtgOp::Ready(pipe),
        TtgOp::WaitReady,
        TtgOp::Poisoned,
        TtgOp::AsyncProduce { bytes: 512, proxy: Proxy::Generic, skipped: None },
        TtgOp::ReadPerm,
        TtgOp::Split(2),
        TtgOp::Join,
        TtgOp::View { field: 0, elem, shape },
        TtgOp::Read,
        TtgOp::Consumed,
        TtgOp::Release,
        TtgOp::ComputeIssue,
        TtgOp::ComputeWait,
        TtgOp::AccStart(1),
        TtgOp::AccMma,
        TtgOp::AccFinish,
        TtgOp::Write,
        TtgOp::StoreWait,
        TtgOp::Roles,
        TtgOp::Finalize,
        TtgOp::Rematerialize,
        TtgOp::Claim(Claim::Acquired, Pipe::new(0)),
        TtgOp::Claim(Claim::Filled, Pipe::new(0)),
        TtgOp::Claim(Claim::Next, Pipe::new(0)),
        TtgOp::Claim(Claim::Ready, Pipe::new(0)),
        TtgOp::Claim(Claim::Released, Pipe::new(0)),
        TtgOp::Fence { from: Proxy::Generic, to: Proxy::Async, scope: Scope::Cta, space: FenceSpace::Shared },
    ];
    ops.extend(Unit::ALL.iter().flat_map(|u| [TtgOp::Source(*u, shape), TtgOp::StoreIssue(*u)]));
    ops.extend(Fill::ALL.iter().map(|f| TtgOp::Fill(*f)));
    ops
}

fn barriers() -> Vec<OpKind> {
    let mut kinds: Vec<OpKind> = [
        RegionOp::Place { offset: 0, bytes: 64, parts: 1 },
        RegionOp::At,
        RegionOp::Tile { offset: 0, elem: Elem::F16, shape: TileShape::new(&[8]).expect("a shape") },
        RegionOp::Read,
        RegionOp::Write,
        RegionOp::Wait,
        RegionOp::Call(Call { name: String::new(), access: None, proxy: None }),
    ]
    .map(OpKind::Region)
    .to_vec();
    kinds.extend(
        [
            NvOp::MbarrierAlloc { at: 0, n: 1 },
            NvOp::MbarrierAt,
            NvOp::MbarrierInit { count: 1 },
            NvOp::MbarrierInval,
            NvOp::Arrive { arrivals: 1 },
            NvOp::ArriveCluster { arrivals: 1 },
            NvOp::ArriveExpectTx { bytes: 64 },
            NvOp::ExpectTx { bytes: 64 },
            NvOp::MbarrierWait,
            NvOp::WaitParity,
            NvOp::TryWait,
            NvOp::TestWait,
            NvOp::FenceMbarrierInit,
            NvOp::CpAsync { bytes: 64 },
            NvOp::CpAsyncArrive { noinc: true, arrivals: 32 },
            NvOp::WgmmaFence,
            NvOp::WarpSync,
            NvOp::SequenceInit,
            NvOp::SequenceStore,
            NvOp::SequenceWait,
            NvOp::Wgmma,
            NvOp::BarrierSync { id: 1, threads: 64 },
            NvOp::BarrierArrive { id: 1, threads: 64 },
            NvOp::ClusterRank,
            NvOp::ClusterArrive,
            NvOp::ClusterWait,
            NvOp::SetMaxNReg { registers: 40 },
        ]
        .map(OpKind::Nv),
    );
    kinds.extend(tensor_memory().map(|op| OpKind::Nv(NvOp::Tcgen05(op))));
    for tensor in [false, true] {
        kinds.push(OpKind::Nv(NvOp::BulkLoad { tensor, bytes: 64, multicast: 0, strided: Strided::NONE }));
        kinds.push(OpKind::Nv(NvOp::BulkStore { tensor, bytes: 64 }));
    }
    for group in NvGroup::ALL.iter().copied() {
        kinds.push(OpKind::Nv(NvOp::Commit { group, n: 0 }));
        kinds.push(OpKind::Nv(NvOp::WaitGroup { group, n: 0, read: true }));
    }
    kinds.extend(laid_out());
    kinds.extend(
        [
            AmdOp::Waitcnt { vmcnt: 0, lgkmcnt: 0 },
            AmdOp::BufferLoadLds { bytes: 64, n: 0 },
            AmdOp::DsRead { n: 0 },
            AmdOp::DsWrite { n: 0 },
            AmdOp::Barrier,
            AmdOp::Mfma,
            AmdOp::SetPrio { level: 1 },
        ]
        .map(OpKind::Amd),
    );
    kinds
}

fn tensor_memory() -> [Tcgen05Op; 13] {
    let (shape, times, cta_group) = (TensorShape::L32x32b, 4, 1);
    let mma = Mma {
        kind: MmaKind::F16,
        cta_group,
        stationary: false,
        scale_vec: 0,
        shifted: false,
        collector: Collector::Unstated,
        scaled_input: false,
        a: TensorElem::F16,
        b: TensorElem::F16,
        d: TensorElem::F32,
        shape: [128, 64, 16],
    };
    [
        Tcgen05Op::Alloc { columns: 64, cta_group },
        Tcgen05Op::Dealloc { cta_group },
        Tcgen05Op::Relinquish { cta_group },
        Tcgen05Op::Mma(mma),
        Tcgen05Op::Load { shape, times },
        Tcgen05Op::Store { shape, times },
        Tcgen05Op::Copy { cta_group },
        Tcgen05Op::Shift { cta_group },
        Tcgen05Op::Commit { cta_group },
        Tcgen05Op::WaitLoad,
        Tcgen05Op::WaitStore,
        Tcgen05Op::FenceBefore,
        Tcgen05Op::FenceAfter,
    ]
}

fn laid_out() -> Vec<OpKind> {
    let shape = TileShape::new(&[8]).expect("a shape");
    let fold = |f| LocalOp::Fold { f, axis: 0, parts: 1 };
    let mut ops = vec![
        LocalOp::Alloc { elem: Elem::F16, shape },
        LocalOp::Store,
        LocalOp::Load,
        LocalOp::Copy { asynchronous: false },
        LocalOp::Copy { asynchronous: true },
        LocalOp::Fetch { guarded: false },
        LocalOp::Fetch { guarded: true },
        LocalOp::Settle { read: true },
        LocalOp::Guard,
        LocalOp::Slice { axis: 0, n: 4 },
        LocalOp::Reshape(shape),
        LocalOp::Stack,
        LocalOp::Mma,
        LocalOp::Convert,
        fold(Fold::With),
    ];
    ops.extend(ReduceOp::ALL.iter().map(|f| fold(Fold::Plain(*f))));
    ops.extend(ArgOp::ALL.iter().map(|f| fold(Fold::Arg(*f))));
    ops.into_iter().map(OpKind::Local).collect()
}

#[test]
fn every_operation_has_a_row_and_every_row_an_operation() {
    let kinds = kinds();
    let reached: BTreeSet<&str> = kinds.iter().map(|k| row(k).mnemonic).collect();
    assert_eq!(reached.len(), kinds.len(), "two operations share a mnemonic");
    let rows: Vec<&str> = ops().map(|r| r.mnemonic).collect();
    assert_eq!(rows.iter().copied().collect::<BTreeSet<_>>(), reached);
    assert_eq!(rows.len(), reached.len(), "a mnemonic has two rows");
}

/// The proxy that the documents show is that of all accesses to shared memory; an operation has accesses or an ordering effect.
#[test]
fn the_accesses_of_an_operation_are_of_one_proxy() {
    for kind in kinds() {
        let row = traffic(&kind);
        let shared: BTreeSet<_> =
            row.accesses.iter().flatten().filter(|a| a.on != On::Tensor).map(|a| a.proxy).collect();
        // Operations on data have no proxy of their own: their tiles are in shared memory only in laid-out kernels.
        let expected = if matches!(kind.family(), Family::Data(_)) { None } else { shared.first().copied() };
        assert!(shared.len() <= 1 && kind.proxy() == expected, "{}", mnemonic(&kind));
        let writes_tensor = row.accesses.iter().flatten().any(|a| a.on == On::Tensor && a.writes);
        assert_eq!(writes_tensor, matches!(kind.effect(), Effect::Write | Effect::Atomic), "{}", mnemonic(&kind));
        assert!(row.order == Order::None || row.accesses == [None; 3], "{}", mnemonic(&kind));
    }
}

#[test]
fn the_table_speaks_of_the_names_of_the_attributes() {
    for op in UnOp::ALL {
        assert_eq!(row(&OpKind::Unary(*op)).mnemonic, op.name());
    }
    for op in BinOp::ALL {
        assert_eq!(row(&OpKind::Binary(*op)).mnemonic, op.name());
    }
    for op in Pred::ALL {
        assert_eq!(row(&OpKind::Cmp(*op)).mnemonic, op.name());
    }
    for op in ReduceOp::ALL {
        assert_eq!(row(&OpKind::Reduce(*op, 0)).mnemonic, format!("reduce_{op}"));
        assert_eq!(row(&OpKind::Scan(*op, 0)).mnemonic, format!("scan_{op}"));
    }
}

#[test]
fn the_groups_are_in_order_and_none_is_empty() {
    assert!(ops().is_sorted_by_key(|r| r.group));
    for group in Group::ALL {
        assert!(ops().any(|r| r.group == group), "{group:?}");
    }
}

fn effect(row: &OpRow) -> String {
    let kind = kinds().into_iter().find(|k| mnemonic(k) == row.mnemonic).expect("every row has an operation");
    let effect = match kind.effect() {
        Effect::Pure => "",
        Effect::Read => "reads",
        Effect::Trap => "may trap",
        Effect::Write => "writes",
        Effect::Atomic => "atomic",
        Effect::Print => "prints",
        Effect::Control => "control",
        Effect::Pipeline => "pipeline",
    };
    let proxy = kind.proxy().map(|p| format!("{p} proxy"));
    let completion = match kind.completion() {
        Completion::Immediate => None,
        Completion::Phase => Some("by phase".to_owned()),
        Completion::Prefix(class) => Some(format!("by prefix of `{class}`")),
    };
    std::iter::once(effect.to_owned())
        .chain(proxy)
        .chain(completion)
        .filter(|s| !s.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

/// A line of the filetests that uses a mnemonic, of telling length: what is shown is tested.
fn example(mnemonic: &str, files: &[String]) -> String {
    let uses = |line: &str| {
        let operation =
            if line.starts_with('%') { line.split_once(" = ").map_or("", |(_, right)| right) } else { line };
        operation.split([' ', '<']).next() == Some(mnemonic)
    };
    let lines = files.iter().flat_map(|f| f.lines()).map(|l| l.trim().trim_end_matches(" {"));
    let lines = lines.map(|l| l.split(" @").next().unwrap_or(l));
    let line = lines.filter(|l| uses(l) && !l.contains('\\')).min_by_key(|l| l.len().abs_diff(56));
    line.unwrap_or_default().to_owned()
}

/// The filetests of the printed form.
fn examples() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/text");
    let mut paths: Vec<_> = std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    let texts =
        paths.iter().filter(|p| !p.ends_with("broken.tir")).map(|p| std::fs::read_to_string(p).expect("a text"));
    texts.filter(|t| t.starts_with("; test text")).collect()
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const MADE: &str =
    "<!-- Made from titan-core/src/ir/op_table by `TITAN_BLESS=1 cargo test -p titan-gpu-core --test op_docs`. -->\n";

const TERMS: &str = "*numbers* are `f64 f32 f16 bf16` and the integers of 8 bits and more; *floats* and *integers* are the two parts \
    of them; *any* includes `tf32`, FP8, `i4`, `u4` and `bool`. Elementwise operations take scalars and tiles alike, all \
    operands of one type.\n";

fn errors(row: &OpRow) -> String {
    let links: Vec<String> = row.errors.iter().map(|c| format!("[{c}](errors/{c}.md)")).collect();
    links.join(" ")
}

fn ops_md() -> String {
    let mut out = format!(
        "# Operations\n\n{MADE}\nThe operations of kernels, as they are written. Numbers, rounding and corner cases: \
         [semantics.md](semantics.md). {TERMS}"
    );
    let written = |group: &Group| ops().any(|r| r.group == *group && !r.surface.is_empty());
    for group in Group::ALL.into_iter().filter(written) {
        let _ = write!(out, "\n## {}\n\n", group.title());
        if let Some(anchor) = group.semantics() {
            let _ = write!(out, "Details: [semantics.md](semantics.md#{anchor}).\n\n");
        }
        out.push_str("| write | operands | result | elements | meaning | rules |\n|---|---|---|---|---|---|\n");
        for row in ops().filter(|r| r.group == group) {
            let surface = row.surface.replace("  ", "<br>");
            let cells = [&surface, row.operands, row.result, row.elements, row.meaning].map(cell);
            let _ = writeln!(out, "| {} | {} |", cells.join(" | "), errors(row));
        }
    }
    out
}

fn ir_md() -> String {
    let examples = examples();
    let mut out = format!(
        "# The tile IR and its text form\n\n{MADE}\nFor those who write tools, passes and `.tir` tests. The meaning of the \
         operations is in [semantics.md](semantics.md); how a kernel author writes them in [ops.md](ops.md).\n\n## Text\n\n\
         `a \",\" ..` is a list with commas; between brackets it may be empty and may end in a comma. A comment runs from `;` to the end \
         of its line.\n\n```text\n{GRAMMAR}```\n\n{RULES}\n## Operations\n\n{TERMS}"
    );
    for group in Group::ALL {
        let _ = write!(out, "\n### {}\n\n", group.title());
        out.push_str("| mnemonic | as written | operands | results | elements | effect | meaning |\n|---|---|---|---|---|---|---|\n");
        for row in ops().filter(|r| r.group == group) {
            let example = example(row.mnemonic, &examples);
            assert!(!example.is_empty(), "no filetest shows `{}`", row.mnemonic);
            let cells = [row.operands, row.result, row.elements, &effect(row), row.meaning].map(cell);
            let _ = writeln!(out, "| `{}` | `{}` | {} |", row.mnemonic, cell(&example), cells.join(" | "));
        }
    }
    out
}

const RULES: &str = "\
** An `if` has two arms; text without the second one is parsed, and rejected by the verifier.
* An operation ends with its line; a list continues after a comma and inside brackets.
** Integers in angle brackets are attributes: an axis, extents, how many loops a `break` leaves. Shapes and elements of
  results are in the result type: `splat %x : tile<8x8xf32>`, `cast %x : f16`.
** Memory operations index their tensor and state the padding: `load_tile %a[%i, %j] or %zero : tile<8x8xf16>`,
  `store_at %c[%i, %j], %v`, `gather_rows %t[%page, %row, %column] or %zero : tile<16x64xf16>`.
** Named attributes are in braces: `ttg.nv.mbarrier.init %full {count = 1}`. Default values are omitted: one part, no multicast.
* The column *effect* states the proxy of an access to shared memory. Asynchronous work completes with the phase of a barrier, or
  with a wait after which fewer operations of its class are in flight than are younger; otherwise the operation is synchronous.
* In laid-out kernels, `stage(s, n)` is the stage of an operation and its place in the schedule of its loop, and `peeled` stands behind a loop whose first and last
  iteration are apart, and `unmasked` behind one whose iterations that need no masks get a loop of their own. Behind the rewrite of loops, `of(o, k)` says which operation of the laid-out kernel is executed, k iterations ahead.
* Result types are printed, and may be omitted where they are inferred from the operands. A written type that differs from the
  inferred one is T0804.
* `%acc` is a value that the user named `acc`, `%acc.2` another one; `%7` has no name, and its number has no meaning.
  A name is defined once in a kernel.
* The types of loop variables, carried values and arguments of a reduction's function are inferred, and printed only if they
  differ from the inferred ones.
* In a shape, a bare name binds a symbol at its first mention and requires its value later; `bind M` and `= M` state this
  explicitly. Symbols are numbered by their first mention, or by the list in brackets.
* `@3:14` is the location in the user's kernel.
* Printing and parsing restore an equal kernel, numbering included, for kernels of a `Builder`; for others their
  `Kernel::canonical()`.
";

/// Compares a document with the table, or rewrites it.
fn current(name: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, wanted).expect("the document can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "docs/{name} is not current: run this test with TITAN_BLESS=1 to rewrite it");
}

#[test]
fn the_documents_are_current() {
    current("ops.md", &ops_md());
    current("ir.md", &ir_md());
}

#[test]
fn the_documents_link_to_headings_that_exist() {
    let semantics = include_str!("../../docs/semantics.md");
    let anchors: Vec<String> = semantics
        .lines()
        .filter_map(|l| l.strip_prefix("## "))
        .map(|h| h.to_lowercase().replace(", ", "-").replace(' ', "-"))
        .collect();
    for anchor in Group::ALL.iter().filter_map(|g| g.semantics()) {
        assert!(anchors.iter().any(|a| a == anchor), "semantics.md has no heading {anchor}: {anchors:?}");
    }
}
