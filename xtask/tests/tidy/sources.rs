//! What every source file must be.

use crate::support::{code_of, expect_none, files, has_word, name, read, root, rust_files};

/// Lines that a file may have; fewer are wanted.
const HARD: usize = 500;
const WANTED: usize = 300;
/// The first line of a file that is a table, and may be long.
const TABLE: &str = "//! tidy: table";

/// Folders in which `unsafe` is the purpose.
const UNSAFE_DIRS: &[&str] = &[
    "src/runtime/",
    "benches/",
    "titan-cpu/src/runtime/",
    "titan-cpu/benches/",
    "titan-nv/src/runtime/",
    "titan-amd/src/runtime/",
    "cuda-emulator/src/runtime/",
    "hip-emulator/src/runtime/",
    "examples/dlpack/src/",
];

/// Places elsewhere: the file, and the words around the `unsafe`.
const UNSAFE_ITEMS: &[(&str, &str)] = &[
    // A promise that the kernel's author makes; the function itself does nothing dangerous.
    ("src/lang/tensor.rs", "pub unsafe fn shared"),
];

/// Folders whose matches over operations have no wildcard arm, so that a new operation has to be answered there.
const EXHAUSTIVE: &[&str] = &[
    "titan-core/src/ir/",
    "titan-core/src/text/",
    "titan-core/src/verify/",
    "titan-core/src/analysis/",
    "titan-core/src/synchronize/",
    "titan-core/src/allocate/",
    "titan-core/src/expand/",
    "titan-core/src/plan/",
    "titan-core/src/pipeline/",
    "titan-core/src/driver/",
    "titan-core/src/lay_out/",
    "titan-core/src/lower/",
    "titan-core/src/lane/",
    "titan-nv/src/lower/",
    "titan-amd/src/codegen/",
];

/// The lints against wildcard arms, and the groups that contain them or all lints.
const AGAINST_WILDCARDS: &[&str] = &[
    "wildcard_enum_match_arm",
    "match_wildcard_for_single_variants",
    "clippy::restriction",
    "clippy::pedantic",
    "clippy::all",
    "warnings",
];

#[test]
fn files_say_what_they_are_for() {
    let missing: Vec<String> = rust_files().iter().filter(|f| !read(f).starts_with("//!")).map(|f| name(f)).collect();
    expect_none(&missing, "Begin the file with a `//!` line: what it is for, and what is deliberately not in it.");
}

#[test]
fn files_are_short() {
    let (mut too_long, mut long) = (Vec::new(), Vec::new());
    for file in rust_files() {
        let text = read(&file);
        let lines = text.lines().count();
        if text.lines().next() == Some(TABLE) || lines <= WANTED {
            continue;
        }
        let line = format!("{}: {lines} lines", name(&file));
        if lines > HARD { &mut too_long } else { &mut long }.push(line);
    }
    if !long.is_empty() {
        // Shown by `cargo test -- --nocapture`: wanted, not demanded.
        let report = format!("files above {WANTED} lines:\n{}\n", long.join("\n"));
        std::io::Write::write_all(&mut std::io::stdout(), report.as_bytes()).expect("stdout is open");
    }
    expect_none(
        &too_long,
        "Split the file by what its parts are for. Tables may be long: first line `//! tidy: table`.",
    );
}

/// Git for Windows converts line ends unless a repository says otherwise, and tests compare files byte by byte.
#[test]
fn line_ends_are_the_same_on_every_system() {
    let attributes = read(&root().join(".gitattributes"));
    assert!(
        attributes.lines().any(|line| line == "* text=auto eol=lf"),
        "`.gitattributes` must keep `* text=auto eol=lf`"
    );
    let with_returns = |extension| files(root(), extension).into_iter().filter(|file| read(file).contains('\r'));
    let found: Vec<String> =
        ["rs", "md", "tir", "toml", "stderr"].into_iter().flat_map(with_returns).map(|f| name(&f)).collect();
    expect_none(&found, "Write the file with line feeds alone, and a carriage return in a literal as `\\r`.");
}

#[test]
fn nothing_is_ignored_or_left_for_later() {
    let mut found = Vec::new();
    for file in rust_files() {
        for (i, line) in code_of(&file).lines().enumerate() {
            for word in ["#[ignore", "todo!", "unimplemented!"].iter().filter(|w| line.contains(**w)) {
                found.push(format!("{}:{}: `{word}`", name(&file), i + 1));
            }
        }
    }
    expect_none(&found, "Finish it, return an error that names what is missing, or leave it out.");
}

#[test]
fn what_decides_about_operations_has_no_wildcard_arm() {
    let mut found = Vec::new();
    for file in rust_files().into_iter().filter(|f| EXHAUSTIVE.iter().any(|dir| name(f).starts_with(dir))) {
        for (i, line) in code_of(&file).lines().enumerate() {
            if AGAINST_WILDCARDS.iter().any(|lint| line.contains(lint)) {
                found.push(format!("{}:{}: {}", name(&file), i + 1, line.trim()));
            }
        }
    }
    expect_none(&found, "Match on `family`, `effect` or `traffic` of the operation, and name every case.");
}

#[test]
fn unsafe_code_is_where_it_belongs() {
    let mut found = Vec::new();
    for file in rust_files() {
        let path = name(&file);
        if UNSAFE_DIRS.iter().any(|d| path.starts_with(d)) || path.contains("tests/") {
            continue;
        }
        for (i, line) in code_of(&file).lines().enumerate() {
            let allowed = UNSAFE_ITEMS.iter().any(|(f, words)| *f == path && line.contains(words));
            if has_word(line, "unsafe") && !allowed {
                found.push(format!("{path}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    expect_none(&found, "Move it to a `runtime` folder with a SAFETY note, or find a safe way.");
}
