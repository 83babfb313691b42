//! The code with packed instructions and pairs.

use super::{Pack, Pairs, Source, packed_name};
use crate::codegen::machine_ir::{Block, Code, File, Inst, Kind, Operand, Part, Reg, Register};
use crate::isa::{Field, Form};
use std::collections::{BTreeMap, BTreeSet};

/// What replaces registers, and what is added around the instructions that define them.
struct Names {
    /// The word that a register becomes.
    words: BTreeMap<Reg, Part>,
    /// The registers of pieces whose lifetimes start before an instruction.
    starts: BTreeMap<(Block, usize), Vec<Reg>>,
    /// The starts that are needless.
    without: BTreeSet<(Block, usize)>,
    /// The words that are copied to the other word of their pair behind an instruction.
    copies: BTreeMap<(Block, usize), Vec<[Part; 2]>>,
    /// The pairs for words in scalar registers.
    scalars: BTreeMap<Part, Part>,
}

/// Replaces what was decided.
pub(super) fn apply(mut pairs: Pairs<'_>) -> Code {
    pair_single(&mut pairs);
    let mut code = pairs.code.clone();
    let names = names(&pairs, &mut code);
    let firsts: BTreeMap<(Block, usize), &Pack> =
        pairs.packs.iter().map(|pack| ((pack.block, pack.first), pack)).collect();
    let seconds: BTreeSet<(Block, usize)> = pairs.packs.iter().map(|pack| (pack.block, pack.second)).collect();
    for block in pairs.code.order.clone() {
        let mut out = Vec::new();
        for (at, inst) in pairs.code.insts(block).iter().enumerate() {
            for reg in names.starts.get(&(block, at)).into_iter().flatten() {
                let part = Part { reg: *reg, first: 0, words: 2 };
                out.push(Inst { kind: Kind::Start, operands: vec![part.into()], loc: inst.loc, added: false });
            }
            if names.without.contains(&(block, at)) || seconds.contains(&(block, at)) {
                continue;
            }
            match firsts.get(&(block, at)).and_then(|pack| packed(pack, inst, &names)) {
                Some(packed) => out.push(packed),
                None => out.push(renamed(inst, &names)),
            }
            let copies = names.copies.get(&(block, at)).into_iter().flatten();
            out.extend(copies.filter_map(|[to, from]| copy(*to, *from, inst)));
        }
        code.blocks[block.index()].insts = out;
    }
    code
}

/// Makes pairs of the registers that are read twice by one instruction.
fn pair_single(pairs: &mut Pairs<'_>) {
    let single = std::mem::take(&mut pairs.single);
    let mut open: Vec<Reg> = Vec::new();
    for reg in single {
        if pairs.merged.contains_key(&reg) {
            continue;
        }
        match open.iter().position(|other| pairs.may_pair(*other, reg)) {
            Some(at) => {
                let other = open.remove(at);
                pairs.merge(other, reg);
            }
            None => open.push(reg),
        }
    }
    pairs.single = open;
}

fn names(pairs: &Pairs<'_>, code: &mut Code) -> Names {
    let (words, starts, without) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let (copies, scalars) = (BTreeMap::new(), BTreeMap::new());
    let mut names = Names { words, starts, without, copies, scalars };
    let whole: BTreeSet<Reg> = pairs.packs.iter().flat_map(|pack| pack.to.registers()).collect();
    let mut pair = |pieces: bool| {
        let reg = Reg::new(code.registers.len());
        code.registers.push(Register { file: File::V, words: 2, align: 2, pieces });
        Part { reg, first: 0, words: 2 }
    };
    for of in &pairs.pairs {
        // A packed instruction defines both words at once.
        let pieces = !whole.contains(&of[0]);
        let part = pair(pieces);
        let homes = of.map(|reg| pairs.home(reg));
        for (n, reg) in (0u8..).zip(of) {
            names.words.insert(*reg, part.word(n));
            if pairs.code.register(*reg).pieces {
                names.without.extend(pairs.home(*reg));
            }
        }
        if let ([Some(a), Some(b)], true) = (homes, pieces) {
            let place = |(block, at): (Block, usize)| pairs.packed.get(&(block, at)).copied().unwrap_or(at);
            names.starts.entry((a.0, place(a).min(place(b)))).or_default().push(part.reg);
        }
    }
    for reg in &pairs.single {
        let Some(home) = pairs.home(*reg) else { continue };
        let part = pair(true);
        names.words.insert(*reg, part.word(0));
        names.starts.entry(home).or_default().push(part.reg);
        names.copies.entry(home).or_default().push([part.word(1), part.word(0)]);
    }
    for source in pairs.packs.iter().flat_map(|pack| &pack.sources) {
        let Source::Scalar(word) = *source else { continue };
        let (false, [home]) = (names.scalars.contains_key(&word), pairs.defs[word.reg.index()].by.as_slice()) else {
            continue;
        };
        let part = pair(true);
        names.scalars.insert(word, part);
        names.starts.entry(*home).or_default().push(part.reg);
        names.copies.entry(*home).or_default().extend([[part.word(0), word], [part.word(1), word]]);
    }
    names
}

fn renamed(inst: &Inst, names: &Names) -> Inst {
    let mut inst = inst.clone();
    for operand in &mut inst.operands {
        if let Operand::Part(part) = operand
            && let Some(word) = names.words.get(&part.reg)
        {
            *operand = (*word).into();
        }
    }
    inst
}

/// A copy of a word.
fn copy(to: Part, from: Part, like: &Inst) -> Option<Inst> {
    let row = crate::isa::by_name("v_mov_b32").first()?;
    let kind = Kind::Row { row, form: Form::Base, mods: Vec::new() };
    Some(Inst { kind, operands: vec![to.into(), from.into()], loc: like.loc, added: false })
}

/// The instruction for two operations.
fn packed(pack: &Pack, inst: &Inst, names: &Names) -> Option<Inst> {
    let row = crate::isa::by_name(packed_name(inst)?).first()?;
    let pair = |reg: Reg| names.words.get(&reg).map(|word| Part { first: 0, words: 2, ..*word });
    let mut operands = Vec::new();
    // The words that are read for the first and for the second result, a bit for each operand: ISA §6.7, OP_SEL and OP_SEL_HI.
    let (mut low, mut high) = (0u32, 0u32);
    let sources = (0u32..).zip(&pack.sources);
    operands.push(match pack.to {
        Source::Both(part) => part,
        Source::Pair(a, _) => pair(a)?,
        Source::One(..) | Source::Twice(_) | Source::Scalar(_) => return None,
    });
    for (n, source) in sources {
        let (part, words) = match *source {
            Source::Both(part) => (part, [0, 1]),
            Source::One(part, word) => (part, [word, word]),
            Source::Pair(a, _) => (pair(a)?, [0, 1]),
            Source::Scalar(word) => (*names.scalars.get(&word)?, [0, 1]),
            Source::Twice(reg) => (pair(reg)?, [names.words.get(&reg)?.first; 2]),
        };
        operands.push(part);
        low |= u32::from(words[0]) << n;
        high |= u32::from(words[1]) << n;
    }
    // Operands that there are not have the default.
    high |= !0 << pack.sources.len() & 7;
    let mods = vec![(Field::OpSel, low), (Field::OpSelHi, high & 3), (Field::OpSelHi2, high >> 2)];
    let kind = Kind::Row { row, form: Form::Base, mods };
    Some(Inst { kind, operands: operands.into_iter().map(Operand::from).collect(), loc: inst.loc, added: inst.added })
}
