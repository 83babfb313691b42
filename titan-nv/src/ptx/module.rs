//! The parts of a PTX program.

use super::isa::Form;
use titan_core::lane::{Space, Ty};

/// A virtual register. Its class is a width: PTX lets every instruction read an untyped register of the right size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reg {
    /// The class of the register.
    pub class: Ty,
    /// The number of the register in its class.
    pub number: u32,
}

/// A position in the kernel to which branches refer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Special {
    /// The thread's number in the program, along the one axis in use.
    ThreadId,
    /// The program's index along an axis.
    ProgramId(u8),
    /// The grid's extent along an axis.
    NumPrograms(u8),
}

/// The base of an address.
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
    /// The offset in bytes.
    pub offset: i32,
}

/// An operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// A vector of registers, written in braces.
    Regs(Vec<Reg>),
    /// A constant with these bits; the slot of the form determines how it is written.
    Const(u64),
    /// An address.
    Address(Address),
    /// A special register.
    Special(Special),
    /// The address of the dynamic shared memory.
    SharedBase,
    /// A parameter's name.
    Param(u32),
    /// A box of a tensor: the address of its tensor map, and coordinates, the fastest axis first.
    Box(Reg, Vec<Reg>),
    /// The target of a branch.
    Label(Label),
}

/// The condition under which an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate register.
    pub reg: Reg,
    /// Whether it is inverted.
    pub negated: bool,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    /// The guard of the instruction.
    pub guard: Option<Guard>,
    /// The form of the instruction: a row of [`super::isa`].
    pub form: &'static Form,
    /// The operands, as many as the form has slots.
    pub operands: Vec<Operand>,
}

/// A line of a kernel's body.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A label.
    Label(Label),
    /// An instruction.
    Inst(Inst),
    /// A source location, of the code that follows, in the module's file.
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
    /// The size in bytes: 4 or 8, or 128 for a tensor map, which is aligned to 64.
    pub bytes: usize,
    /// A comment for readers.
    pub comment: String,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The symbol by which the driver finds it.
    pub name: String,
    /// Its parameters, named `p0`, `p1`, … in the text.
    pub params: Vec<Param>,
    /// The number of threads of a program, along one axis.
    pub threads: u32,
    /// The number of programs of a cluster, along axis 0; 1 without clusters.
    pub cluster: u32,
    /// The number of registers of each class in the body, in the order of [`Ty::ALL`].
    pub registers: [u32; 4],
    /// The lines of the body.
    pub body: Vec<Line>,
}

impl Entry {
    /// The instructions, in order.
    pub fn instructions(&self) -> impl Iterator<Item = &Inst> {
        self.body.iter().filter_map(|line| match line {
            Line::Inst(inst) => Some(inst),
            Line::Label(_) | Line::Loc { .. } => None,
        })
    }
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct Module {
    /// The PTX version, times ten.
    pub version: u32,
    /// The target: `sm_90a`.
    pub target: &'static str,
    /// The kernel's name in the user's program, for readers.
    pub comment: String,
    /// The file that [`Line::Loc`] refers to.
    pub file: Option<String>,
    /// Whether the kernel uses dynamic shared memory.
    pub shared: bool,
    /// The kernel.
    pub entry: Entry,
    /// The kernel that makes the tensor maps of its tables, if it has tables.
    pub maker: Option<Entry>,
}

impl Module {
    /// The kernels, in order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        std::iter::once(&self.entry).chain(&self.maker)
    }

    /// The instructions of all kernels, in order.
    pub fn instructions(&self) -> impl Iterator<Item = &Inst> {
        self.entries().flat_map(Entry::instructions)
    }
}

impl Base {
    /// The memory space of the base, if the base alone determines it.
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
