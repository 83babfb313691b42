//! Layouts: which thread holds which element of a tile in which register, and the addresses of elements in shared memory.
//!
//! * [`Layout`]: registers. A linear map over the bits of (register, lane, warp) for an *atom* whose extents are powers of
//!   two, repeated an integer number of times along each axis. So extents of 48, 112 and 192 are supported as well as 64 and 128. The part
//!   of an atom beyond the tile is padding, and [`Layout::waste`] computes its amount.
//! * [`Encoding`]: shared memory. Panels of rows, with the XOR swizzles that TMA, `wgmma` and bank-conflict-free `ldmatrix`
//!   have in common.
//! * [`atoms`]: the fragments of matrix instructions, as layouts.
//! * [`convert`]: conversions of tiles between layouts.
//! * [`check`]: checks layouts by enumerating elements, with separate code.
//!
//! The formalism is that of linear layouts (Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor
//! Computation Using F₂", ASPLOS 2026), with integer repetitions around it.
//!
//! Deliberately absent: the choice of the layout of a value, which the plan makes.

pub mod atoms;
pub mod check;
pub mod convert;

pub use crate::ir::place::{Bit, Coords, Encoding, Layout, Swizzle};
