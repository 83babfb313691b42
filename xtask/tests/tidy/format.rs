//! Every source is as rustfmt writes it, by the rules of rustfmt.toml.

use crate::support::{SEPARATE, expect_none, name, root};
use std::path::Path;
use std::process::Command;

/// Files that are left as they are: what users read in the pages of errors is copied from them.
const AS_WRITTEN: &[&str] = &["ui-tests/"];

#[test]
fn sources_are_formatted() {
    let mut listed = misformatted(root(), &["--all"]);
    SEPARATE.iter().for_each(|package| listed.push_str(&misformatted(&root().join(package), &[])));
    let spared = |file: &String| AS_WRITTEN.iter().any(|folder| file.starts_with(folder));
    let path = |line: &str| Path::new(line).canonicalize().map_or_else(|_| line.to_owned(), |p| name(&p));
    let mut found: Vec<String> = listed.lines().map(path).filter(|file| !spared(file)).collect();
    found.dedup();
    expect_none(&found, "Run `cargo fmt`.");
}

/// The files that rustfmt would change, a line each.
fn misformatted(folder: &Path, which: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    let run = command.arg("fmt").args(which).args(["--", "--check", "-l"]).current_dir(folder).output();
    let output = run.expect("rustfmt is part of the pinned toolchain");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.trim().is_empty(), "cargo fmt: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
