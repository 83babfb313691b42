//! The variables that code assigns, and whether it returns: loops must carry these variables, and inlining must wrap a return.

use crate::ast::{Block, Cond, Expr, ExprKind, Res, Stmt, VarId};
use titan_core::collections::SortedSet;

/// The effects of code on its surroundings.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Variables that are assigned, including those declared inside.
    pub(super) assigned: SortedSet<VarId>,
    /// Whether there is a `return`.
    pub(super) returns: bool,
}

pub(super) fn of_block(block: &Block) -> Effects {
    let mut fx = Effects::default();
    fx.block(block);
    fx
}

pub(super) fn of_expr(e: &Expr) -> Effects {
    let mut fx = Effects::default();
    fx.expr(e);
    fx
}

impl Effects {
    fn block(&mut self, block: &Block) {
        for stmt in &block.stmts {
            match stmt {
                Stmt::Let { init, .. } => init.iter().for_each(|e| self.expr(e)),
                Stmt::Expr { expr, .. } => self.expr(expr),
            }
        }
    }

    fn place(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Path(_, Res::Local(v)) => {
                self.assigned.insert(*v);
            }
            ExprKind::Tuple(list, _) | ExprKind::Array(list, _) => list.iter().for_each(|e| self.place(e)),
            ExprKind::Paren(a, _) => self.place(a),
            _ => {}
        }
    }

    fn expr(&mut self, e: &Expr) {
        match &e.kind {
            ExprKind::Assign(place, value) | ExprKind::AssignOp(_, place, value) => {
                self.place(place);
                self.expr(value);
            }
            ExprKind::Unary(_, a)
            | ExprKind::Paren(a, _)
            | ExprKind::Field(a, ..)
            | ExprKind::Ref { inner: a, .. }
            | ExprKind::As(a, _)
            | ExprKind::Closure { body: a, .. } => self.expr(a),
            ExprKind::Binary(_, a, b)
            | ExprKind::Lazy(_, a, b)
            | ExprKind::Index(a, b)
            | ExprKind::Range { lo: a, hi: b, .. } => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Call { args, .. }
            | ExprKind::Array(args, _)
            | ExprKind::Tuple(args, _)
            | ExprKind::Macro { args, .. } => {
                args.iter().for_each(|a| self.expr(a));
            }
            ExprKind::Method { recv, args, .. } => {
                self.expr(recv);
                args.iter().for_each(|a| self.expr(a));
            }
            ExprKind::If { cond, then, other } => {
                match &**cond {
                    Cond::Expr(c) => self.expr(c),
                    Cond::LetSome { option, .. } => self.expr(option),
                }
                self.block(then);
                other.iter().for_each(|e| self.expr(e));
            }
            ExprKind::Block(b) | ExprKind::Unsafe(b) | ExprKind::Loop { body: b, .. } => self.block(b),
            ExprKind::For { iter, body, .. } => {
                self.expr(iter);
                self.block(body);
            }
            ExprKind::While { cond, body, .. } => {
                self.expr(cond);
                self.block(body);
            }
            ExprKind::Roles { arms, .. } => arms.iter().for_each(|a| self.expr(&a.body)),
            ExprKind::Break { value, .. } => value.iter().for_each(|v| self.expr(v)),
            ExprKind::Return(value) => {
                self.returns = true;
                value.iter().for_each(|v| self.expr(v));
            }
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::Bool(..)
            | ExprKind::Path(..)
            | ExprKind::Continue { .. }
            | ExprKind::Bad => {}
        }
    }
}
