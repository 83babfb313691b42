//! The targets of kernels: always the CPU, and those that `targets(..)` lists, or else those of [`backends`](crate::backends) that are compiled
//! by default. A kernel that cannot be compiled for a target that it lists is an error of the build, at the user's token: see
//! [`crate::embed::compile`].
//!
//! | target | without `targets(..)` | if the kernel cannot be compiled for it |
//! |---|---|---|
//! | `sm_80` | compiled | an error |
//! | `sm_90a` | comes with `sm_80`: it runs on some of that target's devices only, and for some arguments | its devices run the code for `sm_80`: if that would have been the same, the reason is embedded, and if the kernel was refused, the build warns ([`crate::warning`]) |
//! | `gfx942` | compiled where the build has AMD's back end | launches there are errors, and the build warns |
//!
//! What a kernel lists is an error in every case.

use crate::backends::{self, Gpu};
use crate::warning::{self, Wanted};
use proc_macro2::{Ident, Literal, Punct, Spacing, Span, TokenStream};
use quote::quote;
use titan_core::diag::{Code, Diagnostic};
use titan_core::driver;
use titan_core::ir::Loc;
use titan_core::plan::LowerError;
use titan_core::verify::Verified;

/// The target that runs every kernel.
pub(crate) const CPU: &str = "cpu";

/// The requirement that all tiles of a kernel's rings are copied in bulk, on machines that have such copies.
pub(crate) const TMA: &str = "tma";

/// What stands in a request instead of targets if the kernel has no `targets(..)`.
const UNLISTED: &str = "unlisted";

/// The targets of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Those that `targets(..)` lists; `None` without it.
    listed: Option<Vec<&'static str>>,
}

/// All targets, for messages.
pub(crate) fn listed() -> String {
    let gpus = backends::in_words();
    format!("the targets are {gpus}; every kernel runs on the CPU, whether `{CPU}` is listed or not")
}

impl Chosen {
    /// The targets of a kernel with this `targets(..)`.
    pub(crate) fn of(listed: Option<&[&'static str]>) -> Chosen {
        Chosen { listed: listed.map(<[&str]>::to_vec) }
    }

    /// The targets in a request.
    pub(crate) fn of_words(words: &[String]) -> Chosen {
        let names = words.iter().filter_map(|word| Gpu::of_name(word)).map(|gpu| gpu.name).collect();
        Chosen { listed: (!words.iter().any(|word| word == UNLISTED)).then_some(names) }
    }

    /// The words by which a request names them.
    fn words(&self) -> Vec<&'static str> {
        self.listed.clone().unwrap_or_else(|| vec![UNLISTED])
    }

    /// Whether a kernel is compiled for a target in its own right, and not because its code comes with that of another one.
    fn includes(&self, gpu: &Gpu) -> bool {
        self.listed.as_ref().map_or_else(|| gpu.is_default(), |listed| listed.contains(&gpu.name))
    }

    /// Whether a kernel without code for a target is an error.
    pub(crate) fn needs(&self, gpu: &Gpu) -> bool {
        self.includes(gpu) && (self.listed.is_some() || !gpu.is_optional())
    }

    /// The targets for which code is generated, in the order in which launches try it: those of a kernel, and those whose code comes with them.
    pub(crate) fn generated(&self) -> impl Iterator<Item = &'static Gpu> {
        let comes = |gpu: &Gpu| gpu.comes_with().and_then(Gpu::of_name).is_some_and(|target| self.includes(target));
        Gpu::all().filter(move |gpu| self.includes(gpu) || comes(gpu))
    }

    /// What the embedded bytes depend on besides the kernel's text.
    pub(crate) fn key(&self) -> String {
        let generated: Vec<&str> = self.generated().map(|gpu| gpu.name).collect();
        format!("{} for {}", self.words().join(" "), generated.join(" "))
    }

    /// The targets of kernels without `targets(..)` that this one leaves out, each with the reason that a launch on it reports.
    pub(crate) fn left_out(&self) -> Vec<(String, String)> {
        let named: Vec<String> = self.listed.iter().flatten().map(|name| format!("`{name}`")).collect();
        let why = if named.is_empty() {
            format!("it is compiled for the CPU alone, by `targets({CPU})` in its attribute")
        } else {
            let named = named.join(" and ");
            format!("it has no code for this device: `targets(..)` in its attribute lists only {named}")
        };
        let reason = format!("{why}\n  help: list a target that this device runs; {}", listed());
        let out = Gpu::all().filter(|gpu| gpu.is_default() && !self.includes(gpu));
        out.map(|gpu| (gpu.name.to_owned(), reason.clone())).collect()
    }

    /// Whether a kernel is compiled for a target, and for no other one whose code the target's devices run too.
    pub(crate) fn is_alone(&self, gpu: &Gpu) -> bool {
        let runs_there = |other: &&Gpu| other.name != gpu.name && gpu.also_runs(other.name) && self.includes(other);
        self.includes(gpu) && !Gpu::all().any(|other| runs_there(&other))
    }
}

/// The input of the nested macro besides the text of the kernel: its targets, [`TMA`] if that is required, the words for its warnings,
/// the name of the instance and the number of instances, the kernel's name, and a token for the place of each operation, so that errors can be
/// reported there.
pub(crate) fn request(
    chosen: &Chosen,
    bulk: Option<Span>,
    wanted: &Wanted,
    (instance, instances): (&str, usize),
    (name, places): (&Ident, &[Span]),
) -> TokenStream {
    let words = wanted.silenced.iter().filter_map(|code| warning::word(*code));
    let words = words.chain(wanted.notes.then_some(warning::NOTES));
    let targets = chosen.words().into_iter().chain(words).map(|word| Ident::new(word, Span::call_site()));
    let targets = targets.chain(bulk.map(|span| Ident::new(TMA, span)));
    let places = places.iter().map(|span| {
        let mut token = Punct::new(';', Spacing::Alone);
        token.set_span(*span);
        token
    });
    let instances = Literal::usize_unsuffixed(instances);
    quote!([#(#targets)* #instance #instances] #name #(#places)*)
}

/// Whether a target has bulk copies of tiles.
pub(crate) fn has_bulk(gpu: &Gpu) -> bool {
    gpu.machine().is_some_and(|machine| machine.target().box_copies().is_some())
}

/// T0904, without its place: why `require(tma)` does not hold for a kernel; `None` if it does.
pub(crate) fn not_in_bulk(kernel: &Verified, chosen: &Chosen) -> Option<Diagnostic<Loc>> {
    // The same message of several instances is one error.
    let name = &kernel.sig.name;
    let error = |title: String| Diagnostic::new(Code::BulkRequired, Loc::default(), title);
    let machines = chosen.generated().filter_map(Gpu::machine);
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
        let title = format!("`{name}`: not all of its tiles are copied in bulk (TMA) on {}", machine.target().name);
        let error = why.into_iter().fold(error(title), Diagnostic::note);
        Some(error.help("remove `tma`: the kernel then runs with copies by threads"))
    })
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
    match why.help.clone() {
        Some(help) => error.help(help),
        None => error,
    }
}

/// T0902, without its place in the user's file.
pub(crate) fn refusal(kernel: &Verified, gpu: &Gpu, why: &LowerError) -> Diagnostic<Loc> {
    let error = refused(kernel, why);
    let or = if error.help.is_empty() { "" } else { "or " };
    // Newer GPUs may have enough memory.
    let compiles = |other: &&Gpu| {
        let machine = other.machine().filter(|_| other.name != gpu.name);
        machine.is_some_and(|machine| driver::compile_alone(kernel, machine, None).is_ok())
    };
    let mut others: Vec<&Gpu> = Chosen::of(None).generated().filter(compiles).collect();
    let names: Vec<&str> = others.iter().map(|other| other.name).collect();
    // Code that comes with that for another one need not be listed.
    others.retain(|other| !other.comes_with().is_some_and(|target| names.contains(&target)));
    let others: Vec<&str> = std::iter::once(CPU).chain(others.iter().map(|other| other.name)).collect();
    let (target, others) = (gpu.name, others.join(", "));
    error.help(format!("{or}do not compile the kernel for {target}: `#[titan::kernel(targets({others}))]`"))
}
