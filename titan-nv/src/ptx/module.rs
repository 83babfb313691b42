//! What a PTX program is made of.

use super::isa::Form;
use titan_core::lane::{Space, Ty};

/// A virtual register. Its class is a width: PTX lets every instruction read a register of bits of the right size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg {
    /// The class.
    pub class: Ty,
    /// The number in its class.
    pub number: u32,
}

/// A place in the kernel that branches name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// A register that the machine fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Special {
    /// The thread's number in the program, along the one axis in use.
    ThreadId,
    /// The program's index along an axis.
    ProgramId(u8),
    /// The grid's extent along an axis.
    NumPrograms(u8),
}

/// What an address counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Base {
    /// A register.
    Reg(Reg),
    /// The program's dynamic shared memory.
    Shared,
    /// A parameter of the kernel.
    Param(u32),
}

/// An address: `[base + offset]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The base.
    pub base: Base,
    /// Bytes beyond it.
    pub offset: i32,
}

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// Registers in braces.
    Regs(Vec<Reg>),
    /// A constant of these bits; the form's slot says how it is written.
    Const(u64),
    /// An address.
    Address(Address),
    /// A register of the machine.
    Special(Special),
    /// The address of the dynamic shared memory.
    SharedBase,
    /// A parameter's name.
    Param(u32),
    /// A box of a tensor: the address of its tensor map, and coordinates, the fastest axis first.
    Box(Reg, Vec<Reg>),
    /// Where to branch.
    Label(Label),
}

/// When an instruction takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The condition.
    pub reg: Reg,
    /// Whether it is inverted.
    pub negated: bool,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    /// Its condition.
    pub guard: Option<Guard>,
    /// What it is: a row of [`super::isa`].
    pub form: &'static Form,
    /// Operands, as many as the form has slots.
    pub operands: Vec<Operand>,
}

/// A line of a kernel's body.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A place.
    Label(Label),
    /// An instruction.
    Inst(Inst),
    /// What follows comes from this line and column of the module's file.
    Loc {
        /// The line, from 1.
        line: u32,
        /// The column, from 1.
        column: u32,
    },
}

/// A parameter of a kernel: one word, or a tensor map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Bytes: 4 or 8, or the 128 of a tensor map, on a multiple of 64.
    pub bytes: usize,
    /// What it is, for readers.
    pub comment: String,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The symbol that the driver finds it by.
    pub name: String,
    /// Its parameters, named `p0`, `p1`, … in the text.
    pub params: Vec<Param>,
    /// Threads of a program, along one axis.
    pub threads: u32,
    /// Programs of a cluster, along axis 0; 1 without clusters.
    pub cluster: u32,
    /// How many registers of each class the body names, in the order of [`Ty::ALL`].
    pub registers: [u32; 4],
    /// The body.
    pub body: Vec<Line>,
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The PTX version, times ten.
    pub version: u32,
    /// The target: `sm_90a`.
    pub target: &'static str,
    /// The kernel as the user wrote it, for readers.
    pub comment: String,
    /// The file that [`Line::Loc`] refers to.
    pub file: Option<String>,
    /// Whether the kernel uses dynamic shared memory.
    pub shared: bool,
    /// The kernel.
    pub entry: Entry,
}

impl Module {
    /// The instructions, in order.
    pub fn instructions(&self) -> impl Iterator<Item = &Inst> {
        self.entry.body.iter().filter_map(|line| match line {
            Line::Inst(inst) => Some(inst),
            Line::Label(_) | Line::Loc { .. } => None,
        })
    }
}

impl Base {
    /// The memory that the base is in, if the base alone determines it.
    #[must_use]
    pub const fn space(self) -> Option<Space> {
        match self {
            Base::Reg(reg) => match reg.class {
                Ty::B64 => Some(Space::Global),
                Ty::B32 => Some(Space::Shared),
                Ty::Pred | Ty::B16 => None,
            },
            Base::Shared => Some(Space::Shared),
            Base::Param(_) => None,
        }
    }
}
