//! `use titan::prelude::*;`: the names of kernels and of launches.

pub use crate::lang::{
    Acc, Cast, Col, D1, D2, D3, D4, Elem, Float, Int, Num, Own, Ring, Row, Shape, Smem, Stage, Staging, Tile, bf16,
    cdiv, e4m3, e5m2, f16, i4, iota, mma, mma_async, mma_async_reg, num_programs, pipelined, program_id, role, select,
    tf32, u4, unflatten, unflatten_grouped,
};
pub use crate::{Device, Stream, Tensor};
pub use crate::{static_assert, tassert, tprint};

// Expansions of `#[titan::device]` and `#[titan::constant]` use it, so that an import of this module always counts as used.
#[doc(hidden)]
pub use core::marker::Sized;
