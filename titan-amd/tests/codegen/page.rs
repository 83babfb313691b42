//! Tables of docs/performance.md that tests make.

use std::path::Path;

/// Compares a table with what is between two lines of the page; writes it there if `TITAN_BLESS` is set.
pub(crate) fn told([begin, end]: [&str; 2], table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/performance.md");
    let text = std::fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = text.split_once(begin).expect("the page has the line before the table");
    let (found, after) = rest.split_once(end).expect("the page has the line behind the table");
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{table}\n{end}{after}")).expect("the page is written");
        return;
    }
    assert!(found == format!("{table}\n"), "docs/performance.md is not current, run with TITAN_BLESS=1:\n{table}");
}
