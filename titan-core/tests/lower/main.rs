//! The lowering to lanes without a GPU: random kernels on integers are planned and lowered, with and without alignment, then
//! run as lanes ([`machine`]) and as tiles ([`tiles`]); both must leave the same bytes, and nothing may go wrong on the way.

#[path = "../machine/mod.rs"]
mod machine;

#[path = "../shared/filetests.rs"]
mod filetests;

#[path = "../shared/facts.rs"]
mod facts;

mod cases;
mod files;
mod kernels;
mod launch;
mod passes;
mod random;
mod stages;
mod tensor;
mod tiles;
