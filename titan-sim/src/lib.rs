//! Everything that runs kernels in order to find out what they do: the execution engine of the emulators and of the
//! simulator, the sanitizer, the simulator of pipelines, and the model checker.
//!
//! | module | part |
//! |---|---|
//! | [`engine`] | memories with poison and bounds, barriers, commit groups, asynchronous operations, agents |
//! | [`sanitize`] | an observer of the engine's events: races, missing fences, misuse of barriers, deadlocks |
//! | [`sim`] | runs tile IR, rings and barrier programs on the engine; `sim::explore` is the model checker |
//!
//! Compiling a kernel needs none of it, so it is no part of titan-core: the macro's build stays small. Deliberately absent:
//! emulators of machine code (each back end has its own, over the engine) and anything that judges a kernel without running
//! it (`titan_core::verify`).

pub mod engine;
pub mod sanitize;
#[cfg(feature = "simulator")]
pub mod sim;
