//! The language of kernels, as rustc sees it.
mod arena;
mod arith;
mod debug;
mod elem;
mod elementwise;
mod float;
mod layout;
mod mma;
pub mod ops;
mod program;
mod reduce;
mod shape;
mod storage;
mod tile;

pub use half::{bf16, f16};

pub use self::debug::{Holds, capture_prints, emit_print};
pub use self::elem::{Bits, Cast, Comparable, Elem, Int, Num, Number};
pub use self::elementwise::{Beside, select};
pub use self::float::Float;
pub use self::mma::{MmaShapes, MmaTypes, mma};
pub use self::program::{Trap, num_programs, pipelined, program_id, run, trap, unflatten};
pub use self::shape::{Axis, D1, D2, D3, D4, Insert, Shape, cdiv};
pub use self::storage::{e4m3, e5m2, i4, tf32, u4};
pub use self::tile::{Col, Operand, Row, Tile, iota};
pub use crate::{static_assert, tassert, tprint};
