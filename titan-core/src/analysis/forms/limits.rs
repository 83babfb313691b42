//! Limits of values: forms that a value is never below, or never above, as integers and not modulo 2³². They bound the indices of loops
//! and the elements of slices whose ends are clamped:
//!
//! ```text
//! for %r = %first to %end        %first = mul %p, 128,  %end = min (add %first, 128), %M
//! ```
//!
//! Here `%r` is in `128·p ..= 128·p + 127`, whatever `%M` is.
//!
//! *A form as a limit.* Let the form `v = Σ cᵢ·tᵢ + r` of a value `x` have bounds that are at most `2³¹ − 1`. The form says that
//! `x = v + k·2³²`. If `v` is an `i32`, then `k = 0`; otherwise `v < −2³¹`, so that `k ≥ 1`. In either case `x ≥ v`, and `v` is at least
//! `Σ cᵢ·tᵢ` plus the minimum of `r`. Upper limits follow likewise from bounds that are at least `−2³¹`.
//!
//! *Operations.* The minimum of two values is not above either of them. A sum whose exact value is at least `−2³¹` may only wrap
//! downwards, so that it is not above its exact value, and hence not above the sum of the upper limits of its operands. Differences and
//! multiples by positive constants likewise, and lower limits by symmetry.
//!
//! Deliberately absent: the larger of two limits (the upper limit of a maximum), and limits that follow from branches.

use super::Forms;
use crate::analysis::affine::{Affine, I32, Range, Term};
use crate::collections::SortedMap;
use crate::ir::{BinOp, Kernel, OpKind, Value};

/// How deep the operands of a value are searched.
const DEEP: u32 = 6;
/// The maximum number of limits of a value.
const MOST: usize = 8;

/// The side on which a value is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Lower,
    Upper,
}

impl Side {
    const fn other(self) -> Side {
        match self {
            Side::Lower => Side::Upper,
            Side::Upper => Side::Lower,
        }
    }
}

/// `Σ cᵢ·tᵢ + end`
#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    terms: SortedMap<Term, i64>,
    end: i64,
}

impl Limit {
    fn form(&self) -> Affine {
        Affine { terms: self.terms.clone(), rest: Range::point(self.end) }
    }

    /// The limit that an exact form is.
    fn of(form: Affine) -> Limit {
        Limit { terms: form.terms, end: form.rest.lo }
    }
}

impl Forms {
    /// Forms of every integer from `lo` to before `hi`, one for each set of terms that limits both.
    ///
    /// If there is no such integer, any form is true, and the range of the rest still has an element.
    pub(in crate::analysis) fn between(&self, kernel: &Kernel, lo: Value, hi: Value) -> Vec<Affine> {
        let (below, above) = (self.limits(kernel, lo, Side::Lower, DEEP), self.limits(kernel, hi, Side::Upper, DEEP));
        let mut found: Vec<Affine> = Vec::new();
        for low in &below {
            for high in above.iter().filter(|high| high.terms == low.terms) {
                let rest = Range { lo: low.end, hi: high.end.saturating_sub(1).max(low.end) };
                match found.iter_mut().find(|f| f.terms == low.terms) {
                    Some(known) => {
                        let lo = known.rest.lo.max(rest.lo);
                        known.rest = Range { lo, hi: known.rest.hi.min(rest.hi).max(lo) };
                    }
                    None => found.push(Affine { terms: low.terms.clone(), rest }),
                }
            }
        }
        found
    }

    fn limits(&self, kernel: &Kernel, value: Value, side: Side, deep: u32) -> Vec<Limit> {
        let mut found = Vec::new();
        for form in self.all(value) {
            let Some(bounds) = form.bounds(&self.ranges) else { continue };
            let end = match side {
                Side::Lower => (bounds.hi <= I32.hi).then_some(form.rest.lo),
                Side::Upper => (bounds.lo >= I32.lo).then_some(form.rest.hi),
            };
            if let Some(end) = end {
                push_new(&mut found, Limit { terms: form.terms, end });
            }
        }
        let of_operands = self.limits_of_result(kernel, value, side, deep);
        of_operands.into_iter().for_each(|limit| push_new(&mut found, limit));
        found
    }

    /// The limits that follow from those of the operands of a value.
    fn limits_of_result(&self, kernel: &Kernel, value: Value, side: Side, deep: u32) -> Vec<Limit> {
        let Some(op) = kernel.def_op(value).filter(|_| deep > 0) else { return Vec::new() };
        let (OpKind::Binary(kind), [a, b]) = (&op.kind, &op.args[..]) else { return Vec::new() };
        let (a, b) = (*a, *b);
        let of = |v: Value, side: Side| self.limits(kernel, v, side, deep - 1);
        let (x, y) = (self.range(a), self.range(b));
        let sums = |y: Range, others: Vec<Limit>| {
            if !stays(x.plus(y), side) {
                return Vec::new();
            }
            let all = of(a, side).into_iter().flat_map(|p| {
                let sums = others.iter().filter_map(move |q| p.form().plus(&q.form())).map(Limit::of);
                sums.collect::<Vec<Limit>>()
            });
            all.collect()
        };
        match (kind, side) {
            (BinOp::Min, Side::Upper) | (BinOp::Max, Side::Lower) => [of(a, side), of(b, side)].concat(),
            (BinOp::Add, _) => sums(y, of(b, side)),
            (BinOp::Sub, _) => {
                let negated = of(b, side.other()).into_iter().filter_map(|l| l.form().times(-1)).map(Limit::of);
                sums(Range { lo: -y.hi, hi: -y.lo }, negated.collect())
            }
            (BinOp::Mul, _) => match (kernel.int_constant(a), kernel.int_constant(b)) {
                (_, Some(by)) => multiples(x, by, side, of(a, side)),
                (Some(by), None) => multiples(y, by, side, of(b, side)),
                (None, None) => Vec::new(),
            },
            (BinOp::Shl, _) => match kernel.int_constant(b) {
                Some(by @ 0..32) => multiples(x, 1 << by, side, of(a, side)),
                Some(_) | None => Vec::new(),
            },
            (BinOp::Min, Side::Lower) | (BinOp::Max, Side::Upper) => Vec::new(),
            (
                BinOp::Div | BinOp::Rem | BinOp::Shr | BinOp::And | BinOp::Or | BinOp::Xor | BinOp::MulHi | BinOp::Powf,
                _,
            ) => Vec::new(),
        }
    }
}

/// The limits of a multiple by a positive constant of a value in a range.
fn multiples(range: Range, by: i64, side: Side, limits: Vec<Limit>) -> Vec<Limit> {
    if by <= 0 || !stays(range.times(Range::point(by)), side) {
        return Vec::new();
    }
    limits.into_iter().filter_map(|limit| limit.form().times(by)).map(Limit::of).collect()
}

/// Whether an exact result in a range does not wrap to the other side of a limit.
fn stays(exact: Option<Range>, side: Side) -> bool {
    exact.is_some_and(|range| match side {
        Side::Lower => range.hi <= I32.hi,
        Side::Upper => range.lo >= I32.lo,
    })
}

fn push_new(limits: &mut Vec<Limit>, limit: Limit) {
    if limits.len() < MOST && !limits.contains(&limit) {
        limits.push(limit);
    }
}
