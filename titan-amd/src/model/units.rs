//! tidy: table
//! The clocks for which an instruction of a wave occupies a unit.
//!
//! | unit | of | clocks of an instruction of 64 lanes | source |
//! |---|---|---|---|
//! | matrix | each SIMD unit | 4 for each pass | ISA §7.1, passes |
//! | vector | each SIMD unit | 4; 16 if it is transcendental or multiplies integers of 32 bits | ISA §2: 16 lanes in a clock; LLVM, `SISchedule.td`, quarter rate |
//! | scalar | each SIMD unit | 4 | CDNA3 white paper: each SIMD unit issues every fourth clock |
//! | local data share | the compute unit | the bytes of all lanes ÷ 128, and conflicts ([`super::banks`]) | ISA §11.1 |
//! | vector memory | the compute unit | the bytes of all lanes ÷ 64 | CDNA3 white paper: 64 bytes in a clock from the first cache |
//!
//! Arithmetic on two `f32` takes 4 clocks, too: 256 operations of a compute unit in a clock (CDNA3 white paper) are 4 SIMD units × 16 lanes × 2
//! numbers × 2 for a multiplication with an addition. Waits, wait states, barriers and branches occupy none of these units.

use crate::isa::{Access, Class, Form, Inst, Row, Unit};

/// A unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// Multiplies matrices.
    Matrix,
    /// Arithmetic on the lanes of vector registers.
    Vector,
    /// Arithmetic on scalar registers, and scalar loads.
    Scalar,
    /// The local data share.
    Local,
    /// Loads from and stores to memory.
    Memory,
}

/// All units.
pub const ENGINES: [Engine; 5] = [Engine::Matrix, Engine::Vector, Engine::Scalar, Engine::Local, Engine::Memory];

impl Engine {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Matrix => "matrix",
            Engine::Vector => "vector",
            Engine::Scalar => "scalar",
            Engine::Local => "local data share",
            Engine::Memory => "vector memory",
        }
    }

    /// Whether each SIMD unit has one, so that it works only for the waves there.
    #[must_use]
    pub const fn is_of_simd(self) -> bool {
        match self {
            Engine::Matrix | Engine::Vector | Engine::Scalar => true,
            Engine::Local | Engine::Memory => false,
        }
    }
}

/// The unit that an instruction of a wave occupies, and for how many clocks; of the local data share, without conflicts.
#[must_use]
pub fn occupies(inst: &Inst) -> Option<(Engine, u64)> {
    occupied(inst.row(), inst.form())
}

/// The same for an instruction by its row and its encoding.
#[must_use]
pub fn occupied(row: &Row, form: Form) -> Option<(Engine, u64)> {
    Some(match row.unit {
        Unit::Xdl | Unit::Sgemm | Unit::Dgemm => (Engine::Matrix, 4 * u64::from(row.passes)),
        Unit::Trans => (Engine::Vector, 16),
        Unit::Valu | Unit::Dot => {
            let quarter = matches!(row.name, "v_mul_lo_u32" | "v_mul_hi_u32" | "v_mul_hi_i32");
            (Engine::Vector, if quarter { 16 } else { 4 })
        }
        Unit::Salu | Unit::Smem => (Engine::Scalar, 4),
        Unit::Lds => (Engine::Local, (64 * bytes(row, form)).div_ceil(128)),
        Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds => (Engine::Memory, bytes(row, form)),
        Unit::Cache | Unit::Branch | Unit::Control => return None,
    })
}

/// The bytes that a lane loads or stores, whatever is more, and at least a word. Data are the operands that may be accumulation registers.
fn bytes(row: &Row, form: Form) -> u64 {
    let args = row.args_in(form);
    let of = |writes: bool| -> u64 {
        let data =
            args.as_slice().iter().filter(|arg| arg.class == Class::Va && (arg.access == Access::Write) == writes);
        data.map(|arg| u64::from(arg.ty.bits()) / 8).sum()
    };
    of(true).max(of(false)).max(4)
}
