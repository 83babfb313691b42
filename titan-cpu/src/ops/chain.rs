//! Two `f32` operations in one loop: `(a · b) ∘ c`. Each rounds as it does alone; the loop saves a store of the intermediate value
//! to a register of the block, and its load.

use super::ElementFn;
use super::number::Number;
use crate::rep::Rep;
use crate::simd::{Isa, Loop};
use std::marker::PhantomData;
use titan_core::ir::BinOp;

trait Op {
    fn eval(a: f32, b: f32) -> f32;
}

macro_rules! ops {
    ($($name:ident: $a:ident $b:ident => $value:expr;)*) => {$(
        struct $name;
        impl Op for $name {
            #[inline(always)]
            fn eval($a: f32, $b: f32) -> f32 {
                $value
            }
        }
    )*};
}
ops! {
    Add: a b => a + b;
    Sub: a b => a - b;
    Mul: a b => a * b;
    Div: a b => a / b;
    Max: a b => Number::max(a, b);
    SubFrom: a b => b - a;
    DivInto: a b => b / a;
}

struct Chain<'a, F, G> {
    dst: &'a mut [f32],
    args: [&'a [f32]; 3],
    ops: PhantomData<(F, G)>,
}

impl<F: Op, G: Op> Loop for Chain<'_, F, G> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let dst = self.dst;
        let eval = |a: f32, b: f32, c: f32| G::eval(F::eval(a, b), c);
        // An operand with one element stands for all.
        match self.args {
            [[a], [b], [c]] => dst.fill(eval(*a, *b, *c)),
            [a, [b], [c]] => dst.iter_mut().zip(a).for_each(|(d, a)| *d = eval(*a, *b, *c)),
            [[a], b, [c]] => dst.iter_mut().zip(b).for_each(|(d, b)| *d = eval(*a, *b, *c)),
            [[a], [b], c] => dst.iter_mut().zip(c).for_each(|(d, c)| *d = eval(*a, *b, *c)),
            [a, b, [c]] => dst.iter_mut().zip(a).zip(b).for_each(|((d, a), b)| *d = eval(*a, *b, *c)),
            [a, [b], c] => dst.iter_mut().zip(a).zip(c).for_each(|((d, a), c)| *d = eval(*a, *b, *c)),
            [[a], b, c] => dst.iter_mut().zip(b).zip(c).for_each(|((d, b), c)| *d = eval(*a, *b, *c)),
            [a, b, c] => dst.iter_mut().zip(a).zip(b).zip(c).for_each(|(((d, a), b), c)| *d = eval(*a, *b, *c)),
        }
    }
}

fn chain_tile<F: Op, G: Op>(isa: Isa, dst: &mut [u8], args: [&[u8]; 3]) {
    let (dst, args) = (bytemuck::cast_slice_mut(dst), args.map(bytemuck::cast_slice));
    isa.run(Chain::<F, G> { dst, args, ops: PhantomData });
}

fn chain_scalar<F: Op, G: Op>(args: [u64; 3]) -> u64 {
    let [a, b, c] = args.map(<f32 as Rep>::from_bits);
    Rep::to_bits(G::eval(F::eval(a, b), c))
}

fn both<F: Op, G: Op>() -> Option<ElementFn> {
    Some(ElementFn { tile: chain_tile::<F, G>, scalar: chain_scalar::<F, G> })
}

/// The functions of `second(first(a, b), c)`, or of `second(c, first(a, b))` if `swapped`; `None` if there is none.
pub(crate) fn chain(first: BinOp, second: BinOp, swapped: bool) -> Option<ElementFn> {
    match first {
        BinOp::Add => then::<Add>(second, swapped),
        BinOp::Sub => then::<Sub>(second, swapped),
        BinOp::Mul => then::<Mul>(second, swapped),
        BinOp::Div => then::<Div>(second, swapped),
        BinOp::Rem
        | BinOp::And
        | BinOp::Or
        | BinOp::Xor
        | BinOp::Shl
        | BinOp::Shr
        | BinOp::Min
        | BinOp::Max
        | BinOp::MulHi
        | BinOp::Powf => None,
    }
}

fn then<F: Op>(second: BinOp, swapped: bool) -> Option<ElementFn> {
    match (second, swapped) {
        (BinOp::Add, _) => both::<F, Add>(),
        (BinOp::Mul, _) => both::<F, Mul>(),
        (BinOp::Max, _) => both::<F, Max>(),
        (BinOp::Sub, false) => both::<F, Sub>(),
        (BinOp::Sub, true) => both::<F, SubFrom>(),
        (BinOp::Div, false) => both::<F, Div>(),
        (BinOp::Div, true) => both::<F, DivInto>(),
        (
            BinOp::Rem
            | BinOp::And
            | BinOp::Or
            | BinOp::Xor
            | BinOp::Shl
            | BinOp::Shr
            | BinOp::Min
            | BinOp::MulHi
            | BinOp::Powf,
            _,
        ) => None,
    }
}
