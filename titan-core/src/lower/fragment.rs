//! Fragments of matrix instructions: words of adjacent elements along K, loaded from shared memory.

use super::tile::{LoweredValue, Staged};
use super::vector;
use super::{Lower, Reg};
use crate::ir::Elem;
use crate::lane;
use crate::layout::{Bit, Coords, Layout};
use crate::target::Place;

/// The layout of a fragment for one step of K, with rows first and K last, and whether that is the transpose of the given layout. `None` if
/// the lanes do not hold words in quads, as matrix moves return them.
pub(super) fn canonical(layout: &Layout, elem: Elem) -> Option<(Layout, bool)> {
    if layout.rank() != 2 || elem.bits() > 32 {
        return None;
    }
    let word = 32 / elem.bits();
    let step = |axis: u8, by: u32| Bit::Step { axis, by };
    [(layout.clone(), false), (layout.permuted(&[1, 0]), true)].into_iter().find(|(layout, _)| {
        let regs = layout.register_bits();
        let neighbours = (0..word.trailing_zeros()).all(|i| regs.get(i as usize) == Some(&step(1, 1 << i)));
        let lanes = [step(1, word), step(1, 2 * word), step(0, 1), step(0, 2), step(0, 4)];
        neighbours && layout.lane_bits() == lanes && layout.repetitions()[1] == 1
    })
}

/// Whether whole matrices can be loaded: the padding of the layout, which these loads access too, is inside of the tile in shared memory.
fn holds(staged: &Staged, layout: &Layout) -> bool {
    let (atom, times) = (layout.atom(), layout.repetitions());
    (0..2).all(|axis| {
        // A part at a computed offset is one of equal parts.
        let moved = staged.origin.moved.as_ref().is_some_and(|(moved, ..)| *moved == axis);
        let covered = staged.origin.at[axis] + atom[axis] * times[axis];
        moved || !layout.is_padded(axis) || covered <= staged.encoding.extents[axis]
    })
}

impl Lower<'_> {
    /// Loads a tile from shared memory, by matrix loads if the machine has them and the layout allows it.
    pub(super) fn load_local(&mut self, staged: &Staged, layout: &Layout, elem: Elem) -> LoweredValue {
        let chunks = staged.encoding.vector() * staged.encoding.bits >= 128;
        if self.target.matrix_move(Place::Registers).is_some()
            && chunks
            && let Some((rows_first, transposed)) = canonical(layout, elem)
        {
            let staged = if transposed { staged.transposed() } else { staged.clone() };
            let straight = staged.encoding.fast_axis() == 1;
            let turned = staged.encoding.fast_axis() == 0 && elem.bits() == 16;
            if (straight || turned) && holds(&staged, &rows_first) {
                self.touch(staged.region(), false);
                let per_word = (32 / elem.bits()).max(1) as usize;
                let words = words_of(&rows_first, per_word);
                let parts: Vec<Coords> = words.iter().map(|w| rows_first.register_coords(*w)).collect();
                return LoweredValue::Packed(self.load_matrices(&staged, &rows_first, &parts, turned));
            }
        }
        LoweredValue::Tile(self.read_buffer(staged, layout, elem))
    }

    pub(super) fn word_of(&mut self, regs: &[Reg], elem: Elem) -> Reg {
        match (elem.bits(), regs) {
            (32 | 64, [one]) => *one,
            (8, parts) | (16, parts) => self.b.one(lane::OpKind::Pack, parts),
            _ => self.missing(),
        }
    }

    /// Loads words by matrix loads of four, two or one 8×8 matrix at a time.
    fn load_matrices(&mut self, staged: &Staged, layout: &Layout, parts: &[Coords], turned: bool) -> Vec<Reg> {
        let mut out = Vec::new();
        let mut rest = parts;
        while !rest.is_empty() {
            let group = next_group(rest, turned);
            out.extend(self.load_some(staged, layout, &group));
            rest = &rest[usize::from(group.n)..];
        }
        out
    }

    /// Loads `n` matrices: the second is `steps[0]` from the first, and the third and fourth are `steps[1]` from the first two.
    fn load_some(&mut self, staged: &Staged, layout: &Layout, group: &Group) -> Vec<Reg> {
        let place = self.matrix_place(staged, layout, group);
        let kind =
            lane::OpKind::Nv(lane::NvOp::LoadMatrix { n: group.n, transposed: group.turned, offset: place.offset });
        self.b.op(kind, &[place.address])
    }

    /// Stores words of a tile in the layout of accumulators to shared memory by matrix stores. Returns false if the layout or the encoding
    /// does not allow it.
    pub(super) fn store_matrices(&mut self, staged: &Staged, regs: &[Reg], layout: &Layout, elem: Elem) -> bool {
        let chunks = staged.encoding.vector() * staged.encoding.bits >= 128;
        let copies = layout.lane_bits().iter().chain(layout.warp_bits()).any(|bit| *bit == Bit::Copy);
        let padded = (0..layout.rank()).any(|axis| layout.is_padded(axis));
        let pairs = layout.rank() == 2 && elem.bits() == 16 && has_rows_of_pairs(layout);
        let straight = staged.encoding.fast_axis() == 1;
        let moves = self.target.matrix_move(Place::Shared).is_some();
        if !moves || !chunks || copies || padded || !pairs || !straight {
            return false;
        }
        self.touch(staged.region(), true);
        let words: Vec<Coords> = words_of(layout, 2).iter().map(|word| layout.register_coords(*word)).collect();
        let (mut rest, mut own) = (&words[..], regs);
        while !rest.is_empty() {
            let group = next_group(rest, false);
            let place = self.matrix_place(staged, layout, &group);
            let mut args = vec![place.address];
            let n = usize::from(group.n);
            for word in own[..2 * n].chunks(2) {
                args.push(self.word_of(word, elem));
            }
            let kind =
                lane::OpKind::Nv(lane::NvOp::StoreMatrix { n: group.n, transposed: false, offset: place.offset });
            self.b.op(kind, &args);
            (rest, own) = (&rest[n..], &own[2 * n..]);
        }
        true
    }

    /// The address of the row that this lane provides for a matrix load or store.
    fn matrix_place(&mut self, staged: &Staged, layout: &Layout, group: &Group) -> vector::Place {
        let Group { first: part, steps, turned, .. } = *group;
        let lane = self.b.one(lane::OpKind::LaneId, &[]);
        let warp = self.warp_number();
        let seven = self.b.i32(7);
        let row = self.b.and(lane, seven);
        let one = self.b.i32(1);
        let mut thread = Vec::new();
        let mut reach = Coords::default();
        for axis in 0..2 {
            // The rows of a matrix are those of the tile, or go along K if it is transposed.
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
        self.buffer_place(staged, &thread, reach, part)
    }
}

/// The matrices at the start of `rest` that one instruction loads or stores.
fn next_group(rest: &[Coords], turned: bool) -> Group {
    let first = rest.first().copied().unwrap_or_default();
    let n = match rest {
        [a, b, c, d, ..] if is_grid(*a, *b, *c, *d) => 4,
        [_, _, ..] => 2,
        _ => 1,
    };
    let steps = [difference(first, rest.get(1).copied(), n > 1), difference(first, rest.get(2).copied(), n > 2)];
    Group { first, steps, n, turned }
}

/// Whether the lanes hold pairs of adjacent elements of 8 rows, as matrix stores require.
fn has_rows_of_pairs(layout: &Layout) -> bool {
    let step = |axis: u8, by: u32| Bit::Step { axis, by };
    layout.register_bits().first() == Some(&step(1, 1))
        && layout.lane_bits() == [step(1, 2), step(1, 4), step(0, 1), step(0, 2), step(0, 4)]
}

/// The matrices of one matrix load or store.
struct Group {
    /// The coordinates of the first matrix.
    first: Coords,
    /// The distances from the first matrix to the second, and from the first two to the other two.
    steps: [Coords; 2],
    n: u8,
    turned: bool,
}

/// The first register of each word of a fragment, for one step of K.
pub(super) fn words_of(layout: &Layout, per_word: usize) -> Vec<usize> {
    (0..layout.registers()).step_by(per_word).collect()
}

/// Whether four coordinates are the corners of a parallelogram of which `a` has the least coordinates.
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
