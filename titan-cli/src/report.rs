//! Findings of a command: printed with their source lines, or as JSON.
//!
//! The form of the JSON is documented in `docs/cli.md`; `format` counts its incompatible changes.
//!
//! Deliberately absent: what counts as a finding, which the commands decide.

use crate::Outcome;
use annotate_snippets::{AnnotationKind, Element, Level, Renderer, Snippet};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use titan_core::diag::Diagnostic;
use titan_core::ir::Loc;
use titan_core::text::TextPos;

/// The version of the JSON.
const FORMAT: u32 = 1;

/// A finding in a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finding {
    /// The kernel, unless the text could not be read.
    pub(crate) kernel: Option<String>,
    /// An error code, or the kind of a finding of a run.
    pub(crate) code: String,
    pub(crate) title: String,
    /// The place, if it has one in the text.
    pub(crate) at: Option<TextPos>,
    /// Other places, with descriptions.
    pub(crate) related: Vec<(TextPos, String)>,
    pub(crate) help: Vec<String>,
    /// Additional information that is not advice; in JSON it is in other fields.
    pub(crate) notes: Vec<String>,
    /// Additional fields of this command.
    pub(crate) more: Map<String, Value>,
}

impl Finding {
    /// An error of the verifier, or of the parser if there is no kernel.
    pub(crate) fn of(kernel: Option<&str>, error: Diagnostic<TextPos>) -> Finding {
        Finding {
            kernel: kernel.map(str::to_owned),
            code: error.code.number().to_owned(),
            title: error.title,
            at: Some(error.site),
            related: error.related,
            help: error.help,
            notes: error.notes,
            more: Map::new(),
        }
    }

    /// The finding with the location that its operation states, in the source from which the text was made.
    pub(crate) fn of_source(mut self, stated: Option<Loc>) -> Finding {
        if let Some(Loc { line, column }) = stated {
            self.notes.push(format!("in the kernel's source: line {line} of the kernel, column {column}"));
            self.more.insert("source".to_owned(), json!({ "line": line, "column": column }));
        }
        self
    }
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// There are no findings, and all checks of the command are complete.
    Clean,
    Findings,
    /// There are no findings before a bound was reached, so the kernel is not proved correct.
    Bound,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Verdict::Clean => "clean",
            Verdict::Findings => "findings",
            Verdict::Bound => "bound",
        }
    }
}

/// The report of a command about a file.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    pub(crate) command: &'static str,
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
    pub(crate) kernels: Vec<String>,
    pub(crate) verdict: Verdict,
    pub(crate) findings: Vec<Finding>,
    /// Additional fields of this command.
    pub(crate) more: Map<String, Value>,
}

impl Report<'_> {
    /// Prints it as one JSON object on one line.
    pub(crate) fn json(&self, out: &mut dyn Write) -> io::Result<Outcome> {
        let mut all = json!({
            "format": FORMAT,
            "command": self.command,
            "file": self.path.to_string_lossy(),
            "verdict": self.verdict.word(),
            "kernels": self.kernels,
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        });
        if let Some(object) = all.as_object_mut() {
            object.extend(self.more.clone());
        }
        writeln!(out, "{all}")?;
        Ok(self.outcome())
    }

    /// Prints the findings with their source lines, with colours on a terminal.
    pub(crate) fn snippets(&self, out: &mut dyn Write, terminal: bool) -> io::Result<Outcome> {
        let colour = terminal && std::env::var_os("NO_COLOR").is_none();
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        for finding in &self.findings {
            writeln!(out, "{}\n", render(&renderer, self.path, self.text, finding))?;
        }
        Ok(self.outcome())
    }

    const fn outcome(&self) -> Outcome {
        match self.verdict {
            Verdict::Clean => Outcome::Clean,
            Verdict::Findings | Verdict::Bound => Outcome::Findings,
        }
    }
}

fn place(at: TextPos) -> Value {
    json!({ "line": at.line, "column": at.column })
}

fn finding(finding: &Finding) -> Value {
    let mut all = json!({
        "kernel": finding.kernel,
        "code": finding.code,
        "title": finding.title,
        "at": finding.at.map(place),
        "related": finding.related.iter().map(|(at, says)| json!({ "at": place(*at), "says": says })).collect::<Vec<_>>(),
        "help": finding.help,
    });
    if let Some(object) = all.as_object_mut() {
        object.extend(finding.more.clone());
    }
    all
}

/// A finding as rustc would show it.
fn render(renderer: &Renderer, path: &Path, text: &str, finding: &Finding) -> String {
    let mut elements: Vec<Element<'_>> = Vec::new();
    if let Some(at) = finding.at {
        let mut snippet =
            Snippet::source(text).path(path.to_string_lossy()).annotation(AnnotationKind::Primary.span(span(text, at)));
        for (site, what) in &finding.related {
            snippet = snippet.annotation(AnnotationKind::Context.span(span(text, *site)).label(what.as_str()));
        }
        elements.push(snippet.into());
    }
    elements.extend(finding.notes.iter().map(|note| Level::NOTE.message(note.as_str()).into()));
    elements.extend(finding.help.iter().map(|help| Level::HELP.message(help.as_str()).into()));
    let group = Level::ERROR.primary_title(finding.title.as_str()).id(finding.code.as_str()).elements(elements);
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
