//! Rules 14 to 17: parameters, shape names, host expressions, the grid.

use super::Error;
use crate::diag::Code;
use crate::ir::{
    DimSpec, ForKind, GridSpec, HostExpr, HostNames, HostOp, Kernel, Loc, OpKind, ParamKind, Signature, Ty,
};

/// Violations of rules 14 to 17.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let sig = &kernel.sig;
    let mut checker = Checker { sig, bound: vec![None; sig.symbols.len()], errors: Vec::new() };
    for (i, param) in sig.params.iter().enumerate() {
        checker.param(kernel, i, &param.kind);
    }
    // A shape may use a name that a later parameter binds: a launch binds all names before it checks the shapes.
    for (i, param) in sig.params.iter().enumerate() {
        checker.shape(i, &param.kind);
    }
    if let GridSpec::Extents(extents) = &sig.grid {
        checker.extents(extents);
    }
    for condition in &sig.requires {
        checker.expr(condition, "a requirement");
        if condition.eval(&NoValues).is_ok_and(|v| v == 0) && is_constant(condition) {
            checker.error(Code::Requirement, "a requirement that is constantly false".to_owned());
        }
    }
    checker.persistent(kernel);
    checker.errors
}

struct Checker<'a> {
    sig: &'a Signature,
    /// For each symbol, the parameter that binds it.
    bound: Vec<Option<usize>>,
    errors: Vec<Error>,
}

impl Checker<'_> {
    fn error(&mut self, code: Code, title: String) {
        self.errors.push(Error::new(code, Loc::default(), title));
    }

    fn param(&mut self, kernel: &Kernel, i: usize, kind: &ParamKind) {
        let name = self.sig.param(i);
        let (declared, shape): (Ty, &[DimSpec]) = match kind {
            ParamKind::Scalar(e) => (Ty::Scalar(*e), &[]),
            ParamKind::Tensor { elem, shape, .. } => {
                (Ty::Tensor(*elem, u8::try_from(shape.len()).unwrap_or(u8::MAX)), shape)
            }
        };
        if kernel.ty(kernel.param(i)) != declared {
            self.error(Code::TypeAnnotation, format!("the value of the parameter `{name}` is not of its type"));
        }
        if matches!(kind, ParamKind::Tensor { .. }) && (shape.is_empty() || shape.len() > usize::from(u8::MAX)) {
            self.error(Code::ShapeRank, format!("`{name}` is a tensor of {} axes", shape.len()));
        }
        for dim in shape {
            match dim {
                DimSpec::Any => {}
                DimSpec::Bind(symbol) => match self.bound.get_mut(symbol.index()) {
                    None => self
                        .error(Code::ShapeName, format!("the shape of `{name}` binds {symbol}, which does not exist")),
                    Some(slot @ None) => *slot = Some(i),
                    Some(Some(_)) => {
                        let symbol = self.sig.symbol(*symbol);
                        self.error(Code::ShapeName, format!("the shape of `{name}` binds `{symbol}` a second time"));
                    }
                },
                DimSpec::Equals(_) => {}
            }
        }
    }

    fn shape(&mut self, i: usize, kind: &ParamKind) {
        let ParamKind::Tensor { shape, .. } = kind else { return };
        let place = format!("the shape of `{}`", self.sig.param(i));
        for dim in shape {
            if let DimSpec::Equals(expr) = dim {
                self.expr(expr, &place);
            }
        }
    }

    fn expr(&mut self, expr: &HostExpr, place: &str) {
        let mut faults = Vec::new();
        expr.visit(&mut |e| faults.extend(self.fault(e, place)));
        self.errors.extend(faults);
    }

    /// The error of a single node of an expression.
    fn fault(&self, expr: &HostExpr, place: &str) -> Option<Error> {
        let error = |code: Code, title: String| Some(Error::new(code, Loc::default(), title));
        match expr {
            HostExpr::Const(_) | HostExpr::Not(_) => None,
            HostExpr::Symbol(s) => match self.bound.get(s.index()) {
                None => error(Code::ShapeName, format!("{place} names {s}, which does not exist")),
                Some(None) => {
                    let name = self.sig.symbol(*s);
                    let fault = error(Code::ShapeName, format!("{place} uses `{name}`, which no parameter binds"));
                    fault.map(|e| e.help(format!("declare `{name}` as one extent: `#[shape({name}, ..)]`")))
                }
                Some(Some(p)) if self.is_optional(*p) => {
                    let (name, by) = (self.sig.symbol(*s), self.sig.param(*p));
                    error(
                        Code::MaybeAbsent,
                        format!("{place} uses `{name}`, which is bound by `{by}` and may be absent"),
                    )
                }
                Some(Some(_)) => None,
            },
            HostExpr::Scalar(p) => match self.sig.params.get(*p).map(|p| &p.kind) {
                Some(ParamKind::Scalar(e)) if e.is_int() => None,
                Some(_) => {
                    error(Code::ShapeName, format!("{place} uses `{}`, which is not an integer", self.sig.param(*p)))
                }
                None => error(Code::ShapeName, format!("{place} uses parameter {p}, which does not exist")),
            },
            HostExpr::Dim(p, axis) => match self.sig.params.get(*p).map(|p| &p.kind) {
                Some(ParamKind::Tensor { optional: true, .. }) => error(
                    Code::MaybeAbsent,
                    format!("{place} uses an extent of `{}`, which may be absent", self.sig.param(*p)),
                ),
                Some(ParamKind::Tensor { shape, .. }) if *axis < shape.len() => None,
                Some(_) => error(
                    Code::ShapeName,
                    format!("{place} uses axis {axis} of `{}`, which does not have it", self.sig.param(*p)),
                ),
                None => error(Code::ShapeName, format!("{place} uses parameter {p}, which does not exist")),
            },
            HostExpr::Binary(HostOp::Div | HostOp::Rem | HostOp::Cdiv, _, by) if **by == HostExpr::Const(0) => {
                error(Code::DivisionByZero, format!("{place} divides by the constant zero"))
            }
            HostExpr::Binary(..) => None,
        }
    }

    fn is_optional(&self, param: usize) -> bool {
        let kind = self.sig.params.get(param).map(|p| &p.kind);
        matches!(kind, Some(ParamKind::Tensor { optional: true, .. }))
    }

    fn extents(&mut self, extents: &[HostExpr]) {
        if extents.len() > 3 {
            self.error(Code::Grid, format!("a grid of {} axes: there are at most three", extents.len()));
        }
        for (axis, extent) in extents.iter().enumerate() {
            self.expr(extent, "the grid");
            if let HostExpr::Const(n @ ..1) = extent {
                self.error(Code::Grid, format!("axis {axis} of the grid has {n} programs: there must be at least 1"));
            }
        }
    }

    fn persistent(&mut self, kernel: &Kernel) {
        let mut distributed = None;
        kernel.walk(&mut |_, op| {
            if op.kind == OpKind::For(ForKind::Distributed) && distributed.is_none() {
                distributed = Some(op.loc);
            }
        });
        match (&self.sig.grid, distributed) {
            (GridSpec::Extents(_), Some(loc)) => {
                let title = "this loop distributes its tiles over a persistent grid, but the kernel declares a grid";
                self.errors.push(Error::new(Code::Grid, loc, title).help("leave out `grid(..)`"));
            }
            (GridSpec::Persistent, None) => {
                let title = "a persistent grid, but no loop distributes tiles over its programs";
                let error = Error::new(Code::Grid, Loc::default(), title);
                self.errors.push(
                    error.help("loop over the tiles of an output, `for out in c.tiles::<..>()`, or write `grid(..)`"),
                );
            }
            (GridSpec::Extents(_), None) | (GridSpec::Persistent, Some(_)) => {}
        }
    }
}

/// An environment for evaluating expressions without leaves.
struct NoValues;

impl crate::ir::HostEnv for NoValues {
    fn symbol(&self, _: crate::ir::Symbol) -> i64 {
        0
    }
    fn scalar(&self, _: usize) -> i64 {
        0
    }
    fn dim(&self, _: usize, _: usize) -> i64 {
        0
    }
}

fn is_constant(expr: &HostExpr) -> bool {
    let mut constant = true;
    expr.visit(&mut |e| constant &= !matches!(e, HostExpr::Symbol(_) | HostExpr::Scalar(_) | HostExpr::Dim(..)));
    constant
}
