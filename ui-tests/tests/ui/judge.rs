//! Compiles the cases and compares what rustc says with what is stored.

use super::batch::{Said, alone, together};
use super::cases::Case;
use super::compiler::Compiler;
use super::difference::difference;
use super::parallel;

/// The number of cases in a batch. More save little, and all of them are compiled alone if their batch decides nothing.
const BATCH: usize = 64;

/// The command that stores what rustc says now.
const BLESS: &str = "TITAN_BLESS=1 cargo test -p ui-tests --test ui";

/// What there is to say about a case.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    /// It has no error; what rustc says nevertheless.
    Compiles(String),
    /// What rustc says is not what is stored, if anything is.
    Differs {
        stored: Option<String>,
        said: String,
    },
    /// Either only its batch or only rustc alone says what is stored.
    Batch {
        together: String,
        alone: String,
    },
    /// rustc failed.
    Broken(String),
}

/// Compiles cases in batches, and alone those about which no batch decides that they are right; in the full depth all of them.
pub(crate) fn all(compiler: &Compiler, cases: &[Case], is_full: bool) -> Vec<Verdict> {
    let read = |case: &Case| case.expected().unwrap_or_else(|error| panic!("{}: {error}", case.shown));
    let stored: Vec<Option<String>> = cases.iter().map(read).collect();
    let of_macro: Vec<usize> = (0..cases.len()).filter(|n| stored[*n].as_deref().is_some_and(is_of_macro)).collect();
    let batches: Vec<&[usize]> = of_macro.chunks(BATCH).collect();
    let run = |batch: &&[usize]| together(compiler, &batch.iter().map(|n| &cases[*n]).collect::<Vec<_>>());
    let mut batched: Vec<Option<Said>> = vec![None; cases.len()];
    for (n, said) in of_macro.iter().zip(parallel::map(&batches, run).into_iter().flatten()) {
        batched[*n] = said;
    }
    let is_right = |n: usize| batched[n].as_ref().is_some_and(|said| Some(&said.text) == stored[n].as_ref());
    let open: Vec<usize> = (0..cases.len()).filter(|n| is_full || !is_right(*n)).collect();
    let mut verdicts: Vec<Verdict> = cases.iter().map(|_| Verdict::Right).collect();
    for (n, said) in open.iter().zip(parallel::map(&open, |n| alone(compiler, &cases[*n]))) {
        verdicts[*n] = verdict(stored[*n].as_deref(), batched[*n].as_ref().filter(|_| is_full), said);
    }
    verdicts
}

/// Whether all of a stored text is what the macro reports. What rustc reports has a code of its own, `error[E0382]`, with few exceptions;
/// of a lint, it says where its level is from. What a macro expands to that does not exist depends on the other macros of its crate.
fn is_of_macro(stored: &str) -> bool {
    let is_of_rustc = |line: &str| {
        line.contains("error[E")
            || line.starts_with("error: cannot find macro")
            || line == "note: the lint level is defined here"
            || line.ends_with("on by default")
    };
    !stored.lines().any(is_of_rustc)
}

/// About a case that was compiled alone; in the full depth its batch must not have decided otherwise.
fn verdict(stored: Option<&str>, together: Option<&Said>, alone: Result<Said, String>) -> Verdict {
    match (alone, together) {
        (Err(error), _) => Verdict::Broken(error),
        (Ok(alone), _) if !alone.is_rejected => Verdict::Compiles(alone.text),
        (Ok(alone), Some(together)) if (stored == Some(&together.text)) != (stored == Some(&alone.text)) => {
            Verdict::Batch { together: together.text.clone(), alone: alone.text }
        }
        (Ok(alone), _) if stored == Some(&alone.text) => Verdict::Right,
        (Ok(alone), _) => Verdict::Differs { stored: stored.map(str::to_owned), said: alone.text },
    }
}

/// What is wrong, for the terminal; nothing if nothing is. Blessing stores what differs, and says nothing about it.
pub(crate) fn report(cases: &[Case], verdicts: &[Verdict], is_blessing: bool) -> String {
    let (mut failures, mut failed) = (String::new(), 0);
    for (case, verdict) in cases.iter().zip(verdicts) {
        let text = match verdict {
            Verdict::Right => continue,
            Verdict::Differs { said, .. } if is_blessing => match case.bless(said) {
                Ok(()) => continue,
                Err(error) => format!("the message cannot be stored: {error}\n"),
            },
            Verdict::Differs { stored: None, said } => format!("no message is stored; it would be\n\n{said}"),
            Verdict::Differs { stored: Some(stored), said } => {
                format!("`-` is stored, `+` is what rustc says\n\n{}", difference(stored, said))
            }
            Verdict::Compiles(said) => format!("it compiles, but a case is a mistake\n{said}"),
            Verdict::Batch { together, alone } => {
                let difference = difference(alone, together);
                format!("`-` is what rustc says about it alone, `+` in its batch: `batch.rs` is wrong\n\n{difference}")
            }
            Verdict::Broken(error) => error.clone(),
        };
        failures += &format!("\n{}: {text}", case.shown);
        failed += 1;
    }
    if failed > 0 {
        failures += &format!("\n{failed} of {} cases fail. If new messages are intended: {BLESS}\n", cases.len());
    }
    failures
}

#[test]
fn errors_and_lints_of_rustc_are_not_the_macros() {
    assert!(is_of_macro("error: [T0101] `match` is not supported in kernels\n --> ui/a.rs:1:1\n"));
    assert!(!is_of_macro(
        "error: [T0101] `match` is not supported in kernels\n\nerror[E0382]: use of moved value: `s`\n"
    ));
    assert!(!is_of_macro("error: cannot find macro `A` in this scope\n --> ui/a.rs:1:1\n"));
    assert!(!is_of_macro("error: use of deprecated constant `a::B`\nnote: the lint level is defined here\n"));
    assert!(!is_of_macro("warning: unused variable: `x`\n  = note: `#[warn(unused_variables)]` on by default\n"));
}

#[test]
fn in_the_full_depth_batches_must_agree() {
    let said = |text: &str| Said { is_rejected: true, text: text.to_owned() };
    assert_eq!(verdict(Some("a\n"), Some(&said("a\n")), Ok(said("a\n"))), Verdict::Right);
    // Neither is stored: names of types may be longer in a batch. Blessing stores what rustc says alone.
    let stored = Some("c\n".to_owned());
    let said_alone = Verdict::Differs { stored, said: "a\n".to_owned() };
    assert_eq!(verdict(Some("c\n"), Some(&said("b\n")), Ok(said("a\n"))), said_alone);
    let differs = Verdict::Batch { together: "b\n".to_owned(), alone: "a\n".to_owned() };
    for stored in ["a\n", "b\n"] {
        assert_eq!(verdict(Some(stored), Some(&said("b\n")), Ok(said("a\n"))), differs);
    }
}
