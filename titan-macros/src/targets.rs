//! The targets of kernels: always the CPU, and the GPUs of [`GPUS`] unless `targets(..)` excludes them. A kernel that cannot be compiled
//! for one of its targets is an error of the build, at the user's token: see [`crate::entry::compile`].
//!
//! With the code for a target comes code for those of [`FASTER`]: it runs on some of the target's devices only, and for some arguments. A
//! kernel without it is not an error, since the target's code runs there too; the reason is embedded.

use proc_macro2::{Ident, Punct, Spacing, Span, TokenStream};
use quote::quote;
use titan_core::diag::{Code, Diagnostic};
use titan_core::driver::{self, Backend as _};
use titan_core::ir::Loc;
use titan_core::plan::LowerError;
use titan_core::verify::Verified;
use titan_nv::Machine;

/// The target that runs every kernel.
pub(crate) const CPU: &str = "cpu";

/// The requirement that all tiles of a kernel's rings are copied in bulk, on machines that have such copies.
pub(crate) const TMA: &str = "tma";

/// All GPU targets.
const GPUS: &[&str] = &["sm_80"];

/// For each target, the targets whose code comes with it, see [`faster`].
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

/// The input of the nested macro besides the text of the kernel: its targets, [`TMA`] if that is required, its name, and a
/// token for the place of each operation, so that errors can be reported there.
pub(crate) fn request(targets: &[&str], bulk: Option<Span>, name: &Ident, places: &[Span]) -> TokenStream {
    let targets = targets.iter().map(|t| Ident::new(t, Span::call_site()));
    let targets = targets.chain(bulk.map(|span| Ident::new(TMA, span)));
    let places = places.iter().map(|span| {
        let mut token = Punct::new(';', Spacing::Alone);
        token.set_span(*span);
        token
    });
    quote!([#(#targets)*] #name #(#places)*)
}

/// T0904, without its place: why `require(tma)` does not hold for a kernel; `None` if it does.
pub(crate) fn not_in_bulk(kernel: &Verified, chosen: &[&str]) -> Option<Diagnostic<Loc>> {
    let name = kernel.sig.full_name();
    let error = |title: String| Diagnostic::new(Code::BulkRequired, Loc::default(), title);
    let machines = chosen.iter().flat_map(|target| faster(target)).filter_map(|name| Machine::from_name(name).ok());
    let mut machines = machines.filter(|machine| machine.target().bulk_tensor).peekable();
    if machines.peek().is_none() {
        let title = format!("`{name}`: none of its targets has bulk copies of tiles (TMA)");
        return Some(error(title).help(format!("compile it for all targets, {}, or remove `tma`", listed())));
    }
    machines.find_map(|machine| {
        let why = match driver::why_not_bulk(kernel, machine) {
            Ok(why) if why.is_empty() => return None,
            Ok(why) => why,
            Err(refused) => vec![refused.message],
        };
        let title = format!("`{name}`: not all of its tiles are copied in bulk (TMA) on {}", machine.name);
        let error = why.into_iter().fold(error(title), Diagnostic::help);
        Some(error.help("or remove `tma`: the kernel then runs with copies by threads"))
    })
}

/// The reason why a kernel has no code of its own for a machine that runs the code for an older one.
pub(crate) fn nothing_new(kernel: &Verified, target: &str) -> String {
    let why = Machine::from_name(target).ok().map(|machine| driver::why_not_bulk(kernel, machine));
    let why = match why {
        Some(Ok(why)) => why.join("; "),
        Some(Err(refused)) => refused.message,
        None => String::new(),
    };
    format!("its code would be that for older GPUs: {why}")
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
