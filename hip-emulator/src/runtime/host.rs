//! Pointers of the caller.
//!
//! The functions of the interface get them as these types. C passes them as what they are represented as, and the manual
//! (HIP runtime API) demands of every caller what the operations here rely on: that a result points to room for it, that a
//! text ends, that memory given for a copy stays until the copy is over. Null is checked.

use crate::world::{Code, Done};
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

impl Image {
    pub(crate) fn get(&self) -> Done<Vec<u8>> {
        const HEADER: usize = 64;
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller of the interface promises an ELF file of 64 bits, which begins with a header of 64 bytes.
        let header = unsafe { std::slice::from_raw_parts(self.0, HEADER) };
        let number =
            |at: usize, n: usize| header[at..at + n].iter().rev().fold(0_usize, |all, b| all << 8 | usize::from(*b));
        if !header.starts_with(b"\x7fELF") {
            return Err(Code::INVALID_IMAGE);
        }
        // The section headers are the last thing in a code object.
        let size = number(40, 8).saturating_add(number(58, 2).saturating_mul(number(60, 2)));
        // SAFETY: the caller promises the whole file, which ends with its section headers.
        Ok(unsafe { std::slice::from_raw_parts(self.0, size.max(HEADER)) }.to_vec())
    }
}

/// Memory of the host that a copy reads, when it runs.
#[derive(Debug)]
pub(crate) struct Source(*const u8, usize);

// SAFETY: the caller promises that the memory stays, and is not written, until the copy has run, on whatever thread.
unsafe impl Send for Source {}

impl Source {
    pub(crate) fn new(from: *const c_void, bytes: usize) -> Source {
        Source(from.cast(), bytes)
    }

    pub(crate) fn read(&self) -> Vec<u8> {
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
    pub(crate) fn new(to: *mut c_void, bytes: usize) -> Target {
        let target = Target(to.cast(), bytes);
        target.write(&vec![0xFF; bytes]);
        target
    }

    pub(crate) fn len(&self) -> usize {
        self.1
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        // SAFETY: the caller promises room for so many bytes until the copy has run.
        unsafe { self.0.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len().min(self.1)) };
    }
}

/// The list behind the parameters of a launch: where the arguments are.
#[repr(transparent)]
#[derive(Debug)]
pub(crate) struct Extra(*const *mut c_void);

impl Extra {
    /// The arguments' bytes.
    pub(crate) fn arguments(&self) -> Done<Vec<u8>> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let (mut buffer, mut size) = (std::ptr::null::<u8>(), std::ptr::null::<usize>());
        let mut at = 0;
        loop {
            // SAFETY: the caller promises pairs of a tag and a value, and the tag 3 at the end.
            let tag = unsafe { *self.0.add(at) }.addr();
            if tag == 3 {
                break;
            }
            // SAFETY: as above.
            let value = unsafe { *self.0.add(at + 1) };
            match tag {
                1 => buffer = value.cast(),
                2 => size = value.cast(),
                _ => return Err(Code::INVALID_VALUE),
            }
            at += 2;
        }
        if buffer.is_null() || size.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the caller promises a size, and so many bytes.
        Ok(unsafe { std::slice::from_raw_parts(buffer, size.read_unaligned()) }.to_vec())
    }
}
