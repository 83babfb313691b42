//! Folding: integer arithmetic on constants, neutral and absorbing operands, conditions that are always true or false, packing of unpacked
//! words. Floats are not folded: their results are those of the machine.

use super::build::Builder;
use super::func::Value;
use super::nv::NvOp;
use super::op::{IntBin, OpKind, Ty};
use super::range::Range;
use crate::ir::Pred;

/// The low bits, as many as the type has.
pub(super) const fn truncate(ty: Ty, bits: u64) -> u64 {
    match ty {
        Ty::Pred => bits & 1,
        Ty::B16 => bits & 0xffff,
        Ty::B32 => bits & 0xffff_ffff,
        Ty::B64 => bits,
    }
}

/// The low bits as a signed number.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is meant")]
const fn signed(ty: Ty, bits: u64) -> i64 {
    match ty {
        Ty::Pred => (bits & 1) as i64,
        Ty::B16 => (bits as i16) as i64,
        Ty::B32 => (bits as i32) as i64,
        Ty::B64 => bits.cast_signed(),
    }
}

/// The results of an operation, if it folds to constants, to existing values or to simpler operations.
pub(super) fn fold(b: &mut Builder, kind: &OpKind, args: &[Value]) -> Option<Vec<Value>> {
    match (kind, args) {
        (OpKind::Int(op), [x, y]) => fold_int(b, *op, *x, *y),
        (OpKind::IntCmp { pred, signed }, [x, y]) => fold_compare(b, *pred, *signed, [*x, *y]),
        (OpKind::Select, [p, x, y]) => match b.func().constant(*p) {
            Some(0) => Some(vec![*y]),
            Some(_) => Some(vec![*x]),
            None => (x == y).then(|| vec![*x]),
        },
        (OpKind::MulWide { signed: with_sign }, [x, y]) => {
            let (x, y) = (b.func().constant(*x)?, b.func().constant(*y)?);
            let product = if *with_sign {
                signed(Ty::B32, x).wrapping_mul(signed(Ty::B32, y))
            } else {
                x.wrapping_mul(y).cast_signed()
            };
            Some(vec![b.i64(product)])
        }
        (OpKind::Extend { from, signed: with_sign, to }, [x]) => {
            let bits = b.func().constant(*x)?;
            let shift = 64 - u32::from(*from);
            let high = bits << shift;
            let wide = if *with_sign { (high.cast_signed() >> shift).cast_unsigned() } else { high >> shift };
            Some(vec![constant(b, *to, wide)])
        }
        (OpKind::Truncate(to), [x]) => {
            let bits = b.func().constant(*x)?;
            Some(vec![constant(b, *to, bits)])
        }
        (OpKind::FromPred, [x]) => {
            let bits = b.func().constant(*x)?;
            Some(vec![constant(b, Ty::B32, bits)])
        }
        (OpKind::Pack, _) => unpacked(b, args),
        (OpKind::Unpack, [x]) => {
            let op = b.func().def_op(*x)?;
            (op.kind == OpKind::Pack && op.args.len() == 2).then(|| op.args.clone())
        }
        (OpKind::Load { space, bytes, n, offset, masked: true }, _) => {
            let kind = OpKind::Load { space: *space, bytes: *bytes, n: *n, offset: *offset, masked: false };
            let (holds, rest) = fold_mask(b, 1 + usize::from(*n), args)?;
            let (address, other) = rest.split_first()?;
            Some(if holds { b.op(kind, &[*address]) } else { other.to_vec() })
        }
        (OpKind::Store { space, bytes, n, offset, masked: true }, _) => {
            let kind = OpKind::Store { space: *space, bytes: *bytes, n: *n, offset: *offset, masked: false };
            let (holds, rest) = fold_mask(b, 1 + usize::from(*n), args)?;
            Some(if holds { b.op(kind, rest) } else { Vec::new() })
        }
        (OpKind::Nv(NvOp::CopyAsync { bytes, offset, masked: true }), _) => {
            let kind = OpKind::Nv(NvOp::CopyAsync { bytes: *bytes, offset: *offset, masked: false });
            let (holds, rest) = fold_mask(b, 2, args)?;
            // A copy whose condition is false still writes zeros.
            holds.then(|| b.op(kind, rest))
        }
        _ => None,
    }
}

/// Folds a comparison whose result is known, or solves it for a constant: `x + c < y` becomes `y − x > c` if neither side wraps. Many
/// comparisons then share one difference.
fn fold_compare(b: &mut Builder, pred: Pred, with_sign: bool, [x, y]: [Value; 2]) -> Option<Vec<Value>> {
    let ty = b.ty(x);
    if let (Some(x), Some(y)) = (b.func().constant(x), b.func().constant(y)) {
        let order = if with_sign { signed(ty, x).cmp(&signed(ty, y)) } else { x.cmp(&y) };
        let holds = match pred {
            Pred::Eq => order.is_eq(),
            Pred::Ne => order.is_ne(),
            Pred::Lt => order.is_lt(),
            Pred::Le => order.is_le(),
            Pred::Gt => order.is_gt(),
            Pred::Ge => order.is_ge(),
        };
        return Some(vec![b.pred(holds)]);
    }
    if ty != Ty::B32 || b.ty(y) != Ty::B32 {
        return None;
    }
    let (of_x, of_y) = (b.range(x), b.range(y));
    if (with_sign || (of_x.low >= 0 && of_y.low >= 0))
        && let Some(holds) = of_x.compare(pred, of_y)
    {
        return Some(vec![b.pred(holds)]);
    }
    if !with_sign {
        return None;
    }
    let (sum, other, pred) = match (added(b, x), added(b, y)) {
        (Some(_), None) => (x, y, pred),
        (None, Some(_)) => (y, x, swapped(pred)),
        (Some(_), Some(_)) | (None, None) => return None,
    };
    let (base, c) = added(b, sum)?;
    let fits = b.range(base).plus(Range::only(c)).fits() && b.range(other).minus(b.range(base)).fits();
    if !fits || b.func().constant(other).is_some() {
        return None;
    }
    let left = b.int(IntBin::Sub, other, base);
    let c = constant(b, ty, c.cast_unsigned());
    Some(vec![b.cmp_s(swapped(pred), left, c)])
}

/// The operands of `x + c` with a constant `c`, if the value is such a sum.
fn added(b: &Builder, value: Value) -> Option<(Value, i64)> {
    let op = b.func().def_op(value)?;
    let (OpKind::Int(IntBin::Add), [base, c]) = (&op.kind, op.args.as_slice()) else { return None };
    Some((*base, signed(b.ty(value), b.func().constant(*c)?)))
}

/// The predicate with exchanged operands.
const fn swapped(pred: Pred) -> Pred {
    match pred {
        Pred::Eq => Pred::Eq,
        Pred::Ne => Pred::Ne,
        Pred::Lt => Pred::Gt,
        Pred::Le => Pred::Ge,
        Pred::Gt => Pred::Lt,
        Pred::Ge => Pred::Le,
    }
}

fn constant(b: &mut Builder, ty: Ty, bits: u64) -> Value {
    b.one(OpKind::Const(ty, truncate(ty, bits)), &[])
}

/// The word that `args` are all the parts of, as results of one `unpack`.
fn unpacked(b: &Builder, args: &[Value]) -> Option<Vec<Value>> {
    let op = b.func().def_op(*args.first()?)?;
    let whole = matches!(op.kind, OpKind::Unpack | OpKind::UnpackBytes { .. }) && op.results == args;
    whole.then(|| op.args.clone())
}

/// Whether the condition of a masked access holds, if it is constant, and the `n` operands before it.
fn fold_mask<'v>(b: &Builder, n: usize, args: &'v [Value]) -> Option<(bool, &'v [Value])> {
    let (mask, rest) = args.split_last()?;
    // Invalid operands are reported by `infer`.
    if rest.len() != n || b.ty(*mask) != Ty::Pred {
        return None;
    }
    Some((b.func().constant(*mask)? != 0, rest))
}

fn fold_int(b: &mut Builder, op: IntBin, x: Value, y: Value) -> Option<Vec<Value>> {
    let ty = b.ty(x);
    let (cx, cy) = (b.func().constant(x), b.func().constant(y));
    if let (Some(cx), Some(cy)) = (cx, cy)
        && let Some(bits) = compute(op, ty, cx, cy)
    {
        return Some(vec![constant(b, ty, bits)]);
    }
    let ones = truncate(ty, u64::MAX);
    let same = |v| Some(vec![v]);
    match (op, cx, cy) {
        (IntBin::Add | IntBin::Or | IntBin::Xor, Some(0), _) => same(y),
        (
            IntBin::Add | IntBin::Sub | IntBin::Or | IntBin::Xor | IntBin::Shl | IntBin::ShrS | IntBin::ShrU,
            _,
            Some(0),
        ) => same(x),
        (IntBin::Mul, Some(1), _) => same(y),
        (IntBin::Mul | IntBin::DivS | IntBin::DivU, _, Some(1)) => same(x),
        (IntBin::RemS | IntBin::RemU, _, Some(1)) => Some(vec![constant(b, ty, 0)]),
        (IntBin::Mul | IntBin::And, Some(0), _) | (IntBin::Mul | IntBin::And, _, Some(0)) => {
            Some(vec![constant(b, ty, 0)])
        }
        (IntBin::And, Some(c), _) if c == ones => same(y),
        (IntBin::And, _, Some(c)) if c == ones => same(x),
        (IntBin::Or, Some(c), _) | (IntBin::Or, _, Some(c)) if c == ones => Some(vec![constant(b, ty, ones)]),
        (IntBin::And | IntBin::Or, ..) if x == y => same(x),
        (IntBin::Mul, _, Some(c)) if c.is_power_of_two() => shift(b, IntBin::Shl, x, c),
        (IntBin::DivU, _, Some(c)) if c.is_power_of_two() => shift(b, IntBin::ShrU, x, c),
        (IntBin::RemU, _, Some(c)) if c.is_power_of_two() => {
            let mask = constant(b, ty, c - 1);
            Some(vec![b.and(x, mask)])
        }
        (IntBin::Add, _, Some(c)) => reassociate(b, ty, x, c),
        (IntBin::Add, Some(_), None) => Some(vec![b.add(y, x)]),
        (IntBin::Add, None, None) => constants_last(b, ty, x, y),
        _ => None,
    }
}

/// `(x + c) + d` becomes `x + (c + d)`: addresses of unrolled accesses then have a common base, and constant offsets.
fn reassociate(b: &mut Builder, ty: Ty, x: Value, c: u64) -> Option<Vec<Value>> {
    let op = b.func().def_op(x)?;
    let (OpKind::Int(IntBin::Add), [base, inner]) = (&op.kind, op.args.as_slice()) else { return None };
    let (base, inner) = (*base, b.func().constant(*inner)?);
    let sum = constant(b, ty, inner.wrapping_add(c));
    Some(vec![b.add(base, sum)])
}

/// `(x + c) + y` becomes `(x + y) + c`: the constant becomes the offset of an address, and many sums share `x + y`.
fn constants_last(b: &mut Builder, ty: Ty, x: Value, y: Value) -> Option<Vec<Value>> {
    let (base, other, c) = match (added(b, x), added(b, y)) {
        (Some((base, c)), _) => (base, y, c),
        (None, Some((base, c))) => (base, x, c),
        (None, None) => return None,
    };
    let sum = b.add(base, other);
    let c = constant(b, ty, truncate(ty, c.cast_unsigned()));
    Some(vec![b.add(sum, c)])
}

fn shift(b: &mut Builder, op: IntBin, x: Value, power: u64) -> Option<Vec<Value>> {
    let amount = constant(b, Ty::B32, u64::from(power.trailing_zeros()));
    Some(vec![b.int(op, x, amount)])
}

fn compute(op: IntBin, ty: Ty, x: u64, y: u64) -> Option<u64> {
    let (sx, sy) = (signed(ty, x), signed(ty, y));
    let width = match ty {
        Ty::B32 => 32,
        Ty::B64 => 64,
        Ty::Pred | Ty::B16 => 16,
    };
    let amount = u32::try_from(y).ok().filter(|a| *a < width);
    let unsigned = |v: i64| v.cast_unsigned();
    Some(match op {
        IntBin::Add => x.wrapping_add(y),
        IntBin::Sub => x.wrapping_sub(y),
        IntBin::Mul => x.wrapping_mul(y),
        IntBin::MulHi => match ty {
            Ty::B64 => u64::try_from((u128::from(x) * u128::from(y)) >> 64).ok()?,
            Ty::B32 => (x * y) >> 32,
            Ty::Pred | Ty::B16 => return None,
        },
        IntBin::DivS => unsigned((sy != 0).then(|| sx.wrapping_div(sy))?),
        IntBin::DivU => x.checked_div(y)?,
        IntBin::RemS => unsigned((sy != 0).then(|| sx.wrapping_rem(sy))?),
        IntBin::RemU => x.checked_rem(y)?,
        IntBin::And => x & y,
        IntBin::Or => x | y,
        IntBin::Xor => x ^ y,
        IntBin::Shl => x.checked_shl(amount?)?,
        IntBin::ShrS => unsigned(sx >> amount?),
        IntBin::ShrU => x >> amount?,
        IntBin::MinS => unsigned(sx.min(sy)),
        IntBin::MinU => x.min(y),
        IntBin::MaxS => unsigned(sx.max(sy)),
        IntBin::MaxU => x.max(y),
    })
}
