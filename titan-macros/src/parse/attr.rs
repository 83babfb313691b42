//! `#[titan::kernel(instances(..), grid(..), require(..), crate = path)]`.

use super::{Parser, first_span};
use crate::ast::{GenericArgValue, InstanceAxis, InstanceValue, KernelConfig};
use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Token, token};
use titan_core::diag::Code;

const KEYS: &str = "`instances(..)`, `grid(..)`, `require(..)` and `crate = path`";

/// One `key(..)` or `key = ..`.
struct Entry {
    key: Ident,
    body: TokenStream,
}

pub(super) fn config(p: &mut Parser<'_>, attr: TokenStream) -> KernelConfig {
    let mut config = KernelConfig::default();
    let entries = match Punctuated::<Entry, Token![,]>::parse_terminated.parse2(attr) {
        Ok(entries) => entries,
        Err(e) => {
            p.syn_error(Code::Attribute, &e);
            return config;
        }
    };
    let mut seen: Vec<String> = Vec::new();
    for Entry { key, body } in entries {
        let name = key.to_string();
        if seen.contains(&name) {
            p.cx.error(Code::Attribute, key.span(), format!("`{name}` is given twice"));
            continue;
        }
        match name.as_str() {
            "instances" => config.instances = instances(p, body),
            "grid" => config.grid = Some((key.span(), exprs(p, body))),
            "require" => config.requires = exprs(p, body),
            "crate" => match syn::parse2::<syn::Path>(body) {
                Ok(path) => config.krate = Some(path.to_token_stream()),
                Err(e) => p.cx.error_help(Code::Attribute, e.span(), "`crate` is a path", "as in `crate = ::titan`"),
            },
            _ => {
                let title = format!("the kernel attribute has no `{name}`");
                p.cx.error_help(Code::Attribute, key.span(), title, format!("it has {KEYS}"));
            }
        }
        seen.push(name);
    }
    config
}

impl syn::parse::Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key = Ident::parse_any(input)?;
        if input.peek(token::Paren) {
            let body;
            syn::parenthesized!(body in input);
            return Ok(Entry { key, body: body.parse()? });
        }
        if !input.peek(Token![=]) {
            return Err(syn::Error::new(key.span(), format!("`{key}` needs a value: the attribute has {KEYS}")));
        }
        input.parse::<Token![=]>()?;
        Ok(Entry { key, body: input.parse::<syn::Expr>()?.to_token_stream() })
    }
}

fn exprs(p: &mut Parser<'_>, body: TokenStream) -> Vec<crate::ast::Expr> {
    match Punctuated::<syn::Expr, Token![,]>::parse_terminated.parse2(body) {
        Ok(list) => list.iter().map(|e| p.expr(e)).collect(),
        Err(e) => {
            p.syn_error(Code::Attribute, &e);
            Vec::new()
        }
    }
}

/// `T in [f16, bf16], (BM, BN) in [(128, 256), (64, 64)]`
struct Axis {
    names: Vec<Ident>,
    values: Vec<syn::Expr>,
}

impl syn::parse::Parse for Axis {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let names = if input.peek(token::Paren) {
            let list;
            syn::parenthesized!(list in input);
            Punctuated::<Ident, Token![,]>::parse_terminated(&list)?.into_iter().collect()
        } else {
            vec![input.parse()?]
        };
        if !input.peek(Token![in]) {
            return Err(input.error("expected `in [..]` after the generic parameters of `instances`"));
        }
        input.parse::<Token![in]>()?;
        let list;
        syn::bracketed!(list in input);
        let values = Punctuated::<syn::Expr, Token![,]>::parse_terminated(&list)?.into_iter().collect();
        Ok(Axis { names, values })
    }
}

fn instances(p: &mut Parser<'_>, body: TokenStream) -> Vec<InstanceAxis> {
    match Punctuated::<Axis, Token![,]>::parse_terminated.parse2(body) {
        Ok(axes) => axes.into_iter().filter_map(|a| axis(p, a)).collect(),
        Err(e) => {
            p.syn_error(Code::Attribute, &e);
            Vec::new()
        }
    }
}

fn axis(p: &mut Parser<'_>, axis: Axis) -> Option<InstanceAxis> {
    let first = axis.names.first()?;
    if axis.values.is_empty() {
        p.cx.error(Code::Generics, first.span(), format!("`{first}` has no value: the list is empty"));
    }
    let mut values = Vec::new();
    for value in &axis.values {
        let parts: Vec<&syn::Expr> = match value {
            syn::Expr::Tuple(t) if axis.names.len() > 1 => t.elems.iter().collect(),
            other => vec![other],
        };
        if parts.len() != axis.names.len() {
            let span = first_span(value.to_token_stream());
            let title = format!("{} values for {} generic parameters", parts.len(), axis.names.len());
            p.cx.error(Code::Generics, span, title);
            continue;
        }
        values.push(parts.into_iter().map(|e| instance_value(p, e)).collect());
    }
    Some(InstanceAxis { names: axis.names, values })
}

fn instance_value(p: &mut Parser<'_>, value: &syn::Expr) -> InstanceValue {
    let tokens = value.to_token_stream();
    let span = first_span(tokens.clone());
    let value = match value {
        syn::Expr::Path(path) => GenericArgValue::Type(p.type_of_path(&path.path)),
        other => GenericArgValue::Const(Box::new(p.expr(other))),
    };
    InstanceValue { span, tokens, value }
}
