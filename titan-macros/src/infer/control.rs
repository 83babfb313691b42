//! Branches and loops.

use super::pipe::PipeTy;
use super::{ITy, Infer, TensorTy};
use crate::ast::{Block, Cond, Expr, ExprKind, Label, Stmt};
use crate::consts::{self, ConstValue};
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::Elem;

impl Infer<'_> {
    pub(super) fn control(&mut self, e: &Expr) -> ITy {
        match &e.kind {
            ExprKind::If { cond, then, other } => self.branch(cond, then, other.as_deref(), e.span),
            ExprKind::Block(b) | ExprKind::Unsafe(b) => self.block(b),
            ExprKind::For { label, pat, iter, body } => {
                let item = self.iterated(iter);
                self.bind(pat, &item);
                self.loop_body(label.as_ref(), body);
                ITy::Unit
            }
            ExprKind::While { label, cond, body } => {
                let _reported = self.condition(cond);
                self.loop_body(label.as_ref(), body);
                ITy::Unit
            }
            ExprKind::Loop { label, body } => self.loop_body(label.as_ref(), body),
            ExprKind::Break { label, value } => {
                let ty = value.as_ref().map_or(ITy::Unit, |v| self.expr(v));
                self.broken(label.as_ref(), &ty, e.span);
                ITy::Never
            }
            ExprKind::Continue { .. } => ITy::Never,
            ExprKind::Return(value) => {
                let ty = value.as_ref().map_or(ITy::Unit, |v| self.expr(v));
                let want = self.ret.clone();
                if want == ITy::Unit && !matches!(ty, ITy::Unit | ITy::Unknown | ITy::Never) {
                    let help = "store results to a `&mut Tensor` parameter";
                    self.cx.error_help(
                        Code::Modifier,
                        e.span,
                        format!("`{}` returns nothing", self.env.func.name),
                        help,
                    );
                    return ITy::Never;
                }
                self.unify(&want, &ty, e.span);
                ITy::Never
            }
            ExprKind::Roles { arms, .. } => {
                for arm in arms {
                    let ty = self.expr(&arm.body);
                    self.unify(&ITy::Unit, &ty, arm.body.span);
                }
                ITy::Unit
            }
            _ => ITy::Unknown,
        }
    }

    pub(super) fn branch(&mut self, cond: &Cond, then: &Block, other: Option<&Expr>, span: Span) -> ITy {
        let mut sound = true;
        match cond {
            Cond::Expr(c) => {
                sound = self.condition(c);
                // A constant condition removes an arm, which need not type-check for this instance.
                match consts::eval(c, &self.env) {
                    Ok(ConstValue::Bool(true)) => return self.block(then),
                    Ok(ConstValue::Bool(false)) => return other.map_or(ITy::Unit, |e| self.expr(e)),
                    _ => {}
                }
            }
            Cond::LetSome { pat, option, .. } => {
                let ty = match self.expr(option) {
                    ITy::Tensor(t) if t.optional => ITy::Tensor(TensorTy { optional: false, ..t }),
                    ITy::Pipe(PipeTy::Filled(fields)) => ITy::Pipe(PipeTy::Stage(fields)),
                    ITy::Unknown | ITy::Never => ITy::Unknown,
                    other => {
                        let title = format!("{} is not optional", self.describe(&other));
                        let help = "an optional tensor is a parameter `x: Option<&Tensor<f32, 1>>`";
                        self.cx.error_help(Code::Arguments, option.span, title, help);
                        ITy::Unknown
                    }
                };
                self.bind(pat, &ty);
            }
        }
        let a = self.block(then);
        match other {
            Some(e) => {
                let b = self.expr(e);
                // A mask as the condition has been reported already.
                match (&a, &b) {
                    _ if !sound => ITy::Unknown,
                    // A literal of the wrong kind is a mistake of the literal.
                    (ITy::Scalar(x), ITy::Scalar(y)) if self.is_literal(*x) && !self.is_literal(*y) => {
                        self.unify(&b, &a, value_of(then).map_or(span, |v| v.span))
                    }
                    (ITy::Scalar(x), ITy::Scalar(y)) if self.is_literal(*y) && !self.is_literal(*x) => {
                        let value = if let ExprKind::Block(other) = &e.kind { value_of(other) } else { None };
                        self.unify(&a, &b, value.map_or(span, |v| v.span))
                    }
                    (a, b) => self.unify(a, b, span),
                }
            }
            None if matches!(a, ITy::Unit | ITy::Never | ITy::Unknown) => ITy::Unit,
            None => {
                let title = format!("an `if` without `else` has no value, but this arm has one: {}", self.describe(&a));
                self.cx.error_help(Code::Arguments, span, title, "add an `else { .. }`, or end the arm with `;`");
                ITy::Unknown
            }
        }
    }

    pub(super) fn loop_body(&mut self, label: Option<&Label>, body: &Block) -> ITy {
        self.loops.push((label.and_then(|l| l.of), ITy::Never));
        self.block(body);
        self.loops.pop().map_or(ITy::Unit, |(_, ty)| ty)
    }

    pub(super) fn broken(&mut self, label: Option<&Label>, ty: &ITy, span: Span) {
        let found = match label {
            None => self.loops.len().checked_sub(1),
            Some(label) => label.of.and_then(|of| self.loops.iter().rposition(|(l, _)| *l == Some(of))),
        };
        match found {
            Some(i) => {
                let old = self.loops[i].1.clone();
                self.loops[i].1 = if old == ITy::Never { ty.clone() } else { self.unify(&old, ty, span) };
            }
            None => self.cx.error(Code::UnknownName, span, "this is not inside a loop"),
        }
    }

    pub(super) fn iterated(&mut self, iter: &Expr) -> ITy {
        match self.expr(iter) {
            ITy::Range => ITy::Scalar(self.known(Elem::I32)),
            ITy::OwnIter(own) => ITy::Own(own),
            ITy::Pipe(PipeTy::Side(fields, fills)) => {
                let token = if fills { PipeTy::Slot(fields) } else { PipeTy::Ready(fields) };
                ITy::Tuple(vec![ITy::Scalar(self.known(Elem::I32)), ITy::Pipe(token)])
            }
            ITy::Pipe(PipeTy::Indices(rank)) => ITy::Array(Box::new(ITy::Scalar(self.known(Elem::I32))), rank),
            ITy::Unknown | ITy::Never => ITy::Unknown,
            other => {
                let title = format!("cannot loop over {}", self.describe(&other));
                let help = match other {
                    ITy::Tile(..) => {
                        "`.map(|v| ..)` applies a function to each element of a tile; `.reduce_sum::<0>()` and the like combine the elements"
                    }
                    ITy::Scalar(_) => "write a range with both ends: `0..n`",
                    ITy::Tensor(_) => {
                        "loop over its tiles: `for i in 0..cdiv(x.dim(0), 64) { x.load_tile::<64>([i]) .. }`"
                    }
                    _ => {
                        "loops run over `a..b`, `pipelined(a..b)`, `c.tiles::<..>()`, `c.tiles_grouped::<.., G>()`, `y.ragged::<..>(off)`, \
                        `ring.produce(a..b)` or `ring.consume(a..b)`"
                    }
                };
                self.cx.error_help(Code::Syntax, iter.span, title, help);
                ITy::Unknown
            }
        }
    }
}

/// The expression that is the value of a block.
fn value_of(block: &Block) -> Option<&Expr> {
    match block.stmts.last() {
        Some(Stmt::Expr { expr, semi: None }) => Some(expr),
        Some(Stmt::Expr { .. } | Stmt::Let { .. }) | None => None,
    }
}
