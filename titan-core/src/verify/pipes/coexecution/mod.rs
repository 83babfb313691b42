//! Rules 41 to 45: all roles run together to their ends, whatever the loops count to.
//!
//! * 41. A ring is filled exactly as often as each of its readers reads it, and is empty at the end. T0609
//! * 42. No role waits for an event that depends on its own progress: for a stage (T0610), or for a slot that it holds (T0611).
//! * 43. Loops and branches of the roles correspond: what one counts the others count. T0612
//! * 44. A written time is the one that the clock of the ring shows. T0614
//! * 45. A staging slot is filled again only after its store has been waited for. T0618
//!
//! This is what `docs/protocol.md` proves deadlock freedom from.
//!
//! # One order of steps is enough
//!
//! Roles only wait for each other in rings, and a ring is a bounded queue, so which role goes first makes no difference to how
//! far they get: if one order of steps brings all of them to their ends, every order does. So one order is sought.
//!
//! # What is done when
//!
//! [`run`] steps each role as far as it goes. A role is then in one of these states:
//!
//! | a role | because | what ends that |
//! |---|---|---|
//! | has reached its goal | it has ended, or has done its iteration of a loop | |
//! | waits | a stage is not filled, or a slot is not free | another role |
//! | is at a branch | nothing decides its condition | both ways are tried, for all roles alike (`try_both`) |
//! | is at a loop | how often it runs is not a small number | [`induct`] |
//!
//! and if no role can take a step, [`induct`] takes the first of these that applies:
//!
//! | situation | what is done |
//! |---|---|
//! | a role waits for one that is at a loop | that one does one iteration, if there is one |
//! | a loop does nothing to rings | it runs by itself, as below |
//! | loops share rings | so many rounds of all of them as the shortest has; a *round* is one iteration of each, or more of a role that fills or reads less in each of its own |
//!
//! For rounds, one arbitrary round is run: of its number `i` only `0 ≤ i < rounds` is assumed. What comes of it:
//!
//! | the round | what is done |
//! |---|---|
//! | leads back to the same state, all times of a ring shifted by one amount | so does every round: all of them are done |
//! | leaves the loops on some path | that path is followed too, for an arbitrary `i` |
//! | changes the state | one iteration is taken off the front, with the case that there is none; then the rest is looked at again |
//! | has a branch that changes sides at some `i` | the rounds before and from there on are taken by themselves (`Stop::SplitAt`) |
//! | gets stuck | whoever is waited for does one iteration first; else that is the fault |
//!
//! Iterations are taken off the front a few times more than there are slots, no more.
//!
//! # An example
//!
//! A ring of two slots; one role fills it `n` times, the other reads it `n` times and gives each stage back one iteration late:
//!
//! ```text
//! fill:  for t in 0..n { acquire; fill }
//! read:  for t in 0..n { if t ≥ 1 { release what is held }; wait; hold }   release what is held
//! ```
//!
//! | | filled | held by `read` | left of `fill`, `read` | |
//! |---|---|---|---|---|
//! | start | 0 | none | n, n | both are at loops, which share the ring: `n` rounds |
//! | round `i` of `0 ≤ i < n` | 1 | time 0 | | `t ≥ 1` changes sides at `i = 1`: the rounds are split there. If `n < 1` both loops are over |
//! | round `0`, by itself | 1 | time 0 | | the state has changed: it is taken off the front |
//! | after it | 1 | time 0 | n − 1, n − 1 | two loops at a new state: `n − 1` rounds |
//! | round `i` of these | 2 | time 1 | | as before, with all times one later: all rounds are done |
//! | after the loops | | the last | 0, 0 | it is given back; the ring is empty |

mod bounds;
pub(in crate::verify) mod claims;
mod clock;
pub(in crate::verify) mod cyclic;
pub(in crate::verify) mod events;
mod example;
mod fault;
mod induct;
pub(in crate::verify) mod linear;
mod ranges;
mod report;
pub(in crate::verify) mod run;
pub(in crate::verify) mod state;
mod step;
pub(in crate::verify) mod values;
mod waits;

use self::example::Example;
use self::fault::Fault;
use self::linear::Facts;
use self::report::Report;
use self::run::Run;
use crate::ir::{HostExpr, Kernel, OpId, Pipe};
use crate::verify::Error;
use crate::verify::barriers::messages::unproven;
use crate::verify::program::Claims;
use std::collections::BTreeSet;

/// So many examples are run at most.
const EXAMPLES: usize = 40;

/// What is shown of a kernel that obeys rules 41 to 45.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Shown {
    /// What a launch must meet for it.
    pub(in crate::verify) conditions: Vec<HostExpr>,
    /// The rings that may hold something where an iteration of a loop begins, as far as all roles are there together.
    pub(in crate::verify) occupied: BTreeSet<(OpId, Pipe)>,
}

/// Checks rules 41 to 45.
///
/// # Errors
/// The first break of these rules that is found.
pub(super) fn check(kernel: &Kernel) -> Result<Shown, Vec<Error>> {
    if kernel.pipes.is_empty() && !crate::verify::barriers::objects::any(kernel) {
        return Ok(Shown::default());
    }
    let mut run = Run::new(kernel);
    let mut done = run.all();
    if done.is_err() && run.undecided && run.objects.is_empty() {
        // A minimum is a number like any other as long as both sides take the same one: only then are its cases looked at.
        run = Run::new(kernel);
        run.choices = true;
        done = run.all();
    }
    match done {
        Ok(()) => Ok(Shown { conditions: run.symbols.conditions(), occupied: run.occupied }),
        Err(fault) => {
            let shown = if matches!(fault, Fault::Endless { .. }) { None } else { shown(kernel) };
            let (fault, example) = match (shown, fault) {
                // What is said of barriers is what was found for all arguments, unless no role can go on.
                (found, Fault::Barrier(error)) => {
                    let same = found.filter(
                        |(shown, _)| matches!(shown, Fault::Barrier(e) if e.code == error.code && e.site == error.site),
                    );
                    (if same.is_some() { Fault::Barrier(error) } else { unproven(*error) }, None)
                }
                (Some((fault, example)), _) => (fault, Some(example)),
                (None, fault) => (fault, None),
            };
            let error = Report::new(&run, example).fault(fault);
            Err(vec![run.explain(error)])
        }
    }
}

/// Rules 41 to 43 of what a barrier program claims of rings.
///
/// # Errors
/// The first break.
pub(in crate::verify) fn check_claims(kernel: &Kernel, claims: Claims) -> Result<(), Vec<Error>> {
    let mut run = Run::of_claims(kernel, claims.clone());
    let mut done = run.all();
    if done.is_err() && run.undecided {
        run = Run::of_claims(kernel, claims);
        run.choices = true;
        done = run.all();
    }
    done.map_err(|fault| vec![Report::new(&run, None).fault(fault)])
}

/// A fault that happens for some arguments, and these.
fn shown(kernel: &Kernel) -> Option<(Fault, Example)> {
    let fails = |example: Example| {
        let mut run = Run::new(kernel);
        run.symbols.example = Some(example);
        let result = run.all();
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
    Example::mixed(arguments).take(EXAMPLES).find_map(|example| {
        let (fault, example) = fails(example);
        fault.zip(example)
    })
}
