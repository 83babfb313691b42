//! Random instructions: operands of every class, modifiers of every kind, as the rows allow.

use titan_amd::isa::operand::{EXEC, M0, VCC};
use titan_amd::isa::{Access, Arg, Class, Field, Form, Inline, InlineFloat, Inst, Mods, Operand, Row, Special};
use titan_sim::engine::Rng;

/// An instruction of a row in an encoding.
pub(crate) fn instruction(rng: &mut Rng, row: &'static Row, form: Form) -> Inst {
    for attempt in 0..2000 {
        if let Some(inst) = attempt_one(rng, row, form, attempt > 1000) {
            return inst;
        }
    }
    panic!("no operands fit `{}` as {form:?}", row.name)
}

fn attempt_one(rng: &mut Rng, row: &'static Row, form: Form, simple: bool) -> Option<Inst> {
    let address = rng.below(4);
    let args = row.args_in(form);
    let base = rng.below(2) == 0;
    let operands: Vec<Operand> = args.as_slice().iter().map(|a| operand(rng, row, form, *a, address, base)).collect();
    // A file for all data that share one bit.
    let mut acc = None;
    let operands = operands.into_iter().zip(args.as_slice()).map(|(o, a)| match (a.class, o) {
        (Class::Va | Class::MatrixC | Class::MatrixD, Operand::V(r, n) | Operand::A(r, n)) => {
            if *acc.get_or_insert(matches!(o, Operand::A(..))) { Operand::A(r, n) } else { Operand::V(r, n) }
        }
        _ => o,
    });
    let mut inst = new(row, form, operands.collect(), address)?;
    if simple {
        return Some(inst);
    }
    let fields = inst.modifiers();
    for field in fields {
        if rng.below(2) == 0
            && let Some(value) = modifier(rng, &inst, field)
            && let Ok(next) = inst.clone().with(field, value)
        {
            inst = next;
        }
    }
    Some(inst)
}

fn new(row: &'static Row, form: Form, operands: Vec<Operand>, address: usize) -> Option<Inst> {
    if !row.mods.has(Mods::BUFFER) {
        return Inst::new(row, form, operands).ok();
    }
    // The address must agree with `offen` and `idxen` at once.
    let mut off = operands.clone();
    let at = row.args().iter().position(|a| a.class == Class::BufferAddr)?;
    off[at] = Operand::Off;
    let inst = Inst::new(row, form, off).ok()?;
    if address == 0 {
        return Some(inst);
    }
    let mut text = inst.to_string();
    let Operand::V(first, n) = operands[at] else { return None };
    let name = if n == 1 { format!("v{first}") } else { format!("v[{first}:{}]", first + 1) };
    text = text.replacen("off", &name, 1);
    let flags = [" offen", " idxen", " idxen offen"][address - 1];
    let (head, tail) = text.strip_suffix(" lds").map_or((text.as_str(), ""), |t| (t, " lds"));
    let (head, sc0) = head.strip_suffix(" sc0").map_or((head, ""), |t| (t, " sc0"));
    titan_amd::isa::parse(&format!("{head}{flags}{sc0}{tail}")).ok()
}

fn scalar(rng: &mut Rng, n: u8) -> Operand {
    let align = if n == 1 {
        1
    } else if n == 2 {
        2
    } else {
        4
    };
    let random = (rng.below((102 - n as usize) / align) * align) as u8;
    match (rng.below(8), n) {
        (0, 2) => Operand::S(VCC, 2),
        (0, 1) => Operand::S(VCC + (random & 1), 1),
        _ => Operand::S(random, n),
    }
}

fn vector(rng: &mut Rng, n: u8) -> u8 {
    if n == 1 { rng.below(256) as u8 } else { (rng.below((256 - n as usize) / 2) * 2) as u8 }
}

fn constant(rng: &mut Rng, arg: Arg, literals: bool) -> Operand {
    match rng.below(if literals { 4 } else { 3 }) {
        0 => Operand::int(rng.below(81) as i32 - 16).unwrap(),
        1 if arg.ty.elem.is_float() || arg.ty.bits() == 32 => {
            Operand::Inline(Inline::Float(InlineFloat::from_code(240 + rng.below(9) as u32).unwrap()))
        }
        1 => Operand::int(64).unwrap(),
        2 if arg.ty.bits() == 32 => Operand::Special([Special::Scc, Special::Vccz, Special::Execz][rng.below(3)]),
        2 => Operand::int(-16).unwrap(),
        _ if arg.ty.dwords() == 1 && arg.ty.bits() == 16 => Operand::Literal(0x1000 + rng.below(0x2000) as u32),
        _ => Operand::Literal(0x1234_5600 + rng.below(200) as u32),
    }
}

fn operand(rng: &mut Rng, row: &Row, form: Form, arg: Arg, address: usize, base: bool) -> Operand {
    let n = arg.ty.dwords();
    match arg.class {
        Class::Sdst if row.format == titan_amd::isa::Format::Vop3b || form != Form::Base || n == 2 => {
            match rng.below(8) {
                0 if row.unit == titan_amd::isa::Unit::Salu && n == 2 => Operand::S(EXEC, 2),
                _ => scalar(rng, n),
            }
        }
        Class::Sdst if rng.below(8) == 0 => Operand::S([M0, EXEC, EXEC + 1][rng.below(3)], 1),
        Class::Sdst | Class::Smem => scalar(rng, n),
        Class::Ssrc => match rng.below(4) {
            0 => constant(rng, arg, true),
            1 if n == 1 => Operand::S([M0, EXEC][rng.below(2)], 1),
            1 if n == 2 => Operand::S(EXEC, 2),
            _ => scalar(rng, n),
        },
        Class::SsrcInline | Class::SrcS if rng.below(3) == 0 && n == 1 => Operand::int(rng.below(60) as i32).unwrap(),
        Class::SsrcInline | Class::SrcS => scalar(rng, n),
        Class::Soffset if rng.below(2) == 0 => Operand::int(rng.below(65) as i32).unwrap(),
        Class::Soffset => scalar(rng, 1),
        Class::Sbase | Class::Srsrc => Operand::S((rng.below(96 / 4) * 4) as u8, n),
        Class::SmemOffset if rng.below(2) == 0 => Operand::Imm(rng.below(1 << 20) as i32),
        Class::SmemOffset => scalar(rng, 1),
        Class::V => Operand::V(vector(rng, n), n),
        Class::SrcV => Operand::V(vector(rng, n), n),
        Class::A | Class::SrcA => Operand::A(vector(rng, n), n),
        Class::Va | Class::MatrixAb | Class::MatrixD => {
            if rng.below(2) == 0 {
                Operand::A(vector(rng, n), n)
            } else {
                Operand::V(vector(rng, n), n)
            }
        }
        Class::MatrixC => match rng.below(3) {
            0 => Operand::int(rng.below(65) as i32).unwrap(),
            1 if arg.ty.elem.is_float() => Operand::Inline(Inline::Float(InlineFloat::One)),
            _ => Operand::V(vector(rng, n), n),
        },
        Class::Src | Class::SrcInline => {
            let short = matches!(form, Form::Sdwa | Form::Dpp);
            match rng.below(6) {
                0 if !short && n <= 2 => constant(rng, arg, arg.class == Class::Src),
                1 if form != Form::Dpp && n <= 2 => scalar(rng, n),
                _ => Operand::V(vector(rng, n), n),
            }
        }
        Class::Vcc => Operand::VCC,
        Class::Literal if arg.ty.bits() == 16 => Operand::Literal(0x1000 + rng.below(0x2000) as u32),
        Class::Literal => Operand::Literal(0x1234_5600 + rng.below(200) as u32),
        Class::Simm => Operand::Imm(rng.below(0x1_0000) as i32 - 0x8000),
        Class::Hex => Operand::Imm(rng.below(0x1_0000) as i32),
        Class::Branch => Operand::Imm(rng.below(0x8000) as i32),
        Class::Uimm => Operand::Imm(rng.below(16) as i32),
        Class::Waitcnt => Operand::Imm((rng.below(0x1_0000) & 0xCF7F) as i32),
        Class::Hwreg => {
            Operand::Imm(([1, 2, 3, 4, 20][rng.below(5)] | rng.below(32) << 6 | rng.below(32) << 11) as i32)
        }
        Class::Message => Operand::Imm(1),
        Class::IndexMode => Operand::Imm(rng.below(16) as i32),
        Class::BufferAddr if address == 3 => Operand::V(vector(rng, 2), 2),
        Class::BufferAddr => Operand::V(vector(rng, 1), 1),
        Class::GlobalAddr if base => Operand::V(vector(rng, 1), 1),
        Class::GlobalAddr => Operand::V(vector(rng, 2), 2),
        Class::GlobalBase if base => scalar(rng, 2),
        Class::GlobalBase => Operand::Off,
        Class::ScratchAddr if rng.below(2) == 0 => Operand::V(vector(rng, 1), 1),
        Class::ScratchAddr => Operand::Off,
        Class::ScratchBase if rng.below(2) == 0 => scalar(rng, 1),
        Class::ScratchBase => Operand::Off,
    }
}

/// A value for a modifier that is not its usual one; `None` where it has no other.
fn modifier(rng: &mut Rng, inst: &Inst, field: Field) -> Option<u32> {
    let sources = inst.args().filter(|(a, _)| a.access == Access::Read && a.class != Class::Vcc).count() as u32;
    let mask = (1 << sources.min(3)) - 1;
    let row = inst.row();
    Some(match field {
        Field::Omod => 1 + rng.below(3) as u32,
        Field::OpSel if row.mods.has(Mods::OP_SEL) => {
            let sources = if row.name.starts_with("v_cvt_sr") { 4 } else { mask };
            (rng.below(8) as u32 & sources) | (rng.below(2) as u32) << 3
        }
        Field::OpSel => rng.below(8) as u32 & mask,
        Field::OpSelHi if row.is_mix() => rng.below(4) as u32,
        Field::OpSelHi => rng.below(4) as u32 & mask | 3 & !mask,
        Field::OpSelHi2 if sources > 2 || row.is_mix() => rng.below(2) as u32,
        Field::OpSelHi2 => return None,
        Field::Neg | Field::Abs | Field::NegHi => {
            let allowed = (0..sources).filter(|i| negates(inst, *i as usize)).fold(0, |all, i| all | 1 << i);
            let allowed = if row.mods.has(Mods::NEG_LO) { mask } else { allowed };
            rng.below(8) as u32 & allowed
        }
        Field::Cbsz => rng.below(4) as u32,
        Field::Abid => rng.below(16) as u32,
        Field::Blgp => rng.below(8) as u32,
        Field::DstSel | Field::Src0Sel | Field::Src1Sel => rng.below(7) as u32,
        Field::DstUnused => rng.below(3) as u32,
        Field::DppCtrl if row.mods.has(Mods::DPP64) => 0x150 + rng.below(16) as u32,
        Field::DppCtrl => {
            [rng.below(256) as u32, 0x101, 0x112, 0x12F, 0x130, 0x138, 0x140, 0x141, 0x142, 0x143, 0x153][rng.below(11)]
        }
        Field::BankMask | Field::RowMask => rng.below(16) as u32,
        Field::Offset0 | Field::Offset1 if row.mods.has(Mods::SWIZZLE) => return None,
        Field::Offset0 | Field::Offset1 => rng.below(256) as u32,
        Field::Offset => match row.format {
            titan_amd::isa::Format::Global | titan_amd::isa::Format::Scratch => rng.below(1 << 13) as u32,
            _ => rng.below(1 << 12) as u32,
        },
        Field::SmemOffset => match inst.operands().last() {
            Some(Operand::S(..)) => rng.below(1 << 20) as u32,
            _ => return None,
        },
        // An offset of 0 that is encoded besides a register.
        Field::Soe => match inst.operands().last() {
            Some(Operand::S(..)) if inst.get(Field::SmemOffset) == 0 => 1,
            _ => return None,
        },
        Field::Offen | Field::Idxen => return None,
        _ => 1,
    })
}

/// Whether a source may be negated.
fn negates(inst: &Inst, n: usize) -> bool {
    let args = inst.row().args_in(inst.form());
    let mut sources = args
        .as_slice()
        .iter()
        .filter(|a| a.access == Access::Read && !matches!(a.class, Class::Vcc | Class::SrcS | Class::Literal));
    let Some(arg) = sources.nth(n) else { return false };
    (arg.ty.is_scalar_float() || inst.row().mods.has(Mods::BITS_NEG)) && !inst.row().mods.has(Mods::NO_NEG)
}
