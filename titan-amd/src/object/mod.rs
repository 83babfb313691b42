//! Code objects: the ELF files that AMD's loaders take, version 5.
//!
//! ```text
//! Program (kernels with code and resources) ─ write ─▶ bytes ─ read ─▶ CodeObject (image, kernels, metadata)
//! ```
//!
//! | module | part |
//! |---|---|
//! | [`descriptor`] | the 64 bytes that tell hardware what a kernel needs |
//! | [`metadata`] | what the runtime needs to know of it: arguments, sizes, registers |
//! | [`msgpack`] | the format in which metadata are kept |
//! | [`mod@write`], [`read`] | the file; the reader takes nothing on trust and never panics |
//!
//! Source: LLVM's "User Guide for AMDGPU Backend" (`AMDGPUUsage`), sections "Code Object" and "Kernel Dispatch", cited as
//! LLVM; the ELF specification for the rest.
//!
//! Deliberately absent: other versions of code objects, bundles for several targets, debug information, relocations
//! against symbols (what is written needs none; what is read may have relative ones only).

pub mod descriptor;
mod elf;
mod error;
pub mod metadata;
pub mod msgpack;
pub mod read;
pub mod write;

pub use descriptor::{Descriptor, Resources};
pub use error::ObjectError;
pub use metadata::{ArgKind, KernelArg, KernelMetadata, Metadata};
pub use read::{CodeObject, Kernel};
pub use write::{KernelCode, Program};
