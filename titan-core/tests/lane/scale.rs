//! Numbers of slots that loops carry become offsets, and nothing that is computed changes.

use crate::machine::memory::Memory;
use crate::machine::{Machine, Rng};
use titan_core::ir::Pred;
use titan_core::lane::{self, Builder, Func, IntBin, OpKind, Ty, Value, eliminate_dead, verify};
use titan_core::launch::abi::Slot;

/// What a program does besides carrying numbers of slots and multiplying them by one factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Besides {
    Nothing,
    /// It uses a number itself.
    UsesNumber,
    /// It multiplies a number by another factor.
    AnotherFactor,
    /// A loop begins with an argument of the launch, which may be any number.
    AnyNumber,
    /// Some iteration leaves the loop.
    Leaves,
    /// A number is advanced by two.
    ByTwo,
}

const ALL: [Besides; 6] = [
    Besides::Nothing,
    Besides::UsesNumber,
    Besides::AnotherFactor,
    Besides::AnyNumber,
    Besides::Leaves,
    Besides::ByTwo,
];

struct Gen<'r> {
    rng: &'r mut Rng,
    b: Builder,
    slots: i32,
    factor: i32,
    besides: Besides,
    trips: Value,
    any: Value,
}

impl Gen<'_> {
    fn advance(&mut self, number: Value, by: i64) -> Value {
        let (next, slots, zero) = (self.b.add_const(number, by), self.b.i32(self.slots), self.b.i32(0));
        let wraps = self.b.cmp_s(Pred::Eq, next, slots);
        self.b.select(wraps, zero, next)
    }

    fn times(&mut self, number: Value, factor: i32) -> Value {
        let by = if factor.count_ones() == 1 { factor.trailing_zeros().cast_signed() } else { factor };
        let by = self.b.i32(by);
        self.b.int(if factor.count_ones() == 1 { IntBin::Shl } else { IntBin::Mul }, number, by)
    }

    /// `digest · 31 + word`
    fn noted(&mut self, digest: Value, word: Value) -> Value {
        let by = self.b.i32(31);
        let scaled = self.b.mul(digest, by);
        self.b.add(scaled, word)
    }

    /// A loop that carries the digest and numbers; gives what it leaves.
    fn looped(&mut self, digest: Value, numbers: &[Value], inner: bool) -> Vec<Value> {
        let (zero, one) = (self.b.i32(0), self.b.i32(1));
        let begin: Vec<Value> = [&[digest], numbers].concat();
        let (open, at, args) = self.b.begin_for([zero, self.trips, one], &begin);
        let (mut digest, own) = (args[0], args[1..].to_vec());
        for number in &own {
            let offset = self.times(*number, self.factor);
            digest = self.noted(digest, offset);
        }
        if self.besides == Besides::UsesNumber {
            digest = self.noted(digest, own[0]);
        }
        if self.besides == Besides::AnotherFactor {
            let other = self.times(own[0], if self.factor == 3 { 5 } else { 3 });
            digest = self.noted(digest, other);
        }
        if self.besides == Besides::Leaves {
            let two = self.b.i32(2);
            let last = self.b.cmp_s(Pred::Eq, at, two);
            let mut arms = self.b.begin_if(last, &[]);
            // What it leaves with may be the numbers, or others.
            let others = if self.rng.below(2) == 0 { own.clone() } else { vec![one; own.len()] };
            let leaving: Vec<Value> = [&[digest], &others[..]].concat();
            self.b.terminate(OpKind::Break(0), &leaving);
            self.b.begin_else(&mut arms);
            self.b.terminate(OpKind::Yield, &[]);
            self.b.end(arms);
        }
        // One uses an advanced number in an arm, as a copy that is guarded does.
        let next = self.advance(own[0], 1);
        let odd = self.b.and(at, one);
        let is_odd = self.b.cmp_s(Pred::Eq, odd, one);
        let mut arms = self.b.begin_if(is_odd, &[Ty::B32]);
        let offset = self.times(next, self.factor);
        let sum = self.noted(digest, offset);
        self.b.terminate(OpKind::Yield, &[sum]);
        self.b.begin_else(&mut arms);
        self.b.terminate(OpKind::Yield, &[digest]);
        digest = self.b.end(arms)[0];
        let mut left = own.clone();
        if inner {
            let out = self.looped(digest, &own, false);
            digest = out[0];
            left = out[1..].to_vec();
        }
        let places = self.rng.permutation(left.len());
        let passed: Vec<Value> = places
            .iter()
            .map(|from| match self.rng.below(4) {
                0 => left[*from],
                1 | 2 => self.advance(left[*from], 1),
                _ => {
                    let by = if self.besides == Besides::ByTwo { 2 } else { 1 };
                    let once = self.advance(left[*from], by);
                    self.advance(once, 1)
                }
            })
            .collect();
        let all: Vec<Value> = [&[digest], &passed[..]].concat();
        self.b.terminate(OpKind::Continue(0), &all);
        self.b.end(open)
    }
}

/// A program, and the value that shows what it computed.
fn program(rng: &mut Rng, besides: Besides) -> (Func, Value) {
    let word = |param| Slot::Scalar { param, wide: false };
    let mut b = Builder::new("k", vec![word(0), word(1)], 1, 32);
    let (trips, any) = (b.one(OpKind::Slot(0), &[]), b.one(OpKind::Slot(1), &[]));
    let slots = 1 + rng.below(5).cast_signed();
    let factor = rng.of(&[2, 8, 32768, 3, 24, 1000, 1 << 29, 1 << 30]);
    let mut g = Gen { rng, b, slots, factor, besides, trips, any };
    let mut digest = g.b.i32(1);
    let mut numbers = Vec::new();
    for _ in 0..=g.rng.below(3) {
        let begin = g.rng.below(slots.cast_unsigned());
        numbers.push(g.b.i32(begin.cast_signed()));
    }
    if besides == Besides::AnyNumber {
        numbers[0] = g.any;
    }
    for _ in 0..=g.rng.below(2) {
        let nested = g.rng.below(3) == 0;
        let out = g.looped(digest, &numbers, nested);
        digest = out[0];
        numbers = out[1..].to_vec();
        // Behind a loop, some are advanced, some are used.
        let (next, offset) = (g.advance(numbers[0], 1), g.times(numbers[0], factor));
        digest = g.noted(digest, offset);
        digest = g.noted(digest, numbers[0]);
        if g.rng.below(2) == 0 {
            numbers[0] = next;
        }
    }
    g.b.terminate(OpKind::Return, &[]);
    (g.b.finish().expect("operands fit"), digest)
}

fn digest(func: &Func, value: Value, slots: [u64; 2]) -> u64 {
    let mut machine = Machine::new(func, slots.to_vec(), Memory::new());
    machine.run([0; 3]);
    assert!(machine.wrong.is_empty(), "{:?}", machine.wrong);
    machine.get(value, 0)
}

#[test]
fn programs_with_scaled_numbers_compute_the_same() {
    let mut rng = Rng::new(5);
    let mut changed = 0;
    for besides in ALL {
        for _ in 0..60 {
            let (func, value) = program(&mut rng, besides);
            let mut scaled = func.clone();
            lane::scale(&mut scaled);
            verify(&scaled).unwrap_or_else(|e| panic!("{e}\n{scaled}"));
            changed += u32::from(scaled.ops.len() != func.ops.len());
            for trips in [0, 1, 7] {
                for any in if besides == Besides::AnyNumber { vec![0, 6, 0xffff_ffff] } else { vec![0] } {
                    let (want, got) = (digest(&func, value, [trips, any]), digest(&scaled, value, [trips, any]));
                    assert_eq!(want, got, "{besides:?}, {trips} iterations, {any}:\n{func}\n{scaled}");
                }
            }
        }
    }
    assert!(changed > 40, "only {changed} programs were changed");
}

/// A loop that carries the number of a slot of 3, with a begin and a factor; and how often its body multiplies behind `scale`.
fn products(
    begin: impl FnOnce(&mut Builder) -> Value,
    factor: i32,
    slots: i32,
    more: impl FnOnce(&mut Builder, Value) -> Value,
) -> usize {
    let mut b = Builder::new("k", vec![Slot::Scalar { param: 0, wide: false }], 32, 32);
    let (trips, begin) = (b.one(OpKind::Slot(0), &[]), begin(&mut b));
    let (zero, one, by, slots) = (b.i32(0), b.i32(1), b.i32(factor), b.i32(slots));
    let (open, _, args) = b.begin_for([zero, trips, one], &[begin, zero]);
    let offset = b.mul(args[0], by);
    let sum = b.add(args[1], offset);
    let sum = {
        let word = more(&mut b, args[0]);
        b.add(sum, word)
    };
    let next = b.add_const(args[0], 1);
    let wraps = b.cmp_s(Pred::Eq, next, slots);
    let passed = b.select(wraps, zero, next);
    b.terminate(OpKind::Continue(0), &[passed, sum]);
    b.end(open);
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands fit");
    lane::scale(&mut func);
    eliminate_dead(&mut func);
    let body = func.ops.iter().find(|op| op.kind == OpKind::For).expect("it loops").regions[0];
    let multiplies = |id: &&lane::OpId| matches!(func.op(**id).kind, OpKind::Int(IntBin::Mul | IntBin::Shl));
    func.block(body).ops.iter().filter(multiplies).count()
}

#[test]
fn a_loop_carries_offsets_only_if_they_are_compared_alike() {
    let none = |b: &mut Builder, _: Value| b.i32(0);
    let zero = |b: &mut Builder| b.i32(0);
    assert_eq!(products(zero, 1000, 3, none), 0);
    assert_eq!(products(|b| b.i32(2), 1000, 3, none), 0, "the last slot is one");
    assert_eq!(products(|b| b.i32(3), 1000, 3, none), 1, "it is not one of three slots");
    assert_eq!(products(|b| b.i32(-1), 1000, 3, none), 1, "it is not a slot");
    assert_eq!(products(|b| b.one(OpKind::Slot(0), &[]), 1000, 3, none), 1, "it may be any number");
    assert_eq!(products(|b| b.one(OpKind::ThreadId, &[]), 1000, 64, none), 1, "nothing is known about it");
    // 3 times 2³⁰ fits in 32 bits, and 4 times it is 0.
    assert_eq!(products(zero, 1 << 30, 3, none), 0);
    assert_eq!(products(zero, 1 << 30, 4, none), 1);
    // Of what is used otherwise, both would be carried.
    assert_eq!(products(zero, 1000, 3, |_, number| number), 1);
    let other = |b: &mut Builder, number: Value| {
        let by = b.i32(7);
        b.mul(number, by)
    };
    assert_eq!(products(zero, 1000, 3, other), 2);
}
