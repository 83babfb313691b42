//! Memories whose operations run out of order: which fences let barriers order accesses, which operations are executed in order, and for
//! which a commit arrives.

use crate::harness::*;
use titan_sim::engine::{Access, Agent, BarrierId, Class, Event, Helper, Op, OpId, Proxy, Signal, SpaceId, SyncSide};
use titan_sim::sanitize::{Config, Rule, Work};

const READS: Class = Class(20);
const WRITES: Class = Class(21);
const COMMIT: Class = Class(22);
const COPIES: Class = Class(23);
const SHIFTS: Class = Class(24);
/// Classes on both sides of the borders of a set's words.
const MMA: Class = Class(63);
const OTHER: Class = Class(64);
/// Tensor memory of block 0.
const TENSOR_MEMORY: usize = 3;

fn tensor_config() -> Config {
    let mut c = config(&[0, 0, 0]);
    c.home(SpaceId::new(TENSOR_MEMORY), 0).out_of_order(SpaceId::new(TENSOR_MEMORY));
    c.class(READS, Work::TENSOR_LOAD).class(WRITES, Work::TENSOR_STORE).class(COMMIT, Work::TENSOR_COMMIT);
    let tracked = vec![COPIES, SHIFTS, MMA, OTHER];
    for class in &tracked {
        c.class(*class, Work::TENSOR_WORK);
    }
    for (before, after) in [(MMA, MMA), (OTHER, OTHER), (COPIES, MMA), (SHIFTS, MMA), (MMA, SHIFTS)] {
        c.in_order(before, after);
    }
    c.arrives_for(COMMIT, tracked);
    c
}

fn tensor_world() -> World {
    with(tensor_config(), 3)
}

/// Starts an operation on the first column; loads and stores are in groups.
fn starts(w: &mut World, who: usize, class: Class, kind: titan_sim::engine::AccessKind) -> OpId {
    let place = w.next();
    let op = Op { agent: agent(who), class, after: vec![], signals: vec![], payload: () };
    let id = w.engine.issue(op, !matches!(class, READS | WRITES), place, &mut w.s).unwrap();
    let a = w.base(who, kind, TENSOR_MEMORY, 0, 512);
    w.access(Access { helper: Some(Helper { class, op: id }), proxy: Proxy::Generic, ..a });
    id
}

/// Commits everything that an agent has started, and completes it.
fn commits(w: &mut World, who: usize, barrier: BarrierId, all: &[OpId]) {
    let place = w.next();
    let signals = vec![Signal::Arrive { barrier }];
    let op = Op { agent: agent(who), class: COMMIT, after: all.to_vec(), signals, payload: () };
    let id = w.engine.issue(op, true, place, &mut w.s).unwrap();
    w.complete(id);
}

fn waits_for_group(w: &mut World, who: usize, class: Class) {
    w.commit(who, class);
    w.wait_groups(who, class, 0);
}

fn sync_fence(w: &mut World, who: usize, side: SyncSide) {
    let place = w.next();
    w.tell(&Event::SyncFence { agent: Agent::new(who), side, place });
}

/// What may be left out.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Left {
    Nothing,
    Commit,
    FenceOfTheReader,
    WaitOfTheReader,
    FenceBeforeTheArrival,
    FenceOfTheWriter,
}

/// An MMA of agent 0, a load of agent 1, and another MMA.
fn turns(left: Left) -> World {
    let mut w = tensor_world();
    let (done, taken) = (w.barrier(1), w.barrier(1));
    let mma = starts(&mut w, 0, MMA, W);
    if left == Left::Commit {
        w.arrive(0, done);
    } else {
        commits(&mut w, 0, done, &[mma]);
    }
    w.wait(1, done, false);
    if left != Left::FenceOfTheReader {
        sync_fence(&mut w, 1, SyncSide::After);
    }
    starts(&mut w, 1, READS, R);
    if left != Left::WaitOfTheReader {
        waits_for_group(&mut w, 1, READS);
    }
    if left != Left::FenceBeforeTheArrival {
        sync_fence(&mut w, 1, SyncSide::Before);
    }
    w.arrive(1, taken);
    w.wait(0, taken, false);
    if left != Left::FenceOfTheWriter {
        sync_fence(&mut w, 0, SyncSide::After);
    }
    starts(&mut w, 0, MMA, W);
    w
}

#[test]
fn each_wait_and_each_fence_is_needed() {
    turns(Left::Nothing).clean();
    for (left, rule) in [
        (Left::Commit, Rule::OutstandingWrite),
        (Left::FenceOfTheReader, Rule::MissingSyncFence),
        (Left::WaitOfTheReader, Rule::PendingAccess),
        (Left::FenceBeforeTheArrival, Rule::MissingSyncFence),
        (Left::FenceOfTheWriter, Rule::MissingSyncFence),
    ] {
        let w = turns(left);
        assert_eq!(w.rules(), [rule], "{left:?}");
    }
}

#[test]
fn a_fence_on_the_wrong_side_of_an_arrival_has_no_effect() {
    let mut w = tensor_world();
    let taken = w.barrier(1);
    starts(&mut w, 1, READS, R);
    waits_for_group(&mut w, 1, READS);
    w.arrive(1, taken);
    sync_fence(&mut w, 1, SyncSide::Before);
    w.wait(0, taken, false);
    sync_fence(&mut w, 0, SyncSide::After);
    starts(&mut w, 0, MMA, W);
    w.finds(Rule::MissingSyncFence);
}

#[test]
fn a_fence_before_the_wait_has_no_effect() {
    let mut w = tensor_world();
    let done = w.barrier(1);
    let mma = starts(&mut w, 0, MMA, W);
    commits(&mut w, 0, done, &[mma]);
    sync_fence(&mut w, 1, SyncSide::After);
    w.wait(1, done, false);
    starts(&mut w, 1, READS, R);
    w.finds(Rule::MissingSyncFence);
}

#[test]
fn only_the_stated_pairs_are_in_order() {
    let all = [COPIES, SHIFTS, MMA, OTHER];
    let pairs = [(MMA, MMA), (OTHER, OTHER), (COPIES, MMA), (SHIFTS, MMA), (MMA, SHIFTS)];
    for before in all {
        for after in all {
            let mut w = tensor_world();
            starts(&mut w, 0, before, W);
            starts(&mut w, 0, after, W);
            let expected = if pairs.contains(&(before, after)) { vec![] } else { vec![Rule::UnorderedAsync] };
            assert_eq!(w.rules(), expected, "{before:?}, {after:?}");
            // Another agent's operations are in no order.
            let mut w = tensor_world();
            starts(&mut w, 0, before, W);
            starts(&mut w, 1, after, W);
            assert_eq!(w.rules(), [Rule::OutstandingWrite], "{before:?}, {after:?} of two agents");
        }
    }
}

#[test]
fn own_loads_and_stores_need_a_wait_and_no_fence() {
    for waits in [true, false] {
        let mut w = tensor_world();
        starts(&mut w, 1, WRITES, W);
        if waits {
            waits_for_group(&mut w, 1, WRITES);
        }
        starts(&mut w, 1, READS, R);
        let expected = if waits { vec![] } else { vec![Rule::UnorderedAsync] };
        assert_eq!(w.rules(), expected);
    }
}

#[test]
fn a_commit_arrives_for_all_classes_and_for_what_was_observed() {
    let mut w = tensor_world();
    let (taken, done) = (w.barrier(1), w.barrier(1));
    // Agent 1 has loaded, and agent 0 has observed that before it starts an MMA.
    starts(&mut w, 1, READS, R);
    waits_for_group(&mut w, 1, READS);
    sync_fence(&mut w, 1, SyncSide::Before);
    w.arrive(1, taken);
    w.wait(0, taken, false);
    sync_fence(&mut w, 0, SyncSide::After);
    let copy = starts(&mut w, 0, COPIES, W);
    let mma = starts(&mut w, 0, MMA, W);
    commits(&mut w, 0, done, &[copy, mma]);
    w.wait(2, done, false);
    sync_fence(&mut w, 2, SyncSide::After);
    let a = w.base(2, W, TENSOR_MEMORY, 0, 512);
    w.access(a);
    w.clean();
}

#[test]
fn a_commit_does_not_arrive_for_own_accesses() {
    let mut w = tensor_world();
    let done = w.barrier(1);
    w.write(0, 64);
    let mma = starts(&mut w, 0, MMA, W);
    commits(&mut w, 0, done, &[mma]);
    w.wait(1, done, false);
    w.read(1, 64);
    w.finds(Rule::OutstandingWrite);
}

#[test]
fn operations_must_be_committed_before_the_end_and_commits_may_arrive_later() {
    for (committed, observed) in [(false, false), (true, false), (true, true)] {
        let mut w = tensor_world();
        let done = w.barrier(1);
        let mma = starts(&mut w, 0, MMA, W);
        if committed {
            commits(&mut w, 0, done, &[mma]);
        }
        if observed {
            w.wait(1, done, false);
        }
        (0..3).for_each(|who| w.exit(who));
        let expected = if observed { vec![] } else { vec![Rule::ExitInFlight] };
        assert_eq!(w.rules(), expected, "committed {committed}, observed {observed}");
    }
}
