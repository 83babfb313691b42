//! The rewriter of loops at every kernel: what it makes, with a mistake in it, is refused by its checker or computes the same; and every other
//! legal schedule of a loop is accepted and computes the same. The tables of docs/scheduling.md are made here.

use super::attention;
use super::chosen::{ORDERS, Order, each_chosen_kernel, each_kernel, in_turn, orders_of};
use super::documented::told;
use super::gpu::{Code, NO_MAP, hopper, machine};
use super::kernels::Mask;
use super::loop_mutants::{KINDS, Kind};
use super::random_groups::{self, Random};
use super::rewriting::{Loops, Moved, Numbers, distinct};
use super::rng::Rng;
use super::ways::is_aligned;
use super::{arguments, grid, program_grid};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use titan_core::driver::{Stages, stages};
use titan_core::ir::{Kernel, OpKind, Scheduler};
use titan_core::lower::lower;
use titan_core::text::{parse_one, print};
use titan_core::verify::{Verified, barrier_program, verify, well_formed};
use titan_nv::Machine;
use titan_sim::sim;

/// A kernel with loops that a schedule changes, for one machine and one scheduler.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) loops: Loops,
    kernel: Verified,
    machine: &'static Machine,
    args: Vec<sim::Arg>,
    /// Whether its programs take long in the simulator.
    is_large: bool,
    wanted: OnceLock<Option<Left>>,
}

/// What the emulator says of a run that takes too long for it.
const LIMIT: &str = "error[emu::limit]";

/// What a launch leaves in the memory of its tensors.
type Left = Vec<Option<Vec<u8>>>;

impl Subject {
    /// A kernel for a machine; `None` if no schedule changes its loops.
    pub(super) fn of(
        (name, kernel, args, is_large): Source,
        machine: &'static Machine,
        made: &Stages,
    ) -> Option<Subject> {
        let loops = Loops::of(made, machine)?;
        Some(Subject { name, loops, kernel, machine, args, is_large, wanted: OnceLock::new() })
    }

    /// How often something is tried that is tried so often for kernels whose programs are fast.
    fn times(&self, n: usize) -> usize {
        if self.is_large { 1 } else { n }
    }

    /// What a program leaves in these orders, if it is the same in all and nothing is wrong.
    fn left(&self, program: &Kernel, orders: &[Order]) -> Option<Left> {
        let grid = program_grid(program, grid(&self.kernel, &self.args)?);
        let program = well_formed(program.clone()).ok()?;
        let max_steps = if self.is_large { 600_000 } else { 60_000 };
        let mut all: Option<Left> = None;
        for &(completion, seed) in orders {
            let mut after = self.args.clone();
            let options = sim::Options { completion, seed, max_steps, ..sim::Options::default() };
            let report = sim::run(&program, &mut after, Some(grid), &options).ok()?;
            let bytes = |arg: sim::Arg| if let sim::Arg::Tensor { bytes, .. } = arg { Some(bytes) } else { None };
            let left: Left = after.into_iter().map(bytes).collect();
            if !report.findings.is_empty() || all.as_ref().is_some_and(|all| *all != left) {
                return None;
            }
            all = Some(left);
        }
        all
    }

    /// What the kernel's own program leaves; `None` if something is wrong with it in the simulator, as if it traps.
    fn wanted(&self) -> Option<&Left> {
        let found = || {
            let program = self.loops.program(&self.loops.made)?;
            self.left(&program, &ORDERS[..self.times(ORDERS.len())])
        };
        self.wanted.get_or_init(found).as_ref()
    }

    /// What the code of a program leaves in the emulator, in one order; `Err` if something is wrong with it.
    fn left_by_code(&self, program: &Kernel, (completion, _): Order) -> Result<Option<Left>, String> {
        let lowered = match lower(program, &self.loops.target) {
            Ok(lowered) => lowered,
            Err(why) => return Err(why.message),
        };
        let code = Code::of(&lowered.func, self.machine)?;
        let grid = program_grid(program, grid(&self.kernel, &self.args).ok_or("no grid")?);
        match code.run(&self.kernel, &self.args, grid, completion) {
            Ok(left) => Ok(Some(left)),
            Err(why) if why.starts_with(NO_MAP) || (self.is_large && why.contains(LIMIT)) => Ok(None),
            Err(why) => Err(why),
        }
    }
}

/// A kernel, its arguments, and whether its tiles are large.
pub(super) type Source = (String, Verified, Vec<sim::Arg>, bool);

fn parsed(name: &str, text: &str, extent: i64, is_large: bool) -> Source {
    let kernel = parse_one(text).unwrap_or_else(|e| panic!("{name}: {e:?}\n{text}"));
    let kernel = verify(kernel).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let args = arguments(&kernel.sig, extent, 3);
    (name.to_owned(), kernel, args, is_large)
}

/// Kernels whose tiles have these extents.
fn of_tiles(text: &str, [bm, bn, bk]: [u32; 3]) -> String {
    [("BM", bm), ("BN", bn), ("BK", bk)]
        .iter()
        .fold(text.to_owned(), |text, (name, n)| text.replace(name, &n.to_string()))
}

/// Attention of one head.
fn one_head(text: &str) -> String {
    text.replace("[B, H, ", "[1, 1, ").replace(", H, B)", ", 1, 1)")
}

const GEMM: &str = include_str!("../../../titan-nv/tests/emit/loops/gemm.tir");
const GROUPED: &str = include_str!("../../../titan-nv/tests/emit/loops/grouped.tir");

/// The kernels of the tests of both back ends, with the extents of their tensors.
fn large() -> Vec<Source> {
    let attention = one_head(include_str!("../../../titan-nv/tests/emit/loops/attention.tir")).replace("SIZE", "64");
    vec![
        parsed("gemm 128×128×64", &of_tiles(GEMM, [128, 128, 64]), 136, true),
        parsed("gemm_ws for sm_80", include_str!("../../../titan-nv/tests/emit/loops/gemm_ws.tir"), 136, true),
        parsed("grouped 64×64×64", &of_tiles(GROUPED, [64, 64, 64]), 72, true),
        parsed("attention 64", &attention, 64, true),
        parsed("gemm", include_str!("../../../titan-nv/tests/hopper/kernels/gemm.tir"), 136, true),
        parsed("gemm_ws", include_str!("../../../titan-nv/tests/hopper/kernels/gemm_ws.tir"), 136, true),
        parsed("fp8_scaled", include_str!("../../../titan-nv/tests/hopper/kernels/fp8_scaled.tir"), 144, true),
    ]
}

/// All kernels with loops; in the quick depth, of the filetests a few in which every operation is met.
fn sources() -> Vec<Source> {
    let mut all = Vec::new();
    let mut add = |name: &str, kernel: &Verified| {
        // This one has as many iterations as a matrix has elements.
        let extent = if name.ends_with("@products") { 8 } else { 32 };
        all.push((name.to_owned(), kernel.clone(), arguments(&kernel.sig, extent, 3), false));
    };
    if test_depth::is_full() {
        each_kernel(&["text", "verify"], &mut add);
    } else {
        each_chosen_kernel(&["text", "verify"], &mut add);
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../titan-nv/golden");
    let mut paths: Vec<_> = std::fs::read_dir(golden).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "tir")) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        all.push(parsed(&name, &one_head(&std::fs::read_to_string(path).unwrap()), 40, false));
    }
    all.push(parsed("gemm 32×32×32", &of_tiles(GEMM, [32, 32, 32]), 72, false));
    all.push(parsed("grouped 32×32×32", &of_tiles(GROUPED, [32, 32, 32]), 40, false));
    for mask in [Mask::None, Mask::Causal] {
        let kernel = attention::kernel([64, 16, 16], mask, true);
        all.push((format!("attention 16 {mask:?}"), kernel, attention::arguments([1, 64, 64, 16], 1), false));
    }
    for seed in 0..test_depth::cases(12, 3) {
        let Random { text, args } = random_groups::small(&mut Rng::new(70_000 + seed));
        let kernel = verify(parse_one(&text).unwrap()).unwrap();
        all.push((format!("random {seed}"), kernel, args, false));
    }
    all.extend(large());
    all.retain(|(_, kernel, ..)| kernel.ops.iter().any(|op| matches!(op.kind, OpKind::For(_))));
    all
}

/// The same kernel, which asks for a scheduler; `None` if it is not verified again with the conditions that were found for it.
pub(super) fn scheduled_by(kernel: &Verified, scheduler: Scheduler) -> Option<Verified> {
    let mut kernel = (**kernel).clone();
    kernel.sig.scheduler = Some(scheduler);
    verify(kernel).ok()
}

/// Every kernel with a loop that a schedule changes, for each machine and scheduler that make another one of it.
pub(super) fn subjects() -> &'static [Subject] {
    static ALL: OnceLock<Vec<Subject>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        let ways = [machine(), hopper()].into_iter().flat_map(|m| [Scheduler::Rule, Scheduler::Swing].map(|s| (m, s)));
        let ways: Vec<_> = ways.collect();
        for (number, (name, kernel, args, is_large)) in sources().into_iter().enumerate() {
            for (machine, scheduler) in in_turn(&ways, number) {
                let Some(kernel) = scheduled_by(&kernel, scheduler) else { continue };
                let Ok(made) = stages(&kernel, machine, is_aligned(&args), None) else { continue };
                let Some(loops) = Loops::of(&made, machine) else { continue };
                let name = format!("{name}, {}, {scheduler:?}", machine.name);
                all.push(((name, kernel, machine, args.clone(), is_large), loops));
            }
        }
        let subject = |((name, kernel, machine, args, is_large), loops)| Subject {
            name,
            loops,
            kernel,
            machine,
            args,
            is_large,
            wanted: OnceLock::new(),
        };
        distinct(all).into_iter().map(subject).collect()
    })
}

/// What became of mistakes of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    tried: usize,
    refused: usize,
    /// Accepted, with equal results.
    same: usize,
    /// Of the refused ones, those whose programs were made; those of them that the verifier refuses, that the simulator finds, and that
    /// neither does.
    lowered: usize,
    verifier: usize,
    simulator: usize,
    neither: usize,
}

impl Row {
    /// What the layers behind the checker say of a mistake that it has refused.
    fn besides(&mut self, subject: &Subject, mutant: &Kernel) {
        let Some(wanted) = subject.wanted() else { return };
        let Some(program) = subject.loops.program(mutant) else { return };
        self.lowered += 1;
        let (verifier, simulator) =
            (barrier_program(&program).is_err(), subject.left(&program, &ORDERS).as_ref() != Some(wanted));
        self.verifier += usize::from(verifier);
        self.simulator += usize::from(simulator);
        self.neither += usize::from(!verifier && !simulator);
    }
}

/// The kinds that are made at each subject: all of them, in the quick depth each kind at a few subjects, and one at each other subject.
fn chosen(subjects: &[Subject]) -> Vec<(usize, Kind)> {
    let all = || (0..subjects.len()).flat_map(|subject| KINDS.into_iter().map(move |kind| (subject, kind)));
    let small: Vec<(usize, Kind)> = all().filter(|(subject, _)| !subjects[*subject].is_large).collect();
    if test_depth::is_full() {
        return all().collect();
    }
    let mut some = test_depth::sample_each(small, 10, |(_, kind)| *kind);
    for subject in 0..subjects.len() {
        if !some.iter().any(|(other, _)| *other == subject) {
            some.push((subject, KINDS[subject % KINDS.len()]));
        }
    }
    some
}

#[test]
fn mistakes_of_the_rewriter_are_refused_at_every_kernel() {
    let subjects = subjects();
    assert!(subjects.len() > test_depth::cases(60, 12) && KINDS.len() >= 15, "{}", subjects.len());
    let (mut table, mut holes, mut not_run) = (BTreeMap::<Kind, Row>::new(), Vec::new(), 0);
    for (number, kind) in chosen(subjects) {
        let subject = &subjects[number];
        for nth in 0..test_depth::cases(1, 2) {
            let seed = [number, kind as usize, nth].into_iter().fold(11, |all: u64, n| all * 1009 + n as u64);
            let Some(mutant) = subject.loops.mutant(kind, &mut Numbers(seed)) else { continue };
            let row = table.entry(kind).or_default();
            row.tried += 1;
            if !subject.loops.accepts(&mutant) {
                row.refused += 1;
                if test_depth::is_full() && !subject.is_large {
                    row.besides(subject, &mutant);
                }
                continue;
            }
            // What is accepted is lowered and computes the same; or the verifier, to which waits and capacity are left, refuses it.
            let runs = test_depth::is_full() || !subject.is_large;
            let program = runs.then(|| subject.loops.program(&mutant)).flatten();
            let program = program.filter(|program| barrier_program(program).is_ok());
            let (Some(program), Some(wanted)) = (program, subject.wanted()) else {
                not_run += 1;
                continue;
            };
            let order = ORDERS[(number + nth) % ORDERS.len()];
            let differs = match subject.left_by_code(&program, order) {
                _ if subject.left(&program, &[order]).as_ref() != Some(wanted) => Some("in the simulator".to_owned()),
                Ok(Some(left)) if left != *wanted => Some("in the emulator".to_owned()),
                Ok(_) => None,
                Err(why) => Some(why),
            };
            if differs.is_some() && subject.loops.is_unused(&mutant) {
                not_run += 1;
                continue;
            }
            row.same += usize::from(differs.is_none());
            holes.extend(differs.map(|how| format!("{}: {kind:?}, {how}\n{}", subject.name, print(&mutant))));
        }
    }
    println!("{} kernels, {not_run} accepted that do not run\n{table:#?}", subjects.len());
    assert!(holes.is_empty(), "{} accepted that differ:\n{}", holes.len(), holes.join("\n\n"));
    let unmet: Vec<Kind> =
        KINDS.into_iter().filter(|kind| table.get(kind).is_none_or(|row| row.refused == 0)).collect();
    assert!(unmet.len() <= test_depth::cases(0, 2), "no mistake of these kinds was refused: {unmet:?}");
    let mut text = "| mistake | tried | refused | accepted, same results | of the refused, lowered | verifier | simulator | neither |\n\
                    |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (kind, row) in &table {
        let Row { tried, refused, same, lowered, verifier, simulator, neither } = row;
        let name = kind.words();
        // Whether a random mistake changes any result is a matter of luck: the page need not have a case of each kind that does not. A sample
        // has those that are refused.
        let (tried, same) = if test_depth::is_full() { (tried, *same) } else { (refused, 0) };
        let _ = writeln!(
            text,
            "| {name} | {tried} | {refused} | {same} | {lowered} | {verifier} | {simulator} | {neither} |"
        );
    }
    told("scheduling", ("rewritten", "mistakes of the rewriter"), &text);
}

/// What became of schedules.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) tried: usize,
    pub(super) not_carried_out: BTreeMap<String, usize>,
    pub(super) accepted: usize,
    moved: usize,
    lowered: usize,
    verified: usize,
    pub(super) same: usize,
    pub(super) in_code: usize,
    /// What the verifier of barrier programs says.
    pub(super) refused: BTreeMap<String, usize>,
}

impl Counts {
    /// Runs what was made by a schedule that is accepted; what is wrong with it.
    pub(super) fn run(&mut self, subject: &Subject, made: &Kernel, number: usize) -> Option<String> {
        let program = subject.loops.program(made)?;
        self.lowered += 1;
        if let Err(errors) = barrier_program(&program) {
            let title = errors.first().map_or_else(String::new, |e| e.title.clone());
            *self.refused.entry(title).or_default() += 1;
            return None;
        }
        self.verified += 1;
        let wanted = subject.wanted()?;
        for order in orders_of(number).into_iter().take(subject.times(usize::MAX)) {
            if subject.left(&program, &[order]).as_ref() != Some(wanted) {
                return Some(format!("{order:?} in the simulator"));
            }
            self.same += 1;
            match subject.left_by_code(&program, order) {
                Ok(Some(left)) if left == *wanted => self.in_code += 1,
                Ok(None) => {}
                Ok(Some(_)) => return Some(format!("{order:?} in the emulator: other results")),
                Err(why) => return Some(format!("{order:?} in the emulator: {why}")),
            }
        }
        None
    }
}

#[test]
fn legal_schedules_of_every_kernel_are_accepted_and_compute_the_same() {
    let subjects = subjects();
    let (mut legal, mut illegal, mut wrong) = (Counts::default(), Counts::default(), Vec::new());
    for (number, subject) in subjects.iter().enumerate() {
        for (nth, of) in subject.loops.dependent().iter().enumerate() {
            for turn in 0..subject.times(test_depth::cases(3, 2)) {
                let seed = [number, nth, turn].into_iter().fold(13, |all: u64, n| all * 1009 + n as u64);
                for (violates, counts) in [(false, &mut legal), (true, &mut illegal)] {
                    let Some(moved) = subject.loops.moved(of, violates, &mut Numbers(seed)) else { continue };
                    counts.tried += 1;
                    let (made, accepted, moved) = match moved {
                        Moved::Made(made, accepted, moved) => (made, accepted, moved),
                        Moved::NotCarriedOut(why) => {
                            *counts.not_carried_out.entry(why).or_default() += 1;
                            continue;
                        }
                    };
                    counts.accepted += usize::from(accepted);
                    counts.moved += moved;
                    let runs = accepted && (test_depth::is_full() || !subject.is_large);
                    let told = runs.then(|| counts.run(subject, &made, number + turn)).flatten();
                    let told = told.or((!violates && !accepted).then(|| "the checker refuses it".to_owned()));
                    wrong.extend(told.map(|why| format!("{}: {why}\n{}", subject.name, print(&made))));
                }
            }
        }
    }
    println!("legal: {legal:#?}\nillegal: {illegal:#?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(legal.same > test_depth::cases(200, 8) && legal.in_code > test_depth::cases(100, 6), "{legal:?}");
    let row = |name: &str, counts: &Counts| {
        let not_carried_out: usize = counts.not_carried_out.values().sum();
        let Counts { tried, accepted, moved, lowered, verified, same, in_code, .. } = counts;
        format!(
            "| {name} | {tried} | {not_carried_out} | {accepted} | {moved} | {lowered} | {verified} | {same} | {in_code} |\n"
        )
    };
    let text = "| schedules | tried | not carried out | accepted | operations moved | lowered | verified | same in the simulator | same in the emulator |\n\
                |---|---|---|---|---|---|---|---|---|\n"
        .to_owned()
        + &row("legal", &legal)
        + &row("with a dependence violated", &illegal);
    told("scheduling", ("rewritten", "legal schedules"), &text);
}
