//! Device memory: reference-counted, 64-byte aligned, zeroed; or borrowed from the caller.

use std::alloc::{Layout, alloc, dealloc};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The error for a memory that cannot be allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {bytes} bytes")]
pub struct OutOfMemory {
    /// The number of bytes that were requested.
    pub bytes: usize,
}

/// The reason why an access of the host to memory is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The range is not inside of the memory.
    #[error("bytes {offset} .. {offset} + {len} of a memory of {size} bytes")]
    OutOfBounds {
        /// The offset of the first byte.
        offset: usize,
        /// The number of bytes of the access.
        len: usize,
        /// The size of the memory in bytes.
        size: usize,
    },
    /// A launch or another thread is writing the memory, or is reading what should be written.
    #[error("the memory is in use")]
    InUse,
}

/// A handle of device memory. A clone is another handle of the same memory.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Block>);

#[derive(Debug)]
struct Block {
    bytes: NonNull<u8>,
    len: usize,
    origin: Origin,
    /// The number of leases; [`WRITER`] if one is exclusive.
    leases: AtomicU32,
    /// What keeps bytes of others, and is dropped after the last access.
    _owner: Option<Owner>,
}

/// The owner of bytes of others.
struct Owner(#[expect(dead_code, reason = "kept to be dropped")] Box<dyn Send + Sync>);

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}

/// The owner of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The block, which allocated them with this layout.
    Own(Layout),
    /// The caller, who lent them for reading, or the owner.
    Shared,
    /// The caller, who lent them for reading and writing, or the owner.
    Exclusive,
}

const WRITER: u32 = u32::MAX;
const ALIGN: usize = 64;
/// The size of a huge page. Memory of at least two of them consists of such pages where the system has them: accessing it in small
/// pages costs a page-table walk for every 4 KiB.
const HUGE_PAGE: usize = 2 << 20;

// SAFETY: the bytes are owned by the block, or lent to it. They are accessed only under a lease: by any number of threads that read,
// or by one owner, and the threads of its launch, that write.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        if let Origin::Own(layout) = self.origin {
            // SAFETY: allocated in `Memory::zeroed` with this layout, and freed once, here.
            unsafe { dealloc(self.bytes.as_ptr(), layout) };
        }
    }
}

impl Memory {
    /// Allocates this number of zero bytes.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn zeroed(bytes: usize) -> Result<Memory, OutOfMemory> {
        let out_of_memory = OutOfMemory { bytes };
        let align = if bytes < 2 * HUGE_PAGE { ALIGN } else { HUGE_PAGE };
        let layout = Layout::from_size_align(bytes.max(1), align).map_err(|_| out_of_memory)?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(out_of_memory)?;
        if align == HUGE_PAGE {
            prefer_huge_pages(start, bytes);
        }
        // SAFETY: `layout.size()` bytes were just allocated at `start`.
        unsafe { start.write_bytes(0, layout.size()) };
        Ok(Memory::new(start, bytes, Origin::Own(layout), None))
    }

    /// Memory of the caller, for reading. A request to write it fails as if the memory were in use.
    ///
    /// # Safety
    /// Until all accesses to the memory and all launches on it have ended, the bytes must exist and must not be written.
    /// The address must be aligned to the elements that launches read there.
    #[must_use]
    pub unsafe fn lent(bytes: *const [u8]) -> Memory {
        Memory::foreign(bytes.cast_mut(), Origin::Shared, None)
    }

    /// Memory of the caller, for reading and writing.
    ///
    /// # Safety
    /// Until all accesses to the memory and all launches on it have ended, the bytes must exist and must not be used elsewhere.
    /// Any bytes must be allowed there. The address must be aligned to the elements that launches read and write there.
    #[must_use]
    pub unsafe fn lent_mut(bytes: *mut [u8]) -> Memory {
        Memory::foreign(bytes, Origin::Exclusive, None)
    }

    /// Memory that `owner` keeps, which is dropped with the last handle: for reading, or for writing too if it is `exclusive`.
    ///
    /// # Safety
    /// Until the owner is dropped, the bytes must exist and must not be written by others; if the memory is `exclusive`, they must not be used
    /// by others, and any bytes must be allowed there. The address must be aligned to the elements that launches read and write there.
    #[must_use]
    pub unsafe fn kept(bytes: *mut [u8], exclusive: bool, owner: Box<dyn Send + Sync>) -> Memory {
        let origin = if exclusive { Origin::Exclusive } else { Origin::Shared };
        Memory::foreign(bytes, origin, Some(Owner(owner)))
    }

    fn foreign(bytes: *mut [u8], origin: Origin, owner: Option<Owner>) -> Memory {
        Memory::new(NonNull::new(bytes.cast()).unwrap_or(NonNull::dangling()), bytes.len(), origin, owner)
    }

    fn new(bytes: NonNull<u8>, len: usize, origin: Origin, owner: Option<Owner>) -> Memory {
        Memory(Arc::new(Block { bytes, len, origin, leases: AtomicU32::new(0), _owner: owner }))
    }

    /// The address of the first byte. Only launches and the functions here may use it while they use the memory.
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.0.bytes.as_ptr()
    }

    /// The size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether the size is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// A number that is the same for all handles of one memory, and different between memories that exist at one time.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Copies bytes into the memory.
    ///
    /// # Errors
    /// If they do not fit, or if a launch is using the memory.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), MemoryError> {
        self.check(offset, bytes.len())?;
        let lease = self.lease(true).ok_or(MemoryError::InUse)?;
        // SAFETY: the range was checked; the lease is exclusive, and a slice of the host's is not this memory.
        unsafe { lease.block().bytes.add(offset).copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        Ok(())
    }

    /// Copies bytes out of the memory.
    ///
    /// # Errors
    /// If the range exceeds the memory, or if a launch is writing the memory.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> Result<(), MemoryError> {
        self.check(offset, out.len())?;
        let lease = self.lease(false).ok_or(MemoryError::InUse)?;
        let len = out.len();
        // SAFETY: the range was checked; there are no writes during the lease, and a slice of the host's is not this memory.
        unsafe { lease.block().bytes.add(offset).copy_to_nonoverlapping(NonNull::from(out).cast(), len) };
        Ok(())
    }

    fn check(&self, offset: usize, len: usize) -> Result<(), MemoryError> {
        let size = self.0.len;
        let inside = offset.checked_add(len).is_some_and(|end| end <= size);
        if inside { Ok(()) } else { Err(MemoryError::OutOfBounds { offset, len, size }) }
    }

    /// A lease of the memory, shared with other readers or exclusive. `None` if a conflicting lease exists.
    pub(crate) fn lease(&self, exclusive: bool) -> Option<Lease> {
        let leases = &self.0.leases;
        let taken = if exclusive {
            self.0.origin != Origin::Shared
                && leases.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok()
        } else {
            leases.fetch_update(Ordering::Acquire, Ordering::Relaxed, |n| (n < WRITER - 1).then(|| n + 1)).is_ok()
        };
        taken.then(|| Lease { memory: self.clone(), exclusive })
    }
}

/// Requests huge pages, before the first access. The system may decline.
fn prefer_huge_pages(start: NonNull<u8>, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: the pages are an allocation's of this size, aligned as a page is; the advice does not change what they hold.
    let _ = unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (start, bytes);
}

/// The right to use a memory, which ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: Memory,
    exclusive: bool,
}

impl Lease {
    fn block(&self) -> &Block {
        &self.memory.0
    }

    /// The address, the size in bytes, and whether the bytes may be written.
    pub(super) fn parts(&self) -> (NonNull<u8>, usize, bool) {
        (self.memory.0.bytes, self.memory.0.len, self.exclusive)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.exclusive {
            self.block().leases.store(0, Ordering::Release);
        } else {
            self.block().leases.fetch_sub(1, Ordering::Release);
        }
    }
}
