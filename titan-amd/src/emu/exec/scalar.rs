//! Scalar arithmetic, branches, and hardware registers.

use super::{Run, Step};
use crate::emu::absent::{Absent, refuse};
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::group::Group;
use crate::emu::memory::{PRIVATE_APERTURE, SHARED_APERTURE};
use crate::emu::op::{Condition, From, Kind, Op, Source, To};
use crate::emu::scalar::ScalarFn;
use crate::emu::scalars::Value;
use crate::emu::shadow::ones;
use crate::emu::shadow::scalar::{self, ScalarShadow};
use crate::emu::wave::{Wave, undefined};
use crate::isa::operand::EXEC;
use crate::isa::{Implicit, Operand, Special};

impl Group<'_> {
    /// The bits of a scalar source of up to 64 bits, some of which may be undefined.
    pub(super) fn scalar_value(&self, wave: usize, source: Source) -> Run<Value> {
        let w = &self.waves[wave];
        match source.from {
            From::Scalar(code, n) => w.scalar(code, n),
            From::Constant(bits) => Ok(Value::defined(bits)),
            From::Special(special) => special_value(w, special),
            From::Nothing => Ok(Value::default()),
            From::Vector(..) => Err(Fail::new(ErrorCode::Unknown, "a vector register where a scalar is read")),
        }
    }

    /// The bits of a scalar source that must be defined, because `what` depends on it.
    pub(super) fn scalar_source(&self, wave: usize, source: Source, what: &str) -> Run<u64> {
        let value = self.scalar_value(wave, source)?;
        if value.shadow == 0 { Ok(value.bits) } else { Err(undefined(what, self.origin_of(wave, source))) }
    }

    /// Sets the scalar result; undefined bits come from a source of the instruction.
    pub(super) fn set_result(&mut self, wave: usize, op: &Op, value: Value) -> Run<()> {
        let origin = if value.shadow == 0 { None } else { self.origin(wave, op) };
        match op.results.first().map(|r| r.to) {
            Some(To::Scalar(code, n)) => self.waves[wave].set_scalar(code, n, value, origin),
            Some(To::Vector(..)) | None => Err(Fail::new(ErrorCode::Unknown, "no scalar register for the result")),
        }
    }

    pub(super) fn scalar(&mut self, wave: usize, op: &Op) -> Run<Step> {
        match op.kind {
            Kind::Scalar(f, shadow) => self.compute(wave, op, f, shadow)?,
            Kind::ScalarCompare(f, shadow) => {
                let get = |i: usize| op.sources.get(i).map_or(Ok(Value::default()), |s| self.scalar_value(wave, *s));
                let (a, b) = (get(0)?, get(1)?);
                let (x, s) = ([a.bits, b.bits], [a.shadow, b.shadow]);
                let undefined = s != [0; 2] && shadow.is_none_or(|rule| rule(x, s));
                let origin = if undefined { self.origin(wave, op) } else { None };
                self.waves[wave].set_scc(f(a.bits, b.bits), origin);
            }
            Kind::ExecMask(f, new) => {
                let old = self.waves[wave].exec();
                // Lanes that were not active do not become so by bits that are undefined.
                let source = op.sources.first().map_or(Ok(Value::default()), |s| self.scalar_value(wave, *s))?;
                let (mask, other) = (f(source.bits, old), f(source.bits ^ source.shadow, old));
                if mask != other {
                    return Err(undefined("the mask of active lanes", self.origin(wave, op)));
                }
                self.set_result(wave, op, Value::defined(if new { mask } else { old }))?;
                let w = &mut self.waves[wave];
                w.set_defined(EXEC, 2, mask)?;
                w.set_scc(mask != 0, None);
            }
            Kind::GetPc => {
                let next = self.waves[wave].pc + op.size;
                self.set_result(wave, op, Value::defined(next))?;
            }
            Kind::SetPc => return Ok(Step::Jump(self.jump_target(wave, op)?)),
            Kind::SwapPc => {
                let (to, next) = (self.jump_target(wave, op)?, self.waves[wave].pc + op.size);
                self.set_result(wave, op, Value::defined(next))?;
                return Ok(Step::Jump(to));
            }
            Kind::Call => {
                let next = self.waves[wave].pc + op.size;
                self.set_result(wave, op, Value::defined(next))?;
                return Ok(Step::Jump(self.target(wave, op)));
            }
            Kind::Branch(condition) => {
                let w = &self.waves[wave];
                let taken = match condition {
                    Condition::Always => true,
                    Condition::Scc(want) => w.defined_scc()? == want,
                    Condition::Vcc(want) => w.any_vcc()? == want,
                    Condition::Exec(want) => (w.exec() != 0) == want,
                };
                return Ok(if taken { Step::Jump(self.target(wave, op)) } else { Step::Next });
            }
            Kind::GetReg => {
                let value = self.hardware_register(wave, op)?;
                self.set_result(wave, op, Value::defined(value.into()))?;
            }
            Kind::SetReg => self.set_hardware_register(wave, op)?,
            Kind::MoveRelative(_) => self.move_relative(wave, op)?,
            Kind::Index(_) => self.set_index(wave, op)?,
            _ => return Err(Fail::new(ErrorCode::Unknown, "the emulator has no rule for this instruction")),
        }
        Ok(Step::Next)
    }

    /// A function of scalar sources.
    fn compute(&mut self, wave: usize, op: &Op, f: ScalarFn, rule: Option<ScalarShadow>) -> Run<()> {
        let get = |i: usize| op.sources.get(i).map_or(Ok(Value::default()), |s| self.scalar_value(wave, *s));
        let d = if op.accumulates { get(op.sources.len() - 1)? } else { Value::default() };
        // An instruction that updates its destination has no second source.
        let b = if op.accumulates { Value::default() } else { get(1)? };
        let (a, scc, reads_scc) = (get(0)?, self.waves[wave].scc(), op.inst.row().reads.has(Implicit::SCC));
        let (bits, condition) = f(a.bits, b.bits, d.bits, scc.bits == 1);
        let sources = [a, b, d, if reads_scc { scc } else { Value::default() }];
        if sources.iter().all(|s| s.shadow == 0) {
            self.set_result(wave, op, Value::defined(bits))?;
            let w = &mut self.waves[wave];
            if let Some(condition) = condition {
                w.set_scc(condition, None);
            }
            return Ok(());
        }
        let width = op.results.first().map_or(32, |r| r.ty.bits());
        let shadow = rule.map_or_else(|| scalar::coarse(sources), |rule| rule(sources)) & ones(width);
        let origin = self.origin(wave, op);
        self.set_result(wave, op, Value { bits, shadow })?;
        if let Some(condition) = condition {
            let tests = scalar::tests_result(op.inst.row().name);
            let undefined = !tests || scalar::is_zero_undefined(bits, shadow);
            self.waves[wave].set_scc(condition, origin.filter(|_| undefined));
        }
        Ok(())
    }

    fn jump_target(&self, wave: usize, op: &Op) -> Run<u64> {
        let source = op.sources.first().ok_or_else(|| Fail::new(ErrorCode::Unknown, "a target is missing"))?;
        self.scalar_source(wave, *source, "the target of a branch")
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
            _ => return Err(unknown_register(op)),
        };
        Ok(value >> offset & (u32::MAX >> (32 - size)))
    }

    fn set_hardware_register(&mut self, wave: usize, op: &Op) -> Run<()> {
        let (id, offset, size) = hwreg(op);
        if id != MODE {
            return Err(unknown_register(op));
        }
        // The source is the last operand.
        #[expect(clippy::cast_possible_truncation, reason = "a register")]
        let value = op.sources.last().map_or(Ok(0), |s| self.scalar_source(wave, *s, "the mode"))? as u32;
        let mask = (u32::MAX >> (32 - size)) << offset;
        let w = &mut self.waves[wave];
        let bits = w.mode_bits() & !mask | value << offset & mask;
        w.set_mode_bits(bits).ok_or_else(|| unknown_mode(bits))
    }
}

const MODE: u32 = 1;
const XCC_ID: u32 = 20;

fn unknown_register(op: &Op) -> Fail {
    refuse(Absent::HardwareRegisters, format_args!("`{}`", op.inst))
}

/// The error for bits of `MODE` that the emulator does not have: ISA §3.5.
fn unknown_mode(bits: u32) -> Fail {
    let set = |mask: u32| bits & mask != 0;
    if set(1 << 28) {
        refuse(Absent::VectorSkip, "`VSKIP` of `MODE`")
    } else if set(0x1F_F800) {
        refuse(Absent::Exceptions, "`DEBUG` or `EXCP_EN` of `MODE`")
    } else if set(7 << 29) {
        refuse(Absent::ForkAndJoin, "`CSP` of `MODE`")
    } else if set(1 << 26) {
        refuse(Absent::Debugging, "`DISABLE_PERF` of `MODE`")
    } else {
        Fail::new(ErrorCode::Unknown, format!("`MODE` has bits set that the manual reserves: {bits:#x}"))
    }
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
pub(super) fn special_value(w: &Wave, special: Special) -> Run<Value> {
    Ok(match special {
        Special::SharedBase => Value::defined(SHARED_APERTURE),
        Special::SharedLimit => Value::defined(SHARED_APERTURE | 0xFFFF_FFFF),
        Special::PrivateBase => Value::defined(PRIVATE_APERTURE),
        Special::PrivateLimit => Value::defined(PRIVATE_APERTURE | 0xFFFF_FFFF),
        Special::Vccz => w.vccz()?,
        Special::Execz => Value::defined(u64::from(w.exec() == 0)),
        Special::Scc => w.scc(),
    })
}
