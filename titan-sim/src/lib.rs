//! Execution of kernels for analysis: the execution engine of the emulators and of the
//! simulator, the sanitizer, the simulator of pipelines, and the model checker.
//!
//! | module | part |
//! |---|---|
//! | [`engine`] | memories with poison and bounds, barriers, commit groups, asynchronous operations, agents |
//! | [`sanitize`] | an observer of the engine's events: races, missing fences, misuse of barriers, deadlocks |
//! | [`sim`] | runs tile IR, rings and barrier programs on the engine; `sim::explore` is the model checker |
//!
//! Compilation needs none of it, so it is not part of titan-core, which keeps the macro's build small. Deliberately absent:
//! emulators of machine code (each back end has its own, on the engine) and static verification (`titan_core::verify`).

#![cfg_attr(not(test), warn(unreachable_pub, unfulfilled_lint_expectations))]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::panic, clippy::wildcard_enum_match_arm, clippy::allow_attributes)
)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_lossless))]
#![cfg_attr(not(test), warn(clippy::too_many_lines, clippy::cognitive_complexity, clippy::needless_range_loop))]
#![cfg_attr(not(test), warn(clippy::erasing_op, clippy::identity_op, clippy::needless_borrows_for_generic_args))]

pub mod engine;
pub mod sanitize;
#[cfg(feature = "simulator")]
pub mod sim;
