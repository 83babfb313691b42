//! Random nests of control flow in lane IR: loops of both kinds, branches, `break`, `continue` and `return` under conditions that all lanes,
//! the lanes of a wave, or no two lanes have in common, with carried values and results of every width.
//!
//! Each thread mixes what it does into a few variables, at every point of its way, and writes them at the end; a thread that returns
//! early writes before. The evaluation of the lane IR is the reference: it keeps the lanes of each way as a set, and shares nothing with
//! the masks of the code generator.

use crate::kernels::both::Launch;
use crate::launch::Ready;
use crate::machine::Rng;
use crate::tensor::Tensor;
use titan_core::ir::{Elem, Pred};
use titan_core::lane::{Builder, Func, IntBin, OpKind, Space, Ty, Value, verify};
use titan_core::launch::abi::Slot;

const THREADS: u32 = 128;

/// The variables: two words, a double word, a half and a condition.
const VARIABLES: [Ty; 5] = [Ty::B32, Ty::B32, Ty::B64, Ty::B16, Ty::Pred];

const WORD: OpKind = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false };

struct Gen<'r> {
    rng: &'r mut Rng,
    b: Builder,
    vars: Vec<Value>,
    /// The thread's own input and result cells, and values of each level of uniformity.
    from: Value,
    out: Value,
    thread: Value,
    warp: Value,
    program: Value,
    input: Value,
    /// Whether each enclosing loop counts: those end by themselves.
    loops: Vec<bool>,
    /// How much may still be generated.
    left: u32,
    counter: u64,
}

impl<'r> Gen<'r> {
    /// A function whose thread has its variables.
    fn begin(rng: &'r mut Rng) -> Gen<'r> {
        let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
        let mut b = Builder::new("nest", slots, THREADS, 64);
        let (program, thread) = (b.one(OpKind::ProgramId(0), &[]), b.one(OpKind::ThreadId, &[]));
        let warp = b.one(OpKind::WarpId, &[]);
        let all = b.i32(THREADS.cast_signed());
        let first = b.mul(program, all);
        let index = b.add(first, thread);
        let mut cell = |slot: u32, bytes: i32| {
            let (base, bytes) = (b.one(OpKind::Slot(slot), &[]), b.i32(bytes));
            let offset = b.one(OpKind::MulWide { signed: false }, &[index, bytes]);
            b.add(base, offset)
        };
        let (from, out) = (cell(0, 4), cell(1, 16));
        let input = b.one(WORD, &[from]);
        let scalar = b.one(OpKind::Slot(2), &[]);
        let wide = b.widen(input);
        let half = b.one(OpKind::Truncate(Ty::B16), &[input]);
        let one = b.i32(1);
        let low = b.and(input, one);
        let zero = b.i32(0);
        let cond = b.cmp_u(Pred::Ne, low, zero);
        let vars = vec![input, scalar, wide, half, cond];
        let left = 6 + rng.below(14);
        Gen { rng, b, vars, from, out, thread, warp, program, input, loops: vec![], left, counter: 0 }
    }

    /// The function, in which each thread writes its variables at the end.
    fn end(mut self) -> Option<Func> {
        self.write();
        self.b.terminate(OpKind::Return, &[]);
        checked(self.b)
    }
}

fn checked(b: Builder) -> Option<Func> {
    let func = b.finish().ok()?;
    verify(&func).ok().map(|()| func)
}

/// A random function.
fn function(rng: &mut Rng) -> Option<Func> {
    let mut g = Gen::begin(rng);
    if g.body(0) { checked(g.b) } else { g.end() }
}

impl Gen<'_> {
    /// Mixes something that tells where the thread is into a variable.
    fn mix(&mut self) {
        self.counter += 1;
        let place = self.rng.below(4) as usize;
        let c = self.b.const_like(self.vars[if place == 3 { 0 } else { place }], 0x9e37 + self.counter as i64 * 77);
        match place {
            0 | 1 => {
                let x = self.b.add(self.vars[place], c);
                let y = if self.rng.below(2) == 0 { self.thread } else { self.vars[1 - place] };
                self.vars[place] = self.b.int(IntBin::Xor, x, y);
            }
            2 => {
                let x = self.b.add(self.vars[2], c);
                let word = self.b.widen(self.vars[0]);
                self.vars[2] = self.b.int(IntBin::Xor, x, word);
            }
            _ => {
                let extend = OpKind::Extend { from: 16, signed: false, to: Ty::B32 };
                let x = self.b.one(extend, &[self.vars[3]]);
                let x = self.b.add(x, c);
                self.vars[3] = self.b.one(OpKind::Truncate(Ty::B16), &[x]);
                self.vars[4] = if self.rng.below(2) == 0 { self.b.not(self.vars[4]) } else { self.cond() };
            }
        }
    }

    /// A condition of a random level of uniformity.
    fn cond(&mut self) -> Value {
        let of = self.rng.below(7);
        let x = match of {
            0 => self.program,
            1 => self.warp,
            2 => self.thread,
            3 => self.vars[0],
            4 => self.vars[1],
            5 => return self.vars[4],
            _ => self.input,
        };
        let (mask, limit) = (self.b.i32(7), self.b.i32(self.rng.below(8).cast_signed()));
        let x = self.b.and(x, mask);
        let pred = self.rng.of(&[Pred::Lt, Pred::Ge, Pred::Eq, Pred::Ne]);
        self.b.cmp_u(pred, x, limit)
    }

    fn write(&mut self) {
        let cond = self.b.one(OpKind::FromPred, &[self.vars[4]]);
        let extend = OpKind::Extend { from: 16, signed: false, to: Ty::B32 };
        let half = self.b.one(extend, &[self.vars[3]]);
        let halves = self.b.one(OpKind::Unpack, &[self.vars[2]]);
        let fold = self.b.int(IntBin::Xor, halves, half);
        let (a, c) = (self.vars[0], self.vars[1]);
        let store = OpKind::Store { space: Space::Global, bytes: 4, n: 4, offset: 0, masked: false };
        self.b.op(store, &[self.out, a, c, fold, cond]);
    }

    /// Fills a block; whether it ended in a terminator.
    fn body(&mut self, depth: u32) -> bool {
        for _ in 0..1 + self.rng.below(4) {
            if self.left == 0 {
                return false;
            }
            self.left -= 1;
            match self.rng.below(9) {
                0..3 => self.mix(),
                3..6 if depth < 5 => self.branch(depth),
                6 | 7 if depth < 4 => self.repeat(depth),
                _ => {
                    if depth > 0 && self.rng.below(3) == 0 && self.leave() {
                        return true;
                    }
                    self.mix();
                }
            }
        }
        false
    }

    /// Leaves a loop, ends an iteration, or returns; whether it could.
    fn leave(&mut self) -> bool {
        let vars = self.vars.clone();
        let n = self.loops.len() as u32;
        if n > 0 && self.rng.below(6) > 0 {
            let target = self.rng.below(n);
            // An iteration of an endless loop ends only at its end, where its count is.
            let counts = self.loops[(n - 1 - target) as usize];
            if counts && self.rng.below(2) == 0 {
                self.b.terminate(OpKind::Continue(target), &vars);
            } else {
                self.b.terminate(OpKind::Break(target), &vars);
            }
            return true;
        }
        self.write();
        self.b.terminate(OpKind::Return, &[]);
        true
    }

    fn branch(&mut self, depth: u32) {
        let (cond, before) = (self.cond(), self.vars.clone());
        let mut open = self.b.begin_if(cond, &VARIABLES);
        if !self.body(depth + 1) {
            let vars = self.vars.clone();
            self.b.terminate(OpKind::Yield, &vars);
        }
        self.vars = before;
        self.b.begin_else(&mut open);
        if self.rng.below(2) == 0 || !self.body(depth + 1) {
            let vars = self.vars.clone();
            self.b.terminate(OpKind::Yield, &vars);
        }
        self.vars = self.b.end(open);
    }

    fn repeat(&mut self, depth: u32) {
        let init = self.vars.clone();
        let endless = self.rng.below(3) == 0;
        self.loops.push(!endless);
        if endless {
            self.endless(depth, &init);
        } else {
            let limit = if self.rng.below(3) == 0 { self.cond() } else { self.b.pred(true) };
            let (few, many) = (self.b.i32(1), self.b.i32(2 + self.rng.below(3).cast_signed()));
            let hi = self.b.select(limit, many, few);
            let (lo, step) =
                (self.b.i32(self.rng.below(2).cast_signed()), self.b.i32(1 + self.rng.below(2).cast_signed()));
            let (open, i, vars) = self.b.begin_for([lo, hi, step], &init);
            self.vars = vars;
            self.vars[0] = self.b.add(self.vars[0], i);
            if !self.body(depth + 1) {
                let vars = self.vars.clone();
                self.b.terminate(OpKind::Continue(0), &vars);
            }
            self.vars = self.b.end(open);
        }
        self.loops.pop();
    }

    /// A loop that counts down by itself, from a number that differs between lanes or does not.
    fn endless(&mut self, depth: u32, init: &[Value]) {
        let of = self.rng.of(&[self.program, self.thread, self.warp, self.input]);
        let mask = self.b.i32(3);
        let count = self.b.and(of, mask);
        let mut first = init.to_vec();
        first.push(count);
        let (open, mut vars) = self.b.begin_loop(&first, &VARIABLES);
        let left = vars.pop().expect("the count");
        self.vars = vars;
        let zero = self.b.i32(0);
        let done = self.b.cmp_s(Pred::Le, left, zero);
        let mut arms = self.b.begin_if(done, &[]);
        let vars = self.vars.clone();
        self.b.terminate(OpKind::Break(0), &vars);
        self.b.begin_else(&mut arms);
        self.b.terminate(OpKind::Yield, &[]);
        self.b.end(arms);
        if !self.body(depth + 1) {
            let less = self.b.add_const(left, -1);
            let mut vars = self.vars.clone();
            vars.push(less);
            self.b.terminate(OpKind::Continue(0), &vars);
        }
        self.vars = self.b.end(open);
    }
}

/// The arguments: random inputs, results of 16 bytes a thread.
pub(crate) fn arguments(rng: &mut Rng) -> Vec<Option<Tensor>> {
    let tensor =
        |n: u32, bytes: Vec<u8>| Tensor { elem: Elem::I32, extents: vec![n], strides: vec![1], bytes, skip: 0 };
    let input = (0..4 * 2 * THREADS).map(|_| rng.word() as u8).collect();
    vec![Some(tensor(2 * THREADS, input)), Some(tensor(8 * THREADS, vec![0; 32 * THREADS as usize])), None]
}

/// The random functions of this many seeds that the verifier accepts.
pub(crate) fn functions(seeds: u64) -> impl Iterator<Item = (u64, Func)> {
    (0..seeds).filter_map(|seed| Some((seed, function(&mut Rng::new(seed))?)))
}

/// Conditions that are the same constant on all ways, but whose ways the lanes of a wave do not have in common: as words, in selections of
/// every width, and of loads.
#[test]
fn conditions_may_be_constants_that_several_ways_have_in_common() {
    for holds in [false, true] {
        let rng = &mut Rng::new(7);
        let mut g = Gen::begin(rng);
        let (divergent, before) = (g.vars[4], g.vars.clone());
        let mut open = g.b.begin_if(divergent, &[Ty::Pred]);
        let cond = g.b.pred(holds);
        g.b.terminate(OpKind::Yield, &[cond]);
        g.b.begin_else(&mut open);
        let cond = g.b.pred(holds);
        g.b.terminate(OpKind::Yield, &[cond]);
        let cond = g.b.end(open)[0];
        for _ in 0..8 {
            g.mix();
        }
        for (var, old) in g.vars.iter_mut().zip(&before).take(4) {
            *var = g.b.select(cond, *var, *old);
        }
        let masked = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: true };
        let loaded = g.b.one(masked, &[g.from, g.vars[1], cond]);
        g.vars[0] = g.b.int(IntBin::Xor, g.vars[0], loaded);
        g.vars[4] = cond;
        let func = g.end().expect("a function");
        same(7, &func);
    }
}

/// A result that only one arm gives, as the other one returns on all ways of its own, is the constant of that arm.
#[test]
fn results_of_arms_that_return_take_no_part_in_constants() {
    let rng = &mut Rng::new(7);
    let mut g = Gen::begin(rng);
    let (outer, inner) = (g.vars[4], g.cond());
    let mut open = g.b.begin_if(outer, &[Ty::Pred, Ty::B32]);
    let mut returns = g.b.begin_if(inner, &[Ty::Pred, Ty::B32]);
    g.write();
    g.b.terminate(OpKind::Return, &[]);
    g.b.begin_else(&mut returns);
    g.write();
    g.b.terminate(OpKind::Return, &[]);
    let never = g.b.end(returns);
    g.b.terminate(OpKind::Yield, &never);
    g.b.begin_else(&mut open);
    let constants = [g.b.pred(true), g.b.i32(77)];
    g.b.terminate(OpKind::Yield, &constants);
    let results = g.b.end(open);
    g.vars[4] = results[0];
    g.vars[1] = g.b.add(g.vars[1], results[1]);
    g.mix();
    same(7, &g.end().expect("a function"));
}

/// Runs what is made of a function, and compares it with its evaluation.
fn same(seed: u64, func: &Func) -> Ready {
    let ready = Ready::new(func).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{func}"));
    let tensors = arguments(&mut Rng::new(seed));
    let launch = Launch { grid: [2, 1, 1], tensors: &tensors, scalar: &|_| 0x1234 };
    let wanted = launch.evaluated(func).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{func}"));
    let found = launch.emulated(func, &ready, seed as usize);
    let found = found.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{func}\n{}", ready.emitted.code));
    if let Some(what) = launch.difference(&found, &wanted) {
        panic!("seed {seed}: {what}\n{func}\n{}", ready.emitted.code);
    }
    ready
}

#[test]
fn nests_leave_what_their_lanes_say() {
    let (mut runs, mut divergent) = (0, 0);
    for (seed, func) in functions(test_depth::cases(6000, 200)) {
        let ready = same(seed, &func);
        runs += 1;
        divergent += usize::from(ready.emitted.code.to_string().contains("s_and_saveexec_b64"));
    }
    assert!(runs >= test_depth::cases(200, 80) && divergent * 2 > runs, "{runs} nests, {divergent} with masks");
}
