//! The check of barriers against following paths: it complains where two touches of different marks conflict on some path
//! without a barrier between, and nowhere else.

use crate::machine::Rng;
use crate::structure::{Event, marks, paths, role_marks};
use std::collections::BTreeSet;
use titan_core::ir::Pred;
use titan_core::lane::hazard::check;
use titan_core::lane::{Block, Builder, Func, NvOp, Op, OpId, OpKind, Region, Role, Space};

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
    // What stores read whose group is not complete, and the groups committed since.
    let mut stores: Vec<(Touch, u32)> = Vec::new();
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
            Event::Store(_) => {
                accessed = true;
                for (mark, region, write) in &open {
                    let touch = Touch { region: *region, write: *write, mark: *mark, from: i, to: i };
                    all.push(touch);
                    stores.push((touch, 0));
                }
            }
            Event::CommitStores => stores.iter_mut().for_each(|(_, since)| *since += 1),
            Event::WaitStores(n) => {
                let complete = stores.extract_if(.., |(_, since)| *since > *n);
                all.extend(complete.map(|(touch, _)| Touch { to: i, ..touch }));
                open.clear();
                accessed = true;
            }
            Event::Wait(_) => {
                flying.drain(..).for_each(|t| all[t].to = i);
                open.clear();
                accessed = true;
            }
            Event::Enter(_) | Event::Leave | Event::Barrier | Event::Own => {
                open.clear();
                accessed = true;
            }
        }
    }
    // The other copies are never waited for on this path: no barrier would order them, and none is required.
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

/// Where a barrier keeps the touch of a pair away that comes second: in front of its row of marks, or of the roles that it is in
/// and the other is not.
fn settled_at(path: &[Event], (first, second): (usize, usize)) -> OpId {
    let codes = codes(path);
    let enters = codes[second].is_some() && codes[first] != codes[second];
    let at = path[..second].iter().rposition(|event| match event {
        Event::Enter(_) => true,
        Event::Mark(..) => !enters,
        _ => false,
    });
    let mut at = at.expect("an access has a mark");
    while at > 0 && matches!((path[at], path[at - 1]), (Event::Mark(..), Event::Mark(..))) {
        at -= 1;
    }
    match path[at] {
        Event::Mark(id, ..) | Event::Enter(id) => id,
        other => panic!("{other:?} is no place for a barrier"),
    }
}

/// As many barriers as no touches meet with.
fn enough(func: &Func, all: &[Vec<Event>]) -> BTreeSet<OpId> {
    let mut placed = BTreeSet::new();
    for path in all {
        while let Some(pair) = meeting(func, path, &placed) {
            assert!(placed.insert(settled_at(path, pair)), "{pair:?} of {path:?} meet with {placed:?}\n{func}");
        }
    }
    placed
}

/// The function with these barriers: those of a role in its code.
fn with(func: &Func, placed: &BTreeSet<OpId>) -> Func {
    let mut func = func.clone();
    let body = func.body;
    insert(&mut func, body, None, placed);
    func
}

fn insert(func: &mut Func, block: Block, role: Option<Role>, placed: &BTreeSet<OpId>) {
    let lanes = func.lanes;
    let kind = match role {
        None => OpKind::Barrier,
        Some(Role { warps: 1, .. }) => OpKind::WarpBarrier,
        Some(Role { warps, barrier }) => {
            OpKind::Nv(NvOp::NamedBarrier { id: barrier, threads: warps * lanes, wait: true })
        }
    };
    for id in func.block(block).ops.clone() {
        let op = func.op(id).clone();
        if placed.contains(&id) {
            let new = OpId::new(func.ops.len());
            func.ops.push(Op { kind: kind.clone(), args: vec![], results: vec![], regions: vec![], loc: op.loc });
            let ops = &mut func.blocks[block.index()].ops;
            let at = ops.iter().position(|other| *other == id).expect("there");
            ops.insert(at, new);
        }
        for (i, inner) in op.regions.iter().enumerate() {
            let role = if let OpKind::Roles(roles) = &op.kind { Some(roles[i]) } else { role };
            insert(func, *inner, role, placed);
        }
    }
}

/// What the check says of a function with these barriers.
fn complains(func: &Func, placed: &BTreeSet<OpId>) -> bool {
    let mut with = with(func, placed);
    let said = check(&mut with);
    with.walk(&mut |_, op| assert!(!matches!(op.kind, OpKind::Access { .. }), "marks have disappeared"));
    said.is_some()
}

/// Some of the barriers: all, all but one, or any.
fn some(rng: &mut Rng, all: &BTreeSet<OpId>, round: u32) -> BTreeSet<OpId> {
    let mut some = all.clone();
    match round {
        0 => {}
        1..=3 if !all.is_empty() => {
            let one = *all.iter().nth(rng.below(all.len() as u32) as usize).expect("there");
            some.remove(&one);
        }
        _ => some.retain(|_| rng.below(3) > 0),
    }
    some
}

/// How often the check and the paths say the same, by what they say.
#[derive(Default, Debug)]
struct Agreed {
    meets: usize,
    apart: usize,
    /// Complaints where no path that was followed meets.
    more: usize,
}

impl Agreed {
    fn judge(&mut self, seed: u64, func: &Func, all: &[Vec<Event>], exact: bool) {
        let enough = enough(func, all);
        let rng = &mut Rng::new(seed + 77);
        for round in 0..6 {
            let placed = some(rng, &enough, round);
            let pair = all.iter().find_map(|path| meeting(func, path, &placed).map(|pair| (pair, path)));
            match (complains(func, &placed), pair) {
                (true, Some(_)) => self.meets += 1,
                (false, None) => self.apart += 1,
                (false, Some((pair, path))) => {
                    panic!("seed {seed}: {pair:?} of {path:?} meet and nothing is said; {placed:?}\n{func}")
                }
                (true, None) if exact => panic!("seed {seed}: no path meets with {placed:?}\n{}", with(func, &placed)),
                (true, None) => self.more += 1,
            }
        }
    }
}

#[test]
fn it_complains_where_touches_meet_on_some_path_and_nowhere_else() {
    let (mut all, mut exact) = (Agreed::default(), Agreed::default());
    let programs = test_depth::cases(700, 200);
    for seed in 0..programs as u64 {
        let loose = seed % 3 == 0;
        let func = marks(&mut Rng::new(seed), loose, seed % 2 == 0);
        let paths = paths(&func, 600);
        // Large programs have more paths than are listed, stores may be complete after more rounds of a loop, and copies that are never
        // waited for do not count as accesses.
        let loops = func.ops.iter().any(|op| matches!(op.kind, OpKind::For | OpKind::Loop));
        let late = loops && func.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(NvOp::BulkWait { n: 1.., .. })));
        if loose || late || paths.len() >= 400 || func.ops.len() >= 40 {
            all.judge(seed, &func, &paths, false);
        } else {
            exact.judge(seed, &func, &paths, true);
        }
    }
    assert!(7 * exact.meets > 2 * programs && 7 * exact.apart > 2 * programs, "{exact:?}");
    assert!(all.meets > 2 * programs && 7 * all.apart > programs, "{all:?}");
}

#[test]
fn roles_have_barriers_of_their_own_and_the_program_stands_around_them() {
    let mut found = Agreed::default();
    let programs = test_depth::cases(400, 160);
    for seed in 0..programs as u64 {
        let func = role_marks(&mut Rng::new(seed));
        found.judge(seed, &func, &paths(&func, 150), false);
    }
    assert!(2 * found.meets > 5 * programs && 5 * found.apart > programs, "{found:?}");
}

struct Line {
    b: Builder,
}

impl Line {
    fn new(offsets: &[u32]) -> Line {
        let mut b = Builder::new("k", vec![], 64, 32);
        for at in offsets {
            b.buffer("b", 64, *at);
        }
        Line { b }
    }

    fn mark(&mut self, buffer: u32, write: bool) {
        self.b.op(OpKind::Access { region: Region::Buffer(buffer), write }, &[]);
    }

    fn touch(&mut self, buffer: u32, write: bool) {
        self.mark(buffer, write);
        self.access();
    }

    fn access(&mut self) {
        let base = self.b.one(OpKind::SharedBase, &[]);
        self.b.op(OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[base]);
    }

    fn barrier_if(&mut self, stands: bool) {
        if stands {
            self.b.op(OpKind::Barrier, &[]);
        }
    }

    fn copy(&mut self, buffer: u32) {
        self.mark(buffer, true);
        let (to, from) = (self.b.one(OpKind::SharedBase, &[]), self.b.i64(0));
        self.b.op(NvOp::CopyAsync { bytes: 16, offset: 0, masked: false }, &[to, from]);
    }

    fn wait(&mut self) {
        self.b.op(NvOp::CopyCommit, &[]);
        self.b.op(NvOp::CopyWait(0), &[]);
    }

    fn store(&mut self, buffer: u32) {
        self.mark(buffer, false);
        let (map, from, at) = (self.b.i64(0), self.b.one(OpKind::SharedBase, &[]), self.b.i32(0));
        self.b.op(NvOp::BulkStore { rank: 1 }, &[map, from, at]);
        self.b.op(NvOp::BulkCommit, &[]);
    }

    fn wait_stores(&mut self, n: u32) {
        self.b.op(NvOp::BulkWait { n, read: true }, &[]);
    }

    fn says(mut self) -> Option<String> {
        self.b.terminate(OpKind::Return, &[]);
        check(&mut self.b.finish().expect("operands fit"))
    }
}

/// What a wait for groups of stores tells one thread, a barrier must tell the others; of the groups that it leaves, it tells nothing.
#[test]
fn waits_for_stores_are_for_their_groups() {
    for (left, buffer, meets) in [(1, 0, true), (1, 1, false), (0, 0, true), (0, 1, true)] {
        for barrier in [false, true] {
            let mut line = Line::new(&[0, 64]);
            line.store(0);
            line.store(1);
            line.barrier_if(true);
            line.wait_stores(left);
            line.barrier_if(barrier);
            line.touch(buffer, true);
            assert_eq!(line.says().is_some(), meets && !barrier, "{left} left, buffer {buffer} is written");
        }
    }
    // A group that one wait left is told of by the next.
    let mut line = Line::new(&[0, 64]);
    line.store(0);
    line.store(1);
    line.wait_stores(1);
    line.barrier_if(true);
    line.wait_stores(0);
    line.touch(1, true);
    assert!(line.says().is_some());
}

#[test]
fn reads_do_not_wait_for_reads() {
    for (first, second, meets) in [(true, false, true), (false, true, true), (true, true, true), (false, false, false)]
    {
        for barrier in [false, true] {
            let mut line = Line::new(&[0, 64]);
            line.touch(0, first);
            line.barrier_if(barrier);
            line.touch(0, second);
            assert_eq!(line.says().is_some(), meets && !barrier, "write {first} then write {second}");
            // Elsewhere there is nothing to wait for; in the same place there is.
            for (at, meets) in [(64, false), (32, meets), (0, meets)] {
                let mut line = Line::new(&[0, at]);
                line.touch(0, first);
                line.barrier_if(barrier);
                line.touch(1, second);
                assert_eq!(line.says().is_some(), meets && !barrier, "write {first} then write {second} at {at}");
            }
        }
    }
}

#[test]
fn marks_in_a_row_hold_together() {
    // One access touches both; who writes the first must wait for it.
    for barrier in [false, true] {
        let mut line = Line::new(&[0, 64]);
        line.touch(1, true);
        line.barrier_if(true);
        line.mark(0, false);
        line.mark(1, false);
        line.access();
        line.barrier_if(barrier);
        line.touch(0, true);
        assert_eq!(line.says().is_none(), barrier);
    }
}

#[test]
fn every_access_to_shared_memory_has_a_mark() {
    let unmarked = |between: fn(&mut Line)| {
        let mut line = Line::new(&[0]);
        line.touch(0, true);
        between(&mut line);
        line.access();
        line.says()
    };
    // Behind a barrier, or a wait for copies, a mark of before says nothing any more.
    assert_eq!(unmarked(|_| ()), None);
    let said = |line: fn(&mut Line)| unmarked(line).expect("it complains");
    assert!(said(|line| line.barrier_if(true)).contains("without a mark"));
    assert!(said(Line::wait).contains("without a mark"));
    let mut line = Line::new(&[0]);
    line.access();
    assert!(line.says().expect("it complains").contains("without a mark"));
}

#[test]
fn a_barrier_before_a_wait_does_not_settle_the_copy() {
    for (waits, before, after) in
        [(true, false, false), (true, true, false), (true, false, true), (true, true, true), (false, true, false)]
    {
        let mut line = Line::new(&[0, 64]);
        line.copy(0);
        line.barrier_if(before);
        line.touch(1, true);
        if waits {
            line.wait();
        }
        line.barrier_if(after);
        line.touch(0, false);
        assert_eq!(line.says().is_none(), after || !waits, "{waits}, {before}, {after}");
    }
}

#[test]
fn loops_come_round() {
    // Read, then write: the next round's read waits for this round's write, and the write for the read.
    let build = |rounds: bool, own: bool, barriers: [bool; 2]| {
        let mut line = Line::new(&[0]);
        let (lo, hi, one) = (line.b.i32(0), line.b.i32(9), line.b.i32(1));
        let (open, ..) = line.b.begin_for([lo, hi, one], &[]);
        line.barrier_if(barriers[0]);
        line.touch(0, false);
        if own {
            line.barrier_if(barriers[1]);
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
        line.says().is_none()
    };
    for barriers in [[false, false], [false, true], [true, false], [true, true]] {
        assert_eq!(build(true, true, barriers), barriers == [true, true]);
        assert!(build(true, false, barriers), "rounds that only read");
        assert_eq!(build(false, true, barriers), barriers[1], "a loop that never comes round");
    }
}
