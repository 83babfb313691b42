//! Instructions that the tables have and the emulator does not compute, and modifiers that it does not apply.

use super::Absent;
use crate::emu::lane::int::saturating;
use crate::isa::{Field, Format, Inst, Unit};

/// The feature for which an instruction is refused.
pub(crate) fn refused(inst: &Inst) -> Option<Absent> {
    let row = inst.row();
    let name = row.name;
    let narrow = || ["byte", "short"].iter().any(|width| name.contains(width));
    if row.unit == Unit::LoadLds && narrow() {
        return Some(Absent::NarrowLdsLoads);
    }
    Some(match name {
        "s_sendmsg" | "s_sendmsghalt" => Absent::Messages,
        "s_sethalt" => Absent::Halts,
        "v_trig_preop_f64" => Absent::TrigonometricReduction,
        "v_cvt_pkaccum_u8_f32" => Absent::PackedAccumulation,
        "v_qsad_pk_u16_u8" | "v_mqsad_pk_u16_u8" | "v_mqsad_u32_u8" => Absent::WindowedDifferences,
        "ds_wrxchg2_rtn_b32"
        | "ds_wrxchg2st64_rtn_b32"
        | "ds_wrxchg2_rtn_b64"
        | "ds_wrxchg2st64_rtn_b64"
        | "ds_condxchg32_rtn_b64" => Absent::PairedExchange,
        _ if name.starts_with("v_smfmac_") => Absent::SparseMatrices,
        _ if clamps_integers(inst) => Absent::IntegerClamp,
        _ => return None,
    })
}

/// Whether the instruction clamps integers and is none for which the emulator does so. At a comparison, the bit asks for exceptions, of
/// which there are none.
fn clamps_integers(inst: &Inst) -> bool {
    let row = inst.row();
    let clamps = inst.get(Field::Clamp) != 0 && row.format != Format::Vopc;
    let is_integer = row.args().first().is_some_and(|result| !result.ty.elem.is_float());
    let carries = row.name.contains("_co_u32");
    clamps && is_integer && !carries && saturating(row.name).is_none()
}

/// Whether the result of vector arithmetic depends on the rounding that `MODE` selects. Where that is not certain, it does.
pub(crate) fn rounds(inst: &Inst) -> bool {
    let row = inst.row();
    let vector = matches!(row.unit, Unit::Valu | Unit::Trans | Unit::Dot);
    let float = row.args().iter().any(|a| a.ty.elem.is_float());
    vector && float && (inst.get(Field::Omod) != 0 || !is_exact(row.name))
}

/// Whether an instruction on floats has results that no rounding changes: comparisons, selections and moves; roundings whose name has the
/// direction; significands and exponents; conversions to integers, which truncate, and to wider formats.
fn is_exact(name: &str) -> bool {
    const EXACT: [&str; 27] = [
        "v_cmp",
        "v_min",
        "v_max",
        "v_med",
        "v_pk_min",
        "v_pk_max",
        "v_trunc",
        "v_ceil",
        "v_floor",
        "v_rndne",
        "v_frexp",
        "v_cvt_i32_",
        "v_cvt_u32_",
        "v_cvt_i16_",
        "v_cvt_u16_",
        "v_cvt_rpi_i32_",
        "v_cvt_flr_i32_",
        "v_cvt_f64_",
        "v_cvt_f32_f16",
        "v_cvt_f32_ubyte",
        "v_cvt_f32_fp8",
        "v_cvt_f32_bf8",
        "v_cvt_pk_f32_",
        "v_cvt_pkrtz_",
        "v_pack_b32_f16",
        // The manual: these round to nearest whatever `MODE` says.
        "v_dot2_f32_f16",
        "v_dot2c_f32_f16",
    ];
    EXACT.iter().any(|exact| name.starts_with(exact))
}
