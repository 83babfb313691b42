//! Tables of instructions, with one row for each form.
//!
//! A table is keyed by the operation of the lane IR (`(IntBin::Add, Ty::B32)`), so that instruction selection is a look-up, and
//! a key without a row is an error that names it. `cites` is the title of the section in the PTX ISA manual; the
//! instruction's own page in it gives the version and the target.
//!
//! | file | manual |
//! |---|---|
//! | [`control`] | control flow, moves, selection |
//! | [`int`] | integer and logic instructions, comparisons |
//! | [`float`] | floating point, half precision |
//! | [`convert`] | `cvt` |
//! | [`memory`] | `ld`, `st`, `atom`, `cp.async` |
//! | [`sync`] | `bar`, `mbarrier`, accesses with acquire or release |
//! | [`warp`] | `shfl`, `vote`, `ldmatrix`, `mma` |
//! | [`group`] | `wgmma`, `setmaxnreg`, bulk copies and their fences |
//!
//! Deliberately absent: forms that nothing emits yet.

pub mod control;
pub mod convert;
pub mod float;
pub mod group;
pub mod int;
pub mod memory;
pub mod sync;
pub mod warp;

use crate::machine::{Feature, Machine};
use titan_core::lane::{Space, Ty};

/// The kind of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A register that is written.
    Out(Ty),
    /// A register that is read.
    In(Ty),
    /// A register that is read, or an integer constant.
    Int(Ty),
    /// A register that is read, or a float constant.
    Float(Ty),
    /// Registers in braces that are written.
    Outs(Ty, u8),
    /// Registers in braces that are read.
    Ins(Ty, u8),
    /// A constant.
    Const,
    /// An address.
    Memory(Space),
    /// A parameter's address.
    Param,
    /// The address of a parameter, by its name.
    ParamName,
    /// A box of a tensor: the address of a tensor map, and this number of coordinates.
    Box(u8),
    /// A special register.
    Special,
    /// The address of the dynamic shared memory.
    SharedBase,
    /// A label.
    Target,
}

/// An instruction with all its modifiers: a row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The opcode with its modifiers, as PTX writes it.
    pub text: &'static str,
    /// The kinds of its operands.
    pub slots: &'static [Slot],
    /// The title of its section in the PTX ISA manual.
    pub cites: &'static str,
    /// The lowest PTX version that has it, times ten.
    pub ptx: u32,
    /// The lowest compute capability that has it, times ten.
    pub sm: u32,
    /// A feature that the target must have besides, if newer targets may lack it.
    pub needs: Option<Feature>,
}

impl Form {
    /// Whether a machine has the instruction.
    #[must_use]
    pub fn is_of(&self, machine: &Machine) -> bool {
        machine.capability >= self.sm && self.needs.is_none_or(|feature| machine.has(feature))
    }
}

/// Makes a row. Versions below 7.0 and targets below `sm_80` are given as in the manual, though every target here is above.
const fn form(text: &'static str, slots: &'static [Slot], cites: &'static str, ptx: u32, sm: u32) -> Form {
    Form { text, slots, cites, ptx, sm, needs: None }
}

/// Makes a row for an instruction that only some targets have.
const fn special(text: &'static str, slots: &'static [Slot], cites: &'static str, ptx: u32, needs: Feature) -> Form {
    Form { text, slots, cites, ptx, sm: 90, needs: Some(needs) }
}

/// The row with this key.
pub(crate) fn find<K: PartialEq>(table: &'static [(K, Form)], key: &K) -> Option<&'static Form> {
    table.iter().find(|(k, _)| k == key).map(|(_, form)| form)
}

/// All rows of all tables, for tests and readers.
#[must_use]
pub fn all() -> Vec<&'static Form> {
    let mut rows = control::all();
    rows.extend(int::all());
    rows.extend(float::all());
    rows.extend(convert::all());
    rows.extend(memory::all());
    rows.extend(sync::all());
    rows.extend(warp::all());
    rows.extend(group::all());
    rows
}
