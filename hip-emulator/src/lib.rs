//! A HIP runtime without a GPU, for tests: the C interface of `libamdhip64.so.7` over TITAN's emulator of gfx942.
//!
//! A program that loads the runtime when it runs finds this library instead if it is placed as `libamdhip64.so.7` where
//! the loader looks first ([`place`]), and then runs from end to end: memory, code objects, launches, streams, events.
//!
//! **What it is for.** Streams are queues whose operations run as late as allowed, as early as allowed, or in a random order
//! that a seed repeats. Memory begins undefined; reading it before it is written, using it after it is freed, and freeing it
//! while a queue still uses it are errors, where hardware waits or tolerates them. What the emulator finds in kernels is printed to
//! stderr and becomes the error of hardware, which is sticky: from then on every call returns it.
//!
//! **Settings**, from the environment when the library is first called:
//!
//! | variable | value | default |
//! |---|---|---|
//! | `HIP_EMULATOR_DEVICES` | architectures, one for each device: `gfx942,gfx90a`; `none` for no device | `gfx942:sramecc+:xnack-` |
//! | `HIP_EMULATOR_ORDER` | `late`, `early`, `random:SEED` | `late` |
//! | `HIP_EMULATOR_FAULT` | `hipMalloc:3:2`: the third call fails with 2; `3+`: all from the third on | none |
//! | `HIP_EMULATOR_MEMORY` | bytes of each device | 256 MiB |
//!
//! **What it is deliberately not.** It has no time, no graphs, no peers, no managed or pinned memory, and only the functions
//! that TITAN calls. Unlike the emulated CUDA driver it does not compare the accesses of operations that nothing orders:
//! a missing wait shows only by its results, in some order.

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

pub mod place;
mod runtime;
mod setting;
mod world;

/// A line on stderr that no test harness captures.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    let text = format!("hip-emulator: {text}\n");
    // There is no way to report a failure here.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
