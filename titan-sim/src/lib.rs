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

pub mod engine;
pub mod sanitize;
#[cfg(feature = "simulator")]
pub mod sim;
