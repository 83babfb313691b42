//! Memory of the CPU device.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A block of bytes; clones are handles to the same block.
#[derive(Clone, Debug)]
pub struct Memory {
    id: usize,
    bytes: Arc<RwLock<Vec<u8>>>,
}

/// There is not enough memory.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{bytes} bytes cannot be allocated")]
pub struct OutOfMemory {
    /// How much was asked for.
    pub bytes: usize,
}

/// A range outside of the block.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a range outside of the memory")]
pub struct MemoryError;

impl Memory {
    /// A block of zeros.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn zeroed(bytes: usize) -> Result<Memory, OutOfMemory> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mut block = Vec::new();
        block.try_reserve_exact(bytes).map_err(|_| OutOfMemory { bytes })?;
        block.resize(bytes, 0);
        Ok(Memory { id: NEXT.fetch_add(1, Ordering::Relaxed), bytes: Arc::new(RwLock::new(block)) })
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which block this is: no two live ones share a number.
    #[must_use]
    pub fn id(&self) -> usize {
        self.id
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// If they do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        let mut block = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let end = offset.checked_add(bytes.len()).ok_or(MemoryError)?;
        block.get_mut(offset..end).ok_or(MemoryError)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> Result<(), MemoryError> {
        let block = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        let end = offset.checked_add(out.len()).ok_or(MemoryError)?;
        out.copy_from_slice(block.get(offset..end).ok_or(MemoryError)?);
        Ok(())
    }
}
