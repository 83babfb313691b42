//! Reciprocals, roots, exponentials, logarithms and sines.
//!
//! Hardware's tables are not public; the manual states errors of at most one unit in the last place of `f32` and `f16`
//! (ISA §12.8), and of `2^29` for `f64` reciprocals and roots, which programs refine. Here results are computed in `f64`,
//! and rounded once: within every bound, but not equal to hardware in the last bit. Compare with a tolerance.
//!
//! `v_exp`, `v_log`, `v_sin` and `v_cos` flush subnormal inputs and results whatever `MODE` says. Sines take their argument in
//! turns, not radians.

use super::float::{in32, in64, out32, out64};
use super::half::{read, write};
use super::{LaneFn, Mode};

#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the purpose")]
fn of32(m: Mode, x: u64, f: fn(f64) -> f64) -> u64 {
    out32(m, f(f64::from(in32(m, x))) as f32)
}

/// Applies the function with flushing.
fn flushing(m: Mode, x: u64, f: fn(f64) -> f64) -> u64 {
    of32(Mode { denorm_32: 0, ..m }, x, f)
}

fn sin(turns: f64) -> f64 {
    if turns.is_infinite() { f64::NAN } else { ((turns - turns.round()) * std::f64::consts::TAU).sin() }
}

fn cos(turns: f64) -> f64 {
    if turns.is_infinite() { f64::NAN } else { ((turns - turns.round()) * std::f64::consts::TAU).cos() }
}

/// The function of a mnemonic.
pub(crate) fn function(name: &str) -> Option<LaneFn> {
    Some(match name {
        "v_rcp_f32" | "v_rcp_iflag_f32" => |m, x| of32(m, x[0], |v| 1.0 / v),
        "v_rsq_f32" => |m, x| of32(m, x[0], |v| 1.0 / v.sqrt()),
        "v_sqrt_f32" => |m, x| of32(m, x[0], f64::sqrt),
        "v_exp_f32" | "v_exp_legacy_f32" => |m, x| flushing(m, x[0], f64::exp2),
        "v_log_f32" | "v_log_legacy_f32" => |m, x| flushing(m, x[0], f64::log2),
        "v_sin_f32" => |m, x| flushing(m, x[0], sin),
        "v_cos_f32" => |m, x| flushing(m, x[0], cos),
        "v_rcp_f64" => |m, x| out64(m, 1.0 / in64(m, x[0])),
        "v_rsq_f64" => |m, x| out64(m, 1.0 / in64(m, x[0]).sqrt()),
        "v_sqrt_f64" => |m, x| out64(m, in64(m, x[0]).sqrt()),
        "v_rcp_f16" => |m, x| write(m, 1.0 / read(m, x[0])),
        "v_rsq_f16" => |m, x| write(m, 1.0 / read(m, x[0]).sqrt()),
        "v_sqrt_f16" => |m, x| write(m, read(m, x[0]).sqrt()),
        "v_exp_f16" => |m, x| write(m, read(m, x[0]).exp2()),
        "v_log_f16" => |m, x| write(m, read(m, x[0]).log2()),
        "v_sin_f16" => |m, x| write(m, sin(read(m, x[0]))),
        "v_cos_f16" => |m, x| write(m, cos(read(m, x[0]))),
        _ => return None,
    })
}
