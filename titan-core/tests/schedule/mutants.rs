//! Damaged schedules: the checker refuses one exactly if its execution breaks a promise.

use crate::random::{self, Random};
use crate::{execution, known};
use std::collections::BTreeMap;
use titan_core::diag::Code;
use titan_core::schedule::graph::Graph;
use titan_core::schedule::swing::Options;
use titan_core::schedule::{Schedule, check::check, plan, text};

/// A kind of damage; it may leave the schedule as it is where it does not apply.
type Damage = fn(&Graph, &mut Schedule, &mut Random);

/// Sets everything that follows from the cycles, so that only the cycles can be wrong.
fn follow(schedule: &mut Schedule) {
    let ii = schedule.ii.max(1);
    let mut body: Vec<usize> = (0..schedule.ops.len()).collect();
    body.sort_by_key(|i| (schedule.ops[*i].cycle.rem_euclid(ii), schedule.ops[*i].order));
    for (place, i) in body.into_iter().enumerate() {
        schedule.ops[i].order = place as i64;
        schedule.ops[i].stage = schedule.ops[i].cycle.div_euclid(ii);
    }
    schedule.stages = schedule.ops.iter().map(|op| op.stage + 1).max().unwrap_or(1);
}

fn moved(schedule: &mut Schedule, random: &mut Random, by: i64) {
    let op = random.index(schedule.ops.len());
    schedule.ops[op].cycle += by;
    follow(schedule);
}

const KINDS: &[(&str, Damage)] = &[
    ("one cycle earlier", |_, s, r| moved(s, r, -1)),
    ("one cycle later", |_, s, r| moved(s, r, 1)),
    ("one interval earlier", |_, s, r| moved(s, r, -s.ii)),
    ("one interval later", |_, s, r| moved(s, r, s.ii)),
    ("any cycle", |_, s, r| {
        let by = r.from(-2 * s.ii..=2 * s.ii);
        moved(s, r, by);
    }),
    ("a wrong stage", |_, s, r| {
        let op = r.index(s.ops.len());
        s.ops[op].stage += if r.chance(50) { 1 } else { -1 };
    }),
    ("a unit used twice", |g, s, r| {
        let (a, b) = (r.index(s.ops.len()), r.index(s.ops.len()));
        if a != b && g.ops()[a].unit == g.ops()[b].unit {
            s.ops[a].cycle = s.ops[b].cycle;
            follow(s);
        }
    }),
    ("a missing operation", |_, s, r| {
        let op = r.index(s.ops.len());
        s.ops.remove(op);
    }),
    ("a missing operation, and everything else follows", |_, s, r| {
        let op = r.index(s.ops.len());
        s.ops.remove(op);
        follow(s);
    }),
    ("an operation twice", |_, s, r| {
        let op = s.ops[r.index(s.ops.len())].clone();
        s.ops.push(op);
        follow(s);
    }),
    ("an unknown operation", |_, s, r| {
        let op = r.index(s.ops.len());
        s.ops[op].name.push('x');
    }),
    ("two names exchanged", |_, s, r| {
        let (a, b) = (r.index(s.ops.len()), r.index(s.ops.len()));
        let name = s.ops[a].name.clone();
        s.ops[a].name = std::mem::replace(&mut s.ops[b].name, name);
    }),
    ("one cycle less in the interval", |_, s, _| s.ii -= 1),
    ("one cycle less in the interval, and everything else follows", |_, s, _| {
        s.ii -= 1;
        follow(s);
    }),
    ("one cycle more in the interval, and everything else follows", |_, s, _| {
        s.ii += 1;
        follow(s);
    }),
    ("half of the interval", |_, s, _| {
        s.ii /= 2;
        follow(s);
    }),
    ("one stage more", |_, s, _| s.stages += 1),
    ("one stage less", |_, s, _| s.stages -= 1),
    ("two places exchanged", |_, s, r| {
        let (a, b) = (r.index(s.ops.len()), r.index(s.ops.len()));
        let order = s.ops[a].order;
        s.ops[a].order = std::mem::replace(&mut s.ops[b].order, order);
    }),
    ("a place used twice", |_, s, r| {
        let (a, b) = (r.index(s.ops.len()), r.index(s.ops.len()));
        s.ops[a].order = s.ops[b].order;
    }),
    ("places from 1", |_, s, _| s.ops.iter_mut().for_each(|op| op.order += 1)),
    ("all operations one cycle later", |_, s, _| {
        s.ops.iter_mut().for_each(|op| op.cycle += 1);
        follow(s);
    }),
    ("all operations one interval later", |_, s, _| {
        s.ops.iter_mut().for_each(|op| op.cycle += s.ii);
        follow(s);
    }),
    ("a smaller live weight", |_, s, _| s.live -= 1),
    ("a greater live weight", |_, s, _| s.live += 1),
    ("another graph", |_, s, _| s.name.push('x')),
];

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
