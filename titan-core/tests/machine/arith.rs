//! Integer operations, written down once more, on 128 bits.

use titan_core::ir::Pred;
use titan_core::lane::{AtomicFn, IntBin, IntUn, OpKind, Ty};

fn bits(ty: Ty) -> u32 {
    match ty {
        Ty::Pred => 1,
        Ty::B16 => 16,
        Ty::B32 => 32,
        Ty::B64 => 64,
    }
}

/// The low bits as a number with a sign.
fn signed(width: u32, x: u64) -> i128 {
    let x = i128::from(x) & ((1i128 << width) - 1);
    if x >> (width - 1) & 1 == 1 { x - (1i128 << width) } else { x }
}

fn unsigned(width: u32, x: u64) -> i128 {
    i128::from(x) & ((1i128 << width) - 1)
}

/// An operation on integers; nothing where its contract forbids the operands.
pub(crate) fn int(op: IntBin, ty: Ty, x: u64, y: u64) -> Option<u64> {
    let w = bits(ty);
    let ((sx, sy), (ux, uy)) = ((signed(w, x), signed(w, y)), (unsigned(w, x), unsigned(w, y)));
    let amount = || (y < u64::from(w)).then_some(y as u32);
    let out = match op {
        IntBin::Add => ux + uy,
        IntBin::Sub => ux - uy,
        IntBin::Mul => return Some((x.wrapping_mul(y)) & (u64::MAX >> (64 - w))),
        IntBin::MulHi => return Some(((ux as u128 * uy as u128) >> w) as u64),
        IntBin::DivS => (sy != 0).then(|| sx / sy)?,
        IntBin::DivU => (uy != 0).then(|| ux / uy)?,
        IntBin::RemS => (sy != 0).then(|| sx % sy)?,
        IntBin::RemU => (uy != 0).then(|| ux % uy)?,
        IntBin::And => ux & uy,
        IntBin::Or => ux | uy,
        IntBin::Xor => ux ^ uy,
        IntBin::Shl => ux << amount()?,
        IntBin::ShrS => sx >> amount()?,
        IntBin::ShrU => ux >> amount()?,
        IntBin::MinS => sx.min(sy),
        IntBin::MinU => ux.min(uy),
        IntBin::MaxS => sx.max(sy),
        IntBin::MaxU => ux.max(uy),
    };
    Some(unsigned(64, out as u64) as u64 & (u64::MAX >> (64 - w)))
}

/// Operations that depend on nothing but their operands, the first of which has this width.
pub(crate) fn plain(kind: &OpKind, ty: Option<Ty>, args: &[u64]) -> Option<Vec<u64>> {
    let ty = ty.unwrap_or(Ty::B32);
    let w = bits(ty);
    Some(match (kind, args) {
        (OpKind::Const(_, c), []) => vec![*c],
        (OpKind::Int(op), [x, y]) => vec![int(*op, ty, *x, *y)?],
        (OpKind::IntUn(IntUn::CountOnes), [x]) => vec![x.count_ones().into()],
        (OpKind::IntUn(IntUn::LeadingZeros), [x]) => vec![u64::from((*x as u32).leading_zeros())],
        (OpKind::MulWide { signed: true }, [x, y]) => vec![(signed(32, *x) * signed(32, *y)) as u64],
        (OpKind::MulWide { signed: false }, [x, y]) => vec![(unsigned(32, *x) * unsigned(32, *y)) as u64],
        (OpKind::IntCmp { pred, signed: s }, [x, y]) => {
            let (x, y) = if *s { (signed(w, *x), signed(w, *y)) } else { (unsigned(w, *x), unsigned(w, *y)) };
            let holds = match pred {
                Pred::Eq => x == y,
                Pred::Ne => x != y,
                Pred::Lt => x < y,
                Pred::Le => x <= y,
                Pred::Gt => x > y,
                Pred::Ge => x >= y,
            };
            vec![holds.into()]
        }
        (OpKind::Extend { from, signed: true, .. }, [x]) => vec![signed((*from).into(), *x) as u64],
        (OpKind::Extend { from, signed: false, .. }, [x]) => vec![unsigned((*from).into(), *x) as u64],
        (OpKind::Truncate(_) | OpKind::FromPred, [x]) => vec![*x],
        (OpKind::Select, [p, x, y]) => vec![if *p == 1 { *x } else { *y }],
        (OpKind::Pack, [a, b]) => vec![a | b << w],
        (OpKind::Pack, [a, b, c, d]) => vec![(a & 255) | (b & 255) << 8 | (c & 255) << 16 | (d & 255) << 24],
        (OpKind::Unpack, [x]) => vec![x & ((1 << (w / 2)) - 1), x >> (w / 2)],
        (OpKind::UnpackBytes { signed: s }, [x]) => {
            (0..4).map(|i| x >> (8 * i)).map(|b| if *s { signed(8, b) as u64 } else { b & 255 }).collect()
        }
        _ => return None,
    })
}

/// What an atomic update leaves; floats are not computed.
pub(crate) fn atomic(f: AtomicFn, bytes: u64, old: u64, x: u64) -> u64 {
    let w = bytes as u32 * 8;
    let by = |op| int(op, if w == 64 { Ty::B64 } else { Ty::B32 }, old, x).unwrap_or(0);
    match f {
        AtomicFn::Add => by(IntBin::Add),
        AtomicFn::MinS => by(IntBin::MinS),
        AtomicFn::MinU => by(IntBin::MinU),
        AtomicFn::MaxS => by(IntBin::MaxS),
        AtomicFn::MaxU => by(IntBin::MaxU),
        AtomicFn::And => old & x,
        AtomicFn::Or => old | x,
        AtomicFn::Exchange => x,
        AtomicFn::AddF32 | AtomicFn::AddF64 | AtomicFn::AddF16x2 => 0,
    }
}
