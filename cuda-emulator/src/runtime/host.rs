//! Pointers of the caller.
//!
//! The functions of the interface receive them as these types. They have the representation that C passes, and the manual
//! (CUDA Driver API) requires of every caller what the operations here rely on: that a result points to room for it, that a
//! text ends, that memory given for a copy stays valid until the copy is over. Null is checked.

use crate::code::{Code, Done};
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_char, c_void};

/// The destination of a result.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Whether the caller passed a null pointer, because it does not need the result.
    pub(crate) const fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Whether its address is a multiple of `bytes`.
    pub(crate) fn is_aligned(&self, bytes: usize) -> bool {
        self.0.addr().is_multiple_of(bytes)
    }

    /// Writes the result.
    pub(crate) fn set(&self, value: T) -> Done {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the interface promises room for a `T`; it may not be aligned.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the result, unless the pointer is null.
    pub(crate) fn offer(&self, value: T) {
        let _ = self.set(value);
    }
}

impl Out<c_char> {
    /// Writes a text of at most `room` bytes, including its end.
    pub(crate) fn text(&self, text: &str, room: usize) -> Done {
        if self.0.is_null() || room == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let bytes = text.as_bytes().get(..text.len().min(room - 1)).unwrap_or_default();
        // SAFETY: the caller of the interface promises `room` bytes, of which at most `room` are written.
        unsafe {
            self.0.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            self.0.add(bytes.len()).write(0);
        }
        Ok(())
    }
}

impl Out<c_void> {
    /// Writes the bytes of a result of any type.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Done {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the interface promises room for what it asks for, which has these bytes.
        unsafe { self.0.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Reads a number that the caller stored there.
    pub(crate) fn number(&self) -> Done<u64> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the interface promises 8 bytes; they may not be aligned.
        Ok(unsafe { self.0.cast::<u64>().read_unaligned() })
    }
}

/// A C string.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The text as a string.
    pub(crate) fn get(&self) -> Done<String> {
        self.bytes().and_then(|b| String::from_utf8(b).map_err(|_| Code::INVALID_VALUE))
    }

    /// The bytes of the text.
    pub(crate) fn bytes(&self) -> Done<Vec<u8>> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the interface promises that the text ends.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes().to_vec())
    }
}

/// Code: a C string, or a file of machine code, of which only the beginning is read.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Image(*const c_char);

impl Image {
    /// The bytes of the text, or the first four of a file of machine code.
    pub(crate) fn get(&self) -> Done<Vec<u8>> {
        // No PTX text begins with these bytes, and such a file may contain zeros.
        Text(self.0).bytes().map(|b| if b.starts_with(b"\x7fELF") { b"\x7fELF".to_vec() } else { b })
    }
}

/// An array of values from the caller.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct List<T>(*const T);

impl<T: Copy> List<T> {
    /// The list without elements.
    pub(crate) const NONE: List<T> = List(std::ptr::null());

    /// Whether the pointer is null.
    pub(crate) const fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The element with this index.
    pub(crate) fn get(&self, i: usize) -> Done<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the interface promises as many elements as are asked for.
        Ok(unsafe { self.0.add(i).read_unaligned() })
    }
}

impl List<Pointer> {
    /// Replaces an element by a number, which returns a size that was passed by value.
    pub(crate) fn replace(&self, i: usize, number: usize) -> Done {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let value = Pointer(std::ptr::without_provenance_mut(number));
        // SAFETY: not null, and the caller of the interface promises as many elements, for results as well.
        unsafe { self.0.cast_mut().add(i).write_unaligned(value) };
        Ok(())
    }
}

/// A pointer to memory of the caller.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer(*mut c_void);

// SAFETY: an address; what is done with it is `HostBytes`'s.
unsafe impl Send for Pointer {}

impl Pointer {
    /// The address.
    pub(crate) fn address(self) -> u64 {
        self.0.addr() as u64
    }

    /// The pointer for an address that the driver has returned.
    pub(crate) fn of(address: u64) -> Pointer {
        Pointer(std::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0)))
    }

    /// The pointer as the beginning of a list.
    pub(crate) const fn list(self) -> List<Pointer> {
        List(self.0.cast_const().cast())
    }

    /// The pointer as the caller passed it, for results.
    pub(crate) const fn raw(self) -> *mut c_void {
        self.0
    }

    /// Reads bytes at once, such as those of a parameter.
    pub(crate) fn take(self, bytes: usize) -> Done<Vec<u8>> {
        Ok(self.bytes()?.read(bytes))
    }

    /// The memory as the source or destination of a copy.
    pub(crate) fn bytes(self) -> Done<HostBytes> {
        if self.0.is_null() { Err(Code::INVALID_VALUE) } else { Ok(HostBytes(self)) }
    }
}

/// Memory of the caller that stays valid until the operation to which it was given is over.
#[derive(Debug)]
pub(crate) struct HostBytes(Pointer);

impl HostBytes {
    /// The address of the memory.
    pub(crate) fn address(&self) -> u64 {
        self.0.address()
    }

    /// Reads its first bytes.
    pub(crate) fn read(&self, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        // SAFETY: not null, and the caller of the interface promises `bytes` readable bytes until the operation is over.
        unsafe { out.as_mut_ptr().copy_from_nonoverlapping(self.0.0.cast(), bytes) };
        out
    }

    /// Writes bytes at an offset of `at` bytes.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        // SAFETY: not null, and the caller of the interface promises `at + bytes.len()` writable bytes until the operation is over.
        unsafe { self.0.0.cast::<u8>().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

/// Pinned memory, which the driver allocates.
#[derive(Debug)]
pub(crate) struct Owned {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: the memory belongs to this value alone, and is accessed under the driver's lock or by the program.
unsafe impl Send for Owned {}

/// The alignment of pinned memory: a page.
const PAGE: usize = 4096;

impl Owned {
    /// Allocates this number of bytes, each `0xFF`; `None` if the number is 0 or too large.
    pub(crate) fn new(bytes: usize) -> Option<Owned> {
        let layout = Layout::from_size_align(bytes, PAGE).ok().filter(|l| l.size() > 0)?;
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        if start.is_null() {
            return None;
        }
        // SAFETY: just allocated with this size.
        unsafe { start.write_bytes(0xFF, bytes) };
        Some(Owned { start, layout })
    }

    /// The address of the memory.
    pub(crate) fn address(&self) -> u64 {
        self.start.expose_provenance() as u64
    }

    /// The size in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.layout.size()
    }

    /// Reads all bytes.
    pub(crate) fn read(&self) -> Vec<u8> {
        let mut out = vec![0; self.len()];
        // SAFETY: the memory has this size and is initialised; the program does not write to what a launch reads.
        unsafe { out.as_mut_ptr().copy_from_nonoverlapping(self.start, self.len()) };
        out
    }

    /// Writes bytes at an offset of `at` bytes; bytes that do not fit are dropped.
    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        let n = bytes.len().min(self.len().saturating_sub(at));
        if n > 0 {
            // SAFETY: `at + n` is at most the size; the program does not look at what a launch writes.
            unsafe { self.start.add(at).copy_from_nonoverlapping(bytes.as_ptr(), n) };
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(self.start, self.layout) };
    }
}

/// A function of the program with its argument.
#[derive(Debug)]
pub(crate) struct HostCall {
    function: extern "C" fn(*mut c_void),
    argument: Pointer,
}

impl HostCall {
    /// A function that was passed to the driver; null is an error.
    pub(crate) fn new(function: Option<extern "C" fn(*mut c_void)>, argument: Pointer) -> Done<HostCall> {
        Ok(HostCall { function: function.ok_or(Code::INVALID_VALUE)?, argument })
    }

    /// Calls the function.
    pub(crate) fn call(&self) {
        (self.function)(self.argument.0);
    }
}
