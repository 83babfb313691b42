//! The syntax tree of a PTX module, with names resolved: variables, kernels, and instructions as opcode parts and operands.
//!
//! The meaning of instructions is determined later, in `decode`; here an instruction is still its words.

use super::error::{Site, Source};
use super::ty::{Space, Ty};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A module.
#[derive(Clone, Debug)]
pub(crate) struct Ast {
    pub(crate) text: Arc<str>,
    /// The version of the `.version` directive: major, minor.
    pub(crate) version: (u32, u32),
    pub(crate) target: String,
    pub(crate) files: BTreeMap<u64, String>,
    /// The variables of the module.
    pub(crate) vars: Vec<Var>,
    pub(crate) entries: Vec<Entry>,
}

/// A variable.
#[derive(Clone, Debug)]
pub(crate) struct Var {
    pub(crate) name: String,
    pub(crate) space: Space,
    pub(crate) align: u32,
    /// The size in bytes; `None` for an array whose size the launch gives.
    pub(crate) size: Option<u32>,
    pub(crate) init: Init,
}

/// The initial bytes of a variable; the bytes that follow are zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct Init {
    pub(crate) bytes: Vec<u8>,
    /// Addresses to insert: offset in the bytes, variable, addend.
    pub(crate) addresses: Vec<(usize, String, i64)>,
}

/// A parameter of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub(crate) name: String,
    /// The size in bytes.
    pub(crate) size: u32,
    /// The offset from the start of all parameters, in bytes.
    pub(crate) offset: u32,
    /// Whether it is declared as an array of bytes, for a structure.
    pub(crate) is_array: bool,
}

/// A kernel.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) params: Vec<Param>,
    /// `.reqntid`: the required extents of the block.
    pub(crate) required: Option<[u32; 3]>,
    /// `.maxntid`: the largest extents of the block; only their product limits a launch.
    pub(crate) max: Option<[u32; 3]>,
    /// `.reqnctapercluster`: the extents of the cluster, in blocks.
    pub(crate) cluster: Option<[u32; 3]>,
    /// `.explicitcluster`: a launch must give the cluster's extents.
    pub(crate) explicit_cluster: bool,
    /// `.maxnreg`: the largest number of registers of a thread.
    pub(crate) max_registers: Option<u32>,
    pub(crate) regs: Vec<Reg>,
    /// The variables declared inside the kernel. In `.param` space they are arguments and results of calls.
    pub(crate) vars: Vec<Var>,
    pub(crate) code: Vec<Instr>,
    pub(crate) locs: Vec<Loc>,
}

impl Entry {
    /// A kernel without code.
    pub(crate) fn new(name: String, params: Vec<Param>) -> Entry {
        Entry {
            name,
            params,
            required: None,
            max: None,
            cluster: None,
            explicit_cluster: false,
            max_registers: None,
            regs: Vec::new(),
            vars: Vec::new(),
            code: Vec::new(),
            locs: Vec::new(),
        }
    }
}

/// A register.
#[derive(Clone, Debug)]
pub(crate) struct Reg {
    pub(crate) name: String,
    pub(crate) ty: Ty,
}

/// A place in a source file, and the call site if it was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loc {
    pub(crate) file: u64,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) inlined_at: Option<(u64, u32, u32)>,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Instr {
    /// The predicate register, and whether it is negated.
    pub(crate) guard: Option<(usize, bool)>,
    /// The opcode and its modifiers, without dots.
    pub(crate) parts: Vec<String>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) line: u32,
    /// The first and the end position of the instruction in the text.
    pub(crate) span: (usize, usize),
    /// The index of its source location in `Entry::locs`.
    pub(crate) loc: Option<usize>,
}

/// The entity that a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Reg(usize),
    Param(usize),
    /// A variable of the kernel.
    Local(usize),
    /// A variable of the module.
    Global(usize),
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    Reg(usize),
    /// `!p`
    Not(usize),
    /// A special register, by name.
    Special(String),
    Int(i128),
    F32(u32),
    F64(u64),
    /// The address of a variable or parameter, plus an offset.
    Address(Name, i64),
    /// `[base + offset]`
    Mem(Base, i64),
    /// `[base, {..}]` and other forms that only unsupported instructions have.
    MemList(Vec<Operand>),
    Vector(Vec<Operand>),
    /// `a|b`
    Pair(Box<Operand>, Box<Operand>),
    /// `_`
    Sink,
    /// A label, as a position in `Entry::code`.
    Label(usize),
    /// Branch targets, as positions in `Entry::code`.
    Targets(Vec<usize>),
    /// A function, by name.
    Function(String),
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Reg(usize),
    Name(Name),
    Zero,
}

impl Ast {
    /// The place of an instruction, for error messages.
    pub(crate) fn site(&self, entry: &Entry, instr: &Instr) -> Site {
        let text = self.text.get(instr.span.0..instr.span.1).unwrap_or_default();
        let instruction = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let file = |f: u64| self.files.get(&f).cloned().unwrap_or_else(|| format!("<file {f}>"));
        let mut sources = Vec::new();
        if let Some(loc) = instr.loc.and_then(|l| entry.locs.get(l)) {
            sources.push(Source { file: file(loc.file), line: loc.line, column: loc.column });
            sources.extend(loc.inlined_at.map(|(f, line, column)| Source { file: file(f), line, column }));
        }
        Site { line: instr.line, instruction, sources }
    }
}
