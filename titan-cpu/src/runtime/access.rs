//! Reads and writes through a [`View`]: rows, elements, atomic updates.

use super::view::View;
use crate::ops::{ScalarFn, TileFn};
use crate::rep::with_width;
use crate::simd::Isa;
use bytemuck::Pod;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
use titan_core::ir::Elem;

/// An element of 1, 2, 4 or 8 bytes in memory.
pub(crate) trait Word: Pod + PartialEq {
    /// Converts from the low bits of a scalar slot.
    fn from_slot(bits: u64) -> Self;
    /// Converts to the bits of a scalar slot; the upper bits are zero.
    fn to_slot(self) -> u64;
    /// Loads a value that other threads may be storing.
    ///
    /// # Safety
    /// The same as for `store_shared`.
    unsafe fn load_shared(at: *mut Self) -> Self;
    /// Stores a value that other threads may be storing or updating too.
    ///
    /// # Safety
    /// `at` points to a word in memory, aligned, that is only accessed atomically or by this thread for now.
    unsafe fn store_shared(at: *mut Self, value: Self);
    /// Replaces the value by `f` of it, and returns what it was.
    ///
    /// # Safety
    /// The same as for `store_shared`.
    unsafe fn update_shared(at: *mut Self, f: impl Fn(Self) -> Self) -> Self;
    /// Replaces the value by `new` if it is `current`, and returns what it was.
    ///
    /// # Safety
    /// The same as for `store_shared`.
    unsafe fn exchange_shared(at: *mut Self, current: Self, new: Self) -> Self;
    /// Adds an integer atomically.
    ///
    /// # Safety
    /// The same as for `store_shared`.
    unsafe fn add_shared(at: *mut Self, value: Self);
}

macro_rules! words {
    ($($t:ty: $atomic:ty;)*) => {$(
        impl Word for $t {
            #[inline(always)]
            fn from_slot(bits: u64) -> Self {
                let bytes = bits.to_le_bytes();
                <$t>::from_le_bytes(std::array::from_fn(|i| bytes[i]))
            }
            #[inline(always)]
            fn to_slot(self) -> u64 {
                u64::from(self)
            }
            unsafe fn load_shared(at: *mut Self) -> Self {
                // SAFETY: the caller's.
                unsafe { <$atomic>::from_ptr(at) }.load(Relaxed)
            }
            unsafe fn store_shared(at: *mut Self, value: Self) {
                // SAFETY: the caller's.
                unsafe { <$atomic>::from_ptr(at) }.store(value, Relaxed);
            }
            unsafe fn update_shared(at: *mut Self, f: impl Fn(Self) -> Self) -> Self {
                // SAFETY: the caller's.
                let word = unsafe { <$atomic>::from_ptr(at) };
                let mut old = word.load(Relaxed);
                while let Err(now) = word.compare_exchange_weak(old, f(old), Relaxed, Relaxed) {
                    old = now;
                }
                old
            }
            unsafe fn exchange_shared(at: *mut Self, current: Self, new: Self) -> Self {
                // SAFETY: the caller's.
                let word = unsafe { <$atomic>::from_ptr(at) };
                word.compare_exchange(current, new, Relaxed, Relaxed).unwrap_or_else(|old| old)
            }
            unsafe fn add_shared(at: *mut Self, value: Self) {
                // SAFETY: the caller's.
                unsafe { <$atomic>::from_ptr(at) }.fetch_add(value, Relaxed);
            }
        }
    )*};
}
words! { u8: AtomicU8; u16: AtomicU16; u32: AtomicU32; u64: AtomicU64; }

/// The bytes of a memory from which on it counts as far away: half of a usual second cache.
const FAR: i64 = 512 << 10;
/// The bytes that are requested at once, a part of the first cache.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const PREFETCHED: usize = 8 << 10;
/// The bytes of a line of a cache.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

impl View<'_> {
    /// The address of `n` elements from `first` on, `stride` apart, if all of them are in the memory.
    fn span<T>(&self, first: i64, stride: i64, n: usize) -> Option<*mut T> {
        let steps = i64::try_from(n).ok()?.checked_sub(1)?;
        let last = first.checked_add(steps.checked_mul(stride)?)?;
        let size = i64::try_from(size_of::<T>()).ok()?;
        let fits = i64::from(self.elem.bits()) == size * 8 && first.min(last) >= 0 && first.max(last) < self.len;
        let start = isize::try_from(first.checked_mul(size)?).ok()?;
        // SAFETY: element `first` is in the memory, so its first byte is.
        fits.then(|| unsafe { self.bytes.as_ptr().offset(start) }.cast())
    }

    /// Reads elements from `first` on, `stride` apart.
    fn read_words<T: Word>(&self, first: i64, stride: i64, dst: &mut [T]) {
        let Some(from) = self.span::<T>(first, stride, dst.len()) else { return };
        if self.contended {
            for (i, d) in dst.iter_mut().enumerate() {
                // SAFETY: one of the elements that `span` found, aligned; all programs access them atomically.
                *d = unsafe { T::load_shared(from.wrapping_offset(offset(stride).wrapping_mul(i.cast_signed()))) };
            }
            return;
        }
        if stride == 1 {
            // SAFETY: `span` found that many elements; `dst` is a buffer of the program's, not device memory.
            unsafe { from.copy_to_nonoverlapping(dst.as_mut_ptr(), dst.len()) };
            return;
        }
        let mut at = from;
        for d in dst {
            // SAFETY: one of the elements that `span` found, aligned as the memory and `base` are.
            *d = unsafe { at.read() };
            at = at.wrapping_offset(offset(stride));
        }
    }

    /// Writes elements from `first` on, `stride` apart.
    fn write_words<T: Word>(&self, first: i64, stride: i64, src: &[T]) {
        let Some(to) = self.span::<T>(first, stride, src.len()) else { return };
        if !self.writable {
            return;
        }
        if self.contended {
            for (i, s) in src.iter().enumerate() {
                // SAFETY: one of the elements that `span` found, aligned, in a memory that may be written; all programs access
                // them atomically.
                unsafe { T::store_shared(to.wrapping_offset(offset(stride).wrapping_mul(i.cast_signed())), *s) };
            }
            return;
        }
        if stride == 1 {
            // SAFETY: `span` found that many elements in a memory that may be written; `src` is not device memory.
            unsafe { to.copy_from_nonoverlapping(src.as_ptr(), src.len()) };
            return;
        }
        let mut at = to;
        for s in src {
            // SAFETY: one of the elements that `span` found, aligned, in a memory that may be written.
            unsafe { at.write(*s) };
            at = at.wrapping_offset(offset(stride));
        }
    }

    /// Reads whole elements from offset `first` on, `stride` apart, in the form of tile buffers.
    pub(crate) fn read_run(&self, first: i64, stride: i64, dst: &mut [u8], isa: Isa) {
        fn words<T: Word>(view: &View<'_>, first: i64, stride: i64, dst: &mut [u8]) {
            view.read_words::<T>(first, stride, bytemuck::cast_slice_mut(dst));
        }
        if self.elem.bits() == 4 {
            self.read_nibbles(first, stride, dst, isa);
        } else {
            with_width!(crate::rep::size(self.elem), words(self, first, stride, dst));
        }
    }

    /// Writes whole elements from offset `first` on, `stride` apart.
    pub(crate) fn write_run(&self, first: i64, stride: i64, src: &[u8]) {
        fn words<T: Word>(view: &View<'_>, first: i64, stride: i64, src: &[u8]) {
            view.write_words::<T>(first, stride, bytemuck::cast_slice(src));
        }
        if self.elem.bits() == 4 {
            self.write_nibbles(first, stride, src);
        } else {
            with_width!(crate::rep::size(self.elem), words(self, first, stride, src));
        }
    }

    /// Writes rows of `cols` contiguous elements, of which the first begins at element `first` and the others `stride` apart.
    pub(crate) fn write_rows(&self, first: i64, stride: i64, cols: usize, src: &[u8]) {
        fn words<T: Word>(view: &View<'_>, (first, stride): (i64, i64), cols: usize, src: &[u8]) {
            for (row, i) in bytemuck::cast_slice::<u8, T>(src).chunks_exact(cols.max(1)).zip(0i64..) {
                view.write_words::<T>(first.wrapping_add(i.wrapping_mul(stride)), 1, row);
            }
        }
        if self.elem.bits() == 4 {
            for (row, i) in src.chunks_exact(cols.max(1)).zip(0i64..) {
                self.write_nibbles(first.wrapping_add(i.wrapping_mul(stride)), 1, row);
            }
        } else {
            with_width!(crate::rep::size(self.elem), words(self, (first, stride), cols, src));
        }
    }

    /// The address of `n` contiguous elements of whole bytes, if all of them are in the memory.
    fn start_of(&self, first: i64, n: usize) -> Option<*mut u8> {
        fn bytes_at<T: Word>(view: &View<'_>, first: i64, n: usize) -> Option<*mut u8> {
            view.span::<T>(first, 1, n).map(<*mut T>::cast)
        }
        with_width!(crate::rep::size(self.elem), bytes_at(self, first, n))
    }

    /// Computes `n` contiguous elements from `first` on with a function of operands; returns false if that is not possible.
    pub(crate) fn write_by(&self, first: i64, n: usize, isa: Isa, f: TileFn, args: [&[u8]; 3]) -> bool {
        if self.elem.bits() < 8 || !self.writable || self.contended {
            return false;
        }
        let size = crate::rep::size(self.elem);
        let Some(to) = self.start_of(first, n) else { return false };
        // SAFETY: `span` found that many elements in a memory that may be written. They are this program's own, so no other
        // thread accesses them: the view is not contended. In this thread nothing else refers to them while `f`
        // runs: it is a plain function, and its operands are buffers or parts of tensors that nothing in the launch writes.
        let part = unsafe { std::slice::from_raw_parts_mut(to, n * size) };
        f(isa, part, args);
        true
    }

    /// Whether the memory is so large that it is rarely in the cache of a core.
    pub(crate) fn is_far(&self) -> bool {
        self.len >= FAR / i64::from(self.elem.bits().div_ceil(8))
    }

    /// Requests the first lines of `n` contiguous elements from `first` on for writing, so that they are in the cache when the elements are
    /// stored. A request for reading would cost more than it saves: the line would be requested again when it is written.
    pub(crate) fn prefetch(&self, first: i64, n: usize, isa: Isa) {
        if self.elem.bits() < 8 || !self.writable || !isa.has_avx2() {
            return;
        }
        let Some(at) = self.start_of(first, n) else { return };
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        for line in (0..(n * crate::rep::size(self.elem)).min(PREFETCHED)).step_by(LINE) {
            let line = at.wrapping_add(line);
            // SAFETY: a hint, which accesses nothing. Every machine with AVX2 has the instruction, or ignores it.
            unsafe { std::arch::asm!("prefetchw [{}]", in(reg) line, options(nostack, preserves_flags, readonly)) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = at;
    }

    /// The byte that contains a nibble, and whether it is the high half.
    fn nibble(&self, at: i64) -> Option<(*mut u8, bool)> {
        let byte = isize::try_from(at >> 1).ok()?;
        let inside = self.elem.bits() == 4 && at >= 0 && at < self.len;
        // SAFETY: nibble `at` is in the memory, so its byte is.
        inside.then(|| (unsafe { self.bytes.as_ptr().offset(byte) }, at & 1 == 1))
    }

    fn read_nibbles(&self, first: i64, stride: i64, dst: &mut [u8], isa: Isa) {
        let pairs = if stride == 1 { self.read_pairs(first, dst, isa) } else { 0 };
        let mut at = first.wrapping_add(pairs as i64);
        for d in &mut dst[pairs..] {
            let Some((byte, high)) = self.nibble(at) else { return };
            // SAFETY: a byte in the memory. A neighbour's program may be storing the other nibble, hence the atomic load.
            let byte = unsafe { AtomicU8::from_ptr(byte) }.load(Relaxed);
            *d = self.nibble_value(if high { byte >> 4 } else { byte & 15 });
            at = at.wrapping_add(stride);
        }
    }

    /// Reads whole bytes of neighbouring nibbles, each once; returns how many nibbles it has read, from the first one on.
    fn read_pairs(&self, first: i64, dst: &mut [u8], isa: Isa) -> usize {
        let pairs = dst.as_chunks_mut::<2>().0;
        let last = first.wrapping_add(2 * pairs.len() as i64 - 1);
        let (false, Some((start, false)), Some(_)) = (pairs.is_empty(), self.nibble(first), self.nibble(last)) else {
            return 0;
        };
        let read = 2 * pairs.len();
        if self.unwritten && !self.contended {
            // SAFETY: these bytes are in the memory, and nothing writes them during the launch.
            let bytes = unsafe { std::slice::from_raw_parts(start, pairs.len()) };
            // The sign of a nibble, which is extended.
            let sign = if self.elem == Elem::I4 { 8 } else { 0 };
            isa.run(|| {
                for (pair, byte) in pairs.iter_mut().zip(bytes) {
                    *pair = [byte & 15, byte >> 4].map(|nibble| (nibble ^ sign).wrapping_sub(sign));
                }
            });
            return read;
        }
        for (i, pair) in pairs.iter_mut().enumerate() {
            // SAFETY: the first and the last of these bytes are in the memory, so those between them are. A neighbour's program may be
            // storing a nibble, hence the atomic load.
            let byte = unsafe { AtomicU8::from_ptr(start.add(i)) }.load(Relaxed);
            *pair = [self.nibble_value(byte & 15), self.nibble_value(byte >> 4)];
        }
        read
    }

    /// A nibble as an element of 8 bits.
    fn nibble_value(&self, value: u8) -> u8 {
        if self.elem == Elem::I4 { titan_core::num::nibble_to_i8(value).cast_unsigned() } else { value }
    }

    fn write_nibbles(&self, first: i64, stride: i64, src: &[u8]) {
        let mut at = first;
        for s in src {
            let Some((byte, high)) = self.nibble(at).filter(|_| self.writable) else { return };
            let (mask, value) = if high { (0x0F, *s << 4) } else { (0xF0, *s & 15) };
            // SAFETY: a byte in a memory that may be written; the other nibble may be another program's, hence the atomic.
            unsafe { u8::update_shared(byte, |old| old & mask | value) };
            at = at.wrapping_add(stride);
        }
    }

    /// One element, as the low bits of a slot.
    pub(crate) fn read_one(&self, at: i64) -> u64 {
        fn one<T: Word>(view: &View<'_>, at: i64) -> u64 {
            let mut value = [T::zeroed()];
            view.read_words(at, 1, &mut value);
            value[0].to_slot()
        }
        if self.elem.bits() == 4 {
            let value = self.nibble(at).map_or(0, |(byte, high)| {
                // SAFETY: as in `read_nibbles`.
                let byte = unsafe { AtomicU8::from_ptr(byte) }.load(Relaxed);
                self.nibble_value(if high { byte >> 4 } else { byte & 15 })
            });
            return value.into();
        }
        with_width!(crate::rep::size(self.elem), one(self, at))
    }

    /// Stores one element, from the low bits of a slot.
    pub(crate) fn write_one(&self, at: i64, value: u64) {
        fn one<T: Word>(view: &View<'_>, at: i64, value: u64) {
            view.write_words(at, 1, &[T::from_slot(value)]);
        }
        if self.elem.bits() == 4 {
            self.write_nibbles(at, 1, &[u8::from_slot(value)]);
        } else {
            with_width!(crate::rep::size(self.elem), one(self, at, value));
        }
    }

    /// Stores elements that other programs may be storing too: one of the values stays.
    pub(crate) fn write_shared(&self, first: i64, stride: i64, src: &[u8]) {
        fn words<T: Word>(view: &View<'_>, first: i64, stride: i64, src: &[u8]) {
            for (s, i) in bytemuck::cast_slice::<u8, T>(src).iter().zip(0i64..) {
                let at = first.wrapping_add(i.wrapping_mul(stride));
                if let Some(to) = view.span::<T>(at, 1, 1).filter(|_| view.writable) {
                    // SAFETY: an element in a memory that may be written, aligned. A tensor that a kernel scatters to is
                    // not otherwise accessed by it.
                    unsafe { T::store_shared(to, *s) };
                }
            }
        }
        if self.elem.bits() == 4 {
            // These are atomic as well, byte by byte.
            self.write_nibbles(first, stride, src);
        } else {
            with_width!(crate::rep::size(self.elem), words(self, first, stride, src));
        }
    }

    /// Replaces elements by `f` of the element and a value, each atomically. `integer_add`: `f` adds integers.
    pub(crate) fn update_shared(&self, first: i64, stride: i64, src: &[u8], f: ScalarFn, integer_add: bool) {
        fn words<T: Word>(view: &View<'_>, (first, stride): (i64, i64), src: &[u8], f: ScalarFn, integer_add: bool) {
            for (s, i) in bytemuck::cast_slice::<u8, T>(src).iter().zip(0i64..) {
                let at = first.wrapping_add(i.wrapping_mul(stride));
                let Some(to) = view.span::<T>(at, 1, 1).filter(|_| view.writable) else { return };
                if integer_add {
                    // SAFETY: as in `write_shared`.
                    unsafe { T::add_shared(to, *s) };
                } else {
                    // SAFETY: as in `write_shared`.
                    unsafe { T::update_shared(to, |old| T::from_slot(f([old.to_slot(), s.to_slot(), 0]))) };
                }
            }
        }
        if self.elem.bits() >= 8 {
            with_width!(crate::rep::size(self.elem), words(self, (first, stride), src, f, integer_add));
        }
    }
}

impl View<'_> {
    /// Replaces an element by `f` of it and an operand, atomically, and writes what it was to `old`.
    pub(crate) fn fetch_shared(&self, at: i64, operand: &[u8], f: ScalarFn, old: &mut [u8]) {
        fn word<T: Word>(view: &View<'_>, at: i64, operand: &[u8], f: ScalarFn, old: &mut [u8]) {
            let operands = bytemuck::cast_slice::<u8, T>(operand).iter();
            for (operand, old) in operands.zip(bytemuck::cast_slice_mut::<u8, T>(old)) {
                let Some(to) = view.span::<T>(at, 1, 1).filter(|_| view.writable) else { return };
                // SAFETY: an element in a memory that may be written, aligned. A tensor that a kernel updates atomically is not otherwise
                // accessed by it.
                *old = unsafe { T::update_shared(to, |x| T::from_slot(f([x.to_slot(), operand.to_slot(), 0]))) };
            }
        }
        if self.elem.bits() >= 8 {
            with_width!(crate::rep::size(self.elem), word(self, at, operand, f, old));
        }
    }

    /// Replaces an element by `new` if it has the bits of `current`, atomically, and writes what it was to `old`.
    pub(crate) fn compare_exchange_shared(&self, at: i64, [current, new]: [&[u8]; 2], old: &mut [u8]) {
        fn word<T: Word>(view: &View<'_>, at: i64, [current, new]: [&[u8]; 2], old: &mut [u8]) {
            let words = |bytes| bytemuck::cast_slice::<u8, T>(bytes).iter().copied();
            for ((current, new), old) in words(current).zip(words(new)).zip(bytemuck::cast_slice_mut::<u8, T>(old)) {
                let Some(to) = view.span::<T>(at, 1, 1).filter(|_| view.writable) else { return };
                // SAFETY: as in `fetch_shared`.
                *old = unsafe { T::exchange_shared(to, current, new) };
            }
        }
        if self.elem.bits() >= 8 {
            with_width!(crate::rep::size(self.elem), word(self, at, [current, new], old));
        }
    }
}

fn offset(stride: i64) -> isize {
    isize::try_from(stride).unwrap_or(0)
}
