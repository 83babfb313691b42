//! `#[titan::kernel(instances(..), grid(..), require(..), roles(..), targets(..), crate = path)]`.

use super::{Parser, as_written, first_span, ungrouped};
use crate::ast::{GenericArgValue, InstanceAxis, InstanceValue, KernelConfig};
use crate::backends::Gpu;
use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{Token, token};
use titan_core::diag::{Code, counted};
use titan_core::ir::{Scheduler, Tails};

const KEYS: &str = "`instances(..)`, `grid(..)`, `require(..)`, `roles(..)`, `tails(..)`, `schedule(..)`, `targets(..)`, `allow(..)`, `notes` and `crate = path`";

/// One `key(..)` or `key = ..`.
struct Entry {
    key: Ident,
    value: Value,
}

enum Value {
    Instances(Vec<Axis>),
    /// Whether `unchecked` is written, and the extents.
    Grid(bool, Vec<syn::Expr>),
    Exprs(Vec<syn::Expr>),
    Targets(Vec<Target>),
    Tails(Vec<Ident>),
    Schedule(Vec<Ident>),
    Allow(Vec<Ident>),
    Notes,
    Path(TokenStream),
    Roles(syn::Result<Vec<super::roles::Entry>>),
    Unknown,
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
    for Entry { key, value } in entries {
        let name = key.to_string();
        if seen.contains(&name) {
            p.cx.error(Code::Attribute, key.span(), format!("`{name}` is given twice"));
            continue;
        }
        match (name.as_str(), value) {
            (_, Value::Instances(axes)) => config.instances = axes.into_iter().filter_map(|a| axis(p, a)).collect(),
            (_, Value::Grid(partial, list)) => {
                // `unchecked` alone is said of the inferred grid.
                let declared = !(partial && list.is_empty());
                config.grid = declared.then(|| (key.span(), list.iter().map(|e| p.expr(e)).collect()));
                config.partial = partial;
            }
            (_, Value::Targets(list)) => config.targets = Some(targets(p, &key, &list)),
            (_, Value::Tails(list)) => config.tails = one_word(p, &key, &list, &Tails::ALL, Tails::name),
            (_, Value::Schedule(list)) => config.scheduler = one_word(p, &key, &list, &Scheduler::ALL, Scheduler::name),
            (_, Value::Allow(list)) => config.warnings.silenced = allowed(p, &key, &list),
            (_, Value::Notes) => config.warnings.notes = true,
            (_, Value::Exprs(list)) => {
                config.bulk = list.iter().find(|e| is_tma(e)).map(|e| first_span(e.to_token_stream()));
                config.requires = list.iter().filter(|e| !is_tma(e)).map(|e| p.expr(e)).collect();
            }
            (_, Value::Roles(Ok(list))) => config.roles = Some((key.span(), p.role_list(key.span(), &list))),
            (_, Value::Roles(Err(e))) => p.roles_syntax(&e),
            (_, Value::Path(body)) => match syn::parse2::<syn::Path>(body) {
                Ok(path) => config.krate = Some(path.to_token_stream()),
                Err(e) => p.cx.error_help(Code::Attribute, e.span(), "`crate` takes a path", "as in `crate = ::titan`"),
            },
            (_, Value::Unknown) => {
                let title = format!("unknown key `{name}` in the kernel attribute");
                p.cx.error_help(Code::Attribute, key.span(), title, format!("the keys are {KEYS}"));
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
            let value = match key.to_string().as_str() {
                "instances" => Value::Instances(list(&body)?),
                "grid" => Value::Grid(unchecked(&body)?, list(&body)?),
                "require" => Value::Exprs(list(&body)?),
                "targets" => Value::Targets(list(&body)?),
                "tails" => Value::Tails(list(&body)?),
                "schedule" => Value::Schedule(list(&body)?),
                "allow" => Value::Allow(list(&body)?),
                "notes" => return Err(syn::Error::new(key.span(), "`notes` is written alone, without parentheses")),
                "crate" => Value::Path(body.parse()?),
                "roles" => {
                    let tokens = body.parse::<TokenStream>()?;
                    let list = Punctuated::<_, Token![,]>::parse_terminated.parse2(tokens);
                    Value::Roles(list.map(|l| l.into_iter().collect()))
                }
                _ => {
                    body.parse::<TokenStream>()?;
                    Value::Unknown
                }
            };
            return Ok(Entry { key, value });
        }
        if key == crate::warning::NOTES && (input.is_empty() || input.peek(Token![,])) {
            return Ok(Entry { key, value: Value::Notes });
        }
        if !input.peek(Token![=]) {
            return Err(syn::Error::new(key.span(), format!("`{key}` needs a value; the keys are {KEYS}")));
        }
        let equals = input.parse::<Token![=]>()?;
        let expr = input.parse::<syn::Expr>()?;
        match key.to_string().as_str() {
            "crate" => Ok(Entry { key, value: Value::Path(expr.to_token_stream()) }),
            "notes" => Err(syn::Error::new(equals.span, "`notes` has no value: write it alone")),
            "instances" | "grid" | "require" | "roles" | "tails" | "schedule" | "targets" | "allow" => {
                Err(syn::Error::new(equals.span, format!("`{key}` is written with parentheses: `{key}(..)`")))
            }
            _ => Ok(Entry { key, value: Value::Unknown }),
        }
    }
}

/// The word `tma` among requirements: not a condition of launches, but of the compiled code.
fn is_tma(requirement: &syn::Expr) -> bool {
    matches!(ungrouped(requirement), syn::Expr::Path(path) if path.path.is_ident(crate::targets::TMA))
}

/// The word `unchecked` before the extents of a grid, or alone; before a comma or an operator it is a shape name.
fn unchecked(input: ParseStream<'_>) -> syn::Result<bool> {
    let word = input.fork();
    let is_word = word.parse::<Ident>().is_ok_and(|w| w == "unchecked");
    let before_extent = word.peek(Ident::peek_any) || word.peek(syn::Lit) || word.peek(token::Paren);
    let is_said = is_word && (before_extent || word.is_empty());
    if is_said {
        input.parse::<Ident>()?;
    }
    Ok(is_said)
}

/// The GPU targets that `targets(..)` lists. `cpu` may be listed too, but makes no difference: kernels always run on the CPU.
fn targets(p: &Parser<'_>, key: &Ident, names: &[Target]) -> Vec<&'static str> {
    let help = crate::targets::listed;
    if names.is_empty() {
        p.cx.error_help(Code::Attribute, key.span(), "`targets(..)` is empty", help());
    }
    let mut out = Vec::new();
    let mut seen = Vec::new();
    for target in names {
        let name = match &target.0 {
            Ok(name) => name,
            Err(quoted) => {
                let help = format!("write `{}` without quotes", quoted.value());
                p.cx.error_help(Code::Attribute, quoted.span(), "a target is a name, not a string", help);
                continue;
            }
        };
        let twice = seen.contains(&name);
        seen.push(name);
        if twice {
            p.cx.error_help(
                Code::Attribute,
                name.span(),
                format!("target `{name}` is listed twice"),
                "remove one of them",
            );
        } else if let Some(gpu) = Gpu::of_name(&name.to_string()) {
            match gpu.lacks() {
                None => out.push(gpu.name),
                Some(feature) => {
                    let title = format!("this build of `titan-gpu` cannot compile for `{name}`");
                    let help = format!("build it with feature `{feature}`, or remove the target");
                    p.cx.error_help(Code::Attribute, name.span(), title, help);
                }
            }
        } else if name != crate::targets::CPU {
            p.cx.error_help(
                Code::Attribute,
                name.span(),
                format!("TITAN does not compile kernels for a target `{name}`"),
                help(),
            );
        }
    }
    out
}

/// The name of a target, or the string that was written instead of it.
struct Target(Result<Ident, syn::LitStr>);

impl syn::parse::Parse for Target {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(syn::LitStr) {
            input.parse().map(|s| Target(Err(s)))
        } else {
            input.parse().map(|n| Target(Ok(n)))
        }
    }
}

fn list<T: syn::parse::Parse>(input: ParseStream<'_>) -> syn::Result<Vec<T>> {
    Ok(Punctuated::<T, Token![,]>::parse_terminated(input)?.into_iter().collect())
}

/// The one word of `tails(..)` or `schedule(..)`.
fn one_word<T: Copy>(
    p: &Parser<'_>,
    key: &Ident,
    words: &[Ident],
    all: &[T],
    name: fn(T) -> &'static str,
) -> Option<T> {
    let help = || {
        let forms: Vec<String> = all.iter().map(|one| format!("`{key}({})`", name(*one))).collect();
        format!("write {}, or leave it out: then the compiler decides", forms.join(" or "))
    };
    let [word] = words else {
        p.cx.error_help(Code::Attribute, key.span(), format!("`{key}(..)` takes one word"), help());
        return None;
    };
    let found = all.iter().copied().find(|one| word == name(*one));
    if found.is_none() {
        p.cx.error_help(Code::Attribute, word.span(), format!("unknown word `{word}` in `{key}(..)`"), help());
    }
    found
}

/// The warnings that `allow(..)` silences.
fn allowed(p: &Parser<'_>, key: &Ident, words: &[Ident]) -> Vec<Code> {
    let help = || format!("the warnings of kernels are {}", crate::warning::words());
    if words.is_empty() {
        p.cx.error_help(Code::Attribute, key.span(), "`allow(..)` is empty", help());
    }
    let mut out = Vec::new();
    for word in words {
        match crate::warning::of_word(&word.to_string()) {
            Some(code) if out.contains(&code) => {
                let title = format!("`{word}` is listed twice");
                p.cx.error_help(Code::Attribute, word.span(), title, "remove one of them");
            }
            Some(code) => out.push(code),
            None => {
                let title = format!("kernels have no warning `{word}`");
                p.cx.error_help(Code::Attribute, word.span(), title, help());
            }
        }
    }
    out
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
        Ok(Axis { names, values: self::list(&list)? })
    }
}

fn axis(p: &mut Parser<'_>, axis: Axis) -> Option<InstanceAxis> {
    let first = axis.names.first()?;
    if axis.values.is_empty() {
        p.cx.error(Code::Generics, first.span(), format!("the list of values for `{first}` is empty"));
    }
    let mut values = Vec::new();
    for value in &axis.values {
        let parts: Vec<&syn::Expr> = match ungrouped(value) {
            syn::Expr::Tuple(t) if axis.names.len() > 1 => t.elems.iter().collect(),
            other => vec![other],
        };
        if parts.len() != axis.names.len() {
            let span = first_span(value.to_token_stream());
            let title =
                format!("{} for {}", counted(parts.len(), "value"), counted(axis.names.len(), "generic parameter"));
            p.cx.error(Code::Generics, span, title);
            continue;
        }
        values.push(parts.into_iter().map(|e| instance_value(p, e)).collect());
    }
    Some(InstanceAxis { names: axis.names, values })
}

fn instance_value(p: &mut Parser<'_>, value: &syn::Expr) -> InstanceValue {
    let tokens = as_written(value);
    let span = first_span(tokens.clone());
    let value = match ungrouped(value) {
        syn::Expr::Path(path) => GenericArgValue::Type(p.type_of_path(&path.path)),
        other => GenericArgValue::Const(Box::new(p.expr(other))),
    };
    InstanceValue { span, tokens, value }
}
