//! Groups of asynchronous operations, and the order in which they complete.

use titan_sim::engine::{Agent, Class, Completion, Op, Pending, StateHasher};

const COPY: Class = Class(0);

fn op(agent: Agent, payload: u32) -> Op<u32> {
    Op { agent, class: COPY, after: vec![], signals: vec![], payload }
}

#[test]
fn a_wait_asks_for_all_but_the_last_groups() {
    let (mut p, me, other) = (Pending::new(Completion::Late), Agent::new(0), Agent::new(1));
    let ids: Vec<_> = (0..3)
        .map(|i| {
            let id = p.issue(op(me, i));
            p.commit(me, COPY);
            id
        })
        .collect();
    p.issue(op(other, 9));
    p.issue(op(me, 3));
    assert_eq!(p.outstanding(me, COPY), (3, true));
    assert!(p.passes(me, COPY, 3) && !p.passes(me, COPY, 2) && p.passes(other, COPY, 0));
    assert_eq!(p.wait(me, COPY, 1), (vec![ids[0], ids[1]], 2));
    assert_eq!(p.take(ids[0])[0].1.payload, 0);
    assert_eq!(p.wait(me, COPY, 1), (vec![], 2), "what a wait has asked for, it does not ask for again");
    assert_eq!(p.wait(me, COPY, 0), (vec![ids[2]], 3));
    assert_eq!(p.wait(me, COPY, 0), (vec![], 3), "what is not committed is not waited for");
    assert_eq!(p.wait(other, COPY, 0), (vec![], 0));
}

#[test]
fn empty_groups_count() {
    let (mut p, me) = (Pending::new(Completion::Late), Agent::new(0));
    let id = p.issue(op(me, 0));
    assert_eq!((p.commit(me, COPY), p.commit(me, COPY)), (1, 2));
    assert_eq!(p.wait(me, COPY, 1), (vec![id], 1));
}

#[test]
fn what_comes_before_completes_before() {
    let (mut p, me) = (Pending::new(Completion::Late), Agent::new(0));
    let first = p.issue(op(me, 1));
    let second = p.issue(Op { after: vec![first], ..op(me, 2) });
    assert!(p.can_complete(first) && !p.can_complete(second));
    assert_eq!(p.take(second).iter().map(|(_, o)| o.payload).collect::<Vec<_>>(), [1, 2]);
    assert!(p.is_empty() && p.oldest().is_none());
}

#[test]
fn the_order_between_agents_does_not_change_the_hash() {
    let (a, b) = (Agent::new(0), Agent::new(1));
    let run = |order: [(Agent, u32); 3], complete: usize| {
        let mut p = Pending::new(Completion::Late);
        let ids = order.map(|(agent, payload)| {
            let id = p.issue(op(agent, payload));
            p.commit(agent, COPY);
            id
        });
        p.take(ids[complete]);
        StateHasher::of(&p)
    };
    let hash = run([(a, 1), (b, 2), (a, 3)], 0);
    assert_eq!(run([(b, 2), (a, 1), (a, 3)], 1), hash);
    assert_ne!(run([(a, 3), (b, 2), (a, 1)], 0), hash, "another copy is in flight");
    assert_ne!(run([(a, 1), (a, 3), (b, 2)], 1), hash);
}

#[test]
fn only_a_seed_completes_unasked() {
    for (policy, expected) in [(Completion::Early, 0), (Completion::Late, 0), (Completion::Seeded(5), 4)] {
        let (mut p, me) = (Pending::new(policy), Agent::new(0));
        for i in 0..4 {
            p.issue(op(me, i));
        }
        let happened: Vec<_> = (0..100).filter_map(|_| p.happens().map(|id| p.take(id))).collect();
        assert_eq!(happened.len(), expected, "{policy:?}");
    }
}
