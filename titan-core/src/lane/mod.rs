//! The lane IR: the code of one thread, in SSA, common to all GPUs.
//!
//! There are no tiles: a tile is as many values as a thread holds of its elements. Vendor-specific instructions stay abstract:
//! shuffles, barriers, asynchronous copies and matrix instructions are named by meaning, and each back end selects
//! instructions. It is the last IR that NVIDIA and AMD share, so the meaning of tile operations is lowered once.
//!
//! # Values
//!
//! A value has a width, not a meaning ([`Ty`]): operations say how they read the bits. Elements of 8 and 16 bits that are
//! integers live in [`Ty::B32`], sign- or zero-extended as their element type says; `f16` and `bf16` live in [`Ty::B16`], raw;
//! `e4m3`, `e5m2` and the 4-bit integers live in the low bits of a [`Ty::B32`], the rest zero (4-bit integers extended).
//! Indices and shared addresses are [`Ty::B32`], global addresses [`Ty::B64`].
//!
//! # Control
//!
//! Structured as in the tile IR, with the same terminators. A condition may differ between the lanes of a program:
//! [`uniform`] finds out, and operations that need all lanes ([`OpKind::is_convergent`]) are errors where they do.
//!
//! Warps may be specialized into roles ([`OpKind::Roles`]): the code of several roles runs concurrently, and a protocol of
//! mbarriers or sequence counters orders their accesses.
//!
//! # Shared memory
//!
//! A lowering names buffers and marks its accesses to them ([`OpKind::Access`]); [`shared`] assigns addresses, reusing those of
//! buffers that are no longer live, and [`hazard`] checks that conflicting accesses of threads are separated by barriers.
//!
//! Deliberately absent: registers, instruction selection and scheduling (the back ends'); stages and tokens of pipelines, which were
//! expanded to arrivals and waits before; undefined behaviour: what an operation does not define is rejected by [`verify`], or
//! excluded by a contract in the op table of [`op`] that the lowering keeps.

pub mod banks;
mod build;
mod dce;
#[cfg(any(test, feature = "filetest"))]
pub mod eval;
mod flight;
mod fold;
mod func;
pub mod hazard;
mod invariant;
pub mod op;
mod print;
mod range;
pub mod shared;
mod types;
pub mod uniform;
mod verify;

pub use build::{Builder, Open};
pub use dce::eliminate_dead;
pub use flight::in_flight;
pub use func::{Block, BlockData, Buffer, Def, Func, Op, OpId, Value, ValueData};
pub use op::{
    AtomicFn, FloatBin, FloatTy, FloatUn, GroupMma, GroupOperand, IntBin, MmaAtom, Num, OpKind, Region, Role, Shuffle,
    Space, Ty, Vote,
};
pub use print::mnemonic;
pub use types::TypeError;
pub use verify::{LaneError, verify};
