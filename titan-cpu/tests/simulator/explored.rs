//! Barrier programs in the model checker: those of every kernel of the filetests, with at most three slots a ring and D + 2 times,
//! with data erased; and mistakes in a few of them, which it finds.

use super::arguments;
use super::chosen::{Chosen, each_chosen_kernel, mistakes};
use super::documented::{rows, told};
use super::gpu::machine;
use super::mutants::mutants_of;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use titan_core::driver::barrier_program_ahead;
use titan_core::ir::{FreeBy, Kernel};
use titan_core::pipeline::{fuse, implicit};
use titan_core::plan::{Plan, plan};
use titan_core::text::parse;
use titan_core::verify::{Verified, WellFormed, verify, well_formed};
use titan_sim::sim::{self, Kind, Limits, Options, Verdict};

/// States of one exploration.
const STATES: u64 = 100_000;
/// How many slots a ring has at most, and how many warps a role: deep rings of warps alone, and warps that share a shallow one.
const SMALL: [(u32, u32); 2] = [(3, 1), (1, 2)];
/// Extents and scalars that are tried for as many times of a ring as are wanted.
const SIZES: [(i64, i64); 17] = [
    (16, 0),
    (16, 1),
    (16, 2),
    (32, 2),
    (32, 3),
    (48, 3),
    (48, 4),
    (64, 4),
    (64, 5),
    (80, 5),
    // Of loops over elements.
    (1, 0),
    (1, 1),
    (2, 1),
    (2, 2),
    (3, 2),
    (4, 3),
    (5, 4),
];

/// The kernel with fewer slots and warps; with one slot more each, if it needs them.
fn small(kernel: &Verified, slots: u32, warps: u32) -> Option<Verified> {
    let fewer = |slots: u32| {
        let mut small: Kernel = (**kernel).clone();
        small.pipes.iter_mut().for_each(|pipe| pipe.slots = pipe.slots.min(slots));
        small.roles.iter_mut().for_each(|role| role.warps = role.warps.min(warps));
        verify(small).ok()
    };
    (slots..=kernel.pipes.iter().map(|p| p.slots).max().unwrap_or(slots).max(slots)).find_map(fewer)
}

/// How far ahead copies are issued, and whether the next stage is waited for early.
type Ahead = (u32, bool);

/// The kernel with rings for its pipelined loops, and with its roles as one; the copies of both as far ahead as there are slots.
fn with_rings(kernel: &Verified) -> Vec<(&'static str, Verified, Ahead)> {
    let mut all = vec![("", kernel.clone(), (0, false))];
    let mut ringed = kernel.clone();
    while let Some(candidate) = implicit::candidates(&ringed, &|_| true).first() {
        let next = implicit::pipeline(&ringed, candidate, SMALL[0].0);
        let Some(next) = next.and_then(|k| verify(k.canonical()).ok()) else { break };
        ringed = next;
    }
    if *ringed != **kernel {
        let far = SMALL[0].0 - 1;
        all.push((", loops as rings, waited for early", ringed.clone(), (far, true)));
        all.push((", loops as rings", ringed, (far, false)));
    }
    let fused = fuse::fuse(kernel, false).ok().and_then(|fused| verify(fused).ok());
    if let Some(fused) = fused.filter(|_| !kernel.roles.is_empty()) {
        let far = fuse::greatest_distance(kernel);
        if far > 1 {
            all.push((", roles fused, waited for early", fused.clone(), (far, true)));
        }
        all.push((", roles fused", fused, (far, false)));
    }
    all
}

/// The barrier programs of a kernel.
pub(super) fn programs(kernel: &Verified) -> Vec<(String, Verified, Kernel)> {
    let mut all = Vec::new();
    let two = small(kernel, SMALL[1].0, SMALL[1].1).filter(|_| !kernel.roles.is_empty());
    let two = two.map(|k| (", warps share", k, (0, false)));
    let deep = small(kernel, SMALL[0].0, SMALL[0].1);
    for (what, kernel, (distance, early)) in deep.iter().flat_map(with_rings).chain(two) {
        for (name, free) in [("", FreeBy::Mbarrier), (", counters", FreeBy::Sequence)] {
            if free == FreeBy::Sequence && kernel.roles.is_empty() {
                continue;
            }
            let plan = Plan { free, ..plan(&kernel, &titan_nv::target(machine()), false) };
            let Ok(program) = barrier_program_ahead(&kernel, &plan, distance, early) else { continue };
            all.push((format!("{what}{name}"), kernel.clone(), program));
        }
    }
    all
}

/// Arguments with which a ring goes through as few times as it can, and through as many as D + 2 allows.
pub(super) fn sizes(program: &WellFormed) -> Vec<Vec<sim::Arg>> {
    let deepest = program.pipes.iter().map(|p| p.slots).max().unwrap_or(0);
    let mut by_times: BTreeMap<u64, Vec<sim::Arg>> = BTreeMap::new();
    for (extent, scalar) in SIZES {
        let mut args = arguments(&program.sig, extent, scalar);
        let before = args.clone();
        let options = Options { data: false, sanitize: false, max_steps: 20_000, ..Options::default() };
        let Ok(report) = sim::run(program, &mut args, Some([1, 1, 1]), &options) else { continue };
        if report.findings.iter().all(|f| f.kind != Kind::Steps) && report.statistics.times <= u64::from(deepest) + 2 {
            by_times.entry(report.statistics.times).or_insert(before);
        }
        if program.pipes.is_empty() {
            break;
        }
    }
    let first = by_times.pop_first().map(|(_, args)| args);
    first.into_iter().chain(by_times.pop_last().map(|(_, args)| args)).collect()
}

#[derive(Default)]
struct Tally {
    programs: usize,
    with_roles: usize,
    explorations: usize,
    /// Those that a few orders decided.
    determinate: usize,
    states: u64,
    most: (u64, String),
    cut: Vec<String>,
    wrong: Vec<String>,
}

impl Tally {
    fn explore(&mut self, name: &str, kernel: &Kernel, program: &WellFormed) {
        self.programs += 1;
        self.with_roles += usize::from(!kernel.roles.is_empty());
        let sizes = sizes(program);
        if sizes.is_empty() {
            self.cut.push(format!("`{name}`: no arguments that it takes lead to so few times"));
        }
        for args in sizes {
            self.explorations += 1;
            let limits = Limits { max_states: STATES, ..Limits::default() };
            let verdict = sim::explore(program, &args, Some([1, 1, 1]), &limits).unwrap();
            let states = verdict.explored().states;
            self.states += states;
            self.determinate += usize::from(verdict.explored().determinate > 0);
            self.most = self.most.clone().max((states, name.to_owned()));
            match verdict {
                Verdict::Safe(explored) => {
                    let slots = program.pipes.iter().map(|p| u64::from(p.slots)).max().unwrap_or(0);
                    if explored.occupied > slots {
                        self.wrong.push(format!("{name}: {} times of a ring at once", explored.occupied));
                    }
                }
                Verdict::Bound(bound, _) => self.cut.push(format!("`{name}`: {bound}")),
                Verdict::Finding(found, _) if matches!(found.kind, Kind::NotModelled | Kind::Trap) => {
                    let what = format!("`{name}`: {}", found.message);
                    if self.cut.last() != Some(&what) {
                        self.cut.push(what);
                    }
                }
                Verdict::Finding(found, _) => self.wrong.push(format!("{name}: {found} [{}]", found.schedule)),
            }
        }
    }
}

#[test]
fn barrier_programs_are_safe_in_every_order() {
    let mut tally = Tally::default();
    each_chosen_kernel(&["text", "verify"], &mut |name, kernel| {
        for (what, kernel, program) in programs(kernel) {
            tally.explore(&format!("{name}{what}"), &kernel, &well_formed(program).expect("a barrier program"));
        }
    });
    assert!(tally.wrong.is_empty(), "{} wrong\n{}", tally.wrong.len(), tally.wrong.join("\n"));
    let [many, some] = test_depth::cases([300, 100], [30, 10]);
    assert!(tally.programs > many && tally.with_roles > some, "{} {}", tally.programs, tally.with_roles);
    assert!(tally.determinate > many, "{} of {}", tally.determinate, tally.explorations);
    let (most, of) = &tally.most;
    let mut text = format!(
        "{} programs, {} of them with roles, in {} explorations, {} of which a few orders decide: {} states, {most} for one at most\n(`{of}`).\n\nCut off: {}.\n\n",
        tally.programs,
        tally.with_roles,
        tally.explorations,
        tally.determinate,
        tally.states,
        tally.cut.len()
    );
    for cut in &tally.cut {
        let _ = writeln!(text, "* {cut}");
    }
    told("simulator", ("explored", "barrier programs are explored"), &text);
}

/// Rings of every kind: copies and stores that fill, one reader and two, mbarriers and counters, and one set of warps.
const SOURCES: &str = include_str!("explored.tir");

/// What the model checker says of a program with these arguments; `None` if its parts do not fit together.
fn verdict(program: Kernel, args: &[sim::Arg]) -> Option<Verdict> {
    let limits = Limits { max_states: STATES, ..Limits::default() };
    Some(sim::explore(&well_formed(program).ok()?, args, Some([1, 1, 1]), &limits).unwrap())
}

/// The barrier programs of the sources, by name.
pub(super) fn programs_of_sources() -> Vec<(String, Kernel)> {
    let kernels = parse(SOURCES).expect("kernels").into_iter().map(|k| verify(k).expect("a right kernel"));
    let programs = |kernel: Verified| {
        let all = programs(&kernel).into_iter();
        all.map(move |(what, _, program)| (format!("{}{what}", kernel.sig.name), program))
    };
    kernels.flat_map(programs).collect()
}

#[test]
fn mistakes_are_found_by_the_model_checker() {
    let mut table: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let programs = programs_of_sources();
    let all = programs.iter().enumerate().flat_map(|(number, (_, program))| mistakes(number, program, mutants_of));
    let chosen = Chosen::of(all, 2);
    for (number, (name, program)) in programs.iter().enumerate().filter(|(number, _)| chosen.has(*number)) {
        let args = sizes(&well_formed(program.clone()).unwrap()).pop().expect("arguments");
        let clean = verdict(program.clone(), &args);
        assert!(matches!(clean, Some(Verdict::Safe(_))), "{name}: {clean:?}");
        for (_, kind, mutant) in chosen.mutants(number, program, mutants_of) {
            let row = table.entry(kind).or_default();
            row.0 += 1;
            let found = verdict(mutant, &args).is_none_or(|v| v.finding().is_some());
            row.1 += usize::from(found);
        }
    }
    let mut text = "| mistake | programs | found |\n|---|---|---|\n".to_owned();
    for (kind, (all, found)) in &table {
        let _ = writeln!(text, "| {kind} | {all} | {found} |");
    }
    let test = ("explored", "mistakes in the model checker");
    told("lowering", test, &text);
    assert_eq!(table.len(), rows("lowering", test), "every kind is met");
}
