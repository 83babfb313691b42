//! Packing of elements to words of memory: adjacent elements are packed for wide stores, and unpacked after wide loads.

use super::tile::reg_ty;
use super::{Lower, Reg};
use crate::ir::{Elem, Pred};
use crate::lane::{IntBin, OpKind, Space, Ty};

/// The bytes of an element in memory; for 4-bit types, of two elements.
pub(super) const fn elem_bytes(elem: Elem) -> u32 {
    if elem.bits() < 8 { 1 } else { elem.bits() / 8 }
}

/// The address of an access, in parts that are computed and parts that are constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) space: Space,
    pub(super) address: Reg,
    pub(super) offset: i32,
}

/// The number and the size of the words of an access of `bytes` bytes.
pub(super) const fn words(bytes: u32) -> (u8, u8) {
    match bytes {
        1 => (1, 1),
        2 => (2, 1),
        4 => (4, 1),
        8 => (4, 2),
        _ => (4, 4),
    }
}

impl Lower<'_> {
    /// Stores adjacent elements. They have 1, 2, 4, 8 or 16 bytes in total, and the address is a multiple of that.
    pub(super) fn store_vector(&mut self, place: Place, elem: Elem, regs: &[Reg], mask: Option<Reg>) {
        let (bytes, n, mut args) = if elem.bits() == 64 {
            (8, u8::try_from(regs.len()).unwrap_or(1), regs.to_vec())
        } else {
            let total = elem.bits() * u32::try_from(regs.len()).unwrap_or(1) / 8;
            let (bytes, n) = words(total);
            (bytes, n, self.pack(elem, regs, bytes))
        };
        args.insert(0, place.address);
        args.extend(mask);
        let kind = OpKind::Store { space: place.space, bytes, n, offset: place.offset, masked: mask.is_some() };
        self.b.op(kind, &args);
    }

    /// Loads `n` adjacent elements; `pad` if there is a mask and it is false.
    pub(super) fn load_vector(&mut self, place: Place, elem: Elem, n: u32, mask: Option<(Reg, Reg)>) -> Vec<Reg> {
        let (bytes, count) =
            if elem.bits() == 64 { (8, u8::try_from(n).unwrap_or(1)) } else { words(elem.bits() * n / 8) };
        let mut args = vec![place.address];
        if let Some((mask, pad)) = mask {
            let pads = vec![pad; n as usize];
            let other = if elem.bits() == 64 { pads } else { self.pack(elem, &pads, bytes) };
            args.extend(other);
            args.push(mask);
        }
        let kind = OpKind::Load { space: place.space, bytes, n: count, offset: place.offset, masked: mask.is_some() };
        let loaded = self.b.op(kind, &args);
        if elem.bits() == 64 { loaded } else { self.unpack(elem, &loaded, bytes, n) }
    }

    /// Packs elements to words of `bytes` bytes.
    fn pack(&mut self, elem: Elem, regs: &[Reg], bytes: u8) -> Vec<Reg> {
        let raw: Vec<Reg> = regs.iter().map(|r| self.raw(elem, *r)).collect();
        let per_word = (usize::from(bytes) * 8 / elem.bits() as usize).max(1);
        raw.chunks(per_word).map(|part| self.word(elem, part, bytes)).collect()
    }

    /// The bits of an element in memory, in a register: bytes in `b32`, 16-bit elements in `b16`.
    fn raw(&mut self, elem: Elem, reg: Reg) -> Reg {
        match (elem, self.b.ty(reg)) {
            (Elem::Bool, _) => self.b.one(OpKind::FromPred, &[reg]),
            (Elem::I16 | Elem::U16, Ty::B32) => self.b.one(OpKind::Truncate(Ty::B16), &[reg]),
            _ => reg,
        }
    }

    fn word(&mut self, elem: Elem, part: &[Reg], bytes: u8) -> Reg {
        match (elem.bits(), part) {
            (32, [one]) => *one,
            (16, [one]) => *one,
            (16, [_, _]) | (8, [_, _, _, _]) => self.b.one(OpKind::Pack, part),
            (8, [one]) => *one,
            (bits @ (4 | 8), parts) => {
                let mut word = self.b.i32(0);
                for (i, reg) in parts.iter().enumerate() {
                    let mask = self.b.i32((1 << bits) - 1);
                    let low = self.b.and(*reg, mask);
                    let by = self.b.i32(i32::try_from(i).unwrap_or(0) * bits.cast_signed());
                    let shifted = self.b.int(IntBin::Shl, low, by);
                    word = self.b.or(word, shifted);
                }
                if bytes == 2 { self.b.one(OpKind::Truncate(Ty::B16), &[word]) } else { word }
            }
            _ => self.missing(),
        }
    }

    /// Unpacks words to elements.
    pub(super) fn unpack(&mut self, elem: Elem, words: &[Reg], bytes: u8, n: u32) -> Vec<Reg> {
        let mut out = Vec::with_capacity(n as usize);
        for word in words {
            let parts = self.parts(elem, *word, bytes);
            out.extend(parts);
        }
        out.truncate(n as usize);
        out
    }

    /// Unpacks the elements of one word.
    fn parts(&mut self, elem: Elem, word: Reg, bytes: u8) -> Vec<Reg> {
        let signed = elem.is_signed_int();
        let raw = match (elem.bits(), bytes) {
            (32, _) => vec![word],
            (16, 2) => vec![word],
            (16, _) => self.b.op(OpKind::Unpack, &[word]),
            (8, 4) => self.b.op(OpKind::UnpackBytes { signed }, &[word]),
            (8, 1) => vec![self.b.one(OpKind::Extend { from: 8, signed, to: Ty::B32 }, &[word])],
            (bits, _) => self.fields(word, bits, u32::from(bytes) * 8 / bits, signed),
        };
        raw.into_iter().map(|r| self.cooked(elem, r)).collect()
    }

    /// The bit fields of a word, each extended to a register.
    pub(super) fn fields(&mut self, word: Reg, bits: u32, n: u32, signed: bool) -> Vec<Reg> {
        let word = match self.b.ty(word) {
            Ty::B16 => self.b.one(OpKind::Extend { from: 16, signed: false, to: Ty::B32 }, &[word]),
            Ty::Pred | Ty::B32 | Ty::B64 => word,
        };
        (0..n)
            .map(|i| {
                let left = self.b.i32((32 - bits * (i + 1)).cast_signed());
                let high = self.b.int(IntBin::Shl, word, left);
                let right = self.b.i32((32 - bits).cast_signed());
                self.b.int(if signed { IntBin::ShrS } else { IntBin::ShrU }, high, right)
            })
            .collect()
    }

    /// Converts the bits of an element in memory to the representation of the lane IR.
    fn cooked(&mut self, elem: Elem, raw: Reg) -> Reg {
        match (elem, self.b.ty(raw)) {
            (Elem::Bool, _) => {
                let zero = self.b.const_like(raw, 0);
                self.b.cmp_u(Pred::Ne, raw, zero)
            }
            (Elem::I16, Ty::B16) => self.b.one(OpKind::Extend { from: 16, signed: true, to: Ty::B32 }, &[raw]),
            (Elem::U16, Ty::B16) => self.b.one(OpKind::Extend { from: 16, signed: false, to: Ty::B32 }, &[raw]),
            _ => raw,
        }
    }

    /// The constant zero of an element type.
    pub(super) fn zero(&mut self, elem: Elem) -> Reg {
        self.b.one(OpKind::Const(reg_ty(elem), 0), &[])
    }
}
