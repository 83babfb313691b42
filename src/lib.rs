//! GPU kernels inline in Rust.
pub mod lang;
pub mod prelude;
