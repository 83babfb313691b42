//! `titan check`: all errors of a file, with their source lines.
//!
//! A text that cannot be parsed is not verified. For a kernel, the verifier reports the first group of rules that is violated; see
//! `titan_core::verify`. Barrier programs, as `titan emit --stage barriers` prints them, have separate rules. If the verifier accepts
//! a kernel, it is also checked that its programs write all of its outputs.

use crate::Outcome;
use crate::report::{Finding, Report, Verdict};
use crate::source::Source;
use serde_json::Map;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use titan_core::analysis::cover;
use titan_core::diag::Diagnostic;
use titan_core::ir::Loc;
use titan_core::plan::LowerError;
use titan_core::text::{Located, Positions, TextPos};
use titan_core::verify::{Verified, WellFormed, barrier_program, verify, well_formed};

/// Checks a file and prints the findings.
pub(crate) fn run(
    path: &Path,
    kernel: Option<&str>,
    targets: &[String],
    json: bool,
    out: &mut dyn Write,
) -> io::Result<Outcome> {
    say(&Source::read(path, kernel)?, targets, json, out, io::stdout().is_terminal())
}

/// Checks a text and prints the findings.
pub(crate) fn say(
    source: &Source<'_>,
    targets: &[String],
    json: bool,
    out: &mut dyn Write,
    terminal: bool,
) -> io::Result<Outcome> {
    let (located, unreadable) = source.kernels()?;
    let (kernels, found) = findings(located, targets);
    let findings = [unreadable, found].concat();
    let (path, text) = (source.path, source.text.as_str());
    let verdict = if findings.is_empty() { Verdict::Clean } else { Verdict::Findings };
    let report = Report { command: "check", path, text, kernels, verdict, findings, more: Map::new() };
    if json {
        return report.json(out);
    }
    let outcome = report.snippets(out, terminal)?;
    let (path, kernels, n) = (path.display(), report.kernels.len(), report.findings.len());
    match outcome {
        Outcome::Clean => {
            writeln!(out, "{path}: {kernels} {}, no errors", if kernels == 1 { "kernel" } else { "kernels" })?;
        }
        Outcome::Findings => writeln!(out, "{path}: {n} {}", if n == 1 { "error" } else { "errors" })?,
    }
    Ok(outcome)
}

/// The names of kernels, and the errors in them.
fn findings(kernels: Vec<Located>, targets: &[String]) -> (Vec<String>, Vec<Finding>) {
    let names: Vec<String> = kernels.iter().map(|k| k.kernel.sig.full_name()).collect();
    let mut all = Vec::new();
    for (located, name) in kernels.into_iter().zip(&names) {
        let at = &located.at;
        if located.kernel.laid_out.is_some() {
            let errors = barrier_program(&located.kernel).err().unwrap_or_default();
            all.extend(errors.into_iter().map(|e| in_text(name, at, e)));
            continue;
        }
        let errors = match verify(located.kernel) {
            Ok(kernel) => {
                let short = cover::short(&kernel, kernel.partition());
                let mut errors: Vec<_> = short.iter().map(|s| s.diagnostic(&kernel.sig)).collect();
                // A grid with too few programs may be the reason for elements that are not written.
                if short.is_none() {
                    errors.extend(cover::unwritten(&kernel, kernel.partition()));
                }
                errors.extend(targets.iter().filter_map(|target| refusal(&kernel, target)));
                errors
            }
            Err(errors) => errors,
        };
        all.extend(errors.into_iter().map(|e| in_text(name, at, e)));
    }
    (names, all)
}

/// T0902, if a kernel cannot be compiled for a target.
fn refusal(kernel: &Verified, target: &str) -> Option<Diagnostic<Loc>> {
    let machine = crate::machine::Machine::from_name(target).ok()?.backend();
    titan_core::driver::compile(kernel, machine, None).err().map(|e| unsupported(&e))
}

/// T0902, with the message of the target.
pub(crate) fn unsupported(refusal: &LowerError) -> Diagnostic<Loc> {
    let error = Diagnostic::new(refusal.code(), refusal.loc, refusal.message.clone());
    match &refusal.help {
        Some(help) => error.help(help.clone()),
        None => error,
    }
}

/// A well-formed kernel, and its position in the text.
pub(crate) struct Fitting {
    pub(crate) kernel: WellFormed,
    pub(crate) at: Positions,
}

/// The well-formed kernels of a text, including those that the verifier rejects, and the errors of the others.
pub(crate) fn fitting(located: Vec<Located>) -> (Vec<Fitting>, Vec<Finding>) {
    let (mut kernels, mut findings) = (Vec::new(), Vec::new());
    for Located { kernel, at } in located {
        let name = kernel.sig.full_name();
        match well_formed(kernel) {
            Ok(kernel) => kernels.push(Fitting { kernel, at }),
            Err(errors) => findings.extend(errors.into_iter().map(|e| in_text(&name, &at, e))),
        }
    }
    (kernels, findings)
}

/// Errors of a text that cannot be parsed.
pub(crate) fn unreadable(errors: Vec<Diagnostic<TextPos>>) -> Vec<Finding> {
    errors.into_iter().map(|e| Finding::of(None, e)).collect()
}

/// An error of a kernel with these positions in the text; an error of the whole kernel is shown where the kernel begins.
pub(crate) fn in_text(name: &str, at: &Positions, error: Diagnostic<Loc>) -> Finding {
    let source = at.source(error.site);
    Finding::of(Some(name), error.map_site(|loc| at.of(loc))).of_source(source)
}
