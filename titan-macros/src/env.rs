//! The only reader of the environment: what the macro takes from it changes where artifacts are cached, never what they are.

use std::path::PathBuf;

/// Where artifacts are cached; `None` switches the cache off.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    titan_core::artifact::cache_dir(|name| std::env::var_os(name))
}

/// How many cases the tests with random tokens run: `TITAN_FUZZ`.
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "this is the one reader")]
pub(crate) fn fuzz_cases() -> Option<u64> {
    std::env::var("TITAN_FUZZ").ok()?.parse().ok()
}
