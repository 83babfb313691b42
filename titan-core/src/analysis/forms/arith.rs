//! The forms of results of arithmetic. Every statement is about values that may have wrapped: see [`crate::analysis::affine`].

use super::Forms;
use super::bits::Bitwise;
use crate::analysis::affine::{Affine, I32, Range};
use crate::ir::{BinOp, Elem, UnOp};

impl Forms {
    pub(super) fn unary(&self, op: UnOp, a: &Affine) -> Affine {
        let form = match op {
            UnOp::Neg => a.times(-1),
            UnOp::Not => a.times(-1).and_then(|n| n.plus(&Affine::constant(-1))),
            UnOp::Abs => a.fits(&self.ranges).map(|r| {
                let hi = r.lo.abs().max(r.hi.abs());
                if r.lo >= 0 { a.clone() } else { Affine::range(Range { lo: r.hi.min(0).abs(), hi }) }
            }),
            UnOp::Exp
            | UnOp::Exp2
            | UnOp::Ln
            | UnOp::Log2
            | UnOp::Sqrt
            | UnOp::Rsqrt
            | UnOp::Recip
            | UnOp::Sin
            | UnOp::Cos
            | UnOp::Tanh
            | UnOp::Sigmoid
            | UnOp::Erf
            | UnOp::Floor
            | UnOp::Ceil
            | UnOp::Trunc
            | UnOp::Round
            | UnOp::RoundTiesEven
            | UnOp::IsNan
            | UnOp::CountOnes
            | UnOp::LeadingZeros => None,
        };
        form.unwrap_or_else(Affine::unknown)
    }

    pub(super) fn binary(&self, op: BinOp, a: &Affine, b: &Affine) -> Affine {
        let fits = |x: &Affine| x.fits(&self.ranges);
        let form = match op {
            BinOp::Add => a.plus(b),
            BinOp::Sub => b.times(-1).and_then(|n| a.plus(&n)),
            BinOp::Mul => match (a.as_constant(), b.as_constant()) {
                (_, Some(c)) => a.times(c),
                (Some(c), _) => b.times(c),
                (None, None) => fits(a).zip(fits(b)).and_then(|(x, y)| x.times(y)).map(Affine::range),
            },
            BinOp::Shl => b.as_constant().and_then(|c| if (0..32).contains(&c) { a.times(1 << c) } else { a.times(0) }),
            BinOp::Shr => match (fits(a), b.as_constant()) {
                (Some(r), Some(c)) if (0..32).contains(&c) => {
                    Some(Affine::range(Range { lo: r.lo >> c, hi: r.hi >> c }))
                }
                (_, _) => None,
            },
            BinOp::Div => divided(a, fits(a), b.as_constant()),
            BinOp::Rem => remainder(a, fits(a), b.as_constant()),
            BinOp::Min | BinOp::Max => Some(extremum(op, (a, fits(a)), (b, fits(b)))),
            BinOp::And => self.bits_range(Bitwise::And, a, b),
            BinOp::Or => self.bits_range(Bitwise::Or, a, b),
            BinOp::Xor => self.bits_range(Bitwise::Xor, a, b),
            BinOp::MulHi | BinOp::Powf => None,
        };
        form.unwrap_or_else(Affine::unknown)
    }

    /// The form of a quotient by a positive constant that divides the coefficients of the dividend.
    ///
    /// The dividend is `d·m + r`, and its quotient, rounded down, is `m` plus that of `r`. A quotient that is truncated is rounded down if the
    /// dividend is not negative.
    pub(super) fn quotient(&self, op: BinOp, a: &Affine, b: &Affine) -> Option<Affine> {
        let (range, by) = (a.fits(&self.ranges)?, b.as_constant()?);
        let by = match op {
            BinOp::Div if by > 0 && range.lo >= 0 => by,
            BinOp::Shr if (0..32).contains(&by) => 1 << by,
            BinOp::Div
            | BinOp::Shr
            | BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::Rem
            | BinOp::Min
            | BinOp::Max
            | BinOp::Shl
            | BinOp::And
            | BinOp::Or
            | BinOp::Xor
            | BinOp::MulHi
            | BinOp::Powf => return None,
        };
        let whole = a.terms.values().all(|c| c % by == 0);
        let terms = || a.terms.iter().map(|(t, c)| (*t, c / by)).collect();
        let rest = Range { lo: a.rest.lo.div_euclid(by), hi: a.rest.hi.div_euclid(by) };
        whole.then(|| Affine { terms: terms(), rest })
    }
}

fn divided(a: &Affine, range: Option<Range>, by: Option<i64>) -> Option<Affine> {
    match (by?, range?) {
        (0, _) => Some(Affine::constant(0)),
        (1, _) => Some(a.clone()),
        // Truncating division by a constant is monotonic. `MIN / -1` is outside of `i32`, and so may the form be.
        (d, r) => Some(Affine::range(Range::point(r.lo / d).join(Range::point(r.hi / d)))),
    }
}

fn remainder(a: &Affine, range: Option<Range>, by: Option<i64>) -> Option<Affine> {
    let d = by?;
    let most = d.abs() - 1;
    match range {
        _ if d == 0 => Some(a.clone()),
        Some(r) if r.lo >= 0 && r.hi <= most => Some(a.clone()),
        Some(r) if r.lo >= 0 => Some(Affine::range(Range { lo: 0, hi: most })),
        Some(_) | None => Some(Affine::range(Range { lo: -most, hi: most })),
    }
}

fn extremum(op: BinOp, (a, ra): (&Affine, Option<Range>), (b, rb): (&Affine, Option<Range>)) -> Affine {
    let pick = |x: i64, y: i64| if op == BinOp::Min { x.min(y) } else { x.max(y) };
    let pick_range = |x: Range, y: Range| Range { lo: pick(x.lo, y.lo), hi: pick(x.hi, y.hi) };
    if ra.is_some() && rb.is_some() && a.terms == b.terms {
        return Affine { terms: a.terms.clone(), rest: pick_range(a.rest, b.rest) };
    }
    let (x, y) = (ra.unwrap_or(I32), rb.unwrap_or(I32));
    let range = pick_range(x, y);
    // If the minimum or maximum is always the same side, the result has the form of that side.
    match (ra, rb) {
        (Some(_), _) if range == x && (if op == BinOp::Min { x.hi <= y.lo } else { x.lo >= y.hi }) => a.clone(),
        (_, Some(_)) if range == y && (if op == BinOp::Min { y.hi <= x.lo } else { y.lo >= x.hi }) => b.clone(),
        (_, _) => Affine::range(range),
    }
}

/// The range of a narrow integer, converted to `i32`.
pub(super) fn narrow(from: Elem) -> Affine {
    match from {
        Elem::Bool => Affine::range(Range { lo: 0, hi: 1 }),
        Elem::U4 | Elem::U8 | Elem::U16 => Affine::range(Range { lo: 0, hi: (1 << from.bits()) - 1 }),
        Elem::I4 | Elem::I8 | Elem::I16 => {
            let half = 1 << (from.bits() - 1);
            Affine::range(Range { lo: -half, hi: half - 1 })
        }
        Elem::F64
        | Elem::F32
        | Elem::Tf32
        | Elem::F16
        | Elem::Bf16
        | Elem::E4m3
        | Elem::E5m2
        | Elem::I64
        | Elem::I32
        | Elem::U64
        | Elem::U32 => Affine::unknown(),
    }
}
