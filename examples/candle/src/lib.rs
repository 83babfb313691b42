//! Operators of candle that are TITAN kernels, on the CPU and on CUDA devices: one file each, the kernel and what makes it an operator.
//!
//! | operator | like candle's | inputs, output |
//! |---|---|---|
//! | [`rms_norm`] | `candle_nn::ops::rms_norm` | `[.., N]`, `[N]` to `[.., N]` |
//! | [`rope`] | `candle_nn::rotary_emb::rope` | `[B, H, T, D]`, tables `[.., D / 2]` to `[B, H, T, D]` |
//! | [`swiglu`] | `candle_nn::ops::swiglu` | `[.., 2 F]` to `[.., F]` |
//! | [`attention`] | matrix products and `softmax_last_dim` | `[B, HQ, N, D]`, `[B, HK, NK, D]` twice to `[B, HQ, N, D]` |
//! | [`w4a16`] | a product with weights that are converted before | `[.., K]`, codes `[N, K / 2]`, scales `[N, K / 32]` to `[.., N]` |
//! | [`add_assign`] | none: candle has no addition in place | `[.., N]` twice, written |
//!
//! All of them take f16, bf16 and f32, any strides and offsets, and copy nothing.

mod attention;
mod in_place;
mod rms_norm;
mod rope;
mod swiglu;
mod w4a16;

/// The block of the adapter's page: that crate has no tests of its own.
#[cfg(doctest)]
#[doc = include_str!("../../../titan-candle/README.md")]
mod page_of_the_adapter {}

pub use attention::attention;
pub use in_place::add_assign;
pub use rms_norm::rms_norm;
pub use rope::rope;
pub use swiglu::swiglu;
pub use w4a16::w4a16;
