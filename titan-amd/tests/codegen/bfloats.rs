//! Conversions to `bf16`, minima and maxima beside sums of the same numbers, in random control flow, with NaNs of every kind.

use crate::kernels::both::Launch;
use crate::launch::Ready;
use crate::machine::Rng;
use crate::tensor::Tensor;
use titan_amd::codegen::machine_ir::Inst;
use titan_core::ir::{Elem, Pred};
use titan_core::lane::{Builder, FloatBin, FloatTy, FloatUn, Func, IntBin, Num, OpKind, Space, Ty, Value, verify};
use titan_core::launch::abi::Slot;

const THREADS: u32 = 64;
/// The words that each thread loads.
const WORDS: u32 = 16;
/// The cells of 16 bytes that each thread stores `bf16` in, and those of 4 bytes for `f32`.
const CELLS: u32 = 8;
const NUMBERS: u32 = 8;

struct Gen<'r> {
    rng: &'r mut Rng,
    b: Builder,
    pool: Vec<Value>,
    vars: Vec<Value>,
    halves: Value,
    singles: Value,
    thread: Value,
    left: u32,
    loops: u32,
}

fn address(b: &mut Builder, slot: u32, bytes: u32) -> Value {
    let (thread, bytes) = (b.one(OpKind::ThreadId, &[]), b.i32(bytes.cast_signed()));
    let offset = b.one(OpKind::MulWide { signed: false }, &[thread, bytes]);
    let base = b.one(OpKind::Slot(slot), &[]);
    b.add(base, offset)
}

impl Gen<'_> {
    fn any(&mut self) -> Value {
        let n = self.pool.len() as u32;
        if self.rng.below(3) == 0 {
            return self.rng.of(&self.vars.clone());
        }
        self.pool[self.rng.below(n) as usize]
    }

    fn float(&mut self, bin: FloatBin, x: Value, y: Value) -> Value {
        self.b.one(OpKind::Float(bin, FloatTy::F32), &[x, y])
    }

    fn number(&mut self, kind: u32) -> Value {
        let (x, y, z) = (self.any(), self.any(), self.any());
        match kind {
            0 | 1 => self.b.one(OpKind::FloatUn(FloatUn::Ex2Approx, FloatTy::F32), &[x]),
            2 => self.float(FloatBin::Mul, x, y),
            3 => self.b.one(OpKind::Fma(FloatTy::F32), &[x, y, z]),
            4 => self.float(FloatBin::Sub, x, y),
            5 => self
                .b
                .one(OpKind::FloatUn(self.rng.of(&[FloatUn::Neg, FloatUn::Floor, FloatUn::Abs]), FloatTy::F32), &[x]),
            _ => {
                let bin = self.rng.of(&[FloatBin::Max, FloatBin::Min, FloatBin::Div]);
                self.float(bin, x, y)
            }
        }
    }

    fn sum(&mut self, values: &[Value]) -> Value {
        match values {
            [one] => *one,
            _ => {
                let (low, high) = values.split_at(values.len() / 2);
                let (low, high) = (self.sum(low), self.sum(high));
                let bin = self.rng.of(&[
                    FloatBin::Add,
                    FloatBin::Add,
                    FloatBin::Add,
                    FloatBin::Sub,
                    FloatBin::Mul,
                    FloatBin::Max,
                ]);
                self.float(bin, low, high)
            }
        }
    }

    fn store(&mut self, x: Value) {
        let offset = 4 * self.rng.below(NUMBERS).cast_signed();
        let store = OpKind::Store { space: Space::Global, bytes: 4, n: 1, offset, masked: false };
        self.b.op(store, &[self.singles, x]);
    }

    fn convert(&mut self, values: &[Value]) {
        let mut words = Vec::new();
        let mut halves = Vec::new();
        for value in values {
            halves.push(self.b.one(OpKind::Convert { from: Num::F32, to: Num::Bf16 }, &[*value]));
        }
        for pair in halves.chunks(2) {
            words.push(self.b.one(OpKind::Pack, pair));
        }
        let offset = 16 * self.rng.below(CELLS).cast_signed();
        let store = OpKind::Store { space: Space::Global, bytes: 4, n: 4, offset, masked: false };
        self.b.op(store, &[&[self.halves], &words[..]].concat());
    }

    /// Numbers, sums of them, and conversions.
    fn mix(&mut self) {
        let kind = self.rng.below(7);
        let batches = 1 + self.rng.below(2);
        let mut all = Vec::new();
        for _ in 0..batches {
            let mut own = Vec::new();
            for _ in 0..8 {
                let kind = if self.rng.below(8) == 0 { self.rng.below(7) } else { kind };
                own.push(self.number(kind));
            }
            all.push(own);
        }
        let late = self.rng.below(2) == 0;
        for own in all.clone() {
            if late && self.rng.below(4) == 0 {
                self.convert(&own);
            }
            let total = self.sum(&own);
            if self.rng.below(3) == 0 {
                self.store(total);
            }
            let at = self.rng.below(2) as usize;
            self.vars[at] =
                if self.rng.below(2) == 0 { total } else { self.float(FloatBin::Add, self.vars[at], total) };
            match self.rng.below(6) {
                0 => self.store(own[3]),
                1 => {
                    let m = self.sum(&own[2..5]);
                    self.pool.push(m);
                }
                2 => {
                    let top = own.iter().skip(1).fold(own[0], |a, x| self.float(FloatBin::Max, a, *x));
                    self.vars[1 - at] = top;
                }
                3 => {
                    let low = own.iter().skip(3).fold(own[1], |a, x| self.float(FloatBin::Min, a, *x));
                    self.store(low);
                }
                _ => {}
            }
        }
        if self.left > 0 && self.rng.below(3) == 0 {
            // The numbers are converted in an inner region, or after one in which lanes leave.
            self.branch(Some(&all[0]));
        }
        for own in all {
            if self.rng.below(5) > 0 {
                self.convert(&own);
            }
        }
    }

    fn cond(&mut self) -> Value {
        if self.rng.below(2) == 0 {
            let limit = self.b.i32(self.rng.below(64).cast_signed());
            return self.b.cmp_u(Pred::Lt, self.thread, limit);
        }
        let (x, y) = (self.any(), self.any());
        self.b.one(OpKind::FloatCmp(self.rng.of(&[Pred::Lt, Pred::Ge]), FloatTy::F32), &[x, y])
    }

    fn branch(&mut self, convert: Option<&[Value]>) {
        self.left = self.left.saturating_sub(1);
        let (cond, before) = (self.cond(), self.vars.clone());
        let pool = self.pool.clone();
        let mut open = self.b.begin_if(cond, &[Ty::B32, Ty::B32]);
        let values = convert.filter(|_| self.rng.below(2) == 0);
        match values {
            Some(values) => self.convert(values),
            None => self.body(),
        }
        let vars = self.vars.clone();
        if self.loops > 0 && self.rng.below(2) == 0 {
            let n = self.rng.below(self.loops);
            self.b.terminate(if self.rng.below(2) == 0 { OpKind::Break(n) } else { OpKind::Continue(n) }, &vars);
        } else {
            self.b.terminate(OpKind::Yield, &vars);
        }
        self.pool.clone_from(&pool);
        self.vars = before;
        self.b.begin_else(&mut open);
        if self.rng.below(2) == 0 {
            self.body();
        }
        let vars = self.vars.clone();
        self.b.terminate(OpKind::Yield, &vars);
        self.pool = pool;
        self.vars = self.b.end(open);
    }

    fn repeat(&mut self) {
        let init = self.vars.clone();
        let pool = self.pool.clone();
        let [lo, hi, step] = [0, 1 + self.rng.below(3).cast_signed(), 1].map(|n| self.b.i32(n));
        let (open, _, vars) = self.b.begin_for([lo, hi, step], &init);
        self.vars = vars;
        self.loops += 1;
        self.body();
        self.loops -= 1;
        let vars = self.vars.clone();
        self.b.terminate(OpKind::Continue(0), &vars);
        self.pool = pool;
        self.vars = self.b.end(open);
    }

    fn body(&mut self) {
        for _ in 0..1 + self.rng.below(3) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            match self.rng.below(6) {
                0 => self.branch(None),
                1 if self.loops < 2 => self.repeat(),
                _ => self.mix(),
            }
        }
    }
}

fn function(rng: &mut Rng) -> Option<Func> {
    let slots = vec![Slot::Address(0), Slot::Address(1), Slot::Address(2), Slot::Scalar { param: 3, wide: false }];
    let mut b = Builder::new("bfloats", slots, THREADS, 64);
    let from = address(&mut b, 0, 4 * WORDS);
    let halves = address(&mut b, 1, 16 * CELLS);
    let singles = address(&mut b, 2, 4 * NUMBERS);
    let mut pool = vec![b.one(OpKind::Slot(3), &[])];
    for n in 0..WORDS.cast_signed() / 4 {
        let load = OpKind::Load { space: Space::Global, bytes: 4, n: 4, offset: 16 * n, masked: false };
        pool.extend(b.op(load, &[from]));
    }
    let thread = b.one(OpKind::ThreadId, &[]);
    let vars = pool[1..3].to_vec();
    let left = 3 + rng.below(6);
    let mut g = Gen { rng, b, pool, vars, halves, singles, thread, left, loops: 0 };
    g.body();
    g.mix();
    for at in 0..2 {
        let x = g.vars[at];
        g.store(x);
    }
    g.b.terminate(OpKind::Return, &[]);
    let func = g.b.finish().expect("well typed");
    verify(&func).ok().map(|()| func)
}

#[test]
fn conversions_are_of_numbers_or_replaced() {
    let (mut guarded, mut all, mut threes, mut runs) = (0, 0, 0, 0);
    for seed in 0..test_depth::cases(3000, 100) as u64 {
        let mut rng = Rng::new(seed);
        let Some(func) = function(&mut rng) else { continue };
        runs += 1;
        let ready = Ready::new(&func).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let code = &ready.emitted.code;
        let mut behind = false;
        for inst in code.order.iter().flat_map(|block| code.insts(*block)) {
            guarded += usize::from(behind && inst.name() == "v_cmp_u_f32");
            threes += usize::from(inst.name().starts_with("v_max3") || inst.name().starts_with("v_min3"));
            behind |= inst.name() == "s_endpgm";
        }
        func.walk(&mut |_, op| all += usize::from(matches!(op.kind, OpKind::Convert { .. })));
        let rate = rng.of(&[8, 40, 400, 100_000]);
        let number = |rng: &mut Rng| {
            let special = [
                0x7fff_ffff,
                0xffff_ffff,
                0x7f80_0001,
                0xff80_0001,
                0x7fc0_0000,
                0x7f80_0000,
                0xff80_0000,
                0x8000_0000,
                1,
                0x7fff_8000,
            ];
            let ordinary = f32::from(rng.below(4001) as u16) / 370.0 - 5.0;
            if rng.below(rate) == 0 { rng.of(&special) } else { ordinary.to_bits() }
        };
        let tensor = |elem: Elem, bytes: Vec<u8>| {
            let extents = vec![bytes.len() as u32 * 8 / elem.bits()];
            Some(Tensor { elem, extents, strides: vec![1], bytes, skip: 0 })
        };
        let input = (0..THREADS * WORDS).flat_map(|_| number(&mut rng).to_le_bytes()).collect();
        let zeros = |bytes: u32| vec![0; (THREADS * bytes) as usize];
        let tensors = [
            tensor(Elem::F32, input),
            tensor(Elem::Bf16, zeros(16 * CELLS)),
            tensor(Elem::F32, zeros(4 * NUMBERS)),
            None,
        ];
        let launch = Launch { grid: [1; 3], tensors: &tensors, scalar: &|_| 0.75f32.to_bits().into() };
        let wanted = launch.evaluated(&func).unwrap_or_else(|e| panic!("{seed}: {e}"));
        let found = launch.emulated(&func, &ready, seed as usize).unwrap_or_else(|e| panic!("{seed}: {e}"));
        assert_eq!(launch.difference(&found, &wanted), None, "{seed}");
    }
    assert!(guarded > all / 20 && threes > runs, "{guarded} of {all} guarded, {threes} extremes of three");
}

/// A block behind a kernel of more than 128 KiB is out of reach of a branch at its beginning: each conversion tests its operand then.
#[test]
fn kernels_that_are_too_long_for_guards_have_none() {
    let code = |more: u32| {
        let slots = vec![Slot::Address(0), Slot::Address(1)];
        let mut b = Builder::new("long", slots, THREADS, 64);
        let (from, to) = (address(&mut b, 0, 4), address(&mut b, 1, 32));
        let load = OpKind::Load { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false };
        let x = b.one(load, &[from]);
        let power = OpKind::FloatUn(FloatUn::Ex2Approx, FloatTy::F32);
        let mut scaled = x;
        let powers: Vec<Value> = (0..8)
            .map(|_| {
                scaled = b.one(OpKind::Float(FloatBin::Mul, FloatTy::F32), &[scaled, x]);
                b.one(power.clone(), &[scaled])
            })
            .collect();
        let add = OpKind::Float(FloatBin::Add, FloatTy::F32);
        let sum = powers[1..].iter().fold(powers[0], |sum, power| b.one(add.clone(), &[sum, *power]));
        let convert = OpKind::Convert { from: Num::F32, to: Num::Bf16 };
        let halves: Vec<Value> = powers.iter().map(|power| b.one(convert.clone(), &[*power])).collect();
        let words: Vec<Value> = halves.chunks(2).map(|pair| b.one(OpKind::Pack, pair)).collect();
        let store = |n, offset| OpKind::Store { space: Space::Global, bytes: 4, n, offset, masked: false };
        b.op(store(4, 0), &[&[to], &words[..]].concat());
        let mut last = sum;
        for n in 0..more {
            let other = b.i32(0x1234_5678 + n.cast_signed() * 77);
            last = b.int(if n % 2 == 0 { IntBin::Xor } else { IntBin::Add }, last, other);
        }
        b.op(store(1, 16), &[to, last]);
        b.terminate(OpKind::Return, &[]);
        let ready = Ready::new(&b.finish().expect("well typed")).unwrap_or_else(|e| panic!("{more}: {e}"));
        let names: Vec<&str> = ready
            .emitted
            .code
            .order
            .iter()
            .flat_map(|block| ready.emitted.code.insts(*block))
            .map(Inst::name)
            .collect();
        let end = names.iter().position(|name| *name == "s_endpgm").expect("an end");
        let tests = |names: &[&str]| names.iter().filter(|name| **name == "v_cmp_u_f32").count();
        (names.len(), tests(&names[..end]), tests(&names[end..]))
    };
    let (_, before, behind) = code(10);
    assert_eq!((before, behind), (1, 8));
    let (long, before, behind) = code(17_000);
    assert!(long > 17_000 && (before, behind) == (8, 0), "{long} instructions: {before}, {behind}");
}
