//! `use titan::prelude::*;`: the names of kernels and of launches.

pub use crate::lang::{
    Cast, Col, D1, D2, D3, D4, Elem, Float, Int, Own, Row, Shape, Tile, bf16, cdiv, e4m3, e5m2, f16, i4, iota, mma,
    num_programs, pipelined, program_id, select, tf32, u4, unflatten,
};
pub use crate::{Device, Stream, Tensor};
pub use crate::{static_assert, tassert, tprint};
