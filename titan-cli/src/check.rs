//! `titan check`: every error of a file, in its lines.
//!
//! A text that cannot be read is not verified. Of a kernel, the verifier reports the first group of rules that is broken;
//! see `titan_core::verify`.

use crate::{Outcome, read};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::io::{self, IsTerminal as _, Write};
use std::ops::Range;
use titan_core::diag::Diagnostic;
use titan_core::ir::Loc;
use titan_core::text::{TextPos, parse_located};
use titan_core::verify::verify;

/// An error in a text.
type Finding = Diagnostic<TextPos>;

/// Checks a file and writes what it finds.
pub(crate) fn run(path: &str, out: &mut dyn Write) -> io::Result<Outcome> {
    let text = read(path)?;
    let (kernels, findings) = findings(&text);
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    for finding in &findings {
        writeln!(out, "{}\n", render(&renderer, path, &text, finding))?;
    }
    if findings.is_empty() {
        writeln!(out, "{path}: {kernels} {}, nothing wrong", if kernels == 1 { "kernel" } else { "kernels" })?;
        return Ok(Outcome::Clean);
    }
    let n = findings.len();
    writeln!(out, "{path}: {n} {}", if n == 1 { "error" } else { "errors" })?;
    Ok(Outcome::Findings)
}

/// How many kernels a text has, and what is wrong with them.
fn findings(text: &str) -> (usize, Vec<Finding>) {
    let kernels = match parse_located(text) {
        Ok(kernels) => kernels,
        Err(errors) => return (0, errors),
    };
    let n = kernels.len();
    let mut all = Vec::new();
    for located in kernels {
        let at = located.at;
        let errors = verify(located.kernel).err().unwrap_or_default();
        all.extend(errors.into_iter().map(|e| e.map_site(|loc| place(loc, at))));
    }
    (n, all)
}

/// What belongs to the whole kernel is shown where it begins.
fn place(loc: Loc, kernel: TextPos) -> TextPos {
    if loc.line == 0 { kernel } else { TextPos { line: loc.line, column: loc.column } }
}

/// A finding as rustc would show it.
fn render(renderer: &Renderer, path: &str, text: &str, finding: &Finding) -> String {
    let mut snippet =
        Snippet::source(text).path(path).annotation(AnnotationKind::Primary.span(span(text, finding.site)));
    for (site, what) in &finding.related {
        snippet = snippet.annotation(AnnotationKind::Context.span(span(text, *site)).label(what.as_str()));
    }
    let mut group = Level::ERROR.primary_title(finding.title.as_str()).id(finding.code.number()).element(snippet);
    for help in &finding.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    renderer.render(&[group])
}

/// The bytes of the word that begins at a place; at least one character, none at the end of the text.
fn span(text: &str, at: TextPos) -> Range<usize> {
    let skipped = usize::try_from(at.line.saturating_sub(1)).unwrap_or(usize::MAX);
    let line_start: usize = text.split_inclusive('\n').take(skipped).map(str::len).sum();
    let line = text[line_start..].lines().next().unwrap_or_default();
    let column = usize::try_from(at.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let start = line_start + line.char_indices().nth(column).map_or(line.len(), |(i, _)| i);
    let rest = &text[start..line_start + line.len()];
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '%' | '@' | '.');
    let length = rest.find(|c| !word(c)).unwrap_or(rest.len());
    start..start + length.max(rest.chars().next().map_or(0, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_word_that_begins_there() {
        let text = "αβ = add %x, %y\nreturn";
        let at = |line, column| &text[span(text, TextPos { line, column })];
        assert_eq!(at(1, 6), "add");
        assert_eq!(at(1, 10), "%x");
        assert_eq!(at(1, 12), ",");
        assert_eq!(at(2, 1), "return");
        assert_eq!(at(1, 99), "");
        assert_eq!(at(9, 9), "");
    }
}
