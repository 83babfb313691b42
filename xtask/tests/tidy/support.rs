//! Files of the repository, and their text without comments and strings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The folders of the workspace's packages; the root's own is the facade.
pub(crate) const PACKAGES: &[&str] = &[
    "",
    "titan-core",
    "titan-sim",
    "titan-macros",
    "titan-nv",
    "titan-amd",
    "titan-cpu",
    "titan-cli",
    "ui-tests",
    "xtask",
    "wheel",
    "cuda-emulator",
    "hip-emulator",
    "examples/minilm",
    "benches",
    "library-tests",
    "test-depth",
];

/// The folders of packages that are workspaces of their own.
pub(crate) const SEPARATE: &[&str] = &[
    "examples/decoder",
    "examples/decoder/candle",
    "titan-candle",
    "examples/candle",
    "examples/candle/cuda",
    "examples/dlpack",
];

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository has a root")
    });
    &ROOT
}

/// The text of a file.
#[expect(clippy::panic, reason = "a test that cannot read the repository stops")]
pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A path as people write it, from the root.
pub(crate) fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The files below a folder with an extension, in order. Build outputs and dot folders are left out.
pub(crate) fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.flatten().map(|e| e.path()) {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The target of a link is another file.
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() && file != "target" && !file.starts_with('.') {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The `.rs` files of every package: sources, tests, benches and examples. Not the mistakes of the UI tests.
pub(crate) fn rust_files() -> Vec<PathBuf> {
    let dirs =
        PACKAGES.iter().chain(SEPARATE).flat_map(|p| ["src", "tests", "benches"].map(|d| root().join(p).join(d)));
    let mut all: Vec<PathBuf> = dirs.flat_map(|d| files(&d, "rs")).collect();
    let examples = fs::read_dir(root().join("examples")).into_iter().flatten().flatten().map(|e| e.path());
    all.extend(examples.filter(|p| p.extension().is_some_and(|e| e == "rs")));
    all.sort();
    all
}

/// The code of a file: many rules look at the same files, each of which is read once.
pub(crate) fn code_of(path: &Path) -> &'static str {
    static KNOWN: Mutex<BTreeMap<PathBuf, &'static str>> = Mutex::new(BTreeMap::new());
    let lock = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lock().get(path).copied() {
        return known;
    }
    // Other tests go on while this one reads.
    let text = code(&read(path)).leak();
    lock().insert(path.to_owned(), text);
    text
}

/// The text with comments, strings and characters blanked; lines keep their numbers.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        // Only these begin something that is blanked.
        let begins = rest.bytes().position(|b| matches!(b, b'/' | b'r' | b'"' | b'\'')).unwrap_or(rest.len());
        let (plain, tail) = rest.split_at(begins);
        out.push_str(plain);
        rest = tail;
        let Some(c) = rest.chars().next() else { return out };
        let skip = blank_length(rest, out.chars().next_back());
        let taken = if skip == 0 { c.len_utf8() } else { skip };
        let (part, tail) = rest.split_at(taken);
        if skip == 0 {
            out.push(c);
        } else {
            out.push(' ');
            out.extend(part.chars().filter(|c| *c == '\n'));
        }
        rest = tail;
    }
}

/// The length in bytes of the comment or literal that starts here; 0 if none does.
fn blank_length(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(rest.len(), |i| i + 2);
    }
    let word_before = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if let Some(raw) = rest.strip_prefix('r').filter(|_| !word_before) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let close = format!("\"{}", "#".repeat(hashes));
            return raw[hashes + 1..].find(&close).map_or(rest.len(), |i| 2 + hashes + i + close.len());
        }
    }
    if rest.starts_with('"') {
        return quoted(rest, '"').unwrap_or(rest.len());
    }
    // A lifetime has no second quote close by.
    if rest.starts_with('\'') {
        quoted(rest, '\'').filter(|n| *n <= 12).filter(|n| char_literal(&rest[..*n])).unwrap_or(0)
    } else {
        0
    }
}

fn char_literal(text: &str) -> bool {
    text.starts_with("'\\") || text.chars().count() == 3
}

fn quoted(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (i, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(i + 1),
            _ => {}
        }
    }
    None
}

/// Whether a text contains a word, not as part of a longer one.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word)
        .any(|(i, _)| !part(line[..i].chars().next_back()) && !part(line[i + word.len()..].chars().next()))
}

/// Fails with one line for each finding, and how to fix them.
pub(crate) fn expect_none(findings: &[String], fix: &str) {
    assert!(findings.is_empty(), "\n{}\n\n{fix}\n", findings.join("\n"));
}

#[test]
fn code_has_no_comments_and_no_strings() {
    let text = "a /* unsafe */ b // todo!\n\"unsafe \\\" {\" r#\"x \" todo!\"# 'u' '\\'' <'a> 'static c";
    let code = code(text);
    assert!(["unsafe", "todo", "'u'"].iter().all(|w| !code.contains(w)), "{code}");
    assert!(["a ", " b ", "<'a>", "'static c"].iter().all(|w| code.contains(w)), "{code}");
    assert_eq!(code.lines().count(), text.lines().count());
}

#[test]
fn words_stand_alone() {
    assert!(has_word("std::fs::read", "fs"));
    assert!(!has_word("offs::read, fsync", "fs"));
}
