//! Random programs of marks, copies and barriers under control that all threads take together; and all their paths.

use crate::machine::Rng;
use titan_core::ir::Pred;
use titan_core::lane::{Block, Builder, Func, NvOp, OpId, OpKind, Region, Role, Space, Value};
use titan_core::launch::abi::Slot;

/// What a path goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Mark(OpId, Region, bool),
    /// A load or store, and the operation.
    Access(OpId),
    Copy(OpId),
    Wait(u32),
    /// A bulk store, the end of a group of these, and a wait for all but the last groups.
    Store(OpId),
    CommitStores,
    WaitStores(u32),
    Barrier,
    /// A barrier of a role.
    Own,
    /// Where the code of a role begins, and where it ends.
    Enter(OpId),
    Leave,
}

pub(crate) struct Gen<'r> {
    rng: &'r mut Rng,
    b: Builder,
    cond: Value,
    loops: u32,
    depth: u32,
    buffers: u32,
    /// Copies that may stay in flight in loops and branches.
    pub(crate) loose: bool,
    /// Whether there are bulk stores.
    stores: bool,
    /// What may be touched here, and whether it may be written; anything if there is nothing. And what in the code of roles.
    pool: Vec<(Region, bool)>,
    pools: Vec<Vec<(Region, bool)>>,
    role: Option<Role>,
}

/// One role of several warps, one of one.
pub(crate) const ROLES: [Role; 2] = [Role { warps: 3, barrier: 4 }, Role { warps: 1, barrier: 9 }];

/// A program in which any buffer may be touched anywhere: for barriers, which do not ask what lies in a buffer.
pub(crate) fn marks(rng: &mut Rng, loose: bool, stores: bool) -> Func {
    let mut b = Builder::new("marks", vec![Slot::Scalar { param: 0, wide: false }], 64, 32);
    let (n, one) = (b.one(OpKind::Slot(0), &[]), b.i32(1));
    let cond = b.cmp_u(Pred::Lt, n, one);
    let buffers = 2 + rng.below(3);
    for i in 0..buffers {
        b.buffer(&format!("b{i}"), 64, 0);
    }
    let mut g =
        Gen { rng, b, cond, loops: 0, depth: 0, buffers, loose, stores, pool: vec![], pools: vec![], role: None };
    g.steps(7);
    if !g.b.is_terminated() {
        g.b.terminate(OpKind::Return, &[]);
    }
    let mut func = g.b.finish().expect("operands fit");
    // Places that overlap in part, in whole, or not.
    for buffer in &mut func.buffers {
        buffer.offset = rng.of(&[0, 0, 32, 64, 64, 128]);
    }
    func
}

/// The same with roles: each has two buffers of its own and a ring with the other; both read two others, and outside anything
/// is touched, also what lies in the same places.
pub(crate) fn role_marks(rng: &mut Rng) -> Func {
    let mut b = Builder::new("roles", vec![Slot::Scalar { param: 0, wide: false }], 128, 32);
    let (n, one) = (b.one(OpKind::Slot(0), &[]), b.i32(1));
    let cond = b.cmp_u(Pred::Lt, n, one);
    // By twos: of both roles, of the first, of the second, of none; then the ring.
    let places = [0, 256, 512, 256, 512];
    (0..9).for_each(|i| {
        b.buffer(&format!("b{i}"), 64, 0);
    });
    let of = |i: usize| [2 * i as u32, 2 * i as u32 + 1].map(Region::Buffer);
    let mut pools = vec![vec![], vec![]];
    for (i, pool) in pools.iter_mut().enumerate() {
        pool.extend(of(0).map(|r| (r, false)));
        pool.extend(of(1 + i).map(|r| (r, true)));
        pool.extend([(Region::Ring(8), true), (Region::Tensor(0), true)]);
    }
    let mut pool: Vec<_> = (0..8).map(|i| (Region::Buffer(i), true)).collect();
    pool.extend([(Region::Ring(8), true), (Region::Buffer(8), true), (Region::Tensor(0), true)]);
    let mut g =
        Gen { rng, b, cond, loops: 0, depth: 0, buffers: 9, loose: false, stores: false, pool, pools, role: None };
    g.steps(4);
    if !g.b.is_terminated() {
        g.roles();
        g.steps(5);
    }
    if !g.b.is_terminated() {
        g.b.terminate(OpKind::Return, &[]);
    }
    let mut func = g.b.finish().expect("operands fit");
    for (i, buffer) in func.buffers.iter_mut().enumerate() {
        buffer.offset = if i == 8 { 1024 } else { places[i / 2] + rng.of(&[0, 32, 64]) };
    }
    func
}

impl Gen<'_> {
    /// The code of each role.
    fn roles(&mut self) {
        let mut open = self.b.begin_roles(&ROLES, &[]);
        let (loops, pools) = (std::mem::take(&mut self.loops), self.pools.clone());
        for (i, pool) in pools.into_iter().enumerate() {
            if i > 0 {
                self.b.begin_else(&mut open);
            }
            self.role = Some(ROLES[i]);
            let around = std::mem::replace(&mut self.pool, pool);
            self.inside(5, OpKind::Yield);
            self.pool = around;
        }
        self.role = None;
        self.loops = loops;
        self.b.end(open);
    }

    /// Something that may be touched, and whether it is written.
    fn region(&mut self, writes: bool) -> (Region, bool) {
        let pool: Vec<_> =
            self.pool.iter().filter(|(r, w)| !writes || (*w && matches!(r, Region::Buffer(_)))).copied().collect();
        let (region, may) = self.rng.of(&pool);
        (region, writes || (may && self.rng.below(2) == 0))
    }

    fn steps(&mut self, most: u32) {
        for _ in 0..1 + self.rng.below(most) {
            if self.b.is_terminated() {
                return;
            }
            self.step();
        }
    }

    fn mark(&mut self) {
        if !self.pool.is_empty() {
            let (region, write) = self.region(false);
            self.b.op(OpKind::Access { region, write }, &[]);
            return;
        }
        let region = match self.rng.below(5) {
            0 => Region::Tensor(self.rng.below(2)),
            _ => Region::Buffer(self.rng.below(self.buffers)),
        };
        let write = self.rng.below(2) == 0;
        self.b.op(OpKind::Access { region, write }, &[]);
    }

    fn access(&mut self) {
        let base = self.b.one(OpKind::SharedBase, &[]);
        self.b.op(OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false }, &[base]);
    }

    fn barrier(&mut self) {
        let kind = match self.role {
            // One of the warp settles nothing where there are more.
            _ if !self.pool.is_empty() && self.rng.below(4) == 0 => OpKind::WarpBarrier,
            None => OpKind::Barrier,
            Some(Role { warps: 1, .. }) => OpKind::WarpBarrier,
            // Where some only arrive, nothing is settled.
            Some(Role { warps, barrier }) => {
                OpKind::Nv(NvOp::NamedBarrier { id: barrier, threads: 32 * warps, wait: self.rng.below(3) > 0 })
            }
        };
        self.b.op(kind, &[]);
    }

    /// A part of the life of bulk stores: any of its steps may be missing.
    fn store(&mut self) {
        if self.rng.below(4) > 0 {
            let region = Region::Buffer(self.rng.below(self.buffers));
            self.b.op(OpKind::Access { region, write: false }, &[]);
            let (map, from, at) = (self.b.i64(0), self.b.one(OpKind::SharedBase, &[]), self.b.i32(0));
            self.b.op(NvOp::BulkStore { rank: 1 }, &[map, from, at]);
        }
        if self.rng.below(4) > 0 {
            self.b.op(NvOp::BulkCommit, &[]);
        }
        if self.rng.below(2) > 0 {
            self.b.op(NvOp::BulkWait { n: self.rng.below(3), read: true }, &[]);
        }
    }

    fn step(&mut self) {
        match self.rng.below(14) {
            // Only in programs without roles, whose stores would be those of their threads.
            0..=1 if self.stores && self.pool.is_empty() => self.store(),
            0..=5 => {
                for _ in 0..1 + self.rng.below(5) / 4 {
                    self.mark();
                }
                for _ in 0..1 + self.rng.below(2) {
                    self.access();
                }
            }
            6 => self.barrier(),
            7 => {
                // A copy; others touch other things before it is waited for.
                let region = if self.pool.is_empty() {
                    Region::Buffer(self.rng.below(self.buffers))
                } else {
                    self.region(true).0
                };
                self.b.op(OpKind::Access { region, write: true }, &[]);
                let (to, from) = (self.b.one(OpKind::SharedBase, &[]), self.b.i64(0));
                self.b.op(NvOp::CopyAsync { bytes: 16, offset: 0, masked: false }, &[to, from]);
                for _ in 0..self.rng.below(3) {
                    self.mark();
                    self.access();
                }
                if !self.loose || self.rng.below(3) > 0 {
                    self.b.op(NvOp::CopyCommit, &[]);
                    self.b.op(NvOp::CopyWait(0), &[]);
                }
            }
            8 | 9 if self.depth < 3 => {
                let mut arms = self.b.begin_if(self.cond, &[]);
                self.inside(4, OpKind::Yield);
                self.b.begin_else(&mut arms);
                self.inside(3, OpKind::Yield);
                self.b.end(arms);
            }
            10 | 11 if self.depth < 3 => {
                let (lo, one) = (self.b.i32(0), self.b.i32(1));
                let hi = self.b.one(OpKind::Slot(0), &[]);
                let (open, ..) = self.b.begin_for([lo, hi, one], &[]);
                self.loops += 1;
                self.inside(5, OpKind::Continue(0));
                self.loops -= 1;
                self.b.end(open);
            }
            12 if self.depth < 3 => {
                let (open, _) = self.b.begin_loop(&[], &[]);
                self.loops += 1;
                self.depth += 1;
                self.steps(2);
                if !self.b.is_terminated() {
                    self.exit(OpKind::Break(0));
                }
                self.depth -= 1;
                if self.b.is_terminated() {
                    self.b.end(open);
                } else {
                    self.inside(3, OpKind::Continue(0));
                    self.b.end(open);
                }
                self.loops -= 1;
            }
            // Behind them and in loops, again.
            13 if self.loops == 1 && self.depth == 1 && !self.pools.is_empty() && self.role.is_none() => self.roles(),
            13 if self.loops > 0 => {
                let n = self.rng.below(self.loops);
                let kind = self.rng.of(if self.role.is_some() { &[0, 0, 1, 1] } else { &[0, 0, 1, 1, 2] });
                self.exit(match kind {
                    0 => OpKind::Break(n),
                    1 => OpKind::Continue(n),
                    _ => OpKind::Return,
                });
            }
            _ => {}
        }
    }

    fn inside(&mut self, most: u32, end: OpKind) {
        self.depth += 1;
        self.steps(most);
        self.depth -= 1;
        if !self.b.is_terminated() {
            self.b.terminate(end, &[]);
        }
    }

    fn exit(&mut self, kind: OpKind) {
        let mut arms = self.b.begin_if(self.cond, &[]);
        self.b.terminate(kind, &[]);
        self.b.begin_else(&mut arms);
        self.b.terminate(OpKind::Yield, &[]);
        self.b.end(arms);
    }
}

/// How a block is left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Out {
    End,
    Break(u32),
    Continue(u32),
    Return,
}

/// All paths through a function with at most two rounds of each loop, as far as there are not too many.
pub(crate) fn paths(func: &Func, most: usize) -> Vec<Vec<Event>> {
    let mut walk = Walk { func, most, role: None };
    walk.block(func.body, vec![vec![]]).into_iter().map(|(path, _)| path).collect()
}

struct Walk<'f> {
    func: &'f Func,
    most: usize,
    role: Option<Role>,
}

impl Walk<'_> {
    fn block(&mut self, block: Block, entry: Vec<Vec<Event>>) -> Vec<(Vec<Event>, Out)> {
        let mut at = entry;
        let mut left: Vec<(Vec<Event>, Out)> = Vec::new();
        for id in &self.func.block(block).ops {
            let op = self.func.op(*id);
            let event = match &op.kind {
                OpKind::Access { region, write } => Some(Event::Mark(*id, *region, *write)),
                OpKind::Load { .. } | OpKind::Store { .. } => Some(Event::Access(*id)),
                OpKind::Nv(NvOp::CopyAsync { .. }) => Some(Event::Copy(*id)),
                OpKind::Nv(NvOp::CopyWait(n)) => Some(Event::Wait(*n)),
                OpKind::Nv(NvOp::BulkStore { .. }) => Some(Event::Store(*id)),
                OpKind::Nv(NvOp::BulkCommit) => Some(Event::CommitStores),
                OpKind::Nv(NvOp::BulkWait { n, .. }) => Some(Event::WaitStores(*n)),
                OpKind::Barrier => Some(Event::Barrier),
                OpKind::WarpBarrier if self.role.is_some_and(|role| role.warps == 1) => Some(Event::Own),
                OpKind::Nv(NvOp::NamedBarrier { wait: true, .. }) => Some(Event::Own),
                _ => None,
            };
            if let Some(event) = event {
                at.iter_mut().for_each(|p| p.push(event));
                continue;
            }
            let out = match &op.kind {
                OpKind::Yield => Out::End,
                OpKind::Break(n) => Out::Break(*n),
                OpKind::Continue(n) => Out::Continue(*n),
                OpKind::Return => Out::Return,
                OpKind::If => {
                    let both: Vec<_> = op.regions.iter().flat_map(|arm| self.block(*arm, at.clone())).collect();
                    at = self.split(both, &mut left);
                    continue;
                }
                OpKind::Roles(roles) => {
                    at.iter_mut().for_each(|p| p.push(Event::Enter(*id)));
                    let mut all = Vec::new();
                    for (role, code) in roles.iter().zip(&op.regions) {
                        self.role = Some(*role);
                        all.extend(self.block(*code, at.clone()));
                    }
                    self.role = None;
                    at = self.split(all, &mut left);
                    at.iter_mut().for_each(|p| p.push(Event::Leave));
                    continue;
                }
                OpKind::For | OpKind::Loop => {
                    at = self.repeat(op.regions[0], op.kind == OpKind::For, at, &mut left);
                    continue;
                }
                _ => continue,
            };
            left.extend(at.into_iter().map(|p| (p, out)));
            return left;
        }
        left
    }

    /// Those that go on, after the others have been put aside.
    fn split(&self, all: Vec<(Vec<Event>, Out)>, left: &mut Vec<(Vec<Event>, Out)>) -> Vec<Vec<Event>> {
        let mut on = Vec::new();
        for (path, out) in all.into_iter().take(self.most) {
            if out == Out::End { on.push(path) } else { left.push((path, out)) }
        }
        on
    }

    fn repeat(
        &mut self,
        body: Block,
        counted: bool,
        entry: Vec<Vec<Event>>,
        left: &mut Vec<(Vec<Event>, Out)>,
    ) -> Vec<Vec<Event>> {
        let mut done = Vec::new();
        let mut at = entry;
        for round in 0..3 {
            if counted {
                done.extend(at.clone());
            }
            if round == 2 && counted {
                break;
            }
            let mut next = Vec::new();
            for (path, out) in self.block(body, at).into_iter().take(self.most) {
                match out {
                    Out::Break(0) => done.push(path),
                    Out::Continue(0) | Out::End => next.push(path),
                    Out::Break(n) => left.push((path, Out::Break(n - 1))),
                    Out::Continue(n) => left.push((path, Out::Continue(n - 1))),
                    Out::Return => left.push((path, Out::Return)),
                }
            }
            at = next;
        }
        done.truncate(self.most);
        done
    }
}
