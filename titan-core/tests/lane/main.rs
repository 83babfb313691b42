//! The lane IR: what the builder folds, what `verify` refuses, and the analyses against running programs and following paths.

#[path = "../machine/mod.rs"]
mod machine;

mod banks;
mod dce;
mod dies;
mod fold;
mod hazard;
mod in_flight;
mod loops;
mod programs;
mod role_memory;
mod roles;
mod scale;
mod shared;
mod speculation;
mod structure;
mod uniform;
mod verify;
