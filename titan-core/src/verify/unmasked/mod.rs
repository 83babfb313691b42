//! Shows that a kernel whose loops are split into iterations without masks and the rest does what it did before: the checker of
//! [`crate::pipeline::unmask`], of which it uses nothing.
//!
//! For each loop `L` with bounds `from` and `to` of the kernel before, the kernel after has either the same loop, or two, `A` and `B`:
//!
//! * `B` has the operations of `L`, and begins with what `A` carried at its end; what used the results of `L` uses those of `B`.
//! * `A` begins at `from` and ends where `B` begins, at `end`; `B` ends at `to`. `end` is `min(to, max(from, m))`, so that with
//!   `from ≤ to` each iteration of `L` is in one of them, in order, and with `to < from` neither has any.
//! * `A` has the operations of `B` with an effect, in their order, with the same operands, where `select(c, x, y)` may be `x`, and `c & d` may be
//!   `d`, if each element of `c` is true in each iteration `j` of `A`.
//!
//! That a comparison of tiles of `i32` is true for every element is shown from `from ≤ j < end` alone ([`Below`]).
//!
//! Deliberately absent: which masks should be removed, and where a loop should be split. A threshold that is too low is right.

mod below;

use self::below::Below;
use crate::collections::SortedMap;
use crate::ir::{
    BinOp, Block, Const, Def, Effect, Elem, Family, Flow, ForKind, Kernel, LocalOp, Op, OpId, OpKind, TtgOp, Value,
};

/// Why a kernel with split loops is not shown to do what it did before: the operation of the kernel before, and the reason.
pub type NotUnmasked = (Option<OpId>, &'static str);

/// Checks a kernel whose loops were split.
///
/// # Errors
/// What differs, or is not shown.
pub fn unmasked(before: &Kernel, after: &Kernel) -> Result<(), NotUnmasked> {
    if (&before.sig, &before.pipes, &before.roles) != (&after.sig, &after.pipes, &after.roles) {
        return Err((None, "the signature, the rings or the roles differ"));
    }
    let mut same = Same { left: after, right: before, pairs: SortedMap::new(), found: SortedMap::new(), whole: None };
    for param in 0..before.sig.params.len() {
        same.pairs.insert(after.param(param), before.param(param));
    }
    same.blocks(after.body, before.body)
}

/// Two kernels, or two loops of one, that are compared: what is on the left may lack masks.
struct Same<'k> {
    left: &'k Kernel,
    right: &'k Kernel,
    /// Values on the left, each with the one on the right that it equals.
    pairs: SortedMap<Value, Value>,
    /// Pairs of which was found whether they are shown equal, so that each is compared once: without masks, several values on the right equal
    /// one on the left, and a value is used more than once.
    found: SortedMap<(Value, Value), bool>,
    /// What is true on the right for every element.
    whole: Option<Below<'k>>,
}

impl<'k> Same<'k> {
    /// Compares the operations of two blocks that are executed for their effects or have regions, in order; what they use is compared on
    /// demand. A terminator is one of them.
    fn blocks(&mut self, left: Block, right: Block) -> Result<(), NotUnmasked> {
        let acting = |kernel: &Kernel, block: Block| -> Vec<OpId> {
            let acts = |id: &OpId| {
                let op = kernel.op(*id);
                op.kind.effect() != Effect::Pure || !op.regions.is_empty() || op.kind.is_terminator()
            };
            kernel.block(block).ops.iter().copied().filter(acts).collect()
        };
        let (left, right) = (acting(self.left, left), acting(self.right, right));
        let mut rest = &left[..];
        for id in right {
            let here = Some(id);
            let [first, more @ ..] = rest else { return Err((here, "an operation is missing")) };
            rest = more;
            let (a, b) = (self.left.op(*first), self.right.op(id));
            if let ([second, more @ ..], OpKind::For(_)) = (rest, &b.kind)
                && self.is_split(a, self.left.op(*second), b)
            {
                rest = more;
                self.both(a, (*second, self.left.op(*second)), (id, b))?;
                continue;
            }
            let regions = a.regions.len() == b.regions.len();
            if a.kind != b.kind || a.args.len() != b.args.len() || !regions {
                return Err((here, "another operation is in its place"));
            }
            for (x, y) in a.args.iter().zip(&b.args) {
                self.value(*x, *y).then_some(()).ok_or((here, "an operand differs"))?;
            }
            self.pair(&a.results, &b.results, here)?;
            for (x, y) in a.regions.iter().zip(&b.regions) {
                self.pair(&self.left.block(*x).args, &self.right.block(*y).args, here)?;
                self.blocks(*x, *y)?;
            }
        }
        if rest.is_empty() { Ok(()) } else { Err((None, "there are more operations than before")) }
    }

    /// Declares values equal that are equal by their position.
    fn pair(&mut self, left: &[Value], right: &[Value], here: Option<OpId>) -> Result<(), NotUnmasked> {
        let alike = |(x, y): (&Value, &Value)| self.is_alike(*x, *y);
        if left.len() != right.len() || !left.iter().zip(right).all(alike) {
            return Err((here, "a value has another type or another place"));
        }
        self.pairs.extend(left.iter().copied().zip(right.iter().copied()));
        Ok(())
    }

    fn is_alike(&self, left: Value, right: Value) -> bool {
        let (a, b) = (self.left.value(left), self.right.value(right));
        (a.ty, a.place) == (b.ty, b.place)
    }

    /// Whether two loops follow each other in the place of one: the second begins where the first ends, and ends where the one did.
    fn is_split(&mut self, first: &Op, second: &Op, one: &Op) -> bool {
        let (OpKind::For(a), OpKind::For(b), OpKind::For(kind)) = (&first.kind, &second.kind, &one.kind) else {
            return false;
        };
        let ([_, end, ..], [begin, ..]) = (&first.args[..], &second.args[..]) else { return false };
        (a, b) == (kind, kind)
            && end == begin
            && *kind != ForKind::Distributed
            && !self.value(first.args[1], one.args[1])
    }

    /// Compares two loops with the one that they replace.
    fn both(&mut self, first: &'k Op, second: (OpId, &'k Op), (id, one): (OpId, &'k Op)) -> Result<(), NotUnmasked> {
        let here = Some(id);
        let (second_id, second) = second;
        let bounds = |same: &mut Self| {
            let ([from, end, step, ..], [_, to, again, ..]) = (&first.args[..], &second.args[..]) else { return None };
            let right = |i: usize| one.args.get(i).copied();
            let equal = same.value(*from, right(0)?)
                && same.value(*to, right(1)?)
                && same.value(*step, right(2)?)
                && same.value(*again, right(2)?)
                && same.left.int_constant(*step) == Some(1);
            equal.then_some([*from, *end, *to])
        };
        let bounds = bounds(self).ok_or((here, "the bounds of its parts are not its own"))?;
        let (Some(a), Some(b), Some(body)) = (first.regions.first(), second.regions.first(), one.regions.first())
        else {
            return Err((here, "a loop without a body"));
        };
        for (x, y) in first.args[3..].iter().zip(&one.args[3..]) {
            self.value(*x, *y).then_some(()).ok_or((here, "its first part begins with something else"))?;
        }
        if first.results[..] != second.args[3..] || first.args.len() != one.args.len() {
            return Err((here, "its second part does not begin with what the first carried"));
        }
        if leaves(self.left, *b, 0) {
            return Err((here, "its first part may be left early, and the second would follow"));
        }
        // The second part is the loop.
        self.pair(&self.left.block(*b).args, &self.right.block(*body).args, here)?;
        self.blocks(*b, *body)?;
        self.pair(&second.results, &one.results, here)?;
        // The first part is the second, but for masks.
        let below =
            Below::of(self.left, (second_id, *b), bounds).ok_or((here, "it is not split between its bounds"))?;
        let mut parts = Same {
            left: self.left,
            right: self.left,
            pairs: SortedMap::new(),
            found: SortedMap::new(),
            whole: Some(below),
        };
        parts.pair(&self.left.block(*a).args, &self.left.block(*b).args, here)?;
        parts.blocks(*a, *b).map_err(|(_, why)| (here, why))
    }

    /// Whether two values are equal.
    fn value(&mut self, left: Value, right: Value) -> bool {
        if self.pairs.get(&left) == Some(&right) {
            return true;
        }
        // Outside of two loops of one kernel, a value is itself.
        let outside = |whole: &Below<'_>| left == right && !whole.is_inside(right);
        if self.whole.as_ref().is_some_and(outside) {
            return true;
        }
        if let Some(found) = self.found.get(&(left, right)) {
            return *found;
        }
        let equal = self.computed(left, right);
        self.found.insert((left, right), equal);
        equal
    }

    /// The same, by what computes them. Each call looks at an operand of what is computed before the other, so that this ends.
    fn computed(&mut self, left: Value, right: Value) -> bool {
        let Some(b) = self.right.def_op(right) else { return false };
        if b.kind.effect() != Effect::Pure || !b.regions.is_empty() || !self.is_alike(left, right) {
            return false;
        }
        match (&b.kind, &b.args[..]) {
            (OpKind::Select, [mask, then, _]) if self.holds(*mask) && self.value(left, *then) => return true,
            (OpKind::Binary(BinOp::And), [x, y])
                if self.holds(*x) && self.value(left, *y) || self.holds(*y) && self.value(left, *x) =>
            {
                return true;
            }
            (_, _) => {}
        }
        if is_true(self.left, left) && self.holds(right) {
            return true;
        }
        let (Some(a), Def::Result(_, i), Def::Result(_, j)) =
            (self.left.def_op(left), self.left.value(left).def, self.right.value(right).def)
        else {
            return false;
        };
        let (left_args, right_args) = (a.args.clone(), b.args.clone());
        a.kind == b.kind
            && i == j
            && a.regions.is_empty()
            && left_args.len() == right_args.len()
            && left_args.into_iter().zip(right_args).all(|(x, y)| self.value(x, y))
    }

    /// Whether a condition on the right is true for every element.
    fn holds(&mut self, condition: Value) -> bool {
        self.whole.as_mut().is_some_and(|whole| whole.holds(condition))
    }
}

/// Whether an operation in a loop's body leaves the loop; `depth` is the number of loops inside of it that are around the block.
fn leaves(kernel: &Kernel, block: Block, depth: u32) -> bool {
    kernel.block(block).ops.iter().any(|id| {
        let op = kernel.op(*id);
        let inner = depth + u32::from(op.kind.is_loop());
        let own = match op.kind.family() {
            Family::Flow(Flow::Break(n)) => n >= depth,
            Family::Flow(Flow::Continue(n)) => n > depth,
            Family::Flow(Flow::Return) => true,
            Family::Flow(Flow::For(_) | Flow::Loop | Flow::If | Flow::Yield)
            | Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => false,
        };
        own || op.regions.iter().any(|region| leaves(kernel, *region, inner))
    })
}

/// Whether a value is the constant `true`, for every element.
fn is_true(kernel: &Kernel, value: Value) -> bool {
    if let Some(Const::Int(Elem::Bool, n)) = kernel.constant(value) {
        return n != 0;
    }
    let same = |op: &&Op| {
        matches!(
            op.kind,
            OpKind::Splat(_)
                | OpKind::Broadcast { .. }
                | OpKind::Permute(_)
                | OpKind::Reshape(_)
                | OpKind::Local(LocalOp::Convert)
                | OpKind::Ttg(TtgOp::Rematerialize)
        )
    };
    let of = kernel.def_op(value).filter(same).and_then(|op| op.args.first().copied());
    of.is_some_and(|of| is_true(kernel, of))
}
