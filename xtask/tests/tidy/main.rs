//! Rules of the repository that rustc cannot state. They run with `cargo test`, so that a machine without CI enforces them.
//!
//! | module | rules |
//! |---|---|
//! | `book` | every page of the book is listed, and its blocks are compiled |
//! | `layers` | the dependencies between crates, those between modules of titan-core, and what titan-core must not use |
//! | `sources` | headers, lengths, no ignored and no unfinished code, where `unsafe` is allowed, line ends |
//! | `manifests` | a reason beside every dependency |
//! | `lints` | the lints of libraries and programs |
//! | `format` | sources are as rustfmt writes them |
//! | `pages` | links lead somewhere; every requirement has its line |
//!
//! Every message says how to fix its findings. Deliberately absent: lints (clippy).

mod book;
mod format;
mod layers;
mod lints;
mod manifests;
mod pages;
mod sources;
mod support;
