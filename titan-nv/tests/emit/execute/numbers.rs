//! Formats of numbers, for expectations: `titan_core::num` is the language's definition of conversions, and what it lacks is
//! done in `f64`, made odd where it was rounded.

use titan_core::lane::{FloatBin, FloatTy, Num};
use titan_core::num::Format;

/// A number, or NaN.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Float(f64),
    Int(i128),
}

pub(super) fn decode(num: Num, bits: u64) -> Number {
    use Number::{Float, Int};
    match num {
        Num::F16 => Float(Format::F16.to_f64(bits as u32)),
        Num::Bf16 => Float(Format::BF16.to_f64(bits as u32)),
        Num::E4m3 => Float(Format::E4M3.to_f64(bits as u32)),
        Num::E5m2 => Float(Format::E5M2.to_f64(bits as u32)),
        Num::F32 | Num::Tf32 => Float(f64::from(f32::from_bits(bits as u32))),
        Num::F64 => Float(f64::from_bits(bits)),
        Num::S32 => Int(i128::from(bits as i32)),
        Num::U32 => Int(i128::from(bits as u32)),
        Num::S64 => Int(i128::from(bits as i64)),
        Num::U64 => Int(i128::from(bits)),
    }
}

fn rounded(format: Format, number: Number) -> u64 {
    match number {
        Number::Float(x) => format.from_f64(x).into(),
        Number::Int(x) => format.from_int(x < 0, x.unsigned_abs() as u64).into(),
    }
}

/// The bits of a number in a format, rounded or saturated as the contract of conversions says.
pub(super) fn encode(num: Num, number: Number) -> u64 {
    macro_rules! to {
        ($ty:ty) => {
            match number {
                Number::Float(x) => x as $ty,
                Number::Int(x) => x.clamp(<$ty>::MIN as i128, <$ty>::MAX as i128) as $ty,
            }
        };
    }
    match num {
        Num::F16 => rounded(Format::F16, number),
        Num::Bf16 => rounded(Format::BF16, number),
        Num::E4m3 => rounded(Format::E4M3, number),
        Num::E5m2 => rounded(Format::E5M2, number),
        Num::Tf32 => rounded(Format::TF32, number) << 13,
        Num::F32 => match number {
            Number::Float(x) => (x as f32).to_bits().into(),
            Number::Int(x) => (x as f32).to_bits().into(),
        },
        Num::F64 => match number {
            Number::Float(x) => x.to_bits(),
            Number::Int(x) => (x as f64).to_bits(),
        },
        Num::S32 => u64::from(to!(i32) as u32),
        Num::U32 => u64::from(to!(u32)),
        Num::S64 => to!(i64) as u64,
        Num::U64 => to!(u64),
    }
}

pub(super) fn num(ty: FloatTy) -> Num {
    match ty {
        FloatTy::F16 => Num::F16,
        FloatTy::Bf16 => Num::Bf16,
        FloatTy::F32 => Num::F32,
        FloatTy::F64 => Num::F64,
    }
}

pub(super) fn float(ty: FloatTy, bits: u64) -> f64 {
    match decode(num(ty), bits) {
        Number::Float(x) => x,
        Number::Int(_) => unreachable!("floats are floats"),
    }
}

/// The value toward which `near`, a rounded result, errs by `error`, made odd: then a second rounding is right.
fn odd(near: f64, error: f64) -> f64 {
    if error == 0.0 || !near.is_finite() || !error.is_finite() || near.to_bits() & 1 == 1 {
        return near;
    }
    if near == 0.0 {
        return f64::from_bits(1).copysign(error);
    }
    let away = (near > 0.0) == (error > 0.0);
    f64::from_bits(if away { near.to_bits() + 1 } else { near.to_bits() - 1 })
}

/// `a + b`, and what was rounded away (Knuth, TAOCP 4.2.2, theorem B).
fn sum(a: f64, b: f64) -> f64 {
    let s = a + b;
    let t = s - a;
    odd(s, (a - (s - t)) + (b - t))
}

/// The lesser or the greater: NaN loses, −0 < +0.
pub(super) fn extreme(a: f64, b: f64, greater: bool) -> f64 {
    if a.is_nan() {
        return b;
    }
    if b.is_nan() {
        return a;
    }
    let b_wins = a.total_cmp(&b).is_lt() == greater;
    if b_wins { b } else { a }
}

/// Arithmetic, rounded once to the format.
pub(super) fn binary(op: FloatBin, ty: FloatTy, a: u64, b: u64) -> u64 {
    let (x, y) = (float(ty, a), float(ty, b));
    let result = match (op, ty) {
        (FloatBin::Min | FloatBin::Max, _) => extreme(x, y, op == FloatBin::Max),
        (FloatBin::Add, FloatTy::F16 | FloatTy::Bf16) => sum(x, y),
        (FloatBin::Sub, FloatTy::F16 | FloatTy::Bf16) => sum(x, -y),
        (FloatBin::Div, FloatTy::F16 | FloatTy::Bf16) => {
            let q = x / y;
            // The remainder is exact; its sign over y's is where the quotient lies.
            odd(q, (-q).mul_add(y, x) * y.signum())
        }
        // Products of halves are exact; f32 in f64 is: 53 ≥ 2 · 24 + 2.
        (FloatBin::Add, _) => x + y,
        (FloatBin::Sub, _) => x - y,
        (FloatBin::Mul, _) => x * y,
        (FloatBin::Div, FloatTy::F32) => {
            let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
            return (x / y).to_bits().into();
        }
        (FloatBin::Div, FloatTy::F64) => x / y,
    };
    if ty == FloatTy::F32 {
        // Where results are subnormal, rounding twice is not the same.
        let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        return u64::from(match op {
            FloatBin::Add => (x + y).to_bits(),
            FloatBin::Sub => (x - y).to_bits(),
            FloatBin::Mul => (x * y).to_bits(),
            FloatBin::Div | FloatBin::Min | FloatBin::Max => (result as f32).to_bits(),
        });
    }
    encode(num(ty), Number::Float(result))
}

/// `a · b + c`, rounded once.
pub(super) fn fma(ty: FloatTy, [a, b, c]: [u64; 3]) -> u64 {
    match ty {
        FloatTy::F64 => f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits(),
        FloatTy::F32 => {
            let [a, b, c] = [a, b, c].map(|x| f32::from_bits(x as u32));
            a.mul_add(b, c).to_bits().into()
        }
        FloatTy::F16 | FloatTy::Bf16 => {
            let [a, b, c] = [a, b, c].map(|x| float(ty, x));
            encode(num(ty), Number::Float(sum(a * b, c)))
        }
    }
}
