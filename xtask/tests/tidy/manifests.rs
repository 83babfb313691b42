//! What every dependency must have: a reason, on the line above it.

use crate::support::{PACKAGES, expect_none, read, root};

#[test]
fn every_dependency_has_its_reason() {
    let mut found = Vec::new();
    for package in PACKAGES {
        let text = read(&root().join(package).join("Cargo.toml"));
        let mut inside = false;
        let mut before = "";
        for line in text.lines() {
            if line.starts_with('[') {
                inside = line.trim().ends_with("dependencies]");
            } else if inside && is_foreign(line) && !before.starts_with('#') {
                found.push(format!("{package}/Cargo.toml: {line}"));
            }
            before = line;
        }
    }
    expect_none(&found, "Write above the line, as a comment, what the library is for and why it is worth its cost.");
}

/// A dependency that is not a crate of this workspace: those have the arrows of `layers.rs` for a reason.
fn is_foreign(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_alphabetic()) && !line.starts_with("titan")
}
