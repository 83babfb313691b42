//! Random kernels on ragged tensors: what the executor of the CPU and the embedded PTX in the emulator leave must be what the
//! operations mean, exactly for integers and within the bounds of `bounds.rs` for floats.
//!
//! The meaning is written down a third time here: in [`tiles`] for integers, which the tests of the lowering share, and in
//! [`reference`] for single operations on every element type, in `f64` and `i128`. Neither has code in common with what is
//! tested.
//!
//! Where `TITAN_DEVICE` names a GPU, that is the third one.
//!
//! `TITAN_DIFFERENTIAL_CASES` is how many random kernels there are, `TITAN_DIFFERENTIAL_FIRST` the first seed.

#[path = "../../titan-core/tests/machine/rng.rs"]
mod rng;

/// What the parts shared with the tests of the lowering expect to find.
mod machine {
    pub(crate) use crate::rng::Rng;
}

#[path = "../../titan-core/tests/lower/random.rs"]
mod random;
#[path = "../../titan-core/tests/lower/tensor.rs"]
mod tensor;
#[path = "../../titan-core/tests/lower/tiles.rs"]
mod tiles;

mod bounds;
mod cases;
mod devices;
#[cfg(feature = "cuda")]
mod gpu;
mod grouped;
mod integers;
mod mutants;
mod numbers;
mod operations;
mod packed;
mod reference;
mod report;
