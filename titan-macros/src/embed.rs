//! The nested macro that compiles one instance of a kernel, from its text, to the artifact that is embedded.
//!
//! It is a macro of its own, so that an artifact is found in the cache by the text of its kernel alone, and so that a change of one kernel
//! leaves the expansions of others as they are.

use crate::backends::Gpu;
use crate::ctxt::compile_error;
use crate::lower::Places;
use crate::targets::{self, Chosen};
use crate::warning::{self, Wanted};
use crate::{cache, clock, env, told};
use proc_macro2::{Literal, Span, TokenStream, TokenTree};
use quote::quote;
use titan_core::artifact::{Artifact, Variant};
use titan_core::diag::{Code, Diagnostic};
use titan_core::driver::{self, Compiled};
use titan_core::ir::Loc;
use titan_core::verify::Verified;

/// The artifact of a kernel in text form, as a byte string, or an error if it cannot be compiled for a target. The input is
/// the text, followed by [`targets::request`].
///
/// Where the crate is only checked, nobody reads the artifact: it is empty, and what only compiling for a target finds is told by the next build.
pub(crate) fn compile(input: TokenStream) -> TokenStream {
    if !env::makes_code() {
        return quote!(&[]);
    }
    let mut tokens = input.into_iter();
    let Some(TokenTree::Literal(lit)) = tokens.next().map(ungroup) else { return quote!(&[]) };
    let literal = lit.to_string();
    let Some(text) = literal_text(&literal).or_else(|| Some(syn::parse_str::<syn::LitStr>(&literal).ok()?.value()))
    else {
        return quote!(&[]);
    };
    clock::note(|| kernel_name(&text), 1);
    let asked: Vec<TokenTree> = match tokens.next() {
        Some(TokenTree::Group(g)) => g.stream().into_iter().collect(),
        _ => Vec::new(),
    };
    let chosen = Chosen::of_words(&asked.iter().map(ToString::to_string).collect::<Vec<_>>());
    let bulk = asked.iter().find(|t| t.to_string() == targets::TMA).map(TokenTree::span);
    let mut words = asked.iter().filter_map(|t| if let TokenTree::Literal(l) = t { Some(l.to_string()) } else { None });
    let instance = words.next().and_then(|l| literal_text(&l)).unwrap_or_default();
    let instances = words.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    let wanted = Wanted {
        silenced: asked.iter().filter_map(|t| warning::of_word(&t.to_string())).collect(),
        notes: asked.iter().any(|t| t.to_string() == warning::NOTES),
    };
    let (names, required) = (chosen.key(), bulk.map_or("", |_| targets::TMA));
    let input =
        format!("titan {} {} cpu {names} {required}\n{text}", env!("CARGO_PKG_VERSION"), env!("TITAN_COMPILER"));
    let bytes = cache::get_or_make(cache::of_process(), &input, || artifact(&text, &chosen, bulk.is_some()));
    let name = tokens.next().map_or_else(Span::call_site, |t| t.span());
    let places = Places::of(name, tokens.map(|t| t.span()));
    if let Some((warnings, artifact)) = bytes.strip_prefix(COMPILED).and_then(warning::decode) {
        let mut warnings = warning::found(warnings, artifact, &wanted);
        warnings = told::once(name, &instance, instances, warnings);
        let warnings = warning::tokens(warnings, (&places, name));
        let artifact = Literal::byte_string(artifact);
        return if warnings.is_empty() { quote!(#artifact) } else { quote!({ #warnings #artifact }) };
    }
    told::once(name, &instance, instances, Vec::new());
    // Errors are rare, and the cache does not store their places.
    let errors: Vec<Diagnostic<Span>> = match verified(&text) {
        Err(broken) => vec![broken.map_site(|loc| places.span(loc, name))],
        Ok(kernel) => {
            let refused = told::of_targets(chosen.generated().filter_map(|gpu| {
                let error = code(&kernel, gpu, &chosen).err()?;
                Some((gpu.name, error))
            }));
            let by_threads = bulk.and_then(|span| Some(targets::not_in_bulk(&kernel, &chosen)?.map_site(|_| span)));
            refused.into_iter().map(|e| e.map_site(|loc| places.span(loc, name))).chain(by_threads).collect()
        }
    };
    let errors: TokenStream = errors.iter().filter(|e| told::is_first(name, &instance, e)).map(compile_error).collect();
    quote!({ #errors &[] })
}

/// The value of a string literal. Searches for the escapes of IR text instead of examining every character.
fn literal_text(literal: &str) -> Option<String> {
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(rest.len());
    while let Some((plain, escaped)) = rest.split_once('\\') {
        text.push_str(plain);
        let mut chars = escaped.chars();
        text.push(match chars.next()? {
            'n' => '\n',
            c @ ('"' | '\'' | '\\') => c,
            _ => return Some(syn::parse_str::<syn::LitStr>(literal).ok()?.value()),
        });
        rest = chars.as_str();
    }
    text.push_str(rest);
    Some(text)
}

fn ungroup(t: TokenTree) -> TokenTree {
    match t {
        TokenTree::Group(g) => g.stream().into_iter().next().unwrap_or(TokenTree::Group(g)),
        other => other,
    }
}

/// The first byte of a cache entry: warnings and the artifact follow.
const COMPILED: &[u8] = &[0];
/// The only byte of a cache entry of a kernel that cannot be compiled for a target.
const REFUSED: &[u8] = &[1];

fn artifact(text: &str, chosen: &Chosen, bulk: bool) -> Vec<u8> {
    let cpu = Variant { target: targets::CPU.to_owned(), payload: text.as_bytes().to_vec(), ..Variant::default() };
    let Ok(kernel) = verified(text) else { return REFUSED.to_vec() };
    let mut artifact = Artifact { kernel: kernel.sig.full_name(), variants: vec![cpu], refused: chosen.left_out() };
    if bulk && !chosen.generated().any(targets::has_bulk) {
        return REFUSED.to_vec();
    }
    let mut warnings = Vec::new();
    for gpu in chosen.generated() {
        match code(&kernel, gpu, chosen) {
            Ok(Made::Compiled(made)) if bulk && targets::has_bulk(gpu) && !made.not_in_bulk.is_empty() => {
                return REFUSED.to_vec();
            }
            Ok(Made::Refused(_)) if bulk && targets::has_bulk(gpu) => return REFUSED.to_vec(),
            Ok(Made::Compiled(made)) => {
                if made.variants.is_empty() {
                    let reason = format!("its code would be that for older GPUs: {}", made.not_in_bulk.join("; "));
                    artifact.refused.push((gpu.name.to_owned(), reason));
                }
                artifact.variants.extend(made.variants);
            }
            Ok(Made::Refused(refusal)) => {
                artifact.refused.push((gpu.name.to_owned(), warning::reason(&refusal)));
                warnings.push(warning::no_code(gpu, refusal));
            }
            Err(_) => return REFUSED.to_vec(),
        }
    }
    [COMPILED, &warning::encode(&warnings), &artifact.encode()].concat()
}

/// The kernel of a text that was made of a verified one.
fn verified(text: &str) -> Result<Verified, Diagnostic<Loc>> {
    let kernel = titan_core::text::parse_one(text).map_err(|e| broken(e.iter().map(Diagnostic::text).collect()))?;
    titan_core::verify::verify(kernel).map_err(|e| broken(e.iter().map(Diagnostic::text).collect()))
}

fn broken(errors: Vec<String>) -> Diagnostic<Loc> {
    let title = format!("a kernel that was verified is rejected afterwards: {}; please report it", errors.join("; "));
    Diagnostic::new(Code::Internal, Loc::default(), title)
}

/// What is made of a kernel for a target.
enum Made {
    /// Without variants, the code would be that for an older target.
    Compiled(Compiled),
    /// A target that the kernel does not list does not take it.
    Refused(Diagnostic<Loc>),
}

/// The variants of a kernel for one of the targets for which code is generated. Line numbers are relative to the kernel's first line, so that the bytes do not depend on its place in the file.
///
/// # Errors
/// Returns an error if the kernel must have code for the target, and it cannot be compiled for it.
fn code(kernel: &Verified, gpu: &Gpu, chosen: &Chosen) -> Result<Made, Diagnostic<Loc>> {
    let Some(machine) = gpu.machine() else {
        return Err(broken(vec![format!("there is no back end for {}", gpu.name)]));
    };
    let make = if chosen.is_alone(gpu) { driver::compile_alone } else { driver::explained };
    match make(kernel, machine, Some((kernel.sig.name.as_str(), 1))) {
        Ok(made) => Ok(Made::Compiled(made)),
        Err(refused) if chosen.needs(gpu) => Err(targets::refusal(kernel, gpu, &refused)),
        Err(refused) => Ok(Made::Refused(targets::refused(kernel, &refused))),
    }
}

/// The name after `kernel @`, for messages.
fn kernel_name(text: &str) -> String {
    let rest = text.split_once('@').map_or("", |(_, r)| r);
    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}
