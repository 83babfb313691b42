//! Checks layouts and encodings exhaustively: it enumerates all registers of all threads, and all elements, and shares no code with their
//! construction except for their definition.

use super::{Encoding, Layout};

/// Checks that every element of the tile is held, that no thread holds an element twice, and that the threads that hold an element are as
/// many as the bits marked as copies imply.
///
/// # Errors
/// Returns a description of the first wrong element.
pub fn layout(layout: &Layout) -> Result<(), String> {
    let (lanes, warps) = (1usize << layout.lane_bits().len(), 1usize << layout.warp_bits().len());
    let copies = layout.lane_bits().iter().chain(layout.warp_bits()).filter(|b| **b == super::Bit::Copy).count();
    let mut held = Vec::with_capacity(lanes * warps * layout.registers());
    for warp in 0..warps {
        for lane in 0..lanes {
            let of = |register: usize| (layout.coords(register, lane, warp), register);
            let mut own: Vec<(super::Coords, usize)> = (0..layout.registers()).map(of).collect();
            own.sort_unstable();
            if let Some([(at, first), (_, second)]) = twice(&own) {
                return Err(format!("lane {lane} of warp {warp} holds {at:?} in registers {first} and {second}"));
            }
            held.extend(own.iter().map(|(at, _)| *at));
        }
    }
    held.sort_unstable();
    let mut at = [0u32; 4];
    loop {
        let from = &held[held.partition_point(|other| *other < at)..];
        match from.iter().take_while(|other| **other == at).count() {
            n if n == 1 << copies => {}
            0 => return Err(format!("no thread holds {at:?}")),
            n => return Err(format!("{at:?} is held {n} times, not {}", 1usize << copies)),
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
    let mut placed: Vec<(u32, super::Coords)> = Vec::new();
    let mut at = [0u32; 4];
    let outside = loop {
        let start = encoding.offset(at);
        if start + size > encoding.bytes() {
            break Err(format!("{at:?} lies at {start}, beyond {} bytes", encoding.bytes()));
        }
        if !start.is_multiple_of(size) {
            break Err(format!("{at:?} lies at {start}, not a multiple of its size"));
        }
        placed.push((start, at));
        if !advance(&mut at, &encoding.extents) {
            break Ok(());
        }
    };
    placed.sort_unstable();
    match twice(&placed) {
        Some([(start, first), (_, second)]) => Err(format!("{second:?} and {first:?} both lie at {start}")),
        None => outside,
    }
}

/// The first two entries with the same key, of entries in the order of their keys.
fn twice<K: PartialEq, V>(sorted: &[(K, V)]) -> Option<&[(K, V); 2]> {
    sorted.windows(2).find(|pair| pair[0].0 == pair[1].0)?.try_into().ok()
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
