//! The targets of kernels: always the CPU, and the GPUs of [`DEFAULT`] or those that `targets(..)` lists. A kernel that cannot be compiled
//! for one of its targets is an error of the build, at the user's token: see [`crate::embed::compile`].
//!
//! With the code for a target comes code for those of [`FASTER`]: it runs on some of the target's devices only, and for some arguments. A
//! kernel without it is not an error unless its target is listed, since the target's code runs there too. If the code would have been the
//! same, the reason is embedded; if the kernel was refused, the build warns ([`crate::warning`]).

use crate::warning::{self, Wanted};
use proc_macro2::{Ident, Literal, Punct, Spacing, Span, TokenStream};
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

/// The GPU targets of a kernel without `targets(..)`.
const DEFAULT: &[&str] = &["sm_80"];

/// All GPU targets, the best one first: in this order launches try their code.
const GPUS: &[&str] = &["sm_120a", "sm_103a", "sm_100a", "sm_90a", "sm_80"];

/// For each target, the targets whose code comes with it.
const FASTER: &[(&str, &[&str])] = &[("sm_80", &["sm_90a"])];

/// A GPU target by its name.
pub(crate) fn gpu(name: &str) -> Option<&'static str> {
    GPUS.iter().find(|t| **t == name).copied()
}

/// All targets, for messages.
pub(crate) fn listed() -> String {
    let gpus: Vec<String> = GPUS.iter().rev().map(|t| format!("`{t}`")).collect();
    let (last, others) = gpus.split_last().expect("there are targets");
    format!(
        "the targets are {} and {last}; every kernel runs on the CPU, whether `{CPU}` is listed or not",
        others.join(", ")
    )
}

/// The GPU targets for which a kernel is compiled.
pub(crate) fn chosen(named: Option<&[&'static str]>) -> Vec<&'static str> {
    named.map_or_else(|| DEFAULT.to_vec(), <[&str]>::to_vec)
}

/// The GPU targets that a kernel leaves out, each with the reason that a launch on it reports.
pub(crate) fn left_out(chosen: &[&str]) -> Vec<(String, String)> {
    let named: Vec<String> = chosen.iter().map(|name| format!("`{name}`")).collect();
    let why = if named.is_empty() {
        format!("it is compiled for the CPU alone, by `targets({CPU})` in its attribute")
    } else {
        format!("it has no code for this device: `targets(..)` in its attribute lists only {}", named.join(" and "))
    };
    let reason = format!("{why}\n  help: list a target that this device runs; {}", listed());
    let told = |t: &&str| ((*t).to_owned(), reason.clone());
    DEFAULT.iter().filter(|t| !chosen.contains(*t)).map(told).collect()
}

/// The GPU targets for which code is generated, in the order in which launches try it: those of a kernel, and those whose code comes with them.
pub(crate) fn generated(chosen: &[&str]) -> impl Iterator<Item = &'static str> {
    let comes = |target: &str| FASTER.iter().any(|(of, with)| chosen.contains(of) && with.contains(&target));
    GPUS.iter().copied().filter(move |t| chosen.contains(t) || comes(t))
}

/// Whether code for a target comes with that for an older one.
pub(crate) fn is_faster(target: &str) -> bool {
    FASTER.iter().any(|(_, with)| with.contains(&target))
}

/// Whether a kernel is compiled for a target, and for no other one whose code the target's devices run too.
pub(crate) fn is_alone(target: &str, chosen: &[&str]) -> bool {
    let capability = Machine::from_name(target).map_or(0, |machine| machine.capability);
    let runs_there = |other: &&str| Machine::from_name(other).is_ok_and(|machine| machine.runs_on(capability));
    chosen.contains(&target) && !chosen.iter().filter(|other| **other != target).any(runs_there)
}

/// The input of the nested macro besides the text of the kernel: its targets, [`TMA`] if that is required, the words for its warnings,
/// the name of the instance and the number of instances, the kernel's name, and a token for the place of each operation, so that errors can be
/// reported there.
pub(crate) fn request(
    targets: &[&str],
    bulk: Option<Span>,
    wanted: &Wanted,
    (instance, instances): (&str, usize),
    (name, places): (&Ident, &[Span]),
) -> TokenStream {
    let words = wanted.silenced.iter().filter_map(|code| warning::word(*code));
    let words = words.chain(wanted.notes.then_some(warning::NOTES));
    let targets = targets.iter().copied().chain(words).map(|word| Ident::new(word, Span::call_site()));
    let targets = targets.chain(bulk.map(|span| Ident::new(TMA, span)));
    let places = places.iter().map(|span| {
        let mut token = Punct::new(';', Spacing::Alone);
        token.set_span(*span);
        token
    });
    let instances = Literal::usize_unsuffixed(instances);
    quote!([#(#targets)* #instance #instances] #name #(#places)*)
}

/// T0904, without its place: why `require(tma)` does not hold for a kernel; `None` if it does.
pub(crate) fn not_in_bulk(kernel: &Verified, chosen: &[&str]) -> Option<Diagnostic<Loc>> {
    // The same message of several instances is one error.
    let name = &kernel.sig.name;
    let error = |title: String| Diagnostic::new(Code::BulkRequired, Loc::default(), title);
    let machines = generated(chosen).filter_map(|name| Machine::from_name(name).ok());
    let mut machines = machines.filter(|machine| machine.target().box_copies().is_some()).peekable();
    if machines.peek().is_none() {
        let title = format!("`{name}`: none of its targets has bulk copies of tiles (TMA)");
        return Some(error(title).help("list `sm_90a` in `targets(..)`, or remove `tma`"));
    }
    machines.find_map(|machine| {
        let why = match driver::why_not_bulk(kernel, machine) {
            Ok(why) if why.is_empty() => return None,
            Ok(why) => why,
            Err(refused) => vec![refused.message],
        };
        let title = format!("`{name}`: not all of its tiles are copied in bulk (TMA) on {}", machine.name);
        let error = why.into_iter().fold(error(title), Diagnostic::note);
        Some(error.help("remove `tma`: the kernel then runs with copies by threads"))
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

/// The first line of T0902.
pub(crate) fn title(kernel: &Verified, why: &LowerError) -> String {
    // The same message of several instances at one place is one error.
    let message = &why.message;
    if why.of_instance { format!("`{}`: {message}", kernel.sig.full_name()) } else { message.clone() }
}

/// What a target that does not take the kernel says of it.
pub(crate) fn refused(kernel: &Verified, why: &LowerError) -> Diagnostic<Loc> {
    let error = Diagnostic::new(why.code(), why.loc, title(kernel, why));
    match &why.help {
        Some(help) => error.help(help.clone()),
        None => error,
    }
}

/// T0902, without its place in the user's file.
pub(crate) fn refusal(kernel: &Verified, target: &str, why: &LowerError) -> Diagnostic<Loc> {
    let error = refused(kernel, why);
    let or = if why.help.is_some() { "or " } else { "" };
    // Newer GPUs may have enough memory.
    let compiles = |name: &&str| {
        Machine::from_name(name).is_ok_and(|machine| driver::compile_alone(kernel, machine, None).is_ok())
    };
    let others = generated(DEFAULT).filter(|t| *t != target).filter(compiles);
    let others: Vec<&str> = std::iter::once(CPU).chain(others).collect();
    error
        .help(format!("{or}do not compile the kernel for {target}: `#[titan::kernel(targets({}))]`", others.join(", ")))
}
