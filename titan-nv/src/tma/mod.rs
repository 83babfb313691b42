//! Tensor maps, and the semantics of copies by them: how Hopper's copy engine (TMA) accesses a tensor in global memory.
//!
//! [`TensorMap`] is the one description of a tensor map. The driver's `cuTensorMapEncodeTiled` is called with its fields,
//! the emulated driver stores it as it is, and the emulator of PTX copies by it. [`TensorMap::check`] has the limits of the
//! encoder refuses, and [`fit`] whether a tensor of a launch has a map, so that a launch can take another variant instead of failing.
//!
//! | question | answer |
//! |---|---|
//! | What does a copy do? | [`tma`], element by element |
//! | Which element does each iteration copy? | [`Domains`], [`indices`] |
//! | What do positions hold that stand for no element? | [`level`], [`fttc`] |
//! | Which instruction, with which coordinates and predicate? | [`lower`] |
//! | Can this tensor be copied by a map? | [`fit`] |
//! | How does one map serve parts of a tensor? | the module `parts` |
//! | What does device code change in a map? | [`Field`] |
//!
//! The theory is explained in docs/tma.md.
//!
//! Deliberately absent: `im2col` maps, interleaved layouts, and sub-byte element types.

mod correctness;
mod domain;
mod edit;
mod fit;
mod index;
mod kinds;
mod limits;
mod lower;
mod map;
mod param;
mod parts;
mod protect;
mod reference;

pub use correctness::{Correctness, Level, Padding, level, unprotected};
pub use domain::{Axis, Dim, DomainError, Domains, Id, Step};
pub use edit::{Field, ReplaceError};
pub use fit::{Request, Tensor, Unfit, fit};
pub use index::{Op, Range, Value, Values, indices};
pub use kinds::{Element, Fill, L2Promotion, Swizzle};
pub use limits::TensorMapError;
pub use lower::{Check, Guard, LowerError, Lowering, Transfer, lower};
pub use map::{MAX_RANK, TensorMap};
pub use protect::{overrun, protected};
pub use reference::{Direction, Memory, Undefined, tma};
pub use titan_core::analysis::fttc::{Counterexample, fttc};
