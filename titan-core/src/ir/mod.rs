//! The tile IR: the representation of kernels between Rust source code and the code of a target.
//!
//! # Values and execution
//!
//! A kernel runs once per *program* (thread block, CTA) of a grid. A program has one thread of control: scalars are uniform, and a tile
//! operation acts on the whole tile. Programs run concurrently, in any order; the output rule (`crate::analysis::partition`) ensures that
//! their stores are disjoint.
//!
//! * A [`Ty::Scalar`] is one element, a [`Ty::Tile`] an immutable array on chip, a [`Ty::Tensor`] a view of device memory.
//! * Values are in SSA form. Loops carry values through block arguments; there are no variables.
//! * Control is structured ([`OpKind::For`], [`OpKind::Loop`], [`OpKind::If`]); `break`, `continue` and `return` are
//!   terminators that name how many loops they leave.
//! * Loads observe the earlier stores of the same program. Stores of other programs are not visible before the launch ends,
//!   except through atomics.
//!
//! The operands, results and meaning of each operation are a row of [`op_table`]; the numeric meaning is in `docs/semantics.md`.
//!
//! The operations of [`TtgOp`] describe pipelines: rings of stages, tokens, roles. [`RegionOp`], [`NvOp`] and [`AmdOp`] are the barrier
//! dialects, to which pipelines are lowered: ranges of shared memory, barriers, groups and counters of a target.
//!
//! Tiles have no layout until a kernel is laid out over the threads of a target. Then each tile has a [`Place`], and the operations of
//! [`LocalOp`] move tiles between places.
//!
//! Deliberately absent: pointers and threads. They appear in the lane IR, `crate::lane`.

mod amd;
pub mod builder;
mod canonical;
mod constant;
mod elem;
mod family;
mod fetch;
pub mod fold;
mod grouped;
pub mod host_expr;
pub mod infer;
mod infer_barrier;
mod infer_local;
mod infer_memory;
mod infer_parts;
mod infer_ttg;
mod kernel;
mod local;
mod need;
mod nv;
mod op;
pub mod op_table;
pub mod place;
mod region;
mod tcgen05;
mod tensor_layout;
pub mod traffic;
mod ttg;
mod ty;

pub use amd::AmdOp;
pub use builder::Builder;
pub use constant::Const;
pub use elem::{Elem, MMA_LEGAL, MMA_TRIPLES, mma_is_legal};
pub use family::{Family, Flow, Stated};
pub use fetch::FetchOp;
pub use grouped::grouped;
pub use host_expr::{HostEnv, HostExpr, HostExprError, HostNames, HostOp, Symbol};
pub use infer::TypeError;
pub use kernel::{
    Access, Block, BlockData, Def, DimSpec, GridSpec, InstanceArg, Kernel, Param, ParamKind, Scheduler, Signature,
    Tails, Value, ValueData,
};
pub use local::{Fold, LocalOp};
pub use need::{Need, Parts};
pub use nv::{NvGroup, NvOp, Strided};
pub use op::{
    ArgOp, AtomicOp, BinOp, Effect, ForKind, Loc, Op, OpId, OpKind, Origin, Planned, Pred, ReduceOp, UnOp, Unit,
};
pub use place::{Bit, Coords, Encoding, EncodingId, FreeBy, LaidOut, Layout, LayoutId, Place, Swizzle, Typed};
pub use region::{BarrierTy, Call, CallProxy, Class, Completion, RegionOp, Touch};
pub use tcgen05::{Collector, Mma, MmaKind, NoMma, Tcgen05Op, TensorElem, TensorShape};
pub use tensor_layout::{TENSOR_COLUMNS, TENSOR_LANES};
pub use ttg::{Claim, FenceSpace, Field, Fill, Pipe, PipeDecl, PipeSpace, Proxy, RoleDecl, Scope, Token, TtgOp, Use};
pub use ty::{TileShape, Ty};
