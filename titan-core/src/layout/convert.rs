//! How a tile gets from one register layout into another.

use super::{Bit, Coords, Encoding, Layout};
use std::collections::BTreeMap;

/// The way of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each thread has what it needs: register `i` of the target is this register of the source.
    Registers(Vec<usize>),
    /// Through shared memory, lying like this.
    Shared(Encoding),
}

/// How to get from `from` to `to`, two layouts of one tile by the same threads.
#[must_use]
pub fn way(from: &Layout, to: &Layout, bits: u32) -> Way {
    if let Some(registers) = in_registers(from, to) {
        return Way::Registers(registers);
    }
    Way::Shared(exchange(from, to, bits))
}

/// The registers, if no thread needs what another one has. Coordinates are sums of a part of the register, of the lane and
/// of the warp; if the parts of lane and warp agree, or the source has copies wherever they do not, registers decide.
fn in_registers(from: &Layout, to: &Layout) -> Option<Vec<usize>> {
    let agree = |a: &[Bit], b: &[Bit]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b);
    if !agree(from.lane_bits(), to.lane_bits()) || !agree(from.warp_bits(), to.warp_bits()) {
        return None;
    }
    let have: BTreeMap<Coords, usize> = (0..from.registers()).map(|r| (from.register_coords(r), r)).collect();
    let inside = |at: &Coords| at.iter().zip(to.extents()).all(|(x, n)| x < n);
    (0..to.registers())
        .map(|r| {
            let at = to.register_coords(r);
            // What is padding in every thread may be anything.
            have.get(&at).copied().or_else(|| (!inside(&at)).then_some(0))
        })
        .collect()
}

/// A buffer for the exchange: rows along the axis that the target reads in vectors, and a pad of 16 bytes between rows.
fn exchange(from: &Layout, to: &Layout, bits: u32) -> Encoding {
    let rank = to.rank();
    let fast = (0..rank).rev().max_by_key(|axis| to.vector(*axis).min(16) * 16 + from.vector(*axis).min(15));
    let fast = fast.unwrap_or(0);
    let mut order: Vec<usize> = (0..rank).filter(|a| *a != fast).collect();
    order.push(fast);
    Encoding::padded(to.extents(), bits.max(8), &order, 16)
}
