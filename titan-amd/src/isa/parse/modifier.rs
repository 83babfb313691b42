//! Parses modifiers: those before an operand, and those after the last operand.

use super::{Marks, Parsed, arguments, number, syntax};
use crate::isa::error::IsaError;
use crate::isa::format::{Field, Format};
use crate::isa::inst::Inst;
use crate::isa::print::{DPP_NAMES, DPP_SHIFTS, SELECTS, UNUSED};
use crate::isa::row::{Form, Mods};

pub(super) fn mark_source(inst: &mut Inst, n: usize, mark: Marks) -> Parsed<()> {
    let allowed = inst.modifiers();
    let name = inst.row().name;
    let cannot = || syntax(format!("an operand of `{name}` cannot be negated, made absolute or extended"));
    let fields = match inst.form() {
        Form::Sdwa => {
            [[Field::Src0Neg, Field::Src1Neg], [Field::Src0Abs, Field::Src1Abs], [Field::Src0Sext, Field::Src1Sext]]
        }
        Form::Dpp => [
            [Field::DppSrc0Neg, Field::DppSrc1Neg],
            [Field::DppSrc0Abs, Field::DppSrc1Abs],
            [Field::Src0Sext, Field::Src1Sext],
        ],
        Form::Base | Form::E64 => {
            let abs = if inst.row().is_mix() { Field::NegHi } else { Field::Abs };
            let said = [(mark.neg, Field::Neg), (mark.abs, abs)].map(|(said, field)| (field, u32::from(said) << n));
            if mark.sext || said.iter().any(|(field, bit)| *bit != 0 && !allowed.contains(field)) {
                return cannot();
            }
            for (field, bit) in said {
                let value = inst.get(field) | bit;
                inst.put(field, value);
            }
            return Ok(());
        }
    };
    for (said, pair) in [mark.neg, mark.abs, mark.sext].into_iter().zip(fields) {
        match pair.get(n).filter(|_| said) {
            Some(field) if allowed.contains(field) => inst.put(*field, 1),
            Some(_) => return cannot(),
            None => {}
        }
    }
    Ok(())
}

pub(super) fn apply(inst: &mut Inst, modifier: &str) -> Parsed<()> {
    let name = inst.row().name;
    let unknown = || IsaError::Modifier { name, modifier: modifier.to_owned() };
    let (key, value) = modifier.split_once(':').map_or((modifier, None), |(k, v)| (k, Some(v)));
    let flags = [
        ("clamp", Field::Clamp),
        ("sc0", Field::Sc0),
        ("nt", Field::Nt),
        ("sc1", Field::Sc1),
        ("offen", Field::Offen),
        ("idxen", Field::Idxen),
        ("glc", Field::Glc),
    ];
    let Some(value) = value else {
        let fixed = |f: Field| inst.row().fixed.iter().any(|(g, v)| *g == f && *v == 1);
        if (key == "lds" && fixed(Field::Lds)) || (key == "sc0" && fixed(Field::Sc0)) {
            return Ok(());
        }
        let flag = flags.iter().find(|(n, _)| *n == key).map(|(_, f)| (*f, 1));
        let dpp = DPP_NAMES.iter().find(|(_, n)| *n == key).map(|(code, _)| (Field::DppCtrl, *code));
        let (field, value) = flag.or(dpp).ok_or_else(unknown)?;
        inst.put(field, value);
        return Ok(());
    };
    if let Some(bits) = list(value) {
        return set_list(inst, key, &bits).ok_or_else(unknown);
    }
    set_value(inst, key, value, modifier).ok_or_else(unknown)
}

fn list(value: &str) -> Option<Vec<u32>> {
    let inner = value.strip_prefix('[')?.strip_suffix(']')?;
    inner.split(',').map(|t| t.trim().parse().ok()).collect()
}

fn set_list(inst: &mut Inst, key: &str, list: &[u32]) -> Option<()> {
    let pack = |bits: &[u32]| bits.iter().enumerate().fold(0, |all, (i, b)| all | (b & 1) << i);
    let n = inst.halves();
    match key {
        "quad_perm" if list.len() == 4 && list.iter().all(|v| *v < 4) => {
            inst.put(Field::DppCtrl, list.iter().enumerate().fold(0, |all, (i, v)| all | v << (2 * i)));
        }
        "op_sel" if inst.row().mods.has(Mods::OP_SEL_HI) && list.len() == n => inst.put(Field::OpSel, pack(list)),
        "op_sel" if inst.row().mods.has(Mods::OP_SEL) => {
            let (last, sources) = list.split_last()?;
            if sources.len() != inst.row().op_sel_sources(n) {
                return None;
            }
            inst.put(Field::OpSel, pack(sources) | (last & 1) << 3);
        }
        "op_sel_hi" if inst.row().mods.has(Mods::OP_SEL_HI) && list.len() == n => {
            let rest = inst.get(Field::OpSelHi) | inst.get(Field::OpSelHi2) << 2;
            let value = pack(list) | rest & !((1 << n) - 1);
            inst.put(Field::OpSelHi, value & 3);
            inst.put(Field::OpSelHi2, value >> 2);
        }
        "neg_lo" if list.len() == n => inst.put(Field::Neg, pack(list)),
        "neg_hi" if list.len() == n => inst.put(Field::NegHi, pack(list)),
        "neg" if inst.row().mods.has(Mods::MATRIX_NEG) && list.len() == 3 => inst.put(Field::Blgp, pack(list)),
        _ => return None,
    }
    Some(())
}

fn set_value(inst: &mut Inst, key: &str, value: &str, whole: &str) -> Option<()> {
    let n = || number(value).and_then(|v| u32::try_from(v).ok());
    let select = |names: &[&str]| names.iter().position(|s| *s == value).and_then(|i| u32::try_from(i).ok());
    let (field, value) = match key {
        "mul" | "div" => {
            let code = match (key, value) {
                ("mul", "2") => 1,
                ("mul", "4") => 2,
                ("div", "2") => 3,
                _ => return None,
            };
            (Field::Omod, code)
        }
        "dst_sel" => (Field::DstSel, select(&SELECTS)?),
        "src0_sel" => (Field::Src0Sel, select(&SELECTS)?),
        "src1_sel" => (Field::Src1Sel, select(&SELECTS)?),
        "dst_unused" => (Field::DstUnused, select(&UNUSED)?),
        "row_mask" => (Field::RowMask, n()?),
        "bank_mask" => (Field::BankMask, n()?),
        "bound_ctrl" => (Field::BoundCtrl, 1),
        "cbsz" => (Field::Cbsz, n()?),
        "abid" => (Field::Abid, n()?),
        "blgp" if !inst.row().mods.has(Mods::MATRIX_NEG) => (Field::Blgp, n()?),
        "offset0" => (Field::Offset0, n()?),
        "offset1" => (Field::Offset1, n()?),
        "offset" => return set_offset(inst, value),
        _ => {
            let named = DPP_NAMES.iter().find(|(_, name)| *name == whole).map(|(code, _)| *code);
            let shift = || {
                let (base, least, most, _) = DPP_SHIFTS.iter().find(|(.., name)| *name == key)?;
                n().filter(|v| (*least..=*most).contains(v)).map(|v| base + v)
            };
            (Field::DppCtrl, named.or_else(shift)?)
        }
    };
    inst.put(field, value);
    Some(())
}

fn set_offset(inst: &mut Inst, value: &str) -> Option<()> {
    if let Some(pattern) = arguments(value, "swizzle").filter(|_| inst.row().mods.has(Mods::SWIZZLE)) {
        let pattern = swizzle(&pattern)?;
        inst.put(Field::Offset0, pattern & 0xFF);
        inst.put(Field::Offset1, pattern >> 8);
        return Some(());
    }
    let offset = i32::try_from(number(value)?).ok()?;
    let raw = |field, bits: u32, signed: bool| {
        let half = 1_i32 << (bits - 1);
        let fits = if signed { (-half..half).contains(&offset) } else { (0..2 * half).contains(&offset) };
        fits.then(|| (field, offset.cast_unsigned() & ((1 << bits) - 1)))
    };
    let (field, value) = match inst.row().format {
        Format::Ds => {
            let (_, all) = raw(Field::Offset0, 16, false)?;
            inst.put(Field::Offset1, all >> 8);
            (Field::Offset0, all & 0xFF)
        }
        Format::Smem if offset == 0 => (Field::Soe, 1),
        Format::Smem => raw(Field::SmemOffset, 21, true)?,
        Format::Flat => raw(Field::Offset, 12, false)?,
        Format::Global | Format::Scratch => raw(Field::Offset, 13, true)?,
        _ => raw(Field::Offset, 12, false)?,
    };
    inst.put(field, value);
    Some(())
}

fn swizzle(parts: &[&str]) -> Option<u32> {
    let n = |i: usize| parts.get(i).and_then(|t| number(t)).and_then(|v| u32::try_from(v).ok());
    let group = |v: u32| v.is_power_of_two() && v <= 32;
    Some(match *parts.first()? {
        "QUAD_PERM" => {
            let lanes = [n(1)?, n(2)?, n(3)?, n(4)?];
            lanes.iter().all(|l| *l < 4).then_some(())?;
            lanes.iter().enumerate().fold(0x8000, |all, (i, l)| all | l << (2 * i))
        }
        "SWAP" => 31 | n(1).filter(|v| group(*v) && *v < 32)? << 10,
        "REVERSE" => 31 | (n(1).filter(|v| group(*v) && *v > 1)? - 1) << 10,
        "BROADCAST" => {
            let size = n(1).filter(|v| group(*v) && *v > 1)?;
            (32 - size) | n(2).filter(|l| *l < size)? << 5
        }
        "BITMASK_PERM" => {
            let mask = parts.get(1)?.strip_prefix('"')?.strip_suffix('"')?;
            (mask.len() == 5).then_some(())?;
            mask.chars().rev().enumerate().try_fold(0, |all, (i, c)| {
                let (and, or, xor) = match c {
                    '0' => (0, 0, 0),
                    '1' => (0, 1, 0),
                    'p' => (1, 0, 0),
                    'i' => (1, 0, 1),
                    _ => return None,
                };
                Some(all | and << i | or << (i + 5) | xor << (i + 10))
            })?
        }
        _ => return None,
    })
}
