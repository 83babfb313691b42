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
//! An invariant value without a more precise form is a term of its own. Loop variables of other loops have the range of their bounds;
//! carried values, and values read from memory, are unknown.

use super::affine::{Affine, I32, Range, Term, TermRanges};
use super::grid::{is_product, program_bounds};
use super::number::{Numbers, root};
use crate::ir::{
    Access, BinOp, Block, Const, Elem, ForKind, Kernel, NvOp, Op, OpId, OpKind, ParamKind, ReduceOp, TtgOp, Ty, UnOp,
    Value,
};

/// Parts that together determine a base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The number that is decomposed into parts.
    pub base: Affine,
    /// For each part, whether it must be known to determine the base; the other parts are always 0.
    pub needed: Vec<bool>,
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
            ranges: program_bounds(kernel, grid_known),
            groups: Vec::new(),
            numbers: Numbers::new(kernel),
            ends: Vec::new(),
        };
        forms.ranges.insert(Term::Work, Range { lo: 0, hi: I32.hi - 1 });
        for (i, param) in kernel.sig.params.iter().enumerate() {
            if param.kind == ParamKind::Scalar(Elem::I32) {
                forms.set(kernel, Value::new(i), Affine::unknown());
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

    /// Records a form. An invariant scalar without an exact form becomes a term.
    fn set(&mut self, kernel: &Kernel, value: Value, form: Affine) {
        let number = self.numbers.of(value).filter(|_| kernel.ty(value) == Ty::I32 && !form.is_exact());
        let form = match number {
            Some(n) => {
                let range = form.fits(&self.ranges).unwrap_or(I32);
                self.ranges.insert(Term::Invariant(n), range);
                Affine::term(Term::Invariant(n))
            }
            None => form,
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
                let form = self.index_form(kind, op, in_distributed);
                if let (true, Some(hi)) = (form == Affine::term(Term::Work), op.args.get(1)) {
                    self.ends.extend(self.numbers.factors(kernel, *hi).map(|factors| (*index, factors)));
                }
                self.set(kernel, *index, form);
            }
            let inner = in_distributed || op.kind == OpKind::For(ForKind::Distributed);
            op.regions.iter().for_each(|r| self.block(kernel, *r, inner));
            self.results(kernel, *id, op);
        }
    }

    fn index_form(&self, kind: ForKind, op: &Op, in_distributed: bool) -> Affine {
        let [lo, hi, step, ..] = op.args[..] else { return Affine::unknown() };
        let (lo, hi, step) = (self.of(lo), self.of(hi), self.of(step).as_constant());
        let dealt = kind == ForKind::Distributed && !in_distributed;
        if dealt && lo.as_constant() == Some(0) && step == Some(1) {
            return Affine::term(Term::Work);
        }
        let (Some(first), Some(end), true) =
            (lo.fits(&self.ranges), hi.fits(&self.ranges), step.is_some_and(|s| s > 0))
        else {
            return Affine::unknown();
        };
        let span = |lo: i64, end: i64| Range { lo, hi: end.saturating_sub(1).max(lo) };
        if lo.terms == hi.terms {
            Affine { terms: lo.terms, rest: span(lo.rest.lo, hi.rest.hi) }
        } else {
            Affine::range(span(first.lo, end.hi))
        }
    }

    fn results(&mut self, kernel: &Kernel, id: OpId, op: &Op) {
        if matches!(op.kind, OpKind::Unflatten | OpKind::UnflattenGrouped(_) | OpKind::RaggedTile { .. }) {
            return self.parts(kernel, id, op);
        }
        for (i, result) in op.results.iter().enumerate() {
            if kernel.ty(*result).elem() == Elem::I32 && !matches!(kernel.ty(*result), Ty::Tensor(..)) {
                let form = self.form(kernel, op, i);
                self.set(kernel, *result, form);
            }
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
            self.set(kernel, *result, form);
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
        Some(Group { base, needed, kind: op.kind.clone(), args, op: id })
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

    fn form(&self, kernel: &Kernel, op: &Op, result: usize) -> Affine {
        let arg = |i: usize| op.args.get(i).map_or_else(Affine::unknown, |a| self.of(*a));
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
            | OpKind::Reduce(ReduceOp::Max | ReduceOp::Min, _)
            | OpKind::Scan(ReduceOp::Max | ReduceOp::Min, _) => arg(0),
            OpKind::ArgReduce(_, axis) => match (result, op.args.first().and_then(|a| kernel.ty(*a).tile_shape())) {
                (1, Some(s)) => {
                    let n = s.get(usize::from(*axis)).copied().unwrap_or(1);
                    Affine::range(Range { lo: 0, hi: i64::from(n).max(1) - 1 })
                }
                (_, _) => arg(0),
            },
            OpKind::Ttg(TtgOp::Rematerialize) => arg(0),
            OpKind::Interleave => arg(0).join(&arg(1), &self.ranges),
            OpKind::Select => arg(1).join(&arg(2), &self.ranges),
            OpKind::Unary(op) => self.unary(*op, &arg(0)),
            OpKind::Binary(op) => self.binary(*op, &arg(0), &arg(1)),
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

    fn unary(&self, op: UnOp, a: &Affine) -> Affine {
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
            | UnOp::IsNan => None,
        };
        form.unwrap_or_else(Affine::unknown)
    }

    fn binary(&self, op: BinOp, a: &Affine, b: &Affine) -> Affine {
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
            BinOp::And => [a, b]
                .into_iter()
                .filter_map(fits)
                .filter(|r| r.lo >= 0)
                .map(|r| r.hi)
                .min()
                .map(|hi| Affine::range(Range { lo: 0, hi })),
            BinOp::Or | BinOp::Xor => None,
        };
        form.unwrap_or_else(Affine::unknown)
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
fn narrow(from: Elem) -> Affine {
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
