//! Memory of devices. Each kind of device is a variant.

#[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
use super::backend::Never;
use super::backend::absent;
#[cfg(feature = "cpu")]
use super::backend::internal;
#[cfg(feature = "_remote")]
use super::backend::{Lane, Mark};
#[cfg(feature = "cuda")]
use super::cuda;
use super::device::{Device, DeviceKind};
#[cfg(feature = "emulator")]
use super::emulator;
use super::event::Event;
#[cfg(feature = "hip")]
use super::hip;
#[cfg(feature = "_remote")]
use super::pinned::Block;
#[cfg(any(feature = "cpu", feature = "_remote"))]
use crate::error::Error;
use crate::error::Result;
#[cfg(feature = "cpu")]
use titan_cpu::memory::Memory;

/// Memory of a device.
#[derive(Clone, Debug)]
pub(crate) enum Storage {
    #[cfg(feature = "cpu")]
    Cpu(Memory),
    #[cfg(feature = "cuda")]
    Cuda(cuda::Memory),
    #[cfg(feature = "hip")]
    Hip(hip::Memory),
    #[cfg(feature = "emulator")]
    Emulated(emulator::Memory),
    #[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
    Nowhere(Never),
}

/// What new memory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    Zeros,
    /// Anything, because all of it is written next.
    WrittenNext,
    /// Anything. The emulators report reads of it.
    Undefined,
}

impl Storage {
    /// Allocates memory; returns also the event after which it may be used, unless that is now.
    pub(crate) fn new(device: &Device, bytes: usize, contents: Contents) -> Result<(Storage, Option<Event>)> {
        let zeroed = contents == Contents::Zeros;
        match device.kind() {
            // The memory of a simulator is host memory, which is always zeroed.
            DeviceKind::Cpu | DeviceKind::Simulator => Self::cpu(device, bytes).map(|storage| (storage, None)),
            DeviceKind::Cuda => Self::cuda(device, bytes, zeroed),
            DeviceKind::Emulator => Self::emulated(device, bytes, contents).map(|storage| (storage, None)),
            DeviceKind::Hip => Self::hip(device, bytes, zeroed),
        }
    }

    #[cfg(feature = "hip")]
    fn hip(device: &Device, bytes: usize, zeroed: bool) -> Result<(Storage, Option<Event>)> {
        let (memory, event) = hip::Memory::new(device, bytes, zeroed)?;
        Ok((Storage::Hip(memory), event))
    }

    #[cfg(not(feature = "hip"))]
    fn hip(device: &Device, _bytes: usize, _zeroed: bool) -> Result<(Storage, Option<Event>)> {
        Err(absent(device))
    }

    #[cfg(feature = "cpu")]
    fn cpu(device: &Device, bytes: usize) -> Result<Storage> {
        let made = Memory::zeroed(bytes);
        made.map(Storage::Cpu).map_err(|_| Error::OutOfMemory { bytes, device: device.to_string(), free: None })
    }

    #[cfg(not(feature = "cpu"))]
    fn cpu(device: &Device, _bytes: usize) -> Result<Storage> {
        Err(absent(device))
    }

    #[cfg(feature = "cuda")]
    fn cuda(device: &Device, bytes: usize, zeroed: bool) -> Result<(Storage, Option<Event>)> {
        let (memory, event) = cuda::Memory::new(device, bytes, zeroed)?;
        Ok((Storage::Cuda(memory), Some(event)))
    }

    #[cfg(not(feature = "cuda"))]
    fn cuda(device: &Device, _bytes: usize, _zeroed: bool) -> Result<(Storage, Option<Event>)> {
        Err(absent(device))
    }

    #[cfg(feature = "emulator")]
    fn emulated(device: &Device, bytes: usize, contents: Contents) -> Result<Storage> {
        let space = device.emulated().ok_or_else(|| absent(device))?;
        emulator::Memory::new(&space, device, bytes, contents).map(Storage::Emulated)
    }

    #[cfg(not(feature = "emulator"))]
    fn emulated(device: &Device, _bytes: usize, _contents: Contents) -> Result<Storage> {
        Err(absent(device))
    }

    /// Records that the device's work up to `mark` may use the memory, even when its last handle is gone.
    #[cfg(feature = "_remote")]
    pub(crate) fn used_until(&self, mark: &Mark) {
        match (self, mark) {
            #[cfg(feature = "cuda")]
            (Storage::Cuda(memory), Mark::Cuda(mark)) => memory.used_until(mark),
            #[cfg(feature = "hip")]
            (Storage::Hip(memory), Mark::Hip(mark)) => memory.used_until(mark),
            // Only the device that owns a memory uses it, so it never gets a mark of another device.
            #[cfg(all(feature = "cuda", feature = "hip"))]
            (Storage::Cuda(_), Mark::Hip(_)) | (Storage::Hip(_), Mark::Cuda(_)) => {}
            #[cfg(feature = "cpu")]
            (Storage::Cpu(_), _) => {}
            #[cfg(feature = "emulator")]
            (Storage::Emulated(_), _) => {}
        }
    }

    /// Makes the owner of foreign memory wait for the device's work up to `mark`.
    #[cfg(feature = "_remote")]
    pub(crate) fn tell_owner(&self, mark: &Mark) {
        match (self, mark) {
            #[cfg(feature = "cuda")]
            (Storage::Cuda(memory), Mark::Cuda(mark)) => memory.tell_owner(mark),
            // There is no foreign memory on AMD's GPUs, and a device's work has a mark of its own.
            #[cfg(feature = "hip")]
            (Storage::Hip(_), Mark::Hip(_)) => {}
            #[cfg(all(feature = "cuda", feature = "hip"))]
            (Storage::Cuda(_), Mark::Hip(_)) | (Storage::Hip(_), Mark::Cuda(_)) => {}
            #[cfg(feature = "cpu")]
            (Storage::Cpu(_), _) => {}
            #[cfg(feature = "emulator")]
            (Storage::Emulated(_), _) => {}
        }
    }

    /// Whether a write to some bytes needs exclusive access to the whole memory.
    pub(crate) fn is_used_as_a_whole(&self) -> bool {
        match self {
            // Launches on the CPU lease whole memories, and use every core anyway.
            #[cfg(feature = "cpu")]
            Storage::Cpu(_) => true,
            #[cfg(feature = "cuda")]
            Storage::Cuda(_) => false,
            #[cfg(feature = "hip")]
            Storage::Hip(_) => false,
            #[cfg(feature = "emulator")]
            Storage::Emulated(_) => false,
            #[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
            Storage::Nowhere(never) => match *never {},
        }
    }

    /// The memory of an NVIDIA GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn as_cuda(&self) -> Option<&cuda::Memory> {
        match self {
            Storage::Cuda(memory) => Some(memory),
            #[cfg(feature = "hip")]
            Storage::Hip(_) => None,
            #[cfg(feature = "cpu")]
            Storage::Cpu(_) => None,
            #[cfg(feature = "emulator")]
            Storage::Emulated(_) => None,
        }
    }

    /// Copies bytes to the memory. Does not wait for other work: `buffer.rs` orders it.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        match self {
            #[cfg(feature = "cpu")]
            Storage::Cpu(memory) => memory.write(offset, bytes).map_err(|e| internal("a copy to the device", &e)),
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.write(offset, bytes),
            #[cfg(feature = "hip")]
            Storage::Hip(memory) => memory.write(offset, bytes),
            #[cfg(feature = "emulator")]
            Storage::Emulated(memory) => memory.write(offset, bytes),
            #[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
            Storage::Nowhere(never) => match *never {},
        }
    }

    /// Overwrites bytes with this one. Does not wait for other work: `buffer.rs` orders it.
    pub(crate) fn fill(&self, offset: usize, bytes: usize, value: u8) -> Result<()> {
        match self {
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.fill(offset, bytes, value),
            #[cfg(feature = "hip")]
            Storage::Hip(memory) => memory.fill(offset, bytes, value),
            #[cfg(feature = "cpu")]
            Storage::Cpu(_) => self.fill_in_pieces(offset, bytes, value),
            #[cfg(feature = "emulator")]
            Storage::Emulated(_) => self.fill_in_pieces(offset, bytes, value),
            #[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
            Storage::Nowhere(never) => match *never {},
        }
    }

    /// The same by writes of pieces, which stay in the cache. GPUs fill their memory themselves.
    #[cfg(any(feature = "cpu", feature = "emulator"))]
    fn fill_in_pieces(&self, offset: usize, bytes: usize, value: u8) -> Result<()> {
        let piece = [value; 1 << 12];
        let mut parts = (0..bytes).step_by(piece.len());
        parts.try_for_each(|at| self.write(offset + at, &piece[..piece.len().min(bytes - at)]))
    }

    /// Overwrites the first bytes with this one, at the end of a lane of the device. After an error, that has not been enqueued.
    #[cfg(feature = "_remote")]
    pub(crate) fn fill_in(&self, lane: &Lane, bytes: usize, value: u8) -> Result<()> {
        match (self, lane) {
            #[cfg(feature = "cuda")]
            (Storage::Cuda(memory), Lane::Cuda(lane)) => memory.fill_in(lane, bytes, value),
            #[cfg(feature = "hip")]
            (Storage::Hip(memory), Lane::Hip(lane)) => memory.fill_in(lane, bytes, value),
            // The devices of a stream and of what it uses have been compared.
            #[cfg(all(feature = "cuda", feature = "hip"))]
            (Storage::Cuda(_), Lane::Hip(_)) | (Storage::Hip(_), Lane::Cuda(_)) => Err(elsewhere()),
            #[cfg(feature = "cpu")]
            (Storage::Cpu(_), _) => Err(elsewhere()),
            #[cfg(feature = "emulator")]
            (Storage::Emulated(_), _) => Err(elsewhere()),
        }
    }

    /// Copies pinned memory of the host to the memory, from byte `offset` on, at the end of a lane of the device. After an error, that has not
    /// been enqueued. The memory of the host must be kept until the copy has ended.
    #[cfg(feature = "_remote")]
    pub(crate) fn copy_in(&self, lane: &Lane, offset: usize, from: &Block) -> Result<()> {
        match (self, lane, from) {
            #[cfg(feature = "cuda")]
            (Storage::Cuda(memory), Lane::Cuda(lane), Block::Cuda(from)) => memory.copy_in(lane, offset, from),
            #[cfg(feature = "hip")]
            (Storage::Hip(memory), Lane::Hip(lane), Block::Hip(from)) => memory.copy_in(lane, offset, from),
            // The devices of a stream, a tensor and pinned memory have been compared.
            #[cfg(feature = "cuda")]
            (Storage::Cuda(_), _, _) => Err(elsewhere()),
            #[cfg(feature = "hip")]
            (Storage::Hip(_), _, _) => Err(elsewhere()),
            #[cfg(feature = "cpu")]
            (Storage::Cpu(_), _, _) => Err(elsewhere()),
            #[cfg(feature = "emulator")]
            (Storage::Emulated(_), _, _) => Err(elsewhere()),
        }
    }

    /// Fills `out` with bytes from the memory; after an error, `out` may be empty. Does not wait for other work: `buffer.rs` orders it.
    #[cfg_attr(not(feature = "_remote"), expect(clippy::ptr_arg, reason = "GPUs take it away"))]
    pub(crate) fn read(&self, offset: usize, out: &mut Vec<u8>) -> Result<()> {
        match self {
            #[cfg(feature = "cpu")]
            Storage::Cpu(memory) => memory.read(offset, out).map_err(|e| internal("a copy to the host", &e)),
            #[cfg(feature = "cuda")]
            Storage::Cuda(memory) => memory.read(offset, out),
            #[cfg(feature = "hip")]
            Storage::Hip(memory) => memory.read(offset, out),
            #[cfg(feature = "emulator")]
            Storage::Emulated(memory) => memory.read(offset, out),
            #[cfg(not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")))]
            Storage::Nowhere(never) => match *never {},
        }
    }
}

/// The error of work on memory in a lane of another device.
#[cfg(feature = "_remote")]
fn elsewhere() -> Error {
    Error::Internal { doing: "a fill or a copy".to_owned(), message: "the lane is of another device".to_owned() }
}
