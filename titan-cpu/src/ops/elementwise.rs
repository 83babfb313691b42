//! The table of elementwise operations: from an operation and an element type to its loop.

use super::ElementFn;
use super::number::{Bit, Float, Integer, Number};
use crate::rep::Rep;
use crate::simd::{BASELINE_FMA, Isa, Loop};
use half::{bf16, f16};
use titan_core::ir::{BinOp, Elem, Pred, UnOp};

/// An operation of one operand as a type.
pub(crate) trait Unary<A, R> {
    fn eval<const FMA: bool>(a: A) -> R;
    /// Mends, after the loop, what `eval` cannot do.
    fn mend(_dst: &mut [R], _a: &[A]) {}
}

/// An operation of two operands as a type.
trait Binary<A, R> {
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

fn tile1<A: Rep, R: Rep, O: Unary<A, R>>(isa: Isa, dst: &mut [u8], [a, _, _]: [&[u8]; 3]) {
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

fn tile2<A: Rep, R: Rep, O: Binary<A, R>>(isa: Isa, dst: &mut [u8], [a, b, _]: [&[u8]; 3]) {
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
binaries! { Number: Add add Sub sub Mul mul Div div Min min Max max }
binaries! { Integer: Rem rem And and Or or Xor xor Shl shl Shr shr }

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

/// `$make::<T, …, $op>()` for the element types in the list.
macro_rules! choose {
    ($elem:expr, $make:ident, $r:tt, $op:ty: floats) => {
        choose!(@ $elem, $make, $r, $op: F64 f64, F32 f32, F16 f16, Bf16 bf16)
    };
    ($elem:expr, $make:ident, $r:tt, $op:ty: ints) => {
        choose!(@ $elem, $make, $r, $op: I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32, U16 u16, U8 u8)
    };
    (@ $elem:expr, $make:ident, same, $op:ty: $($e:ident $t:ty),*) => {
        $(if $elem == Elem::$e { return Some($make::<$t, $t, $op>()); })*
    };
    (@ $elem:expr, $make:ident, bool, $op:ty: $($e:ident $t:ty),*) => {
        $(if $elem == Elem::$e { return Some($make::<$t, u8, $op>()); })*
    };
}

macro_rules! numbers {
    ($elem:expr, $make:ident, $r:tt, $op:ty) => {{
        choose!($elem, $make, $r, $op: floats);
        choose!($elem, $make, $r, $op: ints);
        None
    }};
}
macro_rules! integers {
    ($elem:expr, $make:ident, $op:ty) => {{
        choose!($elem, $make, same, $op: ints);
        None
    }};
}
macro_rules! integers_and_bool {
    ($elem:expr, $make:ident, $op:ty) => {{
        choose!($elem, $make, same, $op: ints);
        choose!(@ $elem, $make, same, $op: Bool Bit);
        None
    }};
}
macro_rules! floats {
    ($elem:expr, $r:tt, $op:ty) => {{
        choose!($elem, unary_fn, $r, $op: floats);
        None
    }};
}

/// The operation for elements of this type.
pub(crate) fn unary(op: UnOp, e: Elem) -> Option<ElementFn> {
    match op {
        UnOp::Neg => numbers!(e, unary_fn, same, Neg),
        UnOp::Abs => numbers!(e, unary_fn, same, Abs),
        UnOp::Not => integers_and_bool!(e, unary_fn, Not),
        UnOp::Exp => floats!(e, same, Exp),
        UnOp::Exp2 => floats!(e, same, Exp2),
        UnOp::Ln => floats!(e, same, Ln),
        UnOp::Log2 => floats!(e, same, Log2),
        UnOp::Sqrt => floats!(e, same, Sqrt),
        UnOp::Rsqrt => floats!(e, same, Rsqrt),
        UnOp::Recip => floats!(e, same, Recip),
        UnOp::Sin => floats!(e, same, Sin),
        UnOp::Cos => floats!(e, same, Cos),
        UnOp::Tanh => floats!(e, same, Tanh),
        UnOp::Sigmoid => floats!(e, same, Sigmoid),
        UnOp::Erf => floats!(e, same, Erf),
        UnOp::Floor => floats!(e, same, Floor),
        UnOp::Ceil => floats!(e, same, Ceil),
        UnOp::Trunc => floats!(e, same, Trunc),
        UnOp::Round => floats!(e, same, Round),
        UnOp::RoundTiesEven => floats!(e, same, RoundTiesEven),
        UnOp::IsNan => floats!(e, bool, IsNan),
    }
}

/// The operation for elements of this type.
pub(crate) fn binary(op: BinOp, e: Elem) -> Option<ElementFn> {
    match op {
        BinOp::Add => numbers!(e, binary_fn, same, Add),
        BinOp::Sub => numbers!(e, binary_fn, same, Sub),
        BinOp::Mul => numbers!(e, binary_fn, same, Mul),
        BinOp::Div => numbers!(e, binary_fn, same, Div),
        BinOp::Min => numbers!(e, binary_fn, same, Min),
        BinOp::Max => numbers!(e, binary_fn, same, Max),
        BinOp::Rem => integers!(e, binary_fn, Rem),
        BinOp::Shl => integers!(e, binary_fn, Shl),
        BinOp::Shr => integers!(e, binary_fn, Shr),
        BinOp::And => integers_and_bool!(e, binary_fn, And),
        BinOp::Or => integers_and_bool!(e, binary_fn, Or),
        BinOp::Xor => integers_and_bool!(e, binary_fn, Xor),
    }
}

/// The comparison for elements of this type; it gives `bool`s.
pub(crate) fn compare(pred: Pred, e: Elem) -> Option<ElementFn> {
    let e = if e == Elem::Bool { Elem::U8 } else { e };
    match pred {
        Pred::Eq => numbers!(e, binary_fn, bool, Eq),
        Pred::Ne => numbers!(e, binary_fn, bool, Ne),
        Pred::Lt => numbers!(e, binary_fn, bool, Lt),
        Pred::Le => numbers!(e, binary_fn, bool, Le),
        Pred::Gt => numbers!(e, binary_fn, bool, Gt),
        Pred::Ge => numbers!(e, binary_fn, bool, Ge),
    }
}

/// Mask, then, else, for elements of this type.
pub(crate) fn select(e: Elem) -> ElementFn {
    fn make<T: Rep>() -> ElementFn {
        ElementFn { tile: select_tile::<T>, scalar: |[mask, a, b]| if mask != 0 { a } else { b } }
    }
    crate::rep::with_width!(crate::rep::size(e), make())
}

fn select_tile<T: Rep>(isa: Isa, dst: &mut [u8], [mask, a, b]: [&[u8]; 3]) {
    let dst: &mut [T] = bytemuck::cast_slice_mut(dst);
    let (a, b): (&[T], &[T]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    isa.run(|| match (mask, a, b) {
        ([m], _, _) => {
            let chosen = if *m != 0 { a } else { b };
            dst.iter_mut().zip(chosen.iter().cycle()).for_each(|(d, x)| *d = *x);
        }
        (_, [a], [b]) => dst.iter_mut().zip(mask).for_each(|(d, m)| *d = if *m != 0 { *a } else { *b }),
        (_, [a], _) => dst.iter_mut().zip(mask).zip(b).for_each(|((d, m), b)| *d = if *m != 0 { *a } else { *b }),
        (_, _, [b]) => dst.iter_mut().zip(mask).zip(a).for_each(|((d, m), a)| *d = if *m != 0 { *a } else { *b }),
        _ => {
            for (((d, m), a), b) in dst.iter_mut().zip(mask).zip(a).zip(b) {
                *d = if *m != 0 { *a } else { *b };
            }
        }
    });
}

/// `a · b + c`, rounded once.
pub(crate) fn mul_add(e: Elem) -> Option<ElementFn> {
    fn make<T: Float>() -> Option<ElementFn> {
        let scalar = |[a, b, c]: [u64; 3]| T::from_bits(a).mul_add(T::from_bits(b), T::from_bits(c)).to_bits();
        Some(ElementFn { tile: mul_add_tile::<T>, scalar })
    }
    match e {
        Elem::F64 => make::<f64>(),
        Elem::F32 => make::<f32>(),
        Elem::F16 => make::<f16>(),
        Elem::Bf16 => make::<bf16>(),
        Elem::Tf32 | Elem::E4m3 | Elem::E5m2 | Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8 | Elem::I4 | Elem::U64
        | Elem::U32 | Elem::U16 | Elem::U8 | Elem::U4 | Elem::Bool => None,
    }
}

fn mul_add_tile<T: Float>(isa: Isa, dst: &mut [u8], [a, b, c]: [&[u8]; 3]) {
    let dst: &mut [T] = bytemuck::cast_slice_mut(dst);
    let (a, b, c): (&[T], &[T], &[T]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b), bytemuck::cast_slice(c));
    isa.run(|| match (a, b, c) {
        (_, _, [c]) if a.len() == b.len() => {
            dst.iter_mut().zip(a).zip(b).for_each(|((d, a), b)| *d = a.mul_add(*b, *c));
        }
        (_, [b], _) if a.len() == c.len() => {
            dst.iter_mut().zip(a).zip(c).for_each(|((d, a), c)| *d = a.mul_add(*b, *c));
        }
        ([a], _, _) if b.len() == c.len() => {
            dst.iter_mut().zip(b).zip(c).for_each(|((d, b), c)| *d = a.mul_add(*b, *c));
        }
        _ => {
            let all = |x: &[T], i: usize| if let [x] = x { *x } else { x[i] };
            for (i, d) in dst.iter_mut().enumerate() {
                *d = all(a, i).mul_add(all(b, i), all(c, i));
            }
        }
    });
}
