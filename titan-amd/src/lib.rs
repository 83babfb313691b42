//! TITAN for AMD GPUs.
//!
//! Contents: [`Machine`], the properties of each architecture, one row per target, each row citing the manual it was taken from; [`isa`],
//! the tables of gfx942's instructions, from which they are encoded, decoded, printed and parsed; [`codegen`], the code generator;
//! [`object`], the code objects that AMD's loaders accept; [`model`], the clocks for which a loop occupies the units of a compute unit; `emu`, an emulator of their bytes (a feature); `runtime`, the HIP runtime, loaded
//! if it is installed (a feature). [`Machine`] is a back end of [`titan_core::driver`].
//!
//! Deliberately absent, so far: copies from global memory to the local data share without registers, and an order of instructions other than that of
//! the lane IR.
//!
//! Never to be used: LLVM, or code objects made from templates.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

pub mod codegen;
#[cfg(feature = "emu")]
pub mod emu;
pub mod isa;
pub mod machine;
pub mod model;
pub mod object;
#[cfg(feature = "runtime")]
pub mod runtime;

pub use machine::{Fp8, Machine, UnknownMachine};

use titan_core::driver::{Backend, Code};
use titan_core::lane::Func;
use titan_core::plan::LowerError;
use titan_core::target::{Banks, Target};

impl Backend for Machine {
    fn target(&self) -> Target {
        // Loads to LDS and the times of units come with pipelines. Its conversions of 8-bit floats are those of another format than the
        // language's (FNUZ), so that they are none of the machine's.
        Target {
            max_warps: self.threads_per_group / self.wave_size,
            named_barriers: self.named_barriers,
            dies: self.dies,
            registers: self.arch_vgprs,
            registers_per_sm: self.vgprs_per_simd * self.simds_per_cu * self.wave_size,
            warps_per_sm: self.waves_per_simd * self.simds_per_cu,
            shared_bytes: self.lds_bytes,
            shared_classes: vec![self.lds_bytes],
            shared_reserved: 0,
            // CDNA3 ISA, "Local Data Share": 32 banks of a dword. Which lanes of a wide access are served together is not documented; that they
            // follow each other is assumed.
            banks: Banks { count: 32, width: 4, orders: Vec::new() },
            atoms: machine::atoms(self),
            // ISA §4.4: loads return in order, and `s_waitcnt` waits for some of them.
            fetches: true,
            // ISA §9.1.5.1: offsets outside of a buffer give zeros.
            bounded_loads: true,
            keeps_order: true,
            ..Target::plain(self.name, self.wave_size)
        }
    }

    fn generates_code(&self) -> bool {
        true
    }

    fn emit(&self, func: &Func, _: Option<(&str, u32)>) -> Result<Code, LowerError> {
        let emitted = codegen::emit(func, self).map_err(|error| error.into_lower_error(func))?;
        let [sgprs, vgprs, agprs] = emitted.registers.map(|n| n.to_string());
        // What does not fit in registers of one kind is kept in those of another, never in memory.
        let scratch = "0".to_owned();
        let registers = [("sgprs", sgprs), ("vgprs", vgprs), ("agprs", agprs), ("scratch", scratch)];
        let mut config = vec![("entry".to_owned(), emitted.entry)];
        config.extend(registers.map(|(name, value)| (name.to_owned(), value)));
        Ok(Code { payload: emitted.object, config })
    }
}
