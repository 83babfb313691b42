//! The output rule: no two programs of a launch access the same element of an output, unless the user opted out.
//!
//! Every `&mut` tensor is in exactly one class.
//!
//! * **Partitioned**: loads and stores alike stay in the program's own part (below).
//! * **Scattered** or **atomic**: only scatters, or only atomic updates. Their results are defined under collisions, but
//!   those of a load would not be; so the kernel must not read the tensor. Atomic updates by different operations do not commute (a sum and
//!   a maximum of one element depend on which comes first), so those of one output must be by one operation, or stay in the program's part.
//! * **Unchecked**: some access uses `unsafe { c.shared() }`. All other accesses must still obey the rule.
//!
//! # Parts
//!
//! A *key* of an output consists of a source `s` (a value that differs between programs, see [`crate::analysis::forms`]), an axis `d` of
//! the tensor, and one of
//!
//! * a stride `C ≠ 0`: every access stays in `C·s + b + k ..  C·s + b + k + |C|` along `d`, with the same `C`, `k` and `b`
//!   for all accesses. `b` is a sum of launch invariants and of starts of segments whose index has keys itself;
//! * segments: every access stays in `off[s] .. off[s + 1]` along `d`, for one `off` that is not written.
//!
//! Two accesses with different values of `s`, whose `b` agree, are disjoint, because their intervals along `d` are. A source is
//! *distinguished* if it has a key, or if all parts of a group that determines it are distinguished. The output is partitioned if, for each
//! axis of the grid with more than one program, `program_id` is distinguished, or, for axis 0, the iteration number of distributed loops,
//! which differs between programs.
//!
//! *Proof.* Let two programs differ along axis `a`, and take one access of each. The sources that were used to distinguish `a` cannot all
//! have equal values, since together they determine the index of the program. Order them so that the index of a segment comes before the
//! keys in whose `b` it occurs (the search rejects cycles), and take the first source that differs. Its `b` is equal in both programs. So
//! the accesses are disjoint along its axis. ∎
//!
//! *Segments are disjoint* if the offsets do not decrease from the lower to the higher index. Every program traps unless
//! `0 ≤ off[e] ≤ off[e + 1] ≤ extent` for its own `e`; the checks of the two programs alone are not enough if there are indices in between.
//! Hence a segment is accepted as a key only if the check is made for every index in between: some `segment(off, e)` is executed by every
//! program, for all data, and `e` takes consecutive values over the launch; or a `ragged_count` of the same offsets, which checks all of
//! them, is executed by every program. A launch in which a check fails is an error, whatever was written before.
//!
//! # Bytes
//!
//! Two 4-bit elements along the last axis share a byte, and a write of one of them writes both. So the bytes of such an output are
//! partitioned: parts of the last axis are those of the elements, with each write widened to whole bytes, and segments of the last axis are
//! not accepted; parts of other axes are whole bytes anyway. Within a program, stores may write halves of bytes. A scatter must start at an
//! even index and have an even extent along the last axis, because several lanes may write to one row.
//!
//! Deliberately absent: guards (`if program_id(1) == 0`), linear indices over two program axes (`4 * p + q`: use `unflatten` of one axis),
//! and everything that depends on values in memory.

use super::access::{Access, Accesses, Kind, Segment, update};
use super::affine::{Affine, I32, Range, Term};
use super::explain;
use super::forms::Forms;
use super::grid::wide_axes;
use super::uses::Tree;
use crate::collections::SortedMap;
use crate::diag::{Code, Diagnostic};
use crate::ir::{self, Def, Kernel, Loc, OpKind, ParamKind};

/// How the values of a source divide an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// Parts of equal size.
    Stride {
        /// The distance from one part to the next in elements; negative if the parts are in reverse order.
        size: i64,
        /// The start of the part of source 0, without the terms that are the same for all programs.
        offset: i64,
        /// Whether there are no other terms that are the same for all programs.
        plain: bool,
    },
    /// Segments.
    Segment {
        /// The parameter with the offsets, if the offsets are not a view of one.
        offsets: Option<usize>,
    },
}

/// A division of an axis into parts, one for each value of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The source whose values select the parts.
    pub source: Term,
    /// The axis of the tensor.
    pub axis: usize,
    /// The positions of the parts.
    pub by: By,
}

/// Why concurrent writes of programs to an output are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// Each program has its own part, which these keys determine.
    Partitioned(Vec<Key>),
    /// The output is only scattered to.
    Scattered,
    /// The output is only updated atomically.
    Atomic,
    /// The user is responsible for it (`unsafe`).
    Unchecked,
}

/// The classes of the outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// The parameter and class of every output, in the order of the parameters.
    pub outputs: Vec<(usize, Class)>,
}

impl Partition {
    /// The classes of a kernel's outputs, with the declared grid; or the errors.
    ///
    /// # Errors
    /// T0401 never stored, T0402 not disjoint, T0406 mixed classes, T0407 shared bytes; at most one for each output and
    /// axis.
    pub fn of(kernel: &Kernel) -> Result<Partition, Vec<Diagnostic<Loc>>> {
        let (partition, errors) = Partition::with_axes(kernel, &wide_axes(&kernel.sig), true);
        if errors.is_empty() { Ok(partition) } else { Err(errors) }
    }

    /// The same for a grid with this many axes that is not declared yet.
    pub(super) fn of_open_grid(kernel: &Kernel, axes: u8) -> (Partition, Vec<Diagnostic<Loc>>) {
        Partition::with_axes(kernel, &(0..axes.min(3)).collect::<Vec<u8>>(), false)
    }

    /// The same for each axis of the grid that has one program: the keys that would distinguish several programs along it, if there are
    /// any.
    pub(super) fn of_narrow_axes(kernel: &Kernel) -> Vec<Partition> {
        let wide = wide_axes(&kernel.sig);
        let narrow = (0..3u8).filter(|axis| !wide.contains(axis) && names_axis(kernel, *axis));
        narrow.map(|axis| Partition::with_axes(kernel, &[axis], true).0).collect()
    }

    fn with_axes(kernel: &Kernel, axes: &[u8], grid_known: bool) -> (Partition, Vec<Diagnostic<Loc>>) {
        let forms = Forms::new(kernel, grid_known);
        let accesses = Accesses::new(kernel, &forms, &Tree::new(kernel));
        let (mut partition, mut errors) = (Partition::default(), Vec::new());
        for (param, p) in kernel.sig.params.iter().enumerate() {
            if matches!(p.kind, ParamKind::Tensor { access: ir::Access::Mut, .. }) {
                let all: Vec<&Access> = accesses.list.iter().filter(|a| a.param == param).collect();
                let class = Output { kernel, forms: &forms, segments: &accesses.segments, param, bytes: false }
                    .class(&all, axes);
                match class {
                    Ok(class) => partition.outputs.push((param, class)),
                    Err(mut found) => errors.append(&mut found),
                }
            }
        }
        (partition, errors)
    }

    /// All keys, with the parameter that each divides.
    pub fn keys(&self) -> impl Iterator<Item = (usize, &Key)> {
        self.outputs.iter().flat_map(|(param, class)| {
            let keys: &[Key] = match class {
                Class::Partitioned(keys) => keys,
                Class::Scattered | Class::Atomic | Class::Unchecked => &[],
            };
            keys.iter().map(|key| (*param, key))
        })
    }
}

/// An output whose class is being determined.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) forms: &'a Forms,
    pub(super) segments: &'a [Segment],
    pub(super) param: usize,
    /// Whether the search is for parts whose writes cover whole bytes.
    pub(super) bytes: bool,
}

/// A claim about an access in terms of a source: its coefficient, the terms that are the same for all programs, and the rest.
type Seen = (i64, SortedMap<Term, i64>, Range);

impl Output<'_> {
    fn class(&self, all: &[&Access], axes: &[u8]) -> Result<Class, Vec<Diagnostic<Loc>>> {
        if all.iter().all(|a| a.kind == Kind::Read) {
            return Err(vec![explain::never_stored(self)]);
        }
        let checked: Vec<&Access> = all.iter().copied().filter(|a| !a.shared).collect();
        let of_kind = |kind: Kind| checked.iter().find(|a| a.kind == kind);
        let plain = of_kind(Kind::Write).or_else(|| of_kind(Kind::Read));
        let class = match (plain, of_kind(Kind::Scatter), of_kind(Kind::Atomic)) {
            (None, None, None) => Class::Unchecked,
            (None, Some(_), None) => Class::Scattered,
            (None, None, Some(one)) => {
                let update = |access: &Access| update(self.kernel.op(access.op));
                if let Some(other) = checked.iter().find(|other| update(other) != update(one)) {
                    // A program orders its own updates, so they may differ if other programs do not access the same elements.
                    self.partition(&checked, axes).map_err(|_| vec![explain::mixed_updates(self, one, other)])?;
                }
                Class::Atomic
            }
            (Some(_), None, None) => Class::Partitioned(self.partition(&checked, axes)?),
            (None, Some(one), Some(other)) | (Some(one), Some(other), _) | (Some(one), None, Some(other)) => {
                return Err(vec![explain::mixed(self, one, other)]);
            }
        };
        let packed = if self.is_packed() { self.shared_bytes(all) } else { Vec::new() };
        if !packed.is_empty() {
            return Err(packed);
        }
        Ok(if all.iter().any(|a| a.shared) { Class::Unchecked } else { class })
    }

    /// The keys of a partition; for a packed output, of one whose parts share no byte.
    fn partition(&self, accesses: &[&Access], axes: &[u8]) -> Result<Vec<Key>, Vec<Diagnostic<Loc>>> {
        let (mut keys, mut errors) = (Vec::new(), Vec::new());
        for axis in axes {
            match self.tell_apart(accesses, *axis) {
                Some(found) => found.into_iter().for_each(|k| push_new(&mut keys, k)),
                None => errors.push(explain::overlap(self, accesses, *axis)),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        if !self.is_packed() || self.bytes {
            return Ok(keys);
        }
        let whole = Output { bytes: true, ..*self };
        let of_axis =
            |axis: &u8| whole.tell_apart(accesses, *axis).ok_or_else(|| explain::half_bytes(self, accesses, *axis));
        let mut found = Vec::new();
        for axis in axes {
            of_axis(axis).map_err(|e| vec![e])?.into_iter().for_each(|k| push_new(&mut found, k));
        }
        Ok(found)
    }

    fn is_packed(&self) -> bool {
        self.kernel.ty(self.kernel.param(self.param)).elem().bits() < 8
    }

    /// The keys that distinguish the programs along a grid axis.
    pub(super) fn tell_apart(&self, accesses: &[&Access], axis: u8) -> Option<Vec<Key>> {
        let source = |t| self.told(accesses, t, &mut Vec::new());
        source(Term::Program(axis)).or_else(|| if axis == 0 { source(Term::Work) } else { None })
    }

    /// The keys that distinguish the values of a source; `open` are the sources whose search is in progress.
    pub(super) fn told(&self, accesses: &[&Access], source: Term, open: &mut Vec<Term>) -> Option<Vec<Key>> {
        if open.contains(&source) {
            return None;
        }
        open.push(source);
        let found = self.key(accesses, source, open).or_else(|| {
            self.forms.groups.iter().enumerate().find_map(|(g, group)| {
                group.base.as_source().filter(|(t, _)| *t == source)?;
                let parts = group.needed.iter().enumerate().filter(|(_, needed)| **needed);
                let mut keys = Vec::new();
                for (i, _) in parts {
                    keys.extend(self.told(accesses, Term::Part(g, i), open)?);
                }
                for source in &group.with {
                    keys.extend(self.told(accesses, *source, open)?);
                }
                Some(keys)
            })
        });
        open.pop();
        found
    }

    fn key(&self, accesses: &[&Access], source: Term, open: &mut Vec<Term>) -> Option<Vec<Key>> {
        let rank = accesses.first()?.axes.len();
        (0..rank).find_map(|axis| {
            let by_stride = self.stride(accesses, source, axis).and_then(|(by, base)| {
                let mut keys = self.bases_agree(accesses, &base, open)?;
                keys.push(Key { source, axis, by });
                Some(keys)
            });
            by_stride.or_else(|| Some(vec![self.by_segment(accesses, source, axis)?]))
        })
    }

    /// The division of an axis into parts of equal size by a source, and the terms that are the same for all programs.
    pub(super) fn stride(&self, accesses: &[&Access], source: Term, axis: usize) -> Option<(By, SortedMap<Term, i64>)> {
        let (first, others) = accesses.split_first()?;
        self.seen(first, source, axis).into_iter().find_map(|(size, base, range)| {
            let even = size % 2 == 0 && base.values().all(|c| c % 2 == 0);
            let touched = |a: &Access, range| if self.cuts(a, axis) { whole_bytes(range, even) } else { range };
            let mut part = touched(first, range);
            for other in others {
                let alike = self.seen(other, source, axis);
                let alike = alike.into_iter().filter(|(c, b, _)| *c == size && *b == base).map(|(_, _, r)| r);
                let range = alike.reduce(|a, b| Range { lo: a.lo.max(b.lo), hi: a.hi.min(b.hi) })?;
                let range = touched(other, range);
                part = Range { lo: part.lo.min(range.lo), hi: part.hi.max(range.hi) };
            }
            let fits = part.hi.checked_sub(part.lo).is_some_and(|w| w < size.abs());
            let offset = if part.lo >= 0 && part.hi < size { 0 } else { part.lo };
            fits.then_some((By::Stride { size, offset, plain: base.is_empty() }, base))
        })
    }

    /// Whether an access may write halves of bytes along an axis, if the search is for bytes.
    fn cuts(&self, access: &Access, axis: usize) -> bool {
        self.bytes && access.kind != Kind::Read && axis + 1 == access.axes.len()
    }

    /// The claims about an access along an axis that depend on a source.
    pub(super) fn seen(&self, access: &Access, source: Term, axis: usize) -> Vec<Seen> {
        let see = |span: &Affine| {
            let (mut base, mut rest) = (SortedMap::new(), span.rest);
            let coefficient = span.terms.get(&source).copied()?;
            for (term, c) in span.terms.iter().filter(|(t, _)| **t != source) {
                if term.is_source() {
                    let range = self.forms.ranges.get(term).copied().unwrap_or(I32);
                    rest = rest.plus(range.times(Range::point(*c))?)?;
                } else {
                    base.insert(*term, *c);
                }
            }
            Some((coefficient, base, rest))
        };
        access.axes.get(axis).map_or_else(Vec::new, |claims| claims.spans.iter().filter_map(see).collect())
    }

    /// The keys of the segments whose starts are terms of all programs: two programs either differ in these segments or have the same
    /// start.
    fn bases_agree(&self, accesses: &[&Access], base: &SortedMap<Term, i64>, open: &mut Vec<Term>) -> Option<Vec<Key>> {
        let mut keys = Vec::new();
        for term in base.keys() {
            if let Term::SegmentStart(number) = term {
                let index = &self.segments.get(*number)?.index;
                if !index.is_invariant() {
                    let (source, _) = index.as_source()?;
                    keys.extend(self.told(accesses, source, open)?);
                }
            }
        }
        Some(keys)
    }

    fn by_segment(&self, accesses: &[&Access], source: Term, axis: usize) -> Option<Key> {
        if accesses.iter().any(|a| self.cuts(a, axis)) {
            // Segments may begin at any element, even or odd.
            return None;
        }
        let (first, others) = accesses.split_first()?;
        let has = |a: &Access, n: usize| a.axes.get(axis).is_some_and(|c| c.segments.contains(&n));
        first.axes.get(axis)?.segments.iter().find_map(|number| {
            let segment = self.segments.get(*number)?;
            segment.index.as_source().filter(|(t, _)| *t == source)?;
            if !segment.checked || !others.iter().all(|a| has(a, *number)) {
                return None;
            }
            let offsets = match self.kernel.value(segment.off).def {
                Def::Param(p) if segment.index == Affine::term(source) => Some(p),
                Def::Param(_) | Def::BlockArg(..) | Def::Result(..) => None,
            };
            Some(Key { source, axis, by: By::Segment { offsets } })
        })
    }

    /// Scatters to a packed output that may share a byte with other elements.
    fn shared_bytes(&self, accesses: &[&Access]) -> Vec<Diagnostic<Loc>> {
        let scattered = accesses.iter().filter(|a| a.kind == Kind::Scatter && explain::halves(a).is_some());
        scattered.map(|a| explain::scattered_halves(self, a)).collect()
    }

    pub(super) fn error(&self, code: Code, access: &Access, title: String) -> Diagnostic<Loc> {
        Diagnostic::new(code, self.kernel.op(access.op).loc, title)
    }

    pub(super) fn name(&self) -> String {
        self.kernel.display_name(self.kernel.param(self.param))
    }
}

/// Whether a kernel uses its program index along an axis of the grid.
fn names_axis(kernel: &Kernel, axis: u8) -> bool {
    kernel.ops.iter().any(|op| op.kind == OpKind::ProgramId(axis))
}

/// The range of whole bytes that covers a range of 4-bit elements, in elements. If the terms that are added to the range are not known to
/// be even, either end may be in the middle of a byte.
const fn whole_bytes(range: Range, even: bool) -> Range {
    if even {
        Range { lo: range.lo & !1, hi: range.hi | 1 }
    } else {
        Range { lo: range.lo.saturating_sub(1), hi: range.hi.saturating_add(1) }
    }
}

fn push_new(keys: &mut Vec<Key>, key: Key) {
    if !keys.contains(&key) {
        keys.push(key);
    }
}
