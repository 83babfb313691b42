//! Transcendental functions, within the error table of `docs/semantics.md`.
//!
//! [`single`] is polynomial code without branches, so that loops over it become vector loops. [`double`] calls `libm`, which
//! gives the same results on every platform.

pub(crate) mod double;
pub(crate) mod single;
mod trig;

#[cfg(test)]
mod tests;
