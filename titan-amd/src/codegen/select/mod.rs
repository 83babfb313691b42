//! Selection: lane IR becomes machine IR on virtual registers.
//!
//! | module | part |
//! |---|---|
//! | `table` | the operations, each with the function that selects its instructions |
//! | `emit` | instructions with operands that their encodings allow |
//! | `control`, `loops`, `leave` | structured control flow as blocks, branches and masks of active lanes |
//! | `int`, `wide`, `divide` | integers of 32 and of 64 bits, quotients |
//! | `extreme` | minima and maxima of many numbers |
//! | `float`, `root`, `convert`, `bfloat`, `long` | floats, quotients and square roots, conversions, those to `bf16` and of 64-bit integers |
//! | `known` | values that are constants, although loops carry them |
//! | `uses` | the operations that read each value |
//! | `words` | indices, selection, packing |
//! | `memory`, `atomic`, `swap` | loads, stores, atomic updates, compare-and-swap of 16 bits |
//! | `buffer` | loads from buffers, which are bounded |
//! | `exchange` | shuffles, votes, barriers |
//! | `matrix`, `tuples` | matrix instructions, accumulators as consecutive registers |
//!
//! # Where values are
//!
//! | value | place |
//! |---|---|
//! | constant | nowhere: it is an operand |
//! | the same in all lanes of a wave, and computed from such values by scalar instructions | scalar registers |
//! | condition | a mask in two scalar registers, one bit for each lane; bits of lanes that are not active mean nothing |
//! | all others | vector registers |
//!
//! A value of 16 bits is in the lower half of a register, and the upper half means nothing. Where an operation takes scalar operands
//! only, a vector register that is known to be the same in all lanes is read from the first active lane.
//!
//! # Active lanes
//!
//! At least one lane is active wherever code is executed, except between the instructions of one masked memory operation: arms and
//! loops without lanes are jumped over. So a value that is the same in all lanes is one that an active lane has computed, scalar code has a
//! defined result, and loops with uniform bounds end.
//!
//! Deliberately absent: order of instructions (they are in the order of the lane IR), sharing of equal constants,
//! stores to buffers. Operations that only other machines have are errors.

mod atomic;
mod bfloat;
mod buffer;
mod control;
mod convert;
mod divide;
mod emit;
mod exchange;
mod extreme;
mod float;
mod int;
mod known;
mod leave;
mod long;
mod loops;
mod matrix;
mod memory;
mod root;
mod swap;
mod table;
mod tuples;
mod uses;
mod wide;
mod words;

use super::error::{Done, Fault};
use super::machine_ir::{Block, BlockData, Code, File, Inst, Kind, Operand, Part, Reg, Register};
use crate::isa::Operand as Isa;
use control::Frame;
pub use matrix::matrix_row;
use std::collections::BTreeMap;
use titan_core::ir::Loc;
use titan_core::lane::uniform::{self, Level, Uniformity};
use titan_core::lane::{Block as Region, Func, Op, Ty, Value};
use titan_core::launch::abi;
use tuples::Tuples;
use uses::Uses;

/// The address of the arguments, at the start of the kernel: LLVM, "Initial Kernel Execution State".
pub(crate) const KERNARG: Isa = Isa::S(0, 2);
/// The scalar registers that the kernel starts with: the address of its arguments, and the index of the workgroup.
pub(crate) const FIXED_SCALARS: u8 = 5;
/// The vector registers that the kernel starts with: the number of the work item.
pub(crate) const FIXED_VECTORS: u8 = 1;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// In scalar registers.
    S(Part),
    /// In vector registers.
    V(Part),
    /// A condition: a mask in two scalar registers.
    Mask(Part),
    /// A constant.
    Bits(u64),
}

/// A source of an instruction, before the encoding determines how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Src {
    S(Part),
    V(Part),
    Bits(u64),
    /// A register of the machine.
    Isa(Isa),
}

impl Src {
    /// One word of it.
    pub(super) fn word(self, n: u8) -> Src {
        match self {
            Src::S(part) => Src::S(part.word(n)),
            Src::V(part) => Src::V(part.word(n)),
            Src::Bits(bits) => Src::Bits(bits >> (32 * u32::from(n)) & 0xffff_ffff),
            Src::Isa(Isa::S(code, _)) => Src::Isa(Isa::S(code + n, 1)),
            Src::Isa(Isa::V(code, _)) => Src::Isa(Isa::V(code + n, 1)),
            Src::Isa(other) => Src::Isa(other),
        }
    }

    pub(super) fn halves(self) -> [Src; 2] {
        [self.word(0), self.word(1)]
    }
}

/// The code of a kernel, and what it needs from its launch.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    pub(crate) code: Code,
    /// Whether it reads the extents of the grid, which the runtime appends to the parameter block.
    pub(crate) reads_grid: bool,
    /// Whether blocks behind the end replace the NaNs of conversions.
    pub(crate) guarded: bool,
}

/// Selects the instructions of a function. `guards` says whether several conversions may be guarded by one comparison.
pub(crate) fn select(func: &Func, target: &'static str, guards: bool) -> Result<Selected, Fault> {
    let (offsets, bytes) = abi::offsets(&func.slots);
    let uses = Uses::of(func);
    let mut select = Select {
        func,
        target,
        uniform: uniform::analyze(func),
        known: known::constants(func),
        code: Code::default(),
        block: Block::new(0),
        depth: 0,
        loc: Loc::default(),
        spots: vec![None; func.values.len()],
        frames: Vec::new(),
        end: Block::new(0),
        offsets,
        grid_at: bytes.next_multiple_of(8),
        reads_grid: false,
        tuples: Tuples::of(func),
        region: func.body,
        accumulators: Vec::new(),
        made: Vec::new(),
        kept: Vec::new(),
        row_of_loads: None,
        gathering: Vec::new(),
        placed: Vec::new(),
        joined: extreme::joined(func, &uses),
        uses,
        guards,
        numbers: BTreeMap::new(),
        uppers: BTreeMap::new(),
        outside: Vec::new(),
        partners: Vec::new(),
    };
    select.end = select.new_block();
    let entry = select.new_block();
    select.place(entry);
    select.partners()?;
    if select.block(func.body)? {
        return Err(Fault::Defect("a function ends in a `return`".to_owned()));
    }
    let end = select.end;
    select.depth = 0;
    select.place(end);
    select.row("s_endpgm", &[])?;
    let guarded = !select.outside.is_empty();
    select.code.order.append(&mut select.outside);
    Ok(Selected { code: select.code, reads_grid: select.reads_grid, guarded })
}

/// The offset of the extents of the grid in the arguments.
pub(crate) fn grid_offset(func: &Func) -> usize {
    abi::offsets(&func.slots).1.next_multiple_of(8)
}

pub(super) struct Select<'a> {
    func: &'a Func,
    target: &'static str,
    uniform: Uniformity,
    /// The values that are constants.
    known: Vec<Option<u64>>,
    code: Code,
    /// The block to which instructions are added.
    block: Block,
    depth: u32,
    loc: Loc,
    spots: Vec<Option<Spot>>,
    frames: Vec<Frame>,
    /// The block that ends the wave.
    end: Block,
    /// The offsets of the words of the parameter block.
    offsets: Vec<usize>,
    grid_at: usize,
    reads_grid: bool,
    /// The values that are consecutive registers.
    tuples: Tuples,
    /// The region whose operations are selected.
    region: Region,
    /// The registers that hold nothing but accumulators.
    accumulators: Vec<Reg>,
    /// The operands that were gathered in tuples, with the regions in which they were.
    made: Vec<(Region, Vec<Value>, Part)>,
    /// Constants in scalar registers, with the regions in which they were made.
    kept: Vec<(Region, u64, Part)>,
    /// The masked loads at the end of the current block.
    row_of_loads: Option<memory::Loads>,
    /// The tuples of accumulators whose elements operations write one by one, by the number of their list.
    gathering: Vec<(usize, Part)>,
    /// The values that are there.
    placed: Vec<Value>,
    uses: Uses,
    /// Of each value, whether it is an extreme that is computed together with another one.
    joined: Vec<bool>,
    /// Whether several conversions may be guarded by one comparison.
    guards: bool,
    /// The operands of conversions to `bf16` of which it is known whether they need no test for NaN.
    numbers: BTreeMap<Value, bool>,
    /// The registers whose upper halves are values of 16 bits.
    uppers: BTreeMap<Value, Part>,
    /// Blocks that are executed seldom, and are placed behind all others.
    outside: Vec<Block>,
    /// For each distance across 32 lanes, four times the number of the lane at that distance.
    partners: Vec<(u32, Part)>,
}

impl Select<'_> {
    /// A new block, which is not placed yet.
    fn new_block(&mut self) -> Block {
        let block = Block::new(self.code.blocks.len());
        self.code.blocks.push(BlockData::default());
        block
    }

    /// Places a block after all others, and continues in it.
    fn place(&mut self, block: Block) {
        self.code.order.push(block);
        self.code.blocks[block.index()].depth = self.depth;
        self.block = block;
    }

    /// A new register.
    fn fresh(&mut self, file: File, words: u8) -> Part {
        self.register(file, words, false)
    }

    /// A new register that is written by parts or in several places, whose lifetime starts here.
    fn pieces(&mut self, file: File, words: u8) -> Part {
        let part = self.register(file, words, true);
        self.begin(part);
        part
    }

    /// The start of the lifetime of a register that is written by parts or in several places.
    fn begin(&mut self, part: Part) {
        self.push(Inst { kind: Kind::Start, operands: vec![part.into()], loc: self.loc, added: false });
    }

    fn register(&mut self, file: File, words: u8, pieces: bool) -> Part {
        let reg = Reg::new(self.code.registers.len());
        // LLVM, "Register classes": vector tuples begin at even numbers, scalar ones at a multiple of their size up to 4.
        let align = match file {
            File::S => words.next_power_of_two().min(4),
            File::V | File::A => words.min(2),
        };
        self.code.registers.push(Register { file, words, align, pieces });
        Part { reg, first: 0, words }
    }

    fn push(&mut self, inst: Inst) {
        self.code.blocks[self.block.index()].insts.push(inst);
    }

    /// The number of words of a value in registers.
    fn words(&self, value: Value) -> u8 {
        if self.func.ty(value) == Ty::B64 { 2 } else { 1 }
    }

    /// The bits of a value that is a constant.
    fn constant(&self, value: Value) -> Option<u64> {
        self.func.constant(value).or_else(|| self.known.get(value.index()).copied().flatten())
    }

    fn spot(&self, value: Value) -> Result<Spot, Fault> {
        if let Some(bits) = self.constant(value) {
            return Ok(Spot::Bits(bits));
        }
        self.spots[value.index()].ok_or_else(|| Fault::Defect(format!("{value} is read before it is there")))
    }

    /// A value as a source; a condition is its mask.
    fn src(&self, value: Value) -> Result<Src, Fault> {
        Ok(match self.spot(value)? {
            Spot::S(part) | Spot::Mask(part) => Src::S(part),
            Spot::V(part) => Src::V(part),
            Spot::Bits(bits) if self.func.ty(value) == Ty::Pred => Src::Bits(if bits == 0 { 0 } else { u64::MAX }),
            Spot::Bits(bits) => Src::Bits(bits),
        })
    }

    fn srcs<const N: usize>(&self, values: [Value; N]) -> Result<[Src; N], Fault> {
        let mut all = [Src::Bits(0); N];
        for (src, value) in all.iter_mut().zip(values) {
            *src = self.src(value)?;
        }
        Ok(all)
    }

    fn set(&mut self, value: Value, spot: Spot) {
        self.spots[value.index()] = Some(spot);
    }

    /// Sets a value to what a source is.
    fn set_src(&mut self, value: Value, src: Src) -> Done {
        let spot = match src {
            Src::S(part) => Spot::S(part),
            Src::V(part) => Spot::V(part),
            Src::Bits(bits) => Spot::Bits(bits),
            Src::Isa(_) => return Err(Fault::Defect("a value in a register of the machine".to_owned())),
        };
        self.set(value, spot);
        Ok(())
    }

    /// A new vector register for a result.
    fn out_v(&mut self, value: Value) -> Part {
        let part = self.fresh(File::V, self.words(value));
        self.set(value, Spot::V(part));
        part
    }

    /// A new scalar register for a result.
    fn out_s(&mut self, value: Value) -> Part {
        let part = self.fresh(File::S, self.words(value));
        self.set(value, Spot::S(part));
        part
    }

    /// A new register of pieces for a result of two words.
    fn out_pieces(&mut self, value: Value, file: File) -> Part {
        let part = self.pieces(file, self.words(value));
        self.set(value, if file == File::S { Spot::S(part) } else { Spot::V(part) });
        part
    }

    /// A new mask for a condition.
    fn out_mask(&mut self, value: Value) -> Part {
        let part = self.fresh(File::S, 2);
        self.set(value, Spot::Mask(part));
        part
    }

    /// Whether a value is the same in all lanes of a wave.
    fn is_uniform(&self, value: Value) -> bool {
        self.uniform.level(value) <= Level::Warp
    }

    /// Whether an operation can be done by scalar instructions: its result is uniform, and its operands are in scalar registers.
    fn is_scalar(&self, op: &Op) -> Result<bool, Fault> {
        if !op.results.iter().all(|v| self.is_uniform(*v)) {
            return Ok(false);
        }
        for arg in &op.args {
            if matches!(self.spot(*arg)?, Spot::V(_)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The mask of all active lanes.
    const EXEC: Operand = Operand::Isa(Isa::EXEC);
}
