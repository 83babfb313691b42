//! The targets of kernels: always the CPU, and the GPUs of [`GPUS`] unless `targets(..)` excludes them. A kernel that cannot be compiled for
//! one of its targets is an error of the build, at the user's token: see [`crate::entry::compile`].
//!
//! With the code for a target comes code for those of [`FASTER`]: it runs on some of the target's devices only, and for some arguments. A
//! kernel that has none is no error, as the target's code runs there too; why there is none is embedded.

use proc_macro2::{Ident, Punct, Spacing, Span, TokenStream};
use quote::quote;
use titan_core::diag::Diagnostic;
use titan_core::ir::Loc;
use titan_core::plan::LowerError;
use titan_core::verify::Verified;

/// The target that runs every kernel.
pub(crate) const CPU: &str = "cpu";

/// All GPU targets.
const GPUS: &[&str] = &["sm_80"];

/// By target, see [`faster`].
const FASTER: &[(&str, &[&str])] = &[("sm_80", &["sm_90a"])];

/// The machines whose code comes with that for a GPU target, the best one first.
pub(crate) fn faster(target: &str) -> &'static [&'static str] {
    FASTER.iter().find(|(of, _)| *of == target).map_or(&[], |(_, faster)| faster)
}

/// A GPU target by its name.
pub(crate) fn gpu(name: &str) -> Option<&'static str> {
    GPUS.iter().find(|t| **t == name).copied()
}

/// All targets, for messages.
pub(crate) fn listed() -> String {
    let all: Vec<String> = std::iter::once(&CPU).chain(GPUS).map(|t| format!("`{t}`")).collect();
    all.join(" and ")
}

/// The GPU targets for which a kernel is compiled.
pub(crate) fn chosen(named: Option<&[&'static str]>) -> Vec<&'static str> {
    named.map_or_else(|| GPUS.to_vec(), <[&str]>::to_vec)
}

/// The GPU targets that a kernel leaves out, each with the reason that a launch on it reports.
pub(crate) fn left_out(chosen: &[&str]) -> Vec<(String, String)> {
    let told = |t: &&str| {
        let named: Vec<&str> = std::iter::once(CPU).chain(chosen.iter().copied()).collect();
        let reason = format!(
            "it is not compiled for {t}: its attribute says `targets({})`\n  help: launch it on another device, such as \
             `Device::cpu()`, or add `{t}` to `targets(..)`",
            named.join(", ")
        );
        ((*t).to_owned(), reason)
    };
    GPUS.iter().filter(|t| !chosen.contains(*t)).map(told).collect()
}

/// The input of the nested macro besides the text of the kernel: its targets, its name, and a token for the place of each
/// operation, so that errors can be reported there.
pub(crate) fn request(targets: &[&str], name: &Ident, places: &[Span]) -> TokenStream {
    let targets = targets.iter().map(|t| Ident::new(t, Span::call_site()));
    let places = places.iter().map(|span| {
        let mut token = Punct::new(';', Spacing::Alone);
        token.set_span(*span);
        token
    });
    quote!([#(#targets)*] #name #(#places)*)
}

/// T0902, without its place in the user's file.
pub(crate) fn refusal(kernel: &Verified, target: &str, why: &LowerError) -> Diagnostic<Loc> {
    // The same message of several instances at one place is one error.
    let message = &why.message;
    let title = if why.of_instance { format!("`{}`: {message}", kernel.sig.full_name()) } else { message.clone() };
    let error = Diagnostic::new(why.code(), why.loc, title);
    let (error, or) = match &why.help {
        Some(help) => (error.help(help.clone()), "or "),
        None => (error, ""),
    };
    let others: Vec<&str> = std::iter::once(CPU).chain(GPUS.iter().copied().filter(|t| *t != target)).collect();
    error
        .help(format!("{or}do not compile the kernel for {target}: `#[titan::kernel(targets({}))]`", others.join(", ")))
}
