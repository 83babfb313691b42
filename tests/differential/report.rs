//! Settings of the tests, and what they say about their runs.

use std::io::Write;

/// A number from the environment.
#[expect(clippy::disallowed_methods, reason = "how much is tested is settled when the test runs")]
pub(crate) fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

/// Tells a reader of the tests something.
pub(crate) fn say(line: &str) {
    // A test must not fail because stdout is closed.
    drop(std::io::stdout().write_all(format!("{line}\n").as_bytes()));
}
