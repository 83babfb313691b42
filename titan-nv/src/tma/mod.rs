//! Tensor maps: how Hopper's copy engine (TMA) sees a tensor in global memory.
//!
//! [`TensorMap`] is the one description of a tensor map. The driver's `cuTensorMapEncodeTiled` is called with its fields,
//! the emulated driver stores it as it is, and the emulator of PTX copies by it. [`TensorMap::check`] knows what the
//! encoder refuses, so that a launch can take another variant instead of failing.
//!
//! Deliberately absent: `im2col` maps, interleaved layouts, and sub-byte element types.

mod map;

pub use map::{Element, Fill, L2Promotion, MAX_RANK, Swizzle, TensorMap, TensorMapError};
