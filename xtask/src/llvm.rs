//! LLVM 19, with which the tests of the AMD back end compare: installed by the system's package manager where that can be.

use crate::install;

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
    let installed = install::packages(&PACKAGES).and_then(|()| match missing() {
        None => Ok(()),
        Some(name) => Err(format!("apt-get brought no {name}")),
    });
    installed.map_err(|why| format!("{why}; install LLVM 19, or set {FOLDER} to the folder of its programs"))
}

/// A program that is not there.
fn missing() -> Option<&'static str> {
    PROGRAMS.into_iter().find(|name| !install::runs(name))
}
