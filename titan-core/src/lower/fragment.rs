//! Fragments of matrix instructions: words of neighbours along K, from registers or shared memory.

use super::product::Operand;
use super::tile::Staged;
use super::{Lower, LowerError, Reg};
use crate::ir::Elem;
use crate::lane;
use crate::layout::{Bit, Coords, Layout};

impl Lower<'_> {
    /// The words of an operand for one step of K: all repetitions of its rows, each with the words of one instruction.
    pub(super) fn fragments(
        &mut self,
        operand: &Operand,
        layout: &Layout,
        elem: Elem,
        step: u32,
    ) -> Result<Vec<Reg>, LowerError> {
        let per_word = (32 / elem.bits()).max(1) as usize;
        let words = words_of(layout, step, per_word);
        match operand {
            Operand::Fragments(regs) => Ok(words.iter().map(|w| self.word_of(&regs[*w..][..per_word], elem)).collect()),
            Operand::Staged(staged) => {
                self.settle_copies();
                self.touch(staged.region(), false);
                let parts: Vec<Coords> = words.iter().map(|w| layout.register_coords(*w)).collect();
                let straight = staged.encoding.fast_axis() == 1 && elem.bits() <= 32;
                let turned = staged.encoding.fast_axis() == 0 && elem.bits() == 16;
                let chunks = staged.encoding.vector() * staged.encoding.bits >= 128;
                if self.plan.target.load_matrix && self.plan.target.lanes == 32 && chunks && (straight || turned) {
                    return Ok(self.load_matrices(staged, layout, &parts, turned));
                }
                Ok(parts.iter().map(|p| self.load_word(staged, layout, *p, elem, per_word)).collect())
            }
        }
    }

    fn word_of(&mut self, regs: &[Reg], elem: Elem) -> Reg {
        match (elem.bits(), regs) {
            (32 | 64, [one]) => *one,
            (8, parts) | (16, parts) => self.b.one(lane::OpKind::Pack, parts),
            _ => self.missing(),
        }
    }

    /// A word element by element.
    fn load_word(&mut self, staged: &Staged, layout: &Layout, part: Coords, elem: Elem, n: usize) -> Reg {
        let thread = [self.thread_coord(layout, 0), self.thread_coord(layout, 1)];
        let reach = super::convert::reach(layout);
        let mut regs = Vec::new();
        for i in 0..n {
            let at = [part[0], part[1] + u32::try_from(i).unwrap_or(0), 0, 0];
            let place = self.buffer_place(staged, &thread, reach, at);
            let raw = super::convert::in_buffer(elem);
            regs.push(self.load_vector(place, raw, 1, None)[0]);
        }
        self.word_of(&regs, elem)
    }

    /// Words by matrix loads: four, two or one 8×8 matrix at a time.
    fn load_matrices(&mut self, staged: &Staged, layout: &Layout, parts: &[Coords], turned: bool) -> Vec<Reg> {
        let mut out = Vec::new();
        let mut rest = parts;
        while let Some(first) = rest.first() {
            let n = match rest {
                [a, b, c, d, ..] if is_grid(*a, *b, *c, *d) => 4,
                [_, _, ..] => 2,
                _ => 1,
            };
            let steps =
                [difference(*first, rest.get(1).copied(), n > 1), difference(*first, rest.get(2).copied(), n > 2)];
            let group = Group { first: *first, steps, n: u8::try_from(n).unwrap_or(1), turned };
            out.extend(self.load_some(staged, layout, &group));
            rest = &rest[n..];
        }
        out
    }

    /// `n` matrices: the second is `steps[0]` from the first, the third and fourth `steps[1]` from the first two.
    fn load_some(&mut self, staged: &Staged, layout: &Layout, group: &Group) -> Vec<Reg> {
        let Group { first: part, steps, n, turned } = *group;
        let lane = self.b.one(lane::OpKind::LaneId, &[]);
        let warp = self.warp_number();
        let seven = self.b.i32(7);
        let row = self.b.and(lane, seven);
        let one = self.b.i32(1);
        let mut thread = Vec::new();
        let mut reach = Coords::default();
        for axis in 0..2 {
            // Rows of a matrix lie along the rows, or, where it is transposed, along K.
            let own = usize::from(turned) == axis;
            let mut at = self.number_coord(layout.warp_bits(), warp, axis);
            reach[axis] = warp_reach(layout, axis) + if own { 7 } else { 0 };
            if own {
                at = self.b.add(at, row);
            }
            for (bit, step) in [(3, steps[0][axis]), (4, steps[1][axis])] {
                if step > 0 {
                    let bit = self.b.i32(bit);
                    let which = self.b.int(lane::IntBin::ShrU, lane, bit);
                    let which = self.b.and(which, one);
                    let step_reg = self.b.i32(step.cast_signed());
                    let skip = self.b.mul(which, step_reg);
                    at = self.b.add(at, skip);
                    reach[axis] += step;
                }
            }
            thread.push(at);
        }
        let place = self.buffer_place(staged, &thread, reach, part);
        let kind = lane::OpKind::LoadMatrix { n, transposed: turned, offset: place.offset };
        self.b.op(kind, &[place.address])
    }
}

/// Matrices that are loaded at once.
struct Group {
    /// Where the first is.
    first: Coords,
    /// From the first to the second, and from the first two to the others.
    steps: [Coords; 2],
    n: u8,
    turned: bool,
}

/// The first registers of the words of a step of K.
fn words_of(layout: &Layout, step: u32, per_word: usize) -> Vec<usize> {
    let [rows, steps, ..] = layout.repetitions();
    let each = 1usize << layout.register_bits().len();
    (0..rows as usize)
        .flat_map(|row| {
            let first = (row * steps as usize + step as usize) * each;
            (0..each).step_by(per_word).map(move |i| first + i)
        })
        .collect()
}

/// Whether four places are the corners of a box, none before the first.
fn is_grid(a: Coords, b: Coords, c: Coords, d: Coords) -> bool {
    (0..2).all(|i| b[i] >= a[i] && c[i] >= a[i] && b[i] + c[i] == a[i] + d[i])
}

fn difference(a: Coords, b: Option<Coords>, wanted: bool) -> Coords {
    let mut out = Coords::default();
    if let Some(b) = b.filter(|_| wanted) {
        for i in 0..4 {
            out[i] = b[i].saturating_sub(a[i]);
        }
    }
    out
}

fn warp_reach(layout: &Layout, axis: usize) -> u32 {
    let step = |bit: &Bit| match bit {
        Bit::Step { axis: own, by } if usize::from(*own) == axis => *by,
        Bit::Step { .. } | Bit::Copy => 0,
    };
    layout.warp_bits().iter().map(step).sum()
}
