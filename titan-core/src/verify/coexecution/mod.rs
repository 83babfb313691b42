//! Rules 41 to 45: the symbolic co-execution of all roles, for any number of iterations.
//!
//! * 41. A ring is filled exactly as often as each of its readers reads it, and is empty at the end. T0609
//! * 42. No role waits for an event that depends on its own progress: for a stage (T0610), or for a slot that it holds (T0611).
//! * 43. Loops and branches of the roles correspond, with equal iteration counts. T0612
//! * 44. A stated time is that of the ring's clock. T0614
//! * 45. A staging slot is filled again only after its store has been waited for. T0618
//!
//! `docs/protocol.md` proves deadlock freedom from these rules.
//!
//! # One order of steps is enough
//!
//! Roles wait for each other only through rings, and a ring is a bounded queue, so that the order in which roles step does not change how
//! far they get: if all roles terminate under one order of steps, they do under every order. So one order is enough.
//!
//! # The procedure
//!
//! [`run`] steps each role as far as possible. A role is then in one of these states:
//!
//! | a role | because | what ends that |
//! |---|---|---|
//! | has reached its goal | it has ended, or has completed its iteration of a loop | |
//! | waits | a stage is not filled, or a slot is not free | another role |
//! | is at a branch | its condition is undecided on this path | both outcomes are tried, the same for all roles (`try_both`) |
//! | is at a loop | its iteration count is not a small number | [`induct`] |
//!
//! and if no role can take a step, [`induct`] applies the first of these rules that matches:
//!
//! | situation | action |
//! |---|---|
//! | a role waits for one that is at a loop | the latter executes one iteration, if there is one |
//! | a loop does not use rings | it is treated alone, as below |
//! | loops share rings | as many rounds of all of them as the shortest has; a *round* is one iteration of each, or several of a role that fills or reads fewer stages per iteration |
//!
//! For rounds, one arbitrary round is executed: only `0 ≤ i < rounds` is assumed about its number `i`. The outcomes:
//!
//! | the round | action |
//! |---|---|
//! | returns to the same state, all times of a ring shifted by one amount | so does every round: all of them are covered |
//! | leaves the loops on some path | that path is followed too, for an arbitrary `i` |
//! | changes the state | one iteration is peeled off the front, with the case that there is none; then the rest is tried again |
//! | has a branch that switches at some `i` | the rounds before and from there on are treated separately (`Stop::SplitAt`) |
//! | gets stuck | the role that is waited for executes one iteration first; otherwise this is the fault |
//!
//! Iterations are peeled at most a few times more often than there are slots.
//!
//! # An example
//!
//! A ring of two slots; one role fills it `n` times, the other reads it `n` times and releases each stage one iteration late:
//!
//! ```text
//! fill:  for t in 0..n { acquire; fill }
//! read:  for t in 0..n { if t ≥ 1 { release what is held }; wait; hold }   release what is held
//! ```
//!
//! | | filled | held by `read` | left of `fill`, `read` | |
//! |---|---|---|---|---|
//! | start | 0 | none | n, n | both are at loops, which share the ring: `n` rounds |
//! | round `i` of `0 ≤ i < n` | 1 | time 0 | | `t ≥ 1` switches at `i = 1`: the rounds are split there. If `n < 1` both loops are done |
//! | round `0`, alone | 1 | time 0 | | the state has changed: it is peeled |
//! | after it | 1 | time 0 | n − 1, n − 1 | two loops at a new state: `n − 1` rounds |
//! | round `i` of these | 2 | time 1 | | as before, with all times one later: all rounds are covered |
//! | after the loops | | the last | 0, 0 | it is released; the ring is empty |

pub(in crate::verify) mod barriers;
mod bounds;
mod clock;
pub(in crate::verify) mod cyclic;
pub(in crate::verify) mod events;
mod example;
mod fault;
mod induct;
mod key;
mod launched;
pub(in crate::verify) mod linear;
mod ranges;
mod report;
pub(in crate::verify) mod rings;
pub(in crate::verify) mod run;
pub(in crate::verify) mod state;
mod step;
pub(in crate::verify) mod values;
mod waits;
pub(in crate::verify) mod walk;

use self::barriers::messages::unproven;
use self::example::Example;
use self::fault::Fault;
use self::linear::Facts;
use self::report::Report;
use self::rings::find::Claims;
use self::run::{Choices, Run};
use crate::collections::SortedSet;
use crate::diag::Code;
use crate::ir::{HostExpr, Kernel, OpId, Pipe};
use crate::verify::{Error, reject_if_any};

/// The maximum number of examples that are run.
const EXAMPLES: usize = 40;

/// The facts proved about a kernel that satisfies rules 41 to 45.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Shown {
    /// The conditions on the launch under which the rules hold.
    pub(in crate::verify) conditions: Vec<HostExpr>,
    /// The rings that may be non-empty at the start of an iteration of a loop, if all roles are there together.
    pub(in crate::verify) occupied: SortedSet<(OpId, Pipe)>,
}

/// Checks rules 41 to 45.
///
/// # Errors
/// The first violation of these rules that is found.
pub(in crate::verify) fn check(kernel: &Kernel) -> Result<Shown, Vec<Error>> {
    if kernel.pipes.is_empty() && !barriers::objects::any(kernel) {
        return Ok(Shown::default());
    }
    let (mut run, done) = proved(&|| Run::new(kernel));
    match done {
        Ok(()) => Ok(Shown { conditions: run.symbols.conditions(), occupied: run.occupied }),
        Err(fault) => {
            // A loop without an end would be executed for ever in an example too.
            let shown = if matches!(fault, Fault::Endless { .. }) { None } else { shown(kernel) };
            let (fault, example) = match (shown, fault) {
                // For barriers the error found for all arguments is reported, unless it is a deadlock.
                (found, Fault::Barrier(error)) => {
                    match found {
                        Some((Fault::Barrier(shown), _)) if shown.code == error.code => {
                            let fault = if shown.site == error.site {
                                Fault::Barrier(error)
                            } else if error.code == Code::NeverWritten {
                                // Of several reads of what was not written, the example shows another one.
                                Fault::Barrier(shown)
                            } else {
                                unproven(*error)
                            };
                            (fault, None)
                        }
                        Some(_) | None => (unproven(*error), None),
                    }
                }
                (Some((fault, example)), _) => (fault, Some(example)),
                (None, fault) => (fault, None),
            };
            let error = Report::new(&run, example).fault(fault);
            Err(vec![run.explain(error)])
        }
    }
}

/// Runs all roles, in other ways if the first one fails: a minimum is an unknown like any other if both sides use the same one, so that its
/// cases are tried only then; and loops of which one uses a ring more often than the other may do so in some iterations only.
fn proved<'k>(new: &dyn Fn() -> Run<'k>) -> (Run<'k>, Result<(), Fault>) {
    let mut run = new();
    let mut done = run.all();
    // Each of the ways is a proof by itself if it succeeds, so that trying more of them only accepts more. One is tried
    // only if the run before has met what it treats otherwise.
    let ways = [
        (Choices::Extremes, false),
        (Choices::All, false),
        (Choices::None, true),
        (Choices::Extremes, true),
        (Choices::All, true),
    ];
    for (choices, single) in ways {
        let cases = choices == Choices::None || run.undecided >= choices && run.objects.is_empty();
        if done.is_ok() || !cases || single && !run.uneven {
            continue;
        }
        let mut other = new();
        (other.choices, other.single) = (choices, single);
        let result = other.all();
        (other.undecided, other.uneven) = (other.undecided.max(run.undecided), other.uneven || run.uneven);
        if result.is_ok() || !single {
            (run, done) = (other, result);
        }
    }
    if is_unwritten(&done) {
        let mut other = new();
        (other.choices, other.single, other.cases) = (run.choices, run.single, true);
        let result = other.all();
        if result.is_ok() || is_unwritten(&result) {
            (run, done) = (other, result);
        }
    }
    (run, done)
}

/// Whether nothing is wrong but a read of memory that may not have been written.
fn is_unwritten(done: &Result<(), Fault>) -> bool {
    matches!(done, Err(Fault::Barrier(error)) if error.code == Code::NeverWritten)
}

/// Checks rules 41 to 43 for the claims of a barrier program, and that the stages that it reads are filled.
///
/// # Errors
/// The first violation.
pub(in crate::verify) fn check_claims(kernel: &Kernel, claims: Claims) -> Result<(), Vec<Error>> {
    let (run, done) = proved(&|| Run::of_claims(kernel, claims.clone()));
    done.map_err(|fault| vec![Report::new(&run, None).fault(fault)])?;
    reject_if_any(run.unfilled())
}

/// A fault that occurs for concrete arguments, with these arguments.
fn shown(kernel: &Kernel) -> Option<(Fault, Example)> {
    let fails = |example: Example| {
        let mut run = Run::new(kernel);
        run.symbols.example = Some(example);
        let result = run.all();
        // A fault with numbers for all arguments is one that happens, unless the run was not carried to its end, or no
        // program is launched for these numbers.
        let fault = result.err().filter(|f| !matches!(f, Fault::Lost) && !run.symbols.is_idle(&mut Facts::default()));
        (fault, run.symbols.example.take())
    };
    let mut arguments = 0;
    for example in Example::equal() {
        let (fault, example) = fails(example);
        arguments = arguments.max(example.as_ref().map_or(0, Example::arguments));
        if let Some(found) = fault.zip(example) {
            return Some(found);
        }
    }
    Example::mixed(arguments).take(EXAMPLES).chain(Example::one_large(arguments)).find_map(|example| {
        let (fault, example) = fails(example);
        fault.zip(example)
    })
}
