//! The limits of the search, and what is left when they are reached: the sequential schedule.

use crate::{execution, random};
use titan_core::schedule::bounds::bounds;
use titan_core::schedule::swing::{Options, Stop, search};
use titan_core::schedule::{FALLBACK_SLOTS, Plan, check::check, plan, text};

const BACKWARD: &str = include_str!("graphs/attention_backward.graph");

#[test]
fn every_graph_has_a_sequential_schedule() {
    for seed in 1..=300 {
        let graph = random::graph(seed, 12);
        let Plan::Sequential { stop, schedule, slots } = plan(&graph, &Options { steps: 0, ..Options::default() })
        else {
            // The bound of the interval may be that of the sequential schedule, but nothing can be found in no steps.
            panic!("{seed}: found in no steps")
        };
        let least = bounds(&graph).least();
        match stop {
            Stop::Steps { ii } => assert_eq!(ii, least, "{seed}"),
            Stop::NothingShorter => assert!(schedule.ii <= least, "{seed}"),
            Stop::BelowBounds { .. } | Stop::Live { .. } | Stop::Refused => panic!("{seed}: {stop:?}"),
        }
        assert_eq!((schedule.stages, slots), (1, FALLBACK_SLOTS), "{seed}");
        assert_eq!(check(&graph, &schedule, None), Ok(()), "{seed}");
        assert!(execution::is_legal(&graph, &schedule, None), "{seed}");
    }
}

/// A limit either stops the search or does not change what it finds.
#[test]
fn the_limit_of_steps_is_exact() {
    let graph = text::graph(BACKWARD).expect("it is valid");
    let found = search(&graph, &Options::default()).expect("there is a schedule");
    for steps in [0, 1, 10, 100, found.steps / 2, found.steps - 1] {
        assert_eq!(search(&graph, &Options { steps, ..Options::default() }), Err(Stop::Steps { ii: 1033 }), "{steps}");
    }
    for steps in [found.steps, found.steps + 1, u64::MAX] {
        assert_eq!(search(&graph, &Options { steps, ..Options::default() }).as_ref(), Ok(&found), "{steps}");
    }
}

#[test]
fn the_interval_that_is_asked_for_is_the_only_one() {
    let with = |ii: i64| text::graph(&BACKWARD.replace("graph attention_backward", &format!("graph g ii {ii}")));
    let below = with(1032).expect("it is valid");
    assert_eq!(search(&below, &Options::default()), Err(Stop::BelowBounds { least: 1033 }));
    let above = with(1100).expect("it is valid");
    assert_eq!(search(&above, &Options::default()).map(|found| found.schedule.ii), Ok(1100));
}

/// With less overlap, fewer results are live: the interval grows until the limit is kept.
#[test]
fn live_weight_is_limited() {
    let graph = text::graph(
        "graph g\nunit copy\nunit alu\nop load unit copy 1 latency 20 weight 8\nop use unit alu 2 latency 4\nedge data load -> use\n",
    )
    .expect("it is valid");
    let free = search(&graph, &Options::default()).expect("there is a schedule").schedule;
    assert_eq!((free.ii, free.live), (2, 80));
    let limited = search(&graph, &Options { live: Some(40), ..Options::default() }).expect("there is one").schedule;
    assert_eq!((limited.ii, limited.live), (4, 40));
    assert_eq!(check(&graph, &limited, Some(40)), Ok(()));
    assert!(check(&graph, &limited, Some(39)).is_err());
    let none = search(&graph, &Options { live: Some(7), ..Options::default() });
    assert_eq!(none, Err(Stop::Live { least: 8 }));
}

/// Where no schedule of an interval can keep the limit of the live weight, nothing is placed: all intervals together take fewer steps than to place the
/// operations for three.
#[test]
fn nothing_is_placed_where_lives_exceed_their_limit_anyway() {
    let mut draft = text::draft(BACKWARD).expect("it reads").0;
    draft.ops.iter_mut().for_each(|op| op.weight = 1000);
    let graph = draft.check().expect("it is valid");
    let found = search(&graph, &Options::default()).expect("there is one");
    let few = Options { steps: 3 * found.steps, live: Some(1), ..Options::default() };
    let stop = search(&graph, &few);
    assert!(matches!(stop, Err(Stop::Live { least }) if least > 1 && least <= found.schedule.live), "{stop:?}");
}

/// Intervals of millions of cycles cost as much as short ones.
#[test]
fn long_intervals_are_no_more_work() {
    let scaled = |factor: i64| {
        let mut draft = text::draft(BACKWARD).expect("it reads").0;
        for op in &mut draft.ops {
            op.latency *= factor;
            if let Some((_, cycles)) = &mut op.unit {
                *cycles *= factor;
            }
        }
        draft.edges.iter_mut().filter_map(|edge| edge.latency.as_mut()).for_each(|latency| *latency *= factor);
        search(&draft.check().expect("it is valid"), &Options::default()).expect("there is a schedule")
    };
    let (one, many) = (scaled(1), scaled(50_000));
    assert_eq!((many.schedule.ii, many.steps), (one.schedule.ii * 50_000, one.steps));
}

/// Fewer stages need a longer interval, up to that of the sequential schedule.
#[test]
fn a_limit_of_stages_is_kept() {
    let graph = text::graph(BACKWARD).expect("it is valid");
    let free = search(&graph, &Options::default()).expect("there is a schedule").schedule;
    assert!(free.stages > 2, "{}", free.stages);
    for (limit, is_shortest) in (1..=free.stages).flat_map(|limit| [(limit, false), (limit, true)]) {
        match search(&graph, &Options { stages: Some(limit), is_shortest, ..Options::default() }) {
            Ok(found) => {
                assert!(found.schedule.stages <= limit && found.schedule.ii >= free.ii, "{limit}");
                assert_eq!(check(&graph, &found.schedule, None), Ok(()));
            }
            Err(stop) => assert!(limit < 2 && stop == Stop::NothingShorter, "{limit}: {stop:?}"),
        }
    }
}

/// Attention of 128 queries, heads of 128 and 128 keys on sm_90a, where products are in flight: in swing order, the second product and what it needs
/// come first, and the first one is placed around them, in a stage too early. As early as possible, two stages suffice.
#[test]
fn the_shortest_iterations_fit_in_two_stages() {
    let graph = text::graph(include_str!("graphs/attention_in_flight.graph")).expect("it is valid");
    let with = |is_shortest| {
        let options = Options { live: Some(215), stages: Some(2), is_shortest, ..Options::default() };
        search(&graph, &options).map(|found| found.schedule)
    };
    let [any, shortest] = [false, true].map(|is_shortest| with(is_shortest).expect("there is one"));
    assert_eq!(check(&graph, &shortest, Some(215)), Ok(()));
    assert!(shortest.stages == 2 && shortest.ii < any.ii, "{} and {} cycles", shortest.ii, any.ii);
}

/// Where a limit is exceeded, intervals are left out, but the next shorter one than what is found never fits.
#[test]
fn the_next_shorter_interval_is_refused() {
    let mut longer = 0;
    for seed in 1..=200 {
        let graph = random::graph(seed, 12);
        let least = bounds(&graph).least();
        let limits = [(1, false), (1, true), (2, false), (2, true)];
        for options in limits.map(|(n, is_shortest)| Options { stages: Some(n), is_shortest, ..Options::default() }) {
            let Ok(found) = search(&graph, &options) else { continue };
            assert_eq!(check(&graph, &found.schedule, None), Ok(()), "{seed}");
            let mut draft = graph.draft();
            draft.ii = Some(found.schedule.ii - 1);
            if found.schedule.ii > least && graph.ii().is_none() {
                let shorter = search(&draft.check().expect("it is valid"), &options);
                assert!(shorter.is_err(), "{seed}: {options:?} {shorter:?}");
                longer += 1;
            }
        }
    }
    assert!(longer > 20, "{longer}");
}

/// A limit that is met far above the bounds does not cost a try for each interval between.
#[test]
fn few_intervals_are_tried_beyond_a_limit() {
    let graph = text::graph(BACKWARD).expect("it is valid");
    let found = search(&graph, &Options { stages: Some(2), ..Options::default() }).expect("there is a schedule");
    let between = found.schedule.ii - bounds(&graph).least();
    let mut draft = graph.draft();
    draft.ii = Some(found.schedule.ii);
    let one = search(&draft.check().expect("it is valid"), &Options::default()).expect("the same");
    assert!(between > 100 && found.steps < one.steps * 60, "{between}: {} and {} steps", found.steps, one.steps);
}
