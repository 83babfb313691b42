//! Collects errors: a user sees all of them at once.
//!
//! A context that is dropped without [`Ctxt::finish`] would lose errors, so the type makes that a bug found in tests.

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use std::cell::RefCell;
use titan_core::diag::{Code, Diagnostic, Reporter};

/// An error at tokens of the user.
pub(crate) type Diag = Diagnostic<Span>;

/// The errors of one expansion.
#[derive(Debug, Default)]
pub(crate) struct Ctxt {
    errors: RefCell<Option<Vec<Diag>>>,
    /// Rules of rustc that the body of an inlined function breaks.
    inlined: RefCell<Vec<Diag>>,
    /// The calls that are being inlined, with the names of the functions.
    calls: RefCell<Vec<(Span, String)>>,
}

impl Ctxt {
    pub(crate) fn new() -> Self {
        Ctxt { errors: RefCell::new(Some(Vec::new())), inlined: RefCell::default(), calls: RefCell::default() }
    }

    /// Reports an error.
    pub(crate) fn error(&self, code: Code, span: Span, title: impl Into<String>) {
        self.push(Diagnostic::new(code, span, title));
    }

    /// Reports an error with help.
    pub(crate) fn error_help(&self, code: Code, span: Span, title: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::new(code, span, title).help(help));
    }

    /// Reports an error. The same error at the same place is reported once, whatever the instance.
    ///
    /// What is wrong inside an inlined function is reported at the kernel's call, unless rustc reports it where it stands.
    pub(crate) fn push(&self, mut diag: Diag) {
        if let Some((call, name)) = self.calls.borrow().first() {
            if diag.code.reporter() == Reporter::Rustc {
                self.inlined.borrow_mut().push(diag);
                return;
            }
            diag.related.insert(0, (diag.site, format!("in `{name}`")));
            diag.site = *call;
        }
        if let Some(errors) = self.errors.borrow_mut().as_mut() {
            let place = |s: Span| (s.start().line, s.start().column);
            let known = errors.iter().any(|e| e.code == diag.code && place(e.site) == place(diag.site));
            if !known {
                errors.push(diag);
            }
        }
    }

    /// A function is inlined at `call` until [`Ctxt::returned`].
    pub(crate) fn called(&self, call: Span, name: &str) {
        self.calls.borrow_mut().push((call, name.to_owned()));
    }

    pub(crate) fn returned(&self) {
        self.calls.borrow_mut().pop();
    }

    /// Reports what may only follow from another error: the first is enough.
    pub(crate) fn unless_broken(&self, diag: Diag) {
        if !self.any() {
            self.push(diag);
        }
    }

    /// Whether there is an error that we report.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors.borrow().as_ref().is_some_and(|e| e.iter().any(|d| d.code.reporter() == Reporter::Titan))
    }

    /// Whether there is an error of this code.
    pub(crate) fn has(&self, code: Code) -> bool {
        self.errors.borrow().as_ref().is_some_and(|e| e.iter().any(|d| d.code == code))
    }

    /// Whether there is any error, ours or rustc's.
    pub(crate) fn any(&self) -> bool {
        !self.inlined.borrow().is_empty() || self.errors.borrow().as_ref().is_some_and(|e| !e.is_empty())
    }

    /// The errors, those that rustc reports split off.
    pub(crate) fn finish(self) -> Reports {
        let errors = self.errors.borrow_mut().take().unwrap_or_default();
        let (ours, rustcs) = errors.into_iter().partition(|d| d.code.reporter() == Reporter::Titan);
        Reports { ours, rustcs, inlined: self.inlined.take() }
    }
}

impl Drop for Ctxt {
    fn drop(&mut self) {
        let lost = self.any();
        if cfg!(test) {
            assert!(!lost || std::thread::panicking(), "errors of an expansion were dropped");
        }
    }
}

/// What an expansion found.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Errors that we report.
    pub(crate) ours: Vec<Diag>,
    /// Errors that rustc reports, through the shadow.
    pub(crate) rustcs: Vec<Diag>,
    /// Errors that rustc reports where a device function stands.
    pub(crate) inlined: Vec<Diag>,
}

/// An error as tokens.
pub(crate) fn compile_error(diag: &Diag) -> TokenStream {
    let mut text = diag.text();
    for (site, what) in &diag.related {
        let line = site.start().line;
        let place = if site.file() == diag.site.file() { format!("line {line}") } else { format!("{}:{line}", site.file()) };
        text.push_str(&format!("\n  note: {place}: {what}"));
    }
    quote_spanned! { diag.site => ::core::compile_error! { #text } }
}
