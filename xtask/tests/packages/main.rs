//! The published packages: their metadata, their contents, their dependencies, and other crates with which they build.
//!
//! Deliberately absent: advisories, which `cargo deny check` fetches from the network (`deny.toml`).

mod beside;
mod support;

use std::collections::BTreeSet;
use support::{ADAPTER, Package, Workspace, cargo, root, text};

/// Licences of a file `deny.toml`, section `[licenses]`.
fn allowed() -> BTreeSet<String> {
    let file = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    let list = file.split("\nallow = [").nth(1).and_then(|rest| rest.split(']').next()).expect("a list of licences");
    list.split(',').map(|l| l.trim().trim_matches('"').to_owned()).filter(|l| !l.is_empty()).collect()
}

/// Whether an expression of SPDX, `A OR B` and `A AND B` with parentheses, holds for these licences. `/` is an old `OR`.
fn holds(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let value = any(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "`{expression}` is no licence expression");
    value
}

fn any(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut value = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        value |= all(words, at, allowed);
    }
    value
}

fn all(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut value = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        value &= one(words, at, allowed);
    }
    value
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    if word == "(" {
        let value = any(words, at, allowed);
        *at += 1;
        return value;
    }
    if words.get(*at) == Some(&"WITH") {
        *at += 2;
    }
    allowed.contains(word)
}

#[test]
fn licence_expressions_are_read() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "Zlib".to_owned()]);
    let good = ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(MIT OR GPL-3.0) AND Zlib", "Zlib AND MIT"];
    assert!(good.iter().all(|e| holds(e, &allowed)));
    let bad = ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR GPL-3.0) AND GPL-3.0", "GPL-3.0 AND MIT OR GPL-2.0"];
    assert!(!bad.iter().any(|e| holds(e, &allowed)));
}

/// Of everything that is built, for tests too: the file is about all of it.
#[test]
fn licences_of_dependencies_are_those_of_the_deny_file() {
    let (workspace, allowed) = (Workspace::load(), allowed());
    let refused: Vec<String> = (workspace.packages.values())
        .filter(|p| !holds(&p.license, &allowed))
        .map(|p| format!("{} {}: {}", p.name, p.version, p.license))
        .collect();
    assert!(refused.is_empty(), "not in `allow` of deny.toml: {refused:#?}");
    let unused: Vec<&String> =
        allowed.iter().filter(|l| !workspace.packages.values().any(|p| p.license.contains(l.as_str()))).collect();
    assert!(unused.is_empty(), "`allow` of deny.toml lists what no dependency has: {unused:?}");
}

#[test]
fn published_packages_say_what_they_are() {
    let (workspace, adapter) = (Workspace::load(), Package::adapter());
    let mut poor = Vec::new();
    for p in workspace.published().chain([&adapter]) {
        // One feature of the adapter needs a compiler that docs.rs does not have.
        let documented = if p.name == adapter.name { p.is_documented } else { p.documents_all_features };
        let facts = [
            ("license", p.license == "MIT OR Apache-2.0"),
            ("description", !p.description.is_empty() && p.description.len() < 200),
            ("readme", p.readme == "README.md"),
            ("keywords and categories", p.keywords > 0 && p.categories > 0),
            ("docs.rs with all features", documented),
        ];
        poor.extend(facts.iter().filter(|(_, holds)| !holds).map(|(what, _)| format!("{}: {what}", p.name)));
    }
    assert!(poor.is_empty(), "{poor:#?}");
}

/// A workspace of its own inherits nothing, and both are one release.
#[test]
fn the_adapter_has_the_version_of_the_workspace() {
    let (workspace, adapter) = (Workspace::load(), Package::adapter());
    let facade = workspace.published().find(|p| p.name == "titan-gpu").expect("the facade is published");
    assert_eq!((&adapter.version, adapter.rust_version), (&facade.version, facade.rust_version));
    let manifest = std::fs::read_to_string(root().join(ADAPTER)).expect(ADAPTER);
    let asked = format!("titan = {{ package = \"titan-gpu\", path = \"..\", version = \"={}\"", facade.version);
    assert!(manifest.contains(&asked), "{ADAPTER} does not say `{asked}`");
}

#[test]
fn packages_have_their_texts_and_no_tests() {
    let (workspace, adapter) = (Workspace::load(), Package::adapter());
    let mut found = Vec::new();
    for p in workspace.published().chain([&adapter]) {
        let manifest = if p.name == adapter.name { ADAPTER } else { "Cargo.toml" };
        let list = ["package", "--list", "--allow-dirty", "--manifest-path", manifest, "--package", &p.name];
        let listed = text(cargo().args(list));
        let files: Vec<&str> = listed.lines().collect();
        for needed in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            if !files.contains(&needed) {
                found.push(format!("{} lacks {needed}", p.name));
            }
        }
        let is_test = |f: &&&str| ["filetests/", "tests/", "benches/", ".ci/"].iter().any(|dir| f.starts_with(dir));
        found.extend(files.iter().filter(is_test).map(|f| format!("{} has {f}", p.name)));
        if p.name == "titan-gpu-cli" {
            let pages = std::fs::read_dir(root().join("docs/errors")).expect("docs/errors");
            let names = pages.flatten().map(|page| format!("errors/{}", page.file_name().to_string_lossy()));
            found.extend(names.filter(|page| !files.contains(&page.as_str())).map(|page| format!("no {page}")));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// What can be said of the oldest compiler without having it: no dependency of a published crate asks for a newer one. What the
/// crates themselves use of std, clippy's `incompatible_msrv` compares with the same number.
#[test]
fn dependencies_build_with_the_declared_compiler() {
    let workspace = Workspace::load();
    let mut newest = (0, 0);
    for p in workspace.published() {
        for needed in workspace.brought_by(p) {
            assert!(
                needed.rust_version <= p.rust_version,
                "{} declares Rust {:?}, and its dependency {} needs {:?}",
                p.name,
                p.rust_version,
                needed.name,
                needed.rust_version
            );
            if !needed.name.starts_with("titan-gpu") {
                newest = newest.max(needed.rust_version);
            }
        }
    }
    assert!(newest > (1, 80), "dependencies declare what they need: {newest:?}");
}

/// A crate of kernels without the CPU as a device, on GPUs only.
#[test]
fn a_minimal_kernel_crate_brings_few_crates() {
    const MOST: usize = 25;
    for (features, most) in [("cuda", MOST), ("cuda,cudarc", MOST), ("", MOST - 2), ("cpu,cuda,cudarc", 40)] {
        let crates = crates_of(&["--no-default-features", "--features", features]);
        // The kernel crate itself is one more.
        assert!(crates.len() < most, "features `{features}`: {} crates: {crates:#?}", crates.len() + 1);
    }
}

/// The crates that the facade with these features is built of, itself included.
fn crates_of(features: &[&str]) -> BTreeSet<String> {
    let tree = ["tree", "--package", "titan-gpu", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"];
    let listed = text(cargo().args(tree).args(features));
    listed.lines().map(|l| l.trim_end_matches(" (*)").to_owned()).collect()
}

#[test]
fn the_readme_counts_the_crates_of_a_first_program() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let says = format!("builds {} crates besides its own", crates_of(&[]).len());
    assert!(readme.contains(&says), "README.md does not say `{says}`");
}

/// What a package of this workspace is called, for the message.
#[test]
fn names_on_crates_io_are_titans_own() {
    let workspace = Workspace::load();
    let strange: Vec<&Package> = workspace.published().filter(|p| !p.name.starts_with("titan-gpu")).collect();
    assert!(strange.is_empty(), "{strange:?}");
}
