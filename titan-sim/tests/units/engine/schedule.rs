//! The choice of the agent that runs next.

use titan_sim::engine::{Schedule, Scheduler};

#[test]
fn in_turn_passes_over_those_that_cannot() {
    let mut s = Scheduler::new(Schedule::InTurn);
    let picks: Vec<_> = (0..5).map(|_| s.pick(4, |i| i != 2)).collect();
    assert_eq!(picks, [0, 1, 3, 0, 1].map(Some));
    assert_eq!(s.pick(4, |_| false), None);
    assert_eq!(s.quantum(9), 9);
}

#[test]
fn seeds_repeat_and_reach_everybody() {
    let run = |seed| {
        let mut s = Scheduler::new(Schedule::Seeded(seed));
        (0..64).map(|_| s.pick(3, |_| true).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    assert!((0..3).all(|i| run(1).contains(&i)));
    let mut s = Scheduler::new(Schedule::Seeded(3));
    assert!((0..100).all(|_| (1..=8).contains(&s.quantum(8))));
}
