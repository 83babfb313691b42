//! The number of warps of a program.
//!
//! An MMA needs enough warps for its accumulator to leave registers for other values: at most 128 accumulator elements per thread, and 160
//! for two MMAs, one of which may be live while the other is computed. A tile that a loop carries beside an MMA counts like an accumulator:
//! a sum to which the result of each step is added, unless it is the accumulator itself. Other tiles are distributed so that a thread holds
//! about 16 elements. Four warps keep the four schedulers of an SM busy, so a program has fewer only if its tiles are too small.
//!
//! If threads compute the first operand of an MMA of warpgroups, the MMA reads it from registers, all of it at once. So on machines with such
//! MMAs it counts too, if there are enough rows for the additional warpgroups. Worked example, attention with 128 queries, a head of 32 and 128 keys a step: scores of 128 × 128
//! and an output of 128 × 32 are 160 elements a thread of 4 warps, which would do. Probabilities of 16 bits take another 64 registers, and that
//! spills; of 8 warps, whose 128 rows are 64 for each warpgroup, a thread has 112 in all.

use super::{Target, is_elementwise};
use crate::analysis::affine::greatest_divisor;
use crate::analysis::uses::Tree;
use crate::collections::SortedSet;
use crate::diag::counted;
use crate::ir::{Elem, Kernel, OpKind, Value};
use crate::lane::GroupMma;
use crate::layout::atoms::Atom;

/// The maximum number of accumulator elements per thread.
const ACCUMULATORS: u64 = 128;
/// The maximum number of accumulator elements of two MMAs per thread.
const OF_TWO: u64 = 160;
/// The maximum number of registers of two MMAs per thread, a first operand that was computed included.
const WITH_OPERANDS: u64 = 176;
/// The desired number of elements of other tiles per thread.
const ELEMENTS: u64 = 16;

/// What the number of warps is chosen by.
struct Tiles {
    /// The elements of the result of each MMA, and of sums beside them; the most first.
    mmas: Vec<u64>,
    /// The elements of the largest tile in registers.
    largest: u64,
    /// The 32-bit registers, over all threads, of the largest first operand of an MMA that threads compute.
    computed: u64,
    /// The greatest common divisor of the numbers of rows of the MMAs.
    rows: i64,
}

impl Tiles {
    fn of(kernel: &Kernel) -> Tiles {
        let mut tiles = Tiles { mmas: Vec::new(), largest: 1, computed: 0, rows: 0 };
        kernel.walk(&mut |_, op| {
            for result in &op.results {
                let Some(shape) = kernel.ty(*result).tile_shape().filter(|_| kernel.ty(*result).is_in_registers())
                else {
                    continue;
                };
                let n = shape.len() as u64;
                tiles.largest = tiles.largest.max(n);
                if let Some([a, ..]) = super::mma::operands(op) {
                    tiles.mmas.push(n);
                    tiles.computed = tiles.computed.max(registers_if_computed(kernel, a));
                    let rows = shape.iter().rev().nth(1).map_or(1, |rows| i64::from(*rows));
                    tiles.rows = greatest_divisor(tiles.rows, rows);
                }
            }
        });
        tiles.mmas.extend(sums(kernel));
        tiles.mmas.sort_unstable_by(|a, b| b.cmp(a));
        tiles
    }

    /// The number of warps for which two MMAs of warpgroups fit in registers together with a first operand that is computed; `None` if there
    /// is none, or the additional warpgroups would share rows.
    fn warps_with_operands(&self, target: &Target) -> Option<u64> {
        let [first, second, ..] = self.mmas[..] else { return None };
        let all = (self.computed > 0).then_some(first + second + self.computed)?;
        let warps = all.div_ceil(WITH_OPERANDS * u64::from(target.lanes)).next_power_of_two();
        let rows = u64::try_from(self.rows).unwrap_or(1);
        let together = |atom: &Atom| u64::from(atom.mma.m) * (warps / u64::from(GroupMma::WARPS)).max(1);
        target.group_atoms.iter().any(|atom| rows.is_multiple_of(together(atom))).then_some(warps)
    }
}

/// The number of warps, a power of two.
pub(super) fn choose(kernel: &Kernel, target: &Target, notes: &mut Vec<String>) -> u32 {
    let lanes = u64::from(target.lanes);
    let tiles = Tiles::of(kernel);
    let (n, per_thread, held, by) = match tiles.mmas[..] {
        [first, second, ..] if (first + second) * ACCUMULATORS > first * OF_TWO => {
            (first + second, OF_TWO, "accumulator", " of two MMAs")
        }
        [first, ..] => (first, ACCUMULATORS, "accumulator", ""),
        [] => (tiles.largest, ELEMENTS, "element", ""),
    };
    let most = u64::from(target.max_warps.min(if tiles.mmas.is_empty() { 16 } else { 8 }));
    let enough = n.div_ceil(per_thread * lanes).next_power_of_two();
    let with_operands = tiles.warps_with_operands(target).filter(|warps| *warps > enough);
    let useful = n.div_ceil(lanes).next_power_of_two();
    let warps = with_operands.unwrap_or(enough).max(4).min(useful).min(most).max(1);
    let beside = if with_operands.is_some() { ", beside a first operand that is computed" } else { "" };
    let each = counted(n.div_ceil(warps * lanes), held);
    notes.push(format!("{}: {each}{by} a thread of {n}{beside}", counted(warps, "warp")));
    u32::try_from(warps).unwrap_or(1)
}

/// The 32-bit registers, over all threads, of a tile that threads compute; 0 for one that is loaded.
fn registers_if_computed(kernel: &Kernel, tile: Value) -> u64 {
    let ty = kernel.ty(tile);
    let elements = ty.tile_shape().filter(|_| ty.is_in_registers()).map_or(0, |shape| shape.len() as u64);
    let computed = kernel.def_op(tile).is_some_and(|op| is_elementwise(&op.kind));
    if computed { words(elements, ty.elem()) } else { 0 }
}

/// The numbers of elements of the tiles that loops with MMAs carry, except for those that become accumulators.
fn sums(kernel: &Kernel) -> Vec<u64> {
    let tree = Tree::new(kernel);
    let mut found = Vec::new();
    kernel.walk(&mut |_, op| {
        let (OpKind::For(_) | OpKind::Loop, [body]) = (&op.kind, &op.regions[..]) else { return };
        let mut of_mma = SortedSet::new();
        kernel.walk_block(*body, &mut |_, op| {
            if super::mma::operands(op).is_some() {
                of_mma.extend(op.results.iter().filter_map(|v| kernel.ty(*v).tile_shape()).map(|s| s.len() as u64));
            }
        });
        for carried in &kernel.block(*body).args {
            let elements = kernel.ty(*carried).tile_shape().map_or(0, |s| s.len() as u64);
            let is_tile = kernel.ty(*carried).is_in_registers();
            if is_tile && of_mma.contains(&elements) && !becomes_accumulator(kernel, &tree, *carried) {
                found.push(elements);
            }
        }
    });
    found
}

/// Whether a tile, or the result of elementwise operations on it, is the initial accumulator of an MMA.
fn becomes_accumulator(kernel: &Kernel, tree: &Tree, tile: Value) -> bool {
    let (mut open, mut seen) = (vec![tile], SortedSet::from([tile]));
    while let Some(value) = open.pop() {
        for id in tree.users(value) {
            let op = kernel.op(*id);
            if super::mma::operands(op).is_some_and(|[.., acc]| acc == value) {
                return true;
            }
            if is_elementwise(&op.kind) {
                open.extend(op.results.iter().copied().filter(|result| seen.insert(*result)));
            }
        }
    }
    false
}

/// The number of 32-bit registers of so many elements.
pub(crate) fn words(elements: u64, elem: Elem) -> u64 {
    elements.saturating_mul(elem.bits().into()).div_ceil(32)
}
