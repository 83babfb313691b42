//! The forms of `&`, `|` and `^`.
//!
//! Bits are those of values modulo 2³², of which forms are statements, so that a form that may have wrapped says as much about the 32 bits as
//! one that fits.
//!
//! * *No common bits.* If the low `j` bits of one operand are 0 and the other one is in `0 .. 2ʲ`, then `|` and `^` are their sum.
//! * *Within blocks.* Let the form of one operand be `2ᵏ·m + r`, with all `r` in one block `2ʲ·b .. 2ʲ·(b + 1)`, `j ≤ k`, and let the
//!   other one be in `0 .. 2ʲ`. Its bits from `j` on are 0, so that `|` and `^` change the low `j` bits only: the result is
//!   `2ᵏ·m + 2ʲ·b` plus a number in `0 .. 2ʲ`. The same holds for `&` with a mask in `-2ʲ .. 0`, whose bits from `j` on are 1.
//! * *Permutations.* Where `c` is known, `x ^ c` determines `x`: it is a part of `x` ([`super::Group`]). If `c` is in `0 .. 2ʲ`, each
//!   block of `2ʲ` numbers is permuted by itself.
//!
//! Deliberately absent: `x ^ (x >> 1)` and other permutations whose second operand depends on the first.

use super::{Forms, Group, OpKind};
use crate::analysis::affine::{Affine, I32, Range, Term};
use crate::collections::SortedSet;
use crate::ir::{BinOp, Kernel, Op, OpId, Ty, UnOp, Value};

/// How deep the operands of a value are searched.
const DEEP: u32 = 8;
/// The number of bits of a value.
const BITS: u32 = 32;

/// An operation on bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bitwise {
    And,
    Or,
    Xor,
}

impl Bitwise {
    pub(super) const fn of(op: BinOp) -> Option<Bitwise> {
        match op {
            BinOp::And => Some(Bitwise::And),
            BinOp::Or => Some(Bitwise::Or),
            BinOp::Xor => Some(Bitwise::Xor),
            BinOp::Add
            | BinOp::Sub
            | BinOp::Mul
            | BinOp::Div
            | BinOp::Rem
            | BinOp::Min
            | BinOp::Max
            | BinOp::Shl
            | BinOp::Shr
            | BinOp::MulHi
            | BinOp::Powf => None,
        }
    }
}

impl Forms {
    /// The form with terms of an operation on the bits of two operands with these forms.
    pub(super) fn bitwise(&self, kernel: &Kernel, op: &Op, kind: Bitwise, a: &Affine, b: &Affine) -> Option<Affine> {
        let [x, y] = op.args[..] else { return None };
        let no_common = |zeros: &Affine, of: Value, other: &Affine| {
            let known = || zeros_of(zeros).max(low_zeros(kernel, of, DEEP));
            self.width(other).is_some_and(|width| width <= known())
        };
        let is_sum = match kind {
            Bitwise::Or | Bitwise::Xor => no_common(a, x, b) || no_common(b, y, a),
            Bitwise::And => false,
        };
        let sum = if is_sum { a.plus(b) } else { None };
        sum.or_else(|| self.in_block(kind, a, b)).or_else(|| self.in_block(kind, b, a))
    }

    /// The number of low bits outside of which a value with this form has no bits.
    fn width(&self, form: &Affine) -> Option<u32> {
        let range = form.fits(&self.ranges).filter(|r| r.lo >= 0)?;
        Some(i64::BITS - range.hi.leading_zeros())
    }

    /// The form of a value of which the other operand changes low bits only.
    fn in_block(&self, kind: Bitwise, form: &Affine, other: &Affine) -> Option<Affine> {
        let least = match kind {
            Bitwise::And => {
                let mask = other.fits(&self.ranges).filter(|r| r.hi < 0)?;
                i64::BITS - (!mask.lo).leading_zeros()
            }
            Bitwise::Or | Bitwise::Xor => self.width(other)?,
        };
        let most = form.terms.values().map(|c| c.trailing_zeros()).min()?.min(BITS - 1);
        let Range { lo, hi } = form.rest;
        let bits = (least..=most).find(|bits| lo >> bits == hi >> bits)?;
        let first = (lo >> bits) << bits;
        let last = first.checked_add((1 << bits) - 1)?;
        let rest = match kind {
            // Bits are only set.
            Bitwise::Or => Range { lo, hi: last },
            // Bits are only cleared.
            Bitwise::And => Range { lo: first, hi },
            Bitwise::Xor => Range { lo: first, hi: last },
        };
        Some(Affine { terms: form.terms.clone(), rest })
    }

    /// The range of the result of an operation on the bits of two operands with these forms.
    pub(super) fn bits_range(&self, kind: Bitwise, a: &Affine, b: &Affine) -> Option<Affine> {
        let natural = |form: &Affine| form.fits(&self.ranges).filter(|r| r.lo >= 0);
        let most = |width: u32| (1_i64 << width) - 1;
        let range = match kind {
            // Not more than either operand that is not negative.
            Bitwise::And => {
                let hi = [natural(a), natural(b)].into_iter().flatten().map(|r| r.hi).min()?;
                Range { lo: 0, hi }
            }
            // Not less than either operand.
            Bitwise::Or => {
                Range { lo: natural(a)?.lo.max(natural(b)?.lo), hi: most(self.width(a)?.max(self.width(b)?)) }
            }
            Bitwise::Xor => Range { lo: 0, hi: most(self.width(a)?.max(self.width(b)?)) },
        };
        Some(Affine::range(range))
    }

    /// The permutations that a scalar `x ^ y` is: of `x`, if `y` is known wherever some sources are, and of `y` likewise.
    pub(super) fn permutations(&mut self, kernel: &Kernel, id: OpId, op: &Op) -> Vec<Affine> {
        let (OpKind::Binary(BinOp::Xor), [x, y], [result]) = (&op.kind, &op.args[..], &op.results[..]) else {
            return Vec::new();
        };
        if kernel.ty(*result) != Ty::I32 || self.numbers.of(*result).is_some() {
            return Vec::new();
        }
        let range = self.bits_range(Bitwise::Xor, &self.of(*x), &self.of(*y)).map_or(I32, |form| form.rest);
        let mut found = Vec::new();
        for (of, by) in [(*x, *y), (*y, *x)] {
            let base = self.of(of);
            let Some((source, _)) = base.as_source().filter(|_| base.fits(&self.ranges).is_some()) else { continue };
            let Some(with) = self.sources(kernel, by, DEEP).filter(|with| !with.contains(&source)) else { continue };
            let group = Group {
                base,
                needed: vec![true],
                with: with.into_iter().collect(),
                block: self.width(&self.of(by)).filter(|bits| *bits < BITS - 1).map_or(1, |bits| 1 << bits),
                kind: op.kind.clone(),
                args: vec![self.numbers.of(by).unwrap_or(by)],
                op: id,
            };
            found.push(self.part(&group, 0, range));
        }
        found
    }

    /// The sources of which a scalar is a function, together with launch invariants: wherever they have the same values, so has it.
    fn sources(&self, kernel: &Kernel, value: Value, deep: u32) -> Option<SortedSet<Term>> {
        if self.numbers.of(value).is_some() {
            return Some(SortedSet::new());
        }
        let form = self.of(value);
        if form.is_exact() {
            return form
                .terms
                .keys()
                .filter_map(|term| match term {
                    Term::Program(_) | Term::Work | Term::Part(..) => Some(Some(*term)),
                    Term::Invariant(_) | Term::Clipped(_) => None,
                    Term::SegmentStart(_) => Some(None),
                })
                .collect();
        }
        let op = kernel.def_op(value).filter(|_| deep > 0)?;
        if !matches!(op.kind, OpKind::Unary(_) | OpKind::Binary(_) | OpKind::Cmp(_) | OpKind::Select | OpKind::Cast(_))
        {
            return None;
        }
        let mut all = SortedSet::new();
        for arg in &op.args {
            all.extend(self.sources(kernel, *arg, deep - 1)?);
        }
        Some(all)
    }
}

/// The number of low bits that are 0 in every value with this form.
fn zeros_of(form: &Affine) -> u32 {
    let rest = if form.is_exact() { form.rest.lo.trailing_zeros() } else { 0 };
    form.terms.values().map(|c| c.trailing_zeros()).fold(rest, u32::min)
}

/// The number of low bits of a value, or of all elements of a tile, that are 0 because of how it is computed.
fn low_zeros(kernel: &Kernel, value: Value, deep: u32) -> u32 {
    if let Some(constant) = kernel.int_constant(value) {
        return constant.trailing_zeros().min(BITS);
    }
    let Some(op) = kernel.def_op(value).filter(|_| deep > 0) else { return 0 };
    let of = |i: usize| op.args.get(i).map_or(0, |arg| low_zeros(kernel, *arg, deep - 1));
    let passes = matches!(
        op.kind,
        OpKind::Splat(_)
            | OpKind::Reshape(_)
            | OpKind::Broadcast { .. }
            | OpKind::Permute(_)
            | OpKind::Unary(UnOp::Neg)
    );
    if passes {
        return of(0);
    }
    let OpKind::Binary(kind) = op.kind else { return 0 };
    match kind {
        BinOp::Mul => (of(0) + of(1)).min(BITS),
        BinOp::Shl => match op.args.get(1).and_then(|by| kernel.int_constant(*by)) {
            Some(by @ 0..32) => u32::try_from(by).map_or(0, |by| (of(0) + by).min(BITS)),
            Some(_) | None => 0,
        },
        BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor | BinOp::Min | BinOp::Max => of(0).min(of(1)),
        BinOp::And => of(0).max(of(1)),
        BinOp::Div | BinOp::Rem | BinOp::Shr | BinOp::MulHi | BinOp::Powf => 0,
    }
}
