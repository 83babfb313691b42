//! Diagnostics: a description of an error, its location, and suggested fixes.
//!
//! A [`Diagnostic`] is generic in its site: the core uses [`Loc`](crate::ir::Loc)s, the macro token spans. Messages begin in lower case,
//! have no final full stop, and mention the user's variables, never TITAN's types. Errors are collected: a pass reports all that it finds.

mod code;

pub use code::{Code, Reporter, Severity};

use std::fmt;

/// A number of things: `1 warp`, `2 warps`, `1 index`, `2 indices`.
#[must_use]
pub fn counted(n: impl fmt::Display, what: &str) -> String {
    let n = n.to_string();
    match (n.as_str(), what.strip_suffix("index"), what.strip_suffix("axis")) {
        ("1", _, _) => format!("1 {what}"),
        (_, Some(first), _) => format!("{n} {first}indices"),
        (_, None, Some(first)) => format!("{n} {first}axes"),
        (_, None, None) => format!("{n} {what}s"),
    }
}

/// An error that a rule reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic<S> {
    /// The violated rule.
    pub code: Code,
    /// The location of the error.
    pub site: S,
    /// The description of the error, one clause.
    pub title: String,
    /// Related locations, each with a description.
    pub related: Vec<(S, String)>,
    /// Reasons, without a location of their own.
    pub notes: Vec<String>,
    /// Suggested fixes.
    pub help: Vec<String>,
}

impl<S> Diagnostic<S> {
    /// An error at `site`.
    pub fn new(code: Code, site: S, title: impl Into<String>) -> Self {
        Diagnostic { code, site, title: title.into(), related: Vec::new(), notes: Vec::new(), help: Vec::new() }
    }

    /// Adds a reason.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds a suggested fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Adds a related location.
    #[must_use]
    pub fn related(mut self, site: S, what: impl Into<String>) -> Self {
        self.related.push((site, what.into()));
        self
    }

    /// The same error with sites of another type.
    pub fn map_site<T>(self, f: impl Fn(S) -> T) -> Diagnostic<T> {
        Diagnostic {
            code: self.code,
            site: f(self.site),
            title: self.title,
            related: self.related.into_iter().map(|(s, w)| (f(s), w)).collect(),
            notes: self.notes,
            help: self.help,
        }
    }

    /// Title, reasons and suggested fixes as one text, the form in which a macro reports an error: rustc displays the site itself.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("[{}] {}", self.code, self.title);
        let notes = self.notes.iter().map(|note| ("note", note));
        for (label, line) in notes.chain(self.help.iter().map(|help| ("help", help))) {
            text.push_str(&format!("\n  {label}: {line}"));
        }
        text
    }
}
