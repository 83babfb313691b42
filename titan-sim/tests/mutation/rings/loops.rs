//! Changes of the loops around rings: of how often they run, from where, under which condition, and of what stands in them.

use crate::text::{Text, op, uses};

/// A side of a ring.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Fills,
    Reads,
}

/// The loops of roles in which one side of a ring stands, and the other does not.
pub(super) fn loops(t: &Text, side: Side) -> Vec<usize> {
    let (mine, other) = match side {
        Side::Fills => ("ttg.stage.acquire", "ttg.stage.ready"),
        Side::Reads => ("ttg.stage.ready", "ttg.stage.acquire"),
    };
    let mut heads: Vec<usize> =
        t.ops(mine).into_iter().filter(|i| t.role(*i).is_some()).filter_map(|i| t.around(i)).map(|(h, _)| h).collect();
    heads.dedup();
    heads.retain(|h| !(*h..t.end(*h)).any(|i| op(t.line(i)) == other));
    heads
}

/// The words of `for %i = %lo to %hi step %st`.
pub(super) fn head(line: &str) -> Option<[String; 3]> {
    let word = |after: &str| {
        let at = line.find(after)? + after.len();
        Some(line[at..].split_whitespace().next()?.to_owned())
    };
    let for_at = line.find("for ")?;
    let lo_at = for_at + line[for_at..].find(" = ")? + 3;
    Some([line[lo_at..].split_whitespace().next()?.to_owned(), word(" to ")?, word(" step ")?])
}

/// The index of a loop.
fn index(line: &str) -> Option<String> {
    let at = line.find("for ")? + 4;
    line[at..].trim_start_matches("pipelined ").split_whitespace().next().map(str::to_owned)
}

pub(super) fn bounds(t: &Text, side: Side, change: &str) -> Vec<Text> {
    let edit = |h: usize| {
        let [_, hi, _] = head(t.line(h))?;
        // Where an iteration more reads an element that there is not, it traps, and the rings come to nothing wrong.
        let index = index(t.line(h))?;
        let trap = |i: usize| op(t.line(i)) == "get" && uses(t.line(i)).contains(&index);
        if change == "add" && (h..t.end(h)).any(trap) {
            return None;
        }
        let new = t.with(h, &t.line(h).replacen(&format!(" to {hi} "), " to %changed ", 1));
        let made = format!("%changed = {change} {hi}, %unit");
        Some(new.before(h, &[&made]).with_constants())
    };
    loops(t, side).into_iter().filter_map(edit).collect()
}

pub(super) fn starts(t: &Text, side: Side) -> Vec<Text> {
    let edit = |h: usize| {
        let [lo, hi, _] = head(t.line(h))?;
        Some(
            t.with(h, &t.line(h).replacen(&format!(" = {lo} to {hi} "), &format!(" = %unit to {hi} "), 1))
                .with_constants(),
        )
    };
    loops(t, side).into_iter().filter_map(edit).collect()
}

pub(super) fn steps(t: &Text, side: Side) -> Vec<Text> {
    let edit = |h: usize| {
        let [_, _, step] = head(t.line(h))?;
        // Who takes every second one does so already.
        if t.def(&step).is_some_and(|d| t.line(d).contains("const 2 ")) {
            return None;
        }
        Some(t.with(h, &t.line(h).replacen(&format!(" step {step} "), " step %pair ", 1)).with_constants())
    };
    loops(t, side).into_iter().filter_map(edit).collect()
}

/// The body of a loop under a condition that the first iteration does not meet.
fn guard(t: &Text, h: usize) -> Option<Text> {
    let line = t.line(h);
    if line.contains("carry") {
        return None;
    }
    let index = index(line)?;
    let [lo, _, _] = head(line)?;
    let end = t.end(h);
    let last = (h..end).rev().find(|i| op(t.line(*i)) == "continue")?;
    let condition = format!("%notFirst{h} = gt {index}, {lo}");
    let open = format!("if %notFirst{h} {{");
    Some(t.before(last, &["yield", "} else {", "yield", "}"]).before(h + 1, &[&condition, &open]))
}

pub(super) fn guarded(t: &Text, side: Side) -> Vec<Text> {
    loops(t, side).into_iter().filter_map(|h| guard(t, h)).collect()
}

pub(super) fn both_guarded(t: &Text) -> Vec<Text> {
    let (fills, reads) = (loops(t, Side::Fills), loops(t, Side::Reads));
    let (mut heads, rings) =
        ([fills.clone(), reads.clone()].concat(), t.0.iter().filter(|l| l.contains("pipe(")).count());
    let timed = t.any(&["ttg.stage.acquire", "ttg.stage.ready"]).iter().any(|i| !uses(t.line(*i)).is_empty());
    if timed || fills.is_empty() || reads.is_empty() || rings != 1 || t.0.concat().matches("pipe(").count() != 1 {
        return Vec::new();
    }
    let all = t.any(&["ttg.stage.acquire", "ttg.stage.ready"]);
    if all.iter().any(|i| !t.around(*i).is_some_and(|(h, _)| heads.contains(&h))) {
        return Vec::new();
    }
    // Loops that differ have another first tile each.
    let words: Vec<Option<[String; 3]>> = heads.iter().map(|h| head(t.line(*h))).collect();
    if words.windows(2).any(|w| w[0] != w[1]) {
        return Vec::new();
    }
    heads.sort_unstable();
    let mut new = t.clone();
    for h in heads.into_iter().rev() {
        let Some(next) = guard(&new, h) else { return Vec::new() };
        new = next;
    }
    vec![new]
}

/// Whether a loop has one iteration at most, whatever the arguments are.
pub(super) fn once(t: &Text, h: usize) -> bool {
    let number =
        |name: &str| t.line(t.def(name)?).split("const ").nth(1)?.split_whitespace().next()?.parse::<i64>().ok();
    let words = head(t.line(h)).map(|words| words.map(|w| number(&w)));
    matches!(words, Some([Some(lo), Some(hi), Some(step)]) if lo + step >= hi)
}

/// What depends on nothing, once for all iterations. Once is enough for a loop that runs once, as the first and the last loop of what
/// `pipelined` makes do with two slots.
pub(super) fn hoisted(t: &Text, what: &str) -> Vec<Text> {
    let edit =
        |i: usize| t.around(i).filter(|(h, _)| uses(t.line(i)).is_empty() && !once(t, *h)).map(|(h, _)| t.moved(i, h));
    t.ops(what).into_iter().filter_map(edit).collect()
}

/// Without a loop of a role.
fn absent(t: &Text, side: Side) -> Vec<Text> {
    let edit = |h: usize| {
        if t.line(h).contains("carry") {
            return None;
        }
        let mut new = t.clone();
        new.0.drain(h..=t.end(h));
        Some(new)
    };
    loops(t, side).into_iter().filter_map(edit).collect()
}

/// The only reader: of two that read a ring, the other one is enough.
pub(super) fn absent_reader(t: &Text) -> Vec<Text> {
    if t.ops("ttg.stage.ready").len() == 1 { absent(t, Side::Reads) } else { Vec::new() }
}

pub(super) fn absent_producer(t: &Text) -> Vec<Text> {
    absent(t, Side::Fills)
}
