//! What a user reads who makes a mistake: one mistake per file of `ui/`, with the errors of rustc for it in the `.stderr` file beside it.
//!
//! `TITAN_BLESS=1 cargo test -p ui-tests --test ui` writes the texts anew.
//!
//! rustc is called directly, with the library that cargo built for this test: nothing is built again. Mistakes that the macro reports
//! are compiled many to a crate (`batch` says why that is sound); those that rustc itself reports one by one, warnings of the macro among
//! them, since rustc shortens the names of types by what else its crate contains, and prints paths from its root. In the full depth every
//! case is compiled alone as well.
//!
//! Deliberately absent: cases that compile, which are the module `pass/`.

mod batch;
mod cases;
mod compiler;
mod difference;
mod judge;
mod library;
mod normalize;
mod parallel;
mod runner;

#[test]
fn every_mistake_is_rejected_in_the_words_of_the_language() {
    let (compiler, cases) = (compiler::of_this_test(), cases::all());
    let judged = judge::all(compiler, &cases, test_depth::is_full());
    let failures = judge::report(&cases, &judged, cases::is_blessing());
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn every_stored_message_has_its_case() {
    let stale = cases::stale();
    assert!(stale.is_empty(), "delete these messages, their cases are gone: {stale:?}");
}

/// `cargo check` generates no code: it tells everything but what only compiling for a target finds, which the next build tells.
#[test]
fn cargo_check_tells_what_needs_no_code() {
    let (compiler, ui) = (compiler::of_this_test(), cases::folder());
    let told = |case: &str, name: &str| -> Vec<String> {
        let found = compiler.checked(name, compiler::Input::File(&ui.join(case)));
        found.unwrap_or_else(|error| panic!("{error}")).into_iter().map(|diagnostic| diagnostic.rendered).collect()
    };
    assert_eq!(told("targets/too_much_memory.rs", "checked_memory"), Vec::<String>::new());
    let of_rules = told("outputs/missing_program_axis.rs", "checked_axis");
    assert!(of_rules.len() == 1 && of_rules[0].contains("[T0402]"), "{of_rules:?}");
}
