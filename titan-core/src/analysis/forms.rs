//! The affine form of every `i32` value, scalar or tile; the form of a tile holds for each of its elements.
//!
//! # Sources: values that differ between programs in a known way
//!
//! * `program_id(axis)`;
//! * the iteration number of a distributed loop `0 .. n` by 1 that is not inside another one;
//! * the parts of `unflatten(b, [d₀, …])`, if the form of `b` is known not to wrap and the extents are invariant. The parts
//!   are the digits of repeated division, the first one the last quotient: whatever the extents, negative and zero ones
//!   included, all parts together determine `b` (`x / 0` is 0 and `x % 0` is `x`);
//! * the parts of `unflatten_grouped`, likewise: they are those digits with the last two exchanged for others by a bijection
//!   of their box ([`crate::ir::grouped`]). It preserves the properties that are used here: each part has the range of its digit, the part
//!   of an axis of extent 1 is 0, and the parts of 0, 1, 2, … are consecutive: a group begins after the rows of the one before it,
//!   goes through its own rows first, and then from column to column;
//! * the parts of `ragged_tile(y, off, j)`, likewise, if `y` and `off` are invariant and `off` is an input: segment, row
//!   tile and column tile determine `j`, which traps if there is no such tile.
//!
//! Two operations with equal bases and equal invariant operands have the same parts: they are one *group*. Bases are equal if their forms
//! are equal and exact. `p + i` and `p + j` of two loops may have the same form, `p + r` with `0 ≤ r ≤ 3`, and be different numbers; so
//! each operation on an inexact base is a group by itself.
//!
//! * `x ^ y`, if `x` is such a number and `y` a function of launch invariants and of other such numbers: with these, it determines `x`.
//!
//! An invariant value without a more precise form is a term of its own. Loop variables of other loops are between their bounds;
//! carried values, and values read from memory, are unknown.
//!
//! # Several forms
//!
//! A value may have several forms, all of which are true, such as `min(128·p + 128, M)`. [`Forms::of`] is one of them, and it is the one that
//! everything uses that needs a single form; [`Forms::all`] has them all. An operation on values with several forms has a form for each
//! combination, up to a few.

mod arith;
mod bits;
mod limits;

use self::arith::narrow;
use self::bits::Bitwise;
use super::affine::{Affine, I32, Range, Term, TermRanges};
use super::grid::{is_product, program_bounds};
use super::number::{Numbers, root};
use super::tiles::cdiv;
use crate::collections::SortedMap;
use crate::ir::{
    Access, BinOp, Block, Const, Elem, ForKind, Kernel, NvOp, Op, OpId, OpKind, ParamKind, ReduceOp, TtgOp, Ty, Value,
};

/// The maximum number of forms of a value.
const MOST_FORMS: usize = 4;

/// Parts that together determine a base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The number that is decomposed into parts.
    pub base: Affine,
    /// For each part, whether it must be known to determine the base; the other parts are always 0.
    pub needed: Vec<bool>,
    /// Other sources that must be known to determine the base.
    pub with: Vec<Term>,
    /// The extent of the aligned blocks of bases that the parts permute; 1 for others, and where it is not known.
    pub block: i64,
    /// The operation that computes the parts.
    pub(super) kind: OpKind,
    args: Vec<Value>,
    /// The first operation of the group.
    pub op: OpId,
}

/// The forms of a kernel.
#[derive(Clone, Debug)]
pub struct Forms {
    forms: Vec<Affine>,
    /// Other forms of values.
    others: SortedMap<Value, Vec<Affine>>,
    /// The ranges of terms.
    pub ranges: TermRanges,
    /// Groups of parts.
    pub groups: Vec<Group>,
    /// The numbers of invariant values.
    pub numbers: Numbers,
    /// For each distributed loop, its induction variable, and the numbers of the factors of its end.
    ends: Vec<(Value, Vec<Value>)>,
}

impl Forms {
    /// Computes the forms of a kernel. Without `grid_known`, the grid is not declared yet, and program indices are assumed to be small.
    #[must_use]
    pub fn new(kernel: &Kernel, grid_known: bool) -> Forms {
        let mut forms = Forms {
            forms: vec![Affine::unknown(); kernel.values.len()],
            others: SortedMap::new(),
            ranges: program_bounds(kernel, grid_known),
            groups: Vec::new(),
            numbers: Numbers::new(kernel),
            ends: Vec::new(),
        };
        forms.ranges.insert(Term::Work, Range { lo: 0, hi: I32.hi - 1 });
        for (i, param) in kernel.sig.params.iter().enumerate() {
            if param.kind == ParamKind::Scalar(Elem::I32) {
                forms.set(kernel, Value::new(i), vec![Affine::unknown()]);
            }
        }
        forms.block(kernel, kernel.body, false);
        forms
    }

    /// The form of a value.
    #[must_use]
    pub fn of(&self, value: Value) -> Affine {
        self.forms.get(value.index()).cloned().unwrap_or_else(Affine::unknown)
    }

    /// All known forms of a value; the first one is that of [`Forms::of`].
    #[must_use]
    pub fn all(&self, value: Value) -> Vec<Affine> {
        let others = self.others.get(&value).map_or(&[][..], Vec::as_slice);
        [self.of(value)].into_iter().chain(others.iter().cloned()).collect()
    }

    /// The range of a value; all of `i32` if its form may wrap.
    #[must_use]
    pub fn range(&self, value: Value) -> Range {
        self.of(value).fits(&self.ranges).unwrap_or(I32)
    }

    /// Whether the values of the form in a launch, over all programs, are consecutive integers. This holds for `program_id`, the numbers of
    /// a distributed loop, and the parts of either, each with a constant added.
    #[must_use]
    pub fn is_contiguous(&self, form: &Affine) -> bool {
        let mut form = form;
        loop {
            match form.as_source() {
                Some((Term::Program(_) | Term::Work, 1 | -1)) => return true,
                Some((Term::Part(g, _), 1 | -1)) => match self.groups.get(g).filter(|g| is_box(&g.kind)) {
                    // The digits of 0, 1, 2, … are consecutive, those of 5, 6, 7, … may not be.
                    Some(group) if group.base.rest == Range::point(0) => form = &group.base,
                    Some(_) | None => return false,
                },
                Some(_) | None => return false,
            }
        }
    }

    /// Records the forms of a value. An invariant scalar without an exact form becomes a term.
    fn set(&mut self, kernel: &Kernel, value: Value, forms: Vec<Affine>) {
        let mut forms = forms.into_iter();
        let form = forms.next().unwrap_or_else(Affine::unknown);
        let number = self.numbers.of(value).filter(|_| kernel.ty(value) == Ty::I32 && !form.is_exact());
        let form = match number {
            Some(n) => {
                let range = form.fits(&self.ranges).unwrap_or(I32);
                self.ranges.insert(Term::Invariant(n), range);
                Affine::term(Term::Invariant(n))
            }
            None => {
                let others: Vec<Affine> = forms.collect();
                if !others.is_empty() {
                    self.others.insert(value, others);
                }
                form
            }
        };
        if let Some(slot) = self.forms.get_mut(value.index()) {
            *slot = form;
        }
    }

    fn block(&mut self, kernel: &Kernel, block: Block, in_distributed: bool) {
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            if let OpKind::For(kind) = op.kind
                && let Some(index) = op.regions.first().and_then(|r| kernel.block(*r).args.first())
            {
                let forms = self.index_forms(kernel, kind, op, in_distributed);
                let is_number = forms.first() == Some(&Affine::term(Term::Work));
                if let (true, Some(hi)) = (is_number, op.args.get(1)) {
                    self.ends.extend(self.numbers.factors(kernel, *hi).map(|factors| (*index, factors)));
                }
                self.set(kernel, *index, forms);
            }
            let inner = in_distributed || op.kind == OpKind::For(ForKind::Distributed);
            op.regions.iter().for_each(|r| self.block(kernel, *r, inner));
            self.results(kernel, *id, op);
        }
    }

    /// The forms of the index of a loop.
    fn index_forms(&self, kernel: &Kernel, kind: ForKind, op: &Op, in_distributed: bool) -> Vec<Affine> {
        let [from, to, step, ..] = op.args[..] else { return vec![Affine::unknown()] };
        let (lo, hi, step) = (self.of(from), self.of(to), self.of(step).as_constant());
        let dealt = kind == ForKind::Distributed && !in_distributed;
        if dealt && lo.as_constant() == Some(0) && step == Some(1) {
            return vec![Affine::term(Term::Work)];
        }
        if step.is_none_or(|s| s <= 0) {
            return vec![Affine::unknown()];
        }
        let span = |lo: i64, end: i64| Range { lo, hi: end.saturating_sub(1).max(lo) };
        let between = self.between(kernel, from, to);
        let mut found = match (lo.fits(&self.ranges), hi.fits(&self.ranges)) {
            (Some(_), Some(_)) if lo.terms == hi.terms => {
                vec![Affine { terms: lo.terms, rest: span(lo.rest.lo, hi.rest.hi) }]
            }
            (Some(first), Some(end)) => vec![Affine::range(span(first.lo, end.hi))],
            // A bound that may wrap: a form with terms is more precise than any `i32`.
            (None, _) | (_, None) => Vec::new(),
        };
        for form in between.into_iter().filter(|form| !form.terms.is_empty()) {
            add_form(&mut found, form);
        }
        if found.is_empty() {
            found.push(Affine::range(span(self.range(from).lo, self.range(to).hi)));
        }
        found
    }

    fn results(&mut self, kernel: &Kernel, id: OpId, op: &Op) {
        if matches!(op.kind, OpKind::Unflatten | OpKind::UnflattenGrouped(_) | OpKind::RaggedTile { .. }) {
            return self.parts(kernel, id, op);
        }
        for (i, result) in op.results.iter().enumerate() {
            if kernel.ty(*result).elem() == Elem::I32 && !matches!(kernel.ty(*result), Ty::Tensor(..)) {
                let forms = self.result_forms(kernel, id, op, i);
                self.set(kernel, *result, forms);
            }
        }
    }

    /// The forms of a result: those that follow from each combination of forms of the operands, and what a permutation is a part of.
    fn result_forms(&mut self, kernel: &Kernel, id: OpId, op: &Op, result: usize) -> Vec<Affine> {
        let plain: Vec<Affine> = op.args.iter().map(|arg| self.of(*arg)).collect();
        let first = self.form(kernel, op, result, &plain);
        let mut found = if first.terms.is_empty() { self.permutations(kernel, id, op) } else { Vec::new() };
        add_form(&mut found, first);
        let several = op.args.iter().any(|arg| self.others.contains_key(arg));
        let mut combinations = if several { vec![Vec::new()] } else { vec![plain] };
        for arg in op.args.iter().filter(|_| several) {
            let of_arg = self.all(*arg);
            let longer = |before: &Vec<Affine>| {
                of_arg.iter().map(|form| [&before[..], &[form.clone()]].concat()).collect::<Vec<Vec<Affine>>>()
            };
            combinations = combinations.iter().flat_map(longer).take(MOST_FORMS * MOST_FORMS).collect();
        }
        for (i, args) in combinations.iter().enumerate() {
            let form = if i > 0 { Some(self.form(kernel, op, result, args)) } else { None };
            for form in form.into_iter().chain(self.more_precise(kernel, op, args)) {
                if !form.terms.is_empty() {
                    add_form(&mut found, form);
                }
            }
        }
        found
    }

    /// A form with terms besides that of [`Forms::form`].
    fn more_precise(&self, kernel: &Kernel, op: &Op, args: &[Affine]) -> Option<Affine> {
        let (OpKind::Binary(kind), [a, b]) = (&op.kind, args) else { return None };
        match Bitwise::of(*kind) {
            Some(bits) => self.bitwise(kernel, op, bits, a, b),
            None => self.quotient(*kind, a, b),
        }
    }

    fn parts(&mut self, kernel: &Kernel, id: OpId, op: &Op) {
        let (group, ranges) = match (&op.kind, op.args.as_slice()) {
            (OpKind::Unflatten | OpKind::UnflattenGrouped(_), [base, extents @ ..]) => {
                let needed: Vec<bool> = extents.iter().enumerate().map(|(i, e)| i == 0 || !self.is_one(*e)).collect();
                let of_box = self.box_ranges(*base, extents).or_else(|| self.grid_ranges(kernel, *base, extents));
                let ranges = of_box.unwrap_or_else(|| self.digit_ranges(*base, extents));
                (self.group(*base, extents, needed, id, op), ranges)
            }
            (OpKind::RaggedTile { .. }, [y, off, base]) => {
                let input = root(kernel, *off).is_some_and(|p| is_input(kernel, p));
                let group = self.group(*base, &[*y, *off], vec![true; 3], id, op).filter(|_| input);
                (group, vec![Range { lo: 0, hi: I32.hi }; 3])
            }
            _ => (None, Vec::new()),
        };
        for (i, (result, range)) in op.results.iter().zip(ranges).enumerate() {
            // Of an extent of 1, the remainder is 0.
            let is_zero = i > 0 && is_box(&op.kind) && op.args.get(i + 1).is_some_and(|e| self.is_one(*e));
            let form = match &group {
                _ if is_zero => Affine::constant(0),
                Some(g) => self.part(g, i, range),
                None => Affine::range(range),
            };
            self.set(kernel, *result, vec![form]);
        }
    }

    fn is_one(&self, value: Value) -> bool {
        self.of(value).as_constant() == Some(1)
    }

    fn part(&mut self, group: &Group, i: usize, range: Range) -> Affine {
        let known = |g: &Group| g.op == group.op || group.base.is_exact();
        let same = |g: &Group| known(g) && g.base == group.base && g.kind == group.kind && g.args == group.args;
        let number = self.groups.iter().position(same).unwrap_or_else(|| {
            self.groups.push(group.clone());
            self.groups.len() - 1
        });
        // The same group may be decomposed in loops with different ends.
        let term = Term::Part(number, i);
        let range = self.ranges.get(&term).map_or(range, |known| known.join(range));
        self.ranges.insert(term, range);
        Affine::term(term)
    }

    fn group(&self, base: Value, args: &[Value], needed: Vec<bool>, id: OpId, op: &Op) -> Option<Group> {
        let base = self.of(base);
        base.fits(&self.ranges)?;
        let args = args.iter().map(|a| self.numbers.of(*a)).collect::<Option<Vec<Value>>>()?;
        Some(Group { base, needed, with: Vec::new(), block: 1, kind: op.kind.clone(), args, op: id })
    }

    /// The ranges of the parts of an iteration number, if the end of its loop is the product of their extents, which are not negative: each
    /// part is then less than its extent. In an iteration the end is positive, so that no extent is 0; and an end that wraps is less than
    /// the product.
    fn box_ranges(&self, base: Value, extents: &[Value]) -> Option<Vec<Range>> {
        let (_, factors) = self.ends.iter().find(|(index, _)| *index == base)?;
        let mut numbers = Vec::new();
        for extent in extents.iter().filter(|e| !self.is_one(**e)) {
            numbers.push(self.numbers.of(*extent)?);
        }
        numbers.sort_unstable();
        if numbers == *factors { self.below(extents) } else { None }
    }

    /// The same of the index of a program in a grid that is the product of the extents.
    fn grid_ranges(&self, kernel: &Kernel, base: Value, extents: &[Value]) -> Option<Vec<Range>> {
        let OpKind::ProgramId(axis) = kernel.def_op(base)?.kind else { return None };
        if is_product(kernel, axis, extents) { self.below(extents) } else { None }
    }

    /// The ranges of numbers that are less than these extents, none of which is negative.
    fn below(&self, extents: &[Value]) -> Option<Vec<Range>> {
        let ranges: Vec<Range> = extents.iter().map(|e| self.range(*e)).collect();
        let holds = ranges.iter().all(|r| r.lo >= 0 && r.hi > 0);
        holds.then(|| ranges.iter().map(|r| Range { lo: 0, hi: r.hi - 1 }).collect())
    }

    /// The ranges of the parts of a base: the usual ones if the extents are positive, otherwise any `i32`.
    fn digit_ranges(&self, base: Value, extents: &[Value]) -> Vec<Range> {
        let base = self.range(base);
        let positive = base.lo >= 0 && extents.iter().all(|e| self.range(*e).lo > 0);
        let digit = |i: usize, e: &Value| match (positive, i) {
            (false, _) => I32,
            (true, 0) => base,
            (true, _) => Range { lo: 0, hi: base.hi.min(self.range(*e).hi - 1) },
        };
        let mut ranges: Vec<Range> = extents.iter().enumerate().map(|(i, e)| digit(i, e)).collect();
        if let (Some(first), true) = (ranges.first_mut(), positive) {
            first.lo = 0;
        }
        ranges
    }

    /// The form of an operation on bits, as such or as one on numbers.
    fn of_bits(&self, kernel: &Kernel, op: &Op, kind: BinOp, [a, b]: [&Affine; 2]) -> Affine {
        let bits = Bitwise::of(kind).and_then(|bits| self.bitwise(kernel, op, bits, a, b));
        bits.unwrap_or_else(|| self.binary(kind, a, b))
    }

    /// The form of an operation on numbers. The count of tiles of one element is the extent itself, which the sum of its parts does not show: it
    /// might be 2³¹.
    fn of_numbers(&self, kernel: &Kernel, op: &Op, kind: BinOp, [a, b]: [&Affine; 2]) -> Affine {
        match op.results.first().and_then(|count| cdiv(kernel, *count)) {
            Some((extent, 1)) => self.of(extent),
            Some(_) | None => self.binary(kind, a, b),
        }
    }

    /// The form of a result of an operation whose operands have these forms.
    fn form(&self, kernel: &Kernel, op: &Op, result: usize, args: &[Affine]) -> Affine {
        let arg = |i: usize| args.get(i).cloned().unwrap_or_else(Affine::unknown);
        let count = |lo| Affine::range(Range { lo, hi: I32.hi });
        match &op.kind {
            OpKind::Const(Const::Int(_, v)) => Affine::constant(*v),
            OpKind::ProgramId(axis) => Affine::term(Term::Program(*axis)),
            OpKind::NumPrograms(_) => count(1),
            OpKind::Nv(NvOp::ClusterRank) => match kernel.laid_out.as_deref() {
                Some(laid) => Affine::range(Range { lo: 0, hi: i64::from(laid.cluster.max(1)) - 1 }),
                None => Affine::unknown(),
            },
            OpKind::Dim(_) | OpKind::RaggedCount { .. } => count(0),
            OpKind::Iota(n) => Affine::range(Range { lo: 0, hi: i64::from(*n).max(1) - 1 }),
            OpKind::Splat(_)
            | OpKind::Reshape(_)
            | OpKind::Broadcast { .. }
            | OpKind::Permute(_)
            | OpKind::Split
            | OpKind::Cut { .. }
            | OpKind::Ttg(TtgOp::Rematerialize)
            | OpKind::Reduce(ReduceOp::Max | ReduceOp::Min, _)
            | OpKind::Scan(ReduceOp::Max | ReduceOp::Min, _) => arg(0),
            OpKind::ArgReduce(_, axis) if result == 1 => index_along(kernel, op, *axis),
            OpKind::ArgReduce(..) => arg(0),
            OpKind::Interleave | OpKind::Concat(_) => arg(0).join(&arg(1), &self.ranges),
            OpKind::Select => arg(1).join(&arg(2), &self.ranges),
            OpKind::Unary(op) => self.unary(*op, &arg(0)),
            OpKind::Binary(kind @ (BinOp::Or | BinOp::Xor)) => self.of_bits(kernel, op, *kind, [&arg(0), &arg(1)]),
            OpKind::Binary(kind) => self.of_numbers(kernel, op, *kind, [&arg(0), &arg(1)]),
            OpKind::Cast(_) => match op.args.first().map(|a| kernel.ty(*a).elem()) {
                Some(Elem::I32) => arg(0),
                Some(from) => narrow(from),
                None => Affine::unknown(),
            },
            OpKind::If => self.yielded(kernel, op, result),
            OpKind::Const(Const::Float(..))
            | OpKind::Present
            | OpKind::Cmp(_)
            | OpKind::MulAdd
            | OpKind::Bitcast(_)
            | OpKind::Reduce(ReduceOp::Sum | ReduceOp::Prod, _)
            | OpKind::Scan(ReduceOp::Sum | ReduceOp::Prod, _)
            | OpKind::ReduceWith(_)
            | OpKind::ScanWith(_)
            | OpKind::Mma
            | OpKind::Index(_)
            | OpKind::Slice(_)
            | OpKind::Segment
            | OpKind::Shared
            | OpKind::Load(..)
            | OpKind::Store(_)
            | OpKind::Get
            | OpKind::Set
            | OpKind::GatherRows { .. }
            | OpKind::ScatterRows
            | OpKind::Gather
            | OpKind::Scatter
            | OpKind::Atomic(_)
            | OpKind::AtomicTile(_)
            | OpKind::Fetch(_)
            | OpKind::CompareExchange
            | OpKind::Unflatten
            | OpKind::UnflattenGrouped(_)
            | OpKind::RaggedTile { .. }
            | OpKind::Print(_)
            | OpKind::Assert(_)
            | OpKind::For(_)
            | OpKind::Loop
            | OpKind::Yield
            | OpKind::Break(_)
            | OpKind::Continue(_)
            | OpKind::Return
            | OpKind::Ttg(_)
            | OpKind::Local(_)
            | OpKind::Region(_)
            | OpKind::Nv(_)
            | OpKind::Amd(_) => Affine::unknown(),
        }
    }

    /// The join of the forms that the arms of an `if` yield.
    fn yielded(&self, kernel: &Kernel, op: &Op, result: usize) -> Affine {
        let mut form: Option<Affine> = None;
        for region in &op.regions {
            let last = kernel.block(*region).ops.last().map(|o| kernel.op(*o));
            if let Some(end) = last.filter(|o| o.kind == OpKind::Yield) {
                let given = end.args.get(result).map_or_else(Affine::unknown, |a| self.of(*a));
                form = Some(form.map_or_else(|| given.clone(), |f| f.join(&given, &self.ranges)));
            }
        }
        form.unwrap_or_else(Affine::unknown)
    }
}

/// Adds a form that is not known yet, unless there are many.
fn add_form(forms: &mut Vec<Affine>, form: Affine) {
    if forms.len() < MOST_FORMS && !forms.contains(&form) {
        forms.push(form);
    }
}

/// Whether the results of an operation are the coordinates of a number in a box.
pub(super) const fn is_box(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Unflatten | OpKind::UnflattenGrouped(_))
}

/// Whether a parameter is an input tensor, so that it is not written during the launch.
#[must_use]
pub fn is_input(kernel: &Kernel, param: usize) -> bool {
    let kind = kernel.sig.params.get(param).map(|p| &p.kind);
    matches!(kind, Some(ParamKind::Tensor { access: Access::In, .. }))
}

/// The form of an index along an axis of the first operand.
fn index_along(kernel: &Kernel, op: &Op, axis: u8) -> Affine {
    let shape = op.args.first().and_then(|a| kernel.ty(*a).tile_shape());
    let extent = shape.and_then(|s| s.get(usize::from(axis)).copied());
    extent.map_or_else(Affine::unknown, |n| Affine::range(Range { lo: 0, hi: i64::from(n).max(1) - 1 }))
}
