//! The number of warps of a program.
//!
//! An MMA needs enough warps for its accumulator to leave registers for everything else: at most 128 accumulators per thread, and
//! 160 for two MMAs, one of which may be live while the other is computed. A tile that a loop carries beside an MMA counts as one
//! more: a sum to which the products of each step are added, unless it is the accumulator itself. Other tiles are distributed so that a thread holds about
//! 16 elements. Four warps keep an SM's four schedulers busy, so a program gets fewer only if its tiles are too small for them.

use super::{Target, is_elementwise};
use crate::analysis::uses::Tree;
use crate::ir::{Kernel, OpKind, Value};
use std::collections::BTreeSet;

/// Accumulators that a thread may hold.
const ACCUMULATORS: u64 = 128;
/// Accumulators of two MMAs that a thread may hold.
const OF_TWO: u64 = 160;
/// Elements of other tiles that a thread should hold.
const ELEMENTS: u64 = 16;

/// The number of warps, a power of two.
pub(super) fn choose(kernel: &Kernel, target: &Target, notes: &mut Vec<String>) -> u32 {
    let lanes = u64::from(target.lanes);
    let mut mmas = Vec::new();
    let mut largest = 1u64;
    kernel.walk(&mut |_, op| {
        for result in &op.results {
            if let (true, Some(shape)) = (kernel.ty(*result).is_in_registers(), kernel.ty(*result).tile_shape()) {
                let n = shape.len() as u64;
                if super::mma::operands(op).is_some() {
                    mmas.push(n);
                }
                largest = largest.max(n);
            }
        }
    });
    mmas.extend(sums(kernel));
    mmas.sort_unstable_by(|a, b| b.cmp(a));
    let (n, per_thread, why) = match mmas[..] {
        [first, second, ..] if (first + second) * ACCUMULATORS > first * OF_TWO => {
            (first + second, OF_TWO, "accumulators of two MMAs")
        }
        [first, ..] => (first, ACCUMULATORS, "accumulators"),
        [] => (largest, ELEMENTS, "elements"),
    };
    let most = u64::from(target.max_warps.min(if mmas.is_empty() { 16 } else { 8 }));
    let enough = n.div_ceil(per_thread * lanes).next_power_of_two();
    let useful = n.div_ceil(lanes).next_power_of_two();
    let warps = enough.max(4).min(useful).min(most).max(1);
    notes.push(format!("{warps} warps: {} {why} a thread of {n}", n.div_ceil(warps * lanes)));
    u32::try_from(warps).unwrap_or(1)
}

/// The elements of the tiles that loops with MMAs carry, and that become no accumulator.
fn sums(kernel: &Kernel) -> Vec<u64> {
    let tree = Tree::new(kernel);
    let mut found = Vec::new();
    kernel.walk(&mut |_, op| {
        let (OpKind::For(_) | OpKind::Loop, [body]) = (&op.kind, &op.regions[..]) else { return };
        let mut of_mma = BTreeSet::new();
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

/// Whether a tile, or what elementwise operations make of it, is the accumulator that an MMA starts from.
fn becomes_accumulator(kernel: &Kernel, tree: &Tree, tile: Value) -> bool {
    let (mut open, mut seen) = (vec![tile], BTreeSet::from([tile]));
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
