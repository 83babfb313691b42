//! Transcendental functions, within the error table of `docs/semantics.md`.
//!
//! [`single`] is polynomial code without branches, so that loops over it become vector loops. [`double`] calls `libm`, which
//! gives the same results on every platform.

pub(crate) mod double;
pub(crate) mod single;
mod trig;

pub use trig::LIMIT;

/// A function on `f32`: with fused multiply-adds, and without.
pub type Both = [fn(f32) -> f32; 2];

/// The functions on `f32` by their names.
pub const FUNCTIONS: [(&str, Both); 9] = [
    ("exp", [single::exp::<true>, single::exp::<false>]),
    ("exp2", [single::exp2::<true>, single::exp2::<false>]),
    ("ln", [single::ln::<true>, single::ln::<false>]),
    ("log2", [single::log2::<true>, single::log2::<false>]),
    ("sin", [single::sin, single::sin]),
    ("cos", [single::cos, single::cos]),
    ("tanh", [single::tanh::<true>, single::tanh::<false>]),
    ("sigmoid", [single::sigmoid::<true>, single::sigmoid::<false>]),
    ("erf", [single::erf::<true>, single::erf::<false>]),
];
