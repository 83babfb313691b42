//! The entry points, over `proc_macro2` so that tests can call them.

use crate::ast::{ExprKind, Function, KernelItem, Stmt, TypeKind, TypeRef};
use crate::chain::{self, Kind, Published, State};
use crate::clock::{self, Part};
use crate::compile as compiler;
use crate::consts;
use crate::ctxt::{Ctxt, Reports, compile_error};
use crate::expand::{Expansion, fallback, imports, misplaced, prelude, without_body};
use crate::hygiene::{self, Names};
use crate::items::{self, Items};
use crate::judge::of as judge;
use crate::lower::Places;
use crate::lower::host::undeclared;
use crate::names::{self, Companion, text_of};
use crate::shadow::Shadow;
use crate::{cache, depth, method, parse, pipeline, place, resolve, signature, targets, usage};
use proc_macro2::{Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use titan_core::artifact::{Artifact, Variant};
use titan_core::diag::{Code, Diagnostic};
use titan_core::driver;
use titan_core::ir::Loc;
use titan_core::verify::Verified;

/// `#[titan::kernel(attr)] item`
pub(crate) fn kernel(attr: TokenStream, item: TokenStream) -> TokenStream {
    if let Some(refused) = too_deep([&attr, &item]) {
        return refused;
    }
    let cx = Ctxt::new();
    if place::in_an_impl(&cx, "a kernel", &item) {
        return misplaced(&facade(), &cx.finish().ours, item, true);
    }
    cx.finish();
    kernel_of(Names::of_tokens(), attr, item)
}

/// A kernel with these names.
pub(crate) fn kernel_of(names: Names, attr: TokenStream, item: TokenStream) -> TokenStream {
    let cx = Ctxt::new();
    let parsed = clock::time(Part::Parse, || parse::kernel(&cx, names, attr.clone(), item.clone()));
    let Some(mut parsed) = parsed else { return fallback(&facade(), &cx.finish().ours, item) };
    clock::note(|| parsed.func.name.to_string(), 0);
    let krate = parsed.config.krate.clone().unwrap_or_else(facade);
    let whole = hygiene::Item { kind: Kind::Kernel, krate: &krate, attr: &attr, item: &item };
    if !cx.any()
        && let Some(question) = parsed.func.names.question(&whole)
    {
        cx.finish();
        return question;
    }
    let companions = compiler::resolve(&cx, &mut parsed);
    let asks = asks(&companions);
    if companions.is_empty() || cx.has_errors() {
        return finish(cx, &krate, parsed, &Items::default(), item, &[]);
    }
    cx.finish();
    // The public items exist even if a companion does not, so that code that uses them has no further errors.
    let surface =
        Expansion { krate: &krate, item: &parsed, items: &Items::default(), asks: &asks, reports: &Reports::default() }
            .surface();
    let mut state = State::new(Kind::Kernel, krate, attr, item, &parsed.func.names, &companions);
    let chain = state.ask().unwrap_or_default();
    quote!(#surface #chain)
}

/// The companions' paths and their places in the kernel.
fn asks(companions: &[Companion]) -> Vec<(String, Span)> {
    companions.iter().map(|c| (c.key.clone(), c.span())).collect()
}

/// All companions have answered, or there are none. With `asks`, the surface has been emitted before.
fn finish(
    cx: Ctxt,
    krate: &TokenStream,
    item: KernelItem,
    items: &Items,
    tokens: TokenStream,
    asks: &[(String, Span)],
) -> TokenStream {
    let compiled = if cx.has_errors() { Vec::new() } else { compiler::compile(&cx, &item, items) };
    clock::note(|| item.func.name.to_string(), compiled.len());
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
    if let Some(refused) = too_deep([attr, &item]) {
        return refused;
    }
    let cx = Ctxt::new();
    let krate = crate_of(&cx, attr);
    if place::in_an_impl(&cx, "a device function", &item) {
        return misplaced(&krate, &cx.finish().ours, item, false);
    }
    cx.finish();
    device_of(Names::of_tokens(), attr, item)
}

/// A device function with these names.
pub(crate) fn device_of(names: Names, attr: &TokenStream, item: TokenStream) -> TokenStream {
    let cx = Ctxt::new();
    let krate = crate_of(&cx, attr);
    let parsed = clock::time(Part::Parse, || parse::device(&cx, names, item.clone()));
    let Some((attrs, vis, mut func)) = parsed else {
        // Kernels that call it get no second error that it does not exist.
        let named = without_body(&item).map(|f| (f.sig.ident, matches!(f.vis, syn::Visibility::Public(_))));
        let published = named.map(|(name, is_pub)| Published { name: &name, is_pub, answer: quote!(broken) }.tokens());
        let (errors, used) = (errors(cx), prelude());
        return quote!(#errors #used #published);
    };
    clock::note(|| func.name.to_string(), 0);
    let whole = hygiene::Item { kind: Kind::Device, krate: &krate, attr, item: &item };
    if !cx.any()
        && let Some(question) = func.names.question(&whole)
    {
        cx.finish();
        return question;
    }
    let companions = resolve::resolve(&cx, &mut func, &[]);
    if let Some(itself) = companions.iter().find(|c| func.name == text_of(&c.key)) {
        let title = format!("`{}` calls itself, but device functions are inlined", func.name);
        cx.error_help(Code::DeviceFn, itself.span(), title, "write a loop");
    }
    pipeline::check_device(&cx, &func);
    if let Some(semicolon) = dropped_result(&func) {
        let title = format!("`{}` returns no value: its last statement ends with `;`", func.name);
        cx.error_help(Code::Arguments, semicolon, title, "remove the semicolon");
    }
    let mut shadow = Shadow::new(&krate, &func);
    let body = shadow.body();
    let params = shadow.params();
    let ret = func.ret.as_ref().map(|t| (t.span, shadow.ty(t))).map(|(span, t)| quote_spanned!(span=> -> #t));
    for f in &shadow.fresh {
        let help = "add a constant parameter for the result, which the caller passes";
        let title = "a device function cannot compute with generic parameters in types";
        cx.error_help(Code::DeviceFn, f.expr.span, title, help);
    }
    let is_pub = vis.to_string() == "pub";
    if cx.has_errors() {
        let published = Published { name: &func.name, is_pub, answer: quote!(broken) }.tokens();
        // Its callers get no second error that it does not exist.
        let known = !cx.has(Code::Parameter) && shadow.fresh.is_empty();
        let (name, generics) = (&func.name, func.generics.iter().map(|g| &g.tokens));
        let stub = known.then(|| {
            quote! {
                #[allow(unused, clippy::all, clippy::pedantic)]
                #vis fn #name<#(#generics),*>(#(#params),*) #ret { ::core::unreachable!() }
            }
        });
        let (errors, used) = (errors(cx), prelude());
        return quote!(#errors #used #stub #published);
    }
    cx.finish();
    let (name, generics) = (&func.name, func.generics.iter().map(|g| &g.tokens));
    let function = quote! {
        #(#attrs)*
        #[allow(unstable_name_collisions, unused_parens, unused_braces, unused_qualifications, dead_code, clippy::all, clippy::pedantic)]
        #vis fn #name<#(#generics),*>(#(#params),*) #ret #body
    };
    let (imports, judge) = (imports(&krate, &func), judge(&krate, &func, &[]));
    let mut state =
        State::new(Kind::Device, krate.clone(), quote!(#krate), chain::strip_docs(item), &func.names, &companions);
    let publish = state.ask().unwrap_or_else(|| chain::publish(&state));
    quote!(#function #imports #judge #publish)
}

/// The semicolon after an expression that looks like the result of a function.
fn dropped_result(func: &Function) -> Option<Span> {
    let Some(Stmt::Expr { expr, semi: Some(semicolon) }) = func.body.stmts.last() else { return None };
    let is_unit = |t: &TypeRef| matches!(&t.kind, TypeKind::Tuple(list) if list.is_empty());
    let has_value = matches!(
        expr.kind,
        ExprKind::Path(..)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Paren(..)
            | ExprKind::As(..)
            | ExprKind::Tuple(..)
            | ExprKind::Call { .. }
            | ExprKind::Method { .. }
    );
    (has_value && func.ret.as_ref().is_some_and(|t| !is_unit(t))).then_some(*semicolon)
}

/// `#[titan::constant] const ..`
pub(crate) fn constant(attr: &TokenStream, item: TokenStream) -> TokenStream {
    if let Some(refused) = too_deep([attr, &item]) {
        return refused;
    }
    let cx = Ctxt::new();
    crate_of(&cx, attr);
    if place::in_an_impl(&cx, "a constant of kernels", &item) {
        let errors = errors(cx);
        return quote!(#errors #item);
    }
    let parsed = match syn::parse2::<syn::ItemConst>(item.clone()) {
        Ok(parsed) => parsed,
        Err(e) => {
            cx.error(Code::Syntax, e.span(), e.to_string());
            return errors(cx);
        }
    };
    if chain::constant_elem(&parsed).is_none() {
        let help = "a constant is an integer of 8 bits or more, `f32`, `f64` or `bool`";
        cx.error_help(Code::Parameter, parsed.ident.span(), "kernels cannot use a constant of this type", help);
        let published = Published {
            name: &parsed.ident,
            is_pub: matches!(parsed.vis, syn::Visibility::Public(_)),
            answer: quote!(broken),
        };
        let (published, errors) = (published.tokens(), errors(cx));
        return quote!(#item #errors #published);
    }
    let mut expr = parse::constant_expr(&cx, &parsed.expr);
    let companions = resolve::resolve_constant(&cx, &mut expr);
    if let Some(c) = companions.first() {
        let help = "write the value instead";
        cx.error_help(
            Code::ConstEval,
            expr.span,
            format!("the constant uses `{}`, which kernels cannot use", text_of(&c.key)),
            help,
        );
    }
    let is_pub = matches!(parsed.vis, syn::Visibility::Public(_));
    let bare = chain::strip_docs(item.clone());
    let answer = if cx.has_errors() { quote!(broken) } else { quote!(constant { #bare }) };
    let published = Published { name: &parsed.ident, is_pub, answer }.tokens();
    let (errors, used) = (errors(cx), prelude());
    match parse::with_parentheses(parsed.expr.to_token_stream()) {
        Some(expr) => {
            let host = syn::ItemConst { expr: Box::new(syn::Expr::Verbatim(expr)), ..parsed };
            quote!(#host #errors #published #used)
        }
        None => quote!(#item #errors #published #used),
    }
}

/// The error of tokens that are nested deeper than the compiler's stack may reach.
fn too_deep(tokens: [&TokenStream; 2]) -> Option<TokenStream> {
    let span = tokens.into_iter().find_map(|t| depth::exceeded(t.clone()))?;
    let diag =
        Diagnostic::new(Code::Syntax, span, "this expression is nested too deeply").help("bind parts of it by `let`");
    Some(compile_error(&diag))
}

/// A companion has answered, or rustc has compared names.
pub(crate) fn step(state: TokenStream) -> TokenStream {
    if hygiene::is_answer(&state) {
        return hygiene::answered(state);
    }
    State::read(state).map_or_else(TokenStream::new, resume)
}

/// Called in place of a companion that does not exist, with the same tokens.
pub(crate) fn missing(call: TokenStream) -> TokenStream {
    let mut it = call.into_iter().skip_while(|t| !matches!(t, TokenTree::Punct(p) if p.as_char() == ','));
    it.next();
    let Some(mut state) = State::read(it.collect()) else { return TokenStream::new() };
    state.answers.push(quote!(missing));
    resume(state)
}

/// Asks the next companion, or ends the expansion.
fn resume(mut state: State) -> TokenStream {
    if let Some(next) = state.ask() {
        return next;
    }
    if state.kind == Kind::Device {
        return chain::publish(&state);
    }
    let cx = Ctxt::new();
    let parsed = clock::time(Part::Parse, || {
        let names = Names::known(state.names.clone());
        let mut item = parse::kernel(&cx, names, state.attr.clone(), state.item.clone())?;
        let asks = asks(&compiler::resolve(&cx, &mut item));
        Some((item, asks))
    });
    let Some((item, asks)) = parsed else { return errors(cx) };
    let symbols = signature::symbols(&item);
    let place = |key: &String| asks.iter().find(|(k, _)| k == key).map_or_else(Span::call_site, |(_, s)| *s);
    // A shape name hides a constant of the same name.
    for key in state.keys.iter().filter(|key| symbols.iter().any(|s| s == text_of(key))) {
        let (at, key) = (place(key), text_of(key));
        let error = Diagnostic::new(Code::ConstEval, at, items::not_compiled_in(key));
        cx.push(error.help(items::extent_help(key)).help(items::constant_help(key)));
    }
    for key in state.missing().filter(|key| !symbols.iter().any(|s| s == text_of(key))) {
        cx.push(match signature::mentioned(&item, key) {
            Some(span) => undeclared(text_of(key), span),
            None => not_for_kernels(text_of(key), place(key)),
        });
    }
    match chain::items(&state.keys, &state.answers) {
        Some(items) => finish(cx, &state.krate, item, &items, state.item, &asks),
        // The error has been reported at the broken item.
        None => {
            let reports = cx.finish();
            Expansion { krate: &state.krate, item: &item, items: &Items::default(), asks: &asks, reports: &reports }
                .broken(&reports.ours)
        }
    }
}

/// The error of a function or constant that has no companion, or that does not exist; the macro cannot distinguish the two.
fn not_for_kernels(path: &str, span: Span) -> Diagnostic<Span> {
    let name = path.rsplit("::").next().unwrap_or(path);
    if names::is_constant_name(name) {
        let title = format!("`{path}` is not a constant that kernels can use");
        if consts::is_mathematical(name) {
            let help = format!("write constants of the standard library with their path: `std::f32::consts::{name}`");
            return Diagnostic::new(Code::NotForKernels, span, title).help(help);
        }
        let diag = Diagnostic::new(Code::NotForKernels, span, title);
        let marked = "mark it `#[titan::constant]`, and import it where the kernel is";
        // A single name may be meant as an extent.
        let diag = diag.help(format!("if it is a constant, {marked}"));
        let extent = || format!("if it is an extent, name it on a tensor: `#[shape({name})] x: &Tensor<f32, 1>`");
        return if name == path { diag.help(extent()) } else { diag };
    }
    let title = format!("`{path}` is not a function that kernels can call");
    let diag = Diagnostic::new(Code::NotForKernels, span, title);
    if let Some(f) = names::similar_function(name) {
        return diag.help(format!("did you mean `{f}`?"));
    }
    if method::is_of_values(name) {
        return diag.help(match usage::example(name) {
            Some(example) => format!("it is a method: `{example}`"),
            None => format!("it is a method: `x.{name}()`"),
        });
    }
    if let Some(help) = usage::foreign_function(name) {
        return diag.help(help);
    }
    diag.help(format!(
        "kernels can call functions that are marked `#[titan::device]` and in scope; if `{name}` is, fix the error in it first"
    ))
}

/// The artifact of a kernel in text form, as a byte string, or an error if it cannot be compiled for a target. The input is
/// the text, followed by [`targets::request`].
pub(crate) fn compile(input: TokenStream) -> TokenStream {
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
    let chosen: Vec<&'static str> = asked.iter().filter_map(|t| targets::gpu(&t.to_string())).collect();
    let bulk = asked.iter().find(|t| t.to_string() == targets::TMA).map(TokenTree::span);
    let names = chosen.iter().copied().chain(bulk.map(|_| targets::TMA)).collect::<Vec<_>>().join(" ");
    let input = format!("titan {} {} cpu {names}\n{text}", env!("CARGO_PKG_VERSION"), env!("TITAN_COMPILER"));
    let bytes = cache::get_or_make(cache::of_process(), &input, || artifact(&text, &chosen, bulk.is_some()));
    let Some((REFUSED, _)) = bytes.split_first() else {
        let bytes = Literal::byte_string(bytes.get(1..).unwrap_or_default());
        return quote!(#bytes);
    };
    // Errors are rare, and the cache does not store their places.
    let name = tokens.next().map_or_else(Span::call_site, |t| t.span());
    let places = Places::of(name, tokens.map(|t| t.span()));
    let errors: Vec<Diagnostic<Span>> = match verified(&text) {
        Err(broken) => vec![broken.map_site(|loc| places.span(loc, name))],
        Ok(kernel) => {
            let refused = targets::generated(&chosen).filter_map(|target| code(&kernel, target, &chosen).err());
            let by_threads = bulk.and_then(|span| Some(targets::not_in_bulk(&kernel, &chosen)?.map_site(|_| span)));
            refused.map(|e| e.map_site(|loc| places.span(loc, name))).chain(by_threads).collect()
        }
    };
    let errors: TokenStream = errors.iter().map(compile_error).collect();
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

/// The first byte of a cache entry: the artifact follows.
const COMPILED: u8 = 0;
/// The first byte of a cache entry of a kernel that cannot be compiled for a target.
const REFUSED: &u8 = &1;

fn artifact(text: &str, chosen: &[&str], bulk: bool) -> Vec<u8> {
    let cpu = Variant { target: targets::CPU.to_owned(), payload: text.as_bytes().to_vec(), ..Variant::default() };
    let mut artifact = Artifact { kernel: kernel_name(text), variants: vec![cpu], refused: targets::left_out(chosen) };
    let Ok(kernel) = verified(text) else { return vec![*REFUSED] };
    if bulk && targets::not_in_bulk(&kernel, chosen).is_some() {
        return vec![*REFUSED];
    }
    for target in targets::generated(chosen) {
        match code(&kernel, target, chosen) {
            Ok(Ok(variants)) => artifact.variants.extend(variants),
            Ok(Err(reason)) => artifact.refused.push((target.to_owned(), reason)),
            Err(_) => return vec![*REFUSED],
        }
    }
    [vec![COMPILED], artifact.encode()].concat()
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

/// The variants of a kernel for one of the targets for which code is generated, or the reason why it has none of its own there. Line numbers
/// are relative to the kernel's first line, so that the bytes do not depend on its place in the file.
///
/// # Errors
/// Returns an error if the target is one of the kernel's, and it cannot be compiled for it.
fn code(kernel: &Verified, target: &str, chosen: &[&str]) -> Result<Result<Vec<Variant>, String>, Diagnostic<Loc>> {
    let machine = titan_nv::Machine::from_name(target).map_err(|e| broken(vec![e.to_string()]))?;
    let make = if targets::is_alone(target, chosen) { driver::compile_alone } else { driver::compile };
    match make(kernel, machine, Some((kernel.sig.name.as_str(), 1))) {
        Ok(variants) if variants.is_empty() => Ok(Err(targets::nothing_new(kernel, target))),
        Ok(variants) => Ok(Ok(variants)),
        Err(refused) if chosen.contains(&target) => Err(targets::refusal(kernel, target, &refused)),
        Err(refused) => Ok(Err(targets::title(kernel, &refused))),
    }
}

/// The name after `kernel @`, for messages.
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
            cx.push(Diagnostic::new(
                Code::Attribute,
                key.span(),
                "the only argument of this attribute is `crate = path`",
            ));
            facade()
        }
    }
}

fn errors(cx: Ctxt) -> TokenStream {
    cx.finish().ours.iter().map(compile_error).collect()
}
