//! Loops.
//!
//! ```text
//! no lane waits:                               lanes may leave or end iterations at different times:
//!       index ← lo, carried ← init                   index ← lo, carried ← init
//!       branch to exit unless lo < hi                 entered ← exec, exec ← exec ∧ (lo < hi)
//! head: body                                          active ← exec, branch to exit if exec = 0
//! next: index ← index + step                    head: body
//!       branch to head if index < hi            next: exec ← active
//! exit:                                               branch to exit if exec = 0
//!                                                     index ← index + step, exec ← exec ∧ (index < hi)
//!                                                     active ← exec, branch to head unless exec = 0
//!                                               exit: exec ← entered
//! ```
//!
//! `active` are the lanes that have not left the loop, `entered` those that are active after it: all but those that left it for an outer
//! one or for the end of the thread. If all lanes in the loop have the index in common, it is in scalar registers in both forms.
//!
//! Lanes leave at different times if a `break`, `continue` or `return` in it is under a condition that differs between lanes, or in a loop
//! inside of which lanes leave at different times, or if the bounds differ.
//!
//! `index + step` may exceed 2³¹ − 1, so the distance to the end, which is positive, is compared with the step.

use super::control::Frame;
use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault};
use crate::codegen::machine_ir::{Block, File, Part};
use crate::isa::Operand as Isa;
use titan_core::lane::family::{Family, Flow};
use titan_core::lane::op::OpKind;
use titan_core::lane::{Block as Region, Op, Value};

/// The masks of a loop in which lanes may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masks {
    /// The lanes that have not left the loop.
    pub(super) active: Part,
    /// The lanes that are active after it.
    pub(super) entered: Part,
}

/// An enclosing loop.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    /// The target of `continue`.
    pub(super) next: Block,
    /// The target of `break`.
    pub(super) exit: Block,
    /// What `continue` sets.
    pub(super) carried: Vec<Spot>,
    /// What `break` sets.
    pub(super) results: Vec<Spot>,
    pub(super) masks: Option<Masks>,
    /// Whether lanes have left it for an outer loop, or for the end of the thread.
    pub(super) left: bool,
}

/// The bounds of a counted loop.
struct Range {
    index: Spot,
    lo: Value,
    hi: Value,
    step: Value,
}

impl Select<'_> {
    pub(super) fn repeat(&mut self, op: &Op) -> Done {
        let func = self.func;
        let Some(body) = op.regions.first().copied() else {
            return Err(Fault::Defect("a loop has a body".to_owned()));
        };
        let counted = op.kind == OpKind::For;
        let (bounds, init) = op.args.split_at(op.args.len().min(if counted { 3 } else { 0 }));
        let args = &func.block(body).args;
        let (index, carried) = args.split_at(args.len().min(usize::from(counted)));
        let apart = !bounds.iter().all(|v| self.is_uniform(*v)) || self.parts(body, 0, false);
        let range = match (index, bounds) {
            ([index], [lo, hi, step]) => {
                let scalar = self.is_uniform(*index);
                Some(Range { index: self.variable(*index, scalar, !apart)?, lo: *lo, hi: *hi, step: *step })
            }
            ([], []) => None,
            (_, _) => return Err(Fault::Defect("a `for` takes three bounds and counts".to_owned())),
        };
        let carried = self.variables(carried, !apart)?;
        let results = self.results(op, (counted, !apart), &carried)?;
        self.copies(&carried, init)?;
        let separate = counted && carried != results;
        if separate {
            self.copies(&results, init)?;
        }
        let exit = self.new_block();
        let mut inner = Loop { next: self.new_block(), exit, carried, results, masks: None, left: false };
        if apart {
            let both = Masks { active: self.pieces(File::S, 2), entered: self.pieces(File::S, 2) };
            self.salu("s_mov_b64", Some(both.entered.into()), &[Src::Isa(Isa::EXEC)])?;
            inner.masks = Some(both);
        }
        if let Some(range) = &range {
            let lo = self.src(range.lo)?;
            self.copies_of(&[range.index], &[lo])?;
            self.enter(range, &inner)?;
        }
        if let Some(both) = inner.masks {
            self.salu("s_mov_b64", Some(both.active.into()), &[Src::Isa(Isa::EXEC)])?;
        }
        self.frames.push(Frame::Loop(inner));
        self.depth += 1;
        let head = self.new_block();
        self.place(head);
        self.block(body)?;
        let Some(Frame::Loop(inner)) = self.frames.pop() else {
            return Err(Fault::Defect("frames of loops are nested".to_owned()));
        };
        self.advance(range.as_ref(), &inner, head, if separate { &args[1..] } else { &[] })?;
        self.depth -= 1;
        self.after(&inner)
    }

    /// The registers of the results. Those of a counted loop are its carried values where they are of the same kind.
    fn results(&mut self, op: &Op, (counted, together): (bool, bool), carried: &[Spot]) -> Result<Vec<Spot>, Fault> {
        if !counted {
            return self.variables(&op.results, together);
        }
        let mut results = Vec::new();
        for (i, value) in op.results.iter().enumerate() {
            let scalar = self.is_uniform(*value);
            let shared = carried.get(i).copied().filter(|spot| matches!(spot, Spot::S(_)) == scalar);
            // A result may be another one than what is carried, where the loop is left.
            let shared = shared.filter(|spot| !matches!(spot, Spot::Bits(_)));
            let shared = shared.or_else(|| carried.get(i).copied().filter(|s| matches!(s, Spot::Mask(_))));
            match shared {
                Some(spot) => {
                    self.set(*value, spot);
                    results.push(spot);
                }
                None => results.push(self.variable(*value, scalar, together)?),
            }
        }
        Ok(results)
    }

    /// Goes to the exit for lanes without a first iteration.
    fn enter(&mut self, range: &Range, inner: &Loop) -> Done {
        let (lo, hi) = (self.src(range.lo)?, self.src(range.hi)?);
        if let (Src::Bits(lo), Src::Bits(hi)) = (lo, hi)
            && signed(lo) < signed(hi)
        {
            return Ok(());
        }
        if let (None, false) = (inner.masks, matches!(lo, Src::V(_)) || matches!(hi, Src::V(_))) {
            self.salu("s_cmp_lt_i32", None, &[lo, hi])?;
            return self.branch_if("s_cbranch_scc0", inner.exit);
        }
        let some = Src::S(self.compare_new("v_cmp_lt_i32", [lo, hi])?);
        if inner.masks.is_none() {
            self.test(some)?;
            return self.branch_if("s_cbranch_scc0", inner.exit);
        }
        self.salu("s_and_b64", Some(Self::EXEC), &[Src::Isa(Isa::EXEC), some])?;
        self.branch_if("s_cbranch_execz", inner.exit)
    }

    /// The end of an iteration: the lanes that have another one go to the head. Results that are not carried values are set for all lanes,
    /// as if there was none.
    fn advance(&mut self, range: Option<&Range>, inner: &Loop, head: Block, ended: &[Value]) -> Done {
        self.place(inner.next);
        let exec = Src::Isa(Isa::EXEC);
        if let Some(both) = inner.masks {
            self.salu("s_mov_b64", Some(Self::EXEC), &[Src::S(both.active)])?;
            if range.is_none() {
                return self.row("s_cbranch_execnz", &[head_of(head)]);
            }
            self.branch_if("s_cbranch_execz", inner.exit)?;
        }
        if !ended.is_empty() {
            self.copies(&inner.results, ended)?;
        }
        let Some(range) = range else { return self.jump(head) };
        let (hi, step) = (self.src(range.hi)?, self.src(range.step)?);
        match range.index {
            Spot::S(index) => {
                let left = self.salu_new("s_sub_u32", 1, &[hi, Src::S(index)])?;
                self.salu("s_add_u32", Some(index.into()), &[Src::S(index), step])?;
                self.salu("s_cmp_gt_u32", None, &[Src::S(left), step])?;
                self.row("s_cbranch_scc1", &[head_of(head)])
            }
            Spot::V(index) => {
                let left = self.valu_new("v_sub_u32", 1, &[hi, Src::V(index)])?;
                self.valu("v_add_u32", &[index.into()], &[step, Src::V(index)], &[])?;
                let more = Src::S(self.compare_new("v_cmp_gt_u32", [Src::V(left), step])?);
                let Some(both) = inner.masks else {
                    self.test(more)?;
                    return self.row("s_cbranch_scc1", &[head_of(head)]);
                };
                self.salu("s_and_b64", Some(Self::EXEC), &[exec, more])?;
                self.salu("s_mov_b64", Some(both.active.into()), &[exec])?;
                self.row("s_cbranch_execnz", &[head_of(head)])
            }
            Spot::Mask(_) | Spot::Bits(_) => Err(Fault::Defect("an index is a number".to_owned())),
        }
    }

    fn after(&mut self, inner: &Loop) -> Done {
        self.place(inner.exit);
        if let Some(both) = inner.masks {
            self.salu("s_mov_b64", Some(Self::EXEC), &[Src::S(both.entered)])?;
        }
        if inner.left {
            let landing = self.landing();
            self.branch_if("s_cbranch_execz", landing)?;
        }
        Ok(())
    }

    /// Copies sources to variables that none of them reads.
    fn copies_of(&mut self, to: &[Spot], srcs: &[Src]) -> Done {
        for (to, src) in to.iter().zip(srcs) {
            match to {
                Spot::S(part) => self.move_scalar(*part, *src)?,
                Spot::V(part) => self.move_word(*part, *src)?,
                Spot::Mask(_) | Spot::Bits(_) => return Err(Fault::Defect("an index is a number".to_owned())),
            }
        }
        Ok(())
    }

    /// Whether lanes may part in a region of a loop: some leave it, or the iteration, while others do not. `depth` is the number of
    /// loops in between, and `diverged` whether the lanes at the start of the region are not all lanes of the loop.
    fn parts(&self, region: Region, depth: u32, diverged: bool) -> bool {
        self.func.block(region).ops.iter().map(|id| self.func.op(*id)).any(|op| match op.kind.family() {
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => diverged && n >= depth,
            Family::Flow(Flow::Return) => diverged,
            Family::Flow(Flow::If) => {
                let split = op.args.first().is_some_and(|cond| !self.is_uniform(*cond));
                op.regions.iter().any(|arm| self.parts(*arm, depth, diverged || split))
            }
            Family::Flow(flow @ (Flow::For | Flow::Loop)) => {
                let bounds = op.args.iter().take(if flow == Flow::For { 3 } else { 0 });
                let apart = bounds.into_iter().any(|v| !self.is_uniform(*v));
                let inside = |diverged| op.regions.iter().any(|body| self.parts(*body, depth + 1, diverged));
                let own = op.regions.iter().any(|body| self.parts(*body, 0, false));
                inside(diverged || apart || own)
            }
            Family::Flow(Flow::Yield | Flow::Roles(_))
            | Family::Pure
            | Family::Warp
            | Family::Mark { .. }
            | Family::Access { .. }
            | Family::Matrix { .. }
            | Family::Copy(_)
            | Family::Protocol
            | Family::Order
            | Family::Group(_)
            | Family::Barrier(_) => false,
        })
    }
}

const fn head_of(head: Block) -> crate::codegen::machine_ir::Operand {
    crate::codegen::machine_ir::Operand::To(head)
}

#[expect(clippy::cast_possible_truncation, reason = "the low word is what is meant")]
const fn signed(bits: u64) -> i32 {
    (bits as u32).cast_signed()
}
