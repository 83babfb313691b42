//! Each pass on the way to a barrier program states which facts it invalidates. What it does not name still holds: it is established again
//! from the kernel behind every pass. And the facts alone admit one order of the passes.

use crate::facts::made_true;
use crate::files::VERIFIED;
use crate::launch::target;
use titan_core::collections::SortedSet;
use titan_core::driver::internals::{Fact, Pass, ROAD};
use titan_core::plan::plan;

const ALL: [Fact; 7] =
    [Fact::LaidOut, Fact::Counted, Fact::Barriers, Fact::Placed, Fact::Synchronized, Fact::Fenced, Fact::Proven];

/// What needs fences between proxies is tested on a machine that has these (titan-nv/tests/hopper/facts.rs).
#[test]
fn what_a_pass_does_not_invalidate_still_holds() {
    let (mut done, mut found) = (0, SortedSet::new());
    for (nth, (name, verified)) in VERIFIED.iter().enumerate() {
        // In the quick depth, every fourth kernel.
        if !test_depth::is_full() && nth % 4 != 0 {
            continue;
        }
        if let Some(made) = made_true(name, verified, &plan(verified, &target(32), true)) {
            done += 1;
            found.extend(made);
        }
    }
    assert!(done > test_depth::cases(100, 25), "only {done}");
    let found: Vec<Fact> = found.into_iter().collect();
    assert_eq!(found, [Fact::Placed, Fact::Synchronized], "each is not true before its pass, in some kernel");
}

/// The facts behind passes in an order; `None` if one of them lacks what it needs.
fn behind<'a>(passes: impl IntoIterator<Item = &'a Pass>) -> Option<Vec<Fact>> {
    passes.into_iter().try_fold(vec![Fact::LaidOut], |facts, pass| pass.after(&facts))
}

#[test]
fn the_facts_admit_one_order_of_the_passes() {
    fn orders(left: &[usize]) -> Vec<Vec<usize>> {
        if left.is_empty() {
            return vec![Vec::new()];
        }
        let with = |first: &usize| {
            let rest: Vec<usize> = left.iter().copied().filter(|other| other != first).collect();
            orders(&rest).into_iter().map(|rest| [vec![*first], rest].concat()).collect::<Vec<_>>()
        };
        left.iter().flat_map(with).collect()
    }
    let in_order: Vec<usize> = (0..ROAD.len()).collect();
    let admitted = |order: &Vec<usize>| behind(order.iter().map(|at| &ROAD[*at])).is_some();
    let legal: Vec<Vec<usize>> = orders(&in_order).into_iter().filter(admitted).collect();
    assert_eq!(legal, [in_order]);
    let all = behind(ROAD).expect("it is the order of the driver");
    assert_eq!(all.iter().copied().collect::<SortedSet<_>>(), ALL.into_iter().collect());
}

/// A pass that is run once more invalidates the proof, and what else was derived from what it changes.
#[test]
fn a_pass_that_is_run_again_invalidates_what_follows() {
    for (at, again) in ROAD.iter().enumerate() {
        let facts = behind(ROAD.iter().chain([again])).expect("what it needs still holds");
        let of_later: Vec<&str> = ROAD[at + 1..].iter().filter(|p| !facts.contains(&p.gives)).map(|p| p.name).collect();
        let expected: &[&str] = match again.name {
            "complete" | "expand" => &["allocate", "synchronize", "fence", "verify"],
            "allocate" => &["synchronize", "fence", "verify"],
            "synchronize" | "fence" => &["verify"],
            "verify" => &[],
            other => panic!("the pass `{other}` is new: what follows from it?"),
        };
        assert_eq!(of_later, expected, "`{}`", again.name);
    }
}
