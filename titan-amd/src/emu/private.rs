//! The private memory of a work item: bytes that begin undefined, and are undefined bit by bit, because compilers keep registers in them.
//!
//! It grows as it is written, up to what the kernel was given: kernels with a stack of unknown depth are given much and use little.

use super::wave::Fill;
use titan_sim::engine::Rng;

/// The private memory of one lane.
#[derive(Clone, Debug)]
pub(crate) struct Private {
    bytes: Vec<u8>,
    /// The undefined bits of each byte.
    shadows: Vec<u8>,
    /// The size in bytes.
    size: usize,
    /// The contents of bytes before they are written.
    fill: Fill,
    rng: Rng,
}

impl Private {
    pub(crate) const fn new(size: usize, fill: Fill) -> Private {
        Private { bytes: Vec::new(), shadows: Vec::new(), size, fill, rng: Rng::new(fill.seed) }
    }

    /// The size in bytes.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// The range of these bytes, which exist from then on; `None` if it does not lie inside.
    fn range(&mut self, offset: u64, len: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(len).filter(|e| *e <= self.size)?;
        if end > self.bytes.len() {
            let new = end.next_multiple_of(64).min(self.size);
            let Private { bytes, shadows, fill, rng, .. } = self;
            #[expect(clippy::cast_possible_truncation, reason = "random bits")]
            bytes.resize_with(new, || if fill.seed == 0 { 0xFF } else { rng.next_u64() as u8 });
            shadows.resize(new, if fill.defined { 0 } else { 0xFF });
        }
        Some(start..end)
    }

    /// Reads bytes and the shadow of each; `None` outside.
    #[must_use]
    pub(crate) fn read(&mut self, offset: u64, bytes: &mut [u8], shadows: &mut [u8]) -> Option<()> {
        let range = self.range(offset, bytes.len())?;
        bytes.copy_from_slice(&self.bytes[range.clone()]);
        shadows.copy_from_slice(&self.shadows[range]);
        Some(())
    }

    /// Writes bytes and the shadow of each; `None` outside.
    #[must_use]
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], shadows: &[u8]) -> Option<()> {
        let range = self.range(offset, bytes.len())?;
        self.bytes[range.clone()].copy_from_slice(bytes);
        self.shadows[range].copy_from_slice(shadows);
        Some(())
    }
}
