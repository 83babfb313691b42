//! The issue of vector memory operations: addresses and data are captured, destinations reserved.
//!
//! An operation on generic addresses (`flat_…`) is issued as two: one on vector memory for the lanes whose addresses are in global or private
//! memory, one on the local data share for the others. Each keeps the order of its unit, so that operations of a lane on one address happen
//! in the order of the program; both counters count it.

use super::address::Addresses;
use super::transfer::{Action, AtomicData, Data, Narrow, Piece, Transfer};
use super::{Run, World};
use crate::emu::atomic;
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::group::{Group, Queue};
use crate::emu::op::{File, Kind, Op, Source, To};
use crate::emu::vectors::Origin;
use crate::isa::operand::M0;
use crate::isa::ty::{B32, B64};
use crate::isa::{Access, Class, Format, Operand, Ty, Unit};

pub(super) fn unknown(what: &str) -> Fail {
    Fail::new(ErrorCode::Unknown, what)
}

impl Group<'_> {
    pub(super) fn memory(&mut self, wave: usize, op: &Op, world: &mut World<'_>) -> Run<()> {
        let (queue, transfer) = match op.kind {
            Kind::ScalarMemory => (Queue::Smem, self.scalar_memory(wave, op, world)?),
            Kind::Lds => (Queue::Lds, self.lds(wave, op)?),
            _ if op.inst.format() == Format::Flat => return self.generic(wave, op, world),
            _ => {
                let addresses = self.addresses(wave, op)?;
                let queue = if op.unit == Unit::LoadLds { Queue::ToLds } else { Queue::Vm };
                (queue, self.vector_memory(wave, op, &addresses)?)
            }
        };
        self.issue(wave, (queue, false), transfer, world)
    }

    fn generic(&mut self, wave: usize, op: &Op, world: &mut World<'_>) -> Run<()> {
        let all = self.addresses(wave, op)?;
        let (local, other): (Addresses, Addresses) = all.into_iter().partition(|(_, at)| at.lds().is_some());
        for (queue, addresses) in [(Queue::Vm, other), (Queue::Lds, local)] {
            let lanes = addresses.iter().fold(0, |all, (l, _)| all | 1 << l);
            let mut transfer = self.vector_memory(wave, op, &addresses)?;
            transfer.reserved = transfer.reserved.map(|(file, first, n, _)| (file, first, n, lanes));
            self.issue(wave, (queue, true), transfer, world)?;
        }
        Ok(())
    }

    fn vector_memory(&mut self, wave: usize, op: &Op, addresses: &Addresses) -> Run<Transfer> {
        let name = op.inst.row().name;
        let data = op.inst.args().enumerate().find(|(_, (a, _))| a.class == Class::Va);
        let pc = self.waves[wave].pc;
        let make = |pieces, action, reserved| Transfer { serial: 0, wave, pc, pieces, action, reserved };
        match op.unit {
            Unit::Load => {
                let (_, (arg, _)) = data.ok_or_else(|| unknown("a result is missing"))?;
                let (file, first, _) = destination(op)?;
                let pieces = self.pieces(wave, op, addresses, (arg.ty, false))?;
                let reserved = self.reserved(wave, op);
                Ok(make(pieces, Action::Load { file, first, narrow: narrow(name, arg.ty) }, reserved))
            }
            Unit::Store => {
                let (_, (arg, operand)) = data.ok_or_else(|| unknown("data are missing"))?;
                let pieces = self.pieces(wave, op, addresses, (arg.ty, false))?;
                let data = self.data(wave, operand, &pieces, u32::from(name.contains("d16_hi")) * 16)?;
                let origin = self.origin_of_data(wave, op, &data);
                Ok(make(pieces, Action::Store { data, origin }, None))
            }
            Unit::Atomic => self.atomic(wave, op, addresses, pc),
            Unit::LoadLds if name.ends_with("dword") => {
                let pieces = self.pieces(wave, op, addresses, (B32, false))?;
                let m0 = self.waves[wave].defined_word(M0, "an address of the local data share")?;
                // ISA §9.1.9, §10.3: the destinations of the lanes are contiguous, whatever the lanes read.
                let base = if op.inst.format() == Format::Mubuf { m0 & 0xFFFF } else { m0 >> 2 & 0xFFFF };
                let base = if op.inst.format() == Format::Mubuf { u64::from(base) } else { u64::from(base) * 4 };
                let base = base.wrapping_add_signed(i64::from(op.inst.offset()));
                if base % 4 != 0 {
                    return Err(Fail::new(
                        ErrorCode::Misaligned,
                        "words are loaded to an address that is none of words",
                    ));
                }
                let targets = pieces.iter().map(|p| base + 4 * u64::from(p.lane)).collect();
                Ok(make(pieces, Action::ToLds { targets }, None))
            }
            _ => Err(unknown("the emulator has no rule for this instruction")),
        }
    }

    /// Reads the bytes of the pieces from registers.
    pub(super) fn data(&self, wave: usize, operand: Operand, pieces: &[Piece], shift: u32) -> Run<Data> {
        let (file, first) = vector(operand).ok_or_else(|| unknown("data are not in vector registers"))?;
        let file = self.waves[wave].file(file);
        let mut all = Data::default();
        for piece in pieces {
            let lane = usize::from(piece.lane);
            let mut left = usize::from(piece.bytes);
            let mut r = usize::from(first) + usize::from(piece.register);
            while left > 0 {
                let word = (file.read(r, 1 << lane)?[lane] >> shift).to_le_bytes();
                let shadow = (file.shadow(r, lane) >> shift).to_le_bytes();
                let n = left.min(4);
                all.push(&word[..n], &shadow[..n]);
                left -= n;
                r += 1;
            }
        }
        Ok(all)
    }

    /// Where undefined bits of data come from, if there are any.
    pub(super) fn origin_of_data(&self, wave: usize, op: &Op, data: &Data) -> Option<Origin> {
        if data.shadows.is_empty() { None } else { self.origin(wave, op) }
    }

    fn atomic(&mut self, wave: usize, op: &Op, addresses: &Addresses, pc: u64) -> Run<Transfer> {
        let name = op.inst.row().name;
        let arg = op.inst.args().find(|(a, _)| a.class == Class::Va && a.access != Access::Write);
        let (arg, operand) = arg.ok_or_else(|| unknown("data are missing"))?;
        let pair = name.contains("cmpswap");
        let bits = arg.ty.bits() / if pair { 2 } else { 1 };
        let f =
            atomic::function(name, bits == 64).ok_or_else(|| unknown("the emulator has no rule for this atomic"))?;
        let pieces = self.pieces(wave, op, addresses, (if bits == 64 { B64 } else { B32 }, true))?;
        let (file, first) = vector(operand).ok_or_else(|| unknown("data are not in vector registers"))?;
        let read = |piece: &Piece, skip: u8| self.element(wave, (file, first + skip), piece.lane, bits);
        #[expect(clippy::cast_possible_truncation, reason = "one or two registers")]
        let step = (bits / 32) as u8;
        let each = |p: &Piece| {
            let (a, b) = (read(p, 0)?, if pair { read(p, step)? } else { (0, 0) });
            Ok(AtomicData { values: [a.0, b.0], shadows: [a.1, b.1] })
        };
        let data = pieces.iter().map(each).collect::<Run<_>>()?;
        let reserved = self.reserved(wave, op);
        let result = reserved.map(|(file, first, ..)| (file, first));
        let (mode, swaps) = (self.waves[wave].mode, name.contains("_atomic_swap"));
        let action = Action::Atomic { f, swaps, compares: pair, mode, data, result };
        Ok(Transfer { serial: 0, wave, pc, pieces, action, reserved })
    }

    /// A 32-bit or 64-bit value of a lane, and its shadow.
    pub(super) fn element(&self, wave: usize, (file, first): (File, u8), lane: u8, bits: u32) -> Run<(u64, u64)> {
        let word = |r: usize| -> Run<(u64, u64)> {
            let file = self.waves[wave].file(file);
            let lane = usize::from(lane);
            Ok((file.read(r, 1 << lane)?[lane].into(), file.shadow(r, lane).into()))
        };
        let low = word(first.into())?;
        if bits != 64 {
            return Ok(low);
        }
        let high = word(usize::from(first) + 1)?;
        Ok((low.0 | high.0 << 32, low.1 | high.1 << 32))
    }

    /// The registers that an operation will write, in the active lanes.
    pub(super) fn reserved(&self, wave: usize, op: &Op) -> Option<(File, u8, u8, u64)> {
        match op.results.first().map(|r| r.to) {
            Some(To::Vector(file, first, n)) => Some((file, first, n, self.waves[wave].exec())),
            Some(To::Scalar(..)) | None => None,
        }
    }
}

/// The source of an operand with this class.
pub(super) fn argument(op: &Op, class: Class) -> Option<Source> {
    let reads = op.inst.args().filter(|(a, _)| a.access != Access::Write);
    reads.zip(&op.sources).find(|((a, _), _)| a.class == class).map(|(_, s)| *s)
}

pub(super) fn misaligned(address: u64, bytes: u8, lane: u8) -> Fail {
    let message = format!("{bytes} bytes at {address:#x}, which is no multiple of what they need");
    Fail::new(ErrorCode::Misaligned, message).lane(lane.into())
}

pub(super) const fn vector(operand: Operand) -> Option<(File, u8)> {
    match operand {
        Operand::V(first, _) => Some((File::V, first)),
        Operand::A(first, _) => Some((File::A, first)),
        _ => None,
    }
}

pub(super) fn destination(op: &Op) -> Run<(File, u8, u8)> {
    match op.results.first().map(|r| r.to) {
        Some(To::Vector(file, first, n)) => Ok((file, first, n)),
        Some(To::Scalar(..)) | None => Err(unknown("a result is missing")),
    }
}

/// The way in which a load fills its register.
pub(super) fn narrow(name: &str, ty: Ty) -> Narrow {
    if ty.bits() >= 32 {
        Narrow::No
    } else if name.contains("d16_hi") {
        Narrow::High
    } else if matches!(ty.elem, crate::isa::Elem::I(_)) {
        Narrow::Sign
    } else {
        Narrow::Zero
    }
}
