//! Operators of candle whose bodies are TITAN kernels, without copies, on the CPU and on NVIDIA GPUs.
//!
//! [`apply`] calls a closure with the operands as views and a new output, and returns the output as a tensor of candle:
//!
//! ```ignore
//! use titan::{dispatch, prelude::*};
//!
//! #[titan::kernel(instances(T in [f16, bf16, f32]))]
//! fn double<T: Float>(#[shape(N)] x: &Tensor<T, 1>, #[shape(N)] y: &mut Tensor<T, 1>) {
//!     let p = program_id(0);
//!     y.store_tile([p], x.load_tile::<256>([p]) + x.load_tile::<256>([p]));
//! }
//!
//! fn doubled(x: &candle_core::Tensor) -> candle_core::Result<candle_core::Tensor> {
//!     titan_candle::apply("double", [x], (x.shape(), x.dtype()), |on, [x], mut y| {
//!         on.run(dispatch!(double::<_>(&x.with_rank(1)?, &mut y.with_rank_mut(1)?)))
//!     })
//! }
//! ```
//!
//! Operands have any strides and offsets. `with_rank`, `reshape` and `permute` of a view give it the axes of a kernel, and `dispatch!` chooses the
//! instance by the element type. On a GPU launches run on candle's stream, in the order of its other work, and nothing waits.
//!
//! Deliberately absent: gradients. An operator that has one implements candle's `CustomOp` itself, and takes [`lend`] or its counterpart for
//! CUDA in its forward pass.

mod host;
mod operator;

#[cfg(feature = "cuda")]
pub mod cuda;

pub use host::{lend, lend_mut, zeros};
pub use operator::{On, apply, apply_inplace};

/// An error of TITAN's as one of candle's.
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
