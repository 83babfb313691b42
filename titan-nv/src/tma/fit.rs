//! Decides whether a tensor of a launch can be copied exactly by a tensor map, and computes the map if so.
//!
//! A launch calls this before it chooses a variant: a tensor without a map is not an error, since another variant copies it without one.
//! The answer is certain: a map that [`fit`] returns has passed [`TensorMap::check`], and describes the tensor as the kernel expects it.
//!
//! | property | rule | source |
//! |---|---|---|
//! | address | a multiple of 16 | CUDA driver API, `globalAddress` |
//! | extents | 1 to 2³² | CUDA driver API, `globalDim` |
//! | innermost stride | 1 element, as the map has none for it | CUDA driver API, `globalStrides` |
//! | other strides | positive multiples of 16 bytes below 2⁴⁰; of a dimension of one element, any | CUDA driver API, `globalStrides` |
//! | elements | no two at one address | CUDA driver API, `globalStrides`, whose formula leaves no overlap |
//! | coordinates | every element of every box within 32 bits, signed | PTX ISA, `cp.async.bulk.tensor`, `tensorCoords` |
//! | box | 1 to 256 elements along each dimension, 16 bytes along the innermost, at most 227 KiB | CUDA driver API, `boxDim`; CUDA guide |
//! | element strides | 1 to 8; 1 along the innermost dimension | CUDA driver API; PTX ISA, "Traversal-Stride" |
//! | swizzle | rows of the box as wide as it | see below |
//!
//! **Views.** The map has the extents of the view, not those of the whole tensor. A view that is narrower than the rows that contain
//! it is clipped at its own end: no load reads elements beyond it, and no store writes them. The first element of a
//! view must be at a multiple of 16 bytes.
//!
//! **Strides.** Negative strides (flipped views) and zero strides (broadcast views) have no map. Nor have views with overlap (sliding
//! windows, or a row of K elements as `ceil(K / 64)` pieces of 64, the last of which ends in the next row). A dimension of one
//! element is never stepped along: its stride may be anything, and the map gets a legal one. Strides need no order.
//!
//! **Swizzle.** The encoder accepts rows narrower than the swizzle. The manuals do not specify where such rows lie, so they are refused.
//!
//! **Empty tensors** have no map, as the encoder accepts no extent of 0. A launch with one has nothing to load from it, but its
//! outputs may depend on that (a product over no elements is zero), so another variant runs.

use super::{Element, L2Promotion, MAX_RANK, Swizzle, TensorMap, TensorMapError};
use std::ops::RangeInclusive;

/// A tensor of a launch. Dimensions are innermost first: the reverse of a shape as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// The type of its elements.
    pub element: Element,
    /// The address of the first element; `None` for a tensor that the launch omits.
    pub address: Option<u64>,
    /// The number of elements along each dimension.
    pub extents: &'a [u64],
    /// The stride of each dimension, in elements.
    pub strides: &'a [i64],
}

/// The map that a variant requires. Dimensions are innermost first.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The box along each dimension, in elements.
    pub boxes: &'a [u32],
    /// The element stride along each dimension; an empty slice stands for all 1.
    pub element_strides: &'a [u32],
    /// The first and the last coordinate at which boxes start, along each dimension. If it is empty, boxes start at multiples of
    /// their extents, from 0 to the end of the tensor.
    pub starts: &'a [RangeInclusive<i64>],
    /// The layout in shared memory.
    pub swizzle: Swizzle,
    /// The unit of loads into the L2 cache.
    pub l2: L2Promotion,
}

/// The reason why a tensor has no map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say what the fields are")]
pub enum Unfit {
    #[error("the launch leaves the tensor out")]
    Absent,
    #[error("extents, strides and box are of {extents}, {strides} and {boxes} dimensions")]
    Ranks { extents: usize, strides: usize, boxes: usize },
    #[error("dimension {dim} has no elements")]
    Empty { dim: usize },
    #[error("neighbours along the innermost dimension are {stride} elements apart: only 1 is possible")]
    InnermostStride { stride: i64 },
    #[error("neighbours along dimension {dim} are {stride} elements apart: the stride must be positive")]
    StrideSign { dim: usize, stride: i64 },
    #[error("neighbours along dimension {dim} are {stride} elements apart, which is beyond 2^40 bytes")]
    StrideSize { dim: usize, stride: i64 },
    #[error("elements along dimension {dim} overlap those along other dimensions")]
    Overlap { dim: usize },
    #[error("the tensor ends beyond the last address")]
    End,
    #[error("boxes along dimension {dim} reach from {low} to {high}: coordinates have 32 bits, signed")]
    Coordinates { dim: usize, low: i64, high: i64 },
    #[error("dimension {dim} has no parts")]
    PartDimension { dim: usize },
    #[error("neighbours along dimension {dim} are {bytes} bytes apart: of parts along it, less than 2^34 are possible")]
    PartStride { dim: usize, bytes: u64 },
    #[error("the innermost dimension of the box has {bytes} bytes: a swizzle of {span} takes as many")]
    Rows { bytes: u64, span: u32 },
    #[error("the box has {bytes} bytes: 232448 are possible")]
    Shared { bytes: u32 },
    #[error("{0}")]
    Map(#[from] TensorMapError),
}

/// The largest shared memory of a block: 227 KiB. CUDA guide, "Technical Specifications per Compute Capability", 9.0.
const SHARED: u32 = 227 * 1024;

/// The map by which a variant copies a tensor.
///
/// ```
/// use titan_nv::tma::{Element, L2Promotion, Request, Swizzle, Tensor, Unfit, fit};
/// let request =
///     Request { boxes: &[64, 128], element_strides: &[], starts: &[], swizzle: Swizzle::B128, l2: L2Promotion::B256 };
/// // 4096 rows of 1000 elements, 1024 apart: a view that is narrower than its rows.
/// let tensor = Tensor { element: Element::Bf16, address: Some(0x1000), extents: &[1000, 4096], strides: &[1, 1024] };
/// assert_eq!(fit(&tensor, &request)?.extents[..2], [1000, 4096]);
/// // Rows of 1001 elements have 2002 bytes, which is not a multiple of 16.
/// let odd = Tensor { strides: &[1, 1001], ..tensor };
/// assert_eq!(fit(&odd, &request).unwrap_err().to_string(),
///     "the stride of dimension 1 is 2002 bytes: multiples of 16 below 2^40 are possible");
/// # Ok::<(), Unfit>(())
/// ```
///
/// # Errors
/// [`Unfit`]: the reason why another variant must be taken.
pub fn fit(tensor: &Tensor<'_>, request: &Request<'_>) -> Result<TensorMap, Unfit> {
    let address = tensor.address.filter(|address| *address != 0).ok_or(Unfit::Absent)?;
    let (extents, boxes) = (tensor.extents, request.boxes);
    let same = |n: usize| n == extents.len();
    let optional = |n: usize| n == 0 || n == extents.len();
    let ranks = same(tensor.strides.len()) && same(boxes.len());
    if !ranks || !optional(request.element_strides.len()) || !optional(request.starts.len()) {
        return Err(Unfit::Ranks { extents: extents.len(), strides: tensor.strides.len(), boxes: boxes.len() });
    }
    if extents.len() > MAX_RANK || extents.is_empty() {
        return Err(TensorMapError::Rank(u8::try_from(extents.len()).unwrap_or(u8::MAX)).into());
    }
    if let Some(dim) = extents.iter().position(|extent| *extent == 0) {
        return Err(Unfit::Empty { dim });
    }
    let strides = strides(tensor)?;
    let mut map = TensorMap::tiled(tensor.element, address, extents, &strides[1..extents.len()], boxes);
    map.element_strides.iter_mut().zip(request.element_strides).for_each(|(to, from)| *to = *from);
    (map.swizzle, map.l2) = (request.swizzle, request.l2);
    map.check()?;
    overlaps(&map, &strides)?;
    (0..extents.len()).try_for_each(|dim| coordinates(&map, dim, request.starts.get(dim)))?;
    let row = u64::from(boxes[0]) * u64::from(tensor.element.bytes());
    if let Some(span) = request.swizzle.span().filter(|span| u64::from(*span) != row) {
        return Err(Unfit::Rows { bytes: row, span });
    }
    let bytes = map.box_bytes();
    if bytes > SHARED { Err(Unfit::Shared { bytes }) } else { Ok(map) }
}

/// The strides in bytes, including the innermost. Dimensions of one element are never stepped along, so they get the least legal stride.
fn strides(tensor: &Tensor<'_>) -> Result<[u64; MAX_RANK], Unfit> {
    let bytes = u64::from(tensor.element.bytes());
    let mut all = [bytes; MAX_RANK];
    for (dim, (extent, stride)) in tensor.extents.iter().zip(tensor.strides).enumerate() {
        let stride = *stride;
        if *extent == 1 {
            if dim > 0 {
                all[dim] = 16;
            }
            continue;
        }
        if dim == 0 {
            if stride != 1 {
                return Err(Unfit::InnermostStride { stride });
            }
            continue;
        }
        let positive = u64::try_from(stride).ok().filter(|stride| *stride > 0);
        let positive = positive.ok_or(Unfit::StrideSign { dim, stride })?;
        let stride = positive.checked_mul(bytes).filter(|bytes| *bytes < 1 << 40);
        all[dim] = stride.ok_or(Unfit::StrideSize { dim, stride: tensor.strides[dim] })?;
    }
    Ok(all)
}

/// Checks that no elements overlap: in the order of rising strides, each dimension must step over the extent of the ones before it.
///
/// This is exact if each stride is a multiple of the one before, and refuses some arrangements whose elements interleave without overlap.
fn overlaps(map: &TensorMap, strides: &[u64; MAX_RANK]) -> Result<(), Unfit> {
    let mut dims: Vec<usize> = (0..map.dims()).filter(|dim| map.extents[*dim] > 1).collect();
    dims.sort_by_key(|dim| strides[*dim]);
    let mut reach = u128::from(map.element.bytes());
    for dim in dims {
        if u128::from(strides[dim]) < reach {
            return Err(Unfit::Overlap { dim });
        }
        reach += u128::from(strides[dim]) * u128::from(map.extents[dim] - 1);
    }
    if u128::from(map.address) + reach > 1 << 64 { Err(Unfit::End) } else { Ok(()) }
}

/// Whether all elements of all boxes along a dimension have coordinates of 32 bits.
fn coordinates(map: &TensorMap, dim: usize, starts: Option<&RangeInclusive<i64>>) -> Result<(), Unfit> {
    let boxed = i64::from(map.box_extents[dim]);
    // The extent is at most 2^32.
    let size = i64::try_from(map.extents[dim]).unwrap_or(i64::MAX);
    let tiles = 0..=(size - 1) / boxed * boxed;
    let starts = starts.unwrap_or(&tiles);
    let (low, high) = (*starts.start(), starts.end().saturating_add(boxed - 1));
    let fits = low >= i64::from(i32::MIN) && high <= i64::from(i32::MAX) && starts.start() <= starts.end();
    if fits { Ok(()) } else { Err(Unfit::Coordinates { dim, low, high }) }
}
