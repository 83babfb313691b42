//! Hazards: distances between instructions that hardware does not enforce, so that a program that is too fast reads or writes too early.
//!
//! Source: ISA §4.5 "Manually Inserted Wait States" (table 11), §7.5 "Dependency Resolution" (table 37). Wait states are
//! instructions in between, where `s_nop n` counts n + 1. Where LLVM 19 keeps a longer distance than the manual asks for
//! (a carry that is read as a mask), LLVM's distance is required, because it is known to work on hardware.
//!
//! This table is the emulator's own; a code generator must have another one.

#![deny(clippy::wildcard_enum_match_arm)]

use super::error::ErrorCode;
use super::fail::Fail;
use super::op::{File, From, Kind, Op, To};
use crate::isa::operand::{EXEC, M0, VCC};
use crate::isa::{Access, Class, Field, Form, Mods, Operand, Unit};

/// The kind of the last writer of a vector register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    /// Vector arithmetic of no other kind.
    Valu,
    Trans,
    /// A write of a part of the register: SDWA, or a selected half.
    Partial,
    Dot,
    Xdl,
    Sgemm,
    Dgemm,
}

/// A write to a vector register.
#[derive(Clone, Copy, Debug)]
struct Write {
    time: u64,
    writer: Writer,
    passes: u8,
    /// The address of the instruction, its mnemonic, and the registers that it wrote.
    address: u64,
    name: &'static str,
    first: u8,
    count: u8,
}

/// A read of a register that a later write must not overtake.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// The time from which on vector arithmetic may write the register.
    free: u64,
    address: u64,
    why: &'static str,
}

/// The last write of a scalar register.
#[derive(Clone, Copy, Debug)]
struct ScalarWrite {
    time: u64,
    address: u64,
}

/// The recent events of a wave that hazards depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hazards {
    now: u64,
    writes: [Vec<Option<Write>>; 2],
    held: [Vec<Option<Held>>; 2],
    /// The writes of scalar registers by vector arithmetic.
    scalars: Vec<Option<ScalarWrite>>,
    /// The writes of `m0` by scalar arithmetic, and of hardware registers by `s_setreg`.
    m0: Option<ScalarWrite>,
    setreg: Option<(ScalarWrite, u32)>,
}

fn slot<T: Copy>(list: &mut Vec<Option<T>>, i: usize) -> &mut Option<T> {
    if list.len() <= i {
        list.resize(i + 1, None);
    }
    &mut list[i]
}

const fn index(file: File) -> usize {
    match file {
        File::V => 0,
        File::A => 1,
    }
}

const fn is_matrix(unit: Unit) -> bool {
    matches!(unit, Unit::Xdl | Unit::Sgemm | Unit::Dgemm)
}

const fn is_valu(unit: Unit) -> bool {
    matches!(unit, Unit::Valu | Unit::Trans | Unit::Dot)
}

const fn is_memory(unit: Unit) -> bool {
    matches!(unit, Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds)
}

/// The way in which a vector register is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Read as the accumulator of an MMA.
    Accumulator,
    /// Read as another operand of an MMA.
    Factor,
    /// Read by vector arithmetic.
    Valu,
    /// Read by any other instruction.
    Memory,
}

impl Hazards {
    /// Checks an instruction that is about to be executed, and records its effects.
    pub(crate) fn step(&mut self, op: &Op) -> Result<(), Fail> {
        self.vector_reads(op)?;
        self.vector_writes(op)?;
        self.scalar_reads(op)?;
        self.note(op);
        let idle = match op.inst.operands().first() {
            Some(Operand::Imm(n)) if op.inst.row().name == "s_nop" => u64::from(n.cast_unsigned() & 15),
            _ => 0,
        };
        self.now += 1 + idle;
        Ok(())
    }

    /// Checks that enough wait states have passed since `time`.
    fn since(&self, time: u64, address: u64, needed: u64, rule: &str) -> Result<(), Fail> {
        let passed = self.now - time - 1;
        if passed >= needed {
            return Ok(());
        }
        let message = format!("{rule}: {needed} wait states are needed between them, and there are {passed}");
        let fail = Fail::new(ErrorCode::Hazard, message).against(address, "the first instruction");
        Err(fail.help("put `s_nop` or independent instructions between them"))
    }

    fn vector_reads(&self, op: &Op) -> Result<(), Fail> {
        for (arg, operand) in op.inst.args() {
            let Some((file, first, count)) = File::of(operand) else { continue };
            if arg.access == Access::Write {
                continue;
            }
            let kind = match (op.unit, arg.class) {
                (unit, Class::MatrixC | Class::MatrixD) if is_matrix(unit) => Use::Accumulator,
                (unit, _) if is_matrix(unit) => Use::Factor,
                (unit, _) if is_valu(unit) => Use::Valu,
                _ => Use::Memory,
            };
            for r in first..=first + (count - 1) {
                if let Some(Some(w)) = self.writes[index(file)].get(usize::from(r)) {
                    self.vector_read(op, w, kind, (first, count))?;
                }
            }
        }
        Ok(())
    }

    /// ISA tables 11 and 37: checks the read of a register that `w` wrote.
    fn vector_read(&self, op: &Op, w: &Write, kind: Use, read: (u8, u8)) -> Result<(), Fail> {
        let needed = match w.writer {
            Writer::Xdl | Writer::Sgemm | Writer::Dgemm => self.after_matrix(op, w, kind, read),
            Writer::Dot => match kind {
                Use::Valu if op.inst.row().name == w.name && self.is_accumulator(op, read) => 0,
                Use::Valu | Use::Accumulator | Use::Factor | Use::Memory => 3,
            },
            Writer::Valu | Writer::Trans | Writer::Partial => self.after_valu(op, w, kind),
        };
        let rule = format!("a register is read too early after `{}` writes it", w.name);
        self.since(w.time, w.address, needed, &rule)
    }

    fn after_valu(&self, op: &Op, w: &Write, kind: Use) -> u64 {
        let trans = w.writer == Writer::Trans && is_valu(op.unit) && op.unit != Unit::Trans;
        let partial = w.writer == Writer::Partial && is_valu(op.unit);
        let lane = matches!(op.kind, Kind::ReadLane | Kind::ReadFirstLane);
        let dpp = op.inst.form() == Form::Dpp;
        [(matches!(kind, Use::Accumulator | Use::Factor), 2), (dpp, 2), (trans || partial || lane, 1)]
            .into_iter()
            .filter(|(applies, _)| *applies)
            .map(|(_, n)| n)
            .max()
            .unwrap_or(0)
    }

    /// Whether the registers are the ones to which a dot product adds.
    fn is_accumulator(&self, op: &Op, (first, _): (u8, u8)) -> bool {
        match op.inst.operands().last() {
            Some(Operand::V(r, _)) if op.inst.row().args().len() == 4 => *r == first,
            _ => matches!(op.inst.operands().first(), Some(Operand::V(r, _)) if *r == first),
        }
    }

    /// The wait states after an MMA, by its passes and the kind of read: ISA table 37.
    fn after_matrix(&self, op: &Op, w: &Write, kind: Use, (first, count): (u8, u8)) -> u64 {
        let p = u64::from(w.passes);
        let same = op.inst.row().name == w.name && (first, count) == (w.first, w.count);
        let long = w.passes > 4;
        match (w.writer, kind) {
            (Writer::Dgemm, Use::Accumulator) if op.unit == Unit::Dgemm => match (same, long) {
                (true, _) => 0,
                (false, true) => 9,
                (false, false) => 4,
            },
            (Writer::Dgemm, Use::Memory) => {
                if long {
                    18
                } else {
                    9
                }
            }
            (Writer::Dgemm, Use::Accumulator | Use::Factor | Use::Valu) => {
                if long {
                    11
                } else {
                    6
                }
            }
            (Writer::Xdl, Use::Accumulator) if same => {
                if w.passes == 2 {
                    2
                } else {
                    0
                }
            }
            (Writer::Xdl, Use::Accumulator) => p + 1,
            (Writer::Xdl, Use::Factor | Use::Valu | Use::Memory) => p + 3,
            (Writer::Sgemm, Use::Accumulator) if same => 0,
            (Writer::Sgemm, Use::Accumulator) => p,
            (Writer::Sgemm, Use::Factor | Use::Valu | Use::Memory) => p + 2,
            // These writers are not MMAs, and have their own rules.
            (Writer::Valu | Writer::Trans | Writer::Partial | Writer::Dot, _) => 0,
        }
    }

    /// Checks that vector arithmetic writes no register that an earlier instruction still writes or reads.
    fn vector_writes(&self, op: &Op) -> Result<(), Fail> {
        if !is_valu(op.unit) {
            return Ok(());
        }
        for place in &op.results {
            let To::Vector(file, first, count) = place.to else { continue };
            for r in first..=first + (count - 1) {
                if let Some(Some(w)) = self.writes[index(file)].get(usize::from(r)) {
                    let p = u64::from(w.passes);
                    let needed = match w.writer {
                        Writer::Xdl => p + 3,
                        Writer::Sgemm => p + 2,
                        Writer::Dgemm => {
                            if w.passes > 4 {
                                11
                            } else {
                                6
                            }
                        }
                        Writer::Dot if op.inst.row().name != w.name => 3,
                        Writer::Dot | Writer::Valu | Writer::Trans | Writer::Partial => 0,
                    };
                    let rule = format!("a register is written too early after `{}` writes it", w.name);
                    self.since(w.time, w.address, needed, &rule)?;
                }
                if let Some(Some(h)) = self.held[index(file)].get(usize::from(r))
                    && self.now < h.free
                {
                    let missing = h.free - self.now;
                    let message =
                        format!("a register is written while {} still reads it: {missing} more wait states", h.why);
                    let fail = Fail::new(ErrorCode::Hazard, message).against(h.address, "the first instruction");
                    return Err(fail.help("put `s_nop` or independent instructions between them"));
                }
            }
        }
        Ok(())
    }

    fn scalar(&self, code: u8) -> Option<ScalarWrite> {
        self.scalars.get(usize::from(code)).copied().flatten()
    }

    fn scalar_rule(&self, code: u8, needed: u64, rule: &str) -> Result<(), Fail> {
        self.scalar(code).map_or(Ok(()), |w| self.since(w.time, w.address, needed, rule))
    }

    fn scalar_reads(&self, op: &Op) -> Result<(), Fail> {
        let vector = is_valu(op.unit) || is_matrix(op.unit);
        for source in &op.sources {
            let From::Scalar(code, n) = source.from else {
                if let From::Special(special) = source.from
                    && vector
                {
                    self.status_read(special)?;
                }
                continue;
            };
            for r in code..code + n {
                if is_memory(op.unit) {
                    self.scalar_rule(r, 5, "vector memory reads a scalar register that vector arithmetic wrote")?;
                } else if vector {
                    let rule = "vector arithmetic reads a scalar register that vector arithmetic wrote";
                    self.scalar_rule(r, 2, rule)?;
                }
            }
        }
        self.lanes(op)?;
        if matches!(op.kind, Kind::DivFmas) {
            self.scalar_rule(VCC, 4, "`v_div_fmas` reads `vcc` that vector arithmetic wrote")?;
        }
        if is_matrix(op.unit) {
            self.scalar_rule(EXEC, 4, "an MFMA follows vector arithmetic that wrote `exec`")?;
        }
        if op.inst.form() == Form::Dpp {
            self.scalar_rule(EXEC, 5, "a DPP instruction follows vector arithmetic that wrote `exec`")?;
        }
        self.control(op)
    }

    fn status_read(&self, special: crate::isa::Special) -> Result<(), Fail> {
        use crate::isa::Special;
        let code = match special {
            Special::Vccz => VCC,
            Special::Execz => EXEC,
            Special::SharedBase
            | Special::SharedLimit
            | Special::PrivateBase
            | Special::PrivateLimit
            | Special::Scc => return Ok(()),
        };
        self.scalar_rule(code, 5, "a status bit is read after vector arithmetic wrote its mask")
    }

    /// Checks reads and writes of single lanes.
    fn lanes(&self, op: &Op) -> Result<(), Fail> {
        if !matches!(op.kind, Kind::ReadLane | Kind::ReadFirstLane | Kind::WriteLane) {
            return Ok(());
        }
        self.scalar_rule(EXEC, 4, "a lane is read or written after vector arithmetic wrote `exec`")?;
        if let Some(From::Scalar(code, _)) = op.sources.last().map(|s| s.from) {
            self.scalar_rule(code, 4, "a lane is chosen by a register that vector arithmetic wrote")?;
        }
        Ok(())
    }

    fn control(&self, op: &Op) -> Result<(), Fail> {
        let name = op.inst.row().name;
        let moves = matches!(op.kind, Kind::MoveRelative(_));
        let reads_m0 = moves || op.unit == Unit::LoadLds || name.contains("addtid") || name.starts_with("s_sendmsg");
        if let Some(w) = self.m0.filter(|_| reads_m0) {
            self.since(w.time, w.address, 1, "`m0` is read too early after scalar arithmetic writes it")?;
        }
        if let Some((w, id)) = self.setreg
            && matches!(op.kind, Kind::GetReg | Kind::SetReg)
            && hwreg(op) == Some(id)
        {
            self.since(w.time, w.address, 2, "a hardware register is used too early after `s_setreg`")?;
        }
        Ok(())
    }

    fn note(&mut self, op: &Op) {
        let (time, address) = (self.now, op.address);
        let writer = match op.unit {
            Unit::Xdl => Some(Writer::Xdl),
            Unit::Sgemm => Some(Writer::Sgemm),
            Unit::Dgemm => Some(Writer::Dgemm),
            Unit::Trans => Some(Writer::Trans),
            Unit::Dot => Some(Writer::Dot),
            Unit::Valu if partial(op) => Some(Writer::Partial),
            Unit::Valu => Some(Writer::Valu),
            Unit::Salu
            | Unit::Smem
            | Unit::Load
            | Unit::Store
            | Unit::Atomic
            | Unit::LoadLds
            | Unit::Cache
            | Unit::Lds
            | Unit::Branch
            | Unit::Control => None,
        };
        let row = op.inst.row();
        for place in &op.results {
            match (place.to, writer) {
                (To::Vector(file, first, count), Some(writer)) => {
                    let w = Write { time, writer, passes: row.passes, address, name: row.name, first, count };
                    for r in first..=first + (count - 1) {
                        *slot(&mut self.writes[index(file)], r.into()) = Some(w);
                    }
                }
                // Loads and stores wait for earlier arithmetic on a register, so its hazards end.
                (To::Vector(file, first, count), None) => {
                    for r in first..=first + (count - 1) {
                        *slot(&mut self.writes[index(file)], r.into()) = None;
                    }
                }
                (To::Scalar(code, n), Some(_)) => self.note_scalar(code, n, Some(ScalarWrite { time, address })),
                (To::Scalar(code, n), None) => {
                    self.note_scalar(code, n, None);
                    if code == M0 {
                        self.m0 = Some(ScalarWrite { time, address });
                    }
                }
            }
        }
        if matches!(op.kind, Kind::Compare(..)) && row.name.starts_with("v_cmpx") {
            self.note_scalar(EXEC, 2, Some(ScalarWrite { time, address }));
        }
        if let (Kind::SetReg, Some(id)) = (op.kind, hwreg(op)) {
            self.setreg = Some((ScalarWrite { time, address }, id));
        }
        self.hold(op);
    }

    fn note_scalar(&mut self, code: u8, n: u8, write: Option<ScalarWrite>) {
        for r in code..code + n {
            *slot(&mut self.scalars, r.into()) = write;
        }
    }

    /// Records registers that are still read after the issue of the instruction: accumulators, and data of wide stores.
    fn hold(&mut self, op: &Op) {
        let (now, address) = (self.now, op.address);
        let soffset = op.inst.args().find(|(a, _)| a.class == Class::Soffset).map(|(_, o)| o);
        for (arg, operand) in op.inst.args() {
            let Some((file, first, count)) = File::of(operand) else { continue };
            let data = matches!(arg.field, Field::Data | Field::Vdata) && arg.access == Access::Read && count > 2;
            let (states, why) = match op.unit {
                Unit::Xdl if arg.class == Class::MatrixC => (u64::from(op.inst.row().passes) - 1, "an MFMA"),
                Unit::Store | Unit::Atomic if data => match soffset {
                    // LLVM pull request 197267: the same applies with a register for the offset, with one wait state less.
                    Some(Operand::S(..)) => (1, "a store"),
                    _ => (2, "a store"),
                },
                // All other instructions have read their operands when the next instruction is issued.
                Unit::Salu
                | Unit::Smem
                | Unit::Valu
                | Unit::Trans
                | Unit::Dot
                | Unit::Xdl
                | Unit::Sgemm
                | Unit::Dgemm
                | Unit::Load
                | Unit::Store
                | Unit::Atomic
                | Unit::LoadLds
                | Unit::Cache
                | Unit::Lds
                | Unit::Branch
                | Unit::Control => continue,
            };
            for r in first..=first + (count - 1) {
                *slot(&mut self.held[index(file)], r.into()) = Some(Held { free: now + 1 + states, address, why });
            }
        }
    }
}

/// Whether only a part of a register is written, and bits are moved to it: ISA §6.2.1, "Limitations for SDWA and OPSEL". Conversions to
/// 8-bit floats write a part in any case, but move bits only if they select another than the lowest: stochastic ones one of four bytes by
/// two bits. Conversions from 8-bit floats with an SDWA word write whole registers; LLVM keeps the distance after them too.
fn partial(op: &Op) -> bool {
    let select = op.inst.get(Field::OpSel);
    let whole = op.inst.get(Field::DstSel) == 6 && !op.inst.row().mods.has(Mods::SDWA_SOURCE);
    let sdwa = op.inst.form() == Form::Sdwa && !whole;
    sdwa || select & 8 != 0 || (matches!(op.kind, Kind::ToSmall) && select & 12 != 0)
}

/// The number of a hardware register.
fn hwreg(op: &Op) -> Option<u32> {
    let immediate = |o: &Operand| if let Operand::Imm(v) = o { Some(v.cast_unsigned() & 63) } else { None };
    op.inst.operands().iter().find_map(immediate)
}
