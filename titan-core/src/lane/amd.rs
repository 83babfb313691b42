//! The dialect of AMD in the lane IR: operations that other machines do not have, each with its contract.
//!
//! A back end of another vendor rejects them all. The words are those of [`OpKind`], which contains them.
//!
//! A *buffer* is a stretch of device memory that begins at an address, with offsets of 32 bits. Lanes whose offset is outside of it load zeros,
//! so that a load needs no condition: a lane that is to load nothing has the offset [`NOWHERE`], or one behind the end of the buffer.
//!
//! Deliberately absent: stores to buffers.

use super::family::Family;
use super::op::{OpKind, Space, Ty};
use super::types::{TypeError, check, expect, memory_ty};
use super::uniform::Level;

/// The maximum number of bytes of a buffer.
pub const BYTES: u32 = 1 << 31;

/// An offset outside of every buffer: the bits of −2, which instructions can have without a register, and far from the end of 32 bits.
pub const NOWHERE: u32 = 0xc000_0000;

/// The maximum constant offset of a load from a buffer.
pub const MAX_OFFSET: u16 = 4095;

/// The kind of an operation of AMD's dialect, with its attributes. `a`, `b`, … are operands as for [`OpKind`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AmdOp {
    /// The four words that describe the buffer of `b` bytes (`b32`), at most [`BYTES`], at the global address `a` (`b64`), of which the low 48 bits
    /// count. Both are the same in all lanes of the warp. Only loads from buffers use the words.
    Buffer,
    /// Loads `n` elements of `bytes` bytes, 4, 8 or 16 bytes in all, from a buffer, whose words are the first four operands. The lane's offset
    /// (`b32`) and `offset` together are the place in the buffer; the last operand (`b32`, unsigned, the same in all lanes of the warp) is added to
    /// the address only, and is 0 if the buffer has fewer than [`BYTES`] bytes. What is loaded lies in the buffer as a whole, at a multiple of
    /// its size; or it lies outside as a whole: then nothing is read, and the elements are zeros.
    BufferLoad {
        /// The size of an element in bytes.
        bytes: u8,
        /// The number of elements.
        n: u8,
        /// The constant part of the offset, at most [`MAX_OFFSET`].
        offset: u16,
    },
}

impl AmdOp {
    /// The family of the operation.
    pub(super) const fn family(&self) -> Family<'static> {
        match self {
            AmdOp::Buffer => Family::Pure,
            AmdOp::BufferLoad { .. } => Family::Access { space: Space::Global, write: false },
        }
    }

    /// The level of the results, if it does not follow from the operands.
    pub(super) const fn level(&self) -> Option<Level> {
        match self {
            AmdOp::Buffer | AmdOp::BufferLoad { .. } => None,
        }
    }

    /// The name of the operation with its attributes, in the text form.
    pub(super) fn mnemonic(&self) -> String {
        match self {
            AmdOp::Buffer => "amd.buffer".to_owned(),
            AmdOp::BufferLoad { bytes, n, offset } => format!("amd.buffer_load.{n}x{bytes}+{offset}"),
        }
    }

    /// The result types of the operation.
    ///
    /// # Errors
    /// Returns an error if operands of these types are invalid for it.
    pub(super) fn infer(&self, args: &[Ty]) -> Result<Vec<Ty>, TypeError> {
        match self {
            AmdOp::Buffer => {
                expect(self, args, &[Ty::B64, Ty::B32])?;
                Ok(vec![Ty::B32; 4])
            }
            AmdOp::BufferLoad { bytes, n, offset } => {
                let ty = memory_ty(&OpKind::Amd(self.clone()), *bytes, *n)?;
                check(bytes * n >= 4, || format!("{self:?}: less than 4 bytes"))?;
                check(*offset <= MAX_OFFSET, || format!("{self:?}: an offset of more than {MAX_OFFSET}"))?;
                expect(self, args, &[Ty::B32; 6])?;
                Ok(vec![ty; usize::from(*n)])
            }
        }
    }
}

impl From<AmdOp> for OpKind {
    fn from(op: AmdOp) -> OpKind {
        OpKind::Amd(op)
    }
}
