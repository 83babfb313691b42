//! Measures the time of each part of an expansion.
//!
//! With `TITAN_TIMES=1` every expansion prints one line on stderr; `cargo xtask times` makes a table of them. Without it
//! nothing is measured. The times are measured inside rustc, where every access to a span or a group of tokens is a call to the
//! compiler.

use crate::env;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A part of an expansion. Parts are not nested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Parsing and name resolution.
    Parse,
    /// Inference of types and shapes, for all instances.
    Infer,
    /// Generation of tile IR, for all instances.
    Lower,
    /// Inference of the grid, and verification, for all instances.
    Verify,
    /// Generation of the typed shadow, for all tuples of element types.
    Shadow,
    /// Printing of tile IR as text, for all instances.
    Print,
}

const PARTS: usize = 6;

/// The measurements of the current expansion.
#[derive(Debug, Default)]
struct Spent {
    name: String,
    instances: usize,
    parts: [Duration; PARTS],
}

thread_local! {
    static SPENT: RefCell<Option<Spent>> = const { RefCell::new(None) };
}

/// Runs and measures a part of an expansion.
pub(crate) fn time<T>(part: Part, f: impl FnOnce() -> T) -> T {
    if SPENT.with_borrow(Option::is_none) {
        return f();
    }
    let start = Instant::now();
    let out = f();
    let elapsed = start.elapsed();
    SPENT.with_borrow_mut(|s| {
        if let Some(sum) = s.as_mut().and_then(|s| s.parts.get_mut(part as usize)) {
            *sum += elapsed;
        }
    });
    out
}

/// Sets the name and the number of instances of the item that is measured.
pub(crate) fn note(name: impl FnOnce() -> String, instances: usize) {
    SPENT.with_borrow_mut(|s| {
        if let Some(s) = s {
            s.name = name();
            s.instances = instances;
        }
    });
}

/// Runs a whole expansion, and prints its times if `TITAN_TIMES` asks for it: the kind of item, its name, the number of its
/// instances, and the microseconds of the whole and of each part.
#[expect(clippy::print_stderr, reason = "users who set the variable expect the output there")]
pub(crate) fn expansion<T>(what: &str, f: impl FnOnce() -> T) -> T {
    if !env::wants_times() {
        return f();
    }
    SPENT.set(Some(Spent::default()));
    let start = Instant::now();
    let out = f();
    let total = start.elapsed().as_micros();
    if let Some(Spent { name, instances, parts }) = SPENT.take() {
        let parts: Vec<String> = parts.iter().map(|d| d.as_micros().to_string()).collect();
        eprintln!("titan-times {what} {name} {instances} {total} {}", parts.join(" "));
    }
    out
}
