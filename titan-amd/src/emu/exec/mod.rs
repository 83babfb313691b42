//! The interpreter: executes one instruction of one wave.
//!
//! | module | instructions |
//! |---|---|
//! | [`scalar`] | scalar arithmetic, branches, hardware registers |
//! | [`source`] | sources of vector instructions: selected parts, moves across lanes, negation |
//! | [`vector`] | vector arithmetic, comparisons, lanes |
//! | [`lanes`] | moves of single lanes, 8-bit floats, mixed precision, MMAs |
//! | [`address`] | addresses of memory operations |
//! | [`memory`] | vector memory operations, captured at issue |
//! | [`local`] | operations of the local data share and of scalar memory |
//! | [`transfer`] | operations in flight |
//! | [`effect`] | the effects of these operations |
//! | [`index`] | registers that `m0` selects |
//! | [`wait`] | counters and barriers |

mod address;
pub(crate) mod effect;
mod index;
mod lanes;
mod local;
mod memory;
mod scalar;
mod source;
pub(crate) mod transfer;
mod vector;
mod wait;

pub(crate) use source::lanes_of;

use super::error::ErrorCode;
use super::fail::Fail;
use super::group::Group;
use super::memory::Memory;
use super::op::{Kind, Op};
use super::watch::Watch;

pub(crate) type Run<T> = Result<T, Fail>;

/// The state outside of a workgroup.
pub(crate) struct World<'a> {
    pub(crate) memory: &'a mut Memory,
    pub(crate) watch: &'a mut Watch,
    /// The number of instructions executed so far, over all workgroups.
    pub(crate) steps: &'a mut u64,
}

/// The continuation after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Next,
    Jump(u64),
    /// The wave continues, after others had their turn.
    Yield,
    /// The wave waits, and continues behind the instruction.
    Wait,
    End,
}

impl Group<'_> {
    /// Executes the next instruction of a wave.
    pub(crate) fn step(&mut self, wave: usize, world: &mut World<'_>) -> Run<Step> {
        let pc = self.waves[wave].pc;
        let op = self.env.module.fetch(pc.wrapping_sub(self.env.base))?;
        let indexed = if self.waves[wave].indexed { self.indexed(wave, op)? } else { None };
        let op = indexed.as_ref().unwrap_or(op);
        if self.env.options.hazards {
            self.waves[wave].hazards.step(op)?;
        }
        let step = self.execute(wave, op, world)?;
        match step {
            Step::Next | Step::Wait | Step::Yield => self.waves[wave].pc = pc + op.size,
            Step::Jump(to) => self.waves[wave].pc = to,
            Step::End => {}
        }
        Ok(step)
    }

    fn execute(&mut self, wave: usize, op: &Op, world: &mut World<'_>) -> Run<Step> {
        match op.kind {
            Kind::Scalar(..)
            | Kind::ScalarCompare(..)
            | Kind::ExecMask(..)
            | Kind::GetPc
            | Kind::SetPc
            | Kind::SwapPc
            | Kind::Call
            | Kind::Branch(_)
            | Kind::GetReg
            | Kind::SetReg
            | Kind::MoveRelative(_)
            | Kind::Index(_) => self.scalar(wave, op),
            Kind::Nothing | Kind::Cache => Ok(Step::Next),
            Kind::Sleep => Ok(Step::Yield),
            Kind::End => self.end(wave, world).map(|()| Step::End),
            Kind::Barrier => self.barrier(wave, world),
            Kind::Wait => self.waitcnt(wave, op, world).map(|()| Step::Next),
            Kind::Trap => Err(Fail::new(ErrorCode::Trap, "the kernel executed `s_trap`")),
            Kind::ScalarMemory | Kind::Memory | Kind::Lds => self.memory(wave, op, world).map(|()| Step::Next),
            Kind::Matrix => self.matrix(wave, op).map(|()| Step::Next),
            Kind::Lane(..)
            | Kind::Packed(_)
            | Kind::PackedInt(..)
            | Kind::Compare(..)
            | Kind::Select
            | Kind::Carry(_)
            | Kind::Mad64 { .. }
            | Kind::DivScale
            | Kind::DivFmas
            | Kind::ToSmall
            | Kind::Mix(_)
            | Kind::PackedMove
            | Kind::Mbcnt { .. }
            | Kind::ReadLane
            | Kind::ReadFirstLane
            | Kind::WriteLane
            | Kind::Swap => self.vector(wave, op).map(|()| Step::Next),
        }
    }
}
