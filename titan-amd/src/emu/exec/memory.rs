//! The issue of memory operations: addresses and data are captured, destinations reserved.

use super::transfer::{Action, At, Narrow, Piece, Transfer};
use super::vector::lanes_of;
use super::{Run, World};
use crate::emu::atomic;
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::group::{Group, Queue};
use crate::emu::memory::{PRIVATE_APERTURE, SHARED_APERTURE};
use crate::emu::op::{File, Kind, Op, To};
use crate::isa::operand::M0;
use crate::isa::{Access, Class, Field, Format, Mods, Operand, Ty, Unit};

/// The address of each active lane.
type Addresses = Vec<(u8, At)>;

fn unknown(what: &str) -> Fail {
    Fail::new(ErrorCode::Unknown, what)
}

impl Group<'_> {
    pub(super) fn memory(&mut self, wave: usize, op: &Op, world: &mut World<'_>) -> Run<()> {
        let (queue, transfer) = match op.kind {
            Kind::ScalarMemory => (Queue::Smem, self.scalar_memory(wave, op, world)?),
            Kind::Lds => (Queue::Lds, self.lds(wave, op)?),
            _ => {
                let flat = op.inst.format() == Format::Flat;
                let addresses = self.addresses(wave, op)?;
                let transfer = self.vector_memory(wave, op, &addresses)?;
                (
                    if flat {
                        Queue::Flat
                    } else if op.unit == Unit::LoadLds {
                        Queue::ToLds
                    } else {
                        Queue::Vm
                    },
                    transfer,
                )
            }
        };
        self.issue(wave, queue, transfer, world)
    }

    // Addresses.

    fn addresses(&self, wave: usize, op: &Op) -> Run<Addresses> {
        match op.inst.format() {
            Format::Mubuf => self.buffer_addresses(wave, op),
            Format::Scratch => self.scratch_addresses(wave, op),
            _ => self.global_addresses(wave, op),
        }
    }

    /// The source of an operand with this class.
    fn argument(&self, op: &Op, class: Class) -> Option<crate::emu::op::Source> {
        let reads = op.inst.args().filter(|(a, _)| a.access != Access::Write);
        reads.zip(&op.sources).find(|((a, _), _)| a.class == class).map(|(_, s)| *s)
    }

    fn global_addresses(&self, wave: usize, op: &Op) -> Run<Addresses> {
        let exec = self.waves[wave].exec();
        let flat = op.inst.format() == Format::Flat;
        let class = if flat { Class::V } else { Class::GlobalAddr };
        let address = self.argument(op, class).ok_or_else(|| unknown("an address is missing"))?;
        let values = self.lanes(wave, address, exec)?;
        let base = match self.argument(op, Class::GlobalBase) {
            Some(base) => self.scalar_source(wave, base)?,
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
        let get = |class| self.argument(op, class).map_or(Ok([0; 64]), |s| self.lanes(wave, s, exec));
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
        let soffset = self.argument(op, Class::Soffset).map_or(Ok(0), |s| self.scalar_source(wave, s))? & 0xFFFF_FFFF;
        let (offen, idxen) = (op.inst.get(Field::Offen) == 1, op.inst.get(Field::Idxen) == 1);
        let vaddr = self.argument(op, Class::BufferAddr).filter(|_| offen || idxen);
        let values = vaddr.map_or(Ok([0; 64]), |s| self.lanes(wave, s, exec))?;
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

    fn descriptor(&self, wave: usize, op: &Op) -> Run<Buffer> {
        let first = op.inst.args().find_map(|(a, o)| match (a.class, o) {
            (Class::Srsrc, Operand::S(code, _)) => Some(code),
            _ => None,
        });
        let first = first.ok_or_else(|| unknown("a descriptor is missing"))?;
        let word = |i: u8| self.waves[wave].scalar_word(first + i);
        let (low, high, records, flags) = (word(0)?, word(1)?, word(2)?, word(3)?);
        let stride = u64::from(high >> 16 & 0x3FFF);
        if high >> 31 != 0 || flags >> 23 & 1 != 0 {
            return Err(unknown("the emulator has no buffers that are swizzled or add the lane's number"));
        }
        if flags >> 30 != 0 {
            return Err(unknown("the descriptor is not one of a buffer"));
        }
        if op.inst.get(Field::Idxen) == 1 && stride == 0 {
            return Err(unknown("an index into a buffer without a stride"));
        }
        let base = u64::from(low) | u64::from(high & 0xFFFF) << 32;
        Ok(Buffer { base, stride, records: records.into() })
    }

    // Vector memory.

    fn vector_memory(&mut self, wave: usize, op: &Op, addresses: &Addresses) -> Run<Transfer> {
        let name = op.inst.row().name;
        let data = op.inst.args().enumerate().find(|(_, (a, _))| a.class == Class::Va);
        let pc = self.waves[wave].pc;
        let make = |pieces, action, reserved| Transfer { serial: 0, wave, pc, pieces, action, reserved };
        match op.unit {
            Unit::Load => {
                let (_, (arg, _)) = data.ok_or_else(|| unknown("a result is missing"))?;
                let (file, first, _) = destination(op)?;
                let pieces = self.pieces(wave, op, addresses, arg.ty)?;
                let reserved = self.reserved(wave, op);
                Ok(make(pieces, Action::Load { file, first, narrow: narrow(name, arg.ty) }, reserved))
            }
            Unit::Store => {
                let (_, (arg, operand)) = data.ok_or_else(|| unknown("data are missing"))?;
                let pieces = self.pieces(wave, op, addresses, arg.ty)?;
                let data = self.data(wave, operand, &pieces, u32::from(name.contains("d16_hi")) * 16)?;
                Ok(make(pieces, Action::Store { data }, None))
            }
            Unit::Atomic => self.atomic(wave, op, addresses, pc),
            Unit::LoadLds if name.ends_with("dword") => {
                let pieces = self.pieces(wave, op, addresses, crate::isa::ty::B32)?;
                let m0 = self.waves[wave].scalar_word(M0)?;
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

    /// The bytes of each lane. Words of a buffer are checked separately, since each may be out of range.
    fn pieces(&self, wave: usize, op: &Op, addresses: &Addresses, ty: Ty) -> Run<Vec<Piece>> {
        #[expect(clippy::cast_possible_truncation, reason = "at most 16 bytes")]
        let bytes = (ty.bits() / 8) as u8;
        let align = u64::from(bytes.min(4));
        let buffer = if op.inst.format() == Format::Mubuf { Some(self.descriptor(wave, op)?) } else { None };
        let mut all = Vec::with_capacity(addresses.len());
        for (lane, at) in addresses {
            let (At::Global(a) | At::Lds(a) | At::Private(a)) = *at else {
                all.push(Piece { lane: *lane, register: 0, bytes, at: *at });
                continue;
            };
            if a % align != 0 {
                return Err(misaligned(a, bytes, *lane));
            }
            // The range can end within the words of a lane only for raw buffers: ISA §9.1.5.1, rule 4.
            let inside = buffer.as_ref().filter(|_| op.inst.get(Field::Idxen) == 0).map(|b| {
                let soffset = self.argument(op, Class::Soffset).map_or(Ok(0), |s| self.scalar_source(wave, s));
                soffset.map(|s| b.records.saturating_sub(a.wrapping_sub(b.base).wrapping_sub(s & 0xFFFF_FFFF)))
            });
            match inside.transpose()? {
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

    /// Reads the bytes of the pieces from registers.
    fn data(&self, wave: usize, operand: Operand, pieces: &[Piece], shift: u32) -> Run<Vec<u8>> {
        let (file, first) = vector(operand).ok_or_else(|| unknown("data are not in vector registers"))?;
        let mut all = Vec::new();
        for piece in pieces {
            let lane = usize::from(piece.lane);
            let mut left = usize::from(piece.bytes);
            let mut r = usize::from(first) + usize::from(piece.register);
            while left > 0 {
                let word = self.waves[wave].file(file).read(r, 1 << lane)?[lane] >> shift;
                let n = left.min(4);
                all.extend(&word.to_le_bytes()[..n]);
                left -= n;
                r += 1;
            }
        }
        Ok(all)
    }

    fn atomic(&mut self, wave: usize, op: &Op, addresses: &Addresses, pc: u64) -> Run<Transfer> {
        let name = op.inst.row().name;
        let arg = op.inst.args().find(|(a, _)| a.class == Class::Va && a.access != Access::Write);
        let (arg, operand) = arg.ok_or_else(|| unknown("data are missing"))?;
        let pair = name.contains("cmpswap");
        let bits = arg.ty.bits() / if pair { 2 } else { 1 };
        let f =
            atomic::function(name, bits == 64).ok_or_else(|| unknown("the emulator has no rule for this atomic"))?;
        let ty = if bits == 64 { crate::isa::ty::B64 } else { crate::isa::ty::B32 };
        let pieces = self.pieces(wave, op, addresses, ty)?;
        for piece in &pieces {
            if let At::Global(a) | At::Lds(a) = piece.at
                && a % u64::from(piece.bytes) != 0
            {
                return Err(misaligned(a, piece.bytes, piece.lane));
            }
        }
        let (file, first) = vector(operand).ok_or_else(|| unknown("data are not in vector registers"))?;
        let read = |piece: &Piece, skip: u8| self.element(wave, (file, first + skip), piece.lane, bits);
        #[expect(clippy::cast_possible_truncation, reason = "one or two registers")]
        let step = (bits / 32) as u8;
        let data =
            pieces.iter().map(|p| Ok([read(p, 0)?, if pair { read(p, step)? } else { 0 }])).collect::<Run<_>>()?;
        let reserved = self.reserved(wave, op);
        let result = reserved.map(|(file, first, ..)| (file, first));
        let mode = self.waves[wave].mode;
        Ok(Transfer { serial: 0, wave, pc, pieces, action: Action::Atomic { f, mode, data, result }, reserved })
    }

    /// A 32-bit or 64-bit value of a lane.
    fn element(&self, wave: usize, (file, first): (File, u8), lane: u8, bits: u32) -> Run<u64> {
        let word = |r: usize| -> Run<u64> {
            let file = self.waves[wave].file(file);
            Ok(file.read(r, 1 << lane)?[usize::from(lane)].into())
        };
        let low = word(first.into())?;
        if bits == 64 { Ok(low | word(usize::from(first) + 1)? << 32) } else { Ok(low) }
    }

    /// The registers that an operation will write, in the active lanes.
    fn reserved(&self, wave: usize, op: &Op) -> Option<(File, u8, u8, u64)> {
        match op.results.first().map(|r| r.to) {
            Some(To::Vector(file, first, n)) => Some((file, first, n, self.waves[wave].exec())),
            Some(To::Scalar(..)) | None => None,
        }
    }

    // The local data share.

    fn lds(&mut self, wave: usize, op: &Op) -> Run<Transfer> {
        let name = op.inst.row().name;
        if op.inst.get(Field::Gds) != 0 {
            return Err(unknown("the emulator has no global data share"));
        }
        let pc = self.waves[wave].pc;
        if matches!(name, "ds_permute_b32" | "ds_bpermute_b32" | "ds_swizzle_b32") {
            return self.exchange(wave, op, pc);
        }
        let args: Vec<_> = op.inst.args().filter(|(a, _)| a.class == Class::Va && a.access == Access::Read).collect();
        let reserved = self.reserved(wave, op);
        let load = name.starts_with("ds_read");
        let store = name.starts_with("ds_write");
        let ty = match (op.inst.args().next(), args.first()) {
            (Some((a, _)), _) if load => a.ty,
            (_, Some((a, _))) => a.ty,
            _ if name == "ds_nop" => {
                let (file, first, values) = (File::V, 0, Box::new([0; 64]));
                let action = Action::Values { file, first, lanes: 0, values };
                return Ok(Transfer { serial: 0, wave, pc, pieces: Vec::new(), action, reserved: None });
            }
            _ => return Err(unknown("the emulator has no rule for this instruction")),
        };
        let two = op.inst.row().mods.has(Mods::OFFSET2);
        let bits = if two && load { ty.bits() / 2 } else { ty.bits() };
        let pieces = self.lds_pieces(wave, op, bits, two)?;
        self.count_conflicts(&pieces);
        let shift = u32::from(name.contains("d16_hi")) * 16;
        let action = if load {
            let (file, first, _) = destination(op)?;
            Action::Load { file, first, narrow: narrow(name, ty) }
        } else if store {
            let mut data = Vec::new();
            for piece in &pieces {
                let second = two && usize::from(piece.register) * 32 >= bits as usize;
                let (_, operand) = args[usize::from(second)];
                let piece = Piece { register: 0, ..*piece };
                data.extend(self.data(wave, operand, &[piece], shift)?);
            }
            Action::Store { data }
        } else {
            let f = atomic::function(name, bits == 64).filter(|_| !two);
            let f = f.ok_or_else(|| unknown("the emulator has no rule for this atomic"))?;
            let get = |i: usize, p: &Piece| -> Run<u64> {
                let Some((file, first)) = args.get(i).and_then(|(_, o)| vector(*o)) else { return Ok(0) };
                self.element(wave, (file, first), p.lane, bits)
            };
            let data = pieces.iter().map(|p| Ok([get(0, p)?, get(1, p)?])).collect::<Run<_>>()?;
            let result = reserved.map(|(file, first, ..)| (file, first));
            Action::Atomic { f, mode: self.waves[wave].mode, data, result }
        };
        Ok(Transfer { serial: 0, wave, pc, pieces, action, reserved })
    }

    /// ISA §11.3.1: one address with an offset in bytes, or two with offsets in elements.
    fn lds_pieces(&self, wave: usize, op: &Op, bits: u32, two: bool) -> Run<Vec<Piece>> {
        let exec = self.waves[wave].exec();
        let name = op.inst.row().name;
        let (low, high) = (u64::from(op.inst.get(Field::Offset0)), u64::from(op.inst.get(Field::Offset1)));
        let values = match self.argument(op, Class::V) {
            Some(address) => self.lanes(wave, address, exec)?,
            None => {
                let m0 = u64::from(self.waves[wave].scalar_word(M0)? & 0xFFFF);
                std::array::from_fn(|l| m0 + 4 * l as u64)
            }
        };
        #[expect(clippy::cast_possible_truncation, reason = "at most 16 bytes")]
        let bytes = (bits / 8) as u8;
        let unit = u64::from(bytes) * if name.contains("st64") { 64 } else { 1 };
        let offsets = if two { vec![low * unit, high * unit] } else { vec![low | high << 8] };
        let mut all = Vec::new();
        for l in lanes_of(exec) {
            #[expect(clippy::cast_possible_truncation, reason = "less than 64")]
            let lane = l as u8;
            for (i, offset) in offsets.iter().enumerate() {
                // Addresses have 32 bits: compilers rely on sums that wrap around.
                let a = values[l].wrapping_add(*offset) & 0xFFFF_FFFF;
                if a % u64::from(bytes.min(4)) != 0 {
                    return Err(misaligned(a, bytes, lane));
                }
                #[expect(clippy::cast_possible_truncation, reason = "one or two registers")]
                let register = i as u8 * (bytes / 4).max(1);
                all.push(Piece { lane, register, bytes, at: At::Lds(a) });
            }
        }
        Ok(all)
    }

    /// Exchanges of values between lanes through the hardware of the local data share, without access to its memory.
    fn exchange(&self, wave: usize, op: &Op, pc: u64) -> Run<Transfer> {
        let exec = self.waves[wave].exec();
        let (file, first, _) = destination(op)?;
        let values = if op.inst.row().mods.has(Mods::SWIZZLE) {
            let data = self.lanes(wave, op.sources[0], exec)?;
            let pattern = op.inst.get(Field::Offset0) | op.inst.get(Field::Offset1) << 8;
            let from = |l: usize| swizzled(l, pattern);
            std::array::from_fn(|l| if exec >> from(l) & 1 == 1 { low(data[from(l)]) } else { 0 })
        } else {
            let (address, data) = (self.lanes(wave, op.sources[0], exec)?, self.lanes(wave, op.sources[1], exec)?);
            let offset = u64::from(op.inst.get(Field::Offset0) | op.inst.get(Field::Offset1) << 8);
            let lane = |l: usize| (((address[l] + offset) / 4) % 64) as usize;
            if op.inst.row().name == "ds_bpermute_b32" {
                // Inactive lanes provide 0.
                std::array::from_fn(|l| {
                    let from = if exec >> l & 1 == 1 { lane(l) } else { l };
                    if exec >> from & 1 == 1 { low(data[from]) } else { 0 }
                })
            } else {
                let mut values = [0; 64];
                lanes_of(exec).for_each(|l| values[lane(l)] = low(data[l]));
                values
            }
        };
        let action = Action::Values { file, first, lanes: exec, values: Box::new(values) };
        Ok(Transfer { serial: 0, wave, pc, pieces: Vec::new(), action, reserved: self.reserved(wave, op) })
    }

    // Scalar memory.

    fn scalar_memory(&mut self, wave: usize, op: &Op, world: &World<'_>) -> Run<Transfer> {
        let Some(To::Scalar(first, words)) = op.results.first().map(|r| r.to) else {
            return Err(unknown("a result is missing"));
        };
        let pc = self.waves[wave].pc;
        let make = |action| Transfer { serial: 0, wave, pc, pieces: Vec::new(), action, reserved: None };
        if op.inst.row().name.starts_with("s_mem") {
            return Ok(make(Action::Clock { first, value: *world.steps }));
        }
        let (base, count) = op
            .inst
            .args()
            .find_map(|(a, o)| match (a.class, o) {
                (Class::Sbase, Operand::S(code, n)) => Some((code, n)),
                _ => None,
            })
            .ok_or_else(|| unknown("an address is missing"))?;
        let offset = match op.inst.operands().last() {
            Some(Operand::Imm(v)) => i64::from(*v),
            Some(Operand::S(code, _)) => i64::from(self.waves[wave].scalar_word(*code)?) + i64::from(op.inst.offset()),
            _ => return Err(unknown("an offset is missing")),
        };
        let low = self.waves[wave].scalar(base, 2)?;
        let mut inside = words;
        let start = if count == 4 {
            let word = |i: u8| self.waves[wave].scalar_word(base + i);
            let (stride, records) = (word(1)? >> 16 & 0x3FFF, u64::from(word(2)?));
            let size = if stride == 0 { records } else { records * u64::from(stride) };
            let left = size.saturating_sub(offset.unsigned_abs()) / 4;
            inside = words.min(u8::try_from(left).unwrap_or(u8::MAX));
            low & 0xFFFF_FFFF_FFFF
        } else {
            low
        };
        let address = start.wrapping_add_signed(offset) & !3;
        Ok(make(Action::Scalar { first, words, address, inside }))
    }
}

/// The descriptor of a buffer.
struct Buffer {
    base: u64,
    stride: u64,
    records: u64,
}

#[expect(clippy::cast_possible_truncation, reason = "a register")]
const fn low(x: u64) -> u32 {
    x as u32
}

fn misaligned(address: u64, bytes: u8, lane: u8) -> Fail {
    let message = format!("{bytes} bytes at {address:#x}, which is no multiple of what they need");
    Fail::new(ErrorCode::Misaligned, message).lane(lane.into())
}

const fn vector(operand: Operand) -> Option<(File, u8)> {
    match operand {
        Operand::V(first, _) => Some((File::V, first)),
        Operand::A(first, _) => Some((File::A, first)),
        _ => None,
    }
}

fn destination(op: &Op) -> Run<(File, u8, u8)> {
    match op.results.first().map(|r| r.to) {
        Some(To::Vector(file, first, n)) => Ok((file, first, n)),
        Some(To::Scalar(..)) | None => Err(unknown("a result is missing")),
    }
}

/// The way in which a load fills its register.
fn narrow(name: &str, ty: Ty) -> Narrow {
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

/// ISA §12.12, `DS_SWIZZLE_B32`: the lane from which a lane reads.
const fn swizzled(lane: usize, pattern: u32) -> usize {
    if pattern & 0x8000 != 0 {
        let to = pattern >> (2 * (lane & 3)) & 3;
        return lane & !3 | to as usize;
    }
    let (and, or, xor) = (pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31);
    lane & 32 | ((lane & and as usize | or as usize) ^ xor as usize) & 31
}
