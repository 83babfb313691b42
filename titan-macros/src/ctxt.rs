//! Collects errors, so that all of them are reported at once.
//!
//! A context that is dropped without [`Ctxt::finish`] would lose errors; dropping one panics in tests.

use crate::general::{Samples, general};
use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use std::cell::{Cell, RefCell};
use titan_core::diag::{Code, Diagnostic, Reporter};
use titan_core::ir::InstanceArg;

/// An error at tokens of the user.
pub(crate) type Diag = Diagnostic<Span>;

/// The errors of one expansion.
#[derive(Debug, Default)]
pub(crate) struct Ctxt {
    errors: RefCell<Option<Vec<Diag>>>,
    /// Errors in the bodies of inlined functions that rustc reports.
    inlined: RefCell<Vec<Diag>>,
    /// The calls that are being inlined, with the names of the functions.
    calls: RefCell<Vec<(Span, String)>>,
    /// The instance that is being compiled, and the number of instances.
    instance: RefCell<Option<(String, usize)>>,
    /// For each error, the instances that have it.
    instances: RefCell<Vec<Vec<String>>>,
    /// The generic arguments and the help of each error of an output that is not covered.
    covers: RefCell<Vec<(Vec<InstanceArg>, Diag)>>,
    /// The number of reports, including repeated ones.
    reports: Cell<usize>,
}

impl Ctxt {
    pub(crate) fn new() -> Self {
        let errors = RefCell::new(Some(Vec::new()));
        Ctxt {
            errors,
            inlined: RefCell::default(),
            calls: RefCell::default(),
            instance: RefCell::default(),
            instances: RefCell::default(),
            covers: RefCell::default(),
            reports: Cell::new(0),
        }
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
    /// An error inside an inlined function is reported at the kernel's call, unless rustc reports it in the function.
    pub(crate) fn push(&self, mut diag: Diag) {
        self.reports.set(self.reports.get() + 1);
        if let Some((call, name)) = self.calls.borrow().first() {
            if diag.code.reporter() != Reporter::Titan {
                self.inlined.borrow_mut().push(diag);
                return;
            }
            diag.related.insert(0, (diag.site, format!("in `{name}`")));
            diag.site = *call;
        }
        if let Some(errors) = self.errors.borrow_mut().as_mut() {
            let known = errors.iter().position(|e| is_same(e, &diag));
            let mut instances = self.instances.borrow_mut();
            if known.is_none() {
                errors.push(diag);
                instances.push(Vec::new());
            }
            let nth = known.unwrap_or(errors.len() - 1);
            if let (Some(list), Some((name, _))) = (instances.get_mut(nth), &*self.instance.borrow()) {
                list.push(name.clone());
            }
        }
    }

    /// Reports an error of an output that is not covered in an instance. If several instances have it, its help names generic parameters, not
    /// their values.
    pub(crate) fn push_cover(&self, diag: Diag, args: &[InstanceArg]) {
        self.covers.borrow_mut().push((args.to_vec(), diag.clone()));
        self.push(diag);
    }

    /// Replaces values of generic parameters in the help of errors of outputs that are not covered.
    fn generalize(&self, errors: &mut [Diag]) {
        let covers = self.covers.borrow();
        for diag in errors.iter_mut() {
            let of_instances = || covers.iter().filter(|(_, d)| is_same(d, diag));
            let samples = |i: usize| {
                of_instances()
                    .map(|(args, d)| Some((d.help.get(i)?.as_str(), &args[..])))
                    .collect::<Option<Samples<'_>>>()
            };
            let general = (0..diag.help.len()).map(|i| general(&samples(i)?)).collect::<Vec<_>>();
            for (help, text) in diag.help.iter_mut().zip(general) {
                *help = text.unwrap_or_else(|| std::mem::take(help));
            }
        }
    }

    /// Starts the compilation of an instance, one of `total`.
    pub(crate) fn compiles(&self, instance: String, total: usize) {
        self.instance.replace(Some((instance, total)));
    }

    /// The number of reports so far. A pass that adds none found no error.
    pub(crate) fn reports(&self) -> usize {
        self.reports.get()
    }

    /// The number of different errors so far.
    pub(crate) fn known(&self) -> usize {
        self.errors.borrow().as_ref().map_or(0, Vec::len)
    }

    /// Adds that another function may be meant to the errors after the first `known`, which are those of a call of a function of the language.
    pub(crate) fn of_another(&self, known: usize, call: Span, name: &str) {
        let help = format!(
            "a kernel reads `{name}` as TITAN's function; if another one is meant, rename it, or mark it `#[titan::device]` and call it as \
             `self::{name}(..)`"
        );
        let (mut all, mut instances) = (self.errors.borrow_mut(), self.instances.borrow_mut());
        let first = all.iter().flatten().skip(known).position(is_ours).map(|n| n + known);
        if let (Some(errors), Some(first)) = (all.as_mut(), first) {
            // One mistake, whatever is wrong with the arguments.
            let (mut of_errors, mut of_instances) = (0.., 0..);
            let is_kept = |n: Option<usize>| n.is_some_and(|n| n < known || n == first);
            errors.retain(|_| is_kept(of_errors.next()));
            instances.retain(|_| is_kept(of_instances.next()));
            errors.last_mut().into_iter().for_each(|d| d.help.insert(0, help.clone()));
        }
        drop((all, instances));
        // What rustc reports would hide that it is another function.
        if first.is_none() {
            let title = format!("`{name}` of TITAN does not take these arguments");
            self.error_help(Code::NotForKernels, call, title, help);
        }
    }

    /// Adds the name of an instance to errors that only some instances have.
    fn name_instances(&self, errors: &mut [Diag]) {
        let Some((_, total)) = *self.instance.borrow() else { return };
        for (diag, list) in errors.iter_mut().zip(self.instances.borrow_mut().iter_mut()) {
            list.dedup();
            if let Some(first) = list.first().filter(|first| list.len() < total && !diag.title.contains(first.as_str()))
            {
                diag.title.push_str(&format!(", in `{first}`"));
                if diag.code == Code::NeverStored {
                    // Others store to it, so it is no input.
                    let help = "every instance stores to every `&mut` tensor: store to it in this one too, or write \
                        another kernel, without the tensor, for these values";
                    diag.help = vec![help.to_owned()];
                }
            }
        }
    }

    /// Starts the inlining of a function at `call`; it ends at [`Ctxt::returned`].
    pub(crate) fn called(&self, call: Span, name: &str) {
        self.calls.borrow_mut().push((call, name.to_owned()));
    }

    pub(crate) fn returned(&self) {
        self.calls.borrow_mut().pop();
    }

    /// Reports an error that may be a consequence of another one, unless there is one already.
    pub(crate) fn unless_broken(&self, diag: Diag) {
        if !self.any() {
            self.push(diag);
        }
    }

    /// Whether there is an error that TITAN reports.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors.borrow().as_ref().is_some_and(|e| e.iter().any(is_ours))
    }

    /// Whether there is an error of this code.
    pub(crate) fn has(&self, code: Code) -> bool {
        self.errors.borrow().as_ref().is_some_and(|e| e.iter().any(|d| d.code == code))
    }

    /// Whether there is any error, reported by TITAN or by rustc.
    pub(crate) fn any(&self) -> bool {
        !self.inlined.borrow().is_empty() || self.errors.borrow().as_ref().is_some_and(|e| !e.is_empty())
    }

    /// The errors, those that rustc reports separately.
    pub(crate) fn finish(self) -> Reports {
        let mut errors = self.errors.borrow_mut().take().unwrap_or_default();
        self.generalize(&mut errors);
        self.name_instances(&mut errors);
        let (mut ours, rustcs): (Vec<Diag>, Vec<Diag>) = errors.into_iter().partition(is_ours);
        // A token that is dropped is often one that should have been used instead of another one.
        if !ours.iter().all(is_of_a_move) {
            ours.retain(|d| !is_of_a_move(d));
        }
        Reports { ours, rustcs, inlined: self.inlined.take() }
    }
}

/// Whether two errors are of the same rule at the same place.
fn is_same(a: &Diag, b: &Diag) -> bool {
    let place = |d: &Diag| (d.site.start().line, d.site.start().column);
    a.code == b.code && place(a) == place(b)
}

/// Whether an error is the use of a moved value for rustc, which reports it only if there is no other error.
fn is_of_a_move(diag: &Diag) -> bool {
    matches!(diag.code, Code::TokenReused | Code::TokenTwice | Code::EarlyRelease)
}

/// Whether TITAN reports an error in a kernel's own body.
fn is_ours(diag: &Diag) -> bool {
    match diag.code.reporter() {
        Reporter::Titan | Reporter::TitanInKernels => true,
        Reporter::Rustc => false,
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

/// The errors of an expansion.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Errors that TITAN reports.
    pub(crate) ours: Vec<Diag>,
    /// Errors that rustc reports, through the shadow.
    pub(crate) rustcs: Vec<Diag>,
    /// Errors that rustc reports in the body of a device function.
    pub(crate) inlined: Vec<Diag>,
}

/// An error as tokens.
pub(crate) fn compile_error(diag: &Diag) -> TokenStream {
    let mut text = diag.text();
    for (site, what) in &diag.related {
        let line = site.start().line;
        let place =
            if site.file() == diag.site.file() { format!("line {line}") } else { format!("{}:{line}", site.file()) };
        text.push_str(&format!("\n  note: {place}: {what}"));
    }
    quote_spanned! { diag.site => ::core::compile_error! { #text } }
}
