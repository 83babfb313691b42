//! Affine forms: `Σ coefficient · term + rest`, where `lo ≤ rest ≤ hi`.
//!
//! The form of an `i32` value is a statement **modulo 2³²**: `value ≡ Σ cᵢ·tᵢ + r` for some `r` in `lo ..= hi`. Addition,
//! subtraction and multiplication by a constant keep such a statement true although the machine wraps after every step, so
//! the intermediate results may wrap freely. Everything that is not a ring operation (`min`, `/`, `%`, comparisons) needs
//! the value itself, and first checks [`Affine::fits`]. So must every use of a form as an *element index*: see
//! [`crate::analysis::access`].
//!
//! "Unknown" is the form without terms and with the whole of `i32` as its rest; it is always true.
//!
//! Deliberately absent: products of terms, modular facts (parity is asked of the coefficients), and symbolic bounds.

use crate::ir::Value;
use std::collections::BTreeMap;

/// The values of an `i32`, ends included.
pub const I32: Range = Range { lo: i32::MIN as i64, hi: i32::MAX as i64 };

/// A term of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// The program's index along a grid axis.
    Program(u8),
    /// The iteration number of a distributed loop from 0 by 1: programs of one index along axis 0 get the numbers that are
    /// congruent to it, in every such loop.
    Work,
    /// A part of an `unflatten` or `ragged_tile`: number of the group, number of the part.
    Part(usize, usize),
    /// A value that is the same in all programs of a launch, at all times.
    Invariant(Value),
    /// Such a value, or 0 if it is negative: the start of a slice.
    Clipped(Value),
    /// The first row of a segment, by number: a function of the segment's index.
    SegmentStart(usize),
}

impl Term {
    /// Whether the term itself may differ between programs.
    #[must_use]
    pub const fn is_source(self) -> bool {
        match self {
            Term::Program(_) | Term::Work | Term::Part(..) => true,
            Term::Invariant(_) | Term::Clipped(_) | Term::SegmentStart(_) => false,
        }
    }
}

/// Integers from `lo` to `hi`, both included. `lo ≤ hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The least.
    pub lo: i64,
    /// The greatest.
    pub hi: i64,
}

impl Range {
    /// One integer.
    #[must_use]
    pub const fn point(v: i64) -> Range {
        Range { lo: v, hi: v }
    }

    /// Whether every integer of `self` is one of `other`.
    #[must_use]
    pub const fn within(self, other: Range) -> bool {
        self.lo >= other.lo && self.hi <= other.hi
    }

    /// The least range that has both.
    #[must_use]
    pub fn join(self, other: Range) -> Range {
        Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The sums; `None` beyond 64 bits.
    #[must_use]
    pub fn plus(self, other: Range) -> Option<Range> {
        Some(Range { lo: self.lo.checked_add(other.lo)?, hi: self.hi.checked_add(other.hi)? })
    }

    /// The products; `None` beyond 64 bits.
    #[must_use]
    pub fn times(self, other: Range) -> Option<Range> {
        let mut out: Option<Range> = None;
        for a in [self.lo, self.hi] {
            for b in [other.lo, other.hi] {
                let p = Range::point(a.checked_mul(b)?);
                out = Some(out.map_or(p, |o| o.join(p)));
            }
        }
        out
    }
}

/// The form of a value: `Σ cᵢ·tᵢ + r` with `r` in `rest`. No coefficient is zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affine {
    /// Coefficients.
    pub terms: BTreeMap<Term, i64>,
    /// The rest.
    pub rest: Range,
}

/// The ranges of terms. Terms without an entry have all of `i32`.
pub type TermRanges = BTreeMap<Term, Range>;

impl Affine {
    /// A range without terms.
    #[must_use]
    pub fn range(rest: Range) -> Affine {
        Affine { terms: BTreeMap::new(), rest }
    }

    /// The unknown form.
    #[must_use]
    pub fn unknown() -> Affine {
        Affine::range(I32)
    }

    /// A constant.
    #[must_use]
    pub fn constant(v: i64) -> Affine {
        Affine::range(Range::point(v))
    }

    /// A term.
    #[must_use]
    pub fn term(t: Term) -> Affine {
        Affine { terms: BTreeMap::from([(t, 1)]), rest: Range::point(0) }
    }

    /// The constant that the form is.
    #[must_use]
    pub fn as_constant(&self) -> Option<i64> {
        (self.terms.is_empty() && self.is_exact()).then_some(self.rest.lo)
    }

    /// Whether the rest is one integer.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.rest.lo == self.rest.hi
    }

    /// Whether the value is known to be even, wrapped or not.
    #[must_use]
    pub fn is_even(&self) -> bool {
        self.is_exact() && self.rest.lo % 2 == 0 && self.terms.values().all(|c| c % 2 == 0)
    }

    /// `self + other`; `None` beyond 64 bits.
    #[must_use]
    pub fn plus(&self, other: &Affine) -> Option<Affine> {
        let mut terms = self.terms.clone();
        for (t, c) in &other.terms {
            let sum = terms.get(t).copied().unwrap_or(0).checked_add(*c)?;
            if sum == 0 {
                terms.remove(t);
            } else {
                terms.insert(*t, sum);
            }
        }
        Some(Affine { terms, rest: self.rest.plus(other.rest)? })
    }

    /// `self · c`; `None` beyond 64 bits.
    #[must_use]
    pub fn times(&self, c: i64) -> Option<Affine> {
        if c == 0 {
            return Some(Affine::constant(0));
        }
        let terms: Option<BTreeMap<Term, i64>> =
            self.terms.iter().map(|(t, k)| Some((*t, k.checked_mul(c)?))).collect();
        Some(Affine { terms: terms?, rest: self.rest.times(Range::point(c))? })
    }

    /// With `rest` widened by `0 ..= more`.
    #[must_use]
    pub fn widened(&self, more: i64) -> Option<Affine> {
        let rest = Range { lo: self.rest.lo, hi: self.rest.hi.checked_add(more)? };
        Some(Affine { terms: self.terms.clone(), rest })
    }

    /// The integers that `Σ cᵢ·tᵢ + r` may be, before any wrap; `None` beyond 64 bits.
    #[must_use]
    pub fn bounds(&self, ranges: &TermRanges) -> Option<Range> {
        self.terms
            .iter()
            .try_fold(self.rest, |sum, (t, c)| sum.plus(ranges.get(t).copied().unwrap_or(I32).times(Range::point(*c))?))
    }

    /// The range of the value itself, if the form cannot leave `i32`.
    #[must_use]
    pub fn fits(&self, ranges: &TermRanges) -> Option<Range> {
        self.bounds(ranges).filter(|r| r.within(I32))
    }

    /// The one source term `t` with its coefficient, if the form is `c·t + constant`.
    #[must_use]
    pub fn as_source(&self) -> Option<(Term, i64)> {
        let mut terms = self.terms.iter();
        match (terms.next(), terms.next()) {
            (Some((t, c)), None) if self.is_exact() && t.is_source() => Some((*t, *c)),
            _ => None,
        }
    }

    /// Whether the form is the same integer in all programs of a launch.
    #[must_use]
    pub fn is_invariant(&self) -> bool {
        let fixed = |t: &Term| match t {
            Term::Invariant(_) | Term::Clipped(_) => true,
            Term::Program(_) | Term::Work | Term::Part(..) | Term::SegmentStart(_) => false,
        };
        self.is_exact() && self.terms.keys().all(fixed)
    }

    /// One form for a value that has either form: equal terms and joined rests, or joined ranges.
    #[must_use]
    pub fn join(&self, other: &Affine, ranges: &TermRanges) -> Affine {
        if self.terms == other.terms {
            return Affine { terms: self.terms.clone(), rest: self.rest.join(other.rest) };
        }
        match (self.fits(ranges), other.fits(ranges)) {
            (Some(a), Some(b)) => Affine::range(a.join(b)),
            (None, _) | (_, None) => Affine::unknown(),
        }
    }
}
