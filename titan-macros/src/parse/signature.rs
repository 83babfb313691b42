//! Generic parameters, parameters and modifiers of a function.

use super::{Parser, first_span, ungrouped, ungrouped_type};
use crate::ast::{Expr, GenericKind, GenericParam, Param, TypeKind};
use crate::hygiene::Occurs;
use crate::names;
use proc_macro2::Span;
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{FnArg, Token};
use titan_core::diag::Code;
use titan_core::ir::Elem;

impl Parser<'_> {
    /// Rejects `async`, `unsafe`, `const`, `extern`, `where` and variadics.
    pub(super) fn modifiers(&self, sig: &syn::Signature, what: &str) {
        let refuse = |span: Option<Span>, word: &str| {
            if let Some(span) = span {
                self.cx.error(Code::Modifier, span, format!("{what} cannot be `{word}`"));
            }
        };
        refuse(sig.asyncness.map(|t| t.span), "async");
        refuse(sig.unsafety.map(|t| t.span), "unsafe");
        refuse(sig.constness.map(|t| t.span), "const");
        refuse(sig.abi.as_ref().map(|t| t.extern_token.span), "extern");
        refuse(sig.variadic.as_ref().map(|t| t.dots.spans[0]), "variadic");
        if let Some(clause) = &sig.generics.where_clause {
            let help = "write bounds with the parameter: `<T: Float>`";
            self.cx.error_help(
                Code::Modifier,
                clause.where_token.span,
                format!("{what} cannot have a `where` clause"),
                help,
            );
        }
    }

    pub(super) fn generics(&mut self, generics: &syn::Generics) -> Vec<GenericParam> {
        if generics.where_clause.is_none() {
            self.bounds(generics);
        }
        generics.params.iter().filter_map(|g| self.generic(g)).collect()
    }

    /// Checks that every type parameter has a bound that determines its kind.
    fn bounds(&self, generics: &syn::Generics) {
        for t in generics.type_params().filter(|t| bounds(t).iter().all(|b| OF_EVERYTHING.contains(&b.as_str()))) {
            let help = format!(
                "write `{0}: Float` for floats, `{0}: Num` for all numbers, `{0}: Elem` for any element of a tensor",
                t.ident
            );
            self.cx.error_help(
                Code::Generics,
                t.ident.span(),
                format!("type parameter `{}` needs a bound", t.ident),
                help,
            );
        }
        for t in generics.type_params().filter(|t| names::is_type(&t.ident.to_string())) {
            self.cx.error_help(
                Code::Generics,
                t.ident.span(),
                format!("`{}` is the name of a type of the language", t.ident),
                "give the parameter another name",
            );
        }
    }

    fn generic(&mut self, param: &syn::GenericParam) -> Option<GenericParam> {
        let tokens = param.to_token_stream();
        match param {
            syn::GenericParam::Lifetime(l) => {
                self.has_lifetime = true;
                let help = "remove it: a launch borrows its tensors for as long as it needs them";
                self.cx.error_help(
                    Code::Generics,
                    l.lifetime.ident.span(),
                    "kernels cannot have lifetime parameters",
                    help,
                );
                None
            }
            syn::GenericParam::Type(t) => {
                let bounds = bounds(t);
                let is_shape = bounds.iter().any(|b| b == "Shape");
                let kind = if is_shape { GenericKind::Shape } else { GenericKind::Elem };
                Some(GenericParam { name: t.ident.clone(), kind, bounds, tokens })
            }
            syn::GenericParam::Const(c) => {
                let ty = c.ty.to_token_stream().to_string();
                let kind = match (ty.as_str(), Elem::from_name(&ty)) {
                    ("bool", _) => GenericKind::ConstBool,
                    (_, Some(e)) if e.is_arith_int() => GenericKind::ConstInt(e),
                    _ => {
                        let title = format!("a constant parameter cannot have the type `{ty}`");
                        let help = "use `i32` or `bool`; the rank of a tensor is always written as a number";
                        self.cx.error_help(Code::Generics, c.ty.span(), title, help);
                        return None;
                    }
                };
                Some(GenericParam { name: c.ident.clone(), kind, bounds: Vec::new(), tokens })
            }
        }
    }

    pub(super) fn param(&mut self, arg: &FnArg) -> Option<Param> {
        let FnArg::Typed(typed) = arg else {
            self.cx.error(
                Code::Parameter,
                first_span(arg.to_token_stream()),
                "a kernel is a free function and cannot take `self`",
            );
            return None;
        };
        let syn::Pat::Ident(name) = &*typed.pat else {
            let span = first_span(typed.pat.to_token_stream());
            self.cx.error(Code::Parameter, span, "a parameter must be a name, not a pattern");
            return None;
        };
        let ty = self.ty(&typed.ty);
        if let (syn::Type::Path(_), TypeKind::Tensor { optional: false, .. }) = (ungrouped_type(&typed.ty), &ty.kind) {
            let help =
                format!("write `{name}: &Tensor<..>` for an input, `&mut Tensor<..>` for an output", name = name.ident);
            self.cx.error_help(Code::Parameter, ty.span, "a kernel takes tensors by reference", help);
        }
        let mut shape = None;
        for attr in &typed.attrs {
            if attr.path().is_ident("shape") && shape.is_some() {
                let help = "a tensor has one `#[shape(..)]`, with a name or an expression for each axis";
                self.cx.error_help(
                    Code::Attribute,
                    attr.path().span(),
                    "this parameter already has a `#[shape(..)]`",
                    help,
                );
            } else if attr.path().is_ident("shape") {
                shape = Some((attr.path().span(), self.shape_attr(attr)));
            } else if attr.path().is_ident("doc") {
                let help = "describe parameters in the doc comment of the function";
                self.cx.error_help(
                    Code::Attribute,
                    attr.pound_token.span,
                    "doc comments are not allowed on parameters",
                    help,
                );
            } else {
                let title = "the only attribute of a parameter is `#[shape(..)]`";
                let help = "write `#[cfg(..)]` and `#[allow(..)]` on the function";
                self.cx.error_help(Code::Attribute, attr.path().span(), title, help);
            }
        }
        let mark = self.names.mark(&name.ident, Occurs::Bound);
        Some(Param { name: name.ident.clone(), mark, mutable: name.mutability.is_some(), ty, shape })
    }

    /// `#[shape(M, K / 2, _)]`; `_` is `None`.
    fn shape_attr(&mut self, attr: &syn::Attribute) -> Vec<Option<Expr>> {
        match attr.parse_args_with(Punctuated::<syn::Expr, Token![,]>::parse_terminated) {
            Ok(dims) => dims
                .iter()
                .map(|d| match ungrouped(d) {
                    syn::Expr::Infer(_) => None,
                    other => Some(self.expr(other)),
                })
                .collect(),
            Err(e) => {
                self.syn_error(Code::Attribute, &e);
                Vec::new()
            }
        }
    }
}

/// Traits that element types implement, but many other types do too.
const OF_EVERYTHING: &[&str] = &[
    "Copy",
    "Clone",
    "Debug",
    "Display",
    "Default",
    "PartialEq",
    "PartialOrd",
    "Eq",
    "Ord",
    "Send",
    "Sync",
    "Sized",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Rem",
    "Neg",
    "AddAssign",
    "Into",
    "From",
    "Sum",
];

/// The traits of a type parameter, by their last names.
fn bounds(param: &syn::TypeParam) -> Vec<String> {
    let name = |b: &syn::TypeParamBound| match b {
        syn::TypeParamBound::Trait(t) => t.path.segments.last().map(|s| s.ident.to_string()),
        _ => None,
    };
    param.bounds.iter().filter_map(name).collect()
}
