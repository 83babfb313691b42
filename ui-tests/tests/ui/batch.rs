//! Compiles many cases as modules of one crate, since most of the time that rustc needs for a case is the same for all: starting and
//! reading TITAN's library.
//!
//! A diagnostic belongs to the case in whose file its primary place is, or the macro call that wrote the place:
//!
//! ```text
//! #[path = "ui-tests/ui/names/a.rs"] mod case_0;      error: [T0108] ...      --> ui/names/a.rs:7:13
//! #[path = "ui-tests/ui/names/b.rs"] mod case_1;      error: [T0101] ...      --> ui/names/b.rs:6:5
//! mod last { ... }                                    error[E0382]: ...       --> <anon>:5:45
//! ```
//!
//! If the diagnostics of a case in its batch are those that are stored, they are also those that rustc has for the case alone:
//!
//! * rustc reads, expands, resolves, types and borrow-checks all modules, whatever errors it has found before in others. It stops at
//!   once only where it cannot continue, for instance after a brace that is never closed. The module `last` shows whether that has
//!   happened: its one error is found by the last check of the last function. Without that error the batch decides nothing.
//! * Only lints are left. rustc runs most of them if it has found no error at all. A case with an error in its batch has one alone, and so
//!   none of these lints there either. Nothing is decided about a case without an error in its batch: it is either wrong or about a lint.
//!   rustc reports others together with errors, such as uses of what is deprecated, as which the macro reports its warnings.
//! * Cases cannot name what is in others: each is a module, and no other module imports from it. rustc compares them in one respect: it
//!   prints the short name of a type if that is unambiguous in the crate. The errors of the macro contain no names that rustc prints.
//!   Its warnings do, `use of deprecated constant`, and so cases with a lint are compiled alone, as those with an error of rustc's.
//!
//! A case about which its batch decides nothing, or whose diagnostics there differ from those that are stored, is compiled alone, and
//! only that counts. So a batch cannot reject a right case. In the full depth all are compiled alone as well, and compared.

use super::cases::Case;
use super::compiler::{Compiler, Diagnostic, Input};
use super::normalize::normalized;

/// How rustc names a root that it reads from its standard input.
const ROOT: &str = "<anon>";

/// The only code of the root: the borrow check of its last function fails.
const LAST: &str = "fn main() {}\nmod last { fn last(s: String) { drop(s); drop(s); } }\n";

/// What rustc says about a case.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Said {
    /// Whether there is an error.
    pub(crate) is_rejected: bool,
    /// Errors and warnings, as they are stored.
    pub(crate) text: String,
}

impl Said {
    fn add(&mut self, diagnostic: &Diagnostic, case: &Case) {
        self.is_rejected |= diagnostic.is_error;
        // An empty line between two.
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += &normalized(&diagnostic.rendered, &case.shown);
    }
}

/// Compiles a case alone.
pub(crate) fn alone(compiler: &Compiler, case: &Case) -> Result<Said, String> {
    let mut said = Said::default();
    for diagnostic in compiler.diagnostics(Input::File(&case.given))? {
        said.add(&diagnostic, case);
    }
    Ok(said)
}

/// Compiles cases as one crate: what rustc says about each, if the batch decides about it.
pub(crate) fn together(compiler: &Compiler, cases: &[&Case]) -> Vec<Option<Said>> {
    let diagnostics = compiler.diagnostics(Input::Root(&root(cases))).unwrap_or_default();
    split(cases, &diagnostics).unwrap_or_else(|| vec![None; cases.len()])
}

fn root(cases: &[&Case]) -> String {
    let module =
        |(n, case): (usize, &&Case)| format!("#[path = {:?}]\nmod case_{n};\n", case.given.display().to_string());
    let modules: String = cases.iter().enumerate().map(module).collect();
    modules + LAST
}

/// `None` if rustc stopped early, or has said something that belongs to no case.
fn split(cases: &[&Case], diagnostics: &[Diagnostic]) -> Option<Vec<Option<Said>>> {
    let mut said = vec![Said::default(); cases.len()];
    let mut is_complete = false;
    for diagnostic in diagnostics {
        let owner = diagnostic.files.iter().find_map(|file| cases.iter().position(|case| case.shown == *file));
        match owner {
            Some(n) => said[n].add(diagnostic, cases[n]),
            None if diagnostic.is_error && diagnostic.files == [ROOT] && !is_complete => is_complete = true,
            None => return None,
        }
    }
    is_complete.then(|| said.into_iter().map(|s| s.is_rejected.then_some(s)).collect())
}
