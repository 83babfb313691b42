//! `titan check`: every error of a file, in its lines.
//!
//! A text that cannot be read is not verified. Of a kernel, the verifier reports the first group of rules that is broken;
//! see `titan_core::verify`.

use crate::report::{Finding, Report, Verdict};
use crate::{Outcome, read};
use serde_json::Map;
use std::io::{self, Write};
use titan_core::ir::Loc;
use titan_core::text::{TextPos, parse_located};
use titan_core::verify::verify;

/// Checks a file and writes what it finds.
pub(crate) fn run(path: &str, json: bool, out: &mut dyn Write) -> io::Result<Outcome> {
    let text = read(path)?;
    let (kernels, findings) = findings(&text);
    let verdict = if findings.is_empty() { Verdict::Clean } else { Verdict::Findings };
    let report = Report { command: "check", path, text: &text, kernels, verdict, findings, more: Map::new() };
    if json {
        return report.json(out);
    }
    let outcome = report.snippets(out)?;
    let (kernels, n) = (report.kernels.len(), report.findings.len());
    match outcome {
        Outcome::Clean => {
            writeln!(out, "{path}: {kernels} {}, nothing wrong", if kernels == 1 { "kernel" } else { "kernels" })?;
        }
        Outcome::Findings => writeln!(out, "{path}: {n} {}", if n == 1 { "error" } else { "errors" })?,
    }
    Ok(outcome)
}

/// The kernels of a text, and what is wrong with them.
fn findings(text: &str) -> (Vec<String>, Vec<Finding>) {
    let kernels = match parse_located(text) {
        Ok(kernels) => kernels,
        Err(errors) => return (Vec::new(), errors.into_iter().map(|e| Finding::of(None, e)).collect()),
    };
    let names: Vec<String> = kernels.iter().map(|k| k.kernel.sig.name.clone()).collect();
    let mut all = Vec::new();
    for (located, name) in kernels.into_iter().zip(&names) {
        let at = located.at;
        let errors = verify(located.kernel).err().unwrap_or_default();
        all.extend(errors.into_iter().map(|e| Finding::of(Some(name), e.map_site(|loc| place(loc, at)))));
    }
    (names, all)
}

/// What belongs to the whole kernel is shown where it begins.
pub(crate) fn place(loc: Loc, kernel: TextPos) -> TextPos {
    if loc.line == 0 { kernel } else { TextPos { line: loc.line, column: loc.column } }
}
