//! The number of warps of a program.
//!
//! An MMA needs enough warps for its accumulator to leave registers for everything else: at most 128 accumulators per thread, and
//! 160 for two MMAs, one of which may be live while the other is computed. Other tiles are distributed so that a thread holds about
//! 16 elements. Four warps keep an SM's four schedulers busy, so a program gets fewer only if its tiles are too small for them.

use super::Target;
use crate::ir::Kernel;

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
