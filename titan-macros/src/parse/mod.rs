//! Parses tokens to the AST. Parsing does not stop at the first error: code that cannot be parsed is reported and becomes a `Bad` node.
//!
//! Only this module uses `syn`.

mod attr;
mod control;
mod expr;
mod fragments;
mod macros;
mod pat;
mod roles;
mod signature;
mod stmt;
mod ty;

use crate::ast::{Expr, ExprKind, Function, KernelConfig, KernelItem, Mention, Param, TypeKind, TypeRef};
use crate::ctxt::Ctxt;
use crate::hygiene::Names;
use crate::signature::refuse;
use fragments::as_written;
pub(crate) use fragments::{function, is_in_braces, with_parentheses};
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use titan_core::diag::Code;
use titan_core::ir::Elem;

/// State of the parser of one function.
pub(crate) struct Parser<'a> {
    pub(crate) cx: &'a Ctxt,
    n_exprs: usize,
    /// Whether a struct or a field has been reported, so that further fields are not.
    has_struct: bool,
    /// Whether a lifetime parameter has been reported, so that its uses are not.
    has_lifetime: bool,
    /// The names of the generic parameters.
    generics: Vec<String>,
    mentions: Vec<Mention>,
    names: Names,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(cx: &'a Ctxt, names: Names) -> Self {
        let (generics, mentions) = (Vec::new(), Vec::new());
        Parser { cx, n_exprs: 0, has_struct: false, has_lifetime: false, generics, mentions, names }
    }

    fn make(&mut self, span: Span, kind: ExprKind) -> Expr {
        let id = self.n_exprs;
        self.n_exprs += 1;
        Expr { id, span, kind }
    }

    fn bad(&mut self, span: Span) -> Expr {
        self.make(span, ExprKind::Bad)
    }

    /// Records the use of an unqualified name of the language, a type or a macro.
    fn mention(&mut self, path: &syn::Path, is_type: bool) {
        let [segment] = path.segments.iter().collect::<Vec<_>>()[..] else { return };
        let name = &segment.ident;
        let known = |m: &Mention| matches!(m, Mention::Type(n) | Mention::Macro(n) if n == name);
        if path.leading_colon.is_none() && !self.mentions.iter().any(known) {
            self.mentions.push(if is_type { Mention::Type(name.clone()) } else { Mention::Macro(name.clone()) });
        }
    }

    fn syn_error(&self, code: Code, error: &syn::Error) {
        for e in error.clone() {
            self.cx.error(code, e.span(), e.to_string());
        }
    }
}

/// Parses a function with a kernel attribute; `None` if it is not a function at all.
pub(crate) fn kernel(cx: &Ctxt, names: Names, attr: TokenStream, item: TokenStream) -> Option<KernelItem> {
    let mut parser = Parser::new(cx, names);
    let config = parser.config(attr);
    let item = parser.item_fn(item)?;
    parser.modifiers(&item.sig, "a kernel");
    if let syn::ReturnType::Type(_, ty) = &item.sig.output {
        let span = first_span(ty.to_token_stream());
        cx.error_help(Code::Modifier, span, "a kernel returns nothing", "store results to a `&mut Tensor` parameter");
    }
    let (attrs, vis) = outside(&item);
    let func = parser.function(&item, true);
    Some(KernelItem { attrs, vis, func, config })
}

/// Parses a function with a device attribute.
pub(crate) fn device(cx: &Ctxt, names: Names, item: TokenStream) -> Option<(Vec<TokenStream>, TokenStream, Function)> {
    let mut parser = Parser::new(cx, names);
    let item = parser.item_fn(item)?;
    parser.modifiers(&item.sig, "a device function");
    let (attrs, vis) = outside(&item);
    Some((attrs, vis, parser.function(&item, false)))
}

/// Parses the expression of a constant item.
pub(crate) fn constant_expr(cx: &Ctxt, expr: &syn::Expr) -> Expr {
    Parser::new(cx, Names::by_text()).expr(expr)
}

fn outside(item: &syn::ItemFn) -> (Vec<TokenStream>, TokenStream) {
    (item.attrs.iter().map(ToTokens::to_token_stream).collect(), item.vis.to_token_stream())
}

impl Parser<'_> {
    fn item_fn(&self, item: TokenStream) -> Option<syn::ItemFn> {
        match function(&item) {
            Ok(item) => Some(item),
            // rustc has already reported tokens that are not an item.
            Err(e) => {
                if syn::parse2::<syn::Item>(item).is_ok() {
                    let help = "this attribute goes on a function with a body";
                    self.cx.error_help(Code::Syntax, e.span(), e.to_string(), help);
                }
                None
            }
        }
    }

    fn function(&mut self, item: &syn::ItemFn, is_kernel: bool) -> Function {
        let generics = self.generics(&item.sig.generics);
        self.generics = generics.iter().map(|g| g.name.to_string()).collect();
        let params: Vec<Param> = item.sig.inputs.iter().filter_map(|p| self.param(p)).collect();
        if is_kernel {
            params.iter().filter(|p| self.is_unknown(&p.ty)).for_each(|p| refuse(self.cx, p));
        }
        let ret = match &item.sig.output {
            syn::ReturnType::Default => None,
            syn::ReturnType::Type(_, ty) => Some(self.ty(ty)),
        };
        let body = self.block(&item.block);
        Function {
            name: item.sig.ident.clone(),
            generics,
            params,
            ret,
            body,
            n_exprs: self.n_exprs,
            vars: Vec::new(),
            intrinsics: Vec::new(),
            mentions: std::mem::take(&mut self.mentions),
            names: std::mem::replace(&mut self.names, Names::by_text()),
        }
    }

    /// Whether a type is a name that is not a type of the language.
    fn is_unknown(&self, ty: &TypeRef) -> bool {
        let known = |name: &str| self.generics.iter().any(|g| g == name) || Elem::from_name(name).is_some();
        matches!(&ty.kind, TypeKind::Elem(name, _) if !known(&name.to_string()))
    }

    fn config(&mut self, attr: TokenStream) -> KernelConfig {
        attr::config(self, attr)
    }
}

/// A type without the invisible groups around it.
pub(crate) fn ungrouped_type(ty: &syn::Type) -> &syn::Type {
    match ty {
        syn::Type::Group(g) => ungrouped_type(&g.elem),
        other => other,
    }
}

/// An expression without the invisible groups around fragments of `macro_rules!` macros.
pub(crate) fn ungrouped(e: &syn::Expr) -> &syn::Expr {
    match e {
        syn::Expr::Group(g) if g.attrs.is_empty() => ungrouped(&g.expr),
        other => other,
    }
}

/// The span of the first token of a path.
pub(crate) fn path_start(path: &syn::Path) -> Span {
    let leading = path.leading_colon.map(|c| c.spans[0]);
    leading.or_else(|| path.segments.first().map(|s| s.ident.span())).unwrap_or_else(Span::call_site)
}

/// The span of the first token. Expensive: it copies every group inside.
pub(crate) fn first_span(tokens: TokenStream) -> Span {
    tokens.into_iter().next().map_or_else(Span::call_site, |t| t.span())
}
