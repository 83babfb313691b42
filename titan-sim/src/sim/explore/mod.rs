//! The model checker: every order of the agents' steps, and every moment at which asynchronous operations can complete.
//!
//! A depth-first search over the states of the machine. From each state every agent that can run takes a step, and every
//! operation in flight that signals a barrier completes. States are identified by a hash of 128 bits; tiles are not computed,
//! and control that depends on them is a finding. The answer is one of: safe, with the number of states; a finding, with
//! the schedule that leads there; the bound that was reached.
//!
//! # Findings
//!
//! Everything that a run finds without an observer (faults of barriers, stale and undefined stages, operations in flight at the end,
//! rings that do not end empty), deadlock, states from which no end can be reached, and races as *overlap*: the next accesses of two
//! agents conflict, or an access conflicts with an operation in flight. No vector clocks are needed: if nothing orders two accesses,
//! in some order of the run they are the next operations of both agents at once, and all orders are tried. Missing fences between
//! proxies, which no order reveals, are found by the sanitizer, which observes every order if [`Limits::sanitize`] is set.
//!
//! # Partial-order reduction (`local`)
//!
//! * **Local steps.** An operation that touches nothing which another agent or a completion can touch commutes with all of
//!   their steps, now and later, and cannot be disabled by them. So a step of an agent ends before the next operation
//!   that is not local: the singleton of a local step is a persistent set (Godefroid, "Partial-Order Methods for the
//!   Verification of Concurrent Systems", 1996, chapter 4), and a chain of local steps that does not end is a bound reached,
//!   so that nothing is postponed forever. A local step takes no part in a race, and does not change the next operations of other
//!   agents, so all pairs of accesses are still reached. Its effect on the sanitizer concerns the agent alone: its own accesses of
//!   its own memory, and its fences.
//! * **Completions that signal nothing.** They are visible only through overlap, and the wait that requires them
//!   completes them. Completing earlier only shortens the overlap and enables nothing. So they complete as late as possible.
//! * **Waits that do not pass** change nothing and are not steps.
//!
//! # Kernels that are laid out
//!
//! Their warps are agents, and touch memory far more often than they signal each other. The sanitizer always observes them: it
//! checks what *orders* two accesses, so a race shows in every order of the signals in which both occur, whichever access came
//! first. Then accesses, and waits for an agent's own copies, are local steps, and what remains to interleave are mbarriers,
//! counters and the moments at which copies signal. A named barrier that counts exactly the threads whose code contains it is local
//! too: all of them arrive in every phase, and none continues earlier, so that the order of arrivals is invisible.
//!
//! # Determinate synchronisation (`determinate`, `certificate`)
//!
//! If every phase of every barrier has the same parts in all orders, a few orders stand for all; see docs/simulator.md.
//!
//! `titan-sim/tests/sim` compares verdicts with and without local steps, `titan-cpu/tests/simulator/agreement.rs` a few orders with all.

mod certificate;
mod determinate;
mod local;
mod search;

pub use certificate::Certificate;

use super::finding::{Found, Schedule};
use super::grid::Grid;
use super::plan::Plan;
use super::tensor::Setup;
use super::{Arg, Finding, Kernel};
use search::{Search, Wrong};
use std::cell::RefCell;
use std::rc::Rc;
use titan_core::launch::BindError;

/// The limits of an exploration, and the method of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of states, of all clusters together.
    pub max_states: u64,
    /// The largest number of steps from the start.
    pub max_depth: usize,
    /// The number of programs of a cluster.
    pub cluster: u32,
    /// Whether the sanitizer observes every order. It finds missing fences between proxies, which no order reveals; its
    /// knowledge is part of a state, so there are more states.
    pub sanitize: bool,
    /// Whether local steps are taken without exploring the alternatives; `false` is for comparison.
    pub reduce: bool,
    /// Whether a few orders may stand for all where synchronization is determinate.
    pub few: Few,
}

/// The use of determinate synchronization, by which a few orders stand for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Few {
    /// A few orders are tried first; if they do not stand for all, all orders are searched.
    #[default]
    First,
    /// All orders are searched, for comparison.
    Never,
    /// Only a few orders are tried; if they do not stand for all, the answer is [`Verdict::Bound`].
    Alone,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_states: 1_000_000, max_depth: 100_000, cluster: 1, sanitize: true, reduce: true, few: Few::First }
    }
}

/// Counts of an exploration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// The number of different states.
    pub states: u64,
    /// The number of steps between them.
    pub transitions: u64,
    /// The length of the longest path from the start.
    pub depth: usize,
    /// The number of states in which all agents have ended.
    pub ends: u64,
    /// The largest number of slots of a ring that were acquired and not released by the slowest reader, in any state.
    pub occupied: u64,
    /// The largest number of times that slots of one ring were acquired.
    pub times: u64,
    /// The number of clusters with determinate synchronization, for which a few orders stood for all.
    pub determinate: u64,
}

/// The result of an exploration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No order has an error.
    Safe(Explored),
    /// Some order has an error.
    Finding(Box<Finding>, Explored),
    /// Nothing was found before this bound was reached.
    Bound(String, Explored),
}

impl Verdict {
    /// The counts of the exploration.
    #[must_use]
    pub const fn explored(&self) -> &Explored {
        match self {
            Verdict::Safe(e) | Verdict::Finding(_, e) | Verdict::Bound(_, e) => e,
        }
    }

    /// The finding, if any.
    #[must_use]
    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Verdict::Finding(f, _) => Some(f),
            Verdict::Safe(_) | Verdict::Bound(..) => None,
        }
    }
}

/// Explores every cluster of a grid, each by itself; accesses that are possible in different clusters are assumed to be concurrent.
///
/// # Errors
/// Arguments that do not fit the signature.
pub fn explore(kernel: &Kernel, args: &[Arg], grid: Option<[u32; 3]>, limits: &Limits) -> Result<Verdict, BindError> {
    // Accesses of kernels that are laid out are ordered by the sanitizer's knowledge, not by overlap.
    let sanitize = limits.sanitize || kernel.laid_out.is_some();
    let cluster = limits.cluster.max(super::run::own_cluster(kernel));
    let limits = &Limits { sanitize, cluster, ..*limits };
    let setup = Rc::new(super::run::setup(kernel, args, grid)?);
    let mut explored = Explored::default();
    let bad = |e: Box<Found>, explored| Ok(Verdict::Finding(Box::new(e.with(Schedule::default())), explored));
    let plan = match Plan::of(kernel) {
        Ok(plan) => plan,
        Err(e) => return bad(e, explored),
    };
    let clusters = match super::run::clusters(setup.grid, limits.cluster) {
        Ok(clusters) => clusters,
        Err(e) => return bad(e, explored),
    };
    let grid = Grid::new(&setup, &clusters).filter(|_| limits.sanitize).map(|g| Rc::new(RefCell::new(g)));
    for (number, programs) in clusters.iter().enumerate() {
        grid.iter().for_each(|g| g.borrow_mut().cluster = super::machine::index(number));
        let mut search = Search::new(&plan, limits, explored, grid.clone());
        let end = match decided(&mut search, &setup, programs) {
            Ok(true) => Ok(None),
            Ok(false) if limits.few == Few::Alone => Ok(Some("synchronisation may not be determinate".to_owned())),
            Ok(false) => search.run(&setup, programs),
            Err(wrong) => Err(wrong),
        };
        explored = search.explored;
        match end {
            Ok(None) => {}
            Ok(Some(bound)) => return Ok(Verdict::Bound(bound, explored)),
            Err((found, choices)) => {
                let schedule = Schedule { cluster: super::machine::index(number), choices };
                return Ok(Verdict::Finding(Box::new(found.with(schedule)), explored));
            }
        }
    }
    Ok(Verdict::Safe(explored))
}

/// Whether a few orders show that all orders are safe.
fn decided(search: &mut Search<'_, '_>, setup: &Rc<Setup>, programs: &[[u32; 3]]) -> Result<bool, Wrong> {
    let Limits { reduce, sanitize, few, .. } = *search.limits;
    let may = reduce && sanitize && few != Few::Never && determinate::speaks_of(search.plan.kernel);
    if may { search.determinate(setup, programs) } else { Ok(false) }
}
