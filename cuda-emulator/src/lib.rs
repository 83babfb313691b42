//! A CUDA driver without a GPU, for tests: the C interface of `libcuda.so.1` over TITAN's emulator of PTX.
//!
//! A program that loads the driver when it runs (as cudarc does with dynamic loading) finds this library instead if it
//! is placed as `libcuda.so.1` where the loader looks first, and then runs from end to end: contexts, memory, modules,
//! launches, streams, events. `cargo run -p cuda-emulator -- DIR` places it in a folder for `LD_LIBRARY_PATH`.
//!
//! **Purpose.** Mistakes that usually go unnoticed on a GPU are errors here, reported on stderr with both accesses:
//! * Streams are queues whose operations run as late as allowed, as early as allowed, or in a random order that a seed
//!   repeats. Each operation has a vector clock; two that touch the same bytes, one of them writing, with nothing that
//!   orders them, are an error of the context, whichever ran first. The emulator reports a kernel's accesses byte by byte.
//! * Memory begins undefined, and reading it before it is written is an error; addresses are not allocated again for a
//!   long time, so that a use after the free is reported as such; so are a second free, and one that is not ordered after
//!   the uses.
//! * Errors that the emulator finds in kernels (accesses out of bounds, misaligned or undefined, races on shared memory, misused
//!   barriers) become the errors that hardware reports (`CUDA_ERROR_ILLEGAL_ADDRESS`, `CUDA_ERROR_LAUNCH_FAILED`, …). They are
//!   sticky: from then on every call in the context returns the error.
//!
//! **Tensor maps** do not have the encoding of hardware, which only its driver knows, but 128 bytes that the emulator of PTX
//! understands ([`titan_nv::tma::TensorMap`]).
//!
//! **Settings**, from the environment when the library is first called, or before `cuInit` by
//! `cuEmulatorSet(key, value)`, an export of its own that takes the key without `CUDA_EMULATOR_`:
//!
//! | variable | value | default |
//! |---|---|---|
//! | `CUDA_EMULATOR_DEVICES` | one for each device: `sm_80`, `sm_90:sms=4:memory=64` (MiB) | `sm_80:sms=3:memory=256` |
//! | `CUDA_EMULATOR_ORDER` | `late`, `early`, `random:SEED` | `late` |
//! | `CUDA_EMULATOR_FAULT` | `cuMemAllocAsync:3:2`: the third call fails with 2; `3+`: all from the third on; the code 0: it does nothing and succeeds | none |
//! | `CUDA_EMULATOR_WITHOUT` | functions that return `CUDA_ERROR_NOT_SUPPORTED` | none |
//! | `CUDA_EMULATOR_POOLS` | `0`: no stream-ordered allocation | `1` |
//! | `CUDA_EMULATOR_VERSION` | the version that the driver reports; also determines which PTX it accepts | `12080` |
//! | `CUDA_EMULATOR_STRICT` | `0`: undefined values are errors only where they matter | `1` |
//! | `CUDA_EMULATOR_RACES` | `0`: races on shared memory are not checked | `1` |
//! | `CUDA_EMULATOR_LOG` | `1`: every call is printed | `0` |
//!
//! `cuEmulatorFaults(function, &count)` returns the number of calls of a function that have failed by request since `FAULT` was set.
//!
//! `CUDA_EMULATOR_FAULT=cuStreamWaitEvent:1+:0` removes every wait from a program, so that its tests should fail.
//!
//! A driver that *lacks* a symbol is a file in which the symbol has another name: [`place::without`].
//!
//! **Limits.** Operations have no duration: events report the time that the emulator took, nothing overlaps, clock rates
//! are round numbers. Captures record kernels and nothing else. There are no textures, surfaces, managed memory, peer access, linking,
//! profiling, or interoperation; such functions are not exported, or report that they are not supported. Contexts other
//! than primary ones exist, without flags. Host threads count as one: whatever one thread has waited for is ordered before
//! what any thread enqueues later. Reads of pinned memory by the host cannot be observed; the memory that a pending copy will write
//! is overwritten with `0xFF` when the copy is enqueued, so that a read before the copy gives wrong values.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

mod board;
mod clock;
mod code;
mod driver;
pub mod place;
mod runtime;
mod setting;

/// Writes a line to stderr that no test harness captures.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    let text = format!("cuda-emulator: {text}\n");
    // There is no way to report a failure here.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
