//! `dispatch!`: a launch or generic code chosen by values at run time.
//!
//! ```text
//! dispatch!(a::gemm::<x.elem(), 64, _>(&x, &mut y))     a::gemm::dispatch((x.elem(), 64, ..,), &x, &mut y)
//! dispatch!(a::gemm[instance](&x, &mut y))              a::gemm::dispatch_to(&instance, &x, &mut y)
//! dispatch!(a::gemm::reference::<..>(..))               a::gemm::dispatch_reference((..), ..)
//! dispatch!(match elem { T in [f16, f32] => code })     match elem { F16 => { type T = f16; Ok(code) } .. e => Err(no_arm(e)) }
//! ```
//!
//! The functions are made by the expansion of the kernel (`expand/surface`), so that rustc checks the values and the arguments. Deliberately
//! absent: anything about kernels or types, which this macro does not see.

use crate::ctxt::compile_error;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::Elem;

const FORMS: &str = "write `dispatch!(kernel::<values..>(arguments..))`, `dispatch!(kernel[instance](arguments..))` or \
                     `dispatch!(match elem { T in [f16, bf16] => code })`";

type Parsed<T> = Result<T, Diagnostic<Span>>;

/// The tokens of `dispatch!`, after the path of the facade and a semicolon.
pub(crate) fn dispatch(input: TokenStream) -> TokenStream {
    let mut tokens = input.into_iter();
    let krate: TokenStream = tokens.by_ref().take_while(|t| !is(t, ';')).collect();
    let rest: Vec<TokenTree> = tokens.next().map(ungrouped).into_iter().flatten().chain(tokens).collect();
    let made = match rest.first() {
        Some(TokenTree::Ident(word)) if *word == "match" => arms(&krate, &rest[1..]),
        _ => launch(&krate, &rest),
    };
    // The error is an expression of any type.
    made.unwrap_or_else(|error| compile_error(&error))
}

fn is(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == c)
}

/// The tokens of a group without delimiters, such as a path that another macro passes.
fn ungrouped(token: TokenTree) -> Vec<TokenTree> {
    match token {
        TokenTree::Group(g) if g.delimiter() == Delimiter::None => g.stream().into_iter().collect(),
        token => vec![token],
    }
}

fn malformed(span: Span, title: impl Into<String>) -> Diagnostic<Span> {
    Diagnostic::new(Code::Dispatch, span, title.into()).help(FORMS)
}

/// The span of a token, or of the macro's call where there is none.
fn at(token: Option<&TokenTree>) -> Span {
    token.map_or_else(Span::call_site, TokenTree::span)
}

fn group(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<&Group> {
    match token {
        Some(TokenTree::Group(g)) if g.delimiter() == delimiter => Some(g),
        _ => None,
    }
}

/// `path::<values..>(arguments..)` or `path[instance](arguments..)`.
fn launch(krate: &TokenStream, tokens: &[TokenTree]) -> Parsed<TokenStream> {
    let open = tokens.iter().position(|t| is(t, '<'));
    let bracket = tokens.iter().position(|t| group(Some(t), Delimiter::Bracket).is_some());
    let (path, chosen, rest, indexed) = match (open, bracket) {
        (Some(open), bracket) if bracket.is_none_or(|b| open < b) => {
            let close = tokens.iter().position(|t| is(t, '>'));
            let Some(close) = close.filter(|c| *c > open) else {
                return Err(malformed(at(tokens.get(open)), "this `<` is not closed"));
            };
            let path = tokens[..open].strip_suffix_colons();
            (path, values(krate, &tokens[open + 1..close], at(tokens.get(open)))?, &tokens[close + 1..], false)
        }
        (_, Some(bracket)) => {
            let inner = group(tokens.get(bracket), Delimiter::Bracket).map(Group::stream).unwrap_or_default();
            if inner.is_empty() {
                return Err(malformed(at(tokens.get(bracket)), "an instance is missing between `[` and `]`"));
            }
            (&tokens[..bracket], quote!(& #inner), &tokens[bracket + 1..], true)
        }
        (_, None) => return Err(malformed(at(tokens.first()), "`dispatch!` needs the values of generic parameters")),
    };
    let Some(arguments) = group(rest.first(), Delimiter::Parenthesis) else {
        return Err(malformed(at(rest.first().or(tokens.last())), "the arguments of the launch are missing"));
    };
    if let Some(more) = rest.get(1) {
        let help = "call methods of the launch after the macro: `dispatch!(..).sync()?`";
        let title = "unexpected tokens after the arguments";
        return Err(Diagnostic::new(Code::Dispatch, more.span(), title).help(help));
    }
    let (path, is_reference) = match path {
        [kernel @ .., a, b, TokenTree::Ident(last)] if *last == "reference" && is(a, ':') && is(b, ':') => {
            (kernel, true)
        }
        path => (path, false),
    };
    let Some(TokenTree::Ident(name)) = path.last() else {
        return Err(malformed(at(tokens.first()), "the name of a kernel is missing"));
    };
    let function = match (indexed, is_reference) {
        (false, false) => "dispatch",
        (false, true) => "dispatch_reference",
        (true, false) => "dispatch_to",
        (true, true) => "dispatch_reference_to",
    };
    // At the kernel's name: rustc reports there what does not fit.
    let function = Ident::new(function, name.span());
    let (path, arguments) = (path.iter(), absent(krate, arguments.stream()));
    Ok(quote!(#(#path)*::#function(#chosen, #arguments)))
}

/// The arguments with a plain `None` in a form whose type is known: it may be an optional tensor of any type.
fn absent(krate: &TokenStream, arguments: TokenStream) -> TokenStream {
    let arguments: Vec<TokenTree> = arguments.into_iter().collect();
    let mut out = TokenStream::new();
    for (nth, part) in arguments.split(|t| is(t, ',')).enumerate() {
        if nth > 0 {
            out.extend(quote!(,));
        }
        match part {
            [TokenTree::Ident(none)] if *none == "None" => {
                out.extend(quote_spanned!(none.span()=> #krate::__private::Absent))
            }
            part => out.extend(part.iter().cloned()),
        }
    }
    out
}

trait StripColons {
    fn strip_suffix_colons(&self) -> &Self;
}

impl StripColons for [TokenTree] {
    /// The path before `::`.
    fn strip_suffix_colons(&self) -> &Self {
        match self {
            [path @ .., a, b] if is(a, ':') && is(b, ':') => path,
            path => path,
        }
    }
}

/// The values between `<` and `>` as a tuple.
fn values(krate: &TokenStream, tokens: &[TokenTree], open: Span) -> Parsed<TokenStream> {
    let mut out = TokenStream::new();
    let mut parts: Vec<&[TokenTree]> = tokens.split(|t| is(t, ',')).collect();
    if parts.last().is_some_and(|last| last.is_empty()) {
        parts.pop();
    }
    if parts.is_empty() {
        return Err(malformed(open, "the values of generic parameters are missing"));
    }
    for part in parts {
        let value = match part {
            [] => return Err(malformed(open, "a value is missing between two commas")),
            [TokenTree::Ident(hole)] if *hole == "_" => quote_spanned!(hole.span()=> ..),
            [TokenTree::Ident(name)] => match Elem::from_name(&name.to_string()) {
                // An element type is meant as a value.
                Some(elem) => {
                    let variant = format_ident!("{elem:?}", span = name.span());
                    quote!(#krate::ElemType::#variant)
                }
                None => quote!(#name),
            },
            // rustc would report braces that an argument of a function does not need.
            [TokenTree::Group(g)] if g.delimiter() == Delimiter::Brace && !g.stream().is_empty() => g.stream(),
            part => part.iter().cloned().collect(),
        };
        out.extend(quote!(#value,));
    }
    Ok(quote!((#out)))
}

/// `elem { T in [f16, bf16] => code }`
fn arms(krate: &TokenStream, tokens: &[TokenTree]) -> Parsed<TokenStream> {
    let (Some(body), elem) = (group(tokens.last(), Delimiter::Brace), &tokens[..tokens.len().saturating_sub(1)]) else {
        return Err(malformed(at(tokens.last()), "`dispatch!(match ..)` needs an arm in braces"));
    };
    if elem.is_empty() {
        return Err(malformed(body.span_open(), "the element type is missing after `match`"));
    }
    let inner: Vec<TokenTree> = body.stream().into_iter().collect();
    let [TokenTree::Ident(name), TokenTree::Ident(word), list, equals, greater, code @ ..] = &inner[..] else {
        return Err(malformed(body.span_open(), "the arm is not of the form `T in [f16, bf16] => code`"));
    };
    let Some(list) = group(Some(list), Delimiter::Bracket) else {
        return Err(malformed(list.span(), "a list of element types is missing"));
    };
    if *word != "in" || !is(equals, '=') || !is(greater, '>') {
        return Err(malformed(word.span(), "the arm is not of the form `T in [f16, bf16] => code`"));
    }
    let code = match code {
        [code @ .., comma] if is(comma, ',') => code,
        code => code,
    };
    if code.is_empty() {
        return Err(malformed(greater.span(), "the code of the arm is missing"));
    }
    let listed: Vec<TokenTree> = list.stream().into_iter().collect();
    let (mut cases, mut known, mut errors) = (TokenStream::new(), Vec::new(), TokenStream::new());
    for ty in listed.split(|t| is(t, ',')).filter(|t| !t.is_empty()) {
        let elem = match ty.last() {
            Some(TokenTree::Ident(i)) => Elem::from_name(&i.to_string()),
            _ => None,
        };
        let Some(elem) = elem else {
            let all: Vec<&str> = Elem::ALL.iter().map(|e| e.name()).collect();
            let text: TokenStream = ty.iter().cloned().collect();
            let title = format!("expected an element type for `{name}`, found `{text}`");
            let help = format!("element types: {}", all.join(", "));
            errors.extend(compile_error(&Diagnostic::new(Code::Dispatch, at(ty.first()), title).help(help)));
            continue;
        };
        if known.contains(&elem) {
            let title = format!("`{elem}` is listed twice");
            let twice = Diagnostic::new(Code::Dispatch, at(ty.first()), title).help("remove one of the two");
            errors.extend(compile_error(&twice));
            continue;
        }
        known.push(elem);
        let variant = format_ident!("{elem:?}");
        cases.extend(quote! {
            #krate::ElemType::#variant => {
                #[allow(dead_code)]
                type #name = #(#ty)*;
                ::core::result::Result::Ok({ #(#code)* })
            }
        });
    }
    if known.is_empty() && errors.is_empty() {
        return Err(malformed(list.span_open(), "the list of element types is empty"));
    }
    if !errors.is_empty() {
        // The code is checked for the other types, so that what it uses counts as used.
        return Ok(quote!(match #(#elem)* { #cases _ => { #errors } }));
    }
    let listed = known.iter().map(|e| format_ident!("{e:?}"));
    Ok(quote! {
        match #(#elem)* {
            #cases
            #[allow(unreachable_patterns)]
            __titan_elem => ::core::result::Result::Err(
                #krate::__private::no_arm(__titan_elem, &[#(#krate::ElemType::#listed),*])
            ),
        }
    })
}
