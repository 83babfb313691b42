//! What the book must keep true: each of its pages is listed, and the blocks of each are compiled.

use crate::support::{expect_none, files, name, read, root};

/// The pages of the book, relative to its folder.
fn pages() -> Vec<String> {
    let folder = root().join("book/src");
    let relative =
        |page: std::path::PathBuf| page.strip_prefix(&folder).unwrap_or(&page).to_string_lossy().replace('\\', "/");
    files(&folder, "md").into_iter().map(relative).filter(|page| page != "SUMMARY.md").collect()
}

#[test]
fn every_page_of_the_book_is_listed() {
    let summary = read(&root().join("book/src/SUMMARY.md"));
    let listed = |page: &String| summary.matches(&format!("]({page})")).count() == 1;
    let found: Vec<String> = pages().into_iter().filter(|page| !listed(page)).collect();
    assert!(!pages().is_empty(), "the book has no pages");
    expect_none(&found, "List the page in book/src/SUMMARY.md, once.");
}

#[test]
fn the_blocks_of_every_page_are_compiled() {
    let library = read(&root().join("book/blocks/src/lib.rs"));
    let found: Vec<String> = pages().into_iter().filter(|page| !library.contains(&format!("\"{page}\";"))).collect();
    expect_none(&found, "Name the page in book/blocks/src/lib.rs.");
}

/// A block without a language is Rust for rustdoc, and plain text for mdBook.
#[test]
fn every_block_of_the_book_has_its_language() {
    const LANGUAGES: [&str; 9] =
        ["rust", "rust,compile_fail", "rust,no_run", "text", "sh", "toml", "yaml", "python", "c"];
    let mut found = Vec::new();
    for page in files(&root().join("book/src"), "md") {
        let mut inside = false;
        for (i, line) in read(&page).lines().enumerate() {
            let Some(language) = line.strip_prefix("```") else { continue };
            inside = !inside;
            if inside && !LANGUAGES.contains(&language) {
                found.push(format!("{}:{}: `{line}`", name(&page), i + 1));
            }
        }
    }
    expect_none(&found, "Write the language behind the fence. `rust,ignore` is none: every block of Rust is compiled.");
}

/// The page about error codes has a row for each family, and the codes that the book names have pages.
#[test]
fn the_book_knows_the_families_of_errors_and_names_codes_that_exist() {
    let page = read(&root().join("book/src/errors.md"));
    let rows: Vec<&str> =
        page.lines().filter_map(|l| l.strip_prefix("| T")).filter_map(|l| l.split("..").next()).collect();
    let codes: Vec<String> = files(&root().join("docs/errors"), "md")
        .iter()
        .filter_map(|p| Some(p.file_stem()?.to_str()?.strip_prefix('T')?.to_owned()))
        .collect();
    let mut found: Vec<String> = Vec::new();
    for code in &codes {
        if rows.iter().filter(|family| code.starts_with(*family)).count() != 1 {
            found.push(format!("book/src/errors.md: not one row for the family of T{code}"));
        }
    }
    for family in &rows {
        if !codes.iter().any(|code| code.starts_with(family)) {
            found.push(format!("book/src/errors.md: no code begins with T{family}"));
        }
    }
    for page in files(&root().join("book/src"), "md") {
        let text = read(&page);
        for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
            let code = word.strip_prefix('T').filter(|d| d.len() == 4 && d.bytes().all(|b| b.is_ascii_digit()));
            if let Some(code) = code.filter(|code| !codes.iter().any(|c| c == code)) {
                found.push(format!("{}: T{code}", name(&page)));
            }
        }
    }
    assert!(codes.len() > 100, "docs/errors has lost its pages");
    expect_none(&found, "Add the row, or name a code that has a page in docs/errors.");
}

/// `cargo xtask book` compares the errors of rejected blocks with the codes that they name.
#[test]
fn every_rejected_block_names_its_error() {
    let mut found = Vec::new();
    for page in files(&root().join("book/src"), "md") {
        for block in read(&page).split("```rust,compile_fail\n").skip(1) {
            let code =
                block.split("```").next().and_then(|body| body.split("// Rejected, ").nth(1)).unwrap_or_default();
            let number = code.strip_prefix(['T', 'E']).and_then(|rest| rest.get(..4)).unwrap_or_default();
            if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
                found.push(format!("{}: {}", name(&page), block.lines().next().unwrap_or_default()));
            }
        }
    }
    expect_none(&found, "Write `// Rejected, T0402: ..` in the block, with the code of its error.");
}

/// What the blocks are compiled with is what the tests of the repository are compiled with.
#[test]
fn the_blocks_have_the_profile_of_the_workspace() {
    let profile = |manifest: &str| -> Vec<String> {
        let text = read(&root().join(manifest));
        let sections = text.split("\n[").filter(|section| section.starts_with("profile.dev"));
        let lines = |section: &str| {
            section
                .lines()
                .filter(|l| !l.is_empty() && !l.starts_with('#'))
                .map(str::to_owned)
                .collect::<Vec<_>>()
                .join(" ")
        };
        sections.map(lines).collect()
    };
    let (own, workspace) = (profile("book/blocks/Cargo.toml"), profile("Cargo.toml"));
    let found: Vec<String> = own.iter().filter(|section| !workspace.contains(section)).cloned().collect();
    assert!(!own.is_empty(), "book/blocks/Cargo.toml has no profile");
    expect_none(&found, "Copy the section of Cargo.toml.");
}
