//! Random programs: what is accepted runs to its end for every extent that is tried, and of what runs little is refused.

use super::program::{Args, Count, FLAGS, Guard, Item, Program};
use titan_core::diag::Code;

/// A xorshift generator.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

pub(crate) fn below(rng: &mut Rng, n: usize) -> usize {
    rng.below(n as u64) as usize
}

/// What both sides do, in one structure, so that many programs are good: then some are changed.
fn pair(rng: &mut Rng, depth: u64, rings: usize, out: [&mut Vec<Item>; 2], looped: bool) {
    let [fill, read] = out;
    for _ in 0..=rng.below(2) {
        let ring = rng.below(rings as u64) as usize;
        match rng.below(if depth == 0 { 3 } else { 7 }) {
            0 | 1 => {
                fill.push(Item::Fill(ring));
                read.push(Item::Read(ring));
            }
            2 => {
                let other = rng.below(rings as u64) as usize;
                fill.extend([Item::Fill(ring), Item::Fill(other)]);
                read.extend([
                    Item::Take(ring, 10 + depth as usize),
                    Item::Read(other),
                    Item::Give(10 + depth as usize),
                ]);
            }
            3 if looped => {
                let guard = guard(rng);
                let (mut a, mut b) = (Vec::new(), Vec::new());
                pair(rng, 0, rings, [&mut a, &mut b], looped);
                fill.push(Item::If(guard, a));
                read.push(Item::If(guard, b));
            }
            _ => {
                let count = count(rng);
                let (mut a, mut b) = (Vec::new(), Vec::new());
                pair(rng, depth - 1, rings, [&mut a, &mut b], true);
                fill.push(Item::Loop(count, a));
                read.push(Item::Loop(count, b));
            }
        }
    }
}

fn guard(rng: &mut Rng) -> Guard {
    match rng.below(3) {
        0 => Guard::From(rng.below(3) as i64),
        1 => Guard::Below(rng.below(3) as i64, count(rng)),
        _ => Guard::Data(rng.below(FLAGS as u64) as usize, i64::from(rng.one_in(3))),
    }
}

/// Arguments to try: all small extents, and inputs that say always, never, and now and then.
fn all_args() -> impl Iterator<Item = Args> {
    let mut rng = Rng(0x1234_5678_9abc_def1);
    let extents = (0..9).flat_map(|n| (0..5).map(move |m| [n, m]));
    extents.flat_map(move |extents| {
        let said = [[0, 0], [0, u64::MAX], [u64::MAX, 0], [rng.next(), rng.next()], [rng.next(), rng.next()]];
        said.map(|flags| Args { extents, flags })
    })
}

fn count(rng: &mut Rng) -> Count {
    match rng.below(5) {
        0 => Count { extent: None, more: rng.below(4) as i64 },
        1 => Count { extent: Some(1), more: 0 },
        _ => Count { extent: Some(0), more: rng.below(3) as i64 - 1 },
    }
}

/// One change somewhere: an item dropped, doubled or swapped, a count that is off.
fn change(rng: &mut Rng, items: &mut Vec<Item>) {
    if items.is_empty() {
        return;
    }
    let at = rng.below(items.len() as u64) as usize;
    if let (Item::Loop(_, body) | Item::If(_, body), false) = (&mut items[at], rng.one_in(3)) {
        return change(rng, body);
    }
    match rng.below(4) {
        0 if matches!(items[at], Item::Fill(_) | Item::Read(_)) => drop(items.remove(at)),
        1 if matches!(items[at], Item::Fill(_) | Item::Read(_) | Item::Loop(..)) => {
            let again = items[at].clone();
            items.insert(at, again);
        }
        2 => match &mut items[at] {
            Item::Loop(count, _) => count.more += if rng.one_in(2) { 1 } else { -1 },
            Item::If(guard, _) => *guard = self::guard(rng),
            _ => {}
        },
        _ => {
            let other = rng.below(items.len() as u64) as usize;
            let whole = |i: &Item| matches!(i, Item::Fill(_) | Item::Read(_) | Item::Loop(..) | Item::If(..));
            if whole(&items[at]) && whole(&items[other]) && !items.iter().any(|i| matches!(i, Item::Take(..))) {
                items.swap(at, other);
            }
        }
    }
}

fn program(rng: &mut Rng) -> Program {
    let rings = 1 + rng.below(2) as usize;
    let slots = (0..rings).map(|_| 1 + rng.below(4) as usize).collect();
    let (mut fill, mut read) = (Vec::new(), Vec::new());
    pair(rng, 2, rings, [&mut fill, &mut read], false);
    for _ in 0..rng.below(3) {
        let side = if rng.one_in(2) { &mut fill } else { &mut read };
        change(rng, side);
    }
    let mut roles = vec![fill, read.clone()];
    if rng.one_in(4) {
        if rng.one_in(3) {
            change(rng, &mut read);
        }
        roles.push(read);
    }
    Program { slots, roles }
}

/// A program of one thread: what both sides do, the reading side some items later.
pub(crate) fn single(rng: &mut Rng) -> Program {
    let rings = 1 + rng.below(2) as usize;
    let slots = (0..rings).map(|_| 1 + rng.below(5) as usize).collect();
    let (mut fill, mut read) = (Vec::new(), Vec::new());
    pair(rng, 0, rings, [&mut fill, &mut read], true);
    let late = rng.below(3) as i64;
    let body = if rng.one_in(3) {
        let body = vec![Item::If(Guard::Below(0, NS), fill), Item::If(Guard::From(late), read)];
        Item::Loop(Count { extent: Some(0), more: late }, body)
    } else {
        let mut body = fill;
        body.extend(read);
        Item::Loop(NS, body)
    };
    let mut items = vec![body];
    if rng.one_in(3) {
        items = vec![Item::Loop(Count { extent: Some(1), more: 0 }, items)];
    }
    Program { slots, roles: vec![items] }
}

const NS: Count = Count { extent: Some(0), more: 0 };

/// Every ring is filled and read by somebody.
fn is_whole(program: &Program) -> bool {
    let text = program.text();
    (0..program.slots.len()).all(|r| text.contains(&format!("acquire<{r}>")) && text.contains(&format!("ready<{r}>")))
}

#[test]
fn what_is_accepted_runs() {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let (mut good, mut refused, mut bad, mut said) = (0, Vec::new(), 0, 0);
    for _ in 0..3000 {
        let program = program(&mut rng);
        if !is_whole(&program) {
            continue;
        }
        let verdict = program.verdict();
        let failing = all_args().find(|args| !program.runs(*args));
        match (verdict, failing) {
            (None, None) => {
                good += 1;
                said += usize::from(program.text().contains("get %flags"));
            }
            (None, Some(args)) => panic!("accepted, but it does not run for {args:?}\n{}", program.text()),
            (Some(_), Some(_)) => bad += 1,
            (Some(Code::RolesDiverge), None) => refused.push((Code::RolesDiverge, program)),
            // What was only not shown is told as that: anything else happens, if not for extents as small as these.
            (Some(code), None) => {
                let large = [0, 1, 2, 3, 5, 20, 40];
                let mut all = large.iter().flat_map(|n| large.map(|m| Args { extents: [*n, m], flags: [0, 0] }));
                assert!(all.any(|args| !program.runs(args)), "{code:?}, but it runs\n{}", program.text());
                bad += 1;
            }
        }
    }
    println!(
        "{good} good, {said} of them with guards that inputs decide, {bad} bad, {} run but are refused",
        refused.len()
    );
    for (code, program) in refused.iter().take(4) {
        println!("{code:?} {program:?}");
    }
    assert!(good > 500 && bad > 300 && said > 50, "too few of one kind to say anything");
    assert!(refused.len() * 20 < good, "{} of {good} programs that run are refused", refused.len());
}
