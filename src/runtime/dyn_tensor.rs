//! Tensors whose element type and rank are known only at run time, such as those of a file.
//!
//! A [`DynTensor`] is given to `dispatch!`, or becomes a [`Tensor`] without a copy. Deliberately absent: operations on its elements, for
//! which it is viewed as a tensor of its type.

use super::buffer::{Access, Buffer, run_here};
use super::device::Device;
use super::footprint;
use super::layout::{Layout, MAX_RANK, were};
use super::tensor::Tensor;
use super::view::{View, ViewMut};
use crate::error::{Error, Result};
use crate::lang::Elem;
use std::fmt;
use titan_core::ir::Elem as ElemType;

/// Elements of a type that is known only at run time, in the memory of a device.
///
/// [`view`](DynTensor::view) and [`into_tensor`](DynTensor::into_tensor) give it a type, without a copy; `dispatch!` launches the instance
/// of a kernel for its element type:
///
/// ```
/// use titan::prelude::*;
/// use titan::{DynTensor, ElemType};
///
/// #[titan::kernel(instances(T in [f16, bf16, f32]))]
/// fn double<T: Float>(#[shape(N)] x: &Tensor<T, 1>, #[shape(N)] y: &mut Tensor<T, 1>) {
///     let p = program_id(0);
///     y.store_tile([p], x.load_tile::<64>([p]) + x.load_tile::<64>([p]));
/// }
///
/// # fn main() -> titan::Result<()> {
/// let dev = Device::cpu();
/// let bytes: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
/// let x = DynTensor::from_bytes(&dev, ElemType::F32, &[2], &bytes)?;
/// let mut y = DynTensor::zeros(&dev, x.elem(), x.shape())?;
/// titan::dispatch!(double::<_>(&x, &mut y)).sync()?;
/// assert_eq!(y.into_tensor::<f32, 1>()?.to_vec()?, [3.0, -4.0]);
/// # Ok(())
/// # }
/// ```
pub struct DynTensor {
    buffer: Buffer,
    rank: usize,
    /// The axes of the tensor are the last `rank` ones; the others have extent 1.
    layout: Layout<MAX_RANK>,
}

impl DynTensor {
    /// A row-major tensor of these bytes: its elements in row-major order, little-endian, two 4-bit elements to a byte with the lower index
    /// low. They are copied once, to the memory of the device, and may lie at any address.
    ///
    /// # Errors
    /// If the number of bytes is not that of the shape (T1103), if an element of type `bool` is neither 0 nor 1 or one of type `tf32` has
    /// more than 10 fraction bits (T1103), if the rank is more than 8, or if there is not enough memory.
    pub fn from_bytes(device: &Device, elem: ElemType, shape: &[usize], bytes: &[u8]) -> Result<DynTensor> {
        let (rank, layout) = padded_row_major(elem, shape)?;
        let expected = elem.bytes_for(layout.len());
        if bytes.len() != expected {
            let problem = format!(
                "{} given for shape {shape:?} of elements `{elem}`, which needs {expected}",
                were(bytes.len(), "byte")
            );
            return Err(Error::TensorBytes { problem, help: "pass the bytes of all elements, and no others" });
        }
        if let Some((at, problem)) = no_value(elem, bytes) {
            let problem = format!("byte {at} begins an element that is no `{elem}`: {problem}");
            return Err(Error::TensorBytes { problem, help: "check that the data has this element type" });
        }
        let tensor = DynTensor { buffer: Buffer::unwritten(device, expected)?, rank, layout };
        if !bytes.is_empty() {
            run_here("`from_bytes`", &[tensor.access(true)], || tensor.buffer.storage().write(0, bytes))?;
        }
        Ok(tensor)
    }

    /// A row-major tensor of zeros.
    ///
    /// # Errors
    /// If the rank is more than 8, or there is not enough memory.
    pub fn zeros(device: &Device, elem: ElemType, shape: &[usize]) -> Result<DynTensor> {
        let (rank, layout) = padded_row_major(elem, shape)?;
        Ok(DynTensor { buffer: Buffer::zeroed(device, elem.bytes_for(layout.len()))?, rank, layout })
    }

    /// The elements of a buffer under a layout, which lies inside of it, and whose axes before the last `rank` ones have extent 1.
    pub(super) fn of(buffer: Buffer, rank: usize, layout: Layout<MAX_RANK>) -> DynTensor {
        DynTensor { buffer, rank, layout }
    }

    /// The memory and the layout, whose axes are the last ones.
    pub(super) fn parts(&self) -> (&Buffer, &Layout<MAX_RANK>) {
        (&self.buffer, &self.layout)
    }

    /// The element type.
    #[must_use]
    pub fn elem(&self) -> ElemType {
        self.layout.elem
    }

    /// The extents.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape[MAX_RANK - self.rank..]
    }

    /// The number of axes.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether an extent is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// The device whose memory holds the elements.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.buffer.device()
    }

    /// The tensor as one of its element type and rank, without a copy.
    ///
    /// # Errors
    /// If they are others (T1102).
    pub fn view<T: Elem, const R: usize>(&self) -> Result<View<'_, T, R>> {
        Ok(View::new(Tensor::of(self.buffer.clone(), self.typed::<T, R>()?)))
    }

    /// The exclusive counterpart of [`DynTensor::view`], for writing.
    ///
    /// # Errors
    /// The same as of [`DynTensor::view`].
    pub fn view_mut<T: Elem, const R: usize>(&mut self) -> Result<ViewMut<'_, T, R>> {
        Ok(ViewMut::new(Tensor::of(self.buffer.clone(), self.typed::<T, R>()?)))
    }

    /// The same memory as a tensor of its element type and rank, without a copy.
    ///
    /// # Errors
    /// If they are others (T1102); then the memory is freed.
    pub fn into_tensor<T: Elem, const R: usize>(self) -> Result<Tensor<T, R>> {
        let layout = self.typed::<T, R>()?;
        Ok(Tensor::of(self.buffer, layout))
    }

    /// The layout as one of `R` axes.
    fn typed<T: Elem, const R: usize>(&self) -> Result<Layout<R>> {
        let Layout { elem, offset, .. } = self.layout;
        if elem != T::ELEM || self.rank != R {
            let (expected, expected_rank, shape) = (T::ELEM, R, self.shape().to_vec());
            return Err(Error::NotOfType { expected, expected_rank, found: elem, shape });
        }
        let axes = |of: &[usize]| std::array::from_fn(|i| of[i]);
        Ok(Layout { elem, offset, shape: axes(self.shape()), strides: axes(self.strides()) })
    }

    /// The distance of the next element along each axis, in elements; 0 along an axis that repeats its elements.
    #[must_use]
    pub fn strides(&self) -> &[usize] {
        &self.layout.strides[MAX_RANK - self.rank..]
    }

    /// The position of the first element.
    pub(crate) fn offset(&self) -> usize {
        self.layout.offset
    }

    pub(crate) fn access(&self, write: bool) -> Access {
        Access { buffer: self.buffer.clone(), footprint: footprint::of(&self.layout), write }
    }
}

/// The rank, and the row-major layout with as many axes of extent 1 before it as there are too few.
pub(super) fn padded_row_major(elem: ElemType, shape: &[usize]) -> Result<(usize, Layout<MAX_RANK>)> {
    let rank = shape.len();
    let Some(missing) = MAX_RANK.checked_sub(rank) else {
        let problem = format!("shape {shape:?} has {rank} axes, but a tensor has at most {MAX_RANK}");
        return Err(Error::Layout { operation: "a new tensor", problem, help: "join adjacent axes" });
    };
    let mut extents = [1; MAX_RANK];
    extents[missing..].copy_from_slice(shape);
    // With the extents as the caller gave them.
    let too_large = || Error::TooLarge { shape: shape.to_vec() };
    let refused = |error| if matches!(error, Error::TooLarge { .. }) { too_large() } else { error };
    Ok((rank, Layout::row_major(elem, extents).map_err(refused)?))
}

/// The position of the first bytes that are no value of the element type, and the reason. Only these two types have such bytes.
fn no_value(elem: ElemType, bytes: &[u8]) -> Option<(usize, &'static str)> {
    match elem {
        ElemType::Bool => {
            let at = bytes.iter().position(|b| *b > 1)?;
            Some((at, "a `bool` is 0 or 1"))
        }
        ElemType::Tf32 => {
            let (words, _) = bytes.as_chunks::<4>();
            let at = words.iter().position(|w| u32::from_le_bytes(*w) & 0x1FFF != 0)?;
            Some((4 * at, "a `tf32` has 10 fraction bits, and zeros after them"))
        }
        ElemType::F64
        | ElemType::F32
        | ElemType::F16
        | ElemType::Bf16
        | ElemType::E4m3
        | ElemType::E5m2
        | ElemType::I64
        | ElemType::I32
        | ElemType::I16
        | ElemType::I8
        | ElemType::I4
        | ElemType::U64
        | ElemType::U32
        | ElemType::U16
        | ElemType::U8
        | ElemType::U4 => None,
    }
}

impl<T: Elem, const R: usize> From<Tensor<T, R>> for DynTensor {
    /// The same memory; nothing is copied.
    fn from(tensor: Tensor<T, R>) -> Self {
        const { assert!(R <= MAX_RANK, "tensors have at most 8 axes") };
        let Layout { elem, offset, shape, strides } = *tensor.layout();
        let (mut extents, mut distances) = ([1; MAX_RANK], [1; MAX_RANK]);
        extents[MAX_RANK - R..].copy_from_slice(&shape);
        distances[MAX_RANK - R..].copy_from_slice(&strides);
        let layout = Layout { elem, offset, shape: extents, strides: distances };
        DynTensor { buffer: tensor.access(false).buffer, rank: R, layout }
    }
}

impl fmt::Debug for DynTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor<{}>{:?} on {}", self.elem(), self.shape(), self.device())
    }
}
