//! GPU kernels inline in Rust.
mod error;
pub mod lang;
pub mod prelude;
#[cfg_attr(
    not(any(feature = "cpu", feature = "cuda", feature = "emulator")),
    expect(dead_code, unused_variables, unreachable_code, reason = "a library of kernels has no devices: its users choose them")
)]
mod runtime;

pub use titan_macros::{constant, device, kernel};

#[cfg(feature = "cpu")]
pub use runtime::cpu;
#[cfg(feature = "cuda")]
pub use runtime::cuda;

pub use error::{Error, Location, Result};
pub use runtime::{
    AsTensor, AsTensorMut, Device, DeviceKind, Exclusive, KernelInfo, Launch, LaunchFuture, MAX_RANK, Stream, Tensor, VariantInfo,
    View, ViewMut, kernels,
};

/// What simulated devices take: see [`Device::simulator`].
#[cfg(feature = "simulator")]
pub mod sim {
    pub use titan_sim::engine::Completion;
    pub use titan_sim::sim::Options;
}

/// What expansions of `#[titan::kernel]` call. Not for people: it changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use titan_macros::{compile, missing, step};

    pub use crate::runtime::{HostTensor, KernelRef, LaunchArg, Listed, Reference};
    pub use inventory;
}

/// The pages whose code blocks are compiled as doc tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    mod readme {}
    #[doc = include_str!("../docs/language.md")]
    mod language {}
}
