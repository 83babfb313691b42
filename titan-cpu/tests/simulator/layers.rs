//! What each layer finds of the mistakes of `mutants`: the verifier, the simulator, and the emulator of the code that is generated. The tables
//! of docs/lowering.md are made here.

use super::chosen::{Chosen, Mistake, Order, each_kernel, mistakes, orders_of};
use super::documented::is_blessing;
use super::equivalent::is_equivalent;
use super::gpu::{Code, NO_MAP, hopper, machine};
use super::kernels::Mask;
use super::mutants::{cluster, mutants_of};
use super::random_groups::{self, Random};
use super::rng::Rng;
use super::ways::is_mixed;
use super::{agree, arguments, attention, documented, execute, grid, program_grid};
use std::collections::BTreeMap;
use titan_core::driver::{Cluster, Schedule, Walk, barrier_program, follow, stages};
use titan_core::ir::{FreeBy, Kernel, NvGroup, NvOp, OpKind, TtgOp};
use titan_core::lower::lower;
use titan_core::plan::{Plan, plan};
use titan_core::text::parse_one;
use titan_core::verify::{Verified, barrier_program as check, stores_of, verify, well_formed};
use titan_nv::Machine;
use titan_sim::sim;

/// A program in which mistakes are made, one of how many, with the kernel whose results it has.
struct Subject {
    name: String,
    kernel: Verified,
    args: Vec<sim::Arg>,
    program: Kernel,
    machine: &'static Machine,
    each: usize,
    /// The orders in which the program runs.
    orders: Vec<Order>,
}

/// What a layer that runs programs says of a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ran {
    Fails,
    Passes,
    /// Its code is that of the program without the mistake.
    SameCode,
}

impl Subject {
    /// The mistakes in the program, which is the `number`-th, or one of how many. Where stores are in flight while the next tile is computed,
    /// every mistake is made.
    fn mistakes(&self, number: usize) -> Vec<Mistake> {
        let all = mistakes(number, &self.program, mutants_of).into_iter().enumerate();
        let is_meant =
            |(n, m): &(usize, Mistake)| (n + 1) % self.each == 0 || stores_in_bulk(&self.program.op(m.at).kind);
        all.filter(is_meant).map(|(_, mistake)| mistake).collect()
    }

    /// Whether a program goes wrong in the simulator: a finding, other results, or no end.
    fn fails(&self, program: &Kernel, wanted: &[Option<Vec<u8>>], grid: [u32; 3]) -> bool {
        let Ok(program) = well_formed(program.clone()) else { return true };
        self.orders.iter().any(|&(completion, seed)| {
            let mut after = self.args.clone();
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
        let fails = |&(completion, _): &Order| match code.run(&self.kernel, &self.args, grid, completion) {
            Ok(found) => self.differs(&found, wanted),
            Err(why) => !why.starts_with(NO_MAP),
        };
        if self.orders.iter().any(fails) { Ran::Fails } else { Ran::Passes }
    }
}

fn bytes(arg: sim::Arg) -> Option<Vec<u8>> {
    if let sim::Arg::Tensor { bytes, .. } = arg { Some(bytes) } else { None }
}

/// How many mistakes of a kind there are, and what found them.
#[derive(Default)]
struct Row {
    all: usize,
    refused: usize,
    /// The simulator finds something, or the results are others.
    failed: usize,
    /// Accepted by the verifier and the simulator, and found by the checks of lane IR or the emulator.
    in_code: usize,
    /// Accepted by all, and proved to change nothing.
    equivalent: usize,
    /// Mistakes that some layer finds, but not the verifier; and those that none finds, without a proof.
    missed: Vec<String>,
}

type Table = BTreeMap<&'static str, Row>;

/// What the verifier leaves to the checks of lane IR: any number of a barrier orders the warps of a role, but each role has its own.
const LEFT_TO_LANES: &str = "a named barrier that is not used";

/// How many mistakes of a kind are made in the quick depth.
const OF_A_KIND: usize = 2;

/// What the layers find of the mistakes in these programs: in the quick depth, of a few of each kind.
fn table_of(subjects: &[Subject]) -> Table {
    let mut table = Table::new();
    let chosen = Chosen::of(subjects.iter().enumerate().flat_map(|(n, subject)| subject.mistakes(n)), OF_A_KIND);
    for (number, subject) in subjects.iter().enumerate().filter(|(number, _)| chosen.has(*number)) {
        mistakes_in((number, subject), &chosen, &mut table);
    }
    table
}

/// Makes the mistakes that are chosen in a program, and runs those that are accepted; all, if the tables are written anew.
fn mistakes_in((number, subject): (usize, &Subject), chosen: &Chosen, table: &mut Table) {
    let Subject { kernel, args, program, .. } = subject;
    let Some(grid) = grid(kernel, args) else { return };
    let Some(wanted) = execute(kernel, args, grid) else { return };
    let grid = program_grid(program, grid);
    if subject.fails(program, &wanted, grid) {
        return;
    }
    let right = subject.code(program).unwrap_or_else(|e| panic!("{}: {e}", subject.name));
    for (id, kind, mutant) in chosen.mutants(number, program, mutants_of) {
        let row = table.entry(kind).or_default();
        row.all += 1;
        let refused = check(&mutant).is_err() || stores_of(program, &mutant).is_err();
        // What is refused needs not run, but for the table in docs/lowering.md.
        let failed = (!refused || is_blessing()) && subject.fails(&mutant, &wanted, grid);
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

/// Whether an operation belongs to bulk stores: it starts or commits them, waits for them, or makes their source visible.
fn stores_in_bulk(kind: &OpKind) -> bool {
    match kind {
        OpKind::Nv(NvOp::Commit { group, .. } | NvOp::WaitGroup { group, .. }) => *group == NvGroup::BulkStore,
        OpKind::Nv(NvOp::BulkStore { .. }) | OpKind::Ttg(TtgOp::Fence { .. }) => true,
        _ => false,
    }
}

#[test]
fn mistakes_of_the_lowering_are_refused() {
    let mut subjects = Vec::new();
    each_kernel(&["text", "verify"], &mut |name, kernel| {
        for free in [FreeBy::Mbarrier, FreeBy::Sequence] {
            if kernel.pipes.is_empty() || free == FreeBy::Sequence && kernel.roles.is_empty() {
                continue;
            }
            let plan = Plan { free, ..plan(kernel, &titan_nv::target(machine()), true) };
            let Ok(program) = barrier_program(kernel, &plan) else { continue };
            let (name, kernel, args) = (name.to_owned(), kernel.clone(), arguments(&kernel.sig, 32, 3));
            let orders = orders_of(subjects.len());
            subjects.push(Subject { name, kernel, args, program, machine: machine(), each: 1, orders });
        }
    });
    let table = table_of(&subjects);
    decided(&table, test_depth::cases(5000, 60));
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
    let cluster = Cluster { size: 4, ..chosen.walk.cluster? };
    let walk = Walk { cluster: Some(cluster), ..chosen.walk };
    let schedule = Schedule { walk, bodies: Vec::new(), ..chosen };
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
    let mut subjects = Vec::new();
    let mut subject = |name: &str, kernel: &Verified, args: Vec<sim::Arg>, each: usize| {
        if let Some(program) = for_hopper(kernel) {
            let (name, kernel) = (name.to_owned(), kernel.clone());
            let orders = orders_of(subjects.len());
            subjects.push(Subject { name, kernel, args, program, machine: hopper(), each, orders });
        }
    };
    each_kernel(&["text", "verify"], &mut |name, kernel| {
        subject(name, kernel, arguments(&kernel.sig, 32, 3), 1);
    });
    // In the quick depth, of the kernels of the examples those with small tiles.
    for (name, text, extent, each) in SHIPPED.into_iter().filter(|(.., each)| test_depth::is_full() || *each == 1) {
        let kernel = verify(parse_one(text).expect("a kernel")).expect("a right kernel");
        subject(name, &kernel, arguments(&kernel.sig, extent, 3), each);
    }
    for mask in [Mask::None, Mask::Causal] {
        let kernel = attention::kernel([64, 16, 16], mask, true);
        subject("attention", &kernel, attention::arguments([1, 64, 64, 16], 1), 1);
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
            let orders = orders_of(subjects.len());
            subjects.push(Subject { name, kernel, args, program, machine: hopper(), each: 1, orders });
        }
    }
    assert!(subjects.len() > test_depth::cases(25, 22), "{}", subjects.len());
    let table = table_of(&subjects);
    decided(&table, test_depth::cases(1500, 100));
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

/// The table of a target in docs/lowering.md.
fn shown(table: &Table, target: &str) {
    let row = |(name, row): (&&'static str, &Row)| {
        let Row { all, refused, failed, in_code, equivalent, .. } = *row;
        documented::Counts { name, all, refused, failed, in_code, equivalent }
    };
    documented::mistakes(target, &table.iter().map(row).collect::<Vec<_>>());
}
