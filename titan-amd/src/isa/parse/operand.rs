//! Parses operands: registers, constants, and immediates with special syntax.

use super::{Marks, Parsed, arguments, number, syntax};
use crate::isa::error::IsaError;
use crate::isa::operand::{
    EXEC, FLAT_SCRATCH, Inline, InlineFloat, M0, Operand, SGPRS, Special, TTMP, VCC, XNACK_MASK,
};
use crate::isa::print::{COUNTERS, HWREGS, INDEXED, counter};
use crate::isa::row::{Arg, Class};

pub(super) fn operand(arg: Arg, text: &str) -> Parsed<(Operand, Marks)> {
    let mut marks = Marks::default();
    let mut text = text.trim();
    if let Some(inner) = text.strip_prefix("sext(").and_then(|t| t.strip_suffix(')')) {
        (marks.sext, text) = (true, inner);
    }
    if let Some(inner) = text.strip_prefix("neg(").and_then(|t| t.strip_suffix(')')) {
        (marks.neg, text) = (true, inner);
    } else if let Some(inner) = text.strip_prefix('-').filter(|t| !t.starts_with(|c: char| c.is_ascii_digit())) {
        (marks.neg, text) = (true, inner);
    }
    if let Some(inner) = text.strip_prefix('|').and_then(|t| t.strip_suffix('|')) {
        (marks.abs, text) = (true, inner);
    }
    Ok((bare(arg, text)?, marks))
}

fn bare(arg: Arg, text: &str) -> Parsed<Operand> {
    if let Some(operand) = immediate(arg.class, text)? {
        return Ok(operand);
    }
    if text == "off" {
        return Ok(Operand::Off);
    }
    if let Some(register) = register(text) {
        return Ok(register);
    }
    if let Some(special) = Special::from_text(text) {
        return Ok(Operand::Special(special));
    }
    constant(arg, text).map_or_else(|| syntax(format!("`{text}` is no operand")), Ok)
}

fn constant(arg: Arg, text: &str) -> Option<Operand> {
    let literal = arg.class == Class::Literal;
    if let Some(float) = InlineFloat::from_text(text).filter(|_| !literal) {
        return Some(Operand::Inline(Inline::Float(float)));
    }
    let value = number(text)?;
    let hexadecimal = text.contains("0x");
    let inline = i32::try_from(value).ok().and_then(Operand::int).filter(|_| !literal && !hexadecimal);
    let bits = u32::try_from(value).ok().or_else(|| i32::try_from(value).ok().map(i32::cast_unsigned));
    inline.or_else(|| bits.map(Operand::Literal))
}

/// Parses an immediate of a class; `None` if operands of the class are registers and constants.
fn immediate(class: Class, text: &str) -> Parsed<Option<Operand>> {
    let known = match class {
        Class::Simm | Class::Hex | Class::Uimm | Class::Branch => number(text),
        Class::SmemOffset => number(text),
        Class::Waitcnt => return waitcnt(text).map(Some),
        Class::Hwreg => return hwreg(text).map(Some),
        Class::Message => return message(text).map(Some),
        Class::IndexMode => return index_mode(text).map(Some),
        _ => return Ok(None),
    };
    match known.map(i32::try_from) {
        Some(Ok(value)) => Ok(Some(Operand::Imm(value))),
        Some(Err(_)) => syntax(format!("`{text}` is too large")),
        None if class == Class::SmemOffset => Ok(None),
        None => syntax(format!("`{text}` is no number")),
    }
}

fn waitcnt(text: &str) -> Parsed<Operand> {
    if let Some(value) = number(text).and_then(|v| i32::try_from(v).ok()) {
        return Ok(Operand::Imm(value));
    }
    let mut imm = COUNTERS.iter().flat_map(|(_, r)| *r).fold(0, |all, (lo, n)| all | ((1_u32 << n) - 1) << lo);
    for part in text.split([' ', '&', ',', '\t']).filter(|p| !p.is_empty()) {
        let found = COUNTERS.iter().find_map(|(n, ranges)| Some((ranges, arguments(part, n)?)));
        let value = found.as_ref().and_then(|(_, a)| number(a.first()?)).and_then(|v| u32::try_from(v).ok());
        let (Some((ranges, _)), Some(value)) = (found, value) else {
            return syntax(format!("`{part}` is no counter to wait for"));
        };
        let mut at = 0;
        for (lo, n) in *ranges {
            let mask = (1 << n) - 1;
            imm = imm & !(mask << lo) | (value >> at & mask) << lo;
            at += n;
        }
        if counter(imm, ranges).0 != value {
            return syntax(format!("`{part}`: the counter does not go so far"));
        }
    }
    Ok(Operand::Imm(imm.cast_signed()))
}

fn hwreg(text: &str) -> Parsed<Operand> {
    let wrong = || IsaError::Syntax { why: format!("`{text}` is no hardware register") };
    let parts = arguments(text, "hwreg").ok_or_else(wrong)?;
    let id = |t: &str| HWREGS.iter().find(|(_, n)| *n == t).map(|(i, _)| i64::from(*i)).or_else(|| number(t));
    let first = parts.first().and_then(|t| id(t)).filter(|v| (0..64).contains(v)).ok_or_else(wrong)?;
    let rest = |i: usize, usual| parts.get(i).map_or(Some(usual), |t| number(t));
    let offset = rest(1, 0).filter(|v| (0..32).contains(v)).ok_or_else(wrong)?;
    let size = rest(2, 32).filter(|v| (1..=32).contains(v)).ok_or_else(wrong)?;
    i32::try_from(first | offset << 6 | (size - 1) << 11).map(Operand::Imm).map_err(|_| wrong())
}

fn message(text: &str) -> Parsed<Operand> {
    let wrong = || IsaError::Syntax { why: format!("`{text}` is no message") };
    if let Some(imm) = number(text) {
        return i32::try_from(imm).map(Operand::Imm).map_err(|_| wrong());
    }
    let parts = arguments(text, "sendmsg").ok_or_else(wrong)?;
    let id = |t: &str| if t == "MSG_INTERRUPT" { Some(1) } else { number(t) };
    let first = parts.first().and_then(|t| id(t)).ok_or_else(wrong)?;
    let rest = |i: usize| parts.get(i).map_or(Some(0), |t| number(t)).ok_or_else(wrong);
    i32::try_from(first | rest(1)? << 4 | rest(2)? << 8).map(Operand::Imm).map_err(|_| wrong())
}

fn index_mode(text: &str) -> Parsed<Operand> {
    let wrong = || IsaError::Syntax { why: format!("`{text}` does not name operands that can be indexed") };
    if let Some(bits) = number(text) {
        return i32::try_from(bits).map(Operand::Imm).map_err(|_| wrong());
    }
    let parts = arguments(text, "gpr_idx").ok_or_else(wrong)?;
    let bit = |part: &&str| INDEXED.iter().position(|n| n == part).map(|n| 1 << n).ok_or_else(wrong);
    let named = parts.iter().filter(|p| !p.is_empty());
    named.map(bit).try_fold(0, |all, bit| Ok(all | bit?)).map(Operand::Imm)
}

/// Parses a register or a tuple of registers.
pub(crate) fn register(text: &str) -> Option<Operand> {
    let pairs = [("flat_scratch", FLAT_SCRATCH), ("xnack_mask", XNACK_MASK), ("vcc", VCC), ("exec", EXEC)];
    for (name, code) in pairs {
        match text.strip_prefix(name) {
            Some("") => return Some(Operand::S(code, 2)),
            Some("_lo") => return Some(Operand::S(code, 1)),
            Some("_hi") => return Some(Operand::S(code + 1, 1)),
            _ => {}
        }
    }
    if text == "m0" {
        return Some(Operand::S(M0, 1));
    }
    let (file, base, count) =
        [("ttmp", TTMP, 16_u16), ("s", 0, SGPRS.into()), ("v", 0, 256), ("a", 0, 256)].into_iter().find(
            |(f, ..)| text.strip_prefix(f).is_some_and(|t| t.starts_with(|c: char| c == '[' || c.is_ascii_digit())),
        )?;
    let rest = text.strip_prefix(file)?;
    let (first, last): (u16, u16) = match rest.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        Some(range) => {
            let (a, b) = range.split_once(':').unwrap_or((range, range));
            (a.parse().ok()?, b.parse().ok()?)
        }
        None => (rest.parse().ok()?, rest.parse().ok()?),
    };
    if last < first || last >= count {
        return None;
    }
    let (first, n) = (u8::try_from(first).ok()? + base, u8::try_from(last - first + 1).ok()?);
    Some(match file {
        "v" => Operand::V(first, n),
        "a" => Operand::A(first, n),
        _ => Operand::S(first, n),
    })
}
