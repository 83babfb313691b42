//! MMAs on fragments in registers, by matrix instructions or multiply-adds.

use super::fragment::{canonical, words_of};
use super::tile::{LoweredValue, register_index};
use super::{Lower, LowerError, Reg, scalar};
use crate::ir::{BinOp, Elem, Op, Value};
use crate::lane::{self, MmaAtom};
use crate::layout::Layout;
use crate::layout::atoms::Atom;

impl Lower<'_> {
    /// Computes `a · b + acc`, with A as `[M, K]` and B as `[K, N]`.
    pub(super) fn mma(&mut self, op: &Op) -> Result<(), LowerError> {
        let [a, b, acc] = op.args[..] else { return Err(self.defect("an MMA without operands")) };
        let layouts = (self.layout(a), self.layout(b).permuted(&[1, 0]), self.layout(acc));
        let elems = [a, b, acc].map(|v| self.k.ty(v).elem());
        let mut acc = self.regs(acc);
        if layouts.0.lanes_along(1).is_empty() {
            self.by_mul_add([a, b], &layouts.2, elems[0], &mut acc);
        } else {
            let Some(atom) = self.atom_of(elems, &layouts.2) else {
                return Err(self.defect("fragments of no matrix instruction"));
            };
            let a = self.fragment_words(a, &layouts.0, elems[0]);
            let b = self.fragment_words(b, &layouts.1, elems[1]);
            self.by_atom(&atom, [&a, &b], &layouts.2, &mut acc);
        }
        self.define(op.results[0], LoweredValue::Tile(acc));
        Ok(())
    }

    /// The matrix instruction for these elements whose accumulator has this layout.
    fn atom_of(&self, elems: [Elem; 3], acc: &Layout) -> Option<MmaAtom> {
        let own =
            |atom: &&Atom| atom.acc.lanes == acc.lane_bits() && acc.register_bits().starts_with(&atom.acc.registers);
        self.target.atoms_of(elems).find(own).map(|atom| atom.mma)
    }

    /// The words of an operand for one step of K: for each repetition along its rows, the words of its instructions.
    fn fragment_words(&mut self, value: Value, layout: &Layout, elem: Elem) -> Vec<Reg> {
        if let Some(LoweredValue::Packed(words)) = &self.lowered[value.index()] {
            return words.clone();
        }
        let regs = self.regs(value);
        let own = self.layout(value);
        let regs = if own == *layout {
            regs
        } else {
            // `permuted` changes the order of repetitions of the atom.
            self.reorder(&regs, &own, layout, &|at| [at[1], at[0], 0, 0])
        };
        let per_word = (32 / elem.bits()).max(1) as usize;
        words_of(layout, per_word).into_iter().map(|w| self.word_of(&regs[w..][..per_word], elem)).collect()
    }

    fn by_atom(&mut self, atom: &MmaAtom, [a, b]: [&[Reg]; 2], layout: &Layout, acc: &mut [Reg]) {
        let [rows, columns, ..] = layout.repetitions().map(|n| n as usize);
        let count = atom.registers(self.target.lanes);
        // A fragment has the words of one instruction, then those of the next one along K.
        let (wide_a, wide_b) = (a.len() / rows, b.len() / columns);
        for step in 0..wide_a / count.a.max(1) {
            for row in 0..rows {
                for column in 0..columns {
                    let at = (row * columns + column) * count.c;
                    let mut args = a[row * wide_a + step * count.a..][..count.a].to_vec();
                    args.extend_from_slice(&b[column * wide_b + step * count.b..][..count.b]);
                    args.extend_from_slice(&acc[at..][..count.c]);
                    let out = self.b.op(lane::OpKind::Mma(*atom), &args);
                    acc[at..][..count.c].copy_from_slice(&out);
                }
            }
        }
    }

    fn by_mul_add(&mut self, [a, b]: [Value; 2], layout: &Layout, elem: Elem, acc: &mut [Reg]) {
        let (rows, columns) = (self.regs(a), self.regs(b));
        let (row, column) = (register_index(&self.layout(a)), register_index(&self.layout(b)));
        let k = self.k.ty(a).tile_shape().map_or(0, |s| s.last().copied().unwrap_or(0));
        let k = u32::try_from(k).unwrap_or(0);
        for (at, r) in register_index(layout) {
            for step in 0..k {
                let x = row.get(&[at[0], step, 0, 0]).and_then(|i| rows.get(*i)).copied();
                let y = column.get(&[step, at[1], 0, 0]).and_then(|i| columns.get(*i)).copied();
                let (x, y) = (x.unwrap_or_else(|| self.missing()), y.unwrap_or_else(|| self.missing()));
                acc[r] = self.mul_add_step(elem, x, y, acc[r]);
            }
        }
    }

    fn mul_add_step(&mut self, elem: Elem, x: Reg, y: Reg, z: Reg) -> Reg {
        let target = self.target;
        if elem.is_float() {
            return scalar::mul_add(&mut self.b, target, elem, x, y, z);
        }
        let xy = scalar::binary(&mut self.b, target, BinOp::Mul, elem, x, y);
        scalar::binary(&mut self.b, target, BinOp::Add, elem, xy, z)
    }

    /// The elements of a tile that is held in packed words.
    pub(super) fn unpacked(&mut self, value: Value, words: &[Reg]) -> Vec<Reg> {
        let (own, elem) = (self.layout(value), self.k.ty(value).elem());
        let Some((layout, _)) = canonical(&own, elem) else {
            self.b.fail(format!("{value} is held in words, but is no fragment"));
            return Vec::new();
        };
        let per_word = (32 / elem.bits()).max(1) as usize;
        let mut regs = vec![words[0]; layout.registers()];
        for (first, word) in words_of(&layout, per_word).into_iter().zip(words) {
            let parts = if per_word == 1 { vec![*word] } else { self.parts_of(*word, elem) };
            for (i, part) in parts.into_iter().enumerate() {
                regs[first + i] = part;
            }
        }
        if layout == own { regs } else { self.reorder(&regs, &layout, &own, &|at| [at[1], at[0], 0, 0]) }
    }

    /// The elements of a word, the lowest first.
    fn parts_of(&mut self, word: Reg, elem: Elem) -> Vec<Reg> {
        if elem.bits() == 16 {
            return self.b.op(lane::OpKind::Unpack, &[word]);
        }
        self.b.op(lane::OpKind::UnpackBytes { signed: elem.is_signed_int() }, &[word])
    }
}
