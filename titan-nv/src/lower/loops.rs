//! Loops as labels and branches.
//!
//! ```text
//! for:  index ← lo, carried ← init          loop:  carried ← init
//!       branch to exit unless lo < hi        head:  body
//! head: body                                 exit:
//! next: index ← index + step
//!       branch to head while index < hi
//! exit:
//! ```
//!
//! The results of a `for` are the registers of its carried values, which have the right values when it ends. Carried values are set
//! by parallel copies before every branch to `next` or `head`.

use super::control::Frame;
use super::error::Fault;
use super::{Arg, Done, Lower, uses};
use crate::ptx::{Guard, Label, Line, Operand, Reg};
use titan_core::ir::Pred as Cmp;
use titan_core::lane::op::OpKind;
use titan_core::lane::{Block, IntBin, Op, Ty, Value};

/// The bounds of a `for`.
struct Range {
    index: Reg,
    lo: Value,
    hi: Value,
    step: Value,
}

impl Lower<'_> {
    /// Opens the frame of a loop and initializes its carried registers.
    fn enter(&mut self, op: &Op, init: &[Value]) -> Result<(Block, Frame), Fault> {
        let func = self.func;
        let Some(body) = op.regions.first().copied() else {
            return Err(Fault::Defect("a loop has a body".to_owned()));
        };
        let skip = usize::from(op.kind == OpKind::For);
        // What is in flight is in the register of its initial value already, and must not be copied.
        let carried: Vec<Reg> = func.block(body).args.iter().skip(skip).map(|value| self.out(*value)).collect();
        if op.kind == OpKind::For {
            for (result, reg) in op.results.iter().zip(&carried) {
                self.values[result.index()] = Some(*reg);
            }
        }
        let results = self.outs(op);
        self.copies(&carried, init)?;
        let frame = Frame { next: self.label(), exit: self.label(), carried, results };
        self.frames.push(frame.clone());
        Ok((body, frame))
    }

    pub(super) fn endless(&mut self, op: &Op) -> Done {
        let (body, frame) = self.enter(op, &op.args)?;
        self.place(frame.next, true);
        self.block(body)?;
        self.frames.pop();
        self.place(frame.exit, false);
        Ok(())
    }

    pub(super) fn for_loop(&mut self, op: &Op) -> Done {
        let func = self.func;
        let (bounds, init) = op.args.split_at(op.args.len().min(3));
        let index = op.regions.first().and_then(|body| func.block(*body).args.first());
        let ([lo, hi, step], Some(index)) = (bounds, index) else {
            return Err(Fault::Defect("a `for` takes three bounds and counts".to_owned()));
        };
        let range = Range { index: self.out(*index), lo: *lo, hi: *hi, step: *step };
        self.copy(range.index, &Arg::Value(*lo))?;
        let (body, frame) = self.enter(op, init)?;
        let together = self.together(bounds);
        self.skip_empty(&range, together, frame.exit)?;
        let head = self.label();
        self.place(head, true);
        self.block(body)?;
        self.frames.pop();
        self.fall_through(frame.next);
        self.place(frame.next, false);
        self.advance(&range, together, head)?;
        self.place(frame.exit, false);
        Ok(())
    }

    /// Removes a branch to the label that follows it.
    fn fall_through(&mut self, next: Label) {
        let last = match self.body.last() {
            Some(Line::Inst(inst)) => inst.guard.is_none() && inst.operands == [Operand::Label(next)],
            Some(Line::Label(_) | Line::Loc { .. }) | None => false,
        };
        if last {
            self.body.pop();
            if let Some(n) = self.branches(next) {
                *n -= 1;
            }
        }
    }

    /// Branches to the exit if there is no first iteration.
    fn skip_empty(&mut self, range: &Range, together: bool, exit: Label) -> Done {
        let known = |v| self.func.constant(v).map(|bits| uses::signed(Ty::B32, bits));
        if let (Some(lo), Some(hi)) = (known(range.lo), known(range.hi))
            && lo < hi
        {
            return Ok(());
        }
        let none = self.compare((Cmp::Ge, true, Ty::B32), Arg::Value(range.lo), Arg::Value(range.hi))?;
        self.branch_to(Some(Guard { reg: none, negated: false }), together, exit)
    }

    /// Computes the next index, and branches to the head if there is another iteration. `index + step` may exceed 2³¹ − 1 where the
    /// step is more than 1; then the distance to the end, which is positive, is compared instead.
    fn advance(&mut self, range: &Range, together: bool, head: Label) -> Done {
        let known = |v| self.func.constant(v).map(|bits| uses::signed(Ty::B32, bits));
        let safe = match (known(range.step), known(range.hi)) {
            (Some(1), _) => true,
            (Some(step), Some(hi)) => hi - 1 + step <= i64::from(i32::MAX),
            (None | Some(_), None) | (None, Some(_)) => false,
        };
        let add = [Arg::Reg(range.index), Arg::Value(range.step)];
        let more = if safe {
            self.int(IntBin::Add, range.index, &add)?;
            self.compare((Cmp::Lt, true, Ty::B32), Arg::Reg(range.index), Arg::Value(range.hi))?
        } else {
            let left = self.fresh(Ty::B32);
            self.int(IntBin::Sub, left, &[Arg::Value(range.hi), Arg::Reg(range.index)])?;
            self.int(IntBin::Add, range.index, &add)?;
            self.compare((Cmp::Gt, false, Ty::B32), Arg::Reg(left), Arg::Value(range.step))?
        };
        self.branch_to(Some(Guard { reg: more, negated: false }), together, head)
    }
}
