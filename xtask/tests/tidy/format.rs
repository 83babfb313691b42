//! Every source is as rustfmt writes it, by the rules of rustfmt.toml.

use crate::support::{expect_none, name, root};
use std::path::Path;
use std::process::Command;

/// Files that are left as they are: what users read in the pages of errors is copied from them.
const AS_WRITTEN: &[&str] = &["ui-tests/"];

#[test]
fn sources_are_formatted() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = Command::new(cargo).args(["fmt", "--all", "--", "--check", "-l"]).current_dir(root()).output();
    let output = run.expect("rustfmt is part of the pinned toolchain");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.trim().is_empty(), "cargo fmt: {errors}");
    let spared = |file: &String| AS_WRITTEN.iter().any(|folder| file.starts_with(folder));
    let path = |line: &str| Path::new(line).canonicalize().map_or_else(|_| line.to_owned(), |p| name(&p));
    let mut found: Vec<String> = listed.lines().map(path).filter(|file| !spared(file)).collect();
    found.dedup();
    expect_none(&found, "Run `cargo fmt`.");
}
