//! The number of warps of a program.
//!
//! An MMA needs enough warps for its accumulator to leave registers for other values: at most 128 accumulator elements per thread, and 160
//! for two MMAs, one of which may be live while the other is computed. A tile that a loop carries beside an MMA counts like an accumulator:
//! a sum to which the result of each step is added, unless it is the accumulator itself. Other tiles are distributed so that a thread holds
//! about 16 elements. Four warps keep the four schedulers of an SM busy, so a program has fewer only if its tiles are too small.

use super::{Target, is_elementwise};
use crate::analysis::uses::Tree;
use crate::ir::{Kernel, OpKind, Value};
use std::collections::BTreeSet;

/// The maximum number of accumulator elements per thread.
const ACCUMULATORS: u64 = 128;
/// The maximum number of accumulator elements of two MMAs per thread.
const OF_TWO: u64 = 160;
/// The desired number of elements of other tiles per thread.
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

/// The numbers of elements of the tiles that loops with MMAs carry, except for those that become accumulators.
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

/// Whether a tile, or the result of elementwise operations on it, is the initial accumulator of an MMA.
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
