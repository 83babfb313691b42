//! How many warps a program has.
//!
//! A product needs enough warps for its accumulator to leave registers for everything else: at most 128 accumulators a
//! thread. Other tiles are dealt out so that a thread holds about 16 elements. Four warps keep an SM's four schedulers busy, so
//! smaller programs get fewer only if their tiles have not enough elements for them.

use super::Target;
use crate::ir::{Kernel, OpKind, Ty};

/// Accumulators that a thread may hold.
const ACCUMULATORS: u64 = 128;
/// Elements of other tiles that a thread should hold.
const ELEMENTS: u64 = 16;

/// The number of warps, a power of two.
pub(super) fn choose(kernel: &Kernel, target: &Target, notes: &mut Vec<String>) -> u32 {
    let lanes = u64::from(target.lanes);
    let mut product = 0u64;
    let mut largest = 1u64;
    kernel.walk(&mut |_, op| {
        for result in &op.results {
            if let Ty::Tile(_, shape) = kernel.ty(*result) {
                let n = shape.len() as u64;
                if op.kind == OpKind::Mma {
                    product = product.max(n);
                }
                largest = largest.max(n);
            }
        }
    });
    let (n, per_thread, why) = if product > 0 {
        (product, ACCUMULATORS, "accumulators")
    } else {
        (largest, ELEMENTS, "elements")
    };
    let most = u64::from(target.max_warps.min(if product > 0 { 8 } else { 16 }));
    let enough = n.div_ceil(per_thread * lanes).next_power_of_two();
    let useful = n.div_ceil(lanes).next_power_of_two();
    let warps = enough.max(4).min(useful).min(most).max(1);
    notes.push(format!("{warps} warps: {} {why} a thread of {n}", n.div_ceil(warps * lanes)));
    u32::try_from(warps).unwrap_or(1)
}
