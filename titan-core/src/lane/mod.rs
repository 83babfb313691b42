//! The lane IR: what one thread does, in SSA, for every GPU alike.
//!
//! Here tiles are gone: a tile is as many values as a thread holds of its elements. What remains abstract is what vendors do
//! differently: shuffles, barriers, asynchronous copies and matrix instructions are named by meaning, and each back end spells
//! them. It is the last IR that NVIDIA and AMD share, so the meaning of tile operations is lowered once.
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
//! Warps may have roles ([`OpKind::Roles`]): the code of several runs at the same time, and what they exchange a protocol of
//! mbarriers or sequence counters orders.
//!
//! # Shared memory
//!
//! A lowering names buffers and marks what it does to them ([`OpKind::Access`]); [`shared`] gives them places, reusing those of
//! buffers that are no longer needed, and [`hazard`] puts barriers where threads could otherwise meet.
//!
//! Deliberately absent: registers, instruction selection and scheduling (the back ends'), stages and tokens of pipelines (gone
//! before: what is left of them are arrivals and waits), undefined behaviour: what an operation does not define, [`verify`] refuses or the op table of [`op`] forbids by a contract
//! that the lowering keeps.

pub mod banks;
mod build;
mod dce;
#[cfg(any(test, feature = "filetest"))]
pub mod eval;
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

pub use build::Builder;
pub use dce::eliminate_dead;
pub use func::{Block, BlockData, Buffer, Def, Func, Op, OpId, Value, ValueData};
pub use op::{
    AtomicFn, FloatBin, FloatTy, FloatUn, IntBin, MmaAtom, Num, OpKind, Region, Role, Shuffle, Space, Ty, Vote,
};
pub use print::mnemonic;
pub use types::TypeError;
pub use verify::{LaneError, verify};
