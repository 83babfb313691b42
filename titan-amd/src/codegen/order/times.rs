//! How long an instruction occupies its unit, and when others may use its result.

use crate::codegen::machine_ir::{File, Inst, Kind, Operand};
use crate::isa::{Access, Form, Unit};
use crate::model::issue::{ISSUE, Sharing, returns};
use crate::model::units::{Engine, occupied};

/// What matters about an instruction when it is issued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// The unit, and for how many clocks all waves that share it occupy it in turn.
    pub(super) engine: Option<(Engine, u64)>,
    /// The clocks from its service to its data, of an access that is waited for.
    pub(super) latency: Option<u64>,
    unit: Unit,
    passes: u64,
    /// Whether it writes a scalar register, or reads lanes.
    scalar_result: bool,
    lanes: bool,
    across: bool,
}

/// The unit of what is no instruction of the machine.
const NONE: Work = Work {
    engine: None,
    latency: None,
    unit: Unit::Control,
    passes: 0,
    scalar_result: false,
    lanes: false,
    across: false,
};

const fn is_vector(unit: Unit) -> bool {
    matches!(unit, Unit::Valu | Unit::Trans | Unit::Dot)
}

const fn is_matrix(unit: Unit) -> bool {
    matches!(unit, Unit::Xdl | Unit::Sgemm | Unit::Dgemm)
}

impl Work {
    pub(super) fn of(registers: impl Fn(&Operand) -> Option<File>, inst: &Inst, sharing: Sharing) -> Work {
        let Kind::Row { row, form, .. } = &inst.kind else { return NONE };
        let engine = occupied(row, *form).map(|(engine, clocks)| (engine, sharing.in_turn(engine, clocks)));
        let scalar_result = inst
            .accesses()
            .any(|(access, operand)| access != Access::Read && registers(operand).is_none_or(|file| file == File::S));
        Work {
            engine,
            latency: returns(row.unit).map(|(_, clocks)| clocks),
            unit: row.unit,
            passes: row.passes.into(),
            scalar_result,
            lanes: matches!(row.name, "v_readlane_b32" | "v_readfirstlane_b32"),
            across: *form == Form::Dpp,
        }
    }

    /// Whether it is vector arithmetic with a result in scalar registers.
    pub(super) const fn sets_mask(&self) -> bool {
        is_vector(self.unit) && self.scalar_result
    }

    /// The clocks from the issue of an instruction to that of another one that reads its result. Accesses are waited for otherwise.
    pub(super) const fn until(&self, reader: &Work) -> u64 {
        if is_matrix(self.unit) && is_matrix(reader.unit) { ISSUE * self.passes } else { ISSUE }
    }

    /// The wait states between them, which other instructions may fill: those of `hazards` that matter for loops.
    pub(super) const fn states(&self, reader: &Work) -> u64 {
        if is_matrix(self.unit) {
            return if is_matrix(reader.unit) { 0 } else { self.passes + 3 };
        }
        if !is_vector(self.unit) {
            return 0;
        }
        if self.scalar_result {
            return match reader.unit {
                Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds => 5,
                Unit::Valu | Unit::Trans | Unit::Dot if reader.lanes => 4,
                Unit::Valu | Unit::Trans | Unit::Dot => 2,
                Unit::Salu
                | Unit::Smem
                | Unit::Xdl
                | Unit::Sgemm
                | Unit::Dgemm
                | Unit::Cache
                | Unit::Lds
                | Unit::Branch
                | Unit::Control => 0,
            };
        }
        if is_matrix(reader.unit) || reader.across {
            return 2;
        }
        let is_after = matches!(self.unit, Unit::Trans) && matches!(reader.unit, Unit::Valu | Unit::Dot);
        if reader.lanes || is_after { 1 } else { 0 }
    }
}
