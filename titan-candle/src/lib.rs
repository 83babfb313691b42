//! Operators of candle whose bodies are TITAN kernels, without copies, on the CPU.
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
//! instance by the element type.
//!
//! Deliberately absent: gradients. An operator that has one implements candle's `CustomOp` itself, and takes [`lend`] in its forward pass. Also
//! absent is candle's storage on CUDA devices, whose slices `titan::cuda::borrow_dyn` borrows.

mod host;
mod operator;

pub use host::{lend, lend_mut, zeros};
pub use operator::{On, apply, apply_inplace};

/// An error of TITAN's as one of candle's.
pub fn error(error: titan::Error) -> candle_core::Error {
    candle_core::Error::wrap(error)
}
