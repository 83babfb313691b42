//! The expected result of each operation on registers, by its contract in `titan_core::lane::op`.

use super::numbers::{Number, binary, decode, encode, float, fma, num};
use titan_core::ir::Pred;
use titan_core::lane::{FloatTy, FloatUn, IntBin, IntUn, Num, OpKind, Shuffle, Ty, Vote};

/// What is expected of a result.
#[derive(Clone, Copy, Debug)]
pub(super) enum Want {
    /// These bits.
    Bits(u64),
    /// This number of a format; any NaN for NaN.
    Number(Num, u64),
    /// A number of `f32` this near, in units of the last place, or with this absolute error; subnormals may be zero.
    Near { value: f64, ulps: f64, absolute: f64 },
}

impl Want {
    pub(super) fn holds(self, found: u64) -> bool {
        match self {
            Want::Bits(bits) => bits == found,
            Want::Number(num, bits) => match (decode(num, bits), decode(num, found)) {
                (Number::Float(x), Number::Float(y)) if x.is_nan() => y.is_nan(),
                _ => bits == found,
            },
            Want::Near { value, ulps, absolute } => {
                let found = f64::from(f32::from_bits(found as u32));
                if value.is_nan() {
                    return found.is_nan();
                }
                let tiny = value.abs() < f64::from(f32::MIN_POSITIVE);
                if tiny && found == 0.0 {
                    return true;
                }
                let single = value as f32;
                if single.is_infinite() || value == 0.0 {
                    return found == f64::from(single);
                }
                let unit = f64::from(f32::from_bits(single.abs().to_bits() + 1)) - f64::from(single.abs());
                (found - value).abs() <= (ulps * unit).max(absolute)
            }
        }
    }
}

fn sign_extended(bits: u64, from: u32) -> u64 {
    ((bits << (64 - from)) as i64 >> (64 - from)) as u64
}

fn int(op: IntBin, ty: Ty, a: u64, b: u64) -> Option<u64> {
    let width = match ty {
        Ty::Pred => 1,
        Ty::B16 => 16,
        Ty::B32 => 32,
        Ty::B64 => 64,
    };
    let (sa, sb) = (i128::from(sign_extended(a, width) as i64), i128::from(sign_extended(b, width) as i64));
    let (ua, ub) = (i128::from(a), i128::from(b));
    let shift = (b < u64::from(width)).then_some(b as u32);
    let wide = match op {
        IntBin::Add => ua + ub,
        IntBin::Sub => ua - ub,
        IntBin::Mul => (u128::from(a) * u128::from(b)) as i128,
        IntBin::MulHi => ((u128::from(a) * u128::from(b)) >> width) as i128,
        IntBin::DivS => sa.checked_div(sb)?,
        IntBin::DivU => ua.checked_div(ub)?,
        IntBin::RemS => sa.checked_rem(sb)?,
        IntBin::RemU => ua.checked_rem(ub)?,
        IntBin::And => ua & ub,
        IntBin::Or => ua | ub,
        IntBin::Xor => ua ^ ub,
        IntBin::Shl => ua << shift?,
        IntBin::ShrS => sa >> shift?,
        IntBin::ShrU => ua >> shift?,
        IntBin::MinS => sa.min(sb),
        IntBin::MinU => ua.min(ub),
        IntBin::MaxS => sa.max(sb),
        IntBin::MaxU => ua.max(ub),
    };
    Some(wide as u64 & super::mask(ty))
}

fn holds(pred: Pred, order: Option<std::cmp::Ordering>) -> u64 {
    let Some(order) = order else { return u64::from(pred == Pred::Ne) };
    u64::from(match pred {
        Pred::Eq => order.is_eq(),
        Pred::Ne => order.is_ne(),
        Pred::Lt => order.is_lt(),
        Pred::Le => order.is_le(),
        Pred::Gt => order.is_gt(),
        Pred::Ge => order.is_ge(),
    })
}

fn function(op: FloatUn, ty: FloatTy, bits: u64) -> Want {
    let x = float(ty, bits);
    let sign = 1u64
        << (match ty {
            FloatTy::F16 | FloatTy::Bf16 => 15,
            FloatTy::F32 => 31,
            FloatTy::F64 => 63,
        });
    let near = |value: f64, ulps| Want::Near { value, ulps, absolute: 0.0 };
    let exact = |value: f64| Want::Number(num(ty), encode(num(ty), Number::Float(value)));
    // Subnormal operands of approximations may count as zero; they are told apart by the caller.
    match op {
        FloatUn::Neg => Want::Bits(bits ^ sign),
        FloatUn::Abs => Want::Bits(bits & !sign),
        // Of an f32 the root in f64, rounded again, is right: 53 ≥ 2 · 24 + 2.
        FloatUn::Sqrt => exact(x.sqrt()),
        FloatUn::Floor => exact(x.floor()),
        FloatUn::Ceil => exact(x.ceil()),
        FloatUn::Trunc => exact(x.trunc()),
        FloatUn::RoundEven => exact(x.round_ties_even()),
        FloatUn::Ex2Approx => near(x.exp2(), 2.0),
        FloatUn::Lg2Approx if (0.5..=2.0).contains(&x) => {
            Want::Near { value: x.log2(), ulps: 0.0, absolute: 2f64.powi(-21) }
        }
        FloatUn::Lg2Approx => near(x.log2(), 2.0),
        FloatUn::RcpApprox => near(1.0 / x, 1.0),
        FloatUn::RsqrtApprox => near(1.0 / x.sqrt(), 2.0),
    }
}

/// The results for the operands, or nothing where the contract does not define them.
pub(super) fn of(kind: &OpKind, args: &[Ty], values: &[u64]) -> Option<Vec<Want>> {
    let v = |i: usize| values[i];
    let bits = |x: u64| Some(vec![Want::Bits(x)]);
    match kind {
        OpKind::Const(ty, x) => bits(*x & super::mask(*ty)),
        OpKind::Int(op) => bits(int(*op, args[0], v(0), v(1))?),
        OpKind::IntUn(IntUn::CountOnes) => bits(v(0).count_ones().into()),
        OpKind::IntUn(IntUn::LeadingZeros) => bits(u64::from(v(0).leading_zeros()) - 32),
        OpKind::MulWide { signed: false } => bits(v(0) * v(1)),
        OpKind::MulWide { signed: true } => bits((i64::from(v(0) as i32) * i64::from(v(1) as i32)) as u64),
        OpKind::IntCmp { pred, signed } => {
            let width = if args[0] == Ty::B64 { 64 } else { 32 };
            let of = |x| if *signed { sign_extended(x, width) as i64 as i128 } else { i128::from(x) };
            bits(holds(*pred, Some(of(v(0)).cmp(&of(v(1))))))
        }
        OpKind::Extend { from, signed, to } => {
            let low = v(0) & (u64::MAX >> (64 - from));
            let wide = if *signed { sign_extended(low, u32::from(*from)) } else { low };
            bits(wide & super::mask(*to))
        }
        OpKind::Truncate(to) => bits(v(0) & super::mask(*to)),
        OpKind::FromPred => bits(v(0)),
        OpKind::Float(op, ty) => Some(vec![Want::Number(num(*ty), binary(*op, *ty, v(0), v(1)))]),
        OpKind::FloatUn(op, ty) => Some(vec![function(*op, *ty, v(0))]),
        OpKind::Fma(ty) => Some(vec![Want::Number(num(*ty), fma(*ty, [v(0), v(1), v(2)]))]),
        OpKind::FloatCmp(pred, ty) => bits(holds(*pred, float(*ty, v(0)).partial_cmp(&float(*ty, v(1))))),
        OpKind::Convert { from, to } if from == to && *to != Num::Tf32 => {
            Some(values.iter().map(|x| Want::Number(*to, *x)).collect())
        }
        OpKind::Convert { from, to } => {
            Some(values.iter().map(|x| Want::Number(*to, encode(*to, decode(*from, *x)))).collect())
        }
        OpKind::Select => bits(if v(0) == 1 { v(1) } else { v(2) }),
        OpKind::Pack => {
            let part = if values.len() == 4 { 8 } else { 8 * super::mask(args[0]).count_ones() / 8 };
            let whole = values
                .iter()
                .rev()
                .fold(0u64, |all, x| all.checked_shl(part).unwrap_or(0) | (x & (u64::MAX >> (64 - part))));
            bits(whole)
        }
        OpKind::Unpack => {
            let half = if args[0] == Ty::B32 { 16 } else { 32 };
            Some(vec![Want::Bits(v(0) & ((1 << half) - 1)), Want::Bits(v(0) >> half)])
        }
        OpKind::UnpackBytes { signed } => Some(
            (0..4)
                .map(|i| {
                    let byte = v(0) >> (8 * i) & 0xff;
                    Want::Bits(if *signed { sign_extended(byte, 8) & 0xffff_ffff } else { byte })
                })
                .collect(),
        ),
        _ => None,
    }
}

/// What lane `lane` of a warp gets, whose lanes have these operands.
pub(super) fn of_warp(kind: &OpKind, warp: &[Vec<u64>], lane: usize) -> Option<u64> {
    let from = |source: usize| Some(warp[source][0]);
    match kind {
        OpKind::Shuffle(Shuffle::Xor(bits)) => from(lane ^ *bits as usize),
        OpKind::Shuffle(Shuffle::Up(n)) => from(lane.checked_sub(*n as usize).unwrap_or(lane)),
        OpKind::Shuffle(Shuffle::Lane(n)) => from(*n as usize),
        OpKind::Shuffle(Shuffle::Index) => from(warp[lane][1] as usize),
        OpKind::Vote(Vote::Any) => Some(u64::from(warp.iter().any(|v| v[0] == 1))),
        OpKind::Vote(Vote::All) => Some(u64::from(warp.iter().all(|v| v[0] == 1))),
        _ => None,
    }
}

/// Whether an approximation may flush this operand, so that nothing is expected of it.
pub(super) fn may_flush(kind: &OpKind, bits: u64) -> bool {
    let approximates = matches!(
        kind,
        OpKind::FloatUn(FloatUn::Ex2Approx | FloatUn::Lg2Approx | FloatUn::RcpApprox | FloatUn::RsqrtApprox, _)
    );
    approximates && f32::from_bits(bits as u32).is_subnormal()
}

#[test]
fn a_sum_made_odd_rounds_like_the_exact_one() {
    // 1 + 2⁻¹¹ is a tie of f16; the least bit beyond it decides.
    let (one, tiny) = (0x3c00, 1);
    let half_unit = 0x1000; // 2⁻¹¹
    assert_eq!(fma(FloatTy::F16, [one, half_unit, one]), 0x3c00);
    let sum = fma(FloatTy::F16, [half_unit, one, one + 1]);
    assert_eq!(sum, 0x3c02);
    assert_eq!(binary(titan_core::lane::FloatBin::Add, FloatTy::F16, one, tiny), 0x3c00);
}
