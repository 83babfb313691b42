//! Diagnostics: what is wrong, where, and how to mend it.
//!
//! A [`Diagnostic`] is generic in its site: the core speaks of [`Loc`](crate::ir::Loc)s, the macro of token spans. Messages
//! begin in lower case, have no final stop, and name the user's variables, never our types. Errors are collected, not thrown:
//! a pass reports all it finds.

mod code;

pub use code::{Code, Reporter};

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic<S> {
    /// The rule that is broken.
    pub code: Code,
    /// Where.
    pub site: S,
    /// What is wrong: one clause.
    pub title: String,
    /// A second place that matters, with what it is.
    pub related: Vec<(S, String)>,
    /// How to mend it.
    pub help: Vec<String>,
}

impl<S> Diagnostic<S> {
    /// An error at `site`.
    pub fn new(code: Code, site: S, title: impl Into<String>) -> Self {
        Diagnostic { code, site, title: title.into(), related: Vec::new(), help: Vec::new() }
    }

    /// With a line of help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// With a second place.
    #[must_use]
    pub fn related(mut self, site: S, what: impl Into<String>) -> Self {
        self.related.push((site, what.into()));
        self
    }

    /// The same error with other sites.
    pub fn map_site<T>(self, f: impl Fn(S) -> T) -> Diagnostic<T> {
        Diagnostic {
            code: self.code,
            site: f(self.site),
            title: self.title,
            related: self.related.into_iter().map(|(s, w)| (f(s), w)).collect(),
            help: self.help,
        }
    }

    /// Title and help in one text, the form in which a macro reports it: rustc shows the site itself.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("[{}] {}", self.code, self.title);
        for help in &self.help {
            text.push_str("\n  help: ");
            text.push_str(help);
        }
        text
    }
}
