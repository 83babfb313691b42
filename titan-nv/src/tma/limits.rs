//! The limits of tensor maps: the reasons for which the encoder refuses a map.
//!
//! Source: CUDA driver API, `cuTensorMapEncodeTiled`; PTX ISA, "Traversal-Stride".

use super::{Fill, MAX_RANK, TensorMap};

/// The reason why a map is not legal: `cuTensorMapEncodeTiled` refuses it, or the PTX ISA manual forbids it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorMapError {
    /// The rank is not 1 to 5.
    #[error("a tensor map has 1 to 5 dimensions, not {0}")]
    Rank(u8),
    /// The address is not a multiple of 16.
    #[error("the tensor begins at {0:#x}, which is not a multiple of 16 bytes")]
    Address(u64),
    /// An extent is 0 or more than 2³².
    #[error("dimension {dim} has {extent} elements: 1 to 2^32 are possible")]
    Extent {
        /// The dimension, from the innermost.
        dim: usize,
        /// The number of elements along the dimension.
        extent: u64,
    },
    /// A stride is not a multiple of 16 bytes, or is 2⁴⁰ or more.
    #[error("the stride of dimension {dim} is {stride} bytes: multiples of 16 below 2^40 are possible")]
    Stride {
        /// The dimension, from the innermost.
        dim: usize,
        /// The stride of the dimension, in bytes.
        stride: u64,
    },
    /// A box extent is 0 or more than 256.
    #[error("the box has {extent} elements along dimension {dim}: 1 to 256 are possible")]
    Box {
        /// The dimension, from the innermost.
        dim: usize,
        /// The box along it, in elements.
        extent: u32,
    },
    /// An element stride is 0 or more than 8.
    #[error("the element stride of dimension {dim} is {stride}: 1 to 8 are possible")]
    ElementStride {
        /// The dimension, from the innermost.
        dim: usize,
        /// The element stride of the dimension.
        stride: u32,
    },
    /// The innermost dimension has an element stride, which the encoder ignores. PTX ISA, "Traversal-Stride".
    #[error("the element stride of the innermost dimension is {0}: only 1 is possible there")]
    InnermostStride(u32),
    /// The inner dimension of the box is not a multiple of 16 bytes.
    #[error("the innermost dimension of the box has {bytes} bytes, which is not a multiple of 16")]
    InnerBytes {
        /// The size of the inner dimension of the box, in bytes.
        bytes: u32,
    },
    /// The inner dimension of the box is wider than the swizzle.
    #[error("the innermost dimension of the box has {bytes} bytes, and the swizzle allows {span}")]
    Swizzle {
        /// The size of the inner dimension of the box, in bytes.
        bytes: u32,
        /// The largest size that the swizzle allows, in bytes.
        span: u32,
    },
    /// NaN is to fill elements of a type without NaN.
    #[error("only floating-point elements can be filled with NaN")]
    Fill,
}

impl TensorMap {
    /// Checks that `cuTensorMapEncodeTiled` accepts the map, and that copies by it are defined.
    ///
    /// # Errors
    /// [`TensorMapError`]: the first limit that is broken.
    pub fn check(&self) -> Result<(), TensorMapError> {
        let rank = self.dims();
        if self.rank == 0 || usize::from(self.rank) > MAX_RANK {
            return Err(TensorMapError::Rank(self.rank));
        }
        if !self.address.is_multiple_of(16) {
            return Err(TensorMapError::Address(self.address));
        }
        for dim in 0..rank {
            let extent = self.extents[dim];
            if extent == 0 || extent > 1 << 32 {
                return Err(TensorMapError::Extent { dim, extent });
            }
        }
        for (dim, stride) in (1..rank).zip(self.strides) {
            if !stride.is_multiple_of(16) || stride >= 1 << 40 {
                return Err(TensorMapError::Stride { dim, stride });
            }
        }
        for dim in 0..rank {
            let extent = self.box_extents[dim];
            if extent == 0 || extent > 256 {
                return Err(TensorMapError::Box { dim, extent });
            }
        }
        for dim in 0..rank {
            let stride = self.element_strides[dim];
            if stride == 0 || stride > 8 {
                return Err(TensorMapError::ElementStride { dim, stride });
            }
        }
        if self.element_strides[0] != 1 {
            return Err(TensorMapError::InnermostStride(self.element_strides[0]));
        }
        let bytes = self.box_extents[0] * self.element.bytes();
        if !bytes.is_multiple_of(16) {
            return Err(TensorMapError::InnerBytes { bytes });
        }
        if let Some(span) = self.swizzle.span().filter(|span| bytes > *span) {
            return Err(TensorMapError::Swizzle { bytes, span });
        }
        if self.fill == Fill::Nan && !self.element.is_float() {
            return Err(TensorMapError::Fill);
        }
        Ok(())
    }
}
