//! The folder where artifacts are cached between builds, for the macro that writes there and the tools that read it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder of cached artifacts, for an environment with the variables `var`; `None` if the cache is off.
///
/// `TITAN_CACHE` is a folder, or `off` or `0`. Otherwise the folder is `titan-gpu` in the user's cache folder, if there is one. An empty
/// variable is treated as unset.
pub fn cache_dir(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let var = |name: &str| var(name).filter(|v| !v.is_empty());
    match var("TITAN_CACHE") {
        Some(v) if v == "off" || v == "0" => None,
        Some(v) => Some(v.into()),
        None => {
            let home = || var("HOME").map(|h| Path::new(&h).join(".cache"));
            let base = var("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
            Some(base.or_else(|| var("LOCALAPPDATA").map(PathBuf::from))?.join("titan-gpu"))
        }
    }
}
