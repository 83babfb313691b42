//! What the pages must keep true.

use crate::support::{expect_none, files, name, read, root};
use std::path::Path;

/// Every requirement, as groups of ids.
const REQUIREMENTS: &[(&str, u32)] = &[
    ("R1.", 6),
    ("R2.", 5),
    ("R3.", 3),
    ("R4.", 4),
    ("R5.", 3),
    ("R6.", 4),
    ("R7.", 3),
    ("R8.", 6),
    ("S", 8),
    ("T", 5),
    ("F", 5),
    ("V", 10),
    ("D", 4),
    ("B", 12),
];

#[test]
fn links_lead_somewhere() {
    let mut found = Vec::new();
    for page in files(root(), "md") {
        let text = read(&page);
        let folder = page.parent().unwrap_or(Path::new("."));
        for (number, line) in prose(&text) {
            for target in targets(line) {
                let file = target.split('#').next().unwrap_or_default();
                let elsewhere = file.is_empty() || file.contains(':');
                if !elsewhere && !folder.join(file).exists() {
                    found.push(format!("{}:{number}: {target}", name(&page)));
                }
            }
        }
    }
    expect_none(&found, "Write the page, or correct the link: it is relative to the page that it stands on.");
}

/// The numbered lines of a page outside of code blocks.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            lines.push((i + 1, line));
        }
    }
    lines
}

/// The targets of the `[text](target)` links in a line.
fn targets(line: &str) -> Vec<&str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .map(|t| t.split(' ').next().unwrap_or(t))
        .collect()
}

#[test]
fn every_requirement_has_one_line() {
    let text = read(&root().join("docs/requirements.md"));
    let ids: Vec<String> =
        REQUIREMENTS.iter().flat_map(|(group, n)| (1..=*n).map(move |i| format!("{group}{i}"))).collect();
    let row = |line: &str| line.strip_prefix("| ").and_then(|l| l.split(" |").next()).map(str::to_owned);
    let rows: Vec<String> =
        text.lines().filter_map(row).filter(|r| r.ends_with(|c: char| c.is_ascii_digit())).collect();
    let mut found: Vec<String> = Vec::new();
    for id in &ids {
        let n = rows.iter().filter(|r| *r == id).count();
        if n != 1 {
            found.push(format!("{id}: {n} lines"));
        }
    }
    found.extend(rows.iter().filter(|r| !ids.contains(r)).map(|r| format!("{r}: not a requirement")));
    expect_none(
        &found,
        "docs/requirements.md has exactly one line `| id | status | where | shown by |` for each requirement.",
    );
}

#[test]
fn requirements_have_a_status() {
    let text = read(&root().join("docs/requirements.md"));
    let mut found = Vec::new();
    for line in text.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| id")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let known = cells.get(2).is_some_and(|s| ["done", "partial", "not yet"].contains(s));
        let shown = cells.get(2) == Some(&"not yet") || cells.get(4).is_some_and(|s| !s.is_empty());
        if !known || !shown {
            found.push(line.to_owned());
        }
    }
    expect_none(
        &found,
        "The status is `done`, `partial` or `not yet`; what is done or partial names the test that shows it.",
    );
}

#[test]
fn corrections_have_a_source() {
    let text = read(&root().join("docs/seeds.md"));
    let rows = text.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| claim"));
    let poor: Vec<String> = rows
        .clone()
        .filter(|l| l.trim_matches('|').split('|').filter(|cell| !cell.trim().is_empty()).count() != 3)
        .map(str::to_owned)
        .collect();
    assert!(rows.count() > 20, "docs/seeds.md has lost its tables");
    expect_none(&poor, "A row of docs/seeds.md is `| claim | correction | source |`, none of them empty.");
}

#[test]
fn every_check_of_the_catalogue_has_a_code_or_a_reason() {
    /// How many messages the catalogue has.
    const MESSAGES: usize = 40;
    let text = read(&root().join("docs/catalogue.md"));
    let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| message")).collect();
    let code =
        |cell: &str| cell.strip_prefix("[T").is_some_and(|rest| rest.ends_with(".md)") && rest.contains("](errors/T"));
    let poor = rows.iter().filter(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [message, here, why] = cells[..] else { return true };
        let known = code(here) || here == "not applicable" || (here == "internal" && names_a_test(why));
        message.is_empty() || why.is_empty() || !known
    });
    let poor: Vec<String> = poor.map(|row| (*row).to_owned()).collect();
    assert_eq!(rows.len(), MESSAGES, "docs/catalogue.md has one row for each message");
    expect_none(
        &poor,
        "A row is `| message | code with its page, internal, or not applicable | why |`, none of them empty; that of an internal check names \
         its test. `not yet` is no answer any more.",
    );
}

/// Every file that the catalogue names exists: rows of internal checks have no page that would.
#[test]
fn the_files_that_the_catalogue_names_exist() {
    let text = read(&root().join("docs/catalogue.md"));
    let named: Vec<&str> = paths(&text).collect();
    let gone: Vec<String> = named.iter().filter(|path| !root().join(path).exists()).map(|p| (*p).to_owned()).collect();
    assert!(named.len() > 5, "{named:?}");
    expect_none(&gone, "Name the file that has the check, or its test.");
}

/// Paths of sources in a text, such as `titan-amd/tests/isa/refusals.rs`.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || "-_/.".contains(c));
    text.split(word)
        .map(|path| path.trim_end_matches('.'))
        .filter(|path| path.starts_with("titan-") && path.contains('/'))
}

/// Whether a text names a file of tests that exists.
fn names_a_test(text: &str) -> bool {
    paths(text).any(|path| path.contains("/tests/") && root().join(path).is_file())
}

/// The rows of a page, by cells.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|l| l.starts_with("| ")).map(|l| l.trim_matches('|').split('|').map(str::trim).collect())
}

/// The codes that a text names: T and four digits.
fn codes(text: &str) -> Vec<&str> {
    let is_code = |w: &&str| w.len() == 5 && w.starts_with('T') && w[1..].bytes().all(|b| b.is_ascii_digit());
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_code).collect()
}

/// A check with an error code exists, so a requirement with a code that says *not yet* is outdated.
#[test]
fn what_is_not_yet_there_has_no_code() {
    let mut found = Vec::new();
    let text = read(&root().join("docs/requirements.md"));
    let late = rows(&text).filter(|cells| cells.get(1) == Some(&"not yet"));
    found.extend(late.filter(|cells| !codes(&cells.join(" ")).is_empty()).map(|cells| format!("{cells:?}")));
    expect_none(
        &found,
        "A check that has a code is there: name the code in the second column, and where it is checked.",
    );
    assert_eq!(codes("[T0610](errors/T0610.md), T5, TF32, T60a1"), ["T0610", "T0610"]);
}

#[test]
fn the_readme_shows_the_kernel_that_it_runs() {
    let readme = read(&root().join("README.md"));
    let block = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
    let example = read(&root().join("examples/gemm.rs"));
    assert!(!block.is_empty() && example.contains(block), "copy the kernel of examples/gemm.rs into README.md");
}
