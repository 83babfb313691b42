//! Barriers against following paths: where two touches of different marks conflict there must be one, and each must be needed.

use crate::machine::Rng;
use crate::structure::{Event, marks, paths, role_marks};
use std::collections::BTreeSet;
use titan_core::ir::Pred;
use titan_core::lane::hazard::place_barriers;
use titan_core::lane::{Builder, Func, OpId, OpKind, Region, Space};

/// A touch of a region: by which row of marks on the path, from when to when threads may do it.
#[derive(Clone, Copy)]
struct Touch {
    region: Region,
    write: bool,
    mark: usize,
    from: usize,
    to: usize,
}

fn overlap(func: &Func, a: Region, b: Region) -> bool {
    match (a, b) {
        (Region::Ring(a), Region::Ring(b)) if a == b => false,
        (Region::Buffer(a) | Region::Ring(a), Region::Buffer(b) | Region::Ring(b)) => {
            let range = |i: u32| {
                let b = &func.buffers[i as usize];
                b.offset..b.offset + b.bytes
            };
            range(a).any(|byte| range(b).contains(&byte))
        }
        _ => a == b,
    }
}

/// Touches of a path: what an access touches is what the last marks in a row say; copies go on until they are waited for.
fn touches(path: &[Event]) -> Vec<Touch> {
    let mut all: Vec<Touch> = Vec::new();
    let (mut open, mut accessed): (Vec<(usize, Region, bool)>, bool) = (vec![], true);
    let mut flying: Vec<usize> = Vec::new();
    for (i, event) in path.iter().enumerate() {
        match event {
            Event::Mark(_, region, write) => {
                if std::mem::take(&mut accessed) {
                    open.clear();
                }
                let row = open.first().map_or(i, |(first, ..)| *first);
                open.push((row, *region, *write));
            }
            Event::Access(_) | Event::Copy(_) => {
                accessed = true;
                for (mark, region, write) in &open {
                    if matches!(event, Event::Copy(_)) {
                        flying.push(all.len());
                    }
                    all.push(Touch { region: *region, write: *write, mark: *mark, from: i, to: i });
                }
            }
            Event::Wait(_) => flying.drain(..).for_each(|t| all[t].to = i),
            Event::Enter(_) | Event::Leave => {
                open.clear();
                accessed = true;
            }
            Event::Barrier | Event::Own => {}
        }
    }
    // Nobody waits for the rest on this path: no barrier helps, and none is asked for.
    let lost: BTreeSet<usize> = flying.into_iter().collect();
    all.into_iter().enumerate().filter(|(i, _)| !lost.contains(i)).map(|(_, t)| t).collect()
}

/// Where barriers stand on a path, and of all threads or of those of a role: those of the program, and those that were placed.
fn barriers(path: &[Event], placed: &BTreeSet<OpId>) -> Vec<(usize, bool)> {
    let mut inside = false;
    let mut all = Vec::new();
    for (i, event) in path.iter().enumerate() {
        match event {
            Event::Barrier => all.push((i, true)),
            Event::Own => all.push((i, false)),
            Event::Mark(id, ..) if placed.contains(id) => all.push((i, !inside)),
            Event::Enter(id) => {
                inside = true;
                all.extend(placed.contains(id).then_some((i, true)));
            }
            Event::Leave => inside = false,
            _ => {}
        }
    }
    all
}

/// For each place on a path, how often it has come into the code of a role, if it is in it.
fn codes(path: &[Event]) -> Vec<Option<usize>> {
    let (mut n, mut now) = (0, None);
    path.iter()
        .map(|event| {
            if let Event::Enter(_) = event {
                n += 1;
                now = Some(n);
            }
            let here = now;
            if *event == Event::Leave {
                now = None;
            }
            here
        })
        .collect()
}

/// The first pair of touches on a path that meet without a barrier of both.
fn meeting(func: &Func, path: &[Event], placed: &BTreeSet<OpId>) -> Option<(usize, usize)> {
    let (touches, barriers, codes) = (touches(path), barriers(path, placed), codes(path));
    for (i, a) in touches.iter().enumerate() {
        for b in &touches[i + 1..] {
            let conflict = a.mark != b.mark && (a.write || b.write) && overlap(func, a.region, b.region);
            let own = codes[a.to].is_some() && codes[a.to] == codes[b.from];
            let between = |(at, all): &(usize, bool)| (*all || own) && a.to < *at && *at <= b.from;
            if conflict && a.to < b.from && !barriers.iter().any(between) {
                return Some((a.from, b.from));
            }
        }
    }
    None
}

fn placed(func: &Func) -> BTreeSet<OpId> {
    let mut with = func.clone();
    let count = place_barriers(&mut with);
    let is_new = |i: &usize| with.ops[*i].kind != func.ops[*i].kind;
    let mut placed: BTreeSet<OpId> = (0..func.ops.len()).filter(is_new).map(OpId::new).collect();
    // In front of roles they are operations that were not there.
    for block in &with.blocks {
        let pairs = block.ops.iter().zip(block.ops.iter().skip(1));
        placed.extend(pairs.filter(|(new, _)| new.index() >= func.ops.len()).map(|(_, roles)| *roles));
    }
    assert_eq!(placed.len(), count);
    with.walk(&mut |_, op| assert!(!matches!(op.kind, OpKind::Access { .. }), "marks have disappeared"));
    placed
}

#[test]
fn barriers_stand_where_some_path_needs_one() {
    let (mut total, mut kept, mut judged) = (0, 0, 0);
    for seed in 0..1500 {
        let loose = seed % 3 == 0;
        let func = marks(&mut Rng::new(seed), loose);
        let all = paths(&func, 600);
        let placed = placed(&func);
        for path in &all {
            if let Some((a, b)) = meeting(&func, path, &placed) {
                panic!("seed {seed}: touches {a} and {b} of {path:?} meet; {placed:?}\n{func}");
            }
        }
        total += all.len();
        kept += placed.len();
        // Of large programs not all paths are there, and copies that nobody waits for are no touches.
        if loose || all.len() >= 400 || func.ops.len() >= 40 {
            continue;
        }
        judged += placed.len();
        for barrier in &placed {
            let mut less = placed.clone();
            less.remove(barrier);
            let needed = all.iter().any(|path| meeting(&func, path, &less).is_some());
            assert!(needed, "seed {seed}: {barrier} of {placed:?} is not needed\n{func}");
        }
    }
    assert!(total > 10_000 && kept > 1500 && judged > 300, "only {total} paths, {kept} barriers, {judged} judged");
}

#[test]
fn roles_have_barriers_of_their_own_and_the_program_stands_around_them() {
    let (mut total, mut own, mut around) = (0, 0, 0);
    for seed in 0..800 {
        let func = role_marks(&mut Rng::new(seed));
        let all = paths(&func, 150);
        let placed = placed(&func);
        for path in &all {
            if let Some((a, b)) = meeting(&func, path, &placed) {
                panic!("seed {seed}: touches {a} and {b} of {path:?} meet; {placed:?}\n{func}");
            }
        }
        total += all.len();
        let is_roles = |id: &&OpId| matches!(func.op(**id).kind, OpKind::Roles(_));
        around += placed.iter().filter(is_roles).count();
        let mut with = func.clone();
        place_barriers(&mut with);
        titan_core::lane::verify(&with).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{with}"));
        let new = with.ops.iter().zip(&func.ops).filter(|(new, old)| new.kind != old.kind);
        own += new.filter(|(new, _)| matches!(new.kind, OpKind::NamedBarrier { .. } | OpKind::WarpBarrier)).count();
    }
    assert!(total > 10_000 && own > 400 && around > 300, "only {total} paths, {own} and {around} barriers");
}

struct Line {
    b: Builder,
}

impl Line {
    fn new(buffers: u32) -> Line {
        let mut b = Builder::new("k", vec![], 64, 32);
        (0..buffers).for_each(|_| {
            b.buffer("b", 64, 16);
        });
        Line { b }
    }

    fn touch(&mut self, buffer: u32, write: bool) {
        self.b.op(OpKind::Access { region: Region::Buffer(buffer), write }, &[]);
        self.access();
    }

    fn access(&mut self) {
        let base = self.b.one(OpKind::SharedBase, &[]);
        self.b.op(OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[base]);
    }

    /// The number of barriers, with buffers at these places.
    fn count(mut self, offsets: &[u32]) -> usize {
        self.b.terminate(OpKind::Return, &[]);
        let mut func = self.b.finish().expect("operands fit");
        func.buffers.iter_mut().zip(offsets).for_each(|(b, at)| b.offset = *at);
        place_barriers(&mut func)
    }
}

#[test]
fn reads_do_not_wait_for_reads() {
    for (first, second, wanted) in [(true, false, 1), (false, true, 1), (true, true, 1), (false, false, 0)] {
        let mut line = Line::new(2);
        line.touch(0, first);
        line.touch(0, second);
        assert_eq!(line.count(&[0, 64]), wanted, "write {first} then write {second}");
        // Elsewhere there is nothing to wait for; in the same place there is.
        for (at, wanted) in [(64, 0), (32, wanted), (0, wanted)] {
            let mut line = Line::new(2);
            line.touch(0, first);
            line.touch(1, second);
            assert_eq!(line.count(&[0, at]), wanted, "write {first} then write {second} at {at}");
        }
    }
}

#[test]
fn marks_in_a_row_hold_together() {
    // Both are read behind the barrier in front of the second mark; who writes the first must wait for that.
    let mut line = Line::new(2);
    line.touch(1, true);
    line.b.op(OpKind::Access { region: Region::Buffer(0), write: false }, &[]);
    line.b.op(OpKind::Access { region: Region::Buffer(1), write: false }, &[]);
    line.access();
    line.touch(0, true);
    assert_eq!(line.count(&[0, 64]), 2);
}

#[test]
fn a_barrier_before_a_wait_does_not_settle_the_copy() {
    let with = |waits: bool| {
        let mut line = Line::new(2);
        line.b.op(OpKind::Access { region: Region::Buffer(0), write: true }, &[]);
        let (to, from) = (line.b.one(OpKind::SharedBase, &[]), line.b.i64(0));
        line.b.op(OpKind::CopyAsync { bytes: 16, offset: 0, masked: false }, &[to, from]);
        line.touch(1, true);
        line.touch(1, false);
        if waits {
            line.b.op(OpKind::CopyCommit, &[]);
            line.b.op(OpKind::CopyWait(0), &[]);
        }
        line.touch(0, false);
        line.count(&[0, 64])
    };
    assert_eq!(with(true), 2, "one for the other buffer, one for what others have waited for");
    assert_eq!(with(false), 1, "without a wait there is nothing to see");
}

#[test]
fn loops_come_round() {
    // Read, then write: the next round's read waits for this round's write, and the write for the read.
    let build = |rounds: bool, own: bool| {
        let mut line = Line::new(1);
        let (lo, hi, one) = (line.b.i32(0), line.b.i32(9), line.b.i32(1));
        let (open, ..) = line.b.begin_for([lo, hi, one], &[]);
        line.touch(0, false);
        if own {
            line.touch(0, true);
        }
        if !rounds {
            let zero = line.b.i32(0);
            let always = line.b.cmp_u(Pred::Eq, zero, lo);
            let mut arms = line.b.begin_if(always, &[]);
            line.b.terminate(OpKind::Break(0), &[]);
            line.b.begin_else(&mut arms);
            line.b.terminate(OpKind::Return, &[]);
            line.b.end(arms);
        }
        line.b.terminate(OpKind::Continue(0), &[]);
        line.b.end(open);
        line.count(&[0])
    };
    assert_eq!(build(true, true), 2);
    assert_eq!(build(true, false), 0, "rounds that only read");
    assert_eq!(build(false, true), 1, "a loop that never comes round");
}
