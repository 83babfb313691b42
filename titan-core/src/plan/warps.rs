//! How many warps a program has.
//!
//! A product needs enough warps for its accumulator to leave registers for everything else: at most 128 accumulators a
//! thread, and 160 of two products, one of which may live while the other is computed. Other tiles are dealt out so that a thread holds about 16 elements. Four warps keep an SM's four schedulers busy, so
//! smaller programs get fewer only if their tiles have not enough elements for them.

use super::Target;
use crate::ir::Kernel;

/// Accumulators that a thread may hold.
const ACCUMULATORS: u64 = 128;
/// Accumulators of two products that a thread may hold.
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
    mmas.sort_unstable_by(|a, b| b.cmp(a));
    let (n, per_thread, why) = match mmas[..] {
        [first, second, ..] if (first + second) * ACCUMULATORS > first * OF_TWO => {
            (first + second, OF_TWO, "accumulators of two mmas")
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
