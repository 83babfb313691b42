//! The addresses of vector memory operations, which must be defined.

use super::Run;
use super::memory::{argument, misaligned, unknown};
use super::source::lanes_of;
use super::transfer::{At, Piece};
use crate::emu::absent::{Absent, refuse};
use crate::emu::group::Group;
use crate::emu::memory::{PRIVATE_APERTURE, SHARED_APERTURE};
use crate::emu::op::Op;
use crate::isa::{Class, Field, Format, Operand, Ty};

/// The address of each active lane.
pub(super) type Addresses = Vec<(u8, At)>;

/// The descriptor of a buffer.
pub(super) struct Buffer {
    base: u64,
    stride: u64,
    records: u64,
}

const ADDRESS: &str = "an address";
const DESCRIPTOR: &str = "the descriptor of this instruction";

impl Group<'_> {
    pub(super) fn addresses(&self, wave: usize, op: &Op) -> Run<Addresses> {
        match op.inst.format() {
            Format::Mubuf => self.buffer_addresses(wave, op),
            Format::Scratch => self.scratch_addresses(wave, op),
            _ => self.global_addresses(wave, op),
        }
    }

    fn global_addresses(&self, wave: usize, op: &Op) -> Run<Addresses> {
        let exec = self.waves[wave].exec();
        let flat = op.inst.format() == Format::Flat;
        let class = if flat { Class::V } else { Class::GlobalAddr };
        let address = argument(op, class).ok_or_else(|| unknown("an address is missing"))?;
        let values = self.defined_lanes(wave, address, exec, ADDRESS)?;
        let base = match argument(op, Class::GlobalBase) {
            Some(base) => self.scalar_source(wave, base, ADDRESS)?,
            None => 0,
        };
        let offset = i64::from(op.inst.offset());
        let at = |l: usize| {
            let a = values[l].wrapping_add(base).wrapping_add_signed(offset);
            match a & 0xFFFF_FFFF_0000_0000 {
                SHARED_APERTURE if flat => At::Lds(a & 0xFFFF_FFFF),
                PRIVATE_APERTURE if flat => At::Private(a & 0xFFFF_FFFF),
                _ => At::Global(a),
            }
        };
        #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
        Ok(lanes_of(exec).map(|l| (l as u8, at(l))).collect())
    }

    fn scratch_addresses(&self, wave: usize, op: &Op) -> Run<Addresses> {
        let exec = self.waves[wave].exec();
        let get = |class| argument(op, class).map_or(Ok([0; 64]), |s| self.defined_lanes(wave, s, exec, ADDRESS));
        let (v, s) = (get(Class::ScratchAddr)?, get(Class::ScratchBase)?);
        let offset = i64::from(op.inst.offset());
        #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
        let each = |l: usize| (l as u8, At::Private((v[l] + s[l]).wrapping_add_signed(offset)));
        Ok(lanes_of(exec).map(each).collect())
    }

    /// ISA §9.1.5 "Buffer Addressing"; the range is checked for each word, in [`Group::pieces`].
    fn buffer_addresses(&self, wave: usize, op: &Op) -> Run<Addresses> {
        let exec = self.waves[wave].exec();
        let buffer = self.descriptor(wave, op)?;
        let soffset = self.soffset(wave, op)?;
        let (offen, idxen) = (op.inst.get(Field::Offen) == 1, op.inst.get(Field::Idxen) == 1);
        let vaddr = argument(op, Class::BufferAddr).filter(|_| offen || idxen);
        let values = vaddr.map_or(Ok([0; 64]), |s| self.defined_lanes(wave, s, exec, ADDRESS))?;
        let immediate = u64::from(op.inst.get(Field::Offset));
        let mut all = Vec::new();
        for l in lanes_of(exec) {
            let (low, high) = (values[l] & 0xFFFF_FFFF, values[l] >> 32);
            let index = if idxen { low } else { 0 };
            let offset = immediate
                + match (offen, idxen) {
                    (true, true) => high,
                    (true, false) => low,
                    (false, _) => 0,
                };
            let outside = if idxen { index >= buffer.records } else { offset >= buffer.records };
            let at = buffer.base.wrapping_add(soffset).wrapping_add(index * buffer.stride).wrapping_add(offset);
            #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
            all.push((l as u8, if outside { At::Outside } else { At::Global(at) }));
        }
        Ok(all)
    }

    /// The offset of a buffer in a scalar register, which is not checked against its range.
    fn soffset(&self, wave: usize, op: &Op) -> Run<u64> {
        let offset = argument(op, Class::Soffset).map_or(Ok(0), |s| self.scalar_source(wave, s, ADDRESS))?;
        Ok(offset & 0xFFFF_FFFF)
    }

    fn descriptor(&self, wave: usize, op: &Op) -> Run<Buffer> {
        let first = op.inst.args().find_map(|(a, o)| match (a.class, o) {
            (Class::Srsrc, Operand::S(code, _)) => Some(code),
            _ => None,
        });
        let first = first.ok_or_else(|| unknown("a descriptor is missing"))?;
        let word = |i: u8| self.waves[wave].defined_word(first + i, "the descriptor of a buffer");
        let (low, high, records, flags) = (word(0)?, word(1)?, word(2)?, word(3)?);
        let stride = u64::from(high >> 16 & 0x3FFF);
        if high >> 31 != 0 {
            return Err(refuse(Absent::SwizzledBuffers, DESCRIPTOR));
        }
        if flags >> 23 & 1 != 0 {
            return Err(refuse(Absent::LaneNumberBuffers, DESCRIPTOR));
        }
        if flags >> 30 != 0 {
            return Err(refuse(Absent::OtherDescriptors, DESCRIPTOR));
        }
        if op.inst.get(Field::Idxen) == 1 && stride == 0 {
            return Err(refuse(Absent::UnstridedIndices, DESCRIPTOR));
        }
        let base = u64::from(low) | u64::from(high & 0xFFFF) << 32;
        Ok(Buffer { base, stride, records: records.into() })
    }

    /// The bytes of each lane, at any address: unaligned accesses are on for programs of HSA (LLVM, `unaligned-access-mode`), but an atomic
    /// operation (`atomic`) needs an address that is a multiple of its size. Words of a buffer are checked separately, since each may be
    /// out of range.
    pub(super) fn pieces(
        &self,
        wave: usize,
        op: &Op,
        addresses: &Addresses,
        (ty, atomic): (Ty, bool),
    ) -> Run<Vec<Piece>> {
        #[expect(clippy::cast_possible_truncation, reason = "at most 16 bytes")]
        let bytes = (ty.bits() / 8) as u8;
        let buffer = if op.inst.format() == Format::Mubuf { Some(self.descriptor(wave, op)?) } else { None };
        let soffset = if buffer.is_some() { self.soffset(wave, op)? } else { 0 };
        let mut all = Vec::with_capacity(addresses.len());
        for (lane, at) in addresses {
            let (At::Global(a) | At::Lds(a) | At::Private(a)) = *at else {
                all.push(Piece { lane: *lane, register: 0, bytes, at: *at });
                continue;
            };
            if atomic && a % u64::from(bytes) != 0 {
                return Err(misaligned(a, bytes, *lane));
            }
            // The range can end within the words of a lane only for raw buffers: ISA §9.1.5.1, rule 4.
            let raw = buffer.as_ref().filter(|_| op.inst.get(Field::Idxen) == 0);
            let left = raw.map(|b| b.records.saturating_sub(a.wrapping_sub(b.base).wrapping_sub(soffset)));
            match left {
                Some(left) if left < u64::from(bytes) && bytes > 4 => {
                    for r in 0..bytes / 4 {
                        let at = if u64::from(4 * r) < left { At::Global(a + u64::from(4 * r)) } else { At::Outside };
                        all.push(Piece { lane: *lane, register: r, bytes: 4, at });
                    }
                }
                _ => all.push(Piece { lane: *lane, register: 0, bytes, at: *at }),
            }
        }
        Ok(all)
    }
}
