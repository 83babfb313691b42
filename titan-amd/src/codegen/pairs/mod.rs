//! Arithmetic on two `f32` by one instruction: `v_pk_mul_f32`, `v_pk_add_f32` and `v_pk_fma_f32` (ISA §6.7, "Packed Math").
//!
//! ```text
//! v_mul_f32 %1.0, %1.0, %2
//! v_mul_f32 %1.1, %1.1, %2        ─▶    v_pk_mul_f32 %1.0:1, %1.0:1, %4.0:1 op_sel_hi:[1,0]
//! ```
//!
//! A packed instruction reads and writes adjacent registers, the first of which has an even number. Two operations are packed if their
//! operands are such words of a tuple, if they are the same (then one word of a pair is read twice), or if they are registers of their own,
//! which become the two words of a new register. Two searches find them: operations on adjacent words of a tuple, which are the
//! elements of an accumulator (`find`), and sums of the same form, which are those of two rows (`trees`).
//!
//! The second operation moves up to the first. **Why it may:** each of its operands is defined above the first one, nothing in
//! between writes these, reads or writes its result, or changes the active lanes.
//!
//! Each result is the one of the single instruction: both round once, to nearest even, and keep subnormal numbers (ISA §12.10).
//!
//! A word in a scalar register is copied to both words of a pair where it is defined, if that is outside of the loop.
//!
//! Deliberately absent: other operands in scalar registers, constants, differences.

mod apply;
mod find;
mod trees;

use super::machine_ir::{Block, Code, File, Inst, Kind, Operand, Part, Reg};
use crate::isa::{Access, Form, Operand as Isa};
use std::collections::BTreeMap;

/// The place of an instruction in a block.
type At = usize;

/// Where a register is defined.
#[derive(Clone, Debug, Default)]
struct Defs {
    /// The instructions that define it, without the start of its lifetime.
    by: Vec<(Block, At)>,
    /// The starts of its lifetime.
    starts: Vec<(Block, At)>,
    /// How often it is read.
    reads: u32,
}

/// How a packed instruction reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// Two adjacent words.
    Both(Part),
    /// One of two adjacent words, twice.
    One(Part, u8),
    /// Two registers, which become a pair.
    Pair(Reg, Reg),
    /// One register, which becomes a word of a pair.
    Twice(Reg),
    /// A word in scalar registers, which is copied to both words of a pair where it is defined: outside of the loop.
    Scalar(Part),
}

/// Two operations that become one instruction.
#[derive(Clone, Debug)]
struct Pack {
    block: Block,
    first: At,
    second: At,
    sources: Vec<Source>,
    /// The result: words of a tuple, or two registers that become a pair.
    to: Source,
}

/// What is known and decided about some code.
struct Pairs<'a> {
    code: &'a Code,
    defs: Vec<Defs>,
    packs: Vec<Pack>,
    /// The instructions that are packed, with the place of the packed one.
    packed: BTreeMap<(Block, At), At>,
    /// The registers that are words of a pair: its number, and which word.
    merged: BTreeMap<Reg, (usize, u8)>,
    pairs: Vec<[Reg; 2]>,
    /// Registers that are read twice by one instruction, and have no pair yet.
    single: Vec<Reg>,
}

/// Packs operations of some code.
pub(crate) fn pack(code: &Code) -> Code {
    let mut pairs = Pairs {
        code,
        defs: definitions(code),
        packs: Vec::new(),
        packed: BTreeMap::new(),
        merged: BTreeMap::new(),
        pairs: Vec::new(),
        single: Vec::new(),
    };
    for block in &code.order {
        find::adjacent(&mut pairs, *block);
        trees::sums(&mut pairs, *block);
    }
    if pairs.packs.is_empty() { code.clone() } else { apply::apply(pairs) }
}

/// The packed instruction for an operation.
fn packed_name(inst: &Inst) -> Option<&'static str> {
    let Kind::Row { row, form, mods } = &inst.kind else { return None };
    let plain = mods.is_empty() && matches!(form, Form::Base | Form::E64);
    match row.name {
        "v_mul_f32" if plain => Some("v_pk_mul_f32"),
        "v_add_f32" if plain => Some("v_pk_add_f32"),
        "v_fma_f32" if plain => Some("v_pk_fma_f32"),
        _ => None,
    }
}

fn definitions(code: &Code) -> Vec<Defs> {
    let mut defs = vec![Defs::default(); code.registers.len()];
    for block in &code.order {
        for (at, inst) in code.insts(*block).iter().enumerate() {
            for (access, operand) in inst.accesses() {
                let Operand::Part(part) = operand else { continue };
                let of = &mut defs[part.reg.index()];
                if access != Access::Write {
                    of.reads += 1;
                }
                if access != Access::Read {
                    let list = if inst.kind == Kind::Start { &mut of.starts } else { &mut of.by };
                    list.push((*block, at));
                }
            }
        }
    }
    defs
}

/// Whether an instruction changes which lanes are active.
fn changes_lanes(inst: &Inst) -> bool {
    inst.name().contains("saveexec")
        || inst.accesses().any(|(access, operand)| access != Access::Read && *operand == Operand::Isa(Isa::EXEC))
}

impl Pairs<'_> {
    fn inst(&self, block: Block, at: At) -> &Inst {
        &self.code.insts(block)[at]
    }

    /// Where the lifetime of a register of one word starts that may become a word of a pair: its one definition, or its one start.
    fn home(&self, reg: Reg) -> Option<(Block, At)> {
        let (register, defs) = (self.code.register(reg), &self.defs[reg.index()]);
        if register.file != File::V || register.words != 1 {
            return None;
        }
        let list = if register.pieces { &defs.starts } else { &defs.by };
        match list.as_slice() {
            [home] => Some(*home),
            [] | [_, _, ..] => None,
        }
    }

    /// Whether two registers are, or may become, the words of a pair in this order.
    fn may_pair(&self, a: Reg, b: Reg) -> bool {
        let (Some((home, _)), Some((other, _))) = (self.home(a), self.home(b)) else { return false };
        match (self.merged.get(&a), self.merged.get(&b)) {
            (Some((pair, 0)), Some((of, 1))) => pair == of,
            (None, None) => a != b && home == other && !self.single.contains(&a) && !self.single.contains(&b),
            (_, _) => false,
        }
    }

    fn merge(&mut self, a: Reg, b: Reg) {
        if self.merged.contains_key(&a) {
            return;
        }
        let pair = self.pairs.len();
        self.pairs.push([a, b]);
        self.merged.insert(a, (pair, 0));
        self.merged.insert(b, (pair, 1));
    }

    /// How one instruction of a block reads what two read.
    fn source(&self, block: Block, a: &Operand, b: &Operand) -> Option<Source> {
        let (Operand::Part(a), Operand::Part(b)) = (a, b) else { return None };
        if a == b && self.is_outer_scalar(block, *a) {
            return Some(Source::Scalar(*a));
        }
        let register = self.code.register(a.reg);
        let vector = |part: &Part| self.code.register(part.reg).file == File::V && part.words == 1;
        if !vector(a) || !vector(b) {
            return None;
        }
        if a.reg != b.reg {
            return self.may_pair(a.reg, b.reg).then_some(Source::Pair(a.reg, b.reg));
        }
        let low = Part { first: a.first & !1, words: 2, ..*a };
        if register.words > 1 {
            let fits = low.first + 1 < register.words && register.align.is_multiple_of(2);
            return match (b.first.checked_sub(a.first), a.first & 1) {
                (Some(1), 0) if fits => Some(Source::Both(low)),
                (Some(0), word) if fits => Some(Source::One(low, word)),
                (_, _) => None,
            };
        }
        let once = !register.pieces && self.home(a.reg).is_some();
        (once || self.merged.contains_key(&a.reg)).then_some(Source::Twice(a.reg))
    }

    /// Whether a word is in a scalar register that one instruction defines, which is executed less often than a block.
    fn is_outer_scalar(&self, block: Block, part: Part) -> bool {
        let (register, defs) = (self.code.register(part.reg), &self.defs[part.reg.index()]);
        let depth = |block: Block| self.code.blocks[block.index()].depth;
        let outer = matches!(defs.by.as_slice(), [(home, _)] if depth(*home) < depth(block));
        outer && register.file == File::S && !register.pieces && part.words == 1
    }

    /// Two operations as one, if they may be.
    fn candidate(&self, block: Block, first: At, second: At) -> Option<Pack> {
        let free = |at: At| !self.packed.contains_key(&(block, at));
        let (a, b) = (self.inst(block, first), self.inst(block, second));
        if !free(first) || !free(second) || a.name() != b.name() || packed_name(b)? != packed_name(a)? {
            return None;
        }
        let ([to, from @ ..], [other, others @ ..]) = (a.operands.as_slice(), b.operands.as_slice()) else {
            return None;
        };
        let to = match self.source(block, to, other)? {
            Source::Pair(a, b) if !self.code.register(a).pieces && !self.code.register(b).pieces => Source::Pair(a, b),
            Source::Both(part) => Source::Both(part),
            Source::Pair(..) | Source::One(..) | Source::Twice(_) | Source::Scalar(_) => return None,
        };
        let sources: Vec<Source> =
            from.iter().zip(others).map(|(a, b)| self.source(block, a, b)).collect::<Option<_>>()?;
        let own: Vec<Reg> = sources.iter().flat_map(|source| source.registers()).collect();
        // A register is one word of one pair.
        let twice = |i: usize| own[..i].contains(&own[i]) && !self.merged.contains_key(&own[i]);
        if (0..own.len()).any(twice) || to.registers().iter().any(|reg| own.contains(reg)) {
            return None;
        }
        self.may_move(block, first, second).then_some(Pack { block, first, second, sources, to })
    }

    /// Whether an operation may move up to another one.
    fn may_move(&self, block: Block, first: At, second: At) -> bool {
        let between = first + 1..second;
        if between.clone().any(|at| changes_lanes(self.inst(block, at))) {
            return false;
        }
        // An instruction that was packed is where the first one of its pack is.
        let above = |at: At| self.packed.get(&(block, at)).copied().unwrap_or(at) < first;
        let inst = self.inst(block, second);
        inst.accesses().all(|(access, operand)| {
            let Operand::Part(part) = operand else { return true };
            let touches = |at: At| {
                self.inst(block, at).accesses().any(|(other, operand)| {
                    let overlap = matches!(operand, Operand::Part(p) if p.reg == part.reg
                        && p.first < part.first + part.words && part.first < p.first + p.words);
                    overlap && (access != Access::Read || other != Access::Read)
                })
            };
            // The first one reads before it writes: it may read the result of the second one, and write no operand of it.
            let written = |at: At| {
                let mut all = self.inst(block, at).accesses();
                all.any(|(other, operand)| other != Access::Read && *operand == Operand::Part(*part))
            };
            !between.clone().filter(|at| !above(*at)).any(touches) && (access != Access::Read || !written(first))
        })
    }

    /// Decides for a pack.
    fn add(&mut self, pack: Pack) {
        for source in pack.sources.iter().chain([&pack.to]) {
            match *source {
                Source::Pair(a, b) => self.merge(a, b),
                Source::Twice(reg) if !self.merged.contains_key(&reg) && !self.single.contains(&reg) => {
                    self.single.push(reg);
                }
                Source::Twice(_) | Source::Both(_) | Source::One(..) | Source::Scalar(_) => {}
            }
        }
        self.packed.insert((pack.block, pack.first), pack.first);
        self.packed.insert((pack.block, pack.second), pack.first);
        self.packs.push(pack);
    }
}

impl Source {
    /// The registers that it makes words of pairs.
    fn registers(self) -> Vec<Reg> {
        match self {
            Source::Both(_) | Source::One(..) | Source::Scalar(_) => Vec::new(),
            Source::Pair(a, b) => vec![a, b],
            Source::Twice(reg) => vec![reg],
        }
    }
}
