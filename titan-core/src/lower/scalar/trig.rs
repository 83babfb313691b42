//! Sine and cosine of `f32` and `f64`: the argument is reduced modulo π/2, and a polynomial is evaluated on the rest.
//!
//! Up to a limit, π/2 as a sum of three floats is accurate enough (W. Cody and W. Waite, "Software Manual for the Elementary Functions",
//! 1980): with a fused multiply-add, the first difference is exact. Beyond the limit [`super::far`] reduces the argument, in a branch that
//! ordinary arguments do not take.
//!
//! Maximum errors, measured as in [`super::exp`]: in units in the last place up to 2¹⁶, absolute beyond:
//!
//! | function | error | beyond |
//! |---|---|---|
//! | `sin`, `f32` | 1.5 | 2⁻²³ |
//! | `cos`, `f32` | 1.5 | 2⁻²³ |
//! | `sin`, `f64` | 1.4 | 2⁻⁵³ |
//! | `cos`, `f64` | 1.4 | 2⁻⁵³ |

use super::emit::{fcmp_const, fma_const, int_const, nearest, num, poly, un};
use super::far;
use crate::ir::Pred;
use crate::lane::{Builder, FloatBin, FloatTy, FloatUn, IntBin, OpKind, Ty, Value};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// The parameters for a type.
#[derive(Debug)]
pub(super) struct Trig {
    pub(super) ty: FloatTy,
    /// π/2 as a number of the type, the difference to π/2 as another, and the difference to their sum as a third.
    half_pi: [f64; 3],
    /// The maximum magnitude that is reduced with the three parts of π/2.
    limit: f64,
    /// `(sin(√z) / √z − 1) / z`.
    sin: &'static [f64],
    /// `(cos(√z) − 1) / z`.
    cos: &'static [f64],
    /// Smaller numbers are their own sine.
    tiny: f64,
}

/// Polynomials for |r| ≤ π/4: `fpminimax` of Sollya 8.0, 24-bit coefficients; within 2⁻²⁶ and 2⁻³¹.
pub(super) const SINGLE: Trig = Trig {
    ty: FloatTy::F32,
    half_pi: [FRAC_PI_2, -4.371_139e-8, -1.715_124_5e-15],
    limit: 65536.0,
    sin: &[-1.958_002_1e-4, 0.008_332_702, -0.166_666_64],
    cos: &[2.446_498_7e-5, -0.001_388_763_1, 0.041_666_653, -0.5],
    tiny: 1e-4,
};

/// The same with 53-bit coefficients; within 2⁻⁵⁵ and 2⁻⁶⁰.
pub(super) const DOUBLE: Trig = Trig {
    ty: FloatTy::F64,
    half_pi: [FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_169_8e-33],
    limit: 134_217_728.0,
    sin: &[
        1.591_903_553_101_838_4e-10,
        -2.505_114_810_201_230_5e-8,
        2.755_731_620_827_472e-6,
        -0.000_198_412_698_370_585_18,
        0.008_333_333_333_331_295,
        -0.166_666_666_666_666_66,
    ],
    cos: &[
        -1.138_140_941_117_988_7e-11,
        2.087_612_601_529_832e-9,
        -2.755_731_714_983_328_7e-7,
        2.480_158_729_844_487_7e-5,
        -0.001_388_888_888_888_705_3,
        0.041_666_666_666_666_664,
        -0.5,
    ],
    tiny: 1e-9,
};

/// A number minus a multiple of π/2, and the low bits of that multiple as `b32`.
#[derive(Clone, Copy)]
pub(super) struct Reduced {
    pub(super) rest: Value,
    pub(super) quadrant: Value,
}

fn reduce(b: &mut Builder, t: &Trig, with_far: bool, x: Value) -> Reduced {
    let near = reduce_near(b, t, x);
    if !with_far {
        return near;
    }
    let magnitude = un(b, FloatUn::Abs, t.ty, x);
    let is_far = fcmp_const(b, Pred::Gt, t.ty, magnitude, t.limit);
    let mut open = b.begin_if(is_far, &[t.ty.ty(), Ty::B32]);
    let distant = far::reduce(b, t.ty, x);
    b.terminate(OpKind::Yield, &[distant.rest, distant.quadrant]);
    b.begin_else(&mut open);
    b.terminate(OpKind::Yield, &[near.rest, near.quadrant]);
    match b.end(open).as_slice() {
        [rest, quadrant] => Reduced { rest: *rest, quadrant: *quadrant },
        _ => near,
    }
}

fn reduce_near(b: &mut Builder, t: &Trig, x: Value) -> Reduced {
    let n = nearest(b, t.ty, x, FRAC_2_PI);
    let rest = t.half_pi.iter().fold(x, |rest, part| fma_const(b, t.ty, n.float, -part, rest));
    let quadrant = if t.ty == FloatTy::F64 { b.one(OpKind::Truncate(Ty::B32), &[n.word]) } else { n.word };
    Reduced { rest, quadrant }
}

/// The sine of the reduced argument for even quadrants, its cosine for odd ones, negated for quadrants 2 and 3.
fn of_quadrant(b: &mut Builder, t: &Trig, reduced: Reduced) -> Value {
    let (ty, r) = (t.ty, reduced.rest);
    let square = b.float(FloatBin::Mul, ty, r, r);
    let cube = b.float(FloatBin::Mul, ty, square, r);
    let sine = poly(b, ty, square, t.sin);
    let sine = b.fma(ty, cube, sine, r);
    let one = num(b, ty, 1.0);
    let cosine = poly(b, ty, square, t.cos);
    let cosine = b.fma(ty, cosine, square, one);
    let odd = int_const(b, IntBin::And, reduced.quadrant, 1);
    let zero = b.i32(0);
    let odd = b.cmp_u(Pred::Ne, odd, zero);
    let value = b.select(odd, cosine, sine);
    let half = int_const(b, IntBin::And, reduced.quadrant, 2);
    let sign = if ty == FloatTy::F64 {
        let wide = b.one(OpKind::Extend { from: 32, signed: false, to: Ty::B64 }, &[half]);
        int_const(b, IntBin::Shl, wide, 62)
    } else {
        int_const(b, IntBin::Shl, half, 30)
    };
    b.int(IntBin::Xor, value, sign)
}

/// The sine; `with_far` is whether arguments beyond the limit are possible.
pub(super) fn sin(b: &mut Builder, t: &Trig, with_far: bool, x: Value) -> Value {
    let reduced = reduce(b, t, with_far, x);
    let value = of_quadrant(b, t, reduced);
    // For tiny arguments the result is the argument, which also preserves the sign of zero.
    let magnitude = un(b, FloatUn::Abs, t.ty, x);
    let tiny = fcmp_const(b, Pred::Lt, t.ty, magnitude, t.tiny);
    b.select(tiny, x, value)
}

/// The cosine: the sine with the quadrant increased by one.
pub(super) fn cos(b: &mut Builder, t: &Trig, with_far: bool, x: Value) -> Value {
    let Reduced { rest, quadrant } = reduce(b, t, with_far, x);
    let quadrant = b.add_const(quadrant, 1);
    of_quadrant(b, t, Reduced { rest, quadrant })
}
