//! Visits the subexpressions of any expression, for passes that search a whole function.

use super::{Block, Cond, Expr, ExprKind, Stmt};

impl Expr {
    /// Calls `f` on every expression directly inside, in program order.
    pub(crate) fn children(&self, f: &mut dyn FnMut(&Expr)) {
        match &self.kind {
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::Bool(..)
            | ExprKind::Path(..)
            | ExprKind::Continue { .. }
            | ExprKind::Bad => {}
            ExprKind::Unary(_, a)
            | ExprKind::Paren(a, _)
            | ExprKind::Field(a, ..)
            | ExprKind::As(a, _)
            | ExprKind::Closure { body: a, .. }
            | ExprKind::Ref { inner: a, .. } => f(a),
            ExprKind::Binary(_, a, b)
            | ExprKind::Lazy(_, a, b)
            | ExprKind::Index(a, b)
            | ExprKind::Assign(a, b)
            | ExprKind::AssignOp(_, a, b)
            | ExprKind::Range { lo: a, hi: b, .. } => {
                f(a);
                f(b);
            }
            ExprKind::Call { args, .. }
            | ExprKind::Array(args, _)
            | ExprKind::Tuple(args, _)
            | ExprKind::Macro { args, .. } => {
                args.iter().for_each(f);
            }
            ExprKind::Method { recv, args, .. } => {
                f(recv);
                args.iter().for_each(f);
            }
            ExprKind::If { cond, then, other } => {
                match &**cond {
                    Cond::Expr(c) => f(c),
                    Cond::LetSome { option, .. } => f(option),
                }
                then.exprs(f);
                other.iter().for_each(|e| f(e));
            }
            ExprKind::Block(b) | ExprKind::Unsafe(b) | ExprKind::Loop { body: b, .. } => b.exprs(f),
            ExprKind::For { iter: e, body, .. } | ExprKind::While { cond: e, body, .. } => {
                f(e);
                body.exprs(f);
            }
            ExprKind::Break { value, .. } | ExprKind::Return(value) => value.iter().for_each(|v| f(v)),
            ExprKind::Roles { arms, .. } => arms.iter().for_each(|a| f(&a.body)),
        }
    }
}

impl Block {
    /// Calls `f` on the expressions of the statements.
    pub(crate) fn exprs(&self, f: &mut dyn FnMut(&Expr)) {
        for stmt in &self.stmts {
            match stmt {
                Stmt::Let { init, .. } => init.iter().for_each(&mut *f),
                Stmt::Expr { expr, .. } => f(expr),
            }
        }
    }
}
