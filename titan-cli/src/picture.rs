//! The picture of a run, from what the simulator recorded: a lane for each role, beneath it its work under way, then the slots of
//! each ring.

use crate::timeline::{Lane, Link, Span, Timeline, Tone};
use std::collections::BTreeMap;
use titan_core::ir::Kernel;
use titan_core::sim::Interval;

/// Draws a run of a kernel with these arguments.
pub(crate) fn draw(kernel: &Kernel, trace: &[Interval], told: &[(String, String)]) -> Timeline {
    let trace = &settled(trace);
    let told: Vec<String> = told.iter().map(|(n, v)| format!("{n} = {v}")).collect();
    let mut picture = Timeline {
        title: format!("{} with {}", kernel.sig.full_name(), told.join(", ")),
        steps: trace.iter().map(|i| i.end + 1).max().unwrap_or(1),
        ..Timeline::default()
    };
    let lanes = roles(trace, &mut picture);
    for interval in trace {
        let key = (interval.agent, interval.helper);
        let Some(lane) = lanes.get(&key).and_then(|all| all.get(depth(trace, interval))).copied() else { continue };
        picture.spans.push(span(interval, lane));
    }
    links(trace, &lanes, &mut picture);
    slots(trace, &mut picture);
    picture
}

/// The intervals as they are shown: a wait is for the time that it ends with, and who only waits for its roles is left out.
fn settled(trace: &[Interval]) -> Vec<Interval> {
    let mut all = trace.to_vec();
    for wait in all.iter_mut().filter(|i| !i.waits_for.is_empty()) {
        let ended =
            |i: &&Interval| i.agent == wait.agent && i.helper.is_none() && i.waits_for.is_empty() && i.loc == wait.loc;
        if let Some(after) = trace.iter().filter(ended).find(|i| i.begin >= wait.end) {
            (wait.slot, wait.time) = (after.slot, after.time);
            wait.what.clone_from(&after.what);
        }
    }
    let waits_for_roles = |agent: u32| trace.iter().filter(|i| i.agent == agent).all(|i| i.op == "ttg.roles");
    all.retain(|i| !waits_for_roles(i.agent));
    all
}

/// The lanes of each agent and of what acts for it.
type Lanes = BTreeMap<(u32, Option<&'static str>), Vec<usize>>;

/// A lane for each role, and as many beneath it as its work overlaps.
fn roles(trace: &[Interval], picture: &mut Timeline) -> Lanes {
    let mut lanes = Lanes::new();
    let mut keys: Vec<(u32, Option<&'static str>)> = trace.iter().map(|i| (i.agent, i.helper)).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let mine: Vec<&Interval> = trace.iter().filter(|i| (i.agent, i.helper) == key).collect();
        let rows = mine.iter().map(|i| depth(trace, i)).max().unwrap_or(0) + 1;
        let role = mine.first().map_or("", |i| i.role.as_str()).replace('`', "");
        for row in 0..rows {
            let name = match key.1 {
                None => role.clone(),
                Some(helper) if row == 0 => helper.to_owned(),
                Some(_) => String::new(),
            };
            lanes.entry(key).or_default().push(picture.lanes.len());
            picture.lanes.push(Lane { name, inner: key.1.is_some(), begins: key.1.is_none() });
        }
    }
    lanes
}

/// Which row of its lane an interval is in: the first one that is free of those which began before.
fn depth(trace: &[Interval], of: &Interval) -> usize {
    if of.helper.is_none() {
        return 0;
    }
    let mut ends: Vec<u64> = Vec::new();
    for i in trace.iter().filter(|i| (i.agent, i.helper) == (of.agent, of.helper)) {
        let row = ends.iter().position(|end| *end <= i.begin).unwrap_or(ends.len());
        if row == ends.len() {
            ends.push(i.end);
        } else {
            ends[row] = i.end;
        }
        if std::ptr::eq(i, of) {
            return row;
        }
    }
    0
}

fn span(i: &Interval, lane: usize) -> Span {
    let waits = !i.waits_for.is_empty();
    let tone = match (waits, i.helper) {
        (true, _) => Tone::Waiting,
        (false, Some(_)) => Tone::Under,
        (false, None) => Tone::Busy,
    };
    let mut text = format!("{} {}", i.op, i.what);
    if let (Some(slot), Some(time)) = (i.slot, i.time) {
        text += &format!(", slot {slot}, time {time}");
    }
    if waits {
        text += &format!(": waits for {}", i.waits_for.join(", "));
    }
    text += &format!(", steps {} to {}, line {}", i.begin, i.end, i.loc.line);
    let mark = i.time.map_or_else(String::new, |t| format!("t{t}"));
    // What is done in a step is a step wide.
    let to = if i.helper.is_none() && !waits { i.end + 1 } else { i.end.max(i.begin + 1) };
    Span { lane, from: i.begin, to, tone, time: i.time, text, mark }
}

/// From what ended a wait: of those whom the role waited for, what ended or acted last before the wait was over.
fn links(trace: &[Interval], lanes: &Lanes, picture: &mut Timeline) {
    let lane = |i: &Interval| lanes.get(&(i.agent, i.helper)).and_then(|all| all.get(depth(trace, i))).copied();
    for wait in trace.iter().filter(|i| !i.waits_for.is_empty()) {
        let same = |i: &&Interval| i.what == wait.what && i.slot == wait.slot && !wait.what.is_empty();
        let other = |i: &&Interval| i.waits_for.is_empty() && (i.agent != wait.agent || i.helper.is_some());
        let before = |i: &&Interval| i.end <= wait.end && i.end >= wait.begin;
        let last = trace.iter().filter(same).filter(other).filter(before).max_by_key(|i| (i.end, i.helper.is_some()));
        if let Some((cause, (from, to))) = last.and_then(|c| Some((c, (lane(c)?, lane(wait)?)))) {
            let at = if cause.helper.is_some() { cause.end } else { cause.end + 1 };
            picture.links.push(Link { from: (from, at.min(wait.end)), to: (to, wait.end) });
        }
    }
}

/// A lane for each slot of each ring: being filled, ready, being read.
fn slots(trace: &[Interval], picture: &mut Timeline) {
    let mut stages: BTreeMap<(&str, u64, u64), Vec<&Interval>> = BTreeMap::new();
    for i in trace {
        if let (Some(slot), Some(time)) = (i.slot, i.time) {
            stages.entry((i.what.as_str(), slot, time)).or_default().push(i);
        }
    }
    let mut lane_of: BTreeMap<(&str, u64), usize> = BTreeMap::new();
    let mut last = "";
    let mut names: Vec<(&str, u64)> = stages.keys().map(|(ring, slot, _)| (*ring, *slot)).collect();
    names.dedup();
    for (ring, slot) in names {
        if lane_of.contains_key(&(ring, slot)) {
            continue;
        }
        lane_of.insert((ring, slot), picture.lanes.len());
        picture.lanes.push(Lane { name: format!("{ring} slot {slot}"), inner: false, begins: ring != last });
        last = ring;
    }
    for ((ring, slot, time), all) in &stages {
        let Some(lane) = lane_of.get(&(*ring, *slot)).copied() else { continue };
        let acted = |i: &&&Interval| i.waits_for.is_empty();
        let first = |op: &str| {
            all.iter().filter(acted).filter(|i| i.helper.is_none() && i.op.ends_with(op)).map(|i| i.end).min()
        };
        let taken = first("acquire").or_else(|| all.iter().filter(acted).map(|i| i.begin).min());
        let filled = all.iter().filter(|i| i.helper.is_some_and(|h| h.contains("cop"))).map(|i| i.end).max();
        let read = first("wait_ready").or_else(|| first("read_perm"));
        let given = all.iter().filter(acted).map(|i| i.end).max();
        let mut stretch = |from: Option<u64>, to: Option<u64>, tone, what: &str| {
            if let (Some(from), Some(to)) = (from, to.filter(|to| from.is_some_and(|f| *to > f))) {
                let text = format!("{ring} slot {slot}, time {time}: {what}, steps {from} to {to}");
                picture.spans.push(Span { lane, from, to, tone, time: Some(*time), text, mark: format!("t{time}") });
            }
        };
        let filled = filled.or(read);
        stretch(taken, filled, Tone::Filling, "being filled");
        stretch(filled, read, Tone::Ready, "ready");
        stretch(read, given.map(|g| g + 1), Tone::Read, "being read");
    }
}
