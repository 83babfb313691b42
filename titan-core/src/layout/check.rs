//! Checks layouts and encodings exhaustively: it enumerates all registers of all threads, and all elements, and shares no code with their
//! construction except for their definition.

use super::{Encoding, Layout};
use crate::collections::SortedMap;

/// Checks that every element of the tile is held, that no thread holds an element twice, and that the threads that hold an element are as
/// many as the bits marked as copies imply.
///
/// # Errors
/// Returns a description of the first wrong element.
pub fn layout(layout: &Layout) -> Result<(), String> {
    let (lanes, warps) = (1usize << layout.lane_bits().len(), 1usize << layout.warp_bits().len());
    let copies = layout.lane_bits().iter().chain(layout.warp_bits()).filter(|b| **b == super::Bit::Copy).count();
    let mut held: SortedMap<super::Coords, usize> = SortedMap::new();
    for warp in 0..warps {
        for lane in 0..lanes {
            let mut own = SortedMap::new();
            for register in 0..layout.registers() {
                let at = layout.coords(register, lane, warp);
                if let Some(other) = own.insert(at, register) {
                    return Err(format!("lane {lane} of warp {warp} holds {at:?} in registers {other} and {register}"));
                }
                *held.entry(at).or_default() += 1;
            }
        }
    }
    let mut at = [0u32; 4];
    loop {
        match held.get(&at) {
            Some(n) if *n == 1 << copies => {}
            Some(n) => return Err(format!("{at:?} is held {n} times, not {}", 1usize << copies)),
            None => return Err(format!("no thread holds {at:?}")),
        }
        if !advance(&mut at, layout.extents()) {
            return Ok(());
        }
    }
}

/// Checks that no two elements overlap, and that all are inside the buffer.
///
/// # Errors
/// Returns a description of the first wrong element.
pub fn encoding(encoding: &Encoding) -> Result<(), String> {
    let size = encoding.bits / 8;
    let mut owner: SortedMap<u32, super::Coords> = SortedMap::new();
    let mut at = [0u32; 4];
    loop {
        let start = encoding.offset(at);
        if start + size > encoding.bytes() {
            return Err(format!("{at:?} lies at {start}, beyond {} bytes", encoding.bytes()));
        }
        if !start.is_multiple_of(size) {
            return Err(format!("{at:?} lies at {start}, not a multiple of its size"));
        }
        if let Some(other) = owner.insert(start, at) {
            return Err(format!("{at:?} and {other:?} both lie at {start}"));
        }
        if !advance(&mut at, &encoding.extents) {
            return Ok(());
        }
    }
}

fn advance(at: &mut super::Coords, extents: &[u32]) -> bool {
    for axis in (0..extents.len()).rev() {
        at[axis] += 1;
        if at[axis] < extents[axis] {
            return true;
        }
        at[axis] = 0;
    }
    false
}
