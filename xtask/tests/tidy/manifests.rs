//! What manifests must say: the reason of every dependency, on the line above it; and that libraries are compiled once.

use crate::support::{PACKAGES, SEPARATE, code_of, expect_none, files, has_word, name, read, root};

/// The libraries whose tests are all in `tests`. A test inside of one of them would make cargo compile it once more; since the
/// manifest forbids that, such a test would never run.
const COMPILED_ONCE: &[&str] = &["titan-core", "titan-sim", "titan-nv", "titan-amd", "titan-cpu"];

#[test]
fn libraries_are_not_compiled_again_for_tests_inside_of_them() {
    let mut found = Vec::new();
    for package in COMPILED_ONCE {
        let manifest = read(&root().join(package).join("Cargo.toml"));
        let lib = manifest.split("\n[").find(|section| section.starts_with("lib]")).unwrap_or_default();
        if !lib.lines().any(|line| line == "test = false") {
            found.push(format!("{package}/Cargo.toml: no `test = false` in [lib]"));
        }
        for file in files(&root().join(package).join("src"), "rs") {
            for (i, line) in code_of(&file).lines().enumerate() {
                let conditional = line.contains("cfg(") && has_word(line, "test");
                if line.contains("#[test]") || conditional {
                    found.push(format!("{}:{}: {}", name(&file), i + 1, line.trim()));
                }
            }
        }
    }
    expect_none(&found, "Write the test in `tests`, through the library's interface.");
}

#[test]
fn every_dependency_has_its_reason() {
    let mut found = Vec::new();
    for package in PACKAGES.iter().chain(SEPARATE) {
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
