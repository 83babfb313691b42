//! Loads of the local data share that may be the beginning of an atomic operation.
//!
//! Where the machine has no instruction for an atomic operation, compilers make a loop: an ordinary load, and then an operation that compares
//! and swaps until nobody has changed the bytes in between. Nothing orders the load with the atomic operations of other waves,
//! and nothing needs to. Whether a load is such a one is known when the same wave compares and swaps the same bytes. Until then, or until
//! the wave comes to a barrier or ends, the race detector takes the load for an atomic one; then it is told of an ordinary load.
//!
//! Deliberately absent: loads that the source calls atomic and that no such operation follows, such as those of a loop that waits for a flag.
//! They are the same instructions as ordinary loads.

use super::exec::transfer::Piece;
use std::collections::BTreeMap;
use titan_sim::engine::Place;

/// The loads of a workgroup that are held back.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    /// For each wave, the first instruction that loads these bytes, by the first one and their number.
    waves: Vec<BTreeMap<(u64, u8), Place>>,
    /// Whether there are operations that compare and swap, without which nothing is held back.
    on: bool,
}

impl Held {
    pub(crate) fn new(waves: usize, on: bool) -> Held {
        Held { waves: vec![BTreeMap::new(); waves], on }
    }

    /// Holds back a load, if each of its pieces is one that an atomic load could be: aligned, of up to eight bytes. Returns whether it does.
    pub(crate) fn hold(&mut self, wave: usize, pieces: &[Piece], place: Place) -> bool {
        let is_single = |p: &Piece| p.bytes <= 8 && p.at.lds().is_none_or(|a| a.is_multiple_of(p.bytes.into()));
        let Some(loads) = self.waves.get_mut(wave).filter(|_| self.on && pieces.iter().all(is_single)) else {
            return false;
        };
        for piece in pieces {
            if let Some(address) = piece.at.lds() {
                loads.entry((address, piece.bytes)).or_insert(place);
            }
        }
        true
    }

    /// Forgets the loads of the bytes that a wave compares and swaps.
    pub(crate) fn release(&mut self, wave: usize, pieces: &[Piece]) {
        let Some(loads) = self.waves.get_mut(wave).filter(|loads| !loads.is_empty()) else { return };
        for piece in pieces {
            let Some(start) = piece.at.lds() else { continue };
            let end = start + u64::from(piece.bytes);
            let over = loads.range((start.saturating_sub(7), 0)..(end, 0)).map(|(key, _)| *key);
            let over: Vec<(u64, u8)> = over.filter(|(at, bytes)| at + u64::from(*bytes) > start).collect();
            for key in over {
                loads.remove(&key);
            }
        }
    }

    /// The loads that are left of a wave: the first byte, their number, the instruction.
    pub(crate) fn take(&mut self, wave: usize) -> Vec<(u64, u32, Place)> {
        let loads = self.waves.get_mut(wave).map(std::mem::take).unwrap_or_default();
        loads.into_iter().map(|((address, bytes), place)| (address, bytes.into(), place)).collect()
    }
}
