//! What a user reads who makes a mistake: one mistake per file of `ui/`, with the errors of the whole `cargo check`.
//!
//! `TRYBUILD=overwrite cargo test -p ui-tests --test ui` writes the texts anew.

#[test]
fn every_mistake_is_rejected_in_the_words_of_the_language() {
    trybuild::TestCases::new().compile_fail("ui/*/*.rs");
}
