//! Rule 66: of two accesses of the threads of one role to the same bytes, of which one writes, a barrier of all these threads comes between, or
//! a wait and a barrier if the first one is asynchronous.
//!
//! A forward analysis of the control flow (`graph`). Its state, before each node, is what *some* path to it may have left:
//!
//! * `since`: the accesses of the threads since their last barrier;
//! * `flight`: the asynchronous accesses that have not been waited for, each with the numbers of groups committed since that of an instance of
//!   it, or that its group is open;
//! * in a role, `before` and `lost`: the accesses since the last barrier, and in flight, when the roles began.
//!
//! An access conflicts if the state has a conflicting one. Then it is added to `since`, and to `flight` if it is asynchronous. A barrier of all
//! threads empties `since`. A wait moves what it completes from `flight` to `since`: those accesses may have happened at any time until now.
//!
//! ```text
//!                                        since                      flight
//! ttg.local.copy_async .. %a             a written                  a written: open
//! ttg.nv.cp_async.commit_group           a written                  a written: 0
//! ttg.nv.barrier.sync                    nothing                    a written: 0     the barrier does not order the copy
//! ttg.nv.cp_async.wait_group {n = 0}     a written                  nothing          each thread has waited for its own copies
//! ttg.local.load %a                      conflict: other threads' copies are not ordered before this
//! ```
//!
//! # Why it finds every conflict
//!
//! Let `x` and `y` be conflicting accesses of different threads, with no barrier of all threads after `x` is complete and before `y`. Consider
//! the path of the control flow that the threads take (conditions are the same for all threads of a role). If `x` is synchronous, it is in
//! `since` after its node, and every node on the path to `y` keeps it, since there is no barrier in between. If `x` is asynchronous, either it is
//! still in `flight` at `y`, because no wait on the path completes it; or a wait has moved it to `since`, and there is no barrier after that. At
//! joins, states are united, so that what holds on a path is in the state. An access may be in flight several times, from several iterations: it
//! has a number of groups for each, and a wait completes some of them.
//!
//! Accesses to outputs are named by values, and a value may be another number in the next iteration. So at the edges of loops, what is known of
//! them is weakened ([`When`]): to what is true of their tile wherever it is compared.
//!
//! # Why it ends
//!
//! A state is a finite set of facts, and for each access in flight a set of numbers up to the largest that a wait states. The effect of a node is
//! monotone: from more follows more. The states at joins only grow, so that they change finitely often.
//!
//! Deliberately absent: what orders the accesses of different roles, which claims say; the slots of rings (`accesses`).

use super::accesses::{Accesses, Done, Place, When, fact, parts};
use super::bits::Bits;
use super::graph::{Graph, Kind};
use super::tiles::divided;
use crate::collections::{SortedMap, SortedSet};
use crate::diag::Code;
use crate::ir::{Class, Kernel, NvOp, OpId, OpKind, TtgOp};
use crate::verify::Error;
use crate::verify::coexecution::rings::touches::UNORDERED;

const IN_FLIGHT: &str = "a copy that accesses the same bytes may still be in flight here, or is never waited for";

/// The number of groups that is not exceeded in a state, whatever waits say.
const MOST: u32 = 64;

/// The numbers of groups that were committed since the group of an access in flight, of all its instances: bit 0 stands for its own group, which
/// is open, and bit `n + 1` for `n` groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ages(u128);

impl Ages {
    const OPEN: Ages = Ages(1);

    /// A group is committed. What is older than `most` groups counts as that old: every wait completes it.
    const fn commit(self, most: u32) -> Ages {
        // Bits 0 to `most` are the open group and 0 to most - 1 newer groups. All beyond become bit `most`, and the
        // shift makes that `most` newer groups. With most = 1: an access committed twice ago has bit 2, and stays there
        // however many groups follow. A wait for all but one completes it.
        let kept = (2u128 << most) - 1;
        let older = if self.0 & !kept == 0 { 0 } else { 1 << most };
        Ages(((self.0 & kept) | older) << 1)
    }

    /// All groups but for the `n` newest ones are complete: what is left, and whether that is less.
    const fn wait(self, n: u32) -> (Ages, bool) {
        // The open group, and groups with fewer than n newer ones, are left. With n = 0 this is the open group alone.
        let left = self.0 & ((2u128 << n) - 1);
        (Ages(left), left != self.0)
    }
}

/// The accesses in flight, each with the class of its groups.
type Flight = SortedMap<(usize, Done), Ages>;

#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    since: Bits,
    flight: Flight,
    before: Bits,
    lost: Bits,
}

impl State {
    fn new(facts: usize) -> State {
        let none = || Bits::new(facts);
        State { since: none(), flight: Flight::new(), before: none(), lost: none() }
    }

    /// Adds what another path may have left; returns whether that is more.
    fn join(&mut self, other: &State) -> bool {
        let mut more = self.since.extend(&other.since);
        more |= self.before.extend(&other.before);
        more |= self.lost.extend(&other.lost);
        for (access, ages) in &other.flight {
            let own = self.flight.entry(*access).or_default();
            more |= ages.0 & !own.0 != 0;
            // The union of ages: on one path the access may be in the newest group, on the other in an older one. A
            // wait that completes only the second leaves the first in flight.
            own.0 |= ages.0;
        }
        more
    }

    /// What the same facts are called elsewhere.
    fn renamed(&self, facts: usize, rename: &impl Fn(usize) -> usize) -> State {
        let all = |bits: &Bits| {
            let mut new = Bits::new(facts);
            bits.iter().for_each(|fact| new.insert(rename(fact)));
            new
        };
        let mut flight = Flight::new();
        for ((old, done), ages) in &self.flight {
            flight.entry((rename(*old), *done)).or_default().0 |= ages.0;
        }
        State { since: all(&self.since), flight, before: self.before.clone(), lost: self.lost.clone() }
    }
}

struct Run<'a> {
    kernel: &'a Kernel,
    graph: &'a Graph,
    accesses: &'a Accesses,
    divided: SortedMap<OpId, SortedSet<usize>>,
    /// The greatest number of groups of each class that a wait leaves in flight.
    most: SortedMap<Class, u32>,
    facts: usize,
    /// What has been found: at each operation, that threads are not ordered, and that something is in flight.
    unordered: SortedSet<OpId>,
    in_flight: SortedSet<OpId>,
}

/// Violations of rule 66.
pub(super) fn check(kernel: &Kernel, graph: &Graph, accesses: &Accesses) -> Vec<Error> {
    let mut most: SortedMap<Class, u32> = SortedMap::new();
    kernel.walk(&mut |_, op| {
        if let OpKind::Nv(NvOp::WaitGroup { group, n, .. }) = op.kind {
            let own = most.entry(group.class()).or_default();
            // No wait tells ages beyond this apart, so that they may be one number: this makes the sets of ages finite.
            *own = (*own).max(n.min(MOST));
        }
    });
    let mut run = Run {
        kernel,
        graph,
        accesses,
        divided: divided(kernel),
        most,
        facts: 4 * accesses.all.len(),
        unordered: SortedSet::new(),
        in_flight: SortedSet::new(),
    };
    // First the fixed point, then the comparison: what a node finds in a state that still grows would have to be found
    // again.
    let states = graph.states(State::new(run.facts), |node, state| run.after(node, state), State::join);
    for (node, state) in states.iter().enumerate() {
        if let Some(state) = state {
            run.compare(node, state);
        }
    }
    let error = |id: &OpId, title: &str| Error::new(Code::InFlight, kernel.op(*id).loc, title);
    let unordered = run.unordered.iter().map(|id| error(id, UNORDERED));
    unordered.chain(run.in_flight.iter().map(|id| error(id, IN_FLIGHT))).collect()
}

impl Run<'_> {
    /// The state after a node.
    fn after(&self, node: usize, mut state: State) -> State {
        match self.graph.kinds[node] {
            Kind::Join => state,
            // The values that name tiles are those of one iteration. At these edges facts keep only what is true of
            // their tiles afterwards.
            Kind::Again(looped) | Kind::Left(looped) => {
                let left = matches!(self.graph.kinds[node], Kind::Left(_));
                state.renamed(self.facts, &|old| self.later(old, looped, left))
            }
            Kind::Role(..) => {
                let mut new = State::new(self.facts);
                // What the program's threads have done before is not ordered by barriers of the role's threads, so it
                // is kept apart, and no barrier in the role clears it.
                new.before = state.since;
                state.flight.keys().for_each(|(fact, _)| new.lost.insert(*fact));
                new.flight = state.flight;
                new
            }
            Kind::AllRoles(roles) => {
                // Barriers of one role do not order its accesses before what follows all of them.
                let mut new = State::new(self.facts);
                new.since = state.before;
                for access in self.of_roles(roles) {
                    // All accesses of all roles, wherever in them they are: which of them come last is not known.
                    new.since.insert(fact(access, When::Ever));
                    new.since.insert(fact(access, When::Now));
                }
                new.flight = state.flight;
                new
            }
            Kind::Op(id) => {
                self.op(id, self.graph.roles[node], &mut state);
                state
            }
        }
    }

    /// The accesses of all roles.
    fn of_roles(&self, roles: OpId) -> Vec<usize> {
        let mut all = Vec::new();
        for role in &self.kernel.op(roles).regions {
            self.kernel.walk_block(*role, &mut |id, _| all.extend(self.accesses.of(id).0));
        }
        all
    }

    /// What is known of an access in the next iteration of a loop, or when it is left.
    fn later(&self, old: usize, looped: OpId, left: bool) -> usize {
        let (access, when) = parts(old);
        let Some(output) = self.accesses.output(access) else { return old };
        let new = match (self.divided.get(&looped).map(|own| own.contains(&output)), left, when) {
            // In the next iteration of a loop over tiles, every earlier access is of another tile of an output that
            // this loop divides.
            (Some(true), false, When::Now | When::Tile | When::OtherTile) => When::OtherTile,
            // A loop over tiles is executed once, and what follows it is of no tile.
            (Some(_), _, _) => When::Ever,
            (None, _, When::Now | When::Tile) => When::Tile,
            (None, _, When::OtherTile) => When::OtherTile,
            (None, _, When::Ever) => When::Ever,
        };
        fact(access, new)
    }

    fn op(&self, id: OpId, role: Option<usize>, state: &mut State) {
        let op = self.kernel.op(id);
        let (own, done) = self.accesses.of(id);
        if let OpKind::Nv(NvOp::Commit { group, .. }) = op.kind {
            let most = self.most.get(&group.class()).copied().unwrap_or(0);
            for ((_, of), ages) in state.flight.iter_mut() {
                if *of == Done::Group(group.class()) {
                    *ages = ages.commit(most);
                }
            }
        }
        if let OpKind::Nv(NvOp::WaitGroup { group, n, read }) = op.kind {
            // A wait for the reads of bulk stores leaves what they write in flight.
            // A wait for more groups than are tracked is taken to complete nothing.
            let waits = |(old, of): &(usize, Done)| {
                *of == Done::Group(group.class()) && n <= MOST && !(read && self.accesses.all[parts(*old).0].writes)
            };
            for (access, ages) in state.flight.iter_mut().filter(|(access, _)| waits(access)) {
                let (left, complete) = ages.wait(n);
                *ages = left;
                // Some instance is complete, and has accessed its bytes at some time until now: like an access at the
                // wait, which the next barrier orders.
                if complete {
                    state.since.insert(access.0);
                }
            }
            state.flight.retain(|_, ages| ages.0 != 0);
        }
        // A barrier orders everything before it, but for what is still in flight: that may access its bytes behind the
        // barrier.
        if self.meets(id, role) {
            state.since.clear();
        }
        for access in own {
            // A copy is an access from its start on, and is in flight besides: the barrier clears the first and not the
            // second.
            state.since.insert(fact(*access, When::Now));
            if done != Done::Now && self.is_tracked(*access, done) {
                state.flight.entry((fact(*access, When::Now), done)).or_default().0 |= Ages::OPEN.0;
            }
        }
    }

    /// Whether an asynchronous access is waited for by groups: not one to a slot that completes a phase of the ring's barrier.
    fn is_tracked(&self, access: usize, done: Done) -> bool {
        let place = self.accesses.all[access].place;
        match done {
            Done::Now => false,
            Done::Group(_) => true,
            // Tensors that bulk copies read are inputs, and the words of barriers are no data.
            Done::Phase => !matches!(place, Place::Slot(..) | Place::Words(..)),
        }
    }

    /// Whether an operation is a barrier of all threads that execute it. A print whose warps share a region has such barriers in it.
    fn meets(&self, id: OpId, role: Option<usize>) -> bool {
        let Some(laid) = self.kernel.laid_out.as_deref() else { return false };
        let warps = role.map_or(laid.warps, |role| self.kernel.roles.get(role).map_or(u32::MAX, |own| own.warps));
        let kind = &self.kernel.op(id).kind;
        let in_print = matches!(kind, OpKind::Print(_)) && !self.accesses.of(id).0.is_empty();
        let of_lanes = *kind == OpKind::Nv(NvOp::WarpSync) && warps == 1;
        let all = warps.checked_mul(laid.lanes);
        let of_all = matches!(kind, OpKind::Nv(NvOp::BarrierSync { threads, .. }) if Some(*threads) == all);
        of_all || of_lanes || in_print
    }

    /// Records the conflicts of an operation with what may have come before it.
    fn compare(&mut self, node: usize, state: &State) {
        let Kind::Op(id) = self.graph.kinds[node] else { return };
        let mut flight = Bits::new(self.facts);
        // The co-execution knows which copies to slots are complete, also where other regions share the bytes of a ring.
        // Their times are numbers that this analysis does not have (`coexecution::rings::touches`).
        let slot = |fact: usize| matches!(self.accesses.all[parts(fact).0].place, Place::Slot(..));
        state.flight.keys().filter(|(fact, _)| !slot(*fact)).for_each(|(fact, _)| flight.insert(*fact));
        for access in self.accesses.of(id).0 {
            let conflicts = self.accesses.conflicts(*access);
            if state.since.meets(conflicts) {
                self.unordered.insert(id);
            }
            // The barrier that is missing is the one before the roles.
            if state.before.meets(conflicts) {
                self.unordered.extend(crate::verify::roles::roles_op(self.kernel));
            }
            if flight.meets(conflicts) || state.lost.meets(conflicts) {
                self.in_flight.insert(id);
            }
        }
        let ends = matches!(self.kernel.op(id).kind, OpKind::Return | OpKind::Ttg(TtgOp::Finalize));
        if ends && state.flight.keys().any(|(fact, done)| self.is_unfinished(parts(*fact).0, *done)) {
            self.in_flight.insert(id);
        }
    }

    /// Whether an access in flight must be complete when its threads end: a write to shared memory, or the read of a bulk store, whose source
    /// is gone with the program. What bulk stores write to an output is complete when the launch is.
    fn is_unfinished(&self, access: usize, done: Done) -> bool {
        let access = self.accesses.all[access];
        let of_store = done == Done::Group(Class::BulkStore);
        match access.place {
            Place::Region(..) => of_store || access.writes,
            // A role waits for its own stages before it reads them; those that others read, it waits for at its end.
            Place::Slot(ring, ..) => access.writes && self.accesses.joined.contains(&ring),
            Place::Output(..) => !of_store && access.writes,
            Place::Words(..) => false,
        }
    }
}
