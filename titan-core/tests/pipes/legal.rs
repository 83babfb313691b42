//! The dependences of loops: a schedule that keeps them is carried out and accepted, and computes the same; one that violates one of them is
//! refused.

use super::loop_moves::{Stages, places, planned, settle, together};
use super::random::{Rng, below};
use super::{ahead, modulo as numbers};
use std::collections::BTreeMap;
use titan_core::ir::Kernel;
use titan_core::pipeline::modulo::{Dependence, Why, check, dependences, expand};
use titan_core::text::print;

/// What became of schedules.
#[derive(Debug, Default)]
struct Counts {
    several_stages: usize,
    not_carried_out: usize,
    violated: [usize; 3],
    refusals: BTreeMap<String, usize>,
}

/// Tries random legal schedules of the outermost loop of a kernel, and ones that violate a dependence.
fn try_schedules(kernel: &Kernel, rng: &mut Rng, counts: &mut Counts, is_right: impl Fn(&Kernel) -> bool) {
    let all = dependences(kernel).unwrap_or_else(|why| panic!("{why:?}\n{}", print(kernel)));
    let of = all.first().expect("a loop");
    let mut stages: Stages = of.ops.iter().map(|id| (*id, below(rng, 4) as i64)).collect();
    let together = together(kernel, of);
    // What has an effect is in the last stage.
    let made = (0..of.ops.len()).find_map(|_| {
        settle(of, &together, &mut stages);
        let before = planned(kernel, &stages, &places(of, &stages, &mut |n| below(rng, n), None).expect("an order"));
        match expand(&before) {
            Ok(made) => Some((before, made)),
            Err(why) => {
                *counts.refusals.entry(why.message).or_default() += 1;
                let last = stages.values().copied().max().unwrap_or(0);
                stages.insert(why.op, last);
                None
            }
        }
    });
    let Some((before, made)) = made else {
        counts.not_carried_out += 1;
        return;
    };
    assert_eq!(check(&before, &made), Ok(()), "{}\n{}", print(&before), print(&made));
    assert!(is_right(&made), "{}\n{}", print(&before), print(&made));
    counts.several_stages += usize::from(stages.values().collect::<std::collections::BTreeSet<_>>().len() > 1);
    let edges: Vec<&Dependence> = of.dependences.iter().filter(|edge| edge.from != edge.to).collect();
    if edges.is_empty() {
        return;
    }
    let edge = edges[below(rng, edges.len())];
    let mut wrong = stages.clone();
    // Either in a later stage, or behind the other one in the same.
    let exchanged = (stages[&edge.from] == stages[&edge.to] + i64::from(edge.distance)).then_some(edge);
    if exchanged.is_none() {
        wrong.insert(edge.from, stages[&edge.to] + i64::from(edge.distance) + 1);
    }
    let Some(order) = places(of, &wrong, &mut |n| below(rng, n), exchanged) else { return };
    let before = planned(kernel, &wrong, &order);
    let Ok(made) = expand(&before) else {
        counts.violated[0] += 1;
        return;
    };
    let is_refused = check(&before, &made).is_err();
    // Names and numbers are computed again where they are needed.
    assert!(is_refused || edge.why == Why::Value, "{edge:?}\n{}\n{}", print(&before), print(&made));
    assert!(is_refused || is_right(&made), "{edge:?}\n{}\n{}", print(&before), print(&made));
    counts.violated[if is_refused { 1 } else { 2 }] += 1;
}

#[test]
fn schedules_of_loops_over_numbers_that_keep_the_dependences_are_accepted() {
    let mut rng = Rng(0x7e57_ab1e_5eed_0001);
    let mut counts = Counts::default();
    for _ in 0..test_depth::cases(5000, 300) {
        let kernel = numbers::plain(&numbers::random(&mut rng).text());
        let is_right = |made: &Kernel| (0..=12).all(|n| numbers::written(&kernel, n) == numbers::written(made, n));
        try_schedules(&kernel, &mut rng, &mut counts, is_right);
    }
    println!("{counts:?}");
    assert!(counts.several_stages > 100 && counts.violated[0] > 10, "{counts:?}");
}

#[test]
fn schedules_of_loops_over_rings_that_keep_the_dependences_are_accepted() {
    let mut rng = Rng(0x7e57_ab1e_5eed_0002);
    let mut counts = Counts::default();
    for _ in 0..test_depth::cases(5000, 300) {
        let made = ahead::random(&mut rng);
        let kernel = numbers::plain(&made.text());
        let is_right = |found: &Kernel| ahead::difference(&kernel, found, made.most() + 8).is_none();
        try_schedules(&kernel, &mut rng, &mut counts, is_right);
    }
    println!("{counts:?}");
    assert!(counts.several_stages > 100 && counts.violated[..2].iter().all(|n| *n > 10), "{counts:?}");
}
