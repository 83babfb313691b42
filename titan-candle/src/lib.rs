//! Operators of candle whose bodies are TITAN kernels, without copies, on the CPU and on NVIDIA GPUs.
//!
#![doc = include_str!("../README.md")]
//!
//! # Operands
//!
//! Operands have any strides and offsets. `with_rank`, `reshape` and `permute` of a view give it the axes of a kernel, and `dispatch!` chooses the
//! instance by the element type. On a GPU launches run on candle's stream, in the order of its other work, and nothing waits.
//!
//! Deliberately absent: gradients. An operator that has one implements candle's `CustomOp` itself, and takes [`lend`] or its counterpart for
//! CUDA in its forward pass.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

mod host;
mod operator;

#[cfg(feature = "cuda")]
pub mod cuda;

pub use host::{lend, lend_mut, zeros};
pub use operator::{On, apply, apply_inplace};

/// An error of TITAN's as one of candle's.
#[must_use]
pub fn error(error: titan::Error) -> candle_core::Error {
    candle_core::Error::wrap(error)
}

/// Waits for the launches on the device's stream, and reports the first of them that failed since the last call. On the CPU, launches have ended.
/// A CUDA device that `Device::new_cuda` has made has a stream for each thread of the host: that of the calling thread.
///
/// # Errors
/// The failure of a launch, such as a `tassert!` of a kernel: on a GPU it is known only when the launch has ended.
pub fn sync(device: &candle_core::Device) -> candle_core::Result<()> {
    match device {
        candle_core::Device::Cpu | candle_core::Device::Metal(_) => Ok(()),
        #[cfg(feature = "cuda")]
        candle_core::Device::Cuda(device) => cuda::stream(device)?.sync().map_err(error),
        #[cfg(not(feature = "cuda"))]
        candle_core::Device::Cuda(_) => Ok(()),
    }
}
