//! How much tensor memory and shared memory the operands of operations on tensor memory take.
//!
//! Tensor memory of a block has 128 lanes and 512 columns of 32 bits. An operation states no column: it begins with the first one of its
//! operand. The rows of a result are in lanes; if a block computes fewer than 128 rows, the result is folded, so that its right part is in
//! the lanes that remain, except for 64 rows of an MMA that is not weight-stationary: these take half of the lanes, and all columns. Every
//! element of a result takes a column, also a 16-bit float. The K elements of a row of A or B are 32 bytes in every kind, with 6-bit
//! and 4-bit floats of `f8f6f4` in a byte each: a *dense* operand in shared memory has 32 bytes for each row, in tensor memory 8 columns.
//!
//! Sources: PTX ISA, "Data Path Layout Organization", layouts A to G; "Data Movement Shape"; "Scale factor layout"; "Matrix Fragments".
//!
//! Deliberately absent: strides and swizzles in shared memory (an operand with gaps takes more), the shape of a copy, which is not stated,
//! and the values of the elements.

use super::tcgen05::{Mma, Tcgen05Op, TensorShape};

/// The number of columns of tensor memory of a block.
pub const TENSOR_COLUMNS: u32 = 512;
/// The number of lanes of tensor memory of a block.
pub const TENSOR_LANES: u32 = 128;
/// The bytes of a row of A or of B.
const ROW_BYTES: u32 = 32;
/// The lanes in which the scales of a block of rows are.
const SCALE_LANES: u32 = 32;

impl TensorShape {
    /// The columns that a load or store with this number of repetitions accesses.
    #[must_use]
    pub const fn columns(self, times: u32) -> u32 {
        let one: u32 = match self {
            TensorShape::L32x32b => 1,
            TensorShape::L16x64b => 2,
            TensorShape::L16x128b => 4,
            TensorShape::L16x256b => 8,
        };
        one.saturating_mul(times)
    }
}

impl Mma {
    /// The blocks that compute it: at least 1.
    const fn blocks(&self) -> u32 {
        if self.cta_group == 2 { 2 } else { 1 }
    }

    /// The columns of the result in each block.
    #[must_use]
    pub const fn result_columns(&self) -> u32 {
        let [m, n, _] = self.shape;
        let rows = m / self.blocks();
        if rows >= TENSOR_LANES || (rows == 64 && self.blocks() == 1 && !self.stationary) {
            n
        } else {
            n.saturating_mul(rows).div_ceil(TENSOR_LANES)
        }
    }

    /// The columns of A in tensor memory.
    #[must_use]
    pub const fn a_columns(&self) -> u32 {
        ROW_BYTES / 4
    }

    /// The columns of the scales of A and of B.
    #[must_use]
    pub const fn scale_columns(&self) -> [u32; 2] {
        let [m, n, _] = self.shape;
        [(m / self.blocks()).div_ceil(SCALE_LANES), n.div_ceil(SCALE_LANES)]
    }

    /// The bytes of A and of B in the shared memory of each block, if they are dense. Two blocks have half of the rows of each.
    #[must_use]
    pub const fn shared_bytes(&self) -> [u32; 2] {
        let [m, n, _] = self.shape;
        [(m / self.blocks()).saturating_mul(ROW_BYTES), (n / self.blocks()).saturating_mul(ROW_BYTES)]
    }
}

impl Tcgen05Op {
    /// The columns of an operand, by its number, that the operation accesses; `None` for all that were allocated with it, and for
    /// operands that are not columns.
    #[must_use]
    pub const fn columns(&self, operand: usize) -> Option<u32> {
        match (self, operand) {
            (Tcgen05Op::Mma(mma), 0) => Some(mma.result_columns()),
            (Tcgen05Op::Mma(mma), 1) => Some(mma.a_columns()),
            (Tcgen05Op::Mma(mma), 3) => Some(mma.scale_columns()[0]),
            (Tcgen05Op::Mma(mma), 4) => Some(mma.scale_columns()[1]),
            (Tcgen05Op::Load { shape, times } | Tcgen05Op::Store { shape, times }, 0) => Some(shape.columns(*times)),
            (
                Tcgen05Op::Mma(_)
                | Tcgen05Op::Load { .. }
                | Tcgen05Op::Store { .. }
                | Tcgen05Op::Copy { .. }
                | Tcgen05Op::Shift { .. }
                | Tcgen05Op::Alloc { .. }
                | Tcgen05Op::Dealloc { .. }
                | Tcgen05Op::Relinquish { .. }
                | Tcgen05Op::Commit { .. }
                | Tcgen05Op::WaitLoad
                | Tcgen05Op::WaitStore
                | Tcgen05Op::FenceBefore
                | Tcgen05Op::FenceAfter,
                _,
            ) => None,
        }
    }

    /// The bytes of an operand in shared memory, by its number, that the operation reads; `None` for a whole region, and for other
    /// operands.
    #[must_use]
    pub const fn shared_bytes(&self, operand: usize) -> Option<u32> {
        match (self, operand) {
            (Tcgen05Op::Mma(mma), 1) => Some(mma.shared_bytes()[0]),
            (Tcgen05Op::Mma(mma), 2) => Some(mma.shared_bytes()[1]),
            (
                Tcgen05Op::Mma(_)
                | Tcgen05Op::Load { .. }
                | Tcgen05Op::Store { .. }
                | Tcgen05Op::Copy { .. }
                | Tcgen05Op::Shift { .. }
                | Tcgen05Op::Alloc { .. }
                | Tcgen05Op::Dealloc { .. }
                | Tcgen05Op::Relinquish { .. }
                | Tcgen05Op::Commit { .. }
                | Tcgen05Op::WaitLoad
                | Tcgen05Op::WaitStore
                | Tcgen05Op::FenceBefore
                | Tcgen05Op::FenceAfter,
                _,
            ) => None,
        }
    }
}
