//! Affine forms: `Σ coefficient · term + rest`, where `lo ≤ rest ≤ hi`.
//!
//! The form of an `i32` value is a statement **modulo 2³²**: `value ≡ Σ cᵢ·tᵢ + r` for some `r` in `lo ..= hi`. Addition, subtraction and
//! multiplication by a constant preserve such a statement although the machine wraps after every step, so that intermediate results may
//! wrap. Everything that is not a ring operation (`min`, `/`, `%`, comparisons) needs the value itself, and first checks [`Affine::fits`].
//! So must every use of a form as an *element index*: see [`crate::analysis::access`].
//!
//! "Unknown" is the form without terms, with all of `i32` as its rest; it is always true.
//!
//! Deliberately absent: products of terms, modular facts (parity is derived from the coefficients), and symbolic bounds.

use crate::collections::SortedMap;
use crate::ir::Value;

/// The range of an `i32`, both ends included.
pub const I32: Range = Range { lo: i32::MIN as i64, hi: i32::MAX as i64 };

/// A term of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// The program's index along a grid axis.
    Program(u8),
    /// The iteration number of a distributed loop from 0 by 1. In every such loop, a program executes the numbers that are congruent to its
    /// index along axis 0.
    Work,
    /// A part of an `unflatten` or `ragged_tile`: the number of the group, and the number of the part.
    Part(usize, usize),
    /// A value that is the same in all programs of a launch, at all times.
    Invariant(Value),
    /// The maximum of such a value and 0: the start of a slice.
    Clipped(Value),
    /// The first row of the segment with this number, which is a function of the segment's index.
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

/// The integers from `lo` to `hi`, both included, with `lo ≤ hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The minimum, inclusive.
    pub lo: i64,
    /// The maximum, inclusive.
    pub hi: i64,
}

impl Range {
    /// The range of one integer.
    #[must_use]
    pub const fn point(v: i64) -> Range {
        Range { lo: v, hi: v }
    }

    /// Whether every integer of `self` is in `other`.
    #[must_use]
    pub const fn within(self, other: Range) -> bool {
        self.lo >= other.lo && self.hi <= other.hi
    }

    /// The smallest range that contains both.
    #[must_use]
    pub fn join(self, other: Range) -> Range {
        Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The range of sums; `None` beyond 64 bits.
    #[must_use]
    pub fn plus(self, other: Range) -> Option<Range> {
        Some(Range { lo: self.lo.checked_add(other.lo)?, hi: self.hi.checked_add(other.hi)? })
    }

    /// The range of products; `None` beyond 64 bits.
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

/// The form of a value: `Σ cᵢ·tᵢ + r` with `r` in `rest`. Coefficients are not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affine {
    /// The coefficients of the terms.
    pub terms: SortedMap<Term, i64>,
    /// The range of the rest.
    pub rest: Range,
}

/// The ranges of terms. A term without an entry may have any `i32` value.
pub type TermRanges = SortedMap<Term, Range>;

impl Affine {
    /// A form without terms.
    #[must_use]
    pub fn range(rest: Range) -> Affine {
        Affine { terms: SortedMap::new(), rest }
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

    /// The form of a term alone.
    #[must_use]
    pub fn term(t: Term) -> Affine {
        Affine { terms: SortedMap::from([(t, 1)]), rest: Range::point(0) }
    }

    /// The value of a constant form.
    #[must_use]
    pub fn as_constant(&self) -> Option<i64> {
        (self.terms.is_empty() && self.is_exact()).then_some(self.rest.lo)
    }

    /// Whether the rest is a single integer.
    #[must_use]
    pub const fn is_exact(&self) -> bool {
        self.rest.lo == self.rest.hi
    }

    /// Whether the value is known to be even, whether it wraps or not.
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
        let terms: Option<SortedMap<Term, i64>> =
            self.terms.iter().map(|(t, k)| Some((*t, k.checked_mul(c)?))).collect();
        Some(Affine { terms: terms?, rest: self.rest.times(Range::point(c))? })
    }

    /// The form with `rest` extended by `0 ..= more`.
    #[must_use]
    pub fn widened(&self, more: i64) -> Option<Affine> {
        let rest = Range { lo: self.rest.lo, hi: self.rest.hi.checked_add(more)? };
        Some(Affine { terms: self.terms.clone(), rest })
    }

    /// The range of `Σ cᵢ·tᵢ + r` before wrapping; `None` beyond 64 bits.
    #[must_use]
    pub fn bounds(&self, ranges: &TermRanges) -> Option<Range> {
        self.terms
            .iter()
            .try_fold(self.rest, |sum, (t, c)| sum.plus(ranges.get(t).copied().unwrap_or(I32).times(Range::point(*c))?))
    }

    /// The range of the value, if the form is always within `i32`.
    #[must_use]
    pub fn fits(&self, ranges: &TermRanges) -> Option<Range> {
        self.bounds(ranges).filter(|r| r.within(I32))
    }

    /// The source `t` and its coefficient, if the form is `c·t + constant` with one source.
    #[must_use]
    pub fn as_source(&self) -> Option<(Term, i64)> {
        let mut terms = self.terms.iter();
        match (terms.next(), terms.next()) {
            (Some((t, c)), None) if self.is_exact() && t.is_source() => Some((*t, *c)),
            _ => None,
        }
    }

    /// Whether the form has the same value in all programs of a launch.
    #[must_use]
    pub fn is_invariant(&self) -> bool {
        let fixed = |t: &Term| match t {
            Term::Invariant(_) | Term::Clipped(_) => true,
            Term::Program(_) | Term::Work | Term::Part(..) | Term::SegmentStart(_) => false,
        };
        self.is_exact() && self.terms.keys().all(fixed)
    }

    /// A form for a value that has one of two forms: the equal terms with the join of the rests, or else the join of the ranges.
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

/// The greatest common divisor of two numbers, which is not negative; that of 0 and a number is the number's absolute value.
pub(crate) fn greatest_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}
