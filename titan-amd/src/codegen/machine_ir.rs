//! Machine IR: the instructions of one kernel, before and after registers are allocated.
//!
//! An instruction is a row of the tables of [`crate::isa`], an encoding of it, its operands in the order of the text, its modifiers, and
//! the line of the user that it implements. Operands are virtual registers, or operands of the tables themselves. The same data
//! describe the code after allocation: then every register is one of the machine.
//!
//! A function is a list of blocks in the order in which they are emitted. A block ends in at most one branch, and control falls
//! through to the next block unless that branch is unconditional. Branches by a condition have the block after as their other way.
//!
//! # Registers
//!
//! A virtual register is a number of consecutive words in one file. A definition writes all of its words, in all lanes that read it
//! afterwards; most have one. Those that are written by parts, or in several places by different lanes ([`Register::pieces`]), keep what a
//! definition does not write: other words, and other lanes. Their lifetime begins with [`Kind::Start`], which is no instruction.
//!
//! The rule about lanes: code is linear, so that the arms of a divergent branch are executed one after the other. The paths of this
//! graph are the ones that a wave takes, and lifetimes are computed on them. A register with one definition is defined by a
//! wave at most once in an iteration of the loop around it, and no other lane needs its previous contents then; so its definition begins
//! its lifetime, though not all lanes are active. The same holds for what a loop carries whose lanes stay together, and for the result of
//! a branch that the whole wave takes. A definition of a register of pieces does not begin one.
//!
//! Deliberately absent: SSA form and phi nodes (carried values are registers of pieces), and calls.

use crate::isa::{Access, Field, Form, Operand as Isa, Row};
use std::fmt;
use titan_core::ir::Loc;

titan_core::entity!(
    /// A virtual register.
    Reg, "%"
);
titan_core::entity!(
    /// A block of instructions.
    Block, "b"
);

/// A register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum File {
    /// Scalar registers: one value for a wave.
    S,
    /// Vector registers: one value for each lane.
    V,
    /// Accumulation registers, which also hold spilled vector registers.
    A,
}

/// The properties of a virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The file.
    pub file: File,
    /// The number of words, 1 to 32.
    pub words: u8,
    /// The number of the first word is a multiple of this.
    pub align: u8,
    /// Whether it is written by parts, or in several places by different lanes.
    pub pieces: bool,
}

/// Consecutive words of a virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The register.
    pub reg: Reg,
    /// The first word.
    pub first: u8,
    /// The number of words.
    pub words: u8,
}

impl Part {
    /// One word of it.
    #[must_use]
    pub const fn word(self, n: u8) -> Part {
        Part { first: self.first + n, words: 1, ..self }
    }

    /// Some consecutive words of it.
    #[must_use]
    pub const fn slice(self, first: u8, words: u8) -> Part {
        Part { first: self.first + first, words, ..self }
    }
}

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Words of a virtual register.
    Part(Part),
    /// A register of the machine, a constant, an immediate.
    Isa(Isa),
    /// The target of a branch.
    To(Block),
}

impl From<Part> for Operand {
    fn from(part: Part) -> Operand {
        Operand::Part(part)
    }
}

impl From<Isa> for Operand {
    fn from(operand: Isa) -> Operand {
        Operand::Isa(operand)
    }
}

/// What an instruction is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An instruction of the machine.
    Row {
        /// The row of the tables.
        row: &'static Row,
        /// The encoding.
        form: Form,
        /// The fields of modifiers that differ from their defaults.
        mods: Vec<(Field, u32)>,
    },
    /// The start of the lifetime of a register of pieces, whose contents are not defined yet. It emits nothing.
    Start,
    /// After allocation, the definition of a constant that is computed again before it is read. It has no operands, and emits nothing.
    Rematerialized,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inst {
    /// What it is.
    pub kind: Kind,
    /// The operands, in the order of the row's.
    pub operands: Vec<Operand>,
    /// The location of the user's code that it implements.
    pub loc: Loc,
    /// Whether the allocation of registers added it.
    pub added: bool,
}

impl Inst {
    /// The mnemonic, without the suffix of an encoding.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.kind {
            Kind::Row { row, .. } => row.name,
            Kind::Start => "start",
            Kind::Rematerialized => "rematerialized",
        }
    }

    /// The operands with the access to them.
    pub fn accesses(&self) -> impl Iterator<Item = (Access, &Operand)> + '_ {
        let args = match &self.kind {
            Kind::Row { row, form, .. } => Some(row.args_in(*form)),
            Kind::Start | Kind::Rematerialized => None,
        };
        self.operands.iter().enumerate().filter_map(move |(number, operand)| {
            let access = match (&self.kind, &args) {
                (Kind::Row { .. }, args) => args.as_ref()?.as_slice().get(number)?.access,
                (Kind::Start, _) => Access::Write,
                (Kind::Rematerialized, _) => return None,
            };
            Some((access, operand))
        })
    }

    /// The block to which it branches.
    #[must_use]
    pub fn target(&self) -> Option<Block> {
        self.operands.iter().find_map(|operand| match operand {
            Operand::To(block) => Some(*block),
            Operand::Part(_) | Operand::Isa(_) => None,
        })
    }

    /// Whether control never reaches the instruction after it.
    #[must_use]
    pub fn ends(&self) -> bool {
        matches!(self.name(), "s_branch" | "s_endpgm")
    }
}

/// The data of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockData {
    /// The instructions.
    pub insts: Vec<Inst>,
    /// The number of loops around it.
    pub depth: u32,
}

/// The code of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    /// The virtual registers.
    pub registers: Vec<Register>,
    /// The blocks, by number.
    pub blocks: Vec<BlockData>,
    /// The numbers of the blocks in the order in which they are emitted; the first one is the entry.
    pub order: Vec<Block>,
}

/// The place of an instruction, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The block.
    pub block: Block,
    /// The number of the instruction in it.
    pub index: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {} of {}", self.index, self.block)
    }
}

impl Code {
    /// The properties of a register.
    #[must_use]
    pub fn register(&self, reg: Reg) -> Register {
        self.registers[reg.index()]
    }

    /// The instructions of a block.
    #[must_use]
    pub fn insts(&self, block: Block) -> &[Inst] {
        &self.blocks[block.index()].insts
    }

    /// The blocks that control reaches from the end of the block at a position of the order.
    #[must_use]
    pub fn successors(&self, position: usize) -> Vec<Block> {
        let Some(block) = self.order.get(position) else { return Vec::new() };
        let last = self.insts(*block).last();
        let next = self.order.get(position + 1).copied().filter(|_| !last.is_some_and(Inst::ends));
        last.and_then(Inst::target).into_iter().chain(next).collect()
    }

    /// The blocks from which control reaches each block, by the number of the block.
    #[must_use]
    pub fn predecessors(&self) -> Vec<Vec<Block>> {
        let mut all = vec![Vec::new(); self.blocks.len()];
        for (position, block) in self.order.iter().enumerate() {
            for next in self.successors(position) {
                all[next.index()].push(*block);
            }
        }
        all
    }

    /// The number of instructions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.iter().map(|b| self.insts(*b).len()).sum()
    }

    /// Whether there are no instructions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
