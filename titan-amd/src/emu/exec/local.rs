//! The issue of operations of the local data share, and of scalar memory.

use super::memory::{argument, destination, misaligned, narrow, unknown, vector};
use super::source::{lanes_of, shadows};
use super::transfer::{Action, At, AtomicData, Data, Piece, Transfer};
use super::{Run, World};
use crate::emu::atomic;
use crate::emu::group::Group;
use crate::emu::op::{File, Op, To};
use crate::emu::wave::undefined;
use crate::isa::operand::M0;
use crate::isa::{Access, Class, Field, Mods, Operand};

#[expect(clippy::cast_possible_truncation, reason = "a register")]
const fn low(x: u64) -> u32 {
    x as u32
}

impl Group<'_> {
    pub(super) fn lds(&mut self, wave: usize, op: &Op) -> Run<Transfer> {
        let name = op.inst.row().name;
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
                let action = Action::Values { file, first, lanes: 0, values, shadows: None };
                return Ok(Transfer { serial: 0, wave, pc, pieces: Vec::new(), action, reserved: None });
            }
            _ => return Err(unknown("the emulator has no rule for this instruction")),
        };
        let two = op.inst.row().mods.has(Mods::OFFSET2);
        let bits = if two && load { ty.bits() / 2 } else { ty.bits() };
        let pieces = self.lds_pieces(wave, op, (bits, two), load || store)?;
        self.record(wave, !load, &pieces);
        let shift = u32::from(name.contains("d16_hi")) * 16;
        let action = if load {
            let (file, first, _) = destination(op)?;
            Action::Load { file, first, narrow: narrow(name, ty) }
        } else if store {
            let mut data = Data::default();
            for piece in &pieces {
                let second = two && usize::from(piece.register) * 32 >= bits as usize;
                let (_, operand) = args[usize::from(second)];
                let piece = Piece { register: 0, ..*piece };
                let part = self.data(wave, operand, &[piece], shift)?;
                let (bytes, shadows) = part.part(0, piece.bytes.into());
                data.push(bytes, shadows);
            }
            Action::Store { data, origin: None }
        } else {
            let f = atomic::function(name, bits == 64).filter(|_| !two);
            let f = f.ok_or_else(|| unknown("the emulator has no rule for this atomic"))?;
            let get = |i: usize, p: &Piece| -> Run<(u64, u64)> {
                let Some((file, first)) = args.get(i).and_then(|(_, o)| vector(*o)) else { return Ok((0, 0)) };
                self.element(wave, (file, first), p.lane, bits)
            };
            let each = |p: &Piece| {
                let (a, b) = (get(0, p)?, get(1, p)?);
                Ok(AtomicData { values: [a.0, b.0], shadows: [a.1, b.1] })
            };
            let data = pieces.iter().map(each).collect::<Run<_>>()?;
            let result = reserved.map(|(file, first, ..)| (file, first));
            let (swaps, compares) = (name.contains("wrxchg"), name.contains("cmpst"));
            Action::Atomic { f, swaps, compares, mode: self.waves[wave].mode, data, result }
        };
        Ok(Transfer { serial: 0, wave, pc, pieces, action, reserved })
    }

    /// ISA §11.3.1: one address with an offset in bytes, or two with offsets in elements. Loads and stores (`plain`) need no alignment
    /// (LLVM, `unaligned-access-mode`), atomic operations do.
    fn lds_pieces(&self, wave: usize, op: &Op, (bits, two): (u32, bool), plain: bool) -> Run<Vec<Piece>> {
        let exec = self.waves[wave].exec();
        let name = op.inst.row().name;
        let (low, high) = (u64::from(op.inst.get(Field::Offset0)), u64::from(op.inst.get(Field::Offset1)));
        let values = match argument(op, Class::V) {
            Some(address) => self.defined_lanes(wave, address, exec, "an address of the local data share")?,
            None => {
                let m0 = self.waves[wave].defined_word(M0, "an address of the local data share")?;
                std::array::from_fn(|l| u64::from(m0 & 0xFFFF) + 4 * l as u64)
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
                if !plain && a % u64::from(bytes) != 0 {
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
        let (source, from): (usize, [Option<usize>; 64]) = if op.inst.row().mods.has(Mods::SWIZZLE) {
            let pattern = op.inst.get(Field::Offset0) | op.inst.get(Field::Offset1) << 8;
            (0, std::array::from_fn(|l| Some(swizzled(l, pattern))))
        } else {
            let address = self.lanes(wave, op.sources[0], exec)?;
            let offset = u64::from(op.inst.get(Field::Offset0) | op.inst.get(Field::Offset1) << 8);
            let lane = |l: usize| (((address.values[l] + offset) / 4) % 64) as usize;
            // The bits of an address that choose a lane.
            let bad = lanes_of(exec).find(|l| address.shadow(*l) & 0xFF != 0);
            if let Some(l) = bad {
                let fail = undefined("the choice of a lane", self.origin_of(wave, op.sources[0]));
                return Err(fail.lane(u32::try_from(l).unwrap_or(0)));
            }
            if op.inst.row().name == "ds_bpermute_b32" {
                (1, std::array::from_fn(|l| Some(if exec >> l & 1 == 1 { lane(l) } else { l })))
            } else {
                let mut from = [None; 64];
                lanes_of(exec).for_each(|l| from[lane(l)] = Some(l));
                (1, from)
            }
        };
        let data = self.lanes(wave, op.sources[source], exec)?;
        // Inactive lanes provide 0.
        let active = |l: usize| from[l].filter(|f| exec >> f & 1 == 1);
        let values = Box::new(std::array::from_fn(|l| active(l).map_or(0, |f| low(data.values[f]))));
        let shadow = |l: usize| active(l).map_or(0, |f| data.shadow(f));
        let origin = self.origin_of(wave, op.sources[source]);
        let shadows = shadows(&[&data], exec, shadow).map(|s| Box::new(s.map(low))).zip(origin);
        let action = Action::Values { file, first, lanes: exec, values, shadows };
        Ok(Transfer { serial: 0, wave, pc, pieces: Vec::new(), action, reserved: self.reserved(wave, op) })
    }

    pub(super) fn scalar_memory(&mut self, wave: usize, op: &Op, world: &World<'_>) -> Run<Transfer> {
        const ADDRESS: &str = "an address";
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
        let w = &self.waves[wave];
        let offset = match op.inst.operands().last() {
            Some(Operand::Imm(v)) => i64::from(*v),
            Some(Operand::S(code, _)) => i64::from(w.defined_word(*code, ADDRESS)?) + i64::from(op.inst.offset()),
            _ => return Err(unknown("an offset is missing")),
        };
        let low = w.defined(base, 2, ADDRESS)?;
        let mut inside = words;
        let start = if count == 4 {
            let word = |i: u8| w.defined_word(base + i, "the descriptor of a buffer");
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

/// ISA §12.12, `DS_SWIZZLE_B32`: the lane from which a lane reads.
fn swizzled(lane: usize, pattern: u32) -> usize {
    let part = |at: u32| (pattern >> at & 31) as usize;
    let (group, n, mask) = (lane & 32, lane & 31, part(0));
    let from = match pattern {
        // The order of a fast Fourier transform: the lane's number reversed, but for the bits of the mask.
        0xE000.. => n.reverse_bits() >> (usize::BITS - 5) >> mask.count_ones() | n & mask,
        // A rotation, to the left or to the right, of the bits outside of the mask.
        0xC000.. => {
            let by = if pattern & 0x400 == 0 { part(5) } else { part(5).wrapping_neg() };
            n & mask | n.wrapping_add(by) & !mask
        }
        // Four lanes, each from any of them.
        0x8000.. => n & !3 | (pattern >> (2 * (n & 3)) & 3) as usize,
        _ => (n & mask | part(5)) ^ part(10),
    };
    group | from & 31
}
