//! The lane IR: the code of one thread, in SSA form, common to all GPUs.
//!
//! It has no tiles: a thread holds its elements of a tile in separate values. Vendor-specific instructions are abstract: shuffles,
//! barriers, asynchronous copies and matrix instructions are named by their meaning, and each back end selects instructions. It is the last
//! IR that NVIDIA and AMD share, so that tile operations are lowered only once.
//!
//! # Values
//!
//! A value has a width and no interpretation ([`Ty`]): operations define how they interpret the bits. Integer elements of 8 and 16 bits are
//! in [`Ty::B32`], sign- or zero-extended by their element type; `f16` and `bf16` are in [`Ty::B16`] without conversion; `e4m3`, `e5m2` and
//! the 4-bit integers are in the low bits of a [`Ty::B32`], the rest zero (4-bit integers are extended). Indices and shared addresses are
//! [`Ty::B32`], global addresses [`Ty::B64`].
//!
//! # Control
//!
//! Control flow is structured as in the tile IR, with the same terminators. A condition may differ between the lanes of a program:
//! [`uniform`] determines where, and convergent operations ([`OpKind::is_convergent`]) are errors in divergent code.
//!
//! Warps may be specialized into roles ([`OpKind::Roles`]): the code of several roles runs concurrently, and a protocol of
//! mbarriers or sequence counters orders their accesses.
//!
//! # Shared memory
//!
//! A lowering declares buffers and marks its accesses to them ([`OpKind::Access`]); [`shared`] replaces buffers by their addresses, and
//! [`hazard`] checks that conflicting accesses of threads are separated by barriers.
//!
//! Deliberately absent: registers, instruction selection and scheduling, which are the back ends'; stages and tokens of pipelines, which
//! were lowered to arrivals and waits before; undefined behaviour: what an operation does not define is rejected by [`verify`], or excluded
//! by a contract in the op table of [`op`] that the lowering satisfies.

pub mod amd;
pub mod banks;
mod build;
mod dce;
mod dies;
pub mod family;
mod flight;
mod fold;
mod func;
pub mod hazard;
mod invariant;
pub mod nv;
pub mod op;
mod operands;
mod print;
mod range;
mod scale;
pub mod shared;
mod types;
pub mod uniform;
mod verify;

pub use amd::AmdOp;
pub use build::{Builder, Open};
pub use dce::eliminate_dead;
pub use family::Family;
pub use flight::{homes, in_flight};
pub use func::{Block, BlockData, Buffer, Def, Func, Op, OpId, Value, ValueData};
pub use nv::{GroupMma, GroupOperand, NvOp};
pub use op::{
    AtomicFn, FloatBin, FloatTy, FloatUn, IntBin, IntUn, MmaAtom, Num, OpKind, Region, Role, Shuffle, Space, Ty, Vote,
};
pub use print::mnemonic;
pub use scale::scale;
pub use types::TypeError;
pub use verify::{LaneError, verify};
