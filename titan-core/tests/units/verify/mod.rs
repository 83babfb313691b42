//! The verifier: kernels without a text form, its reasoning about integers, the examples of its documentation, and its cost.

mod arenas;
mod cost;
mod examples;
mod linear;
