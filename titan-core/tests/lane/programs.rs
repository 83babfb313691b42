//! Random programs: arithmetic, branches and loops that lanes take together or not, and what lanes do together.

use crate::machine::Rng;
use crate::machine::memory::Memory;
use titan_core::ir::Pred;
use titan_core::lane::{Builder, Func, IntBin, NvOp, OpKind, Role, Shuffle, Space, Ty, Value, Vote};
use titan_core::launch::abi::Slot;

/// Two warps of 32.
pub(crate) const THREADS: u32 = 64;

struct Gen<'r> {
    rng: &'r mut Rng,
    b: Builder,
    words: Vec<Value>,
    conds: Vec<Value>,
    /// Results that each enclosing loop's `break` and `continue` take.
    loops: Vec<(usize, usize)>,
    depth: u32,
    /// The role whose code is being made.
    role: Option<Role>,
    address: Value,
    /// Whether operations that need all lanes stand anywhere.
    meets: bool,
}

/// A random function, which no other analysis has seen.
pub(crate) fn program(rng: &mut Rng, meets: bool) -> Func {
    let slots = vec![Slot::Address(0), Slot::Scalar { param: 1, wide: false }];
    let mut b = Builder::new("random", slots, THREADS, 32);
    let address = b.one(OpKind::Slot(0), &[]);
    let mut words = vec![b.one(OpKind::Slot(1), &[]), b.i32(3), b.one(OpKind::LaneId, &[]), b.one(OpKind::WarpId, &[])];
    if rng.below(2) == 0 {
        words.push(b.one(OpKind::ThreadId, &[]));
    }
    words.push(b.one(OpKind::ProgramId(0), &[]));
    let conds = vec![
        b.cmp_u(Pred::Lt, words[0], words[1]),
        b.cmp_u(Pred::Lt, words[2], words[1]),
        b.cmp_u(Pred::Lt, words[3], words[0]),
    ];
    let mut g = Gen { rng, b, words, conds, loops: vec![], depth: 0, role: None, address, meets };
    g.steps(8);
    g.b.terminate(OpKind::Return, &[]);
    g.b.finish().expect("operands fit")
}

/// Arguments and memory of such a function.
pub(crate) fn arguments(rng: &mut Rng) -> (Vec<u64>, Memory) {
    let mut memory = Memory::new();
    let address = memory.add("data", (0..1024).map(|_| rng.word() as u8).collect());
    (vec![address, rng.below(6).into()], memory)
}

impl Gen<'_> {
    fn word(&mut self) -> Value {
        self.words[self.rng.below(self.words.len() as u32) as usize]
    }

    fn cond(&mut self) -> Value {
        self.conds[self.rng.below(self.conds.len() as u32) as usize]
    }

    fn small(&mut self) -> Value {
        let (x, three) = (self.word(), self.b.i32(3));
        self.b.and(x, three)
    }

    fn steps(&mut self, most: u32) {
        for _ in 0..1 + self.rng.below(most) {
            if self.b.is_terminated() {
                return;
            }
            self.step();
        }
    }

    fn step(&mut self) {
        match self.rng.below(21) {
            0..=3 => {
                let (f, x, y) = (
                    self.rng.of(&[IntBin::Add, IntBin::Xor, IntBin::And, IntBin::Mul, IntBin::MinU]),
                    self.word(),
                    self.word(),
                );
                let z = self.b.int(f, x, y);
                self.words.push(z);
            }
            4 | 5 => {
                let (p, x, y) = (self.rng.of(&[Pred::Lt, Pred::Eq, Pred::Ge]), self.small(), self.small());
                let z = self.b.cmp_u(p, x, y);
                self.conds.push(z);
            }
            6 => {
                let (p, x, y) = (self.cond(), self.word(), self.word());
                let z = self.b.select(p, x, y);
                self.words.push(z);
            }
            7 => {
                let (x, mask) = (self.word(), self.b.i32(63));
                let index = self.b.and(x, mask);
                let four = self.b.i32(4);
                let bytes = self.b.mul(index, four);
                let wide = self.b.widen(bytes);
                let at = self.b.add(self.address, wide);
                let z =
                    self.b.one(OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false }, &[at]);
                self.words.push(z);
            }
            8 => {
                // Each thread has a place of its own behind what is read.
                let (thread, x) = (self.b.one(OpKind::ThreadId, &[]), self.word());
                let wide = self.b.widen(thread);
                let eight = self.b.i64(8);
                let bytes = self.b.mul(wide, eight);
                let at = self.b.add(self.address, bytes);
                let offset = 512 - 4 + 4 * self.rng.below(2) as i32;
                self.b.op(
                    OpKind::Store { space: Space::Global, bytes: 4, n: 1, offset: offset + 4, masked: false },
                    &[at, x],
                );
            }
            9 | 10 if self.meets => self.meet(),
            11..=13 if self.depth < 3 => self.branch(),
            14 | 15 if self.depth < 3 => self.counted(),
            16 if self.depth < 3 => self.free(),
            17 if self.depth > 0 => self.leave(),
            18 if self.meets && self.depth < 3 && self.role.is_none() => self.split(),
            _ => {}
        }
    }

    fn meet(&mut self) {
        let (x, p) = (self.word(), self.cond());
        match self.rng.below(6) {
            0 => self.barrier(),
            1 => {
                let vote = self.rng.of(&[Vote::Any, Vote::All]);
                let z = self.b.one(OpKind::Vote(vote), &[p]);
                self.conds.push(z);
            }
            2 => {
                let z = self.b.one(OpKind::Shuffle(Shuffle::Lane(5)), &[x]);
                self.words.push(z);
            }
            3 => {
                let how = self.rng.of(&[Shuffle::Xor(3), Shuffle::Up(2)]);
                let z = self.b.one(OpKind::Shuffle(how), &[x]);
                self.words.push(z);
            }
            _ => {
                let from = self.small();
                let z = self.b.one(OpKind::Shuffle(Shuffle::Index), &[x, from]);
                self.words.push(z);
            }
        }
    }

    fn barrier(&mut self) {
        let kind = match (self.role, self.rng.below(3)) {
            (Some(Role { warps, barrier }), 0 | 1) => {
                OpKind::Nv(NvOp::NamedBarrier { id: barrier, threads: 32 * warps, wait: self.rng.below(2) == 0 })
            }
            (_, 2) => OpKind::WarpBarrier,
            _ => OpKind::Barrier,
        };
        self.b.op(kind, &[]);
    }

    /// Roles of one warp each, or of both warps at once.
    fn split(&mut self) {
        let roles = match self.rng.below(2) {
            0 => vec![Role { warps: 2, barrier: 3 }],
            _ => vec![Role { warps: 1, barrier: 1 }, Role { warps: 1, barrier: 2 }],
        };
        let n = self.rng.below(3) as usize;
        let around = std::mem::take(&mut self.loops);
        let mut open = self.b.begin_roles(&roles, &vec![Ty::B32; n]);
        for (i, role) in roles.iter().enumerate() {
            if i > 0 {
                self.b.begin_else(&mut open);
            }
            self.role = Some(*role);
            self.arm(n);
        }
        self.role = None;
        self.loops = around;
        let results = self.b.end(open);
        self.words.extend(results);
    }

    /// What is defined inside is forgotten behind.
    fn scoped(&mut self, f: impl FnOnce(&mut Self)) {
        let seen = (self.words.len(), self.conds.len());
        self.depth += 1;
        f(self);
        self.depth -= 1;
        self.words.truncate(seen.0);
        self.conds.truncate(seen.1);
    }

    fn branch(&mut self) {
        let cond = self.cond();
        let n = self.rng.below(3) as usize;
        let mut arms = self.b.begin_if(cond, &vec![Ty::B32; n]);
        self.arm(n);
        self.b.begin_else(&mut arms);
        self.arm(n);
        let results = self.b.end(arms);
        self.words.extend(results);
    }

    fn arm(&mut self, n: usize) {
        self.scoped(|g| {
            g.steps(4);
            if !g.b.is_terminated() {
                let values: Vec<Value> = (0..n).map(|_| g.word()).collect();
                g.b.terminate(OpKind::Yield, &values);
            }
        });
    }

    fn counted(&mut self) {
        let (lo, hi, one) = (self.small(), self.small(), self.b.i32(1));
        let init: Vec<Value> = (0..self.rng.below(3)).map(|_| self.word()).collect();
        let (open, index, carried) = self.b.begin_for([lo, hi, one], &init);
        self.loops.push((init.len(), init.len()));
        self.scoped(|g| {
            g.words.push(index);
            g.words.extend(&carried);
            g.steps(5);
            if !g.b.is_terminated() {
                let values: Vec<Value> = carried.iter().map(|_| g.word()).collect();
                g.b.terminate(OpKind::Continue(0), &values);
            }
        });
        self.loops.pop();
        let results = self.b.end(open);
        self.words.extend(results);
    }

    /// A loop that some condition leaves, and its count at the latest.
    fn free(&mut self) {
        let zero = self.b.i32(0);
        let init = [zero, self.word()];
        let (open, carried) = self.b.begin_loop(&init, &[Ty::B32]);
        self.loops.push((1, usize::MAX));
        self.scoped(|g| {
            g.words.push(carried[1]);
            let limit = g.b.i32(3);
            let late = g.b.cmp_u(Pred::Ge, carried[0], limit);
            let early = g.cond();
            for cond in [late, early] {
                let out = g.word();
                let mut arms = g.b.begin_if(cond, &[]);
                g.b.terminate(OpKind::Break(0), &[out]);
                g.b.begin_else(&mut arms);
                g.b.terminate(OpKind::Yield, &[]);
                g.b.end(arms);
            }
            g.steps(4);
            if !g.b.is_terminated() {
                let (next, x) = (g.b.add_const(carried[0], 1), g.word());
                g.b.terminate(OpKind::Continue(0), &[next, x]);
            }
        });
        self.loops.pop();
        let results = self.b.end(open);
        self.words.extend(results);
    }

    /// Leaves a loop, an iteration, or the function, for those lanes that a condition holds for.
    fn leave(&mut self) {
        let cond = self.cond();
        let n = if self.loops.is_empty() { 0 } else { self.rng.below(self.loops.len() as u32) as usize };
        let around = self.loops.len().checked_sub(1 + n).map(|i| self.loops[i]);
        let (kind, count) = match (self.rng.below(5), around) {
            (0 | 1, Some((breaks, _))) => (OpKind::Break(n as u32), breaks),
            (2 | 3, Some((_, continues))) if continues != usize::MAX => (OpKind::Continue(n as u32), continues),
            (4, _) if self.role.is_none() => (OpKind::Return, 0),
            _ => return,
        };
        let values: Vec<Value> = (0..count).map(|_| self.word()).collect();
        let mut arms = self.b.begin_if(cond, &[]);
        self.b.terminate(kind, &values);
        self.b.begin_else(&mut arms);
        self.b.terminate(OpKind::Yield, &[]);
        self.b.end(arms);
    }
}
