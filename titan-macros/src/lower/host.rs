//! Host expressions: grids, shape declarations and requirements.

use crate::ast::{BinaryOp, Builtin, Callee, Expr, ExprKind, LazyOp, Res, UnaryOp};
use crate::consts::{self, ConstValue};
use crate::ctxt::{Ctxt, Diag};
use crate::items::FnEnv;
use crate::names::is_constant_name;
use proc_macro2::Span;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{Builder, HostExpr, HostOp, ParamKind};

/// The error of an undeclared name in a grid, shape or requirement.
pub(crate) fn undeclared(name: &str, span: Span) -> Diag {
    let title = format!("`{name}` is not a shape name, an integer argument or a constant");
    let help = "shape names are declared on tensors: `#[shape(M, K)] a: &Tensor<f32, 2>`";
    let diag = Diagnostic::new(Code::ShapeName, span, title).help(help);
    if is_constant_name(name) {
        diag.help("mark a constant `#[titan::constant]`, and import it where the kernel is")
    } else {
        diag
    }
}

/// Lowers host expressions, with the parameters of the builder.
pub(crate) struct Host<'a> {
    pub(crate) cx: &'a Ctxt,
    pub(crate) env: FnEnv<'a>,
}

impl Host<'_> {
    /// The expression, or `None` after a report.
    pub(crate) fn expr(&self, b: &mut Builder, e: &Expr) -> Option<HostExpr> {
        match consts::eval(e, &self.env) {
            Ok(ConstValue::Int(v)) => return Some(HostExpr::Const(v)),
            Ok(ConstValue::Bool(v)) => return Some(HostExpr::Const(v.into())),
            Ok(ConstValue::Float(_)) => return self.refuse(e, "a float"),
            Err(consts::NotConst::Error(what)) => {
                self.cx.error(Code::ConstEval, e.span, format!("the expression has {what}"));
                return None;
            }
            Err(consts::NotConst::Runtime) => {}
        }
        match &e.kind {
            ExprKind::Paren(a, _) => self.expr(b, a),
            ExprKind::Block(block) => match &block.stmts[..] {
                [crate::ast::Stmt::Expr { expr, semi: None }] => self.expr(b, expr),
                _ => self.refuse(e, "a block"),
            },
            ExprKind::Path(path, res) => self.path(b, e, path, res),
            ExprKind::Unary(UnaryOp::Not, a) => Some(HostExpr::Not(Box::new(self.expr(b, a)?))),
            ExprKind::Unary(UnaryOp::Neg, a) => self.binary(b, HostOp::Sub, None, a),
            ExprKind::Binary(op, x, y) => match host_op(*op) {
                Some(op) => self.binary(b, op, Some(x), y),
                None => self.refuse(e, &format!("`{}`", op.symbol())),
            },
            ExprKind::Lazy(op, x, y) => {
                let op = if *op == LazyOp::And { HostOp::And } else { HostOp::Or };
                self.binary(b, op, Some(x), y)
            }
            ExprKind::Call { callee: Callee::Builtin(Builtin::Cdiv), args, .. } if args.len() == 2 => {
                self.binary(b, HostOp::Cdiv, Some(&args[0]), &args[1])
            }
            ExprKind::Method { recv, name, args, .. } if args.len() == 1 => match name.to_string().as_str() {
                "min" => self.binary(b, HostOp::Min, Some(recv), &args[0]),
                "max" => self.binary(b, HostOp::Max, Some(recv), &args[0]),
                "dim" => self.dim(b, e, recv, &args[0]),
                other => self.refuse(e, &format!("`{other}`")),
            },
            _ => self.refuse(e, "this"),
        }
    }

    fn binary(&self, b: &mut Builder, op: HostOp, x: Option<&Expr>, y: &Expr) -> Option<HostExpr> {
        let x = match x {
            Some(x) => self.expr(b, x)?,
            None => HostExpr::Const(0),
        };
        let y = self.expr(b, y)?;
        Some(HostExpr::binary(op, x, y))
    }

    fn refuse(&self, e: &Expr, what: &str) -> Option<HostExpr> {
        let help = "grids, shapes and requirements are integer expressions: + - * / % cdiv min max, comparisons, && || !, \
            of shape names, integer arguments and constants";
        self.cx.error_help(Code::Attribute, e.span, format!("{what} is not allowed here"), help);
        None
    }

    fn path(&self, b: &mut Builder, e: &Expr, path: &crate::ast::Path, res: &Res) -> Option<HostExpr> {
        match res {
            Res::Symbol(name) => Some(HostExpr::Symbol(b.symbol(name))),
            Res::Local(param) => match b.kernel().sig.params.get(*param).map(|p| &p.kind) {
                Some(ParamKind::Scalar(elem)) if elem.is_arith_int() || *elem == titan_core::ir::Elem::Bool => {
                    Some(HostExpr::Scalar(*param))
                }
                Some(ParamKind::Scalar(_)) => self.refuse(e, "a float argument"),
                Some(ParamKind::Tensor { .. }) => self.refuse(e, "a tensor"),
                None => None,
            },
            Res::Constant(_) | Res::None => {
                self.cx.push(undeclared(&path.text(), e.span));
                None
            }
            Res::ConstParam(_) | Res::Builtin | Res::Assoc(_) => self.refuse(e, "this constant"),
        }
    }

    fn dim(&self, b: &Builder, e: &Expr, recv: &Expr, axis: &Expr) -> Option<HostExpr> {
        let (ExprKind::Path(_, Res::Local(param)), Ok(ConstValue::Int(axis))) =
            (&recv.kind, consts::eval(axis, &self.env))
        else {
            return self.refuse(e, "`dim`");
        };
        let axis = usize::try_from(axis).ok()?;
        match b.kernel().sig.params.get(*param).map(|p| &p.kind) {
            Some(ParamKind::Tensor { shape, optional: false, .. }) if axis < shape.len() => {
                Some(HostExpr::Dim(*param, axis))
            }
            _ => self.refuse(e, "`dim`"),
        }
    }
}

const fn host_op(op: BinaryOp) -> Option<HostOp> {
    Some(match op {
        BinaryOp::Add => HostOp::Add,
        BinaryOp::Sub => HostOp::Sub,
        BinaryOp::Mul => HostOp::Mul,
        BinaryOp::Div => HostOp::Div,
        BinaryOp::Rem => HostOp::Rem,
        BinaryOp::Eq => HostOp::Eq,
        BinaryOp::Ne => HostOp::Ne,
        BinaryOp::Lt => HostOp::Lt,
        BinaryOp::Le => HostOp::Le,
        BinaryOp::Gt => HostOp::Gt,
        BinaryOp::Ge => HostOp::Ge,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => return None,
    })
}
