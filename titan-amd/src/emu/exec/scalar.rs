//! Scalar arithmetic, branches, and hardware registers.

use super::{Run, Step};
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::group::Group;
use crate::emu::memory::{PRIVATE_APERTURE, SHARED_APERTURE};
use crate::emu::op::{Condition, From, Kind, Op, Source, To};
use crate::emu::wave::Wave;
use crate::isa::operand::EXEC;
use crate::isa::{Operand, Special};

impl Group<'_> {
    /// The bits of a scalar source of up to 64 bits.
    pub(super) fn scalar_source(&self, wave: usize, source: Source) -> Run<u64> {
        let w = &self.waves[wave];
        match source.from {
            From::Scalar(code, n) => w.scalar(code, n),
            From::Constant(bits) => Ok(bits),
            From::Special(special) => special_value(w, special),
            From::Nothing => Ok(0),
            From::Vector(..) => Err(Fail::new(ErrorCode::Unknown, "a vector register where a scalar is read")),
        }
    }

    pub(super) fn set_result(&mut self, wave: usize, op: &Op, value: u64) -> Run<()> {
        match op.results.first().map(|r| r.to) {
            Some(To::Scalar(code, n)) => self.waves[wave].set_scalar(code, n, value),
            Some(To::Vector(..)) | None => Err(Fail::new(ErrorCode::Unknown, "no scalar register for the result")),
        }
    }

    pub(super) fn scalar(&mut self, wave: usize, op: &Op) -> Run<Step> {
        let get = |i: usize| op.sources.get(i).map_or(Ok(0), |s| self.scalar_source(wave, *s));
        match op.kind {
            Kind::Scalar(f) => {
                let d = if op.accumulates { get(op.sources.len() - 1)? } else { 0 };
                let (value, scc) = f(get(0)?, get(1)?, d, self.waves[wave].scc);
                self.set_result(wave, op, value)?;
                let w = &mut self.waves[wave];
                w.scc = scc.unwrap_or(w.scc);
            }
            Kind::ScalarCompare(f) => self.waves[wave].scc = f(get(0)?, get(1)?),
            Kind::ExecMask(f, new) => {
                let old = self.waves[wave].exec();
                let mask = f(get(0)?, old);
                self.set_result(wave, op, if new { mask } else { old })?;
                let w = &mut self.waves[wave];
                w.set_scalar(EXEC, 2, mask)?;
                w.scc = mask != 0;
            }
            Kind::GetPc => {
                let next = self.waves[wave].pc + op.size;
                self.set_result(wave, op, next)?;
            }
            Kind::SetPc => return Ok(Step::Jump(get(0)?)),
            Kind::SwapPc => {
                let (to, next) = (get(0)?, self.waves[wave].pc + op.size);
                self.set_result(wave, op, next)?;
                return Ok(Step::Jump(to));
            }
            Kind::Call => {
                let next = self.waves[wave].pc + op.size;
                self.set_result(wave, op, next)?;
                return Ok(Step::Jump(self.target(wave, op)));
            }
            Kind::Branch(condition) => {
                let w = &self.waves[wave];
                let taken = match condition {
                    Condition::Always => true,
                    Condition::Scc(want) => w.scc == want,
                    Condition::Vcc(want) => (w.vcc()? != 0) == want,
                    Condition::Exec(want) => (w.exec() != 0) == want,
                };
                return Ok(if taken { Step::Jump(self.target(wave, op)) } else { Step::Next });
            }
            Kind::GetReg => {
                let value = self.hardware_register(wave, op)?;
                self.set_result(wave, op, value.into())?;
            }
            Kind::SetReg => self.set_hardware_register(wave, op)?,
            _ => return Err(Fail::new(ErrorCode::Unknown, "the emulator has no rule for this instruction")),
        }
        Ok(Step::Next)
    }

    /// The target of a branch.
    fn target(&self, wave: usize, op: &Op) -> u64 {
        let distance = op.inst.operands().iter().find_map(|o| match o {
            Operand::Imm(v) => Some(i64::from((*v << 16) >> 16) * 4),
            _ => None,
        });
        (self.waves[wave].pc + op.size).wrapping_add_signed(distance.unwrap_or(0))
    }

    /// The part of a hardware register that an instruction reads: ISA §5.8.
    fn hardware_register(&self, wave: usize, op: &Op) -> Run<u32> {
        let (id, offset, size) = hwreg(op);
        let value = match id {
            MODE => self.waves[wave].mode_bits(),
            // The part of the chip that runs the wave is always the first.
            XCC_ID => 0,
            _ => return Err(unknown_register(id)),
        };
        Ok(value >> offset & (u32::MAX >> (32 - size)))
    }

    fn set_hardware_register(&mut self, wave: usize, op: &Op) -> Run<()> {
        let (id, offset, size) = hwreg(op);
        if id != MODE {
            return Err(unknown_register(id));
        }
        // The source is the last operand.
        #[expect(clippy::cast_possible_truncation, reason = "a register")]
        let value = op.sources.last().map_or(Ok(0), |s| self.scalar_source(wave, *s))? as u32;
        let mask = (u32::MAX >> (32 - size)) << offset;
        let w = &mut self.waves[wave];
        let bits = w.mode_bits() & !mask | value << offset & mask;
        w.set_mode_bits(bits)
            .ok_or_else(|| Fail::new(ErrorCode::Unknown, format!("the emulator does not have the mode {bits:#x}")))
    }
}

const MODE: u32 = 1;
const XCC_ID: u32 = 20;

fn unknown_register(id: u32) -> Fail {
    Fail::new(ErrorCode::Unknown, format!("the emulator does not have the hardware register {id}"))
}

/// The number of the register, the first bit, and the number of bits.
fn hwreg(op: &Op) -> (u32, u32, u32) {
    let imm = op.inst.operands().iter().find_map(|o| match o {
        Operand::Imm(v) => Some(v.cast_unsigned()),
        _ => None,
    });
    let imm = imm.unwrap_or(0);
    (imm & 63, imm >> 6 & 31, (imm >> 11 & 31) + 1)
}

/// The values of special registers; apertures are the upper halves of addresses.
pub(super) fn special_value(w: &Wave, special: Special) -> Run<u64> {
    Ok(match special {
        Special::SharedBase => SHARED_APERTURE,
        Special::SharedLimit => SHARED_APERTURE | 0xFFFF_FFFF,
        Special::PrivateBase => PRIVATE_APERTURE,
        Special::PrivateLimit => PRIVATE_APERTURE | 0xFFFF_FFFF,
        Special::Vccz => u64::from(w.vcc()? == 0),
        Special::Execz => u64::from(w.exec() == 0),
        Special::Scc => u64::from(w.scc),
    })
}
