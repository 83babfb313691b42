//! How this repository's commands call cargo: one target folder, one profile and one set of features for tests, lints, documentation
//! and AddressSanitizer, so that what two of them need is built once. Most expensive is the compiler inside the macro.
//!
//! Deliberately absent: settings of the profile, which are in the manifest, so that a plain `cargo test` shares them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The features of the workspace's tests: everything that runs without a GPU.
pub(crate) const FEATURES: &str =
    "titan-gpu/emulator,titan-gpu/simulator,titan-gpu/hip,titan-gpu/nvtx,titan-gpu-nv/emu,titan-gpu-amd/emu";

/// The cargo that runs this program, in the repository's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// All packages with the features of their tests.
pub(crate) const WORKSPACE: [&str; 4] = ["--locked", "--workspace", "--features", FEATURES];

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The machine for which rustc compiles, such as `x86_64-unknown-linux-gnu`.
pub(crate) fn host() -> std::io::Result<String> {
    let output = Command::new(rustc()).arg("-vV").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| std::io::Error::other("rustc does not say for which machine it compiles"))
}

/// The compiler.
pub(crate) fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}
