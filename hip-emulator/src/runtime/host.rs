//! Pointers of the caller.
//!
//! The functions of the interface get them as these types. C passes them as what they are represented as, and the manual
//! (HIP runtime API) demands of every caller what the operations here rely on: that a result points to room for it, that a
//! text ends, that memory given for a copy stays until the copy is over. Null is checked.

use crate::world::{Code, Done};
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_char, c_void};

/// Where a result goes.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes the result.
    pub(crate) fn set(&self, value: T) -> Done {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the interface promises room for a `T`; it may not be aligned.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }
}

impl Out<u8> {
    /// Writes bytes from the so-many-th on.
    pub(crate) fn bytes(&self, at: usize, bytes: &[u8]) -> Done {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the interface promises room for the whole structure or text, of which this is a part.
        unsafe { self.0.add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }
}

/// A text that ends.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Text(*const c_char);

impl Text {
    pub(crate) fn get(&self) -> Done<String> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the interface promises that the text ends.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(str::to_owned).map_err(|_| Code::INVALID_VALUE)
    }
}

/// A code object, an ELF file as long as its headers say.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Image(*const u8);

/// The largest code object that is believed, in bytes.
const MOST: usize = 1 << 30;

/// The sizes of the file's header and of a section's, in bytes.
const HEADER: usize = 64;
const SECTION: usize = 64;

fn number(bytes: &[u8], at: usize, n: usize) -> usize {
    bytes[at..at + n].iter().rev().fold(0, |all, b| all << 8 | usize::from(*b))
}

impl Image {
    /// The bytes of the file. The caller tells no size: it follows from the headers, which may be corrupt, so that nothing is read that is not
    /// the process's memory.
    pub(crate) fn get(&self) -> Done<Vec<u8>> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let header = self.read(HEADER)?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return Err(Code::INVALID_IMAGE);
        }
        let (start, each, count) = (number(&header, 40, 8), number(&header, 58, 2), number(&header, 60, 2));
        let table = start.checked_add(each * count).filter(|end| each == SECTION && *end <= MOST);
        let mut size = table.ok_or(Code::INVALID_IMAGE)?.max(HEADER);
        let head = self.read(size)?;
        // As AMD's runtime: up to the end of the sections, if one lies behind their headers.
        for section in head.get(start..).unwrap_or_default().chunks_exact(SECTION).take(count) {
            const NOBITS: usize = 8;
            if number(section, 4, 4) != NOBITS {
                let end = number(section, 24, 8).checked_add(number(section, 32, 8));
                size = size.max(end.filter(|e| *e <= MOST).ok_or(Code::INVALID_IMAGE)?);
            }
        }
        if size == head.len() { Ok(head) } else { self.read(size) }
    }

    /// The first bytes, if the process has memory there.
    #[cfg(target_os = "linux")]
    fn read(&self, len: usize) -> Done<Vec<u8>> {
        use std::os::unix::fs::FileExt as _;
        // A bit at a time, so that no more memory is allocated than there is to be read.
        const PART: usize = 1 << 20;
        let memory = std::fs::File::open("/proc/self/mem").map_err(|_| Code::INVALID_IMAGE)?;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let (at, part) = (bytes.len(), PART.min(len - bytes.len()));
            bytes.try_reserve(part).map_err(|_| Code::OUT_OF_MEMORY)?;
            bytes.resize(at + part, 0);
            let address = (self.0.addr() + at) as u64;
            memory.read_exact_at(&mut bytes[at..], address).map_err(|_| Code::INVALID_IMAGE)?;
        }
        Ok(bytes)
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, reason = "memory cannot be asked for here")]
    fn read(&self, len: usize) -> Done<Vec<u8>> {
        // SAFETY: the caller of the interface promises an ELF file, which is as long as its headers say.
        Ok(unsafe { std::slice::from_raw_parts(self.0, len) }.to_vec())
    }
}

/// Memory of the host that a copy reads, when it runs.
#[derive(Debug)]
pub(crate) struct Source(*const u8, usize);

// SAFETY: the caller promises that the memory stays, and is not written, until the copy has run, on whatever thread.
unsafe impl Send for Source {}

impl Source {
    pub(crate) fn new(from: *const c_void, bytes: usize) -> Done<Source> {
        if from.is_null() && bytes > 0 { Err(Code::INVALID_VALUE) } else { Ok(Source(from.cast(), bytes)) }
    }

    pub(crate) const fn len(&self) -> usize {
        self.1
    }

    /// Whether some of these bytes are among them.
    pub(crate) fn meets(&self, at: usize, bytes: usize) -> bool {
        self.0.addr() < at + bytes && at < self.0.addr() + self.1
    }

    pub(crate) fn read(&self) -> Vec<u8> {
        if self.1 == 0 {
            return Vec::new();
        }
        // SAFETY: the caller promises so many bytes until the copy has run.
        unsafe { std::slice::from_raw_parts(self.0, self.1) }.to_vec()
    }
}

/// Memory of the host that a copy writes, when it runs.
#[derive(Debug)]
pub(crate) struct Target(*mut u8, usize);

// SAFETY: the caller promises that the memory stays, and is not used, until the copy has run, on whatever thread.
unsafe impl Send for Target {}

impl Target {
    /// Overwrites memory that a copy will write, so that a read that is too early has a wrong result.
    pub(crate) fn new(to: *mut c_void, bytes: usize) -> Done<Target> {
        if to.is_null() && bytes > 0 {
            return Err(Code::INVALID_VALUE);
        }
        let target = Target(to.cast(), bytes);
        target.write(&vec![0xFF; bytes]);
        Ok(target)
    }

    pub(crate) fn len(&self) -> usize {
        self.1
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        if self.1 == 0 {
            return;
        }
        // SAFETY: the caller promises room for so many bytes until the copy has run.
        unsafe { self.0.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len().min(self.1)) };
    }
}

/// The list behind the parameters of a launch: where the arguments are, as one block.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Extra(*const *mut c_void);

impl Extra {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The arguments' bytes, at most so many.
    pub(crate) fn arguments(&self, most: usize) -> Done<Vec<u8>> {
        // AMD's runtime takes the tags in this order only.
        const TAGS: [usize; 3] = [1, 2, 3];
        let mut values = [std::ptr::null_mut::<c_void>(); 2];
        for (i, want) in TAGS.into_iter().enumerate() {
            // SAFETY: the caller promises pairs of a tag and a value, and the tag 3 at the end; the tags before were others.
            let tag = unsafe { *self.0.add(2 * i) }.addr();
            if tag != want {
                return Err(Code::INVALID_VALUE);
            }
            if let Some(value) = values.get_mut(i) {
                // SAFETY: as above: a value follows a tag that is not the last one.
                *value = unsafe { *self.0.add(2 * i + 1) };
            }
        }
        let [buffer, size] = values;
        if size.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller promises a size there.
        let size = unsafe { size.cast::<usize>().read_unaligned() };
        if size > most || (buffer.is_null() && size > 0) {
            return Err(Code::INVALID_VALUE);
        }
        if size == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: the caller promises so many bytes.
        Ok(unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), size) }.to_vec())
    }
}

/// The parameters of a launch: a pointer to each argument.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Params(*const *const u8);

impl Params {
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The arguments' bytes, given the offset and the size of each.
    pub(crate) fn arguments(&self, layout: &[(usize, usize)]) -> Done<Vec<u8>> {
        let end = layout.iter().map(|(at, size)| at + size).max().unwrap_or(0);
        let mut bytes = vec![0; end];
        for (i, (at, size)) in layout.iter().enumerate() {
            // SAFETY: the caller promises a pointer for each argument of the kernel.
            let from = unsafe { *self.0.add(i) };
            if from.is_null() {
                return Err(Code::INVALID_VALUE);
            }
            // SAFETY: the caller promises as many bytes behind each pointer as the argument has.
            bytes[*at..at + size].copy_from_slice(unsafe { std::slice::from_raw_parts(from, *size) });
        }
        Ok(bytes)
    }
}

/// Pinned memory, which the runtime allocates.
#[derive(Debug)]
pub(crate) struct HostBlock {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: the memory belongs to this value alone, which hands out its address.
unsafe impl Send for HostBlock {}

/// The alignment of pinned memory: a page.
const PAGE: usize = 4096;

impl HostBlock {
    /// So many bytes, each `0xFF`; `None` if the number is 0 or too large.
    pub(crate) fn new(bytes: usize) -> Option<HostBlock> {
        let layout = Layout::from_size_align(bytes, PAGE).ok().filter(|l| l.size() > 0)?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            return None;
        }
        // SAFETY: just allocated with this size.
        unsafe { start.write_bytes(0xFF, bytes) };
        Some(HostBlock { start, layout })
    }

    pub(crate) fn address(&self) -> usize {
        self.start.expose_provenance()
    }

    pub(crate) const fn len(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(self.start, self.layout) };
    }
}

/// The pointer for an address that pinned memory has.
pub(crate) fn pointer(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}

/// `hipKernelNodeParams`, as the header declares it.
#[derive(Debug)]
#[repr(C)]
struct RawNode {
    block: [u32; 3],
    extra: *const *mut c_void,
    func: *mut c_void,
    grid: [u32; 3],
    params: *const *const u8,
    shared_bytes: u32,
}

/// The parameters of a node.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct NodeParams(*const c_void);

/// The same, read.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) function: *mut c_void,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) params: Params,
    pub(crate) extra: Extra,
}

impl NodeParams {
    pub(crate) fn get(&self) -> Done<Node> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the interface promises the structure of the header there.
        let raw = unsafe { self.0.cast::<RawNode>().read_unaligned() };
        let RawNode { block, extra, func, grid, params, shared_bytes } = raw;
        Ok(Node { function: func, grid, block, shared: shared_bytes, params: Params(params), extra: Extra(extra) })
    }
}
