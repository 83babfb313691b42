//! How the code of artifacts is packed, and where artifacts are cached. Everything else is in `tests/artifact.rs`.

mod pack;
mod place;
mod writer;
