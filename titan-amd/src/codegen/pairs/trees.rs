//! Sums of the same form: of two rows, or of the halves of one.
//!
//! A sum is a tree of additions, of which each but the last is read by nothing but the next one. Two trees of one form are packed node by node.
//!
//! **Example.** `(a0 + a1) + (a2 + a3)` and `(b0 + b1) + (b2 + b3)` become three packed additions of the pairs `(a0, b0)`, `(a1, b1)` and so on.

use super::{At, Pairs};
use crate::codegen::machine_ir::{Block, Operand};
use std::collections::BTreeMap;

/// The least number of additions of a tree.
const LEAST: usize = 3;

/// A tree: the place of its last addition, and those of its operands that are additions of their own.
#[derive(Clone, Debug)]
struct Tree {
    at: At,
    parts: [Option<Box<Tree>>; 2],
}

impl Tree {
    fn size(&self) -> usize {
        1 + self.parts.iter().flatten().map(|part| part.size()).sum::<usize>()
    }

    fn is_like(&self, other: &Tree) -> bool {
        self.parts.iter().zip(&other.parts).all(|parts| match parts {
            (Some(a), Some(b)) => a.is_like(b),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        })
    }
}

/// Packs the sums of a block.
pub(super) fn sums(pairs: &mut Pairs<'_>, block: Block) {
    let mut open: Option<Tree> = None;
    for tree in trees(pairs, block) {
        match open.take() {
            Some(other) if other.is_like(&tree) => together(pairs, block, &other, &tree),
            Some(other) => {
                halves(pairs, block, &other);
                open = Some(tree);
            }
            None => open = Some(tree),
        }
    }
    if let Some(tree) = open {
        halves(pairs, block, &tree);
    }
}

/// The trees of a block that are no parts of others, in order.
fn trees(pairs: &Pairs<'_>, block: Block) -> Vec<Tree> {
    // The trees whose last additions define registers that one other instruction reads.
    let mut known: BTreeMap<At, Tree> = BTreeMap::new();
    for (at, inst) in pairs.code.insts(block).iter().enumerate() {
        let ([Operand::Part(to), a, b], "v_add_f32") = (inst.operands.as_slice(), inst.name()) else { continue };
        if super::packed_name(inst).is_none() || pairs.packed.contains_key(&(block, at)) || pairs.home(to.reg).is_none()
        {
            continue;
        }
        let parts = [a, b].map(|operand| {
            let Operand::Part(part) = operand else { return None };
            let defs = &pairs.defs[part.reg.index()];
            let (of, by) = defs.by.first().filter(|_| defs.by.len() == 1 && defs.reads == 1)?;
            if *of == block { known.remove(by).map(Box::new) } else { None }
        });
        known.insert(at, Tree { at, parts });
    }
    known.into_values().filter(|tree| tree.size() >= LEAST).collect()
}

fn together(pairs: &mut Pairs<'_>, block: Block, a: &Tree, b: &Tree) {
    for parts in a.parts.iter().zip(&b.parts) {
        if let (Some(a), Some(b)) = parts {
            together(pairs, block, a, b);
        }
    }
    if let Some(pack) = pairs.candidate(block, a.at.min(b.at), a.at.max(b.at)) {
        pairs.add(pack);
    }
}

/// Packs the halves of a sum.
fn halves(pairs: &mut Pairs<'_>, block: Block, tree: &Tree) {
    match &tree.parts {
        [Some(a), Some(b)] if a.is_like(b) => together(pairs, block, a, b),
        parts => parts.iter().flatten().for_each(|part| halves(pairs, block, part)),
    }
}
