//! What the documentation says about programs and mistakes: exactly what is found, and in the quick depth the rows of a sample.

use std::path::{Path, PathBuf};

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../docs/{page}.md"))
}

/// Whether pages are written anew.
pub(super) fn is_blessing() -> bool {
    std::env::var_os("TITAN_BLESS").is_some()
}

/// The parts of a page before, in and behind what the test `of` says between two comments.
fn parts(page: &str, (of, what): (&str, &str)) -> [String; 3] {
    let text = std::fs::read_to_string(path(page)).unwrap();
    let begin =
        format!("<!-- {what}: made by `TITAN_BLESS=1 cargo test -p titan-gpu-cpu --test simulator {of}`. -->\n");
    let (before, rest) = text.split_once(&begin).expect("a place for it");
    let (told, after) = rest.split_once("<!-- end -->").expect("its end");
    [format!("{before}{begin}"), told.to_owned(), format!("<!-- end -->{after}")]
}

/// What a page says between two comments; `TITAN_BLESS=1` writes it. In the quick depth the page has each row and each point of the text, with
/// the counts of all cases.
pub(super) fn told(page: &str, test: (&str, &str), text: &str) {
    let [before, old, after] = parts(page, test);
    let new = format!("\n{}\n\n", text.trim_end());
    if is_blessing() {
        std::fs::write(path(page), format!("{before}{new}{after}")).unwrap();
        return;
    }
    if test_depth::is_full() {
        assert!(new == old, "docs/{page}.md is not current, run with TITAN_BLESS=1:\n{text}");
        return;
    }
    let facts = text.lines().filter(|line| line.starts_with("| ") || line.starts_with("* "));
    let is_told = |fact: &&str| old.lines().any(|line| line == *fact || is_row(fact, line));
    let others: Vec<&str> = facts.filter(|fact| !is_told(fact)).collect();
    assert!(others.is_empty(), "docs/{page}.md is not current, run with TITAN_BLESS=1: {others:#?}");
}

/// The number of rows of the table that a page has between two comments.
pub(super) fn rows(page: &str, test: (&str, &str)) -> usize {
    let [_, told, _] = parts(page, test);
    told.lines().filter(|line| line.starts_with("| ")).count() - 1
}

/// Whether a row of a table is that of all cases.
fn is_row(sample: &str, all: &str) -> bool {
    all.starts_with("| ") && test_depth::is_row_of_sample(sample, all)
}

/// The table of a target in docs/lowering.md; `TITAN_BLESS=1` writes it. Each row has the counts before and behind that of what fails in the
/// simulator, where everything runs for the table alone.
pub(super) fn mistakes(target: &str, table: &[Counts<'_>]) {
    let page = std::fs::read_to_string(path("lowering")).unwrap();
    let (before, rest) = page.split_once(&format!("\n| mistake for {target} |")).expect("the head of the table");
    let (head, rest) = rest.split_once("|\n|---|---|---|---|---|---|\n").expect("the line below it");
    let (rows, after) = rest.split_once("\n\n").expect("text after the table");
    if is_blessing() {
        let rows: String = table.iter().map(|row| format!("{}\n", row.line(Some(row.failed)))).collect();
        let line = "|\n|---|---|---|---|---|---|\n";
        std::fs::write(path("lowering"), format!("{before}\n| mistake for {target} |{head}{line}{rows}\n{after}"))
            .unwrap();
        return;
    }
    assert_eq!(rows.lines().count(), table.len(), "docs/lowering.md is not current, run with TITAN_BLESS=1");
    for (row, told) in table.iter().zip(rows.lines()) {
        let told: Vec<&str> = told.split('|').collect();
        let told = [&told[..4], &told[5..]].concat().join("|");
        let own = row.line(None);
        let is_told = if test_depth::is_full() { own == told } else { is_row(&own, &told) };
        assert!(is_told, "docs/lowering.md is not current, run with TITAN_BLESS=1: {own}");
    }
}

/// A row of the tables of docs/lowering.md.
pub(super) struct Counts<'a> {
    pub(super) name: &'a str,
    pub(super) all: usize,
    pub(super) refused: usize,
    pub(super) failed: usize,
    pub(super) in_code: usize,
    pub(super) equivalent: usize,
}

impl Counts<'_> {
    /// The row, with or without how many fail in the simulator.
    fn line(&self, failed: Option<usize>) -> String {
        let Counts { name, all, refused, in_code, equivalent, .. } = self;
        let failed = failed.map_or(String::new(), |n| format!(" {n} |"));
        format!("| {name} | {all} | {refused} |{failed} {in_code} | {equivalent} |")
    }
}
