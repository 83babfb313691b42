//! Registers that `m0` selects: relative moves of scalar registers, and the mode in which vector registers are indexed.
//!
//! Source: ISA §12.3, `S_MOVRELS_B32` to `S_SET_GPR_IDX_IDX`; §12.4, `S_SET_GPR_IDX_ON`; §12.5, `S_SET_GPR_IDX_OFF` and `S_SET_GPR_IDX_MODE`;
//! §3.6 for the mode.
//!
//! While the mode is on, the lowest byte of `m0` is added to the numbers of vector registers in the operands that bits 12 to 15 of `m0`
//! select: the first, second and third source, and the destination. It applies to vector arithmetic only.

use super::Run;
use crate::emu::error::ErrorCode;
use crate::emu::fail::Fail;
use crate::emu::group::Group;
use crate::emu::op::{From, IndexKind, Kind, Op, Source, To, resolve};
use crate::emu::scalars::Value;
use crate::emu::wave::undefined;
use crate::isa::operand::{M0, SGPRS};
use crate::isa::{Field, Operand, Unit};

const INDEX: &str = "the index of a register";

/// The bits of `m0` that the mode uses.
const SELECTION: u64 = 0xF0FF;

/// The bit of the selection, from bit 12 on, that an operand's field has.
const fn position(field: Field) -> Option<u32> {
    match field {
        Field::Src0 | Field::SdwaSrc0 | Field::DppSrc0 => Some(0),
        Field::Src1 | Field::Vsrc1 => Some(1),
        Field::Src2 => Some(2),
        Field::Vdst => Some(3),
        _ => None,
    }
}

fn beyond(register: std::fmt::Arguments<'_>, by: u64) -> Fail {
    Fail::new(ErrorCode::Register, format!("`{register}` is indexed by {by}, which is beyond all registers"))
}

impl Group<'_> {
    /// The instruction with the registers that `m0` selects, if the mode applies to it.
    pub(super) fn indexed(&self, wave: usize, op: &Op) -> Run<Option<Op>> {
        if !matches!(op.unit, Unit::Valu | Unit::Trans | Unit::Dot) {
            return Ok(None);
        }
        let m0 = self.waves[wave].scalar(M0, 1)?;
        if m0.shadow & SELECTION != 0 {
            return Err(undefined(INDEX, self.waves[wave].scalar_origin(M0, 1)));
        }
        let (by, which) = (m0.bits & 0xFF, m0.bits >> 12 & 15);
        let mut inst = op.inst.clone();
        let fields: Vec<Field> = op.inst.args().map(|(arg, _)| arg.field).collect();
        for (field, operand) in fields.into_iter().zip(inst.operands_mut()) {
            if let (Operand::V(first, _), true) = (operand, position(field).is_some_and(|n| which >> n & 1 == 1)) {
                let moved = u8::try_from(u64::from(*first) + by);
                *first = moved.map_err(|_| beyond(format_args!("v{first}"), by))?;
            }
        }
        Ok(Some(resolve(inst, op.address, op.size)?))
    }

    /// `s_set_gpr_idx_*`: bits of `m0` that they do not set need not be defined.
    pub(super) fn set_index(&mut self, wave: usize, op: &Op) -> Run<()> {
        let Kind::Index(kind) = op.kind else { return Ok(()) };
        let index = op.sources.first().map_or(Ok(0), |s| self.scalar_source(wave, *s, INDEX))? & 0xFF;
        let immediate = op.inst.operands().iter().find_map(|o| match o {
            Operand::Imm(v) => Some(u64::from(v.cast_unsigned()) & 15),
            _ => None,
        });
        let which = immediate.unwrap_or(0) << 12;
        let (mask, bits) = match kind {
            IndexKind::On => (SELECTION, index | which),
            IndexKind::Off => (0, 0),
            IndexKind::Mode => (0xF000, which),
            IndexKind::Index => (0xFF, index),
        };
        let w = &mut self.waves[wave];
        match kind {
            IndexKind::On => w.indexed = true,
            IndexKind::Off => w.indexed = false,
            IndexKind::Mode | IndexKind::Index => {}
        }
        if mask == 0 {
            return Ok(());
        }
        let (old, origin) = (w.scalar(M0, 1)?, w.scalar_origin(M0, 1));
        w.set_scalar(M0, 1, Value { bits: old.bits & !mask | bits, shadow: old.shadow & !mask }, origin)
    }

    /// `s_movrels_*` and `s_movreld_*`: the number of the source or of the destination is increased by `m0`.
    pub(super) fn move_relative(&mut self, wave: usize, op: &Op) -> Run<()> {
        let Kind::MoveRelative(of_source) = op.kind else { return Ok(()) };
        let by = self.waves[wave].defined_word(M0, INDEX)?;
        let (Some(source), Some(place)) = (op.sources.first(), op.results.first()) else {
            return Err(Fail::new(ErrorCode::Unknown, "an operand is missing"));
        };
        let moved = |code: u8| {
            let to = u32::from(code).checked_add(by).and_then(|c| u8::try_from(c).ok()).filter(|c| *c < SGPRS);
            to.ok_or_else(|| beyond(format_args!("s{code}"), by.into()))
        };
        let mut op = op.clone();
        match (source.from, place.to) {
            (From::Scalar(code, n), _) if of_source => {
                op.sources[0] = Source { from: From::Scalar(moved(code)?, n), ..*source };
            }
            (_, To::Scalar(code, n)) if !of_source => op.results[0].to = To::Scalar(moved(code)?, n),
            _ => return Err(Fail::new(ErrorCode::Unknown, "a scalar register is missing")),
        }
        let value = self.scalar_value(wave, op.sources[0])?;
        self.set_result(wave, &op, value)
    }
}
