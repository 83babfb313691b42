//! Mistakes that rustc reports, which the macro records with words of its own: a build in which rustc does not report them stops with these.

use crate::entry;
use proc_macro2::TokenStream;

/// The expansion of a kernel of one output with this body.
fn expanded(body: &str) -> String {
    let tokens = |text: &str| text.parse::<TokenStream>().expect("tokens");
    let item = format!("fn k(#[shape(M, N)] x: &Tensor<f16, 2>, #[shape(M, N)] y: &mut Tensor<f16, 2>) {{ {body} }}");
    entry::kernel(tokens("grid(cdiv(M, 8), cdiv(N, 8))"), tokens(&item)).to_string()
}

#[track_caller]
fn refused(right: &str, wrong: &str, words: &str) {
    let body = |part: &str| {
        format!(
            "let at = [program_id(0), program_id(1)]; let t = x.load_tile::<8, 8>(at); let r = {part}; y.store_tile(at, r);"
        )
    };
    let accepted = expanded(&body(right));
    let is_error = |expansion: &str| expansion.contains("TITAN rejects") || expansion.contains("compile_error");
    assert!(!is_error(&accepted), "{right}\n→ {accepted}");
    let answer = expanded(&body(wrong));
    assert!(is_error(&answer) && answer.contains(words), "{wrong}\n→ {answer}");
}

#[test]
fn a_permutation_names_each_axis_once() {
    refused("t.permute::<1, 0>()", "t.permute::<1, 1>()", "[1, 1] is not a permutation of the axes");
}

#[test]
fn a_literal_with_a_point_is_not_f16() {
    let scaled = |other: &str| format!("{{ let s = if program_id(0) > 0 {{ x.get(at) }} else {{ {other} }}; t * s }}");
    refused(&scaled("x.get([0, 0])"), &scaled("2.5"), "expected `f16`");
}
