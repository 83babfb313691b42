//! Damaged schedules: the checker refuses one exactly if its execution breaks a promise.

use crate::damage::KINDS;
use crate::random::{self, Random};
use crate::{execution, known};
use std::collections::BTreeMap;
use titan_core::diag::Code;
use titan_core::schedule::graph::Graph;
use titan_core::schedule::swing::Options;
use titan_core::schedule::{Schedule, check::check, plan, text};

fn schedules() -> impl Iterator<Item = (Graph, Schedule)> {
    (1..=test_depth::cases(300, 60)).map(|seed| {
        let graph = random::graph(seed, 10);
        let schedule = plan(&graph, &Options::default()).schedule().clone();
        (graph, schedule)
    })
}

#[test]
fn the_schedules_themselves_are_legal() {
    for (graph, schedule) in schedules() {
        assert_eq!(check(&graph, &schedule, None), Ok(()), "{}", graph.name());
        let live = schedule.live;
        assert_eq!(check(&graph, &schedule, Some(live)), Ok(()), "{}", graph.name());
        assert!(execution::is_legal(&graph, &schedule, Some(live)), "{}", graph.name());
        assert!(check(&graph, &schedule, Some(live - 1)).is_err(), "{}", graph.name());
    }
}

/// Of every kind, the checker decides as the execution does; and with a live weight that is corrected, so that only the rest can be
/// wrong.
#[test]
fn damaged_schedules_are_refused_exactly_if_their_execution_is_wrong() {
    let mut refused: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    let mut random = Random(3);
    let mut corrected = 0;
    for (graph, schedule) in schedules() {
        for (kind, damage) in KINDS {
            for _ in 0..6 {
                let mut mutant = schedule.clone();
                damage(&graph, &mut mutant, &mut random);
                if mutant == schedule {
                    continue;
                }
                let is_legal = execution::is_legal(&graph, &mutant, None);
                let found = check(&graph, &mutant, None);
                let printed = |mutant: &Schedule| {
                    format!("{kind}:\n{}{}", text::print(&graph.draft()), text::print_schedule(mutant))
                };
                assert_eq!(found.is_ok(), is_legal, "{found:?}\n{}", printed(&mutant));
                let counts = refused.entry(kind).or_default();
                counts.0 += u32::from(!is_legal);
                counts.1 += 1;
                // The live weight hides nothing: with the right one, the mutant is legal or wrong for another reason.
                let (Err(errors), live) = (found, execution::live_of(&graph, &mutant)) else { continue };
                let Some(live) = live.filter(|live| *live != mutant.live) else { continue };
                mutant.live = live;
                let is_legal = execution::is_legal(&graph, &mutant, None);
                assert_eq!(check(&graph, &mutant, None).is_ok(), is_legal, "{errors:?}\n{}", printed(&mutant));
                corrected += u32::from(is_legal);
            }
        }
    }
    assert!(KINDS.len() >= 12 && corrected > 20);
    for (kind, _) in KINDS {
        assert!(refused.get(kind).is_some_and(|(refused, _)| *refused >= 1), "{kind}: {:?}", refused.get(kind));
    }
}

/// What the checker says, and where.
#[test]
fn refusals_have_codes_and_places() {
    let graph = text::graph(known::GEMM).expect("it is valid");
    let written = text::print_schedule(plan(&graph, &Options::default()).schedule());
    let errors = |old: &str, new: &str| -> Vec<(Code, u32, u32, String)> {
        assert!(written.contains(old), "no `{old}` in\n{written}");
        let (schedule, places) = text::schedule(&written.replace(old, new)).expect("it reads");
        let errors = check(&graph, &schedule, None).expect_err("it is not legal");
        errors
            .into_iter()
            .map(|error| error.map_site(|site| places.of(site)))
            .map(|error| (error.code, error.site.line, error.site.column, error.title))
            .collect()
    };
    let placed_twice = errors("op buffer1 ", "op load0 ");
    assert_eq!((placed_twice[0].0, placed_twice[0].1, placed_twice[0].2), (Code::ScheduleName, 3, 4));
    assert!(placed_twice[1].3.contains("`buffer1` is not placed"), "{placed_twice:?}");
    let overlap = errors("ii 256", "ii 255");
    assert!(overlap.iter().any(|error| error.0 == Code::ScheduleSelfOverlap && error.1 == 6), "{overlap:?}");
    let stages = errors("stages 3", "stages 4");
    assert_eq!((stages[0].0, stages[0].1, stages[0].2), (Code::ScheduleIllegal, 1, 29));
    let huge = errors("cycle 0", "cycle 9223372036854775807");
    assert!(huge.iter().any(|error| error.0 == Code::ScheduleIllegal), "{huge:?}");
}
