//! The CPU device of TITAN: runs verified tile IR, fast, with the programs of a grid in parallel on all cores.
//!
//! A [`Program`] is compiled once from a verified kernel and run any number of times on [`memory::Memory`]. Incorrect
//! arguments are errors: never undefined behaviour, never a panic.
//!
//! The stages, from the folder names: `plan` compiles the IR to steps over slots, `exec` runs the steps of one program,
//! `ops` has the loops over elements, `math` the transcendental functions, `runtime` device memory and all `unsafe` code,
//! `workers` the threads, `recent` the last launches, whose checks hold for others like them.
//!
//! Deliberately absent: streams, the choice of a grid, and checks of arguments beyond those that safety needs. They are the
//! launcher's.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

mod arguments;
mod exec;
mod math;
mod ops;
mod plan;
mod program;
mod recent;
mod rep;
mod runtime;
mod simd;
mod workers;

pub use arguments::{Arg, ArgRef, RunError, Scalar};
pub use exec::{PrintSink, print_line, set_print_sink};
pub use plan::lower::CompileError;
pub use program::{Options, Program};
pub use runtime::memory;

/// For this repository's tests only, and no part of the stable interface: code of which a machine runs one of several variants, guards that
/// no launch reaches, and kernels that the verifier refuses.
#[doc(hidden)]
pub mod internals {
    pub use crate::math::{Both, FUNCTIONS, LIMIT};
    pub use crate::runtime::product::Matrix;
    pub use crate::runtime::unverified;

    /// `c = a · b`, or `c += a · b` if `add`, as a launch computes it. `c` is `m × n`, a row every so many elements; `a` is `m × k`, `b` is
    /// `k × n`.
    pub fn product(c: (&mut [f32], usize), shape: [usize; 3], add: bool, a: Matrix<'_, f32>, b: Matrix<'_, f32>) {
        crate::runtime::product::Multiply::product(c, shape, add, a, b);
    }
}
