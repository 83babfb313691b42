//! Structured control flow: blocks, branches, and the masks of active lanes.
//!
//! A branch whose condition all lanes have in common is a branch of the wave. Of any other branch both arms are executed, one after the
//! other, by the lanes that take them:
//!
//! ```text
//!       rest ← exec ∧ ¬cond                  uniform:   branch to other if no active lane has cond
//!       saved ← exec, exec ← exec ∧ cond                then
//!       branch to other if exec = 0                     branch to end
//!       then                                  other:    else
//! other: exec ← rest                          end:
//!       branch to end if exec = 0
//!       else
//! end:  exec ← saved
//! ```
//!
//! Lanes that leave an arm for a loop or the end of the thread are removed from `saved` when they do (`leave`). If there may be such lanes,
//! a branch behind `end` jumps over the code up to the next place where lanes are waiting, if there are none any more: so some lane is active
//! wherever code is executed. `rest` are lanes that take the other arm, so nothing is removed from it.
//!
//! **Why it is right.** Let L(p) be the lanes that are at point p of the structured program. By induction over the regions: at the start of
//! each region exec = L, and each frame's `saved` (each loop's `active`) are the lanes that are inside it, whether they run or wait. A branch
//! splits L by the condition; an arm ends with those of its lanes that did not leave; and `saved` is L less those that left, which is L
//! at the end.
//!
//! **Example.** Four lanes, `if a { if b { break } x } y` in a loop, a = 1110, b = 0110. `saved` of the outer branch is 1111, exec 1110;
//! `saved` of the inner one 1110, exec 0110. The break removes 0110 from both and from the loop's `active`: 1001 and 1000. At the
//! inner end exec = 1000, which executes x; at the outer end exec = 1001, which executes y.
//!
//! Copies to results of arms and to carried values are done by the lanes that get there. A mask is changed only in their bits:
//! `m ← (m ∧ ¬exec) ∨ (new ∧ exec)`.

use super::loops::Loop;
use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault, first};
use crate::codegen::machine_ir::{Block, File, Operand, Part};
use crate::isa::Operand as Isa;
use titan_core::lane::family::{Family, Flow};
use titan_core::lane::op::OpKind;
use titan_core::lane::{Block as Region, Op, Ty, Value};

/// A construct around the current point in which lanes may wait.
#[derive(Clone, Debug)]
pub(super) enum Frame {
    /// An arm of a branch on a condition that differs between lanes.
    Arm {
        /// The lanes that are active after the branch.
        saved: Part,
        /// Where the next lanes are waiting: at the other arm, or at the end.
        landing: Block,
        /// Whether lanes have left an arm.
        left: bool,
    },
    /// A loop.
    Loop(Loop),
}

impl Select<'_> {
    /// Selects a block; returns whether control reaches its end by a `yield`.
    pub(super) fn block(&mut self, region: Region) -> Result<bool, Fault> {
        let func = self.func;
        let mut reaches = false;
        let outer = std::mem::replace(&mut self.region, region);
        for id in &func.block(region).ops {
            let op = func.op(*id);
            self.loc = op.loc;
            let done = match op.kind.family() {
                // Nobody reads the registers of constants.
                Family::Pure if op.results.iter().all(|value| self.constant(*value).is_some()) => Ok(()),
                Family::Flow(Flow::If) => self.branch(op),
                Family::Flow(Flow::For | Flow::Loop) => self.repeat(op),
                Family::Flow(Flow::Return) => self.finish(),
                Family::Flow(Flow::Break(n)) => self.leave(n, &op.args, true),
                Family::Flow(Flow::Continue(n)) => self.leave(n, &op.args, false),
                // The enclosing branch reads the values that an arm yields.
                Family::Flow(Flow::Yield) => {
                    reaches = true;
                    Ok(())
                }
                Family::Pure
                | Family::Warp
                | Family::Mark { .. }
                | Family::Access { .. }
                | Family::Matrix { .. }
                | Family::Copy(_)
                | Family::Protocol
                | Family::Order
                | Family::Group(_)
                | Family::Barrier(_)
                | Family::Flow(Flow::Roles(_)) => {
                    let start = (self.block, self.code.insts(self.block).len());
                    let registers = self.code.registers.len();
                    self.op(op).inspect(|()| self.place_result(op, registers, start))
                }
            };
            done.map_err(|fault| fault.at(func, self.target, op))?;
        }
        self.made.retain(|(of, _, _)| *of != region);
        self.kept.retain(|(of, _, _)| *of != region);
        self.region = outer;
        Ok(reaches)
    }

    /// A register that several places set: for a result of a branch or loop, or a carried value. `together`: all lanes that ever read it are
    /// active wherever it is set, so that each copy replaces it; otherwise its lifetime starts here.
    pub(super) fn variable(&mut self, value: Value, scalar: bool, together: bool) -> Result<Spot, Fault> {
        if let Some(bits) = self.constant(value) {
            return Ok(Spot::Bits(bits));
        }
        let words = self.words(value);
        let file = if scalar { File::S } else { File::V };
        let spot = match self.func.ty(value) {
            Ty::Pred if together => Spot::Mask(self.fresh(File::S, 2)),
            Ty::Pred => {
                let mask = self.pieces(File::S, 2);
                self.salu("s_mov_b64", Some(mask.into()), &[Src::Bits(0)])?;
                Spot::Mask(mask)
            }
            Ty::B16 | Ty::B32 | Ty::B64 => {
                let part = if together { self.fresh(file, words) } else { self.pieces(file, words) };
                if scalar { Spot::S(part) } else { Spot::V(part) }
            }
        };
        self.set(value, spot);
        Ok(spot)
    }

    /// Copies values to variables, all at once.
    pub(super) fn copies(&mut self, to: &[Spot], from: &[Value]) -> Done {
        let mut srcs = Vec::with_capacity(to.len());
        for value in from {
            srcs.push(self.src(*value)?);
        }
        for i in 0..srcs.len() {
            // A variable that an earlier copy sets is saved before.
            let overwritten = match srcs[i] {
                Src::S(part) | Src::V(part) => to[..i.min(to.len())].iter().any(|spot| overlaps(*spot, part)),
                Src::Bits(_) | Src::Isa(_) => false,
            };
            if overwritten {
                srcs[i] = self.saved(srcs[i])?;
            }
        }
        // Saving reads all variables before the first of them is set.
        for (to, src) in to.iter().zip(srcs) {
            self.copy(*to, src)?;
        }
        Ok(())
    }

    fn saved(&mut self, src: Src) -> Result<Src, Fault> {
        Ok(match src {
            Src::S(part) if part.words == 2 => Src::S(self.salu_new("s_mov_b64", 2, &[src])?),
            Src::S(_) => Src::S(self.salu_new("s_mov_b32", 1, &[src])?),
            Src::V(part) => {
                let out = self.pieces(File::V, part.words);
                for n in 0..part.words {
                    self.move_word(out.word(n), src.word(n))?;
                }
                Src::V(out)
            }
            Src::Bits(_) | Src::Isa(_) => src,
        })
    }

    fn copy(&mut self, to: Spot, src: Src) -> Done {
        match to {
            Spot::V(part) | Spot::S(part) if src == Src::V(part) || src == Src::S(part) => Ok(()),
            Spot::V(part) if part.words == 2 && !self.code.register(part.reg).pieces => {
                self.valu("v_mov_b64", &[part.into()], &[src], &[])
            }
            Spot::S(part) if part.words == 2 => self.salu("s_mov_b64", Some(part.into()), &[src]),
            Spot::V(part) => (0..part.words).try_for_each(|n| self.move_word(part.word(n), src.word(n))),
            Spot::S(part) => (0..part.words).try_for_each(|n| self.move_scalar(part.word(n), src.word(n))),
            Spot::Mask(mask) if src == Src::S(mask) => Ok(()),
            Spot::Mask(mask) if !self.code.register(mask.reg).pieces => {
                self.salu("s_mov_b64", Some(mask.into()), &[src])
            }
            Spot::Mask(mask) => {
                let new = self.salu_new("s_and_b64", 2, &[src, Src::Isa(Isa::EXEC)])?;
                self.salu("s_andn2_b64", Some(mask.into()), &[Src::S(mask), Src::Isa(Isa::EXEC)])?;
                self.salu("s_or_b64", Some(mask.into()), &[Src::S(mask), Src::S(new)])
            }
            Spot::Bits(bits) if src == Src::Bits(bits) || src == Src::Bits(u64::MAX) && bits == 1 => Ok(()),
            Spot::Bits(_) if matches!(src, Src::Bits(_)) => Err(Fault::Defect("a copy to another constant".to_owned())),
            // What may arrive here is the constant, or it would be none. So this is never executed: the value is a result of arms that all leave.
            Spot::Bits(_) => Ok(()),
        }
    }

    /// Selects an arm, and copies the values that it yields; returns whether control reaches its end.
    fn arm(&mut self, region: Region, results: &[Spot]) -> Result<bool, Fault> {
        let func = self.func;
        if !self.block(region)? {
            return Ok(false);
        }
        if let Some(last) = func.block(region).ops.last().map(|id| func.op(*id)) {
            self.copies(results, &last.args)?;
        }
        Ok(true)
    }

    /// Whether an arm has no operations and no values.
    fn is_empty(&self, region: Region) -> bool {
        let ops = &self.func.block(region).ops;
        ops.iter().map(|id| self.func.op(*id)).all(|op| op.kind == OpKind::Yield && op.args.is_empty())
    }

    pub(super) fn jump(&mut self, to: Block) -> Done {
        self.row("s_branch", &[Operand::To(to)])
    }

    /// Branches, and continues in a new block.
    pub(super) fn branch_if(&mut self, name: &'static str, to: Block) -> Done {
        self.row(name, &[Operand::To(to)])?;
        let next = self.new_block();
        self.place(next);
        Ok(())
    }

    fn branch(&mut self, op: &Op) -> Done {
        let (cond, [yes, no]) = (first(&op.args)?, op.regions.as_slice()) else {
            return Err(Fault::Defect("a branch takes a condition and two arms".to_owned()));
        };
        let (yes, no) = (*yes, *no);
        let uniform = self.is_uniform(cond);
        let results = self.variables(&op.results, uniform)?;
        if let Some(bits) = self.constant(cond) {
            return self.arm(if bits == 0 { no } else { yes }, &results).map(drop);
        }
        let cond = self.src(cond)?;
        if uniform { self.uniform_branch(cond, [yes, no], &results) } else { self.split(cond, [yes, no], &results) }
    }

    fn uniform_branch(&mut self, cond: Src, [yes, no]: [Region; 2], results: &[Spot]) -> Done {
        let (other, end) = (self.new_block(), self.new_block());
        self.test(cond)?;
        self.branch_if("s_cbranch_scc0", other)?;
        if self.arm(yes, results)? {
            self.jump(end)?;
        }
        self.place(other);
        self.arm(no, results)?;
        self.place(end);
        Ok(())
    }

    fn split(&mut self, cond: Src, [yes, no]: [Region; 2], results: &[Spot]) -> Done {
        let end = self.new_block();
        let other = if self.is_empty(no) { None } else { Some(self.new_block()) };
        let exec = Src::Isa(Isa::EXEC);
        let rest = match other {
            Some(_) => Some(self.salu_new("s_andn2_b64", 2, &[exec, cond])?),
            None => None,
        };
        let saved = self.pieces(File::S, 2);
        self.salu("s_and_saveexec_b64", Some(saved.into()), &[cond])?;
        let landing = other.unwrap_or(end);
        self.frames.push(Frame::Arm { saved, landing, left: false });
        self.branch_if("s_cbranch_execz", landing)?;
        self.arm(yes, results)?;
        if let (Some(other), Some(rest)) = (other, rest) {
            self.place(other);
            self.salu("s_mov_b64", Some(Self::EXEC), &[Src::S(rest)])?;
            if let Some(Frame::Arm { landing, .. }) = self.frames.last_mut() {
                *landing = end;
            }
            self.branch_if("s_cbranch_execz", end)?;
            self.arm(no, results)?;
        }
        self.place(end);
        self.salu("s_mov_b64", Some(Self::EXEC), &[Src::S(saved)])?;
        let left = matches!(self.frames.pop(), Some(Frame::Arm { left: true, .. }));
        if left {
            let landing = self.landing();
            self.branch_if("s_cbranch_execz", landing)?;
        }
        Ok(())
    }
}

/// Whether a variable has words of a part.
fn overlaps(spot: Spot, part: Part) -> bool {
    match spot {
        Spot::S(own) | Spot::V(own) | Spot::Mask(own) => {
            own.reg == part.reg && own.first < part.first + part.words && part.first < own.first + own.words
        }
        Spot::Bits(_) => false,
    }
}
