//! clippy and rustdoc over the whole workspace, without a warning.
//!
//! `cargo clippy` runs clippy on everything of the workspace, on the compiler inside the macro too, which it generates code for: that
//! takes as long as all lints together. So cargo is told that this program is the compiler. It passes what cargo only checks on to clippy,
//! and what code is generated for to rustc: the macro is then the one that tests use. Cargo knows no difference between crates that clippy
//! checked and crates that rustc checked, and would not check them again; a `--cfg` makes them different. rustdoc reads the same crates.

use crate::cargo::{WORKSPACE, cargo, host};
use std::io;
use std::path::Path;
use std::process::Command;

/// Set while this program is cargo's compiler.
const VARIABLE: &str = "TITAN_LINT";

/// Lints that are checked here only, beside those of the manifest.
const FLAGS: [&str; 2] = ["--deny", "warnings"];

/// Whether all of both passed.
pub(crate) fn run() -> io::Result<bool> {
    let host = host()?;
    let mut check = cargo();
    check.arg("check").args(WORKSPACE).args(["--all-targets", "--keep-going", "--target", &host]);
    let mut document = cargo();
    document.arg("doc").args(WORKSPACE).args(["--no-deps", "--target", &host]).env("RUSTDOCFLAGS", "-D warnings");
    let mut passed = true;
    for command in [&mut check, &mut document] {
        command.env("RUSTC_WRAPPER", std::env::current_exe()?).env(VARIABLE, "1");
        command.env("RUSTFLAGS", "--cfg titan_lint --check-cfg=cfg(titan_lint)");
        passed &= command.status()?.success();
    }
    Ok(passed)
}

/// Whether cargo runs this program in place of the compiler.
pub(crate) fn is_compiler() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// The command that compiles a crate: `args` are the arguments of the compiler.
pub(crate) fn compiler(compiler: &str, args: &[String]) -> Command {
    // Crates of this workspace, for the target: those for the host are parts of the macro, or build scripts.
    let is_own = std::env::var_os("CARGO_PRIMARY_PACKAGE").is_some() && args.iter().any(|arg| arg == "--target");
    let is_checked = args.iter().any(|arg| arg.starts_with("--emit=") && !arg.contains("link"));
    let is_rustc = Path::new(compiler).file_stem().is_some_and(|name| name == "rustc");
    if is_own && is_checked && is_rustc {
        let mut clippy = Command::new("clippy-driver");
        clippy.arg(compiler).args(args).args(FLAGS);
        clippy
    } else {
        let mut plain = Command::new(compiler);
        plain.args(args);
        plain
    }
}
