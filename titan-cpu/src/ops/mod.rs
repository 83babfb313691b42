//! Elementwise operations as functions over slices, chosen once when a program is compiled.
//!
//! * [`number`]: the operations on one element.
//! * [`elementwise`]: loops over them, and the table from operation and element type to loop.
//! * [`cast`]: the same for conversions. [`chain`]: two operations in one loop.
//! * [`halves`]: operations on `f16`, through blocks of `f32`. [`narrow`]: products of few rows with many.
//! * [`ternary`]: operations with three operands.
//! * [`reduce`]: reductions, [`scan`]: scans, with the functions in [`folds`]. [`rows`]: reductions of rows of `f32`.
//! * [`words`]: operations that only move elements: copies of strided tiles, interleaving, fills.

pub(crate) mod cast;
pub(crate) mod chain;
pub(crate) mod elementwise;
mod folds;
pub(crate) mod halves;
pub(crate) mod narrow;
pub(crate) mod number;
pub(crate) mod reduce;
pub(crate) mod rows;
pub(crate) mod scan;
pub(crate) mod ternary;
pub(crate) mod words;

use crate::simd::Isa;

/// A loop: `dst[i] = f(args[0][i], …)`. Slices contain whole elements, aligned: as many as `dst`, or one, which stands for all.
pub(crate) type TileFn = fn(Isa, &mut [u8], [&[u8]; 3]);
/// The same operation on scalar slots.
pub(crate) type ScalarFn = fn([u64; 3]) -> u64;

/// An elementwise operation for some element types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementFn {
    /// The loop over slices.
    pub(crate) tile: TileFn,
    /// The function of scalar slots.
    pub(crate) scalar: ScalarFn,
}
