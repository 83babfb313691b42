//! The table of elementwise operations: the loop for each operation and element type.

use super::halves::{half1, half2};
use super::number::{Bit, Float, Integer, Number, Words};
use super::{ElementFn, TileFn};
use crate::rep::Rep;
use crate::simd::{BASELINE_FMA, Isa, Loop};
use half::{bf16, f16};
use titan_core::ir::{BinOp, Elem, Pred, UnOp};

/// An operation of one operand as a type.
pub(crate) trait Unary<A, R> {
    fn eval<const FMA: bool>(a: A) -> R;
    /// Corrects, after the loop, the elements for which `eval` is wrong.
    fn mend(_dst: &mut [R], _a: &[A]) {}
}

/// An operation of two operands as a type.
pub(super) trait Binary<A, R> {
    fn eval(a: A, b: A) -> R;
}

struct Loop1<'a, A, R, O> {
    dst: &'a mut [R],
    a: &'a [A],
    op: std::marker::PhantomData<O>,
}

impl<A: Rep, R: Rep, O: Unary<A, R>> Loop for Loop1<'_, A, R, O> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (d, a) in self.dst.iter_mut().zip(self.a) {
            *d = O::eval::<FMA>(*a);
        }
    }
}

pub(super) fn tile1<A: Rep, R: Rep, O: Unary<A, R>>(isa: Isa, dst: &mut [u8], [a, _, _]: [&[u8]; 3]) {
    let (dst, a): (&mut [R], &[A]) = (bytemuck::cast_slice_mut(dst), bytemuck::cast_slice(a));
    if let ([a], [_, ..]) = (a, &*dst) {
        dst.fill(eval1::<A, R, O>(*a));
        return;
    }
    isa.run(Loop1::<A, R, O> { dst: &mut *dst, a, op: std::marker::PhantomData });
    O::mend(dst, a);
}

fn eval1<A: Rep, R: Rep, O: Unary<A, R>>(a: A) -> R {
    let mut value = [O::eval::<BASELINE_FMA>(a)];
    O::mend(&mut value, &[a]);
    value[0]
}

fn scalar1<A: Rep, R: Rep, O: Unary<A, R>>([a, _, _]: [u64; 3]) -> u64 {
    eval1::<A, R, O>(A::from_bits(a)).to_bits()
}

/// The loop and the scalar function of an operation of one operand.
pub(crate) fn unary_fn<A: Rep, R: Rep, O: Unary<A, R>>() -> ElementFn {
    ElementFn { tile: tile1::<A, R, O>, scalar: scalar1::<A, R, O> }
}

pub(super) fn tile2<A: Rep, R: Rep, O: Binary<A, R>>(isa: Isa, dst: &mut [u8], [a, b, _]: [&[u8]; 3]) {
    let dst: &mut [R] = bytemuck::cast_slice_mut(dst);
    let (a, b): (&[A], &[A]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    isa.run(|| match (a, b) {
        ([a], [b]) => dst.fill(O::eval(*a, *b)),
        ([a], _) => dst.iter_mut().zip(b).for_each(|(d, b)| *d = O::eval(*a, *b)),
        (_, [b]) => dst.iter_mut().zip(a).for_each(|(d, a)| *d = O::eval(*a, *b)),
        _ => dst.iter_mut().zip(a).zip(b).for_each(|((d, a), b)| *d = O::eval(*a, *b)),
    });
}

fn scalar2<A: Rep, R: Rep, O: Binary<A, R>>([a, b, _]: [u64; 3]) -> u64 {
    O::eval(A::from_bits(a), A::from_bits(b)).to_bits()
}

fn binary_fn<A: Rep, R: Rep, O: Binary<A, R>>() -> ElementFn {
    ElementFn { tile: tile2::<A, R, O>, scalar: scalar2::<A, R, O> }
}

macro_rules! binaries {
    ($bound:ident: $($name:ident $method:ident)*) => {$(
        struct $name;
        impl<T: $bound> Binary<T, T> for $name {
            #[inline(always)]
            fn eval(a: T, b: T) -> T {
                a.$method(b)
            }
        }
    )*};
}
binaries! { Number: Add add Sub sub Mul mul Div div Rem rem Min min Max max }
binaries! { Words: MulHi mul_hi }
binaries! { Float: Powf powf }
binaries! { Integer: And and Or or Xor xor Shl shl Shr shr }

macro_rules! predicates {
    ($($name:ident $op:tt)*) => {$(
        struct $name;
        impl<T: Rep> Binary<T, u8> for $name {
            #[inline(always)]
            fn eval(a: T, b: T) -> u8 {
                u8::from(a $op b)
            }
        }
    )*};
}
predicates! { Eq == Ne != Lt < Le <= Gt > Ge >= }

macro_rules! unaries {
    ($bound:ident: $($name:ident $method:ident)*) => {$(
        struct $name;
        impl<T: $bound> Unary<T, T> for $name {
            #[inline(always)]
            fn eval<const FMA: bool>(a: T) -> T {
                a.$method()
            }
        }
    )*};
}
unaries! { Number: Neg neg Abs abs }
unaries! { Integer: Not not }

macro_rules! float_unaries {
    ($($name:ident $method:ident)*) => {$(
        struct $name;
        impl<T: Float> Unary<T, T> for $name {
            #[inline(always)]
            fn eval<const FMA: bool>(a: T) -> T {
                a.$method::<FMA>()
            }
        }
    )*};
}
float_unaries! {
    Exp exp Exp2 exp2 Ln ln Log2 log2 Sqrt sqrt Rsqrt rsqrt Recip recip Tanh tanh Sigmoid sigmoid
    Erf erf Floor floor Ceil ceil Trunc trunc Round round RoundTiesEven round_ties_even
}

macro_rules! periodic {
    ($($name:ident $method:ident)*) => {$(
        struct $name;
        impl<T: Float> Unary<T, T> for $name {
            #[inline(always)]
            fn eval<const FMA: bool>(a: T) -> T {
                a.$method::<FMA>()
            }
            fn mend(dst: &mut [T], a: &[T]) {
                if a.iter().any(|a| a.is_huge()) {
                    dst.iter_mut().zip(a).filter(|(_, a)| a.is_huge()).for_each(|(d, a)| *d = a.huge(libm::$method));
                }
            }
        }
    )*};
}
periodic! { Sin sin Cos cos }

struct IsNan;
impl<T: Float> Unary<T, u8> for IsNan {
    #[inline(always)]
    fn eval<const FMA: bool>(a: T) -> u8 {
        a.is_nan()
    }
}

macro_rules! counts {
    ($($name:ident $method:ident)*) => {$(
        struct $name;
        impl<T: Words> Unary<T, u32> for $name {
            #[inline(always)]
            fn eval<const FMA: bool>(a: T) -> u32 {
                a.$method()
            }
        }
    )*};
}
counts! { CountOnes count_ones LeadingZeros leading_zeros }

/// `$name::<Op>(elem)`: the functions of an operation, if the operation supports the element type.
macro_rules! tables {
    ($($name:ident $make:ident $op:ident $to:ident: $($elem:ident $t:ty),*;)*) => {$(
        fn $name<O: $($op<$t, tables!(@ $to $t)> +)*>(e: Elem) -> Option<ElementFn> {
            $(if e == Elem::$elem { return Some($make::<$t, tables!(@ $to $t), O>()); })*
            None
        }
    )*};
    (@ same $t:ty) => { $t };
    (@ bool $t:ty) => { u8 };
    (@ count $t:ty) => { u32 };
}
tables! {
    unary_numbers unary_fn Unary same: F64 f64, F32 f32, F16 f16, Bf16 bf16,
        I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8;
    unary_bits unary_fn Unary same: I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8, Bool Bit;
    unary_floats unary_fn Unary same: F64 f64, F32 f32, F16 f16, Bf16 bf16;
    float_tests unary_fn Unary bool: F64 f64, F32 f32, F16 f16, Bf16 bf16;
    int_counts unary_fn Unary count: I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8;
    float_pairs binary_fn Binary same: F64 f64, F32 f32, F16 f16, Bf16 bf16;
    numbers binary_fn Binary same: F64 f64, F32 f32, F16 f16, Bf16 bf16,
        I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8;
    integers binary_fn Binary same: I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8;
    bits binary_fn Binary same: I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8, Bool Bit;
    predicates binary_fn Binary bool: F64 f64, F32 f32, F16 f16, Bf16 bf16,
        I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8;
}

/// The functions of a function of floats. Those of `f16` are computed in `f32`, block by block.
fn floats<O>(e: Elem) -> Option<ElementFn>
where
    O: Unary<f64, f64> + Unary<f32, f32> + Unary<f16, f16> + Unary<bf16, bf16>,
{
    let found = unary_floats::<O>(e)?;
    Some(if e == Elem::F16 { ElementFn { tile: half1::<O>, ..found } } else { found })
}

/// The functions of a unary operation on elements of this type.
pub(crate) fn unary(op: UnOp, e: Elem) -> Option<ElementFn> {
    match op {
        UnOp::Neg => unary_numbers::<Neg>(e),
        UnOp::Abs => unary_numbers::<Abs>(e),
        UnOp::Not => unary_bits::<Not>(e),
        UnOp::Exp => floats::<Exp>(e),
        UnOp::Exp2 => floats::<Exp2>(e),
        UnOp::Ln => floats::<Ln>(e),
        UnOp::Log2 => floats::<Log2>(e),
        UnOp::Sqrt => floats::<Sqrt>(e),
        UnOp::Rsqrt => floats::<Rsqrt>(e),
        UnOp::Recip => floats::<Recip>(e),
        UnOp::Sin => floats::<Sin>(e),
        UnOp::Cos => floats::<Cos>(e),
        UnOp::Tanh => floats::<Tanh>(e),
        UnOp::Sigmoid => floats::<Sigmoid>(e),
        UnOp::Erf => floats::<Erf>(e),
        UnOp::Floor => floats::<Floor>(e),
        UnOp::Ceil => floats::<Ceil>(e),
        UnOp::Trunc => floats::<Trunc>(e),
        UnOp::Round => floats::<Round>(e),
        UnOp::RoundTiesEven => floats::<RoundTiesEven>(e),
        UnOp::IsNan => float_tests::<IsNan>(e),
        UnOp::CountOnes => int_counts::<CountOnes>(e),
        UnOp::LeadingZeros => int_counts::<LeadingZeros>(e),
    }
}

/// The functions of a binary operation on elements of this type.
pub(crate) fn binary(op: BinOp, e: Elem) -> Option<ElementFn> {
    let found = match op {
        BinOp::Add => numbers::<Add>(e),
        BinOp::Sub => numbers::<Sub>(e),
        BinOp::Mul => numbers::<Mul>(e),
        BinOp::Div => numbers::<Div>(e),
        BinOp::Min => numbers::<Min>(e),
        BinOp::Max => numbers::<Max>(e),
        BinOp::Rem => numbers::<Rem>(e),
        BinOp::MulHi => integers::<MulHi>(e),
        BinOp::Powf => float_pairs::<Powf>(e),
        BinOp::Shl => integers::<Shl>(e),
        BinOp::Shr => integers::<Shr>(e),
        BinOp::And => bits::<And>(e),
        BinOp::Or => bits::<Or>(e),
        BinOp::Xor => bits::<Xor>(e),
    };
    let half = if e == Elem::F16 { in_blocks(op) } else { None };
    found.map(|f| half.map_or(f, |tile| ElementFn { tile, ..f }))
}

/// The loop of an operation on `f16`s that is computed in `f32`, block by block.
fn in_blocks(op: BinOp) -> Option<TileFn> {
    match op {
        BinOp::Add => Some(half2::<Add>),
        BinOp::Sub => Some(half2::<Sub>),
        BinOp::Mul => Some(half2::<Mul>),
        BinOp::Div => Some(half2::<Div>),
        BinOp::Min => Some(half2::<Min>),
        BinOp::Max => Some(half2::<Max>),
        BinOp::Rem => Some(half2::<Rem>),
        BinOp::Powf => Some(half2::<Powf>),
        BinOp::MulHi | BinOp::Shl | BinOp::Shr | BinOp::And | BinOp::Or | BinOp::Xor => None,
    }
}

/// The functions of a comparison of elements of this type; the results are `bool`s.
pub(crate) fn compare(pred: Pred, e: Elem) -> Option<ElementFn> {
    let e = if e == Elem::Bool { Elem::U8 } else { e };
    match pred {
        Pred::Eq => predicates::<Eq>(e),
        Pred::Ne => predicates::<Ne>(e),
        Pred::Lt => predicates::<Lt>(e),
        Pred::Le => predicates::<Le>(e),
        Pred::Gt => predicates::<Gt>(e),
        Pred::Ge => predicates::<Ge>(e),
    }
}
