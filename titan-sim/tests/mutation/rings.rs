//! Changes of programs with rings and tokens.

mod loops;

use self::loops::{
    Side, absent_producer, absent_reader, both_guarded, bounds, guarded, head, hoisted, loops, once, starts, steps,
};
use crate::kinds::{Fate, Kind, idle, rings, same, surface};
use crate::sources::Level;
use crate::text::{Text, attribute, indent, op, renamed, results, uses, with_attribute};

pub(crate) const KINDS: &[Kind] = &[
    surface("a release is forgotten", |t| each(t, &["ttg.stage.release"], Text::without)),
    surface("a stage is consumed and not released", |t| each(t, &["ttg.stage.consumed"], swallow)),
    surface("a stage is released twice", |t| each(t, &["ttg.stage.release"], Text::doubled)),
    idle("a stage is consumed twice", |t| each(t, &["ttg.stage.consumed"], Text::doubled)),
    surface("a stage is released before it is read", early_release),
    surface("a stage is accessed after its release", late_view),
    surface("a stage is released while an MMA reads it", |t| swapped_over(t, "ttg.compute.wait", "ttg.stage.release")),
    surface("an MMA is never waited for", |t| forgotten(t, "ttg.compute.wait", "ttg.compute.issue", 2)),
    idle("an MMA is waited for twice", |t| each(t, &["ttg.compute.wait"], Text::doubled)),
    surface("an accumulator is never finished", forgotten_finish),
    surface("an accumulator is finished twice", |t| each(t, &["ttg.acc.finish"], Text::doubled)),
    surface("a stage that an accumulator took is released too", released_too),
    surface("as many MMAs in flight as there are slots", keeps_all),
    surface("a slot is never filled", |t| each(t, FILLS, Text::without)),
    surface("a slot is filled twice", |t| each(t, FILLS, Text::doubled)),
    surface("a slot is taken and dropped", |t| each(t, &["ttg.stage.acquire"], Text::doubled)),
    surface("a stage is requested and dropped", |t| each(t, &["ttg.stage.ready"], Text::doubled)),
    surface("a stage is waited for and dropped", |t| each(t, &["ttg.stage.read_perm"], swallow)),
    idle("a stage is waited for twice", |t| each(t, &["ttg.stage.wait_ready"], Text::doubled)),
    surface("the producer has one tile more", |t| bounds(t, Side::Fills, "add")),
    surface("the producer has one tile fewer", |t| bounds(t, Side::Fills, "sub")),
    surface("a reader has one tile more", |t| bounds(t, Side::Reads, "add")),
    surface("a reader has one tile fewer", |t| bounds(t, Side::Reads, "sub")),
    surface("the producer begins at the second tile", |t| starts(t, Side::Fills)),
    surface("a reader begins at the second tile", |t| starts(t, Side::Reads)),
    surface("the producer takes every second tile", |t| steps(t, Side::Fills)),
    surface("a reader takes every second tile", |t| steps(t, Side::Reads)),
    surface("only the producer leaves out the first tile", |t| guarded(t, Side::Fills)),
    surface("only a reader leaves out the first tile", |t| guarded(t, Side::Reads)),
    surface("a slot is taken once for all tiles", |t| hoisted(t, "ttg.stage.acquire")),
    surface("a stage is requested once for all tiles", |t| hoisted(t, "ttg.stage.ready")),
    surface("a reader never reads", absent_reader),
    surface("the producer never fills", absent_producer),
    surface("one slot of another ring", |t| another_ring(t, "ttg.stage.acquire")),
    surface("one stage of another ring", |t| another_ring(t, "ttg.stage.ready")),
    surface("a reader fills too", second_filler),
    surface("a slot crosses from role to role", crossed),
    idle("a part of a stage is lost", lost_part),
    idle("a part of a stage is joined twice", doubled_part),
    surface("copies run as far ahead as there are slots", too_far_ahead),
    surface("all warps wait for a stage before they fill it", read_first),
    surface("roles that feed each other both wait first", both_wait),
    surface("a store is never waited for", |t| each(t, &["ttg.store.wait"], Text::without)),
    idle("a store is waited for twice", |t| each(t, &["ttg.store.wait"], Text::doubled)),
    surface("what was written is never stored", never_stored),
    surface("what was written is stored twice", |t| {
        each(t, &["ttg.store.issue_tile", "ttg.store.issue"], Text::doubled)
    }),
    idle("a slot is written twice", |t| each(t, &["ttg.stage.write"], Text::doubled)),
    surface("a stage that may be poison is read without a check", unasked),
    surface("poisoned stages are read, valid ones are skipped", wrong_arm),
    Kind { fate: Fate::Idle, ..rings("a role does not end in finalize", finalize_forgotten) },
    Kind { fate: Fate::Idle, ..rings("a role ends in finalize before its work", early_finalize) },
    rings("fewer bytes are expected than are copied", |t| bytes(t, -16)),
    rings("more bytes are expected than are copied", |t| bytes(t, 16)),
    rings("a time that is not the clock's is written", wrong_time),
    rings("a written time starts again with an inner loop", time_again),
    surface("another role updates what a role stores", |t| touched_too(t, "atomic_add")),
    surface("another role scatters to what a role stores", |t| touched_too(t, "scatter")),
    surface("another role gathers from what a role stores", gathered_too),
    same(Level::Rings, "a ring has one slot more", deeper),
    same(Level::Rings, "an unused scalar", |t| vec![t.with_constants()]),
    same(Level::Rings, "a time that is the clock's is written", right_time),
    same(Level::Rings, "an accumulator waits for every MMA", |t| keeps(t, 0)),
    same(Level::Rings, "both sides leave out the first tile", both_guarded),
];

/// What fills a slot.
const FILLS: &[&str] = &["ttg.stage.async_produce", "ttg.stage.zero", "ttg.stage.poison", "ttg.stage.write"];

/// The edit at each such operation.
fn each(t: &Text, ops: &[&str], edit: impl Fn(&Text, usize) -> Text) -> Vec<Text> {
    t.any(ops).into_iter().map(|i| edit(t, i)).collect()
}

/// The text without an operation and without the operations that use its results, if nothing else uses these.
fn swallow(t: &Text, at: usize) -> Text {
    let mut gone = results(t.line(at));
    let mut new = t.without(at);
    while let Some(i) =
        (0..new.0.len()).find(|i| uses(new.line(*i)).iter().any(|u| gone.contains(u)) && !new.line(*i).ends_with('{'))
    {
        gone.extend(results(new.line(i)));
        new = new.without(i);
    }
    new
}

fn early_release(t: &Text) -> Vec<Text> {
    let mut all = Vec::new();
    for release in t.ops("ttg.stage.release") {
        let Some(done) = uses(t.line(release)).first().and_then(|d| t.def(d)) else { continue };
        let Some(perm) = uses(t.line(done)).first().and_then(|p| t.def(p)) else { continue };
        if op(t.line(perm)) != "ttg.stage.read_perm" || !(perm + 1..done).any(|i| op(t.line(i)) == "ttg.stage.view") {
            continue;
        }
        all.push(t.moved(done, perm + 1).moved(release, perm + 2));
    }
    all
}

fn late_view(t: &Text) -> Vec<Text> {
    // Where the arm that reads may never be taken, nothing is read.
    let views = if t.ops("ttg.stage.poisoned").is_empty() { t.ops("ttg.stage.view") } else { Vec::new() };
    let copy = |view: usize| {
        let perm = uses(t.line(view)).first()?.clone();
        let done =
            (view..t.0.len()).find(|i| op(t.line(*i)) == "ttg.stage.consumed" && uses(t.line(*i)).contains(&perm))?;
        let token = results(t.line(done)).first()?.clone();
        let release =
            (done..t.0.len()).find(|i| op(t.line(*i)) == "ttg.stage.release" && uses(t.line(*i)).contains(&token))?;
        if indent(t.line(release)) != indent(t.line(view)) {
            return None;
        }
        let name = results(t.line(view)).first()?.clone();
        let late = renamed(t.line(view), &name, "%late");
        t.def(&perm).map(|_| t.after(release, &[&late, "%lateTile = ttg.stage.read %late"]))
    };
    views.into_iter().filter_map(copy).collect()
}

/// The first operation comes right after the second one that follows it.
fn swapped_over(t: &Text, first: &str, second: &str) -> Vec<Text> {
    let edit = |i: usize| {
        let to = (i..t.0.len()).find(|j| op(t.line(*j)) == second && indent(t.line(*j)) == indent(t.line(i)))?;
        let used = results(t.line(i)).iter().any(|r| (i..to).any(|j| uses(t.line(j)).contains(r)));
        (!used).then(|| t.moved(i, to + 1))
    };
    t.ops(first).into_iter().filter_map(edit).collect()
}

/// Without a wait; what it gave is an operand of what was waited for.
fn forgotten(t: &Text, wait: &str, start: &str, operand: usize) -> Vec<Text> {
    let edit = |i: usize| {
        let (token, result) = (uses(t.line(i)).first()?.clone(), results(t.line(i)).first()?.clone());
        let issue = t.def(&token)?;
        let old = uses(t.line(issue)).get(operand)?.clone();
        (op(t.line(issue)) == start).then(|| t.without(i).named(i, &result, &old))
    };
    t.ops(wait).into_iter().filter_map(edit).collect()
}

fn forgotten_finish(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        let result = results(t.line(i)).first()?.clone();
        let start = t.ops("ttg.acc.start").first().copied().filter(|s| *s < i)?;
        let old = uses(t.line(start)).first()?.clone();
        Some(t.without(i).named(i, &result, &old))
    };
    t.ops("ttg.acc.finish").into_iter().filter_map(edit).collect()
}

fn released_too(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        let perm = uses(t.line(i)).get(1)?.clone();
        let done = format!("%doneTwice = ttg.stage.consumed {perm}");
        Some(t.after(i, &[&done, "ttg.stage.release %doneTwice"]))
    };
    t.ops("ttg.acc.mma").into_iter().filter_map(edit).collect()
}

/// The slots of the first ring.
fn slots(t: &Text) -> Option<i64> {
    let line = t.0.iter().find(|l| l.contains("pipe("))?;
    let at = line.find("pipe(")? + 5;
    line[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
}

fn keeps(t: &Text, n: i64) -> Vec<Text> {
    let edit = |i: usize| {
        let line = t.line(i);
        let (a, b) = (line.find('<')?, line.find('>')?);
        (line[a + 1..b] != n.to_string()).then(|| t.with(i, &format!("{}<{n}>{}", &line[..a], &line[b + 1..])))
    };
    t.ops("ttg.acc.start").into_iter().filter_map(edit).collect()
}

fn keeps_all(t: &Text) -> Vec<Text> {
    let in_loop = t.ops("ttg.acc.mma").iter().any(|i| t.around(*i).is_some());
    slots(t).filter(|_| in_loop).map_or_else(Vec::new, |n| keeps(t, n))
}

fn another_ring(t: &Text, op: &str) -> Vec<Text> {
    if t.0.concat().matches("pipe(").count() < 2 {
        return Vec::new();
    }
    let edit = |i: usize| {
        let line = t.line(i);
        t.with(i, &if line.contains("<0>") { line.replacen("<0>", "<1>", 1) } else { line.replacen("<1>", "<0>", 1) })
    };
    t.ops(op).into_iter().map(edit).collect()
}

fn second_filler(t: &Text) -> Vec<Text> {
    let edit = |h: usize| t.after(h, &["%stray = ttg.stage.acquire<0>", "ttg.stage.zero %stray"]);
    loops(t, Side::Reads).into_iter().map(edit).collect()
}

fn crossed(t: &Text) -> Vec<Text> {
    let slot =
        t.ops("ttg.stage.acquire").into_iter().find(|i| t.role(*i).is_some()).and_then(|i| results(t.line(i)).pop());
    let Some(slot) = slot else { return Vec::new() };
    let zero = format!("ttg.stage.zero {slot}");
    loops(t, Side::Reads).into_iter().map(|h| t.after(h, &[&zero])).collect()
}

fn lost_part(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        let parts = uses(t.line(i));
        let (last, line) = (parts.last()?, t.line(i));
        Some(t.with(i, &line.replacen(&format!(", {last}"), "", 1)))
    };
    t.ops("ttg.rperm.join").into_iter().filter_map(edit).collect()
}

fn doubled_part(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        let parts = uses(t.line(i));
        let (first, last) = (parts.first()?, parts.last()?);
        Some(t.with(i, &t.line(i).replacen(&format!(", {last}"), &format!(", {first}"), 1)))
    };
    t.ops("ttg.rperm.join").into_iter().filter_map(edit).collect()
}

fn too_far_ahead(t: &Text) -> Vec<Text> {
    let Some(slots) = slots(t) else { return Vec::new() };
    let edit = |name: &str| {
        let at = t.def(name)?;
        Some(t.with(at, &format!("    {name} = const {slots} : i32")))
    };
    ["%ahead"].into_iter().filter_map(edit).collect()
}

/// In a loop of all warps, the part that reads comes before the part that fills.
fn read_first(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        if t.role(i).is_some() {
            return None;
        }
        let (h, end) = t.around(i)?;
        if t.ops("ttg.stage.acquire") != [i] {
            return None;
        }
        let ready =
            (i..end).find(|j| op(t.line(*j)) == "ttg.stage.ready" && indent(t.line(*j)) == indent(t.line(i)))?;
        let filled = (i..ready).find(|j| FILLS.contains(&op(t.line(*j))))?;
        let release =
            (ready..end).find(|j| op(t.line(*j)) == "ttg.stage.release" && indent(t.line(*j)) == indent(t.line(i)))?;
        let mut new = t.clone();
        let fill: Vec<String> = new.0.splice(h + 1..=filled, []).collect();
        let at = release + 1 - fill.len();
        new.0.splice(at..at, fill);
        Some(new)
    };
    t.ops("ttg.stage.acquire").into_iter().filter_map(edit).collect()
}

/// Of roles that feed each other, the one that fills first reads first.
fn both_wait(t: &Text) -> Vec<Text> {
    let roles: Vec<usize> = t.ops("ttg.stage.acquire").into_iter().filter(|i| t.role(*i).is_some()).collect();
    let feeds = roles.len() == 2
        && roles.iter().all(|i| t.around(*i).is_some_and(|(h, e)| (h..e).any(|j| op(t.line(j)) == "ttg.stage.ready")));
    if !feeds {
        return Vec::new();
    }
    let edit = |i: &usize| {
        let (_, end) = t.around(*i)?;
        let ready = (*i..end).find(|j| op(t.line(*j)) == "ttg.stage.ready")?;
        let release = (ready..end).find(|j| op(t.line(*j)) == "ttg.stage.release")?;
        let mut new = t.clone();
        let fill: Vec<String> = new.0.splice(*i..ready, []).collect();
        let at = release + 1 - fill.len();
        new.0.splice(at..at, fill);
        Some(new)
    };
    roles.iter().filter_map(edit).collect()
}

fn never_stored(t: &Text) -> Vec<Text> {
    each(t, &["ttg.store.issue_tile", "ttg.store.issue"], swallow)
}

/// Poisoned copies whose stages are read without asking whether they are poison.
fn unasked(t: &Text) -> Vec<Text> {
    if !t.ops("ttg.stage.poisoned").is_empty()
        || t.ops("ttg.stage.read").is_empty()
        || t.0.concat().matches("pipe(").count() != 1
    {
        return Vec::new();
    }
    let edit = |i: usize| {
        let slot = uses(t.line(i)).first()?.clone();
        Some(t.with(i, &format!("ttg.stage.poison {slot}")))
    };
    t.any(&["ttg.stage.async_produce", "ttg.stage.zero"]).into_iter().filter_map(edit).collect()
}

fn wrong_arm(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        let name = results(t.line(i)).pop()?;
        let at = (i..t.0.len()).find(|j| op(t.line(*j)) == "if" && uses(t.line(*j)).contains(&name))?;
        let end = t.end(at);
        let read = (at..t.end(end)).any(|j| op(t.line(j)) == "ttg.stage.read");
        let flipped = format!("%good = xor {name}, %yes");
        read.then(|| {
            t.with(at, &renamed(t.line(at), &name, "%good")).before(at, &["%yes = const true : bool", &flipped])
        })
    };
    t.ops("ttg.stage.poisoned").into_iter().filter_map(edit).collect()
}

fn finalize_forgotten(t: &Text) -> Vec<Text> {
    t.ops("ttg.pipeline.finalize").into_iter().filter(|i| t.role(*i).is_some()).map(|i| t.without(i)).collect()
}

fn early_finalize(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        let role = t.role(i)?;
        let first = *t.lines_of(Some(&role)).first()?;
        (first < i && !t.line(first).trim().is_empty()).then(|| t.moved(i, first))
    };
    t.ops("ttg.pipeline.finalize").into_iter().filter_map(edit).collect()
}

fn bytes(t: &Text, change: i64) -> Vec<Text> {
    let edit =
        |i: usize| attribute(t.line(i), "bytes").map(|b| t.with(i, &with_attribute(t.line(i), "bytes", b + change)));
    t.ops("ttg.stage.async_produce").into_iter().filter_map(edit).collect()
}

/// The index of the loop, where it is the time of the only slot that is taken in it.
fn time(t: &Text, i: usize) -> Option<String> {
    let (h, end) = t.around(i)?;
    let line = t.line(h);
    let [lo, _, step] = head(line)?;
    let only = t.ops("ttg.stage.acquire") == [i] && t.around(h).is_none() && (h..end).all(|j| op(t.line(j)) != "if");
    let zero = |name: &str, text: &str| t.def(name).is_some_and(|d| t.line(d).contains(text));
    // A distributed loop goes on by the number of programs.
    let counts = !line.contains(" distributed ")
        && zero(&lo, "const 0 ")
        && zero(&step, "const 1 ")
        && uses(t.line(i)).is_empty();
    let at = line.find("for ")? + 4;
    (only && counts).then(|| line[at..].split_whitespace().next().unwrap_or_default().to_owned())
}

/// A slot that is taken at a time that is written down.
fn with_time(line: &str, time: &str) -> String {
    format!("{line} {time}")
}

fn wrong_time(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        let index = time(t, i)?;
        let other = format!("%other = add {index}, %unit");
        Some(t.with(i, &with_time(t.line(i), "%other")).before(i, &[&other]).with_constants())
    };
    t.ops("ttg.stage.acquire").into_iter().filter_map(edit).collect()
}

/// The index of a loop as the time, where another loop is around that one.
fn time_again(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        let (h, _) = t.around(i)?;
        let (outer, _) = t.around(h)?;
        let line = t.line(h);
        let [lo, _, step] = head(line)?;
        let number = |name: &str, text: &str| t.def(name).is_some_and(|d| t.line(d).contains(text));
        let counts = number(&lo, "const 0 ") && number(&step, "const 1 ") && uses(t.line(i)).is_empty();
        let often = !once(t, outer) && !once(t, h) && op(t.line(outer)) == "for";
        let at = line.find("for ")? + 4;
        let index = line[at..].split_whitespace().next()?;
        (counts && often).then(|| t.with(i, &with_time(t.line(i), index)))
    };
    t.ops("ttg.stage.acquire").into_iter().filter_map(edit).collect()
}

/// The stores of single elements of an output of one axis: the line, its tensor, and the role.
fn stores(t: &Text) -> Vec<(usize, String)> {
    let one = |i: usize| {
        let tensor = uses(t.line(i)).first()?.clone();
        let whole = t.0.iter().any(|l| l.contains(&format!("{tensor}: mut tensor<f32>[M]")));
        (whole && t.role(i).is_some()).then_some((i, tensor))
    };
    t.ops("set").into_iter().filter_map(one).collect()
}

/// Lines in front of the end of every role but that of a store.
fn in_other_roles(t: &Text, lines: impl Fn(&str) -> Vec<String>) -> Vec<Text> {
    let mut all = Vec::new();
    for (store, tensor) in stores(t) {
        for end in t.ops("ttg.pipeline.finalize") {
            if t.role(end).is_some() && t.role(end) != t.role(store) {
                let lines = lines(&tensor);
                all.push(t.before(end, &lines.iter().map(String::as_str).collect::<Vec<_>>()));
            }
        }
    }
    all
}

/// The first element of an output is written through a view that is exempt from the output rule.
fn touched_too(t: &Text, how: &str) -> Vec<Text> {
    in_other_roles(t, |tensor| {
        vec![
            format!("%sharedView = shared {tensor} : tensor<f32, 1>"),
            "%lanes = iota<1>".to_owned(),
            "%oneValue = const 1.0 : f32".to_owned(),
            "%oneTile = splat %oneValue : tile<1xf32>".to_owned(),
            format!("{how} %sharedView[%lanes], %oneTile"),
        ]
    })
}

fn gathered_too(t: &Text) -> Vec<Text> {
    in_other_roles(t, |tensor| {
        vec![
            format!("%sharedView = shared {tensor} : tensor<f32, 1>"),
            "%lanes = iota<1>".to_owned(),
            "%noValue = const 0.0 : f32".to_owned(),
            "%gathered = gather %sharedView[%lanes] or %noValue".to_owned(),
        ]
    })
}

fn right_time(t: &Text) -> Vec<Text> {
    let edit = |i: usize| time(t, i).map(|index| t.with(i, &with_time(t.line(i), &index)));
    t.ops("ttg.stage.acquire").into_iter().filter_map(edit).collect()
}

fn deeper(t: &Text) -> Vec<Text> {
    let Some(slots) = slots(t).filter(|s| *s < 64) else { return Vec::new() };
    let edit = |i: usize| {
        t.line(i)
            .contains("pipe(")
            .then(|| t.with(i, &t.line(i).replacen(&format!("pipe({slots}"), &format!("pipe({}", slots + 1), 1)))
    };
    (0..t.0.len()).find_map(edit).into_iter().collect()
}
