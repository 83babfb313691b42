//! The page `docs/planted.md`: a table of the defects and of what became of them.

use super::defect::Defect;
use super::verdict::Verdict;

/// Where it is, from the root of the repository.
pub(crate) const PATH: &str = "docs/planted.md";

/// What became of a defect in both depths; `None` where it was not tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    pub(crate) quick: Option<Verdict>,
    pub(crate) full: Option<Verdict>,
}

const INTRODUCTION: &str = "\
# Planted defects

The tests have two depths, and the quick one runs samples. This page shows what the samples still find: each row is a defect of one
line, as a programmer might make it, that `cargo xtask plant` plants in a copy of the repository before it runs the tests that concern
it. The defects are in `xtask/defects`. `quick` and `full` are the first test that failed in that depth, or `survived` if none did. The
full depth is tried for defects that survive the quick one, but for those with `–`. The table is written by `cargo xtask plant --full --write`.

";
const HEAD: &str = "| defect | file | tests | quick | full |\n|---|---|---|---|---|\n";
/// The cell of a depth in which a defect was not tried.
const NOT_TRIED: &str = "–";

/// The page.
pub(crate) fn page(rows: &[(&Defect, Results)]) -> String {
    format!("{INTRODUCTION}{}", table(rows))
}

/// The table alone.
pub(crate) fn table(rows: &[(&Defect, Results)]) -> String {
    let mut out = HEAD.to_owned();
    for (defect, results) in rows {
        let tests: Vec<String> = defect.tests.iter().map(ToString::to_string).collect();
        let cell = |verdict: &Option<Verdict>| verdict.as_ref().map_or(NOT_TRIED.to_owned(), ToString::to_string);
        let cells = [
            defect.name.clone(),
            format!("`{}`", defect.file),
            tests.join(", "),
            cell(&results.quick),
            cell(&results.full),
        ];
        out += &format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    out
}

/// The results that a page has for a defect.
pub(crate) fn results(page: &str, name: &str) -> Results {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let mut cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    let of = |cell: &str| Verdict::parse(&cell.replace("\\|", "|"));
    match cells.find(|cells| cells.len() == 5 && cells[0].replace("\\|", "|") == name).as_deref() {
        Some([_, _, _, quick, full]) => Results { quick: of(quick), full: of(full) },
        _ => Results::default(),
    }
}
