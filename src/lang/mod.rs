//! The language of kernels, as rustc sees it.
mod access;
mod arena;
mod arith;
mod debug;
mod elem;
mod elementwise;
mod float;
mod gather;
mod layout;
mod mma;
pub mod ops;
mod own;
mod program;
mod reduce;
mod shape;
mod storage;
mod tensor;
mod tile;
mod view;

pub use half::{bf16, f16};

pub use self::debug::{Holds, capture_prints, emit_print};
pub use self::elem::{Bits, Cast, Comparable, Elem, Int, Num, Number};
pub use self::elementwise::{Beside, select};
pub use self::float::Float;
pub use self::gather::{RowIndex, RowIndices};
pub use self::mma::{MmaShapes, MmaTypes, mma};
pub use self::own::{Own, Work};
pub use self::program::{Trap, num_programs, pipelined, program_id, run, trap, unflatten};
pub use self::shape::{Axis, D1, D2, D3, D4, Insert, Shape, cdiv};
pub use self::storage::{e4m3, e5m2, i4, tf32, u4};
pub use self::tensor::{Shared, Tensor};
pub use self::tile::{Col, Operand, Row, Tile, iota};
pub use self::view::{HasAxis, Rank, View, ViewMut};
pub use crate::{static_assert, tassert, tprint};
