//! Ways to damage a schedule of a graph.
//!
//! Deliberately absent: whether what is left is illegal, which its execution says.

use super::random::Random;
use titan_core::schedule::Schedule;
use titan_core::schedule::graph::Graph;

/// A kind of damage; it may leave the schedule as it is where it does not apply.
pub type Damage = fn(&Graph, &mut Schedule, &mut Random);

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

/// Every kind, with its name.
pub const KINDS: &[(&str, Damage)] = &[
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
