//! The parts of the core, each by itself: number formats, tokens, analyses, the rules of the verifier, artifacts, launches.
//!
//! What the parts do together is tested elsewhere, by texts of kernels where these can say it (`filetests`).

mod allocations;
mod analysis;
mod artifact;
mod collections;
mod ir;
mod launch;
mod num;
mod text;
mod verify;
