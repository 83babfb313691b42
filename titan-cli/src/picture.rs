//! The timeline of a recorded run: a row for each role, below it its operations in flight, then the slots of each ring.

use crate::timeline::{Lane, Link, Span, Timeline, Tone};
use std::collections::{BTreeMap, BTreeSet};
use titan_core::ir::Kernel;
use titan_sim::sim::{Interval, Options, Report};

/// Draws a run of a kernel with these arguments.
pub(crate) fn draw(kernel: &Kernel, report: &Report, options: &Options, told: &[(String, String)]) -> Timeline {
    let trace = &settled(&report.trace);
    let told: Vec<String> = told.iter().map(|(n, v)| format!("{n} = {v}")).collect();
    let mut title = kernel.sig.full_name();
    let together = options.cluster.unwrap_or(1);
    if report.statistics.programs > u64::from(together) {
        let what = if together == 1 { "program" } else { "cluster" };
        title += &format!(", {what} {} of the grid", report.schedule.cluster);
    }
    if !told.is_empty() {
        title += &format!(" with {}", told.join(", "));
    }
    let mut picture = Timeline {
        title,
        found: report.findings.first().map(|f| format!("{}: {}", f.kind, f.message)),
        steps: trace.iter().map(|i| i.end + 1).max().unwrap_or(1),
        ..Timeline::default()
    };
    let lanes = roles(trace, &mut picture);
    picture.spans.extend(trace.iter().zip(&lanes).map(|(interval, lane)| span(interval, *lane)));
    links(trace, &lanes, &mut picture);
    slots(trace, &mut picture);
    picture
}

/// The intervals as they are shown: a wait has the ring time with which it ends, and an agent that only waits for its roles is omitted.
fn settled(trace: &[Interval]) -> Vec<Interval> {
    let mut all = trace.to_vec();
    let mut acted: BTreeMap<(u32, u32, u32), Vec<&Interval>> = BTreeMap::new();
    for i in trace.iter().filter(|i| i.helper.is_none() && i.waits_for.is_empty()) {
        acted.entry((i.agent, i.loc.line, i.loc.column)).or_default().push(i);
    }
    for wait in all.iter_mut().filter(|i| !i.waits_for.is_empty()) {
        let place = (wait.agent, wait.loc.line, wait.loc.column);
        // They are sorted by their beginnings.
        let later = acted.get(&place).and_then(|a| a.get(a.partition_point(|i| i.begin < wait.end)));
        if let Some(after) = later {
            (wait.slot, wait.time) = (after.slot, after.time);
            wait.what.clone_from(&after.what);
        }
    }
    let works: BTreeSet<u32> = trace.iter().filter(|i| i.op != "ttg.roles").map(|i| i.agent).collect();
    all.retain(|i| works.contains(&i.agent));
    all
}

/// Adds a row for each role, and below it as many as its operations in flight need; returns the row of each interval.
fn roles(trace: &[Interval], picture: &mut Timeline) -> Vec<usize> {
    // The step at which each row of an agent and of its operations is free again.
    let mut ends: BTreeMap<(u32, Option<&'static str>), Vec<u64>> = BTreeMap::new();
    let mut rows = Vec::with_capacity(trace.len());
    for i in trace {
        let rows_of = ends.entry((i.agent, i.helper)).or_default();
        // A role does one thing at a time.
        let free = |end: &u64| i.helper.is_none() || *end <= i.begin;
        let row = rows_of.iter().position(free).unwrap_or(rows_of.len());
        match rows_of.get_mut(row) {
            Some(end) => *end = i.end,
            None => rows_of.push(i.end),
        }
        rows.push(row);
    }
    let mut first = BTreeMap::new();
    for ((agent, helper), rows_of) in &ends {
        let role = trace.iter().find(|i| i.agent == *agent).map_or("", |i| i.role.as_str()).replace('`', "");
        first.insert((*agent, *helper), picture.lanes.len());
        for row in 0..rows_of.len() {
            let name = match helper {
                None => role.clone(),
                Some(helper) if row == 0 => (*helper).to_owned(),
                Some(_) => String::new(),
            };
            picture.lanes.push(Lane { name, inner: helper.is_some(), begins: helper.is_none() });
        }
    }
    trace.iter().zip(rows).map(|(i, row)| first.get(&(i.agent, i.helper)).map_or(0, |lane| lane + row)).collect()
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
    // An interval within one step is one step wide.
    let to = if i.helper.is_none() && !waits { i.end + 1 } else { i.end.max(i.begin + 1) };
    Span { lane, from: i.begin, to, tone, time: i.time, text, mark }
}

/// Adds a line from the event that ended a wait: the last end or action, before the end of the wait, of an agent for which it waited.
fn links(trace: &[Interval], lanes: &[usize], picture: &mut Timeline) {
    // The intervals of each slot, by their ends.
    let mut done: BTreeMap<(&str, Option<u64>), Vec<usize>> = BTreeMap::new();
    for (n, i) in trace.iter().enumerate().filter(|(_, i)| i.waits_for.is_empty() && !i.what.is_empty()) {
        done.entry((i.what.as_str(), i.slot)).or_default().push(n);
    }
    for all in done.values_mut() {
        all.sort_by_key(|n| (trace[*n].end, trace[*n].helper.is_some()));
    }
    for (wait, to) in trace.iter().zip(lanes).filter(|(i, _)| !i.waits_for.is_empty()) {
        let Some(all) = done.get(&(wait.what.as_str(), wait.slot)) else { continue };
        let before = &all[..all.partition_point(|n| trace[*n].end <= wait.end)];
        let others = before.iter().rev().take_while(|n| trace[**n].end >= wait.begin);
        // A role that fills waits for earlier ring times of the slot, a role that reads for the ring time itself.
        let fits = |time: Option<u64>| if wait.op.ends_with("acquire") { time < wait.time } else { time == wait.time };
        let last = others.copied().find(|n| wait.waits_for.contains(&trace[*n].role) && fits(trace[*n].time));
        if let Some(cause) = last {
            let at = if trace[cause].helper.is_some() { trace[cause].end } else { trace[cause].end + 1 };
            picture.links.push(Link { from: (lanes[cause], at.min(wait.end)), to: (*to, wait.end) });
        }
    }
}

/// Adds a row for each slot of each ring: being filled, ready, being read.
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
