//! Random loops by both schedulers, in all ways, and by schedules of up to six stages that no scheduler chose: executor, simulator and emulators
//! agree.

use super::chosen::in_turn;
use super::gpu::{hopper, machine};
use super::grid;
use super::random_loops::{self, Random};
use super::rewriting::{Moved, Numbers};
use super::rewritten::{self, Subject, scheduled_by};
use super::rng::Rng;
use super::ways::{self, compare, is_aligned};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use titan_core::driver::stages;
use titan_core::ir::Scheduler;
use titan_core::text::{parse_one, print};
use titan_core::verify::verify;

/// How the messages begin of what TITAN does wrong.
const DEFECTS: [&str; 2] = ["a defect of TITAN", "the generated barrier program"];

/// The most stages of a schedule.
const STAGES: usize = 6;

#[derive(Debug, Default)]
struct Tally {
    compared: ways::Counts,
    /// What targets lack for the kernels that they refuse.
    refused: BTreeMap<String, usize>,
    /// Kernels whose loops have a schedule, and what became of others.
    scheduled: usize,
    moved: rewritten::Counts,
    wrong: Vec<(usize, String)>,
}

impl Tally {
    fn kernel(&mut self, seed: u64, scheduler: Scheduler) {
        let Random { text, args } = random_loops::kernel(&mut Rng::new(seed));
        let kernel = parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let kernel = verify(kernel).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let kernel = scheduled_by(&kernel, scheduler).expect("a kernel that is accepted");
        let mut found = Vec::new();
        let moved_for = in_turn(&[machine().name, hopper().name], seed as usize);
        for machine in [machine(), hopper()] {
            match stages(&kernel, machine, is_aligned(&args), None) {
                Ok(made) if moved_for.contains(&machine.name) => {
                    let source = (format!("seed {seed}"), kernel.clone(), args.clone(), false);
                    let subject = Subject::of(source, machine, &made);
                    found.extend(subject.and_then(|subject| self.schedules(&subject, seed)));
                }
                Ok(_) => {}
                Err(error) if DEFECTS.iter().any(|defect| error.message.contains(defect)) => found.push(error.message),
                Err(error) => *self.refused.entry(error.message).or_default() += 1,
            }
        }
        let grid = grid(&kernel, &args).expect("arguments that fit");
        found.extend(compare(&kernel, (&args, grid), true, &mut self.compared));
        let told = |what: String| (text.len(), format!("seed {seed}, {scheduler:?}: {what}\n{text}"));
        self.wrong.extend(found.into_iter().map(told));
    }

    /// Runs the loops of a kernel by random schedules.
    fn schedules(&mut self, subject: &Subject, seed: u64) -> Option<String> {
        self.scheduled += 1;
        let mut wrong = None;
        for (nth, of) in subject.loops.dependent().iter().enumerate() {
            let numbers = &mut Numbers(seed * 31 + nth as u64);
            let Some(moved) = subject.loops.moved_by(of, false, STAGES, numbers) else { continue };
            self.moved.tried += 1;
            let (made, accepted) = match moved {
                Moved::Made(made, accepted, _) => (made, accepted),
                Moved::NotCarriedOut(why) => {
                    *self.moved.not_carried_out.entry(why).or_default() += 1;
                    continue;
                }
            };
            self.moved.accepted += usize::from(accepted);
            let told =
                if accepted { self.moved.run(subject, &made, seed as usize + nth) } else { Some("refused".to_owned()) };
            wrong = wrong.or(told.map(|why| format!("by another schedule: {why}\n{}", print(&made))));
        }
        wrong
    }
}

/// Seeds of kernels that were compiled wrongly once: a schedule made part of an operand in another stage than its product; what was put before an inner
/// loop, and has an effect, had a place in the stages of the outer one.
const MENDED: [u64; 2] = [100_311, 100_622];

/// So many random loops by one scheduler, from a seed on, and some more.
fn random_loops_agree(scheduler: Scheduler, first: u64, more: &[u64]) {
    let n = test_depth::cases(1000, 12);
    let mut tally = Tally::default();
    for seed in (first..first + n as u64).chain(more.iter().copied()) {
        // A panic of the compiler is told with its kernel.
        if catch_unwind(AssertUnwindSafe(|| tally.kernel(seed, scheduler))).is_err() {
            let text = random_loops::kernel(&mut Rng::new(seed)).text;
            tally.wrong.push((text.len(), format!("seed {seed}, {scheduler:?}: a panic\n{text}")));
        }
    }
    let Tally { compared, refused, scheduled, moved, wrong } = &tally;
    println!("{n} loops: {compared:?}\nrefused: {refused:#?}\n{scheduled} with schedules: {moved:#?}");
    let shortest = wrong.iter().min().map_or("", |(_, what)| what);
    assert!(wrong.is_empty(), "{} wrong, of which the shortest\n{shortest}", wrong.len());
    assert!(compared.kernels * 10 >= n * 9 && *scheduled * 3 > n && moved.same * 4 > n, "{tally:?}");
}

#[test]
fn random_loops_by_the_rule_and_by_other_schedules_compute_the_same() {
    random_loops_agree(Scheduler::Rule, 0, &[]);
}

#[test]
fn random_loops_by_swing_and_by_other_schedules_compute_the_same() {
    random_loops_agree(Scheduler::Swing, 100_000, &MENDED);
}
