//! How the code of artifacts is packed, what reading them allocates, and where they are cached. Everything else is in
//! `tests/artifact.rs`.

mod memory;
mod pack;
mod place;
mod writer;
