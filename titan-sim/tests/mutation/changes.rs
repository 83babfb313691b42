//! How programs that state their protocol with barriers and groups are changed: which lines, and how.

use crate::text::{Text, attribute, indent, op, renamed, results, uses, with_attribute};

/// Whether the loop of an operation copies into shared memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copies {
    Yes,
    No,
}

pub(crate) const COPIES: &[&str] =
    &["ttg.nv.cp_async_bulk_tensor.load", "ttg.nv.cp_async_bulk.load", "ttg.nv.cp_async"];

pub(crate) fn each(t: &Text, at: &[usize], edit: impl Fn(&Text, usize) -> Text) -> Vec<Text> {
    at.iter().map(|i| edit(t, *i)).collect()
}

pub(crate) fn copies(t: &Text) -> Vec<usize> {
    t.any(COPIES).into_iter().filter(|i| t.around(*i).is_some()).collect()
}

/// Copies in loops that wait for a free slot by its barrier.
pub(crate) fn guarded_copies(t: &Text) -> Vec<usize> {
    let waits =
        |i: &usize| t.around(*i).is_some_and(|(h, e)| (h..e).any(|j| op(t.line(j)) == "ttg.nv.mbarrier.wait_parity"));
    copies(t).into_iter().filter(waits).collect()
}

pub(crate) fn bulk_loads(t: &Text) -> Vec<usize> {
    t.any(&COPIES[..2])
}

pub(crate) fn expects(t: &Text) -> Vec<usize> {
    t.any(&["ttg.nv.mbarrier.arrive_expect_tx", "ttg.nv.mbarrier.expect_tx"])
}

pub(crate) fn in_loops(t: &Text, name: &str) -> Vec<usize> {
    t.ops(name).into_iter().filter(|i| t.around(*i).is_some()).collect()
}

pub(crate) fn looping(t: &Text, names: &[&str]) -> Vec<usize> {
    in_roles(t, names).into_iter().filter(|i| t.around(*i).is_some()).collect()
}

pub(crate) fn in_roles(t: &Text, names: &[&str]) -> Vec<usize> {
    t.any(names).into_iter().filter(|i| t.role(*i).is_some()).collect()
}

/// What follows in the innermost loop, or in the block, of an operation.
pub(crate) fn rest(t: &Text, at: usize) -> std::ops::Range<usize> {
    let end = t.around(at).map_or_else(
        || (at..t.0.len()).find(|i| indent(t.line(*i)) < indent(t.line(at))).unwrap_or(t.0.len()),
        |(_, e)| e,
    );
    at..end
}

/// The barriers, all slots of them, that a name stands for.
pub(crate) fn barriers_of(t: &Text, name: &str) -> Option<String> {
    let def = t.line(t.def(name)?);
    if op(def) == "ttg.nv.mbarrier.at" { barriers_of(t, uses(def).first()?) } else { Some(name.to_owned()) }
}

/// The first barriers that an operation names.
pub(crate) fn barriers_at(t: &Text, at: usize) -> Option<String> {
    barriers_of(t, uses(t.line(at)).first()?)
}

/// The initialisations of barriers that are waited for: the arrival counts of other barriers have no effect.
pub(crate) fn awaited(t: &Text) -> Vec<usize> {
    let waits = [
        "ttg.nv.mbarrier.wait_parity",
        "ttg.nv.mbarrier.wait",
        "ttg.nv.mbarrier.try_wait",
        "ttg.nv.mbarrier.test_wait",
    ];
    let waited: Vec<Option<String>> = t.any(&waits).into_iter().map(|i| barriers_at(t, i)).collect();
    t.ops("ttg.nv.mbarrier.init").into_iter().filter(|i| waited.contains(&barriers_at(t, *i))).collect()
}

/// Where barriers are made that somebody uses: it does not matter what becomes of the others.
pub(crate) fn used(t: &Text) -> Vec<usize> {
    let uses_it =
        |i: &usize| !["ttg.nv.mbarrier.init", "ttg.nv.mbarrier.inval", "ttg.nv.mbarrier.at"].contains(&op(t.line(*i)));
    let all: Vec<String> =
        (0..t.0.len()).filter(uses_it).flat_map(|i| uses(t.line(i))).filter_map(|name| barriers_of(t, &name)).collect();
    t.ops("ttg.nv.mbarrier.init").into_iter().filter(|i| barriers_at(t, *i).is_some_and(|b| all.contains(&b))).collect()
}

/// Whether a wait is for the end of an access: outside of loops, somebody arrives who had nothing to do with memory before, where all
/// that is waited for is an order.
pub(crate) fn ends_an_access(t: &Text, wait: usize) -> bool {
    let touched = |arrival: usize| {
        let role = t.role(arrival);
        (0..arrival).any(|j| t.role(j) == role && (TOUCHES.contains(&op(t.line(j))) || COPIES.contains(&op(t.line(j)))))
    };
    let mut arrivals =
        t.ops("ttg.nv.mbarrier.arrive").into_iter().filter(|i| barriers_at(t, *i) == barriers_at(t, wait));
    t.around(wait).is_some() || arrivals.all(touched)
}

/// Waits by parity that are followed by a copy, or by a read.
pub(crate) fn waits_of(t: &Text, side: Copies) -> Vec<usize> {
    let is = |i: &usize| {
        let next = rest(t, *i)
            .skip(1)
            .map(|j| op(t.line(j)))
            .find(|o| COPIES.contains(o) || TOUCHES.contains(o) || *o == "ttg.nv.mbarrier.wait_parity");
        match side {
            Copies::Yes => next.is_some_and(|o| COPIES.contains(&o)) && ends_an_access(t, *i),
            Copies::No => next.is_some_and(|o| TOUCHES.contains(&o)),
        }
    };
    t.ops("ttg.nv.mbarrier.wait_parity").into_iter().filter(is).collect()
}

pub(crate) const TOUCHES: &[&str] = &["ttg.region.read", "ttg.region.write", "ttg.nv.wgmma.mma_async"];

/// Which of the names of a copy is the region.
pub(crate) fn target(t: &Text) -> usize {
    let bulk = bulk_loads(t).first().map(|i| uses(t.line(*i)).len());
    bulk.map_or_else(|| t.ops("ttg.nv.cp_async").first().map_or(0, |i| uses(t.line(*i)).len() - 1), |n| n - 2)
}

pub(crate) fn arrives_before(t: &Text, what: &[&str]) -> Vec<Text> {
    let edit = |i: usize| {
        let (h, _) = t.around(i)?;
        let to = (h..i).find(|j| what.contains(&op(t.line(*j))))?;
        let same_block = indent(t.line(to)) == indent(t.line(i));
        let used = uses(t.line(i)).iter().any(|u| t.def(u).is_some_and(|d| d >= to));
        (same_block && !used).then(|| t.moved(i, to))
    };
    t.ops("ttg.nv.mbarrier.arrive").into_iter().filter_map(edit).collect()
}

pub(crate) fn beside(t: &Text, name: &str, operand: usize) -> Vec<Text> {
    beside_of(t, &in_loops(t, name), operand)
}

/// The operand is the next part of what it is a part of. One part has no next one.
pub(crate) fn beside_of(t: &Text, at: &[usize], operand: usize) -> Vec<Text> {
    at.iter().filter_map(|i| next(t, *i, uses(t.line(*i)).get(operand)?)).collect()
}

pub(crate) fn beside_last(t: &Text, at: &[usize]) -> Vec<Text> {
    at.iter().filter_map(|i| next(t, *i, uses(t.line(*i)).last()?)).collect()
}

pub(crate) fn next(t: &Text, at: usize, name: &str) -> Option<Text> {
    let def = t.def(name)?;
    if !["ttg.region.at", "ttg.nv.mbarrier.at"].contains(&op(t.line(def))) {
        return None;
    }
    let of = uses(t.line(def));
    let (whole, index) = (of.first()?, of.get(1)?);
    let maker = t.line(t.def(whole)?);
    let parts = attribute(maker, "parts").or_else(|| attribute(maker, "n"))?;
    let moved = format!("%indexUp = add {index}, %unit");
    let depth = format!("%allParts = const {parts} : i32");
    let beside = format!("%beside = {} {whole}, %indexIn", op(t.line(def)));
    let changed = renamed(t.line(at), name, "%beside");
    (parts > 1).then(|| {
        t.with(at, &changed)
            .before(at, &[&depth, &moved, "%indexIn = rem %indexUp, %allParts", &beside])
            .with_constants()
    })
}

/// Waits for another parity: the opposite one, or always the same.
pub(crate) fn parity(t: &Text, side: Copies, value: Option<&str>) -> Vec<Text> {
    let edit = |i: usize| {
        let parity = uses(t.line(i)).get(1)?.clone();
        t.around(i)?;
        let text = match value {
            Some(v) => t.with(i, &renamed(t.line(i), &parity, v)),
            None => t
                .with(i, &renamed(t.line(i), &parity, "%opposite"))
                .before(i, &[&format!("%opposite = xor {parity}, %unit")]),
        };
        Some(text.with_constants())
    };
    waits_of(t, side).into_iter().filter_map(edit).collect()
}

pub(crate) fn number(t: &Text, at: &[usize], name: &str, change: impl Fn(i64) -> i64) -> Vec<Text> {
    let edit =
        |i: &usize| attribute(t.line(*i), name).map(|v| t.with(*i, &with_attribute(t.line(*i), name, change(v))));
    at.iter().filter_map(edit).collect()
}

pub(crate) fn counted(t: &Text, least: i64) -> Vec<usize> {
    t.ops("ttg.nv.mbarrier.init")
        .into_iter()
        .filter(|i| attribute(t.line(*i), "count").is_some_and(|c| c >= least))
        .collect()
}

pub(crate) fn counted_n(t: &Text) -> Vec<usize> {
    group_waits(t).into_iter().filter(|i| attribute(t.line(*i), "n").is_some_and(|c| c >= 1)).collect()
}

pub(crate) fn group_waits(t: &Text) -> Vec<usize> {
    t.any(&["ttg.nv.cp_async.wait_group", "ttg.nv.wgmma.wait_group", "ttg.nv.bulk_group.wait"])
}

/// Waits for groups without which an operation is in flight: those in loops, and all where copies do not depend on anything.
pub(crate) fn needed_waits(t: &Text) -> Vec<usize> {
    let plain = t.ops("if").is_empty();
    group_waits(t).into_iter().filter(|i| plain || t.around(*i).is_some()).collect()
}

/// Fences of barriers at which the asynchronous proxy arrives.
pub(crate) fn needed_fences(t: &Text) -> Vec<usize> {
    if bulk_loads(t).is_empty() { Vec::new() } else { t.ops("ttg.nv.fence.mbarrier_init") }
}

/// Fences between proxies that come right after an ordinary access, in a loop in which others are told of it or copies are issued.
pub(crate) fn proxy_fences(t: &Text) -> Vec<usize> {
    let after = |i: usize| i > 0 && ["ttg.region.read", "ttg.region.write"].contains(&op(t.line(i - 1)));
    let told = |i: usize| rest(t, i).any(|j| op(t.line(j)).starts_with("ttg.nv."));
    let needed = |i: &usize| t.around(*i).is_some() && after(*i) && told(*i);
    t.ops("ttg.fence.proxy").into_iter().filter(needed).collect()
}

/// An operation that comes right before another one comes after it.
pub(crate) fn after_next(t: &Text, at: &[usize], next: &str) -> Vec<Text> {
    at.iter().filter(|i| op(t.line(**i + 1)) == next).map(|i| t.moved(*i, *i + 2)).collect()
}

pub(crate) fn before_last(t: &Text, at: &[usize]) -> Vec<Text> {
    at.iter().map(|i| t.moved(*i, *i - 1)).collect()
}

/// Fences that come right before an arrival come after the waits of those who copy.
pub(crate) fn the_waiter_fences(t: &Text) -> Vec<Text> {
    let arriving = |i: &&usize| op(t.line(**i + 1)) == "ttg.nv.mbarrier.arrive";
    let (fences, waits) = (proxy_fences(t), waits_of(t, Copies::Yes));
    let Some(fence) = fences.iter().find(arriving).map(|i| t.line(*i).trim().to_owned()) else { return Vec::new() };
    if waits.is_empty() || fences.iter().filter(arriving).count() != fences.len() {
        return Vec::new();
    }
    let mut new = t.clone();
    let mut changes: Vec<(usize, bool)> =
        fences.iter().map(|i| (*i, false)).chain(waits.iter().map(|i| (*i, true))).collect();
    changes.sort_unstable();
    for (at, add) in changes.into_iter().rev() {
        new = if add { new.after(at, &[&fence]) } else { new.without(at) };
    }
    vec![new]
}

pub(crate) fn commits(t: &Text) -> Vec<usize> {
    t.any(&["ttg.nv.cp_async.commit_group", "ttg.nv.wgmma.commit_group", "ttg.nv.bulk_group.commit"])
}

pub(crate) fn announced_twice(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        let (bar, bytes) = (uses(t.line(i)).first()?.clone(), attribute(t.line(i), "bytes")?);
        Some(t.before(i, &[&format!("ttg.nv.mbarrier.expect_tx {bar} {{bytes = {bytes}}}")]))
    };
    t.ops("ttg.nv.mbarrier.arrive_expect_tx").into_iter().filter_map(edit).collect()
}

pub(crate) fn not_announced(t: &Text) -> Vec<Text> {
    let edit = |i: usize| {
        let (bar, state) = (uses(t.line(i)).first()?.clone(), results(t.line(i)).first()?.clone());
        Some(t.with(i, &format!("{state} = ttg.nv.mbarrier.arrive {bar} {{arrivals = 1}}")))
    };
    t.ops("ttg.nv.mbarrier.arrive_expect_tx").into_iter().filter_map(edit).collect()
}

pub(crate) fn early_inval(t: &Text) -> Vec<Text> {
    let edit = |i: usize| uses(t.line(i)).first().map(|bar| t.after(i, &[&format!("ttg.nv.mbarrier.inval {bar}")]));
    used(t).into_iter().filter_map(edit).collect()
}

/// Every part of some barriers is the first one, on all sides.
pub(crate) fn one_for_all(t: &Text) -> Vec<Text> {
    let edit = |alloc: usize| {
        let bars = results(t.line(alloc)).first()?.clone();
        let many = attribute(t.line(alloc), "n").is_some_and(|n| n > 1);
        let mut new = t.clone();
        let mut changed = 0;
        for i in t.ops("ttg.nv.mbarrier.at") {
            let of = uses(t.line(i));
            if of.first() == Some(&bars) && t.around(i).is_some() {
                new = new.with(i, &renamed(t.line(i), of.get(1)?, "%nil"));
                changed += 1;
            }
        }
        (many && changed > 1).then(|| new.with_constants())
    };
    t.ops("ttg.nv.mbarrier.alloc").into_iter().filter_map(edit).collect()
}

/// One role computes its slots with another depth.
pub(crate) fn depth(t: &Text, change: i64) -> Vec<Text> {
    let mut roles: Vec<String> = t.ops("rem").into_iter().filter_map(|i| t.role(i)).collect();
    roles.dedup();
    let edit = |role: &String| {
        let mut new = t.clone();
        let mut depth = None;
        for i in t.lines_of(Some(role)) {
            if !["rem", "div"].contains(&op(t.line(i))) {
                continue;
            }
            let divisor = uses(t.line(i)).get(1)?.clone();
            let line = t.line(t.def(&divisor)?);
            let value: i64 = line.split("const ").nth(1)?.split_whitespace().next()?.parse().ok()?;
            if value > 2 {
                depth = Some(value + change);
                new = new.with(i, &renamed(t.line(i), &divisor, "%otherDepth"));
            }
        }
        let made = format!("    %otherDepth = const {} : i32", depth?);
        Some(new.before(new.top(), &[&made]))
    };
    roles.iter().filter_map(edit).collect()
}

/// The loops of roles that copy, or that do not.
pub(crate) fn loops(t: &Text, side: Copies) -> Vec<usize> {
    let touching = match side {
        Copies::Yes => copies(t),
        Copies::No => t.any(&["ttg.region.read", "ttg.nv.wgmma.mma_async"]),
    };
    let in_roles = touching.into_iter().filter(|i| t.role(*i).is_some());
    let mut heads: Vec<usize> = in_roles.filter_map(|i| t.around(i)).map(|(h, _)| h).collect();
    heads.dedup();
    // Of two readers, one may read less: the other one waits for what comes.
    if side == Copies::No && (heads.len() > 1 || copies(t).is_empty()) {
        return Vec::new();
    }
    heads.retain(|h| {
        let copies = (*h..t.end(*h)).any(|i| COPIES.contains(&op(t.line(i))));
        let meets = (*h..t.end(*h)).any(|i| {
            op(t.line(i)).starts_with("ttg.nv.mbarrier.") || op(t.line(i)).starts_with("ttg.nv.cp_async.mbarrier")
        });
        copies == (side == Copies::Yes) && meets
    });
    heads
}

pub(crate) fn bounds(t: &Text, side: Copies, change: &str) -> Vec<Text> {
    let edit = |h: usize| {
        let line = t.line(h);
        let hi = line[line.find(" to ")? + 4..].split_whitespace().next()?.to_owned();
        let new = t.with(h, &line.replacen(&format!(" to {hi} "), " to %changed ", 1));
        let made = format!("%changed = {change} {hi}, %unit");
        Some(new.before(h, &[&made]).with_constants())
    };
    loops(t, side).into_iter().filter_map(edit).collect()
}

pub(crate) fn starts(t: &Text, side: Copies) -> Vec<Text> {
    let edit = |h: usize| {
        let line = t.line(h);
        let at = line.find("for ")?;
        let lo = line[at..].split(" = ").nth(1)?.split_whitespace().next()?.to_owned();
        Some(t.with(h, &line.replacen(&format!(" = {lo} to "), " = %unit to ", 1)).with_constants())
    };
    loops(t, side).into_iter().filter_map(edit).collect()
}

/// The words of barriers lie in the first region that is not theirs.
pub(crate) fn words_inside(t: &Text) -> Vec<Text> {
    let edit = |alloc: usize| {
        let words = uses(t.line(alloc)).first()?.clone();
        let at = t.def(&words)?;
        let payload = t
            .ops("ttg.region")
            .into_iter()
            .find(|i| *i != at && attribute(t.line(*i), "bytes").is_some_and(|b| b >= 1024))?;
        let offset = attribute(t.line(payload), "offset")?;
        Some(t.with(at, &with_attribute(t.line(at), "offset", offset)))
    };
    t.ops("ttg.nv.mbarrier.alloc").into_iter().take(1).filter_map(edit).collect()
}

pub(crate) fn named(t: &Text, from: &str, to: &str) -> Vec<Text> {
    // Where the others only arrive, somebody must wait.
    let alone = |i: &usize| {
        in_roles(t, &[from])
            .iter()
            .filter(|j| attribute(t.line(**j), "id") == attribute(t.line(*i), "id"))
            .all(|j| t.role(*j) == t.role(*i))
    };
    looping(t, &[from]).into_iter().filter(alone).map(|i| t.with(i, &t.line(i).replacen(from, to, 1))).collect()
}

/// Waits at the cluster's rendezvous before something is touched.
pub(crate) fn readers_wait(t: &Text) -> Vec<usize> {
    let touches = |i: &usize| rest(t, *i).any(|j| TOUCHES.contains(&op(t.line(j))));
    t.ops("ttg.nv.cluster.wait").into_iter().filter(touches).collect()
}

pub(crate) fn moved_before(t: &Text, what: &str, before: &str) -> Vec<Text> {
    let edit = |i: usize| {
        let (h, _) = t.around(i)?;
        let to = (h..i).rev().find(|j| op(t.line(*j)) == before)?;
        Some(t.moved(i, to))
    };
    t.ops(what).into_iter().filter_map(edit).collect()
}

pub(crate) fn replaced(t: &Text, what: &str, from: &str, to: &str) -> Vec<Text> {
    let edit = |i: usize| t.line(i).contains(from).then(|| t.with(i, &t.line(i).replacen(from, to, 1)));
    t.ops(what).into_iter().filter_map(edit).collect()
}

/// The first operation comes after the second one.
pub(crate) fn swapped(t: &Text, first: &str, second: &str) -> Vec<Text> {
    let edit = |i: usize| {
        let to = rest(t, i).find(|j| op(t.line(*j)) == second && indent(t.line(*j)) == indent(t.line(i)))?;
        Some(t.moved(i, to + 1))
    };
    t.ops(first).into_iter().filter_map(edit).collect()
}

/// An element beyond the last one is picked, and not used.
pub(crate) fn beyond(t: &Text, at: &[usize]) -> Vec<Text> {
    let edit = |i: &usize| {
        let of = uses(t.line(*i));
        let (whole, index) = (of.first()?, of.get(1)?);
        let maker = t.line(t.def(whole)?);
        let parts = attribute(maker, "parts").or_else(|| attribute(maker, "n")).unwrap_or(1);
        let depth = format!("%allParts = const {parts} : i32");
        let far = format!("%farIndex = add {index}, %allParts");
        let picked = format!("%far = {} {whole}, %farIndex", op(t.line(*i)));
        Some(t.before(*i, &[&depth, &far, &picked]))
    };
    at.iter().filter_map(edit).collect()
}

/// What a bulk store goes to is read right after it.
pub(crate) fn read_back(t: &Text, at: usize) -> Text {
    let line = t.line(at).trim();
    let to = line.split_once(' ').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(to, _)| to);
    t.after(at, &[&format!("%readBack = get {to}]")])
}

/// Waits of readers that do not depend on a poll yet.
pub(crate) fn unconditional(t: &Text) -> Vec<usize> {
    waits_of(t, Copies::No).into_iter().filter(|i| *i > 0 && !t.line(*i - 1).ends_with('{')).collect()
}

/// A wait that comes only if the phase was not complete before.
pub(crate) fn peeked(t: &Text, at: usize) -> Text {
    let wait = t.line(at).trim().to_owned();
    let poll = wait.replacen("ttg.nv.mbarrier.wait_parity", "%peeked = ttg.nv.mbarrier.test_wait", 1);
    let inner = format!("    {wait}");
    t.with(at, &poll).after(at, &["if %peeked {", "    yield", "} else {", &inner, "    yield", "}"])
}
