//! The report: how a kernel on a GPU reports traps and printed values to the host.
//!
//! A buffer of 32-bit words, whose address is the last word of the parameter block:
//!
//! | word | content |
//! |---|---|
//! | 0 | 0, or 1 + the number of the site that trapped first |
//! | 1, 2, 3 | the index of the program that trapped first |
//! | 4 | the number of words of records that prints have requested |
//! | 5 | the number of words for which there is room, set by the host |
//! | 8 … | records: 1 + site, program (3 words), then each argument's elements, row-major |
//!
//! An element takes one word, a 64-bit element two, the low half first. Narrow integers are extended; `f16`, `bf16` and fp8 are stored as
//! their bits. A record that does not fit is not written, but counted in word 4. A program that traps ends; others continue.

use crate::ir::{Elem, Loc, Ty};
use crate::num;
use std::fmt::Write as _;

/// The word with the site that trapped first.
pub const TRAP: usize = 0;
/// The first of the words with the index of the program.
pub const PROGRAM: usize = 1;
/// The word that counts words of records.
pub const USED: usize = 4;
/// The word with the number of words for which there is room.
pub const ROOM: usize = 5;
/// The first word of the records.
pub const RECORDS: usize = 8;

/// An operation of a kernel that may trap or print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The location in the user's code.
    pub loc: Loc,
    /// The effect of the operation.
    pub kind: SiteKind,
}

/// The effect of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteKind {
    /// A trap with this message.
    Trap(String),
    /// A print of values of these types, with a format string of `{}`.
    Print(String, Vec<Ty>),
}

/// The contents of a report after a launch.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Told {
    /// The location and message of the site that trapped first, and the index of the program.
    pub trap: Option<(Loc, String, [u32; 3])>,
    /// The printed lines, in the order in which room for them was reserved.
    pub lines: Vec<String>,
    /// The number of words of records for which there was no room.
    pub lost: usize,
}

/// The number of words of an argument in a record.
#[must_use]
pub fn words(ty: Ty) -> usize {
    let n = ty.tile_shape().map_or(1, |s| s.len());
    if ty.elem().bits() == 64 { 2 * n } else { n }
}

/// Reads a report, up to the first invalid word.
#[must_use]
pub fn read(report: &[u32], sites: &[Site]) -> Told {
    let word = |i: usize| report.get(i).copied().unwrap_or(0);
    let site = |number: u32| usize::try_from(number).ok().and_then(|n| sites.get(n.checked_sub(1)?));
    let mut told = Told::default();
    if let Some(Site { loc, kind: SiteKind::Trap(message) }) = site(word(TRAP)) {
        told.trap = Some((*loc, message.clone(), [word(PROGRAM), word(PROGRAM + 1), word(PROGRAM + 2)]));
    }
    let asked = word(USED) as usize;
    let records = report.get(RECORDS..).unwrap_or_default();
    let records = records.get(..asked.min(word(ROOM) as usize).min(records.len())).unwrap_or_default();
    let mut at = 0;
    while let Some(SiteKind::Print(format, tys)) = records.get(at).and_then(|n| site(*n)).map(|s| &s.kind) {
        let size = 4 + tys.iter().map(|ty| words(*ty)).sum::<usize>();
        let Some(record) = records.get(at..at + size) else { break };
        told.lines.push(line(format, &values(tys, record.get(4..).unwrap_or_default())));
        at += size;
    }
    told.lost = asked.saturating_sub(at);
    told
}

fn values(tys: &[Ty], mut rest: &[u32]) -> Vec<(Ty, Vec<u64>)> {
    tys.iter()
        .map(|ty| {
            let (own, after) = rest.split_at(words(*ty).min(rest.len()));
            rest = after;
            let wide = ty.elem().bits() == 64;
            let bits = own.chunks(if wide { 2 } else { 1 }).map(|part| match part {
                [low, high] => u64::from(*low) | u64::from(*high) << 32,
                [one] if ty.elem().is_signed_int() => i64::from(one.cast_signed()).cast_unsigned(),
                [one] => u64::from(*one),
                _ => 0,
            });
            (*ty, bits.collect())
        })
        .collect()
}

/// Formats a line of `tprint!`: values replace each `{}`, `{{` and `}}` become braces, tiles become nested lists. Bits of signed integers
/// must be extended to 64.
#[must_use]
pub fn line(format: &str, args: &[(Ty, Vec<u64>)]) -> String {
    let types: Vec<Ty> = args.iter().map(|(ty, _)| *ty).collect();
    line_of(format, &types, &mut |out, arg, at| {
        let bits = args.get(arg).and_then(|(_, bits)| bits.get(at)).copied();
        element(out, types[arg].elem(), bits.unwrap_or(0));
    })
}

/// The same for values of these types whose elements are printed by a function: of which value, and the number of the element in row-major order.
#[must_use]
pub fn line_of(format: &str, types: &[Ty], element: &mut dyn FnMut(&mut String, usize, usize)) -> String {
    let mut out = String::new();
    let mut args = types.iter().enumerate();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('{', Some('{')) | ('}', Some('}')) => {
                chars.next();
                out.push(c);
            }
            ('{', _) => {
                chars.by_ref().find(|c| *c == '}');
                if let Some((arg, ty)) = args.next() {
                    let dims: Vec<i32> = ty.tile_shape().map_or_else(Vec::new, |s| s.to_vec());
                    axis(&mut out, &dims, &mut 0, &mut |out, at| element(out, arg, at));
                }
            }
            _ => out.push(c),
        }
    }
    out
}

fn axis(out: &mut String, dims: &[i32], next: &mut usize, element: &mut dyn FnMut(&mut String, usize)) {
    let Some((n, rest)) = dims.split_first() else {
        element(out, *next);
        *next += 1;
        return;
    };
    out.push('[');
    for i in 0..*n {
        if i > 0 {
            out.push_str(", ");
        }
        axis(out, rest, next, element);
    }
    out.push(']');
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits are the element")]
fn element(out: &mut String, elem: Elem, bits: u64) {
    let single = |v: f64| v as f32;
    // Writing to a string cannot fail.
    let _ = match elem {
        Elem::Bool => write!(out, "{}", bits != 0),
        Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8 | Elem::I4 => write!(out, "{}", bits.cast_signed()),
        Elem::U64 | Elem::U32 | Elem::U16 | Elem::U8 | Elem::U4 => write!(out, "{bits}"),
        Elem::F64 => write!(out, "{}", f64::from_bits(bits)),
        Elem::F32 | Elem::Tf32 => write!(out, "{}", f32::from_bits(bits as u32)),
        Elem::F16 => write!(out, "{}", single(num::f16_to_f64(bits as u16))),
        Elem::Bf16 => write!(out, "{}", single(num::bf16_to_f64(bits as u16))),
        Elem::E4m3 => write!(out, "{}", single(num::e4m3_to_f64(bits as u8))),
        Elem::E5m2 => write!(out, "{}", single(num::e5m2_to_f64(bits as u8))),
    };
}
