//! What rustc says to mistakes in the types of the language: one mistake per file of `lang/`.
//!
//! `TRYBUILD=overwrite cargo test -p ui-tests` writes the texts anew.

#[test]
fn mistakes_are_named_in_the_words_of_the_language() {
    trybuild::TestCases::new().compile_fail("lang/*.rs");
}
