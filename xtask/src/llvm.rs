//! LLVM 19, with which the tests of the AMD back end compare: installed by the system's package manager where that can be.

use std::process::{Command, Stdio};

/// Where tests look instead.
const FOLDER: &str = "TITAN_LLVM";

/// The programs that tests call, and Debian's packages of them.
const PROGRAMS: [&str; 6] = ["llvm-mc-19", "llvm-objdump-19", "llvm-objcopy-19", "llc-19", "clang-19", "ld.lld-19"];
const PACKAGES: [&str; 3] = ["llvm-19", "clang-19", "lld-19"];

/// Makes the programs available, or returns why they are not.
pub(crate) fn bring() -> Result<(), String> {
    if std::env::var_os(FOLDER).is_some() || missing().is_none() {
        return Ok(());
    }
    let status = Command::new("apt-get")
        .args(["install", "--yes", "--no-install-recommends"])
        .args(PACKAGES)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status();
    let how = match status {
        Ok(status) if status.success() => missing().map(|name| format!("apt-get brought no {name}")),
        Ok(status) => Some(format!("`apt-get install {}` ended with {status}", PACKAGES.join(" "))),
        Err(error) => Some(format!("there is no `apt-get` ({error})")),
    };
    how.map_or(Ok(()), |why| Err(format!("{why}; install LLVM 19, or set {FOLDER} to the folder of its programs")))
}

/// A program that is not there.
fn missing() -> Option<&'static str> {
    let runs = |name: &str| {
        let quiet = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|s| s.success())
    };
    PROGRAMS.into_iter().find(|name| !runs(name))
}
