//! Layouts: which thread holds which element of a tile in which register, and where elements lie in shared memory.
//!
//! * [`Layout`]: registers. A linear map over the bits of (register, lane, warp) for an *atom* whose extents are powers of
//!   two, repeated an integer number of times along each axis. So 48, 112 and 192 are as good as 64 and 128; what an atom
//!   covers beyond the tile is padding, and [`Layout::waste`] tells how much.
//! * [`Encoding`]: shared memory. Panels of rows, with the XOR swizzles that TMA, `wgmma` and bank-conflict-free `ldmatrix`
//!   have in common.
//! * [`atoms`]: the fragments of matrix instructions, as layouts.
//! * [`convert`]: how a tile gets from one layout into another.
//! * [`check`]: whether a layout is one, found by counting elements; shares no code with what it checks.
//!
//! The formalism is that of linear layouts (Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor
//! Computation Using F₂", ASPLOS 2026), with integer repetitions around it.
//!
//! Deliberately absent: which layout a value gets. That is the plan's.

pub mod atoms;
pub mod check;
pub mod convert;

pub use crate::ir::place::{Bit, Coords, Encoding, Layout, Swizzle};
