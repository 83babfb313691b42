//! The values of the leaves of host expressions during a launch.

use super::{ArgInfo, BindError, Origin, Rule};
use crate::ir::{Const, Elem, HostEnv, HostExpr, HostExprError, HostNames, HostOp, Signature, Symbol};
use std::fmt;

/// The arguments of a launch, and the shape names bound so far. Arguments returned by [`check`](Arguments::check) satisfy the signature.
#[derive(Debug)]
pub struct Arguments<'a> {
    pub(super) sig: &'a Signature,
    pub(super) args: &'a [ArgInfo<'a>],
    /// For each shape name: its value, and the parameter and axis that bound it.
    symbols: Vec<Option<(i64, usize, usize)>>,
}

/// The declaration that contains an expression.
pub(super) enum Place<'a> {
    /// An extent in a `#[shape(..)]`.
    Extent {
        /// The name of the parameter.
        param: &'a str,
        /// The axis of the parameter.
        axis: usize,
    },
    /// A `require(..)`.
    Requirement,
    /// An extent of the grid.
    Grid {
        /// The axis of the grid.
        axis: usize,
    },
}

impl Place<'_> {
    fn rule(&self) -> Rule {
        match self {
            Place::Extent { .. } => Rule::Shape,
            Place::Requirement => Rule::Requirement,
            Place::Grid { .. } => Rule::Grid,
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Extent { param, axis } => write!(f, "extent {axis} of `{param}`"),
            Place::Requirement => f.write_str("a requirement of the kernel"),
            Place::Grid { axis } => write!(f, "extent {axis} of the grid"),
        }
    }
}

impl<'a> Arguments<'a> {
    pub(super) fn new(sig: &'a Signature, args: &'a [ArgInfo<'a>]) -> Self {
        Arguments { sig, args, symbols: vec![None; sig.symbols.len()] }
    }

    /// Binds a name to the extent of a parameter, unless it is bound already or the tensor is absent.
    pub(super) fn bind(&mut self, symbol: Symbol, param: usize, axis: usize) {
        let extent = self.extents(param).and_then(|e| e.get(axis).copied());
        if let (Some(slot @ None), Some(extent)) = (self.symbols.get_mut(symbol.index()), extent) {
            *slot = Some((extent, param, axis));
        }
    }

    /// The extents of an argument, if it is a tensor that is present.
    pub(super) fn extents(&self, param: usize) -> Option<&'a [i64]> {
        match self.args.get(param) {
            Some(ArgInfo::Tensor { extents, .. }) => Some(extents),
            Some(ArgInfo::Absent | ArgInfo::Scalar(_)) | None => None,
        }
    }

    /// The value of an expression.
    pub(super) fn eval(&self, expr: &HostExpr, place: &Place<'_>) -> Result<i64, BindError> {
        // Most expressions are a name: the extents of tensors.
        if let HostExpr::Symbol(symbol) = expr
            && let Some(Some((value, ..))) = self.symbols.get(symbol.index())
        {
            return Ok(*value);
        }
        self.require_leaves(expr, place)?;
        expr.eval(self).map_err(|source| self.no_value(expr, place, source))
    }

    pub(super) fn text(&self, expr: &HostExpr) -> String {
        text(expr, self.sig)
    }

    /// The names in an expression with their values, each once, in the order of appearance.
    pub(super) fn values(&self, expr: &HostExpr) -> Vec<(String, i64)> {
        self.origin(expr).into_iter().map(|o| (o.name, o.value)).collect()
    }

    /// As [`Arguments::values`], with the tensor and axis that bound each shape name.
    pub(super) fn origin(&self, expr: &HostExpr) -> Vec<Origin> {
        let mut found: Vec<Origin> = Vec::new();
        expr.visit(&mut |leaf| {
            let origin = match leaf {
                HostExpr::Symbol(s) => self.symbols.get(s.index()).copied().flatten(),
                HostExpr::Scalar(_) | HostExpr::Dim(..) => None,
                HostExpr::Const(_) | HostExpr::Not(_) | HostExpr::Binary(..) => return,
            };
            let Ok(value) = leaf.eval(self) else { return };
            let name = self.text(leaf);
            if found.iter().all(|known| known.name != name) {
                let bound_by = origin.map(|(_, param, axis)| (self.sig.params[param].name.clone(), axis));
                found.push(Origin { name, value, bound_by });
            }
        });
        found
    }

    pub(super) fn into_symbols(self) -> Vec<Option<i64>> {
        self.symbols.into_iter().map(|s| s.map(|(value, ..)| value)).collect()
    }

    /// Checks that every leaf has a value in range, before the expression is evaluated.
    fn require_leaves(&self, expr: &HostExpr, place: &Place<'_>) -> Result<(), BindError> {
        let mut problem = None;
        expr.visit(&mut |leaf| {
            let absent = match leaf {
                HostExpr::Symbol(s) if self.symbols.get(s.index()).copied().flatten().is_none() => self.binder(*s),
                HostExpr::Dim(param, _) if self.extents(*param).is_none() => self.param_name(*param),
                HostExpr::Scalar(param) if matches!(self.args.get(*param), Some(ArgInfo::Scalar(Const::Int(Elem::U64, v))) if *v < 0) => {
                    problem.get_or_insert_with(|| self.no_value(expr, place, HostExprError::Overflow));
                    return;
                }
                HostExpr::Symbol(_) | HostExpr::Dim(..) | HostExpr::Scalar(_) | HostExpr::Const(_) | HostExpr::Not(_)
                | HostExpr::Binary(..) => return,
            };
            problem.get_or_insert_with(|| BindError::Unbound {
                rule: place.rule(),
                place: place.to_string(),
                name: self.text(leaf),
                param: absent,
            });
        });
        problem.map_or(Ok(()), Err)
    }

    /// The first parameter that mentions a shape name.
    fn binder(&self, symbol: Symbol) -> String {
        use crate::ir::{DimSpec, ParamKind};
        let mentions = |spec: &DimSpec| matches!(spec, DimSpec::Bind(s) if *s == symbol);
        let binder = self.sig.params.iter().find(|p| match &p.kind {
            ParamKind::Tensor { shape, .. } => shape.iter().any(mentions),
            ParamKind::Scalar(_) => false,
        });
        binder.map_or_else(|| "its parameter".to_owned(), |p| p.name.clone())
    }

    fn param_name(&self, param: usize) -> String {
        self.sig.params.get(param).map_or_else(|| format!("argument {param}"), |p| p.name.clone())
    }

    fn no_value(&self, expr: &HostExpr, place: &Place<'_>, source: HostExprError) -> BindError {
        BindError::NoValue {
            rule: place.rule(),
            place: place.to_string(),
            expr: self.text(expr),
            values: self.values(expr),
            source,
        }
    }
}

impl HostEnv for Arguments<'_> {
    fn symbol(&self, symbol: Symbol) -> i64 {
        self.symbols.get(symbol.index()).copied().flatten().map_or(0, |(value, ..)| value)
    }

    fn scalar(&self, param: usize) -> i64 {
        match self.args.get(param) {
            Some(ArgInfo::Scalar(Const::Int(_, value))) => *value,
            Some(ArgInfo::Scalar(Const::Float(..)) | ArgInfo::Tensor { .. } | ArgInfo::Absent) | None => 0,
        }
    }

    fn dim(&self, param: usize, axis: usize) -> i64 {
        self.extents(param).and_then(|e| e.get(axis).copied()).unwrap_or(0)
    }
}

/// The expression in Rust syntax, with the necessary parentheses.
pub(super) fn text(expr: &HostExpr, names: &Signature) -> String {
    let operand = |e: &HostExpr, least: u8| {
        let inner = text(e, names);
        if precedence(e) < least { format!("({inner})") } else { inner }
    };
    match expr {
        HostExpr::Const(value) => value.to_string(),
        HostExpr::Symbol(symbol) => names.symbol(*symbol),
        HostExpr::Scalar(param) => names.param(*param),
        HostExpr::Dim(param, axis) => format!("{}.dim({axis})", names.param(*param)),
        HostExpr::Not(a) => format!("!{}", operand(a, 7)),
        HostExpr::Binary(op, a, b) if op.is_call() => {
            format!("{}({}, {})", op.text(), operand(a, 0), operand(b, 0))
        }
        HostExpr::Binary(op, a, b) => {
            let own = precedence(expr);
            // Comparisons do not chain.
            let left = own + u8::from(own == 3);
            format!("{} {} {}", operand(a, left), op.text(), operand(b, own + 1))
        }
    }
}

/// The precedence of the outermost operator in Rust.
fn precedence(expr: &HostExpr) -> u8 {
    match expr {
        HostExpr::Binary(op, ..) => match op {
            HostOp::Or => 1,
            HostOp::And => 2,
            HostOp::Eq | HostOp::Ne | HostOp::Lt | HostOp::Le | HostOp::Gt | HostOp::Ge => 3,
            HostOp::Add | HostOp::Sub => 4,
            HostOp::Mul | HostOp::Div | HostOp::Rem => 5,
            HostOp::Cdiv | HostOp::Min | HostOp::Max => 8,
        },
        HostExpr::Not(_) => 7,
        HostExpr::Const(_) | HostExpr::Symbol(_) | HostExpr::Scalar(_) | HostExpr::Dim(..) => 8,
    }
}
