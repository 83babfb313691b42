//! Groups as `macro_rules!` macros make them, which only a macro can write in a program.

use super::{function, statements};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::str::FromStr as _;

/// Tokens in which `⟦..⟧`, written as a call of `fragment`, is an invisible group.
fn tokens(text: &str) -> TokenStream {
    grouped(TokenStream::from_str(text).expect("tokens"))
}

fn grouped(tokens: TokenStream) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            out.push(token);
            continue;
        };
        let is_fragment = matches!(out.last(), Some(TokenTree::Ident(name)) if name == "fragment");
        let delimiter = if is_fragment { Delimiter::None } else { group.delimiter() };
        if is_fragment {
            out.pop();
        }
        out.push(Group::new(delimiter, grouped(group.stream())).into());
    }
    out.into_iter().collect()
}

/// The text of tokens, with invisible groups as `⟦..⟧`.
fn shown(tokens: TokenStream) -> String {
    let shown = |token: TokenTree| match token {
        TokenTree::Group(g) => {
            let inner = shown(g.stream());
            match g.delimiter() {
                Delimiter::None => format!("⟦{inner}⟧"),
                Delimiter::Brace => format!("{{ {inner} }}"),
                Delimiter::Parenthesis => format!("({inner})"),
                Delimiter::Bracket => format!("[{inner}]"),
            }
        }
        other => other.to_string(),
    };
    tokens.into_iter().map(shown).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn becomes(text: &str, want: &str) {
    assert_eq!(shown(statements(tokens(text))), want, "{text}");
}

#[test]
fn statements_are_not_in_groups() {
    becomes("{ fragment(let x = 1); y }", "{ let x = 1 ; y }");
    becomes("{ fragment(let x = 1) fragment(;) fragment(let y = 2) }", "{ let x = 1 ; ; let y = 2 ; }");
    becomes("{ fragment(#[a] let x = 1); }", "{ # [a] let x = 1 ; }");
    becomes("{ fragment(fn f() {}) fragment({ 1 }) - 1 }", "{ fn f () {  } { 1 } - 1 }");
    becomes("{ if c fragment({ 1 }) fragment(let x = 1); }", "{ if c ⟦{ 1 }⟧ let x = 1 ; }");
    becomes("{ fragment(n = 3) (a) }", "{ n = 3 ; (a) }");
    becomes("{ fragment(f!(x)) y }", "{ f ! (x) ; y }");
    becomes("{ fragment(fragment(let x = 1)); }", "{ let x = 1 ; }");
    becomes("match r { A => fragment({ 1 }) B => fragment({ 2 }), }", "match r { A = > { 1 } B = > { 2 } , }");
}

#[test]
fn operands_are_in_groups() {
    for text in [
        "{ fragment(a) + 1 }",
        "{ fragment({ 1 } + a) * 2 }",
        "{ let x = fragment({ 1 }) + 1; }",
        "{ for i in 0..fragment({ 4 }) { } }",
        "{ fragment(f!(x)) + y }",
        "{ fragment(a) as f32 }",
        "fragment({ 1 })",
    ] {
        assert_eq!(shown(statements(tokens(text))), shown(tokens(text)), "{text}");
    }
}

#[test]
fn functions_with_fragments_are_parsed() {
    for text in [
        "fn f() fragment({ 1 })",
        "fragment(pub) fn f(x: fragment(f32)) { fragment(let x = 1); fragment({ }) if c fragment({ }) else fragment({ }) }",
        "fn f() { fragment('a): loop { break fragment('a); } }",
    ] {
        assert!(function(&tokens(text)).is_ok(), "{text}");
    }
}
