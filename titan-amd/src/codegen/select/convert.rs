//! Conversions between numbers.
//!
//! | to | from | instructions |
//! |---|---|---|
//! | `f32` `f64` | integers of 32 bits, `f16`, each other | one |
//! | `f32` `f64` | integers of 64 bits | [`super::long`] |
//! | `f32` | `bf16` | a shift: a `bf16` is the upper half of an `f32` |
//! | `f16` | `f32` | one |
//! | `bf16` | `f32` | integer arithmetic: [`super::bfloat`] |
//! | integers | floats | truncated, saturated, NaN is 0: one instruction has it all (ISA §12.8, `V_CVT_I32_F32`) |
//!
//! The lowering of tiles makes all others from these: it rounds to odd in `f32` before it rounds to a format of fewer digits, and
//! converts 8-bit floats by arithmetic on bits, because those of the machine are in other formats (ISA §7.2).

use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault, first};
use crate::codegen::machine_ir::Part;
use titan_core::lane::{Num, Op};

impl Select<'_> {
    pub(super) fn convert(&mut self, from: Num, to: Num, op: &Op) -> Done {
        if op.results.len() != 1 {
            return Err(Fault::Refused("8-bit floats are converted one at a time, by arithmetic on bits".to_owned()));
        }
        let (value, src) = (first(&op.results)?, self.src(first(&op.args)?)?);
        // Of an operand all digits of an `f32` count, so that a `tf32` is rounded also as one.
        if from == to && to != Num::Tf32 {
            return self.set_src(value, src);
        }
        let part = self.converted(from, to, src, op)?;
        self.set(value, Spot::V(part));
        Ok(())
    }

    fn converted(&mut self, from: Num, to: Num, x: Src, op: &Op) -> Result<Part, Fault> {
        // A number that `f32` has exactly, and that has no instruction of its own.
        let single = match from {
            Num::F16 if to != Num::F32 => Some(self.valu_new("v_cvt_f32_f16", 1, &[x])?),
            Num::Bf16 if to != Num::F32 => Some(self.valu_new("v_lshlrev_b32", 1, &[Src::Bits(16), x])?),
            Num::Tf32 => Some(self.in_vector(x, 1)?),
            Num::F16
            | Num::Bf16
            | Num::F32
            | Num::F64
            | Num::E4m3
            | Num::E5m2
            | Num::S32
            | Num::U32
            | Num::S64
            | Num::U64 => None,
        };
        if let Some(single) = single {
            return if to == Num::F32 { Ok(single) } else { self.converted(Num::F32, to, Src::V(single), op) };
        }
        if let Some((name, words)) = instruction(from, to) {
            return self.valu_new(name, words, &[x]);
        }
        match (from, to) {
            (Num::Bf16, Num::F32) => self.valu_new("v_lshlrev_b32", 1, &[Src::Bits(16), x]),
            (Num::F32, Num::Bf16) => self.bfloat(op, x),
            (Num::S64, Num::F64) => self.double_of_signed(x),
            (Num::U64, Num::F64) => self.double_of_unsigned(x),
            (Num::S64, Num::F32) => self.single_of_signed(x),
            (Num::U64, Num::F32) => self.single_of_unsigned(x),
            (Num::F64, Num::S64) => self.saturated_signed(x),
            (Num::F64, Num::U64) => self.saturated_unsigned(x),
            (Num::F32, Num::S64 | Num::U64) => {
                let double = self.valu_new("v_cvt_f64_f32", 2, &[x])?;
                self.converted(Num::F64, to, Src::V(double), op)
            }
            (_, _) => Err(Fault::Refused(format!(
                "there is no conversion of {from} to {to}, and the lowering of tiles makes none"
            ))),
        }
    }
}

/// The one instruction of a conversion, if it has one, and the words of its result.
const fn instruction(from: Num, to: Num) -> Option<(&'static str, u8)> {
    Some(match (from, to) {
        (Num::F16, Num::F32) => ("v_cvt_f32_f16", 1),
        (Num::F32, Num::F16) => ("v_cvt_f16_f32", 1),
        (Num::F32, Num::F64) => ("v_cvt_f64_f32", 2),
        (Num::F64, Num::F32) => ("v_cvt_f32_f64", 1),
        (Num::S32, Num::F32) => ("v_cvt_f32_i32", 1),
        (Num::U32, Num::F32) => ("v_cvt_f32_u32", 1),
        (Num::S32, Num::F64) => ("v_cvt_f64_i32", 2),
        (Num::U32, Num::F64) => ("v_cvt_f64_u32", 2),
        (Num::F32, Num::S32) => ("v_cvt_i32_f32", 1),
        (Num::F32, Num::U32) => ("v_cvt_u32_f32", 1),
        (Num::F64, Num::S32) => ("v_cvt_i32_f64", 1),
        (Num::F64, Num::U32) => ("v_cvt_u32_f64", 1),
        (_, _) => return None,
    })
}
