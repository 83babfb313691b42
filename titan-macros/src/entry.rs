//! The entry points, over `proc_macro2` so that tests can call them.

use crate::ast::KernelItem;
use crate::chain::{self, Kind, Published, State};
use crate::compile as compiler;
use crate::ctxt::{Ctxt, Reports, compile_error};
use crate::expand::{Expansion, fallback};
use crate::items::Items;
use crate::shadow::Shadow;
use crate::{cache, env, parse, resolve};
use crate::resolve::Companion;
use proc_macro2::{Literal, Span, TokenStream, TokenTree};
use quote::quote;
use titan_core::artifact::{Artifact, Variant};
use titan_core::diag::{Code, Diagnostic};

/// `#[titan::kernel(attr)] item`
pub(crate) fn kernel(attr: TokenStream, item: TokenStream) -> TokenStream {
    let cx = Ctxt::new();
    let Some(mut parsed) = parse::kernel(&cx, attr.clone(), item.clone()) else {
        return fallback(&facade(), &cx.finish().ours, item);
    };
    let krate = parsed.config.krate.clone().unwrap_or_else(facade);
    let companions = compiler::resolve(&cx, &mut parsed);
    let asks = asks(&companions);
    if companions.is_empty() || cx.has_errors() {
        return finish(cx, &krate, parsed, &Items::default(), item, &[]);
    }
    cx.finish();
    // What others name exists even if a companion does not.
    let surface = Expansion { krate: &krate, item: &parsed, items: &Items::default(), asks: &asks, reports: &Reports::default() }.surface();
    let mut state = State::new(Kind::Kernel, krate, attr, item, &companions);
    let chain = state.ask().unwrap_or_default();
    quote!(#surface #chain)
}

/// The companions' paths and where they stand.
fn asks(companions: &[Companion]) -> Vec<(String, Span)> {
    companions.iter().map(|c| (c.key.clone(), c.span())).collect()
}

/// All companions have answered, or there are none. With `asks`, the surface has been emitted before.
fn finish(cx: Ctxt, krate: &TokenStream, item: KernelItem, items: &Items, tokens: TokenStream, asks: &[(String, Span)]) -> TokenStream {
    let compiled = if cx.has_errors() { Vec::new() } else { compiler::compile(&cx, &item, items) };
    let reports = cx.finish();
    let ours = &reports.ours;
    let expansion = Expansion { krate, item: &item, items, asks, reports: &reports };
    match (ours.is_empty(), asks.is_empty()) {
        (true, true) => {
            let (surface, bodies) = (expansion.surface(), expansion.bodies(&compiled));
            quote!(#surface #bodies)
        }
        (true, false) => expansion.bodies(&compiled),
        (false, true) => fallback(krate, ours, tokens),
        (false, false) => expansion.broken(ours),
    }
}

/// `#[titan::device] fn ..`
pub(crate) fn device(attr: &TokenStream, item: TokenStream) -> TokenStream {
    let cx = Ctxt::new();
    let krate = crate_of(&cx, attr);
    let Some((attrs, vis, mut func)) = parse::device(&cx, item.clone()) else {
        return errors(cx);
    };
    let companions = resolve::resolve(&cx, &mut func, &[]);
    if let Some(itself) = companions.iter().find(|c| func.name == c.key.as_str()) {
        let title = format!("`{}` calls itself, but device functions are inlined", func.name);
        cx.error_help(Code::DeviceFn, itself.span(), title, "write a loop");
    }
    let mut shadow = Shadow::new(&krate, &func);
    let body = shadow.body();
    let params = shadow.params();
    let ret = func.ret.as_ref().map(|t| shadow.ty(t)).map(|t| quote!(-> #t));
    for f in &shadow.fresh {
        let help = "make it a constant parameter of its own: stable Rust has no arithmetic there";
        cx.error_help(Code::DeviceFn, f.expr.span, "arithmetic of generic parameters in a device function", help);
    }
    let is_pub = vis.to_string() == "pub";
    if cx.has_errors() {
        let published = Published { name: &func.name, is_pub, answer: quote!(broken) }.tokens();
        // Who calls it is not told that it does not exist.
        let known = !cx.has(Code::Parameter) && shadow.fresh.is_empty();
        let (name, generics) = (&func.name, func.generics.iter().map(|g| &g.tokens));
        let stub = known.then(|| quote! {
            #[allow(unused, clippy::all, clippy::pedantic)]
            #vis fn #name<#(#generics),*>(#(#params),*) #ret { ::core::unreachable!() }
        });
        let errors = errors(cx);
        return quote!(#errors #stub #published);
    }
    cx.finish();
    let (name, generics) = (&func.name, func.generics.iter().map(|g| &g.tokens));
    let function = quote! {
        #(#attrs)*
        #[allow(unstable_name_collisions, unused_parens, unused_braces, unused_qualifications, dead_code, clippy::all, clippy::pedantic)]
        #vis fn #name<#(#generics),*>(#(#params),*) #ret #body
    };
    let mut state = State::new(Kind::Device, krate.clone(), quote!(#krate), strip_docs(item), &companions);
    let publish = state.ask().unwrap_or_else(|| publish(&state));
    quote!(#function #publish)
}

/// Makes the companion of a device function whose own companions have answered.
fn publish(state: &State) -> TokenStream {
    let Ok(item) = syn::parse2::<syn::ItemFn>(state.item.clone()) else { return TokenStream::new() };
    let is_pub = matches!(item.vis, syn::Visibility::Public(_));
    let answer = chain::device_answer(&state.item, &state.keys, &state.answers);
    Published { name: &item.sig.ident, is_pub, answer }.tokens()
}

/// `#[titan::constant] const ..`
pub(crate) fn constant(attr: &TokenStream, item: TokenStream) -> TokenStream {
    let cx = Ctxt::new();
    crate_of(&cx, attr);
    let parsed = match syn::parse2::<syn::ItemConst>(item.clone()) {
        Ok(parsed) => parsed,
        Err(e) => {
            cx.error(Code::Syntax, e.span(), e.to_string());
            return errors(cx);
        }
    };
    if chain::constant_elem(&parsed).is_none() {
        let help = "integers of 8 bits and more, `f32`, `f64` and `bool`";
        cx.error_help(Code::Parameter, parsed.ident.span(), "a constant of a type that kernels do not have", help);
        let published = Published { name: &parsed.ident, is_pub: matches!(parsed.vis, syn::Visibility::Public(_)), answer: quote!(broken) };
        let (published, errors) = (published.tokens(), errors(cx));
        return quote!(#item #errors #published);
    }
    let mut expr = parse::constant_expr(&cx, &parsed.expr);
    let companions = resolve::resolve_constant(&cx, &mut expr);
    if let Some(c) = companions.first() {
        let help = "write its value out";
        cx.error_help(Code::ConstEval, expr.span, format!("the constant names `{}`, which kernels do not see", c.key), help);
    }
    let is_pub = matches!(parsed.vis, syn::Visibility::Public(_));
    let bare = strip_docs(item.clone());
    let answer = if cx.has_errors() { quote!(broken) } else { quote!(constant { #bare }) };
    let published = Published { name: &parsed.ident, is_pub, answer }.tokens();
    let errors = errors(cx);
    quote!(#item #errors #published)
}

/// A companion has answered.
pub(crate) fn step(state: TokenStream) -> TokenStream {
    let Some(mut state) = State::read(state) else { return TokenStream::new() };
    if let Some(next) = state.ask() {
        return next;
    }
    if state.kind == Kind::Device {
        return publish(&state);
    }
    let cx = Ctxt::new();
    let Some(mut item) = parse::kernel(&cx, state.attr.clone(), state.item.clone()) else { return errors(cx) };
    let asks = asks(&compiler::resolve(&cx, &mut item));
    match chain::items(&state.keys, &state.answers) {
        Some(items) => finish(cx, &state.krate, item, &items, state.item, &asks),
        // What is broken has been reported where it stands.
        None => {
            let reports = cx.finish();
            Expansion { krate: &state.krate, item: &item, items: &Items::default(), asks: &asks, reports: &reports }.broken(&reports.ours)
        }
    }
}

/// The artifact of a kernel in text form, as a byte string.
pub(crate) fn compile(text: TokenStream) -> TokenStream {
    let literal = text.into_iter().next();
    let Some(TokenTree::Literal(lit)) = literal.clone().map(ungroup) else { return quote!(&[]) };
    let Ok(text) = syn::parse_str::<syn::LitStr>(&lit.to_string()).map(|s| s.value()) else { return quote!(&[]) };
    let input = format!("titan {} cpu\n{text}", env!("CARGO_PKG_VERSION"));
    let bytes = cache::get_or_make(env::cache_dir().as_deref(), &input, || artifact(&text));
    let bytes = Literal::byte_string(&bytes);
    quote!(#bytes)
}

fn ungroup(t: TokenTree) -> TokenTree {
    match t {
        TokenTree::Group(g) => g.stream().into_iter().next().unwrap_or(TokenTree::Group(g)),
        other => other,
    }
}

fn artifact(text: &str) -> Vec<u8> {
    let cpu = Variant {
        target: "cpu".to_owned(),
        config: Vec::new(),
        assumptions: Vec::new(),
        shared_bytes: 0,
        threads: 0,
        notes: Vec::new(),
        sites: Vec::new(),
        payload: text.as_bytes().to_vec(),
    };
    Artifact { kernel: kernel_name(text), variants: vec![cpu], refused: Vec::new() }.encode()
}

/// The name after `kernel @`, for people.
fn kernel_name(text: &str) -> String {
    let rest = text.split_once('@').map_or("", |(_, r)| r);
    rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The path of the facade, unless an attribute names another.
fn facade() -> TokenStream {
    quote!(::titan)
}

/// `crate = path` of a device function or constant.
fn crate_of(cx: &Ctxt, attr: &TokenStream) -> TokenStream {
    let mut it = attr.clone().into_iter();
    let Some(key) = it.next() else { return facade() };
    let is_crate = key.to_string() == "crate" && matches!(it.next(), Some(TokenTree::Punct(p)) if p.as_char() == '=');
    match syn::parse2::<syn::Path>(it.collect()) {
        Ok(path) if is_crate => quote!(#path),
        _ => {
            cx.push(Diagnostic::new(Code::Attribute, key.span(), "this attribute takes nothing but `crate = path`"));
            facade()
        }
    }
}

/// Doc comments are of no use to a companion.
fn strip_docs(item: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    let mut it = item.into_iter().peekable();
    while let Some(t) = it.next() {
        let is_attribute = matches!(&t, TokenTree::Punct(p) if p.as_char() == '#') && matches!(it.peek(), Some(TokenTree::Group(_)));
        if is_attribute {
            it.next();
            continue;
        }
        out.extend([t]);
        break;
    }
    out.extend(it);
    out
}

fn errors(cx: Ctxt) -> TokenStream {
    cx.finish().ours.iter().map(compile_error).collect()
}

