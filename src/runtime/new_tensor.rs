//! New tensors: of elements, of bytes, of one value, without contents.

use super::device::{Device, advance};
use super::dyn_tensor::DynTensor;
use super::layout::Layout;
use super::tensor::Tensor;
use super::transfer::host_vec;
use crate::error::{Error, Result};
use crate::lang::Elem;

impl Device {
    /// A tensor of these elements, in row-major order: a copy of a slice, an array, a `Vec` or a reference to one.
    ///
    /// # Errors
    /// If the number of elements is not that of the shape, or there is not enough memory.
    pub fn tensor<T: Elem, const R: usize>(&self, data: impl AsRef<[T]>, shape: [usize; R]) -> Result<Tensor<T, R>> {
        let data = data.as_ref();
        let layout = Layout::row_major(T::ELEM, shape)?;
        if layout.len() != data.len() {
            return Err(Error::ElementCount { found: data.len(), shape: shape.to_vec(), expected: layout.len() });
        }
        let mut tensor = Tensor::unwritten(self, layout)?;
        tensor.write(data)?;
        Ok(tensor)
    }

    /// A tensor of these bytes, such as a part of a file: its elements in row-major order, little-endian, two 4-bit elements to a byte with the
    /// lower index low. The bytes are copied once, to the memory of the device, and may lie at any address.
    ///
    /// [`DynTensor::from_bytes`] does the same for an element type of run time.
    ///
    /// ```
    /// use titan::prelude::*;
    ///
    /// let dev = Device::cpu();
    /// let x: Tensor<f16, 2> = dev.tensor_from_bytes([0x00, 0x3C, 0x00, 0xC0], [1, 2])?;
    /// assert_eq!(x.to_vec()?, [f16::from_f32(1.0), f16::from_f32(-2.0)]);
    /// let codes: Tensor<u4, 1> = dev.tensor_from_bytes([0x21, 0x43], [4])?;
    /// assert_eq!(codes.to_vec()?.iter().map(|c| c.to_u8()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    /// # Ok::<(), titan::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the number of bytes is not that of the shape (T1103), if an element of type `bool` is neither 0 nor 1 or one of type `tf32` has
    /// more than 10 fraction bits (T1103), or if there is not enough memory.
    pub fn tensor_from_bytes<T: Elem, const R: usize>(
        &self,
        bytes: impl AsRef<[u8]>,
        shape: [usize; R],
    ) -> Result<Tensor<T, R>> {
        DynTensor::from_bytes(self, T::ELEM, &shape, bytes.as_ref())?.into_tensor()
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn zeros<T: Elem, const R: usize>(&self, shape: [usize; R]) -> Result<Tensor<T, R>> {
        Tensor::zeroed(self, Layout::row_major(T::ELEM, shape)?)
    }

    /// A tensor whose elements have no defined values, for an output that a launch writes completely: GPUs do not fill its memory first.
    ///
    /// It is `unsafe` because elements that nothing has written may have what other work left in the memory, such as another user's data, and
    /// because nothing proves that a kernel writes all of an output. [`Device::zeros`] is the safe function. The emulators report such elements:
    /// those of NVIDIA's GPUs when a kernel reads them, that of gfx942 when an address or a branch depends on them, and all of them when the
    /// host reads them or what was computed of them (T1110). The memory of the CPU and of the simulator is always filled with zeros.
    ///
    /// ```
    /// use titan::prelude::*;
    ///
    /// #[titan::kernel]
    /// fn twice(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    ///     y.store_tile([program_id(0)], x.load_tile::<64>([program_id(0)]) * 2.0);
    /// }
    ///
    /// # fn main() -> titan::Result<()> {
    /// let dev = Device::cpu();
    /// let x = dev.full([100], 1.5f32)?;
    /// // SAFETY: `twice` stores a tile in each program, so it writes all elements, and the next line returns if it fails.
    /// let mut y = unsafe { dev.uninit(x.shape())? };
    /// twice(&x, &mut y).sync()?;
    /// assert_eq!(y.to_vec()?, [3.0; 100]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// No element may be read, by a launch or by the host, before a launch that has not failed or a copy has written it.
    ///
    /// # Errors
    /// If there is not enough memory.
    #[expect(unsafe_code, reason = "the caller answers for what is read")]
    pub unsafe fn uninit<T: Elem, const R: usize>(&self, shape: [usize; R]) -> Result<Tensor<T, R>> {
        Tensor::undefined(self, Layout::row_major(T::ELEM, shape)?)
    }

    /// A tensor whose elements all have this value.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn full<T: Elem, const R: usize>(&self, shape: [usize; R], value: T) -> Result<Tensor<T, R>> {
        let mut tensor = Tensor::unwritten(self, Layout::row_major(T::ELEM, shape)?)?;
        tensor.fill(value)?;
        Ok(tensor)
    }

    /// A tensor whose element at each index is `f(index)`.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn from_fn<T: Elem, const R: usize>(
        &self,
        shape: [usize; R],
        mut f: impl FnMut([usize; R]) -> T,
    ) -> Result<Tensor<T, R>> {
        let layout = Layout::row_major(T::ELEM, shape)?;
        let mut index = [0; R];
        let mut data = host_vec(layout.len())?;
        for _ in 0..layout.len() {
            data.push(f(index));
            advance(&mut index, &shape);
        }
        self.tensor(&data, shape)
    }
}
