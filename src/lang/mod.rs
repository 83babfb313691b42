//! The language of kernels as Rust types: with them rustc checks a kernel's body, and the host runs it.
//!
//! A kernel's body is compiled as an ordinary function over these types, generic in its constant shapes. rustc thereby
//! checks element types, shapes, borrows and moves, and reports errors with the kernel's own names. The same function, executed
//! by [`run`] for one program after the other, is the reference with which every device is compared. It is simple and slow, and
//! does not depend on the IR. The results of operations are defined in `docs/semantics.md`.
//!
//! # The translation of a kernel's body
//!
//! Constructs that are not listed are the same in the kernel and here.
//!
//! | in a kernel | here |
//! |---|---|
//! | `Tile<T, A, B>`, `Own<.., A, B>` | `Tile<T, D2<A, B>>`, by arity `D1` to `D4`; also in paths: `Tile::<f32, D1<BM>>::zeros()` |
//! | `x.reshape::<A, B>()` | `x.reshape::<D2<A, B>>()` |
//! | `lo.interleave::<A, B>(hi)` | `lo.interleave::<D2<A, B>>(hi)` |
//! | `x.split::<A, B>()` | `x.split::<D2<A, B>>()` |
//! | `x.slice::<A, B>([i, j])`, `a.concat::<A, B>(b)` | `x.slice::<D2<A, B>>([i, j])`, `a.concat::<D2<A, B>>(b)` |
//! | `(a, b).reduce::<AX>(f)`, `(a, b).scan::<AX>(f)` | `reduce_tuple::<AX, _>((a, b), f)`, `scan_tuple::<AX, _>((a, b), f)` |
//! | `a + b`, `-` `*` `/` `%` `&` `\|` `^` `<<` `>>` | `ops::add(a, b)`, `sub mul div rem and or xor shl shr`; for scalars too |
//! | `a < b`, `<=` `>` `>=` `==` `!=` | `ops::lt(a, b)`, `le gt ge eq ne` |
//! | `-x`, `!x` | `ops::neg(x)`, `ops::not(x)`; a negative literal stays as it is: `i32::MIN` has no positive twin |
//! | `a += b` and the like | `a = ops::add(a, b)`, or `ops::add_assign(&mut a, b)` where `b` does not mention `a` |
//! | `x.abs()`, `x.max(y)`, `x.min(y)`, `x.clamp(lo, hi)` | `ops::abs(x)`, `ops::max(x, y)`, …: Rust's methods of scalars differ or panic at the edges |
//! | `if c`, `while c`, `a && b`, `a \|\| b` | `if condition(c)` and so on |
//! | `match role() { Role::Producer => .., .. }` | the same; `Role` is an enum of the expansion |
//! | `stage.split::<2>()` | `stage.split::<D1<2>>()` |
//! | `x as U` | as it is, between Rust's own number types; `.cast::<U>()` otherwise |
//! | `{ BK / 2 }` as an extent | a constant parameter of its own |
//!
//! `&&`, `||`, ranges, `if`, `for`, `while`, `loop`, closures and all other methods stay. Constant shape arguments of
//! `load_tile`, `load_at`, `gather_rows`, `tiles`, `ragged`, `work`, `broadcast`, `iota` and the axes of reductions are
//! numbers here as there. Scalar `f32` methods that std is about to add (`erf`) want `allow(unstable_name_collisions)`.

mod access;
mod arena;
mod arith;
mod atomic;
mod condition;
mod debug;
mod elem;
mod elementwise;
mod fit;
mod float;
mod gather;
mod layout;
mod literal;
mod mma;
#[doc(hidden)]
pub mod names;
pub mod ops;
mod own;
mod part;
mod permute;
pub mod pipeline;
mod program;
mod reduce;
mod sealed;
mod shape;
mod storage;
mod table;
mod tensor;
mod tile;
mod tuple;
mod view;

pub use half::{bf16, f16};

pub use self::atomic::Lanes;
pub use self::condition::{Condition, condition};
pub use self::debug::{Holds, capture_prints, emit_print};
#[cfg(any(feature = "cpu", feature = "cudarc"))]
pub(crate) use self::elem::is_plain;
pub use self::elem::{Bits, Cast, Comparable, Elem, Int, Num, Number};
pub use self::elementwise::{Beside, Choose, select};
pub use self::float::Float;
pub use self::gather::{RowIndex, RowIndices};
pub use self::layout::Transpose;
pub use self::literal::{FloatLiteral, IntLiteral};
pub use self::mma::{MmaAccumulator, MmaOperand, MmaShapes, MmaTypes, mma};
pub use self::own::{Own, Work};
pub use self::permute::{Permuted2, Permuted3, Permuted4};
pub use self::pipeline::{
    Acc, Compute, Part, Ready, Ring, Roles, Slot, Smem, SmemRef, Stage, Staging, mma_async, mma_async_reg, role,
};
pub use self::program::{
    Trap, num_programs, pipelined, program_id, run, run_roles, trap, unflatten, unflatten_grouped,
};
pub use self::shape::{Axis, D1, D2, D3, D4, Insert, Shape, cdiv};
pub use self::storage::{e4m3, e5m2, i4, tf32, u4};
pub use self::table::{Entry, Place, entry};
pub use self::tensor::{Shared, Tensor};
pub use self::tile::{Col, Line, Operand, Row, Tile, iota};
pub use self::tuple::{Tuple, reduce_tuple, scan_tuple};
pub use self::view::{HasAxis, Rank, View, ViewMut};
pub use crate::{static_assert, tassert, tprint};
