//! The verifier: kernels without a text form, its reasoning about integers, the examples of its documentation, its cost, and programs that are
//! compared with their kernel.

mod arenas;
mod cost;
mod examples;
mod linear;
mod stored;
