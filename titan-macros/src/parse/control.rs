//! Branches, loops and blocks as expressions.

use super::{Parser, ungrouped};
use crate::ast::{Cond, Expr, ExprKind, Label};
use crate::hygiene::Occurs;
use titan_core::diag::Code;

impl Parser<'_> {
    pub(super) fn control(&mut self, e: &syn::Expr) -> Expr {
        match e {
            syn::Expr::If(i) => self.branch(i),
            syn::Expr::ForLoop(f) => {
                let label = self.label(f.label.as_ref());
                let (pat, iter, body) = (self.pat(&f.pat), self.boxed(&f.expr), self.block(&f.body));
                self.make(f.for_token.span, ExprKind::For { label, pat, iter, body })
            }
            syn::Expr::While(w) => {
                let label = self.label(w.label.as_ref());
                let (cond, body) = (self.boxed(&w.cond), self.block(&w.body));
                self.make(w.while_token.span, ExprKind::While { label, cond, body })
            }
            syn::Expr::Loop(l) => {
                let label = self.label(l.label.as_ref());
                let body = self.block(&l.body);
                self.make(l.loop_token.span, ExprKind::Loop { label, body })
            }
            syn::Expr::Block(b) => {
                if let Some(l) = &b.label {
                    self.cx.error(Code::Syntax, l.name.ident.span(), "only loops can have labels in kernels");
                }
                let block = self.block(&b.block);
                self.make(block.span, ExprKind::Block(block))
            }
            syn::Expr::Unsafe(u) => {
                let block = self.block(&u.block);
                self.make(u.unsafe_token.span, ExprKind::Unsafe(block))
            }
            syn::Expr::Break(b) => {
                let value = b.expr.as_ref().map(|e| self.boxed(e));
                let label = b.label.as_ref().map(|l| self.lifetime(l, Occurs::Used));
                self.make(b.break_token.span, ExprKind::Break { label, value })
            }
            syn::Expr::Continue(c) => {
                let label = c.label.as_ref().map(|l| self.lifetime(l, Occurs::Used));
                self.make(c.continue_token.span, ExprKind::Continue { label })
            }
            syn::Expr::Return(r) => {
                let value = r.expr.as_ref().map(|e| self.boxed(e));
                self.make(r.return_token.span, ExprKind::Return(value))
            }
            syn::Expr::Match(m) => self.roles(m),
            other => self.unsupported(other),
        }
    }

    pub(super) fn branch(&mut self, i: &syn::ExprIf) -> Expr {
        let cond = match ungrouped(&i.cond) {
            syn::Expr::Let(l) => self.let_some(l),
            other => Cond::Expr(self.expr(other)),
        };
        let then = self.block(&i.then_branch);
        let other = i.else_branch.as_ref().map(|(_, e)| self.boxed(e));
        self.make(i.if_token.span, ExprKind::If { cond: Box::new(cond), then, other })
    }

    /// `let Some(name) = option`
    pub(super) fn let_some(&mut self, l: &syn::ExprLet) -> Cond {
        let option = self.expr(&l.expr);
        if let syn::Pat::TupleStruct(t) = &*l.pat
            && t.path.is_ident("Some")
            && let Some(inner) = t.elems.first()
            && t.elems.len() == 1
        {
            return Cond::LetSome { pat: self.pat(inner), option, span: l.let_token.span };
        }
        let help = "the only pattern here is `if let Some(x) = option`, for an optional tensor";
        self.cx.error_help(Code::Syntax, l.let_token.span, "this pattern is not supported in kernels", help);
        Cond::Expr(self.bad(l.let_token.span))
    }

    fn label(&mut self, label: Option<&syn::Label>) -> Option<Label> {
        label.map(|l| self.lifetime(&l.name, Occurs::Bound))
    }

    fn lifetime(&mut self, label: &syn::Lifetime, occurs: Occurs) -> Label {
        let mark = self.names.mark_label(&label.ident, occurs);
        Label { name: label.ident.clone(), mark, of: None }
    }
}
