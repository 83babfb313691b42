//! The lints that libraries and programs keep, and their tests need not: attributes at their roots, because the manifest's lints apply to
//! all targets of a package, and one run of clippy checks all of them.

use crate::support::{PACKAGES, code_of, expect_none, name, read, root};

/// A published library that is a workspace of its own.
const ADAPTER: &str = "titan-candle";

/// The attributes, without white space.
const ATTRIBUTES: [&str; 5] = [
    "#![cfg_attr(not(test),warn(unreachable_pub,unfulfilled_lint_expectations))]",
    "#![cfg_attr(not(test),deny(clippy::unwrap_used,clippy::panic,clippy::wildcard_enum_match_arm,clippy::allow_attributes))]",
    "#![cfg_attr(not(test),warn(clippy::cast_possible_truncation,clippy::cast_sign_loss,clippy::cast_lossless))]",
    "#![cfg_attr(not(test),warn(clippy::too_many_lines,clippy::cognitive_complexity,clippy::needless_range_loop))]",
    "#![cfg_attr(not(test),warn(clippy::erasing_op,clippy::identity_op,clippy::needless_borrows_for_generic_args))]",
];

#[test]
fn roots_have_the_lints_of_libraries() {
    let mut found = Vec::new();
    for package in PACKAGES.iter().chain([&ADAPTER]) {
        for file in ["src/lib.rs", "src/main.rs"] {
            let path = root().join(package).join(file);
            if !path.is_file() {
                continue;
            }
            let text: String = code_of(&path).chars().filter(|c| !c.is_whitespace()).collect();
            // Lists that rustfmt has broken end with a comma.
            let text = text.replace(",)", ")");
            // A library without code, for a package of tests.
            let is_empty = text.is_empty();
            found.extend(
                ATTRIBUTES.iter().filter(|a| !is_empty && !text.contains(*a)).map(|a| format!("{}: {a}", name(&path))),
            );
        }
    }
    expect_none(&found, "Copy the attributes from the root of another crate.");
}

/// A workspace of its own inherits nothing.
#[test]
fn the_adapter_has_the_lints_of_the_workspace() {
    let of = |manifest: &str, section: &str| -> Vec<String> {
        let text = read(&root().join(manifest));
        let lines = text.lines().skip_while(|line| *line != section).skip(1).take_while(|line| !line.starts_with('['));
        lines.filter(|line| line.contains(" = ")).map(str::to_owned).collect()
    };
    for tool in ["rust", "clippy"] {
        let (own, all) = (
            of("titan-candle/Cargo.toml", &format!("[lints.{tool}]")),
            of("Cargo.toml", &format!("[workspace.lints.{tool}]")),
        );
        assert!(!all.is_empty(), "Cargo.toml has no section of lints of {tool}");
        assert_eq!(own, all, "copy the section of Cargo.toml");
    }
}
