//! What each layer finds of the mistakes of `mutants`: the verifier, the simulator, and the emulator of the code that is generated. The tables
//! of docs/lowering.md are made here.

use super::equivalent::is_equivalent;
use super::gpu::{Code, NO_MAP, hopper, machine};
use super::kernels::Mask;
use super::mutants::{cluster, live, mutants_of};
use super::random_groups::{self, Random};
use super::rng::Rng;
use super::ways::{ORDERS, is_mixed};
use super::{agree, arguments, attention, each_kernel, execute, grid, program_grid};
use std::collections::BTreeMap;
use std::path::Path;
use titan_core::driver::{Cluster, Schedule, barrier_program, follow, stages};
use titan_core::ir::{FreeBy, Kernel, NvGroup, NvOp, OpId, OpKind, TtgOp};
use titan_core::lower::lower;
use titan_core::plan::{Plan, plan};
use titan_core::text::parse_one;
use titan_core::verify::{Verified, barrier_program as check, verify, well_formed};
use titan_nv::Machine;
use titan_sim::sim;

/// A program in which mistakes are made, with the kernel whose results it has.
pub(super) struct Subject<'a> {
    pub(super) name: &'a str,
    pub(super) kernel: &'a Verified,
    pub(super) args: &'a [sim::Arg],
    pub(super) program: &'a Kernel,
    pub(super) machine: &'static Machine,
}

/// What a layer that runs programs says of a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ran {
    Fails,
    Passes,
    /// Its code is that of the program without the mistake.
    SameCode,
}

impl Subject<'_> {
    /// Whether a program goes wrong in the simulator: a finding, other results, or no end.
    fn fails(&self, program: &Kernel, wanted: &[Option<Vec<u8>>], grid: [u32; 3]) -> bool {
        let Ok(program) = well_formed(program.clone()) else { return true };
        ORDERS.into_iter().any(|(completion, seed)| {
            let mut after = self.args.to_vec();
            let options = sim::Options { completion, seed, max_steps: 60_000, ..sim::Options::default() };
            let report = sim::run(&program, &mut after, Some(grid), &options).unwrap();
            let found: Vec<Option<Vec<u8>>> = after.into_iter().map(bytes).collect();
            !report.findings.is_empty() || self.differs(&found, wanted)
        })
    }

    fn differs(&self, found: &[Option<Vec<u8>>], wanted: &[Option<Vec<u8>>]) -> bool {
        self.args.iter().zip(found).zip(wanted).any(|((arg, found), wanted)| match (arg, found, wanted) {
            (sim::Arg::Tensor { elem, .. }, Some(found), Some(wanted)) => agree(*elem, found, wanted).is_some(),
            (_, _, _) => false,
        })
    }

    /// The code of a program, unless the checks of lane IR refuse it.
    fn code(&self, program: &Kernel) -> Result<Code, String> {
        let lowered = lower(program, &titan_nv::target(self.machine)).map_err(|e| e.message.clone())?;
        Code::of(&lowered.func, self.machine)
    }

    /// What the checks of lane IR and the emulator say of a mutant.
    fn run_code(&self, mutant: &Kernel, right: &Code, wanted: &[Option<Vec<u8>>], grid: [u32; 3]) -> Ran {
        let Ok(code) = self.code(mutant) else { return Ran::Fails };
        if code.text == right.text {
            return Ran::SameCode;
        }
        let fails = |(completion, _)| match code.run(self.kernel, self.args, grid, completion) {
            Ok(found) => self.differs(&found, wanted),
            Err(why) => !why.starts_with(NO_MAP),
        };
        if ORDERS.into_iter().any(fails) { Ran::Fails } else { Ran::Passes }
    }
}

fn bytes(arg: sim::Arg) -> Option<Vec<u8>> {
    if let sim::Arg::Tensor { bytes, .. } = arg { Some(bytes) } else { None }
}

/// How many mistakes of a kind there are, and what found them.
#[derive(Default)]
pub(super) struct Row {
    pub(super) all: usize,
    pub(super) refused: usize,
    /// The simulator finds something, or the results are others.
    pub(super) failed: usize,
    /// Accepted by the verifier and the simulator, and found by the checks of lane IR or the emulator.
    pub(super) in_code: usize,
    /// Accepted by all, and proved to change nothing.
    pub(super) equivalent: usize,
    /// Mistakes that some layer finds, but not the verifier; and those that none finds, without a proof.
    pub(super) missed: Vec<String>,
}

pub(super) type Table = BTreeMap<&'static str, Row>;

/// What the verifier leaves to the checks of lane IR: any number of a barrier orders the warps of a role, but each role has its own.
const LEFT_TO_LANES: &str = "a named barrier that is not used";

/// Makes every `each`-th mistake in a program, and runs those that are accepted, or all.
pub(super) fn mistakes_with(subject: &Subject<'_>, (all, each): (bool, usize), table: &mut Table) {
    let Subject { kernel, args, program, .. } = subject;
    let Some(grid) = grid(kernel, args) else { return };
    let Some(wanted) = execute(kernel, args, grid) else { return };
    let grid = program_grid(program, grid);
    if subject.fails(program, &wanted, grid) {
        return;
    }
    let right = subject.code(program).unwrap_or_else(|e| panic!("{}: {e}", subject.name));
    let (live, mut number) = (live(program), 0);
    for id in (0..program.ops.len()).map(OpId::new).filter(|id| live.contains(id)) {
        for (kind, mutant) in mutants_of(program, id) {
            number += 1;
            // Where stores are in flight while the next tile is computed, every mistake is made.
            if number % each != 0 && !stores_in_bulk(&program.op(id).kind) {
                continue;
            }
            let row = table.entry(kind).or_default();
            row.all += 1;
            let refused = check(&mutant).is_err();
            // What is refused needs not run, but for the table in docs/lowering.md.
            let failed = (!refused || all) && subject.fails(&mutant, &wanted, grid);
            row.refused += usize::from(refused);
            row.failed += usize::from(failed);
            if refused {
                continue;
            }
            let told = |by: &str| format!("{}: {kind}, {id:?} {:?}: {by}", subject.name, program.op(id).kind);
            if failed {
                row.missed.push(told("the simulator"));
                continue;
            }
            match subject.run_code(&mutant, &right, &wanted, grid) {
                Ran::Fails if kind == LEFT_TO_LANES => row.in_code += 1,
                Ran::Fails => row.missed.push(told("the code")),
                Ran::Passes if !is_equivalent(kind, program, id) => row.missed.push(told("nothing")),
                Ran::SameCode | Ran::Passes => row.equivalent += 1,
            }
        }
    }
}

/// Whether an operation belongs to bulk stores: it starts or commits them, waits for them, or makes their source visible.
fn stores_in_bulk(kind: &OpKind) -> bool {
    match kind {
        OpKind::Nv(NvOp::Commit { group, .. } | NvOp::WaitGroup { group, .. }) => *group == NvGroup::BulkStore,
        OpKind::Nv(NvOp::BulkStore { .. }) | OpKind::Ttg(TtgOp::Fence { .. }) => true,
        _ => false,
    }
}

/// Whether the tables are written anew: then also what the verifier refuses is run.
fn blessing() -> bool {
    std::env::var_os("TITAN_BLESS").is_some()
}

#[test]
fn mistakes_of_the_lowering_are_refused() {
    let mut table = Table::new();
    each_kernel(&["text", "verify"], &mut |name, kernel| {
        for free in [FreeBy::Mbarrier, FreeBy::Sequence] {
            if kernel.pipes.is_empty() || free == FreeBy::Sequence && kernel.roles.is_empty() {
                continue;
            }
            let plan = Plan { free, ..plan(kernel, &titan_nv::target(machine()), true) };
            let Ok(program) = barrier_program(kernel, &plan) else { continue };
            let args = &arguments(&kernel.sig, 32, 3);
            let subject = Subject { name, kernel, args, program: &program, machine: machine() };
            mistakes_with(&subject, (blessing(), 1), &mut table);
        }
    });
    decided(&table, 5000);
    shown(&table, "sm_80");
}

/// Kernels of the examples, with the extents of tensors, and one of how many of their mistakes is made: their tiles are large.
const SHIPPED: [(&str, &str, i64, usize); 4] = [
    ("gemm_bulk", include_str!("../../../titan-nv/golden/gemm_bulk.tir"), 40, 1),
    ("gemm", include_str!("../../../titan-nv/tests/hopper/kernels/gemm.tir"), 136, 11),
    ("gemm_ws", include_str!("../../../titan-nv/tests/hopper/kernels/gemm_ws.tir"), 136, 11),
    ("fp8_scaled", include_str!("../../../titan-nv/tests/hopper/kernels/fp8_scaled.tir"), 144, 5),
];

/// Random kernels: how they are made, the first seed, how many, their programs, and which of these are meant.
type Drawn = (fn(&mut Rng) -> Random, u64, usize, fn(&Verified) -> Option<Kernel>, fn(&Kernel) -> bool);

const DRAWN: [Drawn; 4] = [
    (random_groups::small, 40_000, 8, for_hopper, |program| cluster(program) == 1),
    (random_groups::small, 60_000, 4, for_hopper, |program| cluster(program) > 1),
    (random_groups::small, 60_000, 2, in_fours, |_| true),
    (random_groups::small_mixed, 90_000, 6, for_hopper, is_mixed),
];

/// The program of a kernel for sm_90a with clusters of four programs, if that with the chosen schedule has clusters.
fn in_fours(kernel: &Verified) -> Option<Kernel> {
    let chosen = stages(kernel, hopper(), true, None).ok()?.schedule;
    let cluster = Cluster { size: 4, ..chosen.cluster? };
    let schedule = Schedule { cluster: Some(cluster), bodies: Vec::new(), ..chosen };
    Some(follow(kernel, hopper(), &schedule).ok()?.barriers)
}

/// The program of a kernel for sm_90a, if it has bulk copies or MMAs of warpgroups.
fn for_hopper(kernel: &Verified) -> Option<Kernel> {
    let made = stages(kernel, hopper(), true, None).ok()?;
    let has =
        |kind: fn(&NvOp) -> bool| made.barriers.ops.iter().any(|op| matches!(&op.kind, OpKind::Nv(nv) if kind(nv)));
    (has(|nv| matches!(nv, NvOp::BulkLoad { .. })) || has(|nv| *nv == NvOp::Wgmma)).then_some(made.barriers)
}

#[test]
fn mistakes_of_the_lowering_for_sm_90a_are_refused() {
    let (mut table, mut programs) = (Table::new(), 0);
    let mut of_program = |name: &str, kernel: &Verified, args: &[sim::Arg], (program, each): (&Kernel, usize)| {
        let subject = Subject { name, kernel, args, program, machine: hopper() };
        mistakes_with(&subject, (blessing(), each), &mut table);
        programs += 1;
    };
    let mut subject = |name: &str, kernel: &Verified, args: &[sim::Arg], each: usize| {
        if let Some(program) = for_hopper(kernel) {
            of_program(name, kernel, args, (&program, each));
        }
    };
    each_kernel(&["text", "verify"], &mut |name, kernel| subject(name, kernel, &arguments(&kernel.sig, 32, 3), 1));
    for (name, text, extent, each) in SHIPPED {
        let kernel = verify(parse_one(text).expect("a kernel")).expect("a right kernel");
        subject(name, &kernel, &arguments(&kernel.sig, extent, 3), each);
    }
    for mask in [Mask::None, Mask::Causal] {
        let kernel = attention::kernel([64, 16, 16], mask, true);
        subject("attention", &kernel, &attention::arguments([1, 64, 64, 16], 1), 1);
    }
    for (make, first, wanted, program, is_meant) in DRAWN {
        let drawn = (first..).filter_map(|seed| {
            let Random { text, args } = make(&mut Rng::new(seed));
            let kernel = verify(parse_one(&text).expect("a kernel")).expect("a right kernel");
            let program = program(&kernel)?;
            (is_meant(&program) && program.ops.iter().any(|op| op.kind == OpKind::Nv(NvOp::Wgmma)))
                .then_some((seed, kernel, args, program))
        });
        for (seed, kernel, args, program) in drawn.take(wanted) {
            let name = format!("random {seed}, clusters of {}", cluster(&program));
            of_program(&name, &kernel, &args, (&program, 1));
        }
    }
    assert!(programs > 25, "{programs}");
    decided(&table, 1500);
    shown(&table, "sm_90a");
}

/// Every mistake is refused, or found where it should be, or none.
fn decided(table: &Table, least: usize) {
    let missed: Vec<&String> = table.values().flat_map(|row| &row.missed).collect();
    assert!(
        missed.is_empty(),
        "{} accepted and found by another layer, or by none without a proof:\n{missed:#?}",
        missed.len()
    );
    assert!(table.values().map(|row| row.all).sum::<usize>() > least && table.len() > 30);
}

/// `TITAN_BLESS=1` writes the table of a target in docs/lowering.md. Else its numbers are compared, but for what was run.
fn shown(table: &Table, target: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lowering.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(&format!("\n| mistake for {target} |")).expect("the head of the table");
    let (head, rest) = rest.split_once("|\n|---|---|---|---|---|---|\n").expect("the line below it");
    let (rows, after) = rest.split_once("\n\n").expect("text after the table");
    let row = |(name, row): (&&str, &Row), failed: &str| {
        format!("| {name} | {} | {} | {failed} | {} | {} |\n", row.all, row.refused, row.in_code, row.equivalent)
    };
    if blessing() {
        let rows: String = table.iter().map(|r| row(r, &r.1.failed.to_string())).collect();
        let line = "|\n|---|---|---|---|---|---|\n";
        std::fs::write(&path, format!("{before}\n| mistake for {target} |{head}{line}{rows}\n{after}")).unwrap();
        return;
    }
    assert_eq!(rows.lines().count(), table.len(), "docs/lowering.md is not current, run with TITAN_BLESS=1");
    for (one, told) in table.iter().zip(rows.lines()) {
        let own = row(one, "?");
        let (left, right) = own.split_once('?').unwrap();
        let is_told = told.starts_with(left) && told.ends_with(right.trim_end());
        assert!(is_told, "docs/lowering.md is not current, run with TITAN_BLESS=1: {own}");
    }
}
