//! Operations on adjacent words of tuples.

use super::{Pairs, packed_name};
use crate::codegen::machine_ir::{Block, Operand};

/// The number of instructions among which the second operation is sought.
const WINDOW: usize = 8;

/// Packs operations of which an operand or the result is an even word of a tuple with those on the next word.
pub(super) fn adjacent(pairs: &mut Pairs<'_>, block: Block) {
    let count = pairs.code.insts(block).len();
    for first in 0..count {
        let inst = pairs.inst(block, first);
        let is_even = |operand: &Operand| match operand {
            Operand::Part(part) => pairs.code.register(part.reg).words > 1 && part.first.is_multiple_of(2),
            Operand::Isa(_) | Operand::To(_) => false,
        };
        if packed_name(inst).is_none() || !inst.operands.iter().any(is_even) {
            continue;
        }
        let found = (first + 1..count.min(first + WINDOW)).find_map(|second| pairs.candidate(block, first, second));
        if let Some(pack) = found.filter(super::Pack::is_adjacent) {
            pairs.add(pack);
        }
    }
}

impl super::Pack {
    /// Whether it reads or writes adjacent words that are there already.
    fn is_adjacent(&self) -> bool {
        self.sources.iter().chain([&self.to]).any(|source| matches!(source, super::Source::Both(_)))
    }
}
