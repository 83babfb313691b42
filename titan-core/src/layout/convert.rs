//! Conversions of tiles between register layouts.

use super::{Bit, Coords, Encoding, Layout};
use crate::collections::{SortedMap, SortedSet};
use crate::lane::banks::Banks;

/// The method of a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Within threads: register `i` of the target is this register of the source.
    Registers(Vec<usize>),
    /// Through shared memory, with this encoding.
    Shared(Encoding),
}

/// The method of converting `from` to `to`, two layouts of one tile over the same threads, on a machine with these banks.
#[must_use]
pub fn way(from: &Layout, to: &Layout, bits: u32, banks: &Banks) -> Way {
    if let Some(registers) = in_registers(from, to) {
        return Way::Registers(registers);
    }
    Way::Shared(exchange(from, to, bits, banks))
}

/// The source registers, if no thread needs elements of another one. Coordinates are sums of contributions of register, lane and warp. If
/// the contributions of lanes and warps agree, or the source has copies wherever they do not, the registers alone decide.
pub(crate) fn in_registers(from: &Layout, to: &Layout) -> Option<Vec<usize>> {
    let agree = |a: &[Bit], b: &[Bit]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b);
    if !agree(from.lane_bits(), to.lane_bits()) || !agree(from.warp_bits(), to.warp_bits()) {
        return None;
    }
    let have: SortedMap<Coords, usize> = (0..from.registers()).map(|r| (from.register_coords(r), r)).collect();
    let inside = |at: &Coords| at.iter().zip(to.extents()).all(|(x, n)| x < n);
    (0..to.registers())
        .map(|r| {
            let at = to.register_coords(r);
            // Padding may have any value: register 0 serves.
            have.get(&at).copied().or_else(|| (!inside(&at)).then_some(0))
        })
        .collect()
}

/// The encoding of the buffer for an exchange: the one with the lowest cost of writes and reads; among equals, the one with the fewest
/// accesses, then the smallest. None is larger than the one with rows along the axis that the target reads in vectors, padded by 16 bytes.
///
/// Rows may be along any axis, and be padded by any number of elements. A padding of 16 bytes preserves vectors of 16 bytes, which is best
/// if both layouts have vectors along the same axis. A transposition has single elements on one side; vectors on the other side then do not
/// pay off if their rows begin in few banks.
fn exchange(from: &Layout, to: &Layout, bits: u32, banks: &Banks) -> Encoding {
    let rank = to.rank();
    let fast = (0..rank).rev().max_by_key(|axis| to.vector(*axis).min(16) * 16 + from.vector(*axis).min(15));
    let bits = bits.max(8);
    let usual = Encoding::padded(to.extents(), bits, &order(rank, fast.unwrap_or(0)), 16);
    let limit = usual.bytes();
    let sides = [Side::of(from, banks), Side::of(to, banks)];
    let mut best = (cost(&sides, &usual, Cost::MAX).unwrap_or(Cost::MAX), usual);
    for axis in 0..rank {
        let plain = Encoding::padded(to.extents(), bits, &order(rank, axis), 0);
        for pad in 0..=16 / (bits / 8) {
            let encoding = Encoding { pitch: plain.pitch + pad * bits / 8, ..plain.clone() };
            if encoding.bytes() <= limit
                && let Some(next) = cost(&sides, &encoding, best.0)
            {
                best = (next, encoding);
            }
        }
    }
    best.1
}

/// The axes in order, with `fast` as the last one.
fn order(rank: usize, fast: usize) -> Vec<usize> {
    (0..rank).filter(|a| *a != fast).chain([fast]).collect()
}

/// The cost of an exchange for a warp, compared field by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    /// The phases of its accesses, including bank conflicts.
    phases: u32,
    /// The number of accesses.
    accesses: u32,
    /// The size of the buffer.
    bytes: u32,
}

impl Cost {
    const MAX: Cost = Cost { phases: u32::MAX, accesses: u32::MAX, bytes: u32::MAX };
}

/// One side of an exchange: a layout, and the coordinates that all encodings are tried with.
struct Side<'a> {
    layout: &'a Layout,
    banks: &'a Banks,
    /// The coordinates of register 0 in each lane of warp 0.
    lanes: Vec<Coords>,
    /// The coordinates of each register in lane 0 of warp 0.
    registers: Vec<Coords>,
}

impl<'a> Side<'a> {
    fn of(layout: &'a Layout, banks: &'a Banks) -> Side<'a> {
        Side {
            layout,
            banks,
            lanes: (0..1 << layout.lane_bits().len()).map(|lane| layout.coords(0, lane, 0)).collect(),
            registers: (0..layout.registers()).map(|r| layout.register_coords(r)).collect(),
        }
    }

    /// The number of accesses of a thread to so many elements at once, and the phases of each without bank conflicts.
    fn accesses(&self, encoding: &Encoding, together: u32) -> (u32, u32) {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let width = together * encoding.bits / 8;
        (
            count(self.registers.len()) / together,
            (width.max(self.banks.width) * count(self.lanes.len())).div_ceil(self.banks.bytes()),
        )
    }

    /// The maximum degree of bank conflicts when the lanes of a warp write or read a buffer without a swizzle. Accesses to other registers,
    /// and those of other warps, are shifted by the same distance in every lane, which changes the degree only if the distance is not a
    /// multiple of a word.
    fn conflict_degree(&self, encoding: &Encoding, together: u32) -> u32 {
        let addresses: Vec<u32> = self.lanes.iter().map(|at| encoding.offset(*at)).collect();
        // All elements are at multiples of their size and of the distance between rows.
        let distances = if encoding.bits.is_multiple_of(8 * self.banks.width)
            && encoding.pitch.is_multiple_of(self.banks.width)
        {
            SortedSet::from([0])
        } else {
            self.registers.iter().step_by(together as usize).map(|at| encoding.offset(*at) % self.banks.width).collect()
        };
        let after = |distance: &u32| {
            let moved: Vec<u32> = addresses.iter().map(|address| address + distance).collect();
            self.banks.degree(&moved, together * encoding.bits / 8)
        };
        distances.iter().map(after).max().unwrap_or(1)
    }
}

/// The cost of an exchange, if it is less than the limit.
fn cost(sides: &[Side<'_>; 2], encoding: &Encoding, limit: Cost) -> Option<Cost> {
    let sides = sides.each_ref().map(|side| (side, neighbours(side.layout, encoding)));
    let accesses = sides.map(|(side, together)| side.accesses(encoding, together));
    let [write, read] = accesses.map(|(n, _)| n);
    let total = |degrees: [u32; 2]| {
        let phases = |i: usize| accesses[i].0.saturating_mul(accesses[i].1.saturating_mul(degrees[i]));
        Cost {
            phases: phases(0).saturating_add(phases(1)),
            accesses: write.saturating_add(read),
            bytes: encoding.bytes(),
        }
    };
    // Without conflicts it is lowest, and need not be computed if that is not enough.
    if total([1, 1]) >= limit {
        return None;
    }
    let cost = total(sides.map(|(side, together)| side.conflict_degree(encoding, together)));
    (cost < limit).then_some(cost)
}

/// The number of adjacent elements that a thread writes or reads at once, at most 16 bytes.
#[must_use]
pub fn neighbours(layout: &Layout, encoding: &Encoding) -> u32 {
    let fast = encoding.fast_axis();
    let mut n = layout.vector(fast).min(encoding.vector()).min(16 / (encoding.bits / 8).max(1)).max(1);
    // A vector must divide the rows, and its alignment must divide their distance.
    while n > 1
        && (!encoding.row.is_multiple_of(n)
            || !encoding.pitch.is_multiple_of(n * encoding.bits / 8)
            || !layout.extents()[fast].is_multiple_of(n))
    {
        n /= 2;
    }
    n
}
