//! The CPU as a device, and tensors in host slices.
//!
//! [`scope`] lends slices to kernels without a copy:
//!
//! ```
//! use titan::prelude::*;
//!
//! #[titan::kernel]
//! fn twice(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
//!     y.store_tile([program_id(0)], x.load_tile::<64>([program_id(0)]) * 2.0);
//! }
//!
//! # fn main() -> titan::Result<()> {
//! let x = vec![1.5f32; 100];
//! let mut y = vec![0.0f32; 100];
//! titan::cpu::scope(|host| {
//!     let x = host.borrow(&x, [100])?;
//!     let mut y = host.borrow_mut(&mut y, [100])?;
//!     twice(&x, &mut y).sync()
//! })?;
//! assert_eq!(y, [3.0; 100]);
//! # Ok(())
//! # }
//! ```

use super::backend::Storage;
use super::buffer::Buffer;
use super::device::Device;
use super::dyn_tensor::DynTensor;
use super::dyn_view::{DynView, DynViewMut};
use super::layout::Layout;
use super::lock;
use super::stored::Stored;
use super::strided::{Place, Strided};
use super::tensor::Tensor;
use super::view::{View, ViewMut};
use crate::error::{Error, Result};
use crate::lang::Elem;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Mutex;
use titan_core::ir::Elem as ElemType;
use titan_cpu::memory::Memory;

/// The name of the CPU: threads and model.
pub(super) fn description() -> String {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|l| l.starts_with("model name")).and_then(|l| l.split_once(':'));
    let model = model.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    format!("{threads} {}, {model}", if threads == 1 { "thread" } else { "threads" })
}

/// Runs `f`, in which host slices can be used as tensors of the CPU. When this returns, every launch that uses them has ended, also on
/// streams, and also if `f` panics: until then the slices are borrowed.
///
/// Failures of launches are reported as always: by calls that read their results, or by [`Stream::sync`](crate::Stream::sync).
pub fn scope<'env, R>(f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
    let lent = Lent::default();
    f(&Scope { lent: &lent, scope: PhantomData, env: PhantomData })
    // When `lent` is dropped, also in a panic, it waits for the launches.
}

/// Makes tensors of host slices: see [`scope`].
pub struct Scope<'scope, 'env> {
    lent: &'scope Lent,
    /// Invariant, as in `std::thread::Scope`: a view cannot be taken for one of a longer scope.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The memories that were lent in a scope.
#[derive(Default)]
struct Lent(Mutex<Vec<Buffer>>);

impl<'scope, 'env> Scope<'scope, 'env> {
    /// A row-major tensor in a slice, to read.
    ///
    /// # Errors
    /// If the shape does not have as many elements as the slice, or if elements have another layout on devices: those of `tf32`, 8-bit
    /// floats and 4-bit types.
    pub fn borrow<T: Elem, const R: usize>(
        &'scope self,
        data: &'env [T],
        shape: [usize; R],
    ) -> Result<View<'scope, T, R>> {
        self.read("borrow", data, row_major::<T, R>(data.len(), shape)?)
    }

    /// A tensor with any strides in a slice, to read: a part, a transposed matrix, repeated elements.
    ///
    /// # Errors
    /// If an element would not be in the slice (T1114); as [`Scope::borrow`] for the element type.
    pub fn borrow_strided<T: Elem, const R: usize>(
        &'scope self,
        data: &'env [T],
        place: Strided<R>,
    ) -> Result<View<'scope, T, R>> {
        const DOING: &str = "borrow_strided";
        self.read(DOING, data, place.layout(DOING, T::ELEM, data.len(), false)?)
    }

    fn read<T: Elem, const R: usize>(
        &'scope self,
        doing: &'static str,
        data: &'env [T],
        layout: Layout<R>,
    ) -> Result<View<'scope, T, R>> {
        Ok(View::new(Tensor::of(self.lent(doing, data)?, layout)))
    }

    /// A tensor of any rank and strides in a slice, to read: the tensor of a framework, whose element type and rank are known at run time.
    ///
    /// # Errors
    /// If an element would not be in the slice (T1114), or the rank is more than 8; as [`Scope::borrow`] for the element type.
    pub fn borrow_dyn<T: Stored>(&'scope self, data: &'env [T], place: Place<'_>) -> Result<DynView<'scope>> {
        const DOING: &str = "borrow_dyn";
        let (rank, layout) = place.layout(DOING, T::ELEM, data.len(), false)?;
        Ok(DynView::new(DynTensor::of(self.lent(DOING, data)?, rank, layout)))
    }

    /// A slice as memory to read.
    fn lent<T: Stored>(&'scope self, doing: &'static str, data: &'env [T]) -> Result<Buffer> {
        let bytes = T::stored_bytes(data).ok_or_else(|| otherwise(doing, T::ELEM))?;
        // SAFETY: the slice is borrowed for `'env`, which the scope does not outlive; a view of it lives for `'scope` at
        // most, and `scope` always waits for every access before it returns. Elements of a slice are aligned.
        #[expect(unsafe_code, reason = "the slice is lent without a copy")]
        let memory = unsafe { Memory::lent(bytes) };
        Ok(self.buffer(memory))
    }

    /// The exclusive counterpart of [`Scope::borrow`], for writing.
    ///
    /// # Errors
    /// As [`Scope::borrow`], and for `bool`, because not every byte is a valid `bool`.
    pub fn borrow_mut<T: Elem, const R: usize>(
        &'scope self,
        data: &'env mut [T],
        shape: [usize; R],
    ) -> Result<ViewMut<'scope, T, R>> {
        let layout = row_major::<T, R>(data.len(), shape)?;
        self.write("borrow_mut", data, layout)
    }

    /// The exclusive counterpart of [`Scope::borrow_strided`], for writing. The elements of the slice between those of the tensor stay as they are.
    ///
    /// # Errors
    /// As [`Scope::borrow_strided`], if two elements would be the same one of the slice (T1114), and for `bool`.
    pub fn borrow_strided_mut<T: Elem, const R: usize>(
        &'scope self,
        data: &'env mut [T],
        place: Strided<R>,
    ) -> Result<ViewMut<'scope, T, R>> {
        const DOING: &str = "borrow_strided_mut";
        let layout = place.layout(DOING, T::ELEM, data.len(), true)?;
        self.write(DOING, data, layout)
    }

    /// The counterpart of [`Scope::borrow_mut`] for memory without contents, such as that of a new `Vec` (`spare_capacity_mut`). All of it is filled
    /// with zeros first, so that every element is initialized when the scope ends, also those that no launch writes.
    ///
    /// # Errors
    /// As [`Scope::borrow_mut`].
    pub fn borrow_uninit_mut<T: Elem, const R: usize>(
        &'scope self,
        data: &'env mut [MaybeUninit<T>],
        shape: [usize; R],
    ) -> Result<ViewMut<'scope, T, R>> {
        const DOING: &str = "borrow_uninit_mut";
        let layout = row_major::<T, R>(data.len(), shape)?;
        if T::stored_bytes(&[]).is_none() || !T::IS_PLAIN {
            return Err(otherwise(DOING, T::ELEM));
        }
        let (start, len) = (data.as_mut_ptr(), data.len());
        // SAFETY: the slice has room for so many elements, and is borrowed exclusively. Zeros are a value of every such type, so that the slice is
        // one of initialized elements from now on.
        #[expect(unsafe_code, reason = "the slice has no contents before")]
        let data: &'env mut [T] = unsafe {
            start.write_bytes(0, len);
            std::slice::from_raw_parts_mut(start.cast(), len)
        };
        self.write(DOING, data, layout)
    }

    fn write<T: Elem, const R: usize>(
        &'scope self,
        doing: &'static str,
        data: &'env mut [T],
        layout: Layout<R>,
    ) -> Result<ViewMut<'scope, T, R>> {
        Ok(ViewMut::new(Tensor::of(self.lent_mut(doing, data)?, layout)))
    }

    /// The exclusive counterpart of [`Scope::borrow_dyn`], for writing. The elements of the slice between those of the tensor stay as they are.
    ///
    /// # Errors
    /// As [`Scope::borrow_dyn`], if two elements would be the same one of the slice (T1114), and for `bool`.
    pub fn borrow_dyn_mut<T: Stored>(
        &'scope self,
        data: &'env mut [T],
        place: Place<'_>,
    ) -> Result<DynViewMut<'scope>> {
        const DOING: &str = "borrow_dyn_mut";
        let (rank, layout) = place.layout(DOING, T::ELEM, data.len(), true)?;
        Ok(DynViewMut::new(DynTensor::of(self.lent_mut(DOING, data)?, rank, layout)))
    }

    /// A slice as memory to write.
    fn lent_mut<T: Stored>(&'scope self, doing: &'static str, data: &'env mut [T]) -> Result<Buffer> {
        if T::stored_bytes(data).is_none() || !T::IS_PLAIN {
            return Err(otherwise(doing, T::ELEM));
        }
        let start = data.as_mut_ptr();
        let bytes = std::ptr::slice_from_raw_parts_mut(start.cast::<u8>(), size_of_val(data));
        // SAFETY: as in `lent`; the borrow is exclusive, and every pattern of bits is a value of the type.
        #[expect(unsafe_code, reason = "the slice is lent without a copy")]
        let memory = unsafe { Memory::lent_mut(bytes) };
        Ok(self.buffer(memory))
    }

    /// The memory that is lent for the scope.
    fn buffer(&self, memory: Memory) -> Buffer {
        let buffer = Buffer::of(&Device::cpu(), memory.len(), (Storage::Cpu(memory), None));
        lock(&self.lent.0).push(buffer.clone());
        buffer
    }
}

/// The row-major layout of a whole slice.
fn row_major<T: Elem, const R: usize>(len: usize, shape: [usize; R]) -> Result<Layout<R>> {
    let layout = Layout::row_major(T::ELEM, shape)?;
    if layout.len() != len {
        return Err(Error::ElementCount { found: len, shape: shape.to_vec(), expected: layout.len() });
    }
    Ok(layout)
}

fn otherwise(operation: &'static str, elem: ElemType) -> Error {
    let problem = format!("elements of type `{elem}` have another layout on the device than in a slice");
    Error::Layout { operation, problem, help: "copy them with `Device::tensor`" }
}

impl Drop for Lent {
    /// No view exists any more, so the entered work is all that will ever use the slices.
    fn drop(&mut self) {
        lock(&self.0).drain(..).for_each(|buffer| buffer.await_all());
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({} slices)", lock(&self.lent.0).len())
    }
}
