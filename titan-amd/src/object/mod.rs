//! Code objects: the ELF files that AMD's loaders accept, version 5.
//!
//! ```text
//! Program (kernels with code and resources) ─ write ─▶ bytes ─ read ─▶ CodeObject (image, kernels, metadata)
//! ```
//!
//! | module | part |
//! |---|---|
//! | [`descriptor`] | 64 bytes from which hardware takes the resources of a kernel |
//! | [`metadata`] | the description of a kernel for the runtime: arguments, sizes, registers |
//! | [`msgpack`] | the encoding of metadata |
//! | [`mod@write`], [`read`] | the file; the reader checks everything and never panics |
//!
//! Source: LLVM's "User Guide for AMDGPU Backend" (`AMDGPUUsage`), sections "Code Object" and "Kernel Dispatch", cited as
//! LLVM; the ELF specification for the rest.
//!
//! Deliberately absent: other versions of code objects, bundles for several targets, debug information, relocations
//! against symbols (the writer needs none; the reader accepts only relative ones).

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
