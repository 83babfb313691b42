//! The entry points, over `proc_macro2` so that tests can call them.

use crate::ast::{Callee, Expr, ExprKind, Function, KernelItem, Stmt, TypeKind, TypeRef};
use crate::chain::{self, Kind, Published, State};
use crate::clock::{self, Part};
use crate::compile as compiler;
use crate::consts;
use crate::ctxt::{Ctxt, Reports, compile_error};
use crate::expand::{Expansion, fallback, imports, misplaced, prelude, without_body};
use crate::hygiene::{self, Names};
use crate::items::{self, Items};
use crate::judge::of as judge;
use crate::lower::host::undeclared;
use crate::names::{self, Companion, Needed, text_of};
use crate::shadow::{Literals, Shadow};
use crate::{depth, method, nearby, parse, pipeline, place, resolve, signature, told, usage};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use titan_core::diag::{Code, Diagnostic};

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
        // Calls name no instance where there is one, so that rustc must see which there are.
        (false, true) if expansion.has_instances(&compiled) => {
            let (used, surface, broken) = (prelude(), expansion.surface(), expansion.broken(ours, &compiled));
            quote!(#used #surface #broken)
        }
        (false, true) => fallback(krate, ours, tokens),
        (false, false) if expansion.has_instances(&compiled) => expansion.broken(ours, &compiled),
        (false, false) => expansion.broken(ours, &[]),
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
    let companions = resolve::resolve(&cx, Kind::Device, &mut func, &[]);
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
    shadow.literals = Literals::of(&func);
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
        let known =
            !cx.has(Code::Parameter) && !cx.has(Code::Generics) && !cx.has(Code::IndexType) && shadow.fresh.is_empty();
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
    let krate = crate_of(&cx, attr);
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
        let help = "a constant is an integer of 8 bits or more, `f32`, `f64` or `bool`, or an array of these";
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
    // rustc reports it.
    let is_cyclic = companions.iter().any(|c| parsed.ident == text_of(&c.key));
    if let Some((called, span)) = first_call(&expr) {
        let title = format!("the constant calls `{called}`, but TITAN evaluates no functions");
        cx.error_help(Code::ConstEval, span, title, "write the value, or arithmetic of other marked constants");
    }
    let is_pub = matches!(parsed.vis, syn::Visibility::Public(_));
    let published = if cx.has_errors() || is_cyclic {
        Published { name: &parsed.ident, is_pub, answer: quote!(broken) }.tokens()
    } else {
        let bare = chain::strip_docs(item.clone());
        let mut state = State::new(Kind::Constant, krate.clone(), quote!(#krate), bare, &Names::by_text(), &companions);
        state.ask().unwrap_or_else(|| chain::publish(&state))
    };
    let (errors, used) = (errors(cx), prelude());
    match parse::with_parentheses(parsed.expr.to_token_stream()) {
        Some(expr) => {
            let host = syn::ItemConst { expr: Box::new(syn::Expr::Verbatim(expr)), ..parsed };
            quote!(#host #errors #published #used)
        }
        None => quote!(#item #errors #published #used),
    }
}

/// The first call of a function that is not the language's, in a constant: its path, and where it is.
fn first_call(expr: &Expr) -> Option<(String, Span)> {
    if let ExprKind::Call { path, callee: Callee::Device(_), .. } = &expr.kind {
        return Some((path.text(), path.span()));
    }
    let mut found = None;
    expr.children(&mut |e| found = found.take().or_else(|| first_call(e)));
    found
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
    if let Kind::Device | Kind::Constant = state.kind {
        return chain::publish(&state);
    }
    let cx = Ctxt::new();
    let parsed = clock::time(Part::Parse, || {
        let names = Names::known(state.names.clone());
        let mut item = parse::kernel(&cx, names, state.attr.clone(), state.item.clone())?;
        let companions = compiler::resolve(&cx, &mut item);
        Some((item, companions))
    });
    let Some((item, companions)) = parsed else { return errors(cx) };
    let asks = asks(&companions);
    report_missing(&cx, &item, &state, &companions);
    match chain::items(&state.keys, &state.answers) {
        Some(items) => finish(cx, &state.krate, item, &items, state.item, &asks),
        // The error has been reported at the broken item.
        None => {
            let reports = cx.finish();
            Expansion { krate: &state.krate, item: &item, items: &Items::default(), asks: &asks, reports: &reports }
                .broken(&reports.ours, &[])
        }
    }
}

/// Reports the items for which no companion answered.
fn report_missing(cx: &Ctxt, item: &KernelItem, state: &State, companions: &[Companion]) {
    let symbols = signature::symbols(item);
    let is_symbol = |key: &String| symbols.iter().any(|s| s == text_of(key));
    let of = |key: &String| companions.iter().find(|c| c.key == *key);
    let place = |key: &String| of(key).map_or_else(Span::call_site, Companion::span);
    // A shape name hides a constant of the same name.
    for key in state.keys.iter().filter(|key| is_symbol(key)) {
        let (at, key) = (place(key), text_of(key));
        let error = Diagnostic::new(Code::ConstEval, at, items::not_compiled_in(key));
        cx.push(error.help(items::extent_help(key)).help(items::constant_help(key)));
    }
    // What waits for an item that is not marked has been reported there.
    let is_waiting =
        |key: &String| told::is_waiting(text_of(key).rsplit("::").next().unwrap_or_default().trim_start_matches("r#"));
    for key in state.missing().filter(|key| !is_symbol(key) && !is_waiting(key)) {
        let (at, text) = (place(key), text_of(key));
        cx.push(match (signature::mentioned(item, key), of(key).map_or(Needed::Constant, |c| c.needed)) {
            (Some(span), _) => undeclared(text, span),
            (None, Needed::Function) => missing_function(text, at),
            (None, Needed::Constant) => missing_constant(text, at),
        });
    }
}

/// The error of a constant that has no companion, or that does not exist; the macro cannot distinguish the two.
fn missing_constant(path: &str, span: Span) -> Diagnostic<Span> {
    let name = path.rsplit("::").next().unwrap_or(path);
    let title = format!("`{path}` is not a constant that kernels can use");
    if consts::is_mathematical(name) {
        let help = format!("write constants of the standard library with their path: `std::f32::consts::{name}`");
        return Diagnostic::new(Code::NotForKernels, span, title).help(help);
    }
    let diag = Diagnostic::new(Code::NotForKernels, span, title);
    let marked = "mark it, and the constants that it uses, `#[titan::constant]`, and import it where the kernel is";
    // A single name may be meant as an extent.
    let diag = diag.help(format!("if it is a constant, {marked}"));
    let extent = || format!("if it is an extent, name it on a tensor: `#[shape({name})] x: &Tensor<f32, 1>`");
    if name == path { diag.help(extent()) } else { diag }
}

/// The error of a function that has no companion, or that does not exist.
fn missing_function(path: &str, span: Span) -> Diagnostic<Span> {
    let name = path.rsplit("::").next().unwrap_or(path);
    let title = format!("`{path}` is not a function that kernels can call");
    let diag = Diagnostic::new(Code::NotForKernels, span, title);
    if nearby::has_function(name, span) {
        let marked = "mark it, and the functions that it calls, `#[titan::device]`, and import it where the kernel is";
        return diag.help(format!("{marked}; if `{name}` is marked, mend the error in it first"));
    }
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
