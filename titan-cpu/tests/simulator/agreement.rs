//! A few orders, where they stand for all, against the full search: programs and mistakes in them, with the same answer wherever the full
//! search ends; where it does not, random orders find nothing in what a few orders find safe. What they find is reproduced by its schedule.

use super::chosen::{Chosen, mistakes};
use super::explored::{programs_of_sources, sizes};
use super::gpu::hopper;
use super::mutants::mutants_of;
use super::random_groups::{self, Random};
use super::rng::Rng;
use super::{grid, program_grid};
use titan_core::driver::stages;
use titan_core::ir::{Kernel, NvOp, OpId, OpKind};
use titan_core::verify::{verify, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{self, Few, Limits, Options, Verdict};

/// States of a full search; of a few orders there may be more.
const STATES: u64 = 1_000;

#[derive(Debug, Default)]
struct Tally {
    /// Programs, and those that both searches decide.
    all: usize,
    safe: usize,
    found: usize,
    /// The full search does not end, and a few orders find all safe, or something.
    only_few: usize,
    only_found: usize,
    /// A few orders do not stand for all.
    not_few: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn compare(&mut self, name: &str, program: &Kernel, args: &[sim::Arg], grid: [u32; 3]) {
        let Ok(program) = well_formed(program.clone()) else { return };
        let explore = |few, max_states| {
            let limits = Limits { max_states, few, ..Limits::default() };
            sim::explore(&program, args, Some(grid), &limits).unwrap()
        };
        let (with, without) = (explore(Few::Alone, 100_000), explore(Few::Never, STATES));
        self.all += 1;
        match (&with, &without) {
            (Verdict::Safe(_), Verdict::Safe(_)) => self.safe += 1,
            (Verdict::Finding(..), Verdict::Finding(..)) => self.found += 1,
            (Verdict::Safe(_), Verdict::Bound(..)) => self.only_few += 1,
            (Verdict::Finding(..), Verdict::Bound(..)) => self.only_found += 1,
            (Verdict::Bound(..), _) => self.not_few += 1,
            (_, _) => self.wrong.push(format!("{name}: {with:?}, and in the full search {without:?}")),
        }
        let options = Options { data: false, max_steps: 1_000_000, ..Options::default() };
        if let (Verdict::Safe(_), Verdict::Bound(..)) = (&with, &without) {
            for seed in 0..5 {
                let by = Options { seed: Some(seed), completion: Completion::Seeded(seed), ..options.clone() };
                let run = sim::run(&program, &mut args.to_vec(), Some(grid), &by).unwrap();
                self.wrong.extend(run.findings.first().map(|found| format!("{name}, by seed {seed}: {found}")));
            }
        }
        if let Verdict::Finding(found, _) = &with {
            let again = sim::replay(&program, &mut args.to_vec(), Some(grid), &options, &found.schedule).unwrap();
            if again.findings.is_empty() {
                self.wrong.push(format!("{name}: {found} is not reproduced"));
            }
        }
    }

    /// Compares programs, and with one of how many of their mistakes; in the quick depth, with some of each kind.
    fn with_mistakes(&mut self, subjects: &[Subject], (each, quick): (usize, usize)) {
        let of_one = |(number, subject): (usize, &Subject)| {
            let all = mistakes(number, &subject.program, all_mutants_of).into_iter();
            all.skip(each - 1).step_by(each).collect::<Vec<_>>()
        };
        let chosen = Chosen::of(subjects.iter().enumerate().flat_map(of_one), quick);
        for (number, Subject { name, program, args, grid }) in subjects.iter().enumerate() {
            if chosen.has(number) {
                self.compare(name, program, args, *grid);
            }
            for (_, kind, mutant) in chosen.mutants(number, program, all_mutants_of) {
                self.compare(&format!("{name}, {kind}"), &mutant, args, *grid);
            }
        }
    }

    fn check(&self) {
        println!("{self:#?}");
        assert!(self.wrong.is_empty(), "{} wrong\n{}", self.wrong.len(), self.wrong.join("\n"));
    }
}

/// A program and what it is launched with.
struct Subject {
    name: String,
    program: Kernel,
    args: Vec<sim::Arg>,
    grid: [u32; 3],
}

fn all_mutants_of(program: &Kernel, id: OpId) -> Vec<(&'static str, Kernel)> {
    mutants_of(program, id).into_iter().chain(more_of(program, id)).collect()
}

/// Mistakes at which the theorem could fail: something that comes too often, waits that fall away, programs that do not meet.
fn more_of(program: &Kernel, id: OpId) -> Vec<(&'static str, Kernel)> {
    let gone = || {
        let mut mutant = program.clone();
        mutant.blocks.iter_mut().for_each(|block| block.ops.retain(|op| *op != id));
        mutant.canonical()
    };
    let twice = || {
        let mut mutant = program.clone();
        let copy = OpId::new(mutant.ops.len());
        mutant.ops.push(program.op(id).clone());
        for block in &mut mutant.blocks {
            if let Some(at) = block.ops.iter().position(|op| *op == id) {
                block.ops.insert(at, copy);
            }
        }
        mutant.canonical()
    };
    let no_results = program.op(id).results.is_empty();
    match &program.op(id).kind {
        OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait) => vec![("a meeting of the cluster is gone", gone())],
        OpKind::Nv(NvOp::BulkLoad { .. }) => vec![("a copy twice", twice())],
        OpKind::Nv(NvOp::ArriveCluster { .. }) => vec![("a release twice", twice()), ("a release is gone", gone())],
        OpKind::Nv(NvOp::Arrive { .. } | NvOp::ArriveExpectTx { .. }) if no_results => {
            vec![("an arrival twice", twice())]
        }
        OpKind::Nv(NvOp::WaitParity | NvOp::BarrierSync { .. }) => vec![("a wait twice", twice())],
        _ => Vec::new(),
    }
}

#[test]
fn a_few_orders_decide_as_all_do() {
    let mut tally = Tally::default();
    let subject = |(name, program): (String, Kernel)| {
        let args = sizes(&well_formed(program.clone()).unwrap()).pop().expect("arguments");
        Subject { name, program, args, grid: [1, 1, 1] }
    };
    let subjects: Vec<Subject> = programs_of_sources().into_iter().map(subject).collect();
    tally.with_mistakes(&subjects, (1, 1));
    tally.check();
    let [safe, found] = test_depth::cases([50, 200], [5, 5]);
    assert!(tally.safe > safe && tally.found > found, "{tally:?}");
}

/// Programs with bulk copies and MMAs of warpgroups, alone or in clusters, and some of their mistakes.
fn groups_agree((wanted, first): (usize, u64), each: (usize, usize), clusters: bool) -> Tally {
    let (mut tally, mut subjects) = (Tally::default(), Vec::new());
    for seed in first.. {
        if subjects.len() == wanted {
            break;
        }
        let Random { text, args } = random_groups::small(&mut Rng::new(seed));
        let kernel = verify(titan_core::text::parse_one(&text).unwrap()).unwrap();
        let Ok(all) = stages(&kernel, hopper(), true, None) else { continue };
        let Some(laid) = all.barriers.laid_out.as_deref() else { continue };
        let copies = all.barriers.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(NvOp::BulkLoad { .. })));
        if !copies || (laid.cluster > 1) != clusters {
            continue;
        }
        let grid = program_grid(&all.barriers, grid(&kernel, &args).unwrap());
        subjects.push(Subject { name: format!("{seed}"), program: all.barriers, args, grid });
    }
    tally.with_mistakes(&subjects, each);
    tally.check();
    tally
}

#[test]
fn a_few_orders_decide_as_all_do_with_warpgroups() {
    let tally = groups_agree((3, 50_000), (5, 1), false);
    let [safe, found] = test_depth::cases([3, 20], [1, 10]);
    assert!(tally.safe + tally.only_few > safe && tally.found > found, "{tally:?}");
}

#[test]
fn a_few_orders_decide_as_all_do_in_clusters() {
    let tally = groups_agree((2, 60_000), (10, 1), true);
    let [safe, found] = test_depth::cases([2, 10], [1, 5]);
    assert!(tally.safe + tally.only_few > safe && tally.found > found, "{tally:?}");
}
