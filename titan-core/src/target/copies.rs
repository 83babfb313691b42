//! What moves tiles between registers, shared and global memory.
//!
//! | engine | by | completion |
//! |---|---|---|
//! | `cp.async` of NVIDIA | each lane, 4, 8 or 16 bytes | groups in the order of their commits |
//! | TMA of NVIDIA | one lane, a box of a tensor | bytes, counted by a barrier in shared memory; stores by groups |
//! | loads to LDS of AMD | each lane, 4 or 16 bytes | a counter of operations of the wave |
//!
//! Copies through registers are no engine: they are a load and a store, which every machine has.

/// Where something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// Registers of a thread.
    Registers,
    /// Shared memory of a program.
    Shared,
    /// Global memory.
    Global,
}

/// Who executes a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// Each lane copies granules at its own addresses.
    Lane,
    /// One lane starts the copy of a box of a tensor, which a descriptor of the tensor describes.
    Box,
}

/// How one learns that copies are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Completion {
    /// A thread commits its copies in groups, and waits until at most so many of them are in flight.
    Groups,
    /// A barrier in shared memory counts the bytes.
    Bytes,
    /// A wave waits until at most so many of its operations are in flight.
    Counter,
}

/// What copies tiles without passing through registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyEngine {
    /// Where the tile is.
    pub from: Place,
    /// Where it goes.
    pub to: Place,
    /// Who executes the copy.
    pub by: By,
    /// The sizes in bytes that a lane copies, ascending; for boxes, of which sizes the rows are multiples.
    pub granules: Vec<u32>,
    /// The alignment of the tile in shared memory, in bytes.
    pub alignment: u32,
    /// How one learns that it is done.
    pub completion: Completion,
}

impl CopyEngine {
    /// Copies by lanes from global to shared memory, of 4, 8 or 16 bytes each, that complete in groups.
    #[must_use]
    pub fn by_lanes() -> CopyEngine {
        CopyEngine {
            from: Place::Global,
            to: Place::Shared,
            by: By::Lane,
            granules: vec![4, 8, 16],
            alignment: 16,
            completion: Completion::Groups,
        }
    }
}

/// An instruction that moves matrices of rows between registers and shared memory: each lane gives the address of a row, and lanes hold words
/// of rows as matrix instructions take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixMove {
    /// Where the matrices go: registers or shared memory.
    pub to: Place,
    /// The rows of a matrix.
    pub rows: u32,
    /// The bytes of a row.
    pub row_bytes: u32,
    /// The most matrices that one instruction moves.
    pub most: u8,
}
