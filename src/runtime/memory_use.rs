//! How much memory the tensors of a device use, and what its pool keeps.

use super::device::{Device, DeviceKind};
use super::lock;
use crate::error::Result;
use std::sync::Mutex;

/// The memory of a device: see [`Device::memory_use`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The number of tensors that own memory.
    pub tensors: usize,
    /// Their bytes.
    pub bytes: usize,
    /// The most bytes that tensors had at one time, since the start of the program or the last [`Device::reset_peak_memory`].
    pub peak_bytes: usize,
    /// The number of allocations since the start of the program.
    pub allocations: u64,
    /// The bytes that the pool of the device holds, in use or kept for reuse. Other libraries of the program may use it too. `None` on devices
    /// without such a pool.
    pub reserved: Option<u64>,
    /// The bytes of the device that are free, if it reports them.
    pub free: Option<usize>,
    /// The bytes of the device, if it reports them.
    pub total: Option<usize>,
}

/// The memory of a device as its driver reports it, in bytes: what its pool holds, what is free, and all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    pub(crate) reserved: Option<u64>,
    pub(crate) free: Option<usize>,
    pub(crate) total: Option<usize>,
}

/// The counts of a device.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<MemoryUse>);

impl Counts {
    /// A tensor gets memory.
    pub(crate) fn allocated(&self, bytes: usize) {
        let mut counts = lock(&self.0);
        counts.tensors += 1;
        counts.allocations += 1;
        counts.bytes += bytes;
        counts.peak_bytes = counts.peak_bytes.max(counts.bytes);
    }

    /// The last tensor with some memory is dropped.
    pub(crate) fn dropped(&self, bytes: usize) {
        let mut counts = lock(&self.0);
        counts.tensors -= 1;
        counts.bytes -= bytes;
    }
}

impl Device {
    /// The memory that tensors use. Views, borrowed slices and foreign memory do not count. The memory of a dropped tensor is free for other
    /// tensors when the launches that use it have ended.
    ///
    /// ```
    /// let dev = titan::Device::cpu();
    /// let x = dev.zeros::<f32, 1>([1 << 20])?;
    /// assert!(dev.memory_use()?.bytes >= 4 << 20);
    /// drop(x);
    /// let used = dev.memory_use()?;
    /// assert!(used.peak_bytes >= 4 << 20 && used.allocations >= 1);
    /// # Ok::<(), titan::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the driver of a GPU fails.
    pub fn memory_use(&self) -> Result<MemoryUse> {
        let counts = *lock(&self.counts().0);
        let Room { reserved, free, total } = match self.kind() {
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda => super::cuda::room(self)?,
            #[cfg(feature = "hip")]
            DeviceKind::Hip => super::hip::room(self)?,
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda => Room::default(),
            #[cfg(not(feature = "hip"))]
            DeviceKind::Hip => Room::default(),
            DeviceKind::Cpu | DeviceKind::Emulator | DeviceKind::Simulator => Room::default(),
        };
        Ok(MemoryUse { reserved, free, total, ..counts })
    }

    /// Lets [`MemoryUse::peak_bytes`] start again from the bytes that tensors have now.
    pub fn reset_peak_memory(&self) {
        let mut counts = lock(&self.counts().0);
        counts.peak_bytes = counts.bytes;
    }

    /// Returns the memory of dropped tensors, which is kept for reuse, to the system. Waits for the launches that use it. Not needed before
    /// allocations: one that finds no memory does this first.
    ///
    /// # Errors
    /// If the device was lost.
    pub fn release_memory(&self) -> Result<()> {
        match self.kind() {
            #[cfg(feature = "cuda")]
            DeviceKind::Cuda => super::cuda::trim(self),
            #[cfg(feature = "hip")]
            DeviceKind::Hip => super::hip::trim(self),
            #[cfg(not(feature = "cuda"))]
            DeviceKind::Cuda => Ok(()),
            #[cfg(not(feature = "hip"))]
            DeviceKind::Hip => Ok(()),
            // Their memory is freed with its last tensor.
            DeviceKind::Cpu | DeviceKind::Emulator | DeviceKind::Simulator => Ok(()),
        }
    }
}
