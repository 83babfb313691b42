//! The only module that reads the environment. It affects where artifacts are cached, whether times are printed, how errors are reported, and
//! whether code is generated at all, but never the generated code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What cargo has rustc make in `cargo check`, in `cargo clippy` and of the dependencies in `cargo doc`: nothing that contains data.
const CHECK: &str = "--emit=dep-info,metadata";

/// Whether the crate that is compiled becomes a library or a program: not if it is only checked. With arguments that cargo does not give to
/// rustc, it might.
pub(crate) fn makes_code() -> bool {
    static MAKES_CODE: OnceLock<bool> = OnceLock::new();
    *MAKES_CODE.get_or_init(|| std::env::args_os().all(|arg| arg != CHECK))
}

/// The directory in which artifacts are cached; `None` switches the cache off.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    titan_core::artifact::cache_dir(raw)
}

/// Whether expansions print how long they took: `TITAN_TIMES=1`.
pub(crate) fn wants_times() -> bool {
    var("TITAN_TIMES").is_some_and(|v| v != "0" && v != "off")
}

/// The text of a source file, for [`crate::place`] and [`crate::nearby`].
pub(crate) fn source(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn var(name: &str) -> Option<String> {
    raw(name)?.into_string().ok()
}

/// The value as it is: a path need not be Unicode.
fn raw(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|v| !v.is_empty())
}

/// The number of cases of the tests with random tokens: `TITAN_FUZZ`.
#[cfg(test)]
pub(crate) fn fuzz_cases() -> Option<u64> {
    var("TITAN_FUZZ")?.parse().ok()
}
