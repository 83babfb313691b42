//! Memory with a shadow for each bit: a [`Space`] of the engine, which knows for each byte whether it is defined, and the bits of bytes
//! that are defined in part.
//!
//! Such bytes are rare: fields of less than a byte that are written one after the other, and words of which a mask keeps some bits.

use std::collections::BTreeMap;
use titan_sim::engine::{Fault, Space};

/// The bytes of a memory that are defined in part: the value and the shadow of each, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts(BTreeMap<u64, (u8, u8)>);

impl Parts {
    /// Forgets the bytes of a range, which are written as a whole or no longer exist.
    pub(crate) fn clear(&mut self, address: u64, len: usize) {
        if self.0.is_empty() {
            return;
        }
        let end = address.saturating_add(len as u64);
        let inside: Vec<u64> = self.0.range(address..end).map(|(a, _)| *a).collect();
        for a in inside {
            self.0.remove(&a);
        }
    }

    /// Copies the bytes of a range that are defined in part.
    pub(crate) fn copy(&mut self, from: u64, to: u64, len: usize) {
        let end = from.saturating_add(len as u64);
        let inside: Vec<(u64, (u8, u8))> = self.0.range(from..end).map(|(a, part)| (*a, *part)).collect();
        self.clear(to, len);
        self.0.extend(inside.into_iter().map(|(a, part)| (a - from + to, part)));
    }
}

/// Reads bytes and the shadow of each; returns whether any bit is undefined.
///
/// # Errors
/// As [`Space::read_any`].
pub(crate) fn read(
    space: &Space,
    parts: &Parts,
    address: u64,
    bytes: &mut [u8],
    shadows: &mut [u8],
) -> Result<bool, Fault> {
    if space.read_any(address, bytes)? {
        shadows.fill(0);
        return Ok(false);
    }
    let (_, defined) = space.extract(address, bytes.len())?;
    for (i, at) in (address..).take(bytes.len()).enumerate() {
        shadows[i] = if defined[i] { 0 } else { 0xFF };
        if let Some((value, shadow)) = parts.0.get(&at).filter(|_| !defined[i]) {
            (bytes[i], shadows[i]) = (*value, *shadow);
        }
    }
    Ok(true)
}

/// Writes bytes with the shadow of each.
///
/// # Errors
/// As [`Space::write`].
pub(crate) fn write(
    space: &mut Space,
    parts: &mut Parts,
    address: u64,
    bytes: &[u8],
    shadows: &[u8],
) -> Result<(), Fault> {
    if shadows.iter().all(|s| *s == 0) {
        space.write(address, bytes)?;
        parts.clear(address, bytes.len());
        return Ok(());
    }
    let defined: Vec<bool> = shadows.iter().map(|s| *s == 0).collect();
    space.insert(address, bytes, &defined)?;
    parts.clear(address, bytes.len());
    for (at, (byte, shadow)) in (address..).zip(bytes.iter().zip(shadows)) {
        if !matches!(*shadow, 0 | 0xFF) {
            parts.0.insert(at, (*byte, *shadow));
        }
    }
    Ok(())
}
