//! Runs `.tir` files as tests.
//!
//! A file begins with comments. Those of the form `; test <what>` state the test; otherwise the name of its folder does:
//!
//! | test | passes if |
//! |---|---|
//! | `text` | the file is the canonical text of its kernels, after the comments at its top |
//! | `parse` | parsing it gives the errors that it expects, or none |
//! | `fence` | the result of the fence pass is that at the end of the file |
//! | `verify`, `program` | reading and verifying it gives the errors that it expects, or none, and so does the text with each of its mistakes; kernels that are laid out are verified as barrier programs; those that are accepted are accepted again as they are |
//!
//! An expectation is a comment on the line of the error, or alone on a line after it:
//!
//! ```text
//!     %a = add %x, %y ; error[T0203]: do not fit together
//!     ; help: `.row()`
//! ```
//!
//! Code and line must agree, and the title must contain the text; `; help:` and `; note:` require that the help, and the notes on related
//! locations, contain theirs. Every expected error must be found, and every error found must be expected. After its kernels, a file may
//! have mistakes, which change their text: see `mistakes`.
//!
//! This module works on texts; reading files, and writing [`Report::blessed`], is done by the tests.

mod expect;
mod fences;
mod mistakes;

use titan_core::diag::Diagnostic;
use titan_core::ir::Kernel;
use titan_core::text::{TextPos, parse, parse_located, print};
use titan_core::verify::{barrier_program, verify};

/// The result of the tests of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// The failures, each with at least one line.
    pub(crate) failures: Vec<String>,
    /// The text that the file should have, if the file is tested for that and differs.
    pub(crate) blessed: Option<String>,
    /// For a file that is verified: the number of kernels and mistakes that are expected to have errors.
    pub(crate) refused: usize,
    /// For a file that is verified: the number of kernels that are expected to be accepted.
    pub(crate) accepted: usize,
}

/// Runs the tests of a file; `name` is its path.
pub(crate) fn run(name: &str, text: &str) -> Report {
    let mut report = Report::default();
    let mut tests: Vec<&str> = header(text).lines().filter_map(|l| l.strip_prefix("; test ")).map(str::trim).collect();
    if tests.is_empty() {
        tests.extend(name.rsplit(['/', '\\']).nth(1));
    }
    if tests.is_empty() {
        report.failures.push(format!(
            "{name}: the first line must be `; test text`, `; test parse`, `; test verify`, `; test program` or `; test fence`"
        ));
    }
    for test in tests {
        match test {
            "text" => canonical(name, text, &mut report),
            "fence" => fences::check(name, text, header(text), &mut report),
            "parse" => report.failures.extend(expect::compare(name, text, &parse_errors(text))),
            "verify" | "program" => {
                let base = mistakes::base(text);
                report.failures.extend(expect::compare(name, base, &verify_errors(base)));
                report.failures.extend(mistakes::check(name, text));
                report.failures.extend(unsettled(name, base));
                (report.refused, report.accepted) = refused_and_accepted(base);
                report.refused += mistakes::count(text);
            }
            other => report.failures.push(format!("{name}: there is no test `{other}`")),
        }
    }
    report
}

/// The comments and empty lines at the top of a text.
fn header(text: &str) -> &str {
    let is_code = |line: &&str| !(line.trim().is_empty() || line.trim_start().starts_with(';'));
    let code: usize = text.split_inclusive('\n').take_while(|l| !is_code(l)).map(str::len).sum();
    &text[..code]
}

fn canonical(name: &str, text: &str, report: &mut Report) {
    let kernels = match parse(text) {
        Ok(kernels) => kernels,
        Err(errors) => {
            report.failures.extend(errors.iter().map(|e| format!("{name}:{}: {}", e.site, e.text())));
            return;
        }
    };
    let printed: Vec<String> = kernels.iter().map(print).collect();
    let wanted = format!("{}{}", header(text), printed.join("\n"));
    let canonical: Vec<_> = kernels.iter().map(Kernel::canonical).collect();
    if parse(&wanted).as_ref() != Ok(&canonical) {
        report.failures.push(format!("{name}: what is printed does not read back:\n{wanted}"));
    } else if wanted != text {
        report.failures.push(format!("{name}: not the canonical text (TITAN_BLESS=1 rewrites it), which is\n{wanted}"));
        report.blessed = Some(wanted);
    }
}

fn parse_errors(text: &str) -> Vec<Diagnostic<TextPos>> {
    parse(text).err().unwrap_or_default()
}

/// The numbers of kernels of a text that are expected to have errors, and that are not.
fn refused_and_accepted(text: &str) -> (usize, usize) {
    let kernels = parse_located(text).unwrap_or_default();
    let lines = expect::lines(text);
    let ends = kernels.iter().skip(1).map(|k| k.at.start.line).chain([u32::MAX]);
    let refused =
        kernels.iter().zip(ends).filter(|(k, end)| lines.iter().any(|l| (k.at.start.line..*end).contains(l))).count();
    (refused, kernels.len() - refused)
}

/// The accepted kernels that the verifier changes again: the conditions that it adds to a launch must be those that it needs.
fn unsettled(name: &str, text: &str) -> Vec<String> {
    let mut failures = Vec::new();
    let kernels = parse(text).unwrap_or_default();
    for verified in kernels.into_iter().filter_map(|kernel| verify(kernel).ok()) {
        let once = print(&verified.into_kernel());
        let again = parse(&once).map(|all| all.into_iter().map(verify).collect::<Vec<_>>());
        let twice = match again.as_deref() {
            Ok([Ok(verified)]) => print(verified),
            other => format!("{other:?}"),
        };
        if twice != once {
            failures.push(format!("{name}: verified, printed and verified again,\n{once}\nis\n{twice}"));
        }
    }
    failures
}

/// The errors of the verifier. Those of a whole kernel are on its first line.
fn verify_errors(text: &str) -> Vec<Diagnostic<TextPos>> {
    let kernels = match parse_located(text) {
        Ok(kernels) => kernels,
        Err(errors) => return errors,
    };
    let mut all = Vec::new();
    for located in kernels {
        let at = located.at;
        let errors = match located.kernel.laid_out {
            Some(_) => barrier_program(&located.kernel).err(),
            None => verify(located.kernel).err(),
        };
        let errors = errors.unwrap_or_default();
        all.extend(errors.into_iter().map(|e| e.map_site(|loc| at.of(loc))));
    }
    all
}
