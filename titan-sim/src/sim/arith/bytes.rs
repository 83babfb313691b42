//! Elements as bytes. Values of 4 bits take a whole byte each here; code that stores them packs two into a byte.

use crate::sim::value::Cells;
use titan_core::ir::Elem;
use titan_core::ir::fold::wrap;
use titan_core::num::{Format, tf32_from_f64};

/// The size of an element in bytes; 1 for elements of 4 bits.
pub(in crate::sim) const fn size(elem: Elem) -> usize {
    match elem.bits() / 8 {
        0 => 1,
        n => n as usize,
    }
}

const fn format(elem: Elem) -> Option<Format> {
    match elem {
        Elem::F16 => Some(Format::F16),
        Elem::Bf16 => Some(Format::BF16),
        Elem::E4m3 => Some(Format::E4M3),
        Elem::E5m2 => Some(Format::E5M2),
        Elem::F64
        | Elem::F32
        | Elem::Tf32
        | Elem::I64
        | Elem::I32
        | Elem::I16
        | Elem::I8
        | Elem::I4
        | Elem::U64
        | Elem::U32
        | Elem::U16
        | Elem::U8
        | Elem::U4
        | Elem::Bool => None,
    }
}

/// Decodes the elements that these bytes contain.
#[expect(clippy::cast_possible_truncation, reason = "a code has as many bits as the format")]
pub(in crate::sim) fn decode(elem: Elem, bytes: &[u8]) -> Cells {
    let n = size(elem);
    let words = bytes.chunks_exact(n).map(|chunk| {
        let mut word = [0; 8];
        word[..n].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    match (format(elem), elem) {
        (Some(format), _) => Cells::Float(words.map(|w| format.to_f64(w as u32)).collect()),
        (None, Elem::F64) => Cells::Float(words.map(f64::from_bits).collect()),
        (None, Elem::F32 | Elem::Tf32) => Cells::Float(words.map(|w| f64::from(f32::from_bits(w as u32))).collect()),
        (None, _) => Cells::Int(words.map(|w| wrap(elem, w.cast_signed())).collect()),
    }
}

/// Encodes elements as bytes.
#[expect(clippy::cast_possible_truncation, reason = "an element of 32 bits was rounded to them")]
pub(in crate::sim) fn encode(elem: Elem, cells: &Cells) -> Vec<u8> {
    let n = size(elem);
    let mut out = Vec::with_capacity(cells.len() * n);
    let mut put = |word: u64| out.extend_from_slice(&word.to_le_bytes()[..n]);
    match (cells, format(elem)) {
        (Cells::Float(v), Some(format)) => v.iter().for_each(|x| put(format.from_f64(*x).into())),
        (Cells::Float(v), None) if elem == Elem::F64 => v.iter().for_each(|x| put(x.to_bits())),
        (Cells::Float(v), None) if elem == Elem::Tf32 => v.iter().for_each(|x| put(tf32_from_f64(*x).to_bits().into())),
        (Cells::Float(v), None) => v.iter().for_each(|x| put((*x as f32).to_bits().into())),
        (Cells::Int(v), _) if elem.bits() == 4 => v.iter().for_each(|x| put(x.cast_unsigned() & 0xF)),
        (Cells::Int(v), _) => v.iter().for_each(|x| put(x.cast_unsigned())),
    }
    out
}
