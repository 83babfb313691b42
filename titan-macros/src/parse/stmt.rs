//! Statements and blocks.

use super::{Parser, first_span};
use crate::ast::{Block, Stmt};
use quote::ToTokens;
use syn::spanned::Spanned;
use titan_core::diag::Code;

impl Parser<'_> {
    pub(super) fn block(&mut self, block: &syn::Block) -> Block {
        let stmts = block.stmts.iter().filter_map(|s| self.stmt(s)).collect();
        let span = block.brace_token.span;
        Block { stmts, close: span.close(), span: span.join() }
    }

    fn stmt(&mut self, stmt: &syn::Stmt) -> Option<Stmt> {
        match stmt {
            syn::Stmt::Local(local) => Some(self.local(local)),
            // A lone semicolon.
            syn::Stmt::Expr(syn::Expr::Verbatim(nothing), Some(_)) if nothing.is_empty() => None,
            syn::Stmt::Expr(e, semi) => Some(Stmt::Expr { expr: self.expr(e), semi: semi.map(|s| s.span) }),
            syn::Stmt::Macro(m) => {
                self.no_attrs(&m.attrs);
                Some(Stmt::Expr { expr: self.mac(&m.mac), semi: Some(m.mac.path.span()) })
            }
            syn::Stmt::Item(item) => {
                let span = first_span(item.to_token_stream());
                let help = "move it out of the kernel, and mark a function `#[titan::device]`, a constant `#[titan::constant]`";
                self.cx.error_help(Code::Syntax, span, "items are not allowed inside a kernel", help);
                None
            }
        }
    }

    fn local(&mut self, local: &syn::Local) -> Stmt {
        self.no_attrs(&local.attrs);
        if let Some((els, _)) = local.init.as_ref().and_then(|i| i.diverge.as_ref()) {
            let help = "for an optional tensor, write `if let Some(x) = option { .. }`";
            self.cx.error_help(Code::Syntax, els.span, "`let … else` is not supported in kernels", help);
            return Stmt::Expr { expr: self.bad(els.span), semi: Some(els.span) };
        }
        let (pat, ty) = match &local.pat {
            syn::Pat::Type(t) => (self.pat(&t.pat), Some(self.ty(&t.ty))),
            other => (self.pat(other), None),
        };
        let init = local.init.as_ref().map(|init| self.expr(&init.expr));
        Stmt::Let { pat, ty, init, span: local.let_token.span }
    }

    pub(super) fn no_attrs(&self, attrs: &[syn::Attribute]) {
        if let Some(a) = attrs.first() {
            let help = if a.path().is_ident("cfg") {
                "put `#[cfg(..)]` on the whole kernel; inside, use a constant parameter: `if DEBUG { .. }`"
            } else {
                "put attributes on the kernel"
            };
            self.cx.error_help(Code::Attribute, a.pound_token.span, "attributes are not allowed inside a kernel", help);
        }
    }
}
