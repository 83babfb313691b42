//! The installers of other people that bring what tests compare with or run on: the system's package manager, rustup, and what a tool comes
//! with. None of it is needed to build TITAN or to use it.
//!
//! Deliberately absent: package managers other than Debian's. Elsewhere the user installs what a message names.

use crate::cargo::{root, rustc};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Installs packages of Debian's, which needs its `apt-get` and the right to use it.
pub(crate) fn packages(names: &[&str]) -> Result<(), String> {
    let status = Command::new("apt-get")
        .args(["install", "--yes", "--no-install-recommends"])
        .args(names)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`apt-get install {}` ended with {status}", names.join(" "))),
        Err(error) => Err(format!("there is no `apt-get` ({error})")),
    }
}

/// Makes Rust's standard library for a target available, or returns why it is not.
pub(crate) fn library(target: &str) -> Result<(), String> {
    if has_library(target) {
        return Ok(());
    }
    let mut add = Command::new("rustup");
    ran("rustup target add", add.args(["target", "add", target]).current_dir(root()))?;
    if has_library(target) { Ok(()) } else { Err(format!("rustup brought no library for {target}")) }
}

/// Whether rustc finds the standard library for a target.
pub(crate) fn has_library(target: &str) -> bool {
    let asked =
        Command::new(rustc()).args(["--print", "target-libdir", "--target", target]).current_dir(root()).output();
    let Ok(said) = asked else { return false };
    let folder = String::from_utf8_lossy(&said.stdout);
    let mut files = std::fs::read_dir(Path::new(folder.trim())).into_iter().flatten().flatten();
    files.any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

/// Whether a program can be run.
pub(crate) fn runs(program: &str) -> bool {
    let quiet = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// Runs a command; the error is its last lines.
pub(crate) fn ran(name: &str, command: &mut Command) -> Result<(), String> {
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().map_err(|error| format!("`{name}`: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last: String = lines[lines.len().saturating_sub(4)..].iter().map(|line| format!("\n  {line}")).collect();
    Err(format!("`{name}` ended with {status}:{last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said_by_its_name() {
        assert!(!runs("no-such-program") && !has_library("no-such-target"));
        let told = ran("the command", &mut Command::new("no-such-program"));
        assert!(told.is_err_and(|error| error.starts_with("`the command`: ")));
        // A command that fails, on every system where this test can be built.
        let told = ran("rustc", Command::new(rustc()).arg("no-such-file.rs"));
        assert!(told.is_err_and(|error| error.starts_with("`rustc` ended with") && error.contains("no-such-file.rs")));
    }

    #[test]
    fn the_library_of_the_compilers_own_machine_is_there() {
        assert!(has_library(&crate::cargo::host().unwrap()));
    }
}
