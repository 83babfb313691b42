//! The only reader of the environment: what the macro takes from it changes where artifacts are cached, never what they are.

use std::path::PathBuf;

/// Where artifacts are cached; `None` switches the cache off.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    titan_core::artifact::cache_dir(|name| var(name).map(Into::into))
}

#[expect(clippy::disallowed_methods, reason = "this is the one reader")]
fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// How many cases the tests with random tokens run: `TITAN_FUZZ`.
#[cfg(test)]
pub(crate) fn fuzz_cases() -> Option<u64> {
    var("TITAN_FUZZ")?.parse().ok()
}
