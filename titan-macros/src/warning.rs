//! Warnings of a build: a kernel compiles, but a target gets no code, or a simpler schedule than the chosen one had to be taken; and
//! notes about its code, if its attribute asks for them.
//!
//! A stable procedural macro has no function that warns. rustc warns where a deprecated item is used, though, and prints the text of the
//! deprecation: so the expansion of a kernel contains such an item for each warning, and a use of it at the user's token.
//!
//! ```text
//! warning: use of deprecated constant `gemm::T0907`: [T0907] `gemm` has no code for sm_90a: ..
//! ```
//!
//! `#[allow(deprecated)]` around the kernel silences it as well as `allow(..)` in the kernel's attribute, `-D warnings` makes it an error,
//! and cargo prints no warnings of dependencies: `titan::kernels()` has the same texts.

use crate::backends::Gpu;
use crate::lower::Places;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use std::sync::{Mutex, PoisonError};
use titan_core::artifact::Artifact;
use titan_core::collections::SortedSet;
use titan_core::diag::{Code, Diagnostic};
use titan_core::driver;
use titan_core::ir::Loc;

/// The word in `#[titan::kernel(..)]` that makes warnings of notes.
pub(crate) const NOTES: &str = "notes";

/// What `allow(..)` may list.
const WORDS: [(&str, Code); 2] = [("no_code", Code::NoCode), ("simpler_schedule", Code::SimplerSchedule)];

/// The code that a word of `allow(..)` silences.
pub(crate) fn of_word(word: &str) -> Option<Code> {
    WORDS.iter().find(|(other, _)| *other == word).map(|(_, code)| *code)
}

/// The word of `allow(..)` for a code that a kernel may silence.
pub(crate) fn word(code: Code) -> Option<&'static str> {
    WORDS.iter().find(|(_, other)| *other == code).map(|(word, _)| *word)
}

/// The words of `allow(..)`, for messages.
pub(crate) fn words() -> String {
    WORDS.map(|(word, _)| format!("`{word}`")).join(" and ")
}

/// What a kernel asks of its warnings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The codes that `allow(..)` silences.
    pub(crate) silenced: Vec<Code>,
    /// Whether notes are warnings.
    pub(crate) notes: bool,
}

/// A target that a kernel does not list, and whose code it would have got nevertheless, has none: its devices run the code for another one, or
/// launches there are errors.
pub(crate) fn no_code(gpu: &Gpu, refusal: Diagnostic<Loc>) -> Diagnostic<Loc> {
    let silence = "silence this: `#[titan::kernel(allow(no_code))]`";
    let or = if refusal.help.is_empty() { "" } else { "or, " };
    let (instead, help) = match gpu.comes_with() {
        Some(_) => ("whose devices run that for older ones", format!("{or}if that is fast enough, {silence}")),
        None => ("where launches are errors", format!("{or}if the kernel is not meant for it, {silence}")),
    };
    let title = format!("there is no code for {}, {instead}: {}", gpu.name, refusal.title);
    Diagnostic { code: Code::NoCode, title, ..refusal }.help(help)
}

/// The reason why a target has no code, for the list in the artifact: the rule that the kernel breaks there, and how.
pub(crate) fn reason(refusal: &Diagnostic<Loc>) -> String {
    format!("[{}] {}", refusal.code, refusal.title)
}

/// A [`reason`] without the number of its rule, as the title of a warning has it.
fn without_code(reason: &str) -> &str {
    reason.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map_or(reason, |(_, title)| title)
}

/// The warnings of an instance that are wanted: of targets without code, which were found when the kernel was compiled, and of what its
/// artifact says.
pub(crate) fn found(missing: Vec<Diagnostic<Loc>>, artifact: &[u8], wanted: &Wanted) -> Vec<Diagnostic<Loc>> {
    let mut all = missing;
    if let Ok(artifact) = Artifact::decode(artifact) {
        let told = of_artifact(&artifact, wanted.notes, &all);
        all.extend(told);
    }
    all.retain(|warning| !wanted.silenced.contains(&warning.code));
    all
}

/// The items of the expansion that make rustc warn.
pub(crate) fn tokens(all: Vec<Diagnostic<Loc>>, (places, name): (&Places, Span)) -> TokenStream {
    let mut out = TokenStream::new();
    for warning in all {
        let text = warning.text();
        let span = places.span(warning.site, name);
        if is_first((span, name), &text) {
            out.extend(item(warning.code, &text, span));
        }
    }
    out
}

/// The warnings of simpler schedules, and the notes if they are wanted, without the targets that are told to have no code. What is the same on
/// several targets is told once.
fn of_artifact(artifact: &Artifact, notes: bool, missing: &[Diagnostic<Loc>]) -> Vec<Diagnostic<Loc>> {
    let mut out = Vec::new();
    let said = artifact.variants.iter().flat_map(|v| v.notes.iter().map(|note| (v.target.as_str(), note.as_str())));
    for (note, targets) in by_text(said) {
        let targets = listed(&targets);
        if note.starts_with(driver::FALLBACK) {
            let warning = Diagnostic::new(Code::SimplerSchedule, Loc::default(), format!("on {targets}, {note}"));
            let help = "the code is right; report the kernel, and silence this until then: \
                `#[titan::kernel(allow(simpler_schedule))]`";
            out.push(warning.help(help));
        } else if notes {
            out.push(Diagnostic::new(Code::CodeNote, Loc::default(), format!("on {targets}: {note}")));
        }
    }
    let is_told = |why: &str| missing.iter().any(|warning| warning.title.ends_with(without_code(why)));
    let comes = |target: &str| Gpu::of_name(target).is_some_and(|gpu| gpu.comes_with().is_some());
    let others = artifact.refused.iter().filter(|(target, why)| notes && comes(target) && !is_told(why));
    out.extend(by_text(others.map(|(target, why)| (target.as_str(), why.as_str()))).into_iter().map(
        |(why, targets)| {
            let title = format!("there is no code of its own for {}: {why}", listed(&targets));
            Diagnostic::new(Code::CodeNote, Loc::default(), title)
        },
    ));
    out
}

/// Texts with the targets about which each is said, in the order in which they are said first.
fn by_text<'a>(said: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for (target, text) in said {
        match all.iter_mut().find(|(other, _)| *other == text) {
            Some((_, targets)) if targets.contains(&target) => {}
            Some((_, targets)) => targets.push(target),
            None => all.push((text, vec![target])),
        }
    }
    all
}

/// `sm_80`, `sm_90a and sm_80`, `sm_100a, sm_90a and sm_80`
pub(crate) fn listed(targets: &[&str]) -> String {
    match targets {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => targets.concat(),
    }
}

/// Whether this process has not warned of this at this place for this kernel. Instances of a kernel are compiled one by one, and most are told
/// the same; several kernels of one macro have their tokens in the same places, and names in others.
fn is_first((span, name): (Span, Span), text: &str) -> bool {
    static TOLD: Mutex<SortedSet<([usize; 4], String, String)>> = Mutex::new(SortedSet::new());
    let (at, named) = (span.start(), name.start());
    let what = ([at.line, at.column, named.line, named.column], span.file(), text.to_owned());
    TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(what)
}

fn item(code: Code, text: &str, span: Span) -> TokenStream {
    // With the whole span of the user's token, rustc does not mention the macro. Nothing of the user's is in the block. clippy warns of the
    // binding of a unit.
    let name = Ident::new(code.number(), span);
    let used = quote_spanned!(span=> let _ = #name;);
    quote! {
        {
            #[deprecated(note = #text)]
            #[allow(non_upper_case_globals)]
            const #name: u8 = 0;
            #used
        }
    }
}

/// The bytes before an artifact in the cache: the warnings with their places.
pub(crate) fn encode(warnings: &[Diagnostic<Loc>]) -> Vec<u8> {
    let mut out = Vec::new();
    let number = |out: &mut Vec<u8>, n: usize| out.extend(u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes());
    number(&mut out, warnings.len());
    for warning in warnings {
        let Loc { line, column } = warning.site;
        out.extend(line.to_le_bytes());
        out.extend(column.to_le_bytes());
        let texts = [&warning.title].into_iter().chain(&warning.notes).chain(&warning.help);
        number(&mut out, warning.notes.len());
        number(&mut out, warning.help.len());
        for text in texts {
            number(&mut out, text.len());
            out.extend(text.as_bytes());
        }
    }
    out
}

/// The warnings, and what follows them; `None` if these bytes are not of [`encode`].
pub(crate) fn decode(bytes: &[u8]) -> Option<(Vec<Diagnostic<Loc>>, &[u8])> {
    fn number(rest: &mut &[u8]) -> Option<u32> {
        let (first, others) = rest.split_first_chunk::<4>()?;
        *rest = others;
        Some(u32::from_le_bytes(*first))
    }
    fn text(rest: &mut &[u8]) -> Option<String> {
        let len = usize::try_from(number(rest)?).ok()?;
        let (text, others) = rest.split_at_checked(len)?;
        *rest = others;
        String::from_utf8(text.to_vec()).ok()
    }
    let mut rest = bytes;
    let mut out = Vec::new();
    for _ in 0..number(&mut rest)? {
        let site = Loc { line: number(&mut rest)?, column: number(&mut rest)? };
        let [notes, help] = [number(&mut rest)?, number(&mut rest)?];
        let title = text(&mut rest)?;
        let notes = (0..notes).map(|_| text(&mut rest)).collect::<Option<_>>()?;
        let help = (0..help).map(|_| text(&mut rest)).collect::<Option<_>>()?;
        out.push(Diagnostic { notes, help, ..Diagnostic::new(Code::NoCode, site, title) });
    }
    Some((out, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use titan_core::diag::Severity;

    fn missing() -> Diagnostic<Loc> {
        let refusal =
            Diagnostic::new(Code::Backend, Loc { line: 3, column: 9 }, "it is too large").help("use smaller tiles");
        no_code(Gpu::of_name("sm_90a").expect("a target"), refusal)
    }

    #[test]
    fn encoded_warnings_are_read_back_and_cut_ones_are_not() {
        let warnings = vec![missing(), Diagnostic::new(Code::NoCode, Loc::default(), "é").note("n")];
        let mut bytes = encode(&warnings);
        let n = bytes.len();
        bytes.extend(b"artifact");
        assert_eq!(decode(&bytes), Some((warnings, &b"artifact"[..])));
        for cut in 0..n {
            assert_eq!(decode(&bytes[..cut]), None, "{cut}");
        }
        assert_eq!(decode(&encode(&[])), Some((Vec::new(), &b""[..])));
    }

    #[test]
    fn simpler_schedules_are_warnings_and_other_notes_only_on_request() {
        let fallback = format!("{}: why", driver::FALLBACK);
        let variant = |target: &str, notes: &[&str]| titan_core::artifact::Variant {
            target: target.to_owned(),
            notes: notes.iter().map(|note| (*note).to_owned()).collect(),
            ..Default::default()
        };
        let artifact = Artifact {
            kernel: "k".to_owned(),
            variants: vec![variant("sm_90a", &["8 warps", &fallback]), variant("sm_80", &["4 warps"])],
            refused: vec![
                ("sm_90a".to_owned(), "[T0902] told".to_owned()),
                ("sm_80".to_owned(), "left out".to_owned()),
            ],
        };
        let codes = |notes, missing: &[Diagnostic<Loc>]| {
            of_artifact(&artifact, notes, missing).iter().map(|d| d.code).collect::<Vec<_>>()
        };
        assert_eq!(codes(false, &[]), [Code::SimplerSchedule]);
        let note = Code::CodeNote;
        assert_eq!(codes(true, &[]), [note, Code::SimplerSchedule, note, note]);
        let told =
            no_code(Gpu::of_name("sm_90a").expect("a target"), Diagnostic::new(Code::Backend, Loc::default(), "told"));
        assert_eq!(codes(true, &[told]), [note, Code::SimplerSchedule, note], "a reason is told once");
    }

    #[test]
    fn every_word_of_allow_silences_a_warning() {
        for (word, code) in WORDS {
            assert_eq!((of_word(word), super::word(code)), (Some(code), Some(word)));
            assert_eq!(code.severity(), Severity::Warning);
        }
        let silenced = |code: &&Code| code.severity() == Severity::Warning;
        assert_eq!(Code::ALL.iter().filter(silenced).count(), WORDS.len(), "every warning can be silenced");
    }
}
