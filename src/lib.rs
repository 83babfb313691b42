//! GPU kernels in Rust, compiled and checked by `cargo build`.
//!
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

// Device functions of this library name it as those of other crates do.
extern crate self as titan;

pub mod bench;
mod dispatch;
mod error;
mod json;
pub mod lang;
pub mod order;
pub mod prelude;
pub mod random;
pub mod records;
#[cfg_attr(
    not(any(feature = "cpu", feature = "cuda", feature = "hip", feature = "emulator")),
    expect(
        dead_code,
        unused_variables,
        unreachable_code,
        reason = "a library of kernels has no devices: its users choose them"
    )
)]
mod runtime;
pub mod safetensors;
pub mod tune;

/// Compiles a function to a GPU kernel during `cargo build`.
///
/// The function has Rust's syntax and semantics; its values are scalars and tiles, its memory is tensors. rustc checks types, shapes
/// and borrows; TITAN checks that programs (thread blocks) write disjoint parts of the outputs, and embeds code for every target. The
/// function is replaced by a launch function of the same name, and by `name::reference`, the body as plain Rust.
///
/// ```
/// use titan::prelude::*;
///
/// /// C[m, n] = Σ_k A[m, k] · B[n, k], one BM×BN tile of C per program.
/// #[titan::kernel(
///     instances(T in [f16, f32], (BM, BN, BK) in [(64, 64, 32)]),
///     grid(cdiv(M, BM), cdiv(N, BN)),
///     require(K > 0),
/// )]
/// fn gemm<T: Float, const BM: i32, const BN: i32, const BK: i32>(
///     #[shape(M, K)] a: &Tensor<T, 2>,
///     #[shape(N, K)] b: &Tensor<T, 2>,
///     #[shape(M, N)] c: &mut Tensor<T, 2>,
/// ) {
///     let (m, n) = (program_id(0), program_id(1));
///     let mut acc = Tile::<f32, BM, BN>::zeros();
///     for k in pipelined(0..cdiv(K, BK)) {
///         acc = mma(a.load_tile::<BM, BK>([m, k]), b.load_tile::<BN, BK>([n, k]).t(), acc);
///     }
///     c.store_tile([m, n], acc.cast::<T>());
/// }
///
/// # fn main() -> titan::Result<()> {
/// let dev = Device::best()?;
/// let (a, b) = (dev.full([100, 30], 1.0f32)?, dev.full([70, 30], 2.0f32)?);
/// let mut c = dev.zeros([100, 70])?;
/// gemm::<f32, 64, 64, 32>(&a, &b, &mut c).sync()?;
/// assert_eq!(c.to_vec()?, [60.0f32; 7000]);
/// # Ok(())
/// # }
/// ```
///
/// # Arguments of the attribute
///
/// | argument | meaning | without it |
/// |---|---|---|
/// | `instances(..)` | the values of generic parameters to compile for | the function has no generic parameters |
/// | `grid(..)` | one to three extents, as expressions over shape names and scalars; `grid(unchecked ..)`: programs need not cover all of an output | inferred from the outputs |
/// | `require(..)` | conditions that every launch must meet | none |
/// | `roles(..)` | the roles of a pipeline and the number of warps of each: `roles(load: 1 warp, work: 1 warpgroup)` | all warps execute the whole kernel |
/// | `targets(..)` | the targets for which the kernel is compiled | `cpu` and `sm_80`, `sm_90a` where it can use more, and with the feature `hip` `gfx942` if it can be compiled for it |
/// | `schedule(rule)`, `schedule(swing)` | what places the operations of `pipelined` loops: a rule, or the modulo scheduler | `swing` on sm_80 and its kind, `rule` on others |
/// | `tails(split)`, `tails(zero_filled)` | the treatment of the last iterations of `pipelined` loops, whose tiles may extend beyond a tensor | the compiler decides |
/// | `allow(no_code)`, `allow(simpler_schedule)` | silences the warning that a target gets no code, or that a simpler schedule had to be taken | rustc warns |
/// | `notes` | prints the compiler's notes about the code of the kernel as warnings | [`kernels`] has them |
/// | `crate = path` | where `titan` is, if it was renamed | `::titan` |
///
/// # Parameters
///
/// `&Tensor<T, R>` is an input and `&mut Tensor<T, R>` an output, of rank 1 to 5; `Option<&Tensor<T, R>>` may be absent; integers,
/// floats and `bool` are the same in every program. `#[shape(M, K)]` names the extents of a tensor: the first use of a name binds it,
/// and every later use is a condition. Launches take tensors, [views](View) and [guards](AsTensorMut) of them.
///
/// # Functions of a kernel
///
/// | function of `name` | purpose |
/// |---|---|
/// | `name::<f16, 64>(..)` | a [`Launch`] of an instance |
/// | `name::reference::<f16, 64>(..)` | the body as plain Rust, run to its end |
/// | `name::generic::<T, 64>(..)`, `name::generic_reference::<T, 64>(..)` | the same from generic code, without a bound for the instance |
/// | `name::declares::<T, 64>()` | whether the instance is declared, also in constants |
/// | `name::instances()` | the declared instances as data, each an [`Instance`] |
///
/// [`dispatch!`] chooses an instance by values at run time.
///
/// # Errors
///
/// TITAN's messages have a code; `titan explain T0402`, a command of the package `titan-gpu-cli`, explains it. The language is
/// described in `docs/language.md` of this package.
pub use titan_macros::kernel;

/// Makes a function callable from kernels and other device functions, in this crate and in those that depend on it.
///
/// It is inlined into its callers, and is also an ordinary host function, which tests can call.
///
/// ```
/// use titan::prelude::*;
///
/// /// x · σ(x)
/// #[titan::device]
/// fn silu<const N: i32>(x: Tile<f32, N>) -> Tile<f32, N> {
///     x / (1.0 + (-x).exp())
/// }
///
/// #[titan::kernel]
/// fn activate(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
///     let n = program_id(0);
///     y.store_tile([n], silu(x.load_tile::<64>([n])));
/// }
/// ```
pub use titan_macros::device;

/// Makes a constant usable in kernels, their shapes and their grids, in this crate and in those that depend on it.
///
/// ```
/// use titan::prelude::*;
///
/// #[titan::constant]
/// const BLOCK: i32 = 64;
///
/// #[titan::kernel(grid(cdiv(N, BLOCK)))]
/// fn halve(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
///     let n = program_id(0);
///     y.store_tile([n], x.load_tile::<BLOCK>([n]) * 0.5);
/// }
/// ```
pub use titan_macros::constant;

#[cfg(feature = "cpu")]
pub use runtime::cpu;
#[cfg(feature = "cuda")]
pub use runtime::cuda;
#[cfg(feature = "hip")]
pub use runtime::hip;

pub use error::{Error, Location, Refused, Result};
#[cfg(any(feature = "cpu", feature = "cudarc"))]
pub use runtime::Stored;
#[cfg(any(feature = "cpu", feature = "cuda"))]
pub use runtime::dlpack;
pub use runtime::{
    AnyElem, AnyOption, AnyOptionMut, AnyTensor, AnyTensorMut, AsTensor, AsTensorMut, Choice, Device, DeviceKind,
    DynTensor, DynView, DynViewMut, ElemChoice, Event, Exclusive, GenericArg, Graph, Instance, KernelInfo, Launch,
    LaunchFuture, MAX_RANK, MemoryUse, Pinned, Registers, Stream, Tensor, Timer, Upload, VariantInfo, View, ViewMut,
    kernels,
};
#[cfg(any(feature = "cpu", feature = "cuda"))]
pub use runtime::{Place, Strided};
/// An element type as a value: `T::ELEM`, `tensor.elem()`.
pub use titan_core::ir::Elem as ElemType;

/// The options of a simulated device: when copies complete, and how roles interleave. See [`Device::simulator`].
#[cfg(feature = "simulator")]
pub mod sim {
    pub use titan_sim::engine::Completion;
    pub use titan_sim::sim::Options;
}

/// The options of an emulated device: when asynchronous operations complete, how warps interleave, and which reads are errors. See
/// [`Device::emulator_with`].
#[cfg(feature = "emulator")]
pub mod emu {
    pub use titan_nv::emu::{Completion, Options, Schedule, Uninitialised};
}

// Called by `dispatch!`: rustc mentions its path in messages.
#[doc(hidden)]
pub use titan_macros::dispatch as dispatch_by_value;

/// Functions for expansions of `#[titan::kernel]`. Internal: they change without notice.
#[doc(hidden)]
pub mod __private {
    pub use titan_macros::{compile, missing, step};

    pub use crate::runtime::{
        Absent, Declares, HostTensor, KernelRef, LaunchArg, Listed, Reference, by_key, no_arm, position, run_reference,
    };
    pub use inventory;
}

/// What programs cannot do.
#[cfg(doctest)]
mod sealed {
    /// ```compile_fail,E0277
    /// #[derive(Clone, Copy, Debug)]
    /// struct Mine;
    ///
    /// impl titan::lang::Shape for Mine {
    ///     const DIMS: &'static [i32] = &[1];
    /// }
    /// ```
    mod shapes {}

    /// ```compile_fail,E0277
    /// struct Mine;
    ///
    /// impl<'a> titan::AnyOption<'a, f32, 1> for Mine {
    ///     fn launch_arg(self) -> titan::__private::LaunchArg<'a> {
    ///         None::<&titan::Tensor<f32, 1>>.into()
    ///     }
    /// }
    /// ```
    mod options {}
}

/// The pages whose code blocks are compiled as doc tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../docs/language.md")]
    mod language {}
    #[doc = include_str!("../docs/host.md")]
    mod host {}
    #[doc = include_str!("../docs/memory.md")]
    mod memory {}
    #[doc = include_str!("../docs/tuning.md")]
    mod tuning {}
    #[doc = include_str!("../docs/graphs.md")]
    mod graphs {}
}
