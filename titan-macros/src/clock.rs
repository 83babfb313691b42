//! Where the time of an expansion goes, part by part.
//!
//! With `TITAN_TIMES=1` every expansion prints one line on stderr; `cargo xtask times` makes a table of them. Without it
//! nothing is measured. The times are those of the real thing: inside rustc, where every span and every group of tokens
//! is a call to the compiler.

use crate::env;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A part of an expansion. No part lies in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Tokens to tree, and names.
    Parse,
    /// Types and shapes, of all instances.
    Infer,
    /// Tile IR, of all instances.
    Lower,
    /// The grid, and the verifier, of all instances.
    Verify,
    /// The body as Rust, of all tuples of element types.
    Shadow,
    /// Tile IR as text, of all instances.
    Print,
}

const PARTS: usize = 6;

/// What is known of the expansion that is being measured.
#[derive(Debug, Default)]
struct Spent {
    name: String,
    instances: usize,
    parts: [Duration; PARTS],
}

thread_local! {
    static SPENT: RefCell<Option<Spent>> = const { RefCell::new(None) };
}

/// Does a part of an expansion.
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

/// Says of what the times are.
pub(crate) fn note(name: impl FnOnce() -> String, instances: usize) {
    SPENT.with_borrow_mut(|s| {
        if let Some(s) = s {
            s.name = name();
            s.instances = instances;
        }
    });
}

/// Does a whole expansion, and prints its times if they are wanted: what it is, its name, the number of its instances, and
/// microseconds, of all of it and of its parts.
#[expect(clippy::print_stderr, reason = "who sets the variable reads it there")]
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
