//! Texts of files.

use super::{heads, is_declared, is_imported, words};

#[test]
fn declarations_are_found_by_their_keywords() {
    let text = "pub(crate) const width: i32 = 3;\nfn select(a: f32) {}\n// of width";
    assert!(is_declared(text, &["const", "static"], "width"));
    assert!(is_declared(text, &["fn"], "select"));
    assert!(!is_declared(text, &["fn"], "width") && !is_declared(text, &["const"], "i32"));
}

#[test]
fn imports_are_found_unless_they_are_of_the_language() {
    let text =
        "use titan::prelude::{select, mma};\nuse crate::consts::{width, depth as d};\nlet use_it = 1; select(mma);";
    assert!(is_imported(text, "width") && is_imported(text, "d"));
    assert!(!is_imported(text, "select") && !is_imported(text, "mma") && !is_imported(text, "it"));
}

#[test]
fn attributes_precede_a_declaration() {
    let text = "#[titan::constant]\npub const A: i32 = 1;\nconst AB: i32 = 2;\nmod m { const A: i32 = 3; }";
    let marked: Vec<bool> = heads(text, "const", "A").map(|head| words(head).any(|w| w == "constant")).collect();
    assert_eq!(marked, [true, false]);
}
