//! Integer expressions that the host evaluates at a launch: grids, shape checks and requirements.
//!
//! Their leaves are shape names, scalar arguments and constants. Evaluation is exact in `i64`; overflow and division by zero
//! are errors, not values.

use std::fmt;

crate::entity!(
    /// A shape name, bound to an extent by the first `#[shape(..)]` that mentions it.
    Symbol, "$"
);

/// A binary operator of a host expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`, rounded toward zero
    Div,
    /// `a % b`
    Rem,
    /// `cdiv(a, b)`: the quotient rounded up
    Cdiv,
    /// `min(a, b)`
    Min,
    /// `max(a, b)`
    Max,
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
    /// `a && b`
    And,
    /// `a || b`
    Or,
}

impl HostOp {
    /// Every operator with its spelling; those with letters are written as calls.
    pub const ALL: [(HostOp, &'static str); 16] = [
        (HostOp::Add, "+"),
        (HostOp::Sub, "-"),
        (HostOp::Mul, "*"),
        (HostOp::Div, "/"),
        (HostOp::Rem, "%"),
        (HostOp::Cdiv, "cdiv"),
        (HostOp::Min, "min"),
        (HostOp::Max, "max"),
        (HostOp::Eq, "=="),
        (HostOp::Ne, "!="),
        (HostOp::Lt, "<"),
        (HostOp::Le, "<="),
        (HostOp::Gt, ">"),
        (HostOp::Ge, ">="),
        (HostOp::And, "&&"),
        (HostOp::Or, "||"),
    ];

    /// The spelling in Rust: `+`, `min`.
    #[must_use]
    pub fn text(self) -> &'static str {
        HostOp::ALL.iter().find(|(op, _)| *op == self).map_or("?", |(_, t)| t)
    }

    /// Whether the operator is written as a call: `min(a, b)`.
    #[must_use]
    pub const fn is_call(self) -> bool {
        matches!(self, HostOp::Cdiv | HostOp::Min | HostOp::Max)
    }

    /// The binding strength, ordered as in Rust; operators that are written as calls bind most tightly.
    #[must_use]
    pub const fn binds(self) -> u8 {
        match self {
            HostOp::Or => 1,
            HostOp::And => 2,
            HostOp::Eq | HostOp::Ne | HostOp::Lt | HostOp::Le | HostOp::Gt | HostOp::Ge => 3,
            HostOp::Add | HostOp::Sub => 4,
            HostOp::Mul | HostOp::Div | HostOp::Rem => 5,
            HostOp::Cdiv | HostOp::Min | HostOp::Max => 7,
        }
    }

    /// Whether it is a comparison. Comparisons do not chain: `a < b < c` is a syntax error.
    #[must_use]
    pub const fn is_comparison(self) -> bool {
        matches!(self, HostOp::Eq | HostOp::Ne | HostOp::Lt | HostOp::Le | HostOp::Gt | HostOp::Ge)
    }

    /// Applies the operator, or returns why the result is undefined.
    fn apply(self, a: i64, b: i64) -> Result<i64, HostExprError> {
        let nonzero =
            |v: Option<i64>| if b == 0 { Err(HostExprError::DivisionByZero) } else { v.ok_or(HostExprError::Overflow) };
        match self {
            HostOp::Add => a.checked_add(b).ok_or(HostExprError::Overflow),
            HostOp::Sub => a.checked_sub(b).ok_or(HostExprError::Overflow),
            HostOp::Mul => a.checked_mul(b).ok_or(HostExprError::Overflow),
            HostOp::Div => nonzero(a.checked_div(b)),
            HostOp::Rem => nonzero(a.checked_rem(b)),
            HostOp::Cdiv => {
                let quotient = nonzero(a.checked_div(b))?;
                let up = a % b != 0 && (a % b < 0) == (b < 0);
                quotient.checked_add(i64::from(up)).ok_or(HostExprError::Overflow)
            }
            HostOp::Min => Ok(a.min(b)),
            HostOp::Max => Ok(a.max(b)),
            HostOp::Eq => Ok(i64::from(a == b)),
            HostOp::Ne => Ok(i64::from(a != b)),
            HostOp::Lt => Ok(i64::from(a < b)),
            HostOp::Le => Ok(i64::from(a <= b)),
            HostOp::Gt => Ok(i64::from(a > b)),
            HostOp::Ge => Ok(i64::from(a >= b)),
            HostOp::And => Ok(i64::from(a != 0 && b != 0)),
            HostOp::Or => Ok(i64::from(a != 0 || b != 0)),
        }
    }
}

/// The reason why a host expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostExprError {
    /// A division or remainder by zero.
    #[error("a division by zero")]
    DivisionByZero,
    /// A result outside of `i64`.
    #[error("a number outside of 64 bits")]
    Overflow,
}

/// An integer expression over the arguments of a launch. Conditions are 0 or 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostExpr {
    /// A constant.
    Const(i64),
    /// A shape name.
    Symbol(Symbol),
    /// A scalar integer argument, by parameter index.
    Scalar(usize),
    /// An extent of a tensor argument: parameter index and axis.
    Dim(usize, usize),
    /// `!a`
    Not(Box<HostExpr>),
    /// A binary operation.
    Binary(HostOp, Box<HostExpr>, Box<HostExpr>),
}

/// The values of the leaves of a host expression at one launch.
pub trait HostEnv {
    /// The value of a shape name.
    fn symbol(&self, symbol: Symbol) -> i64;
    /// The value of a scalar argument.
    fn scalar(&self, param: usize) -> i64;
    /// An extent of a tensor argument.
    fn dim(&self, param: usize, axis: usize) -> i64;
}

impl HostExpr {
    /// `op(a, b)`, folded if both are constants.
    #[must_use]
    pub fn binary(op: HostOp, a: HostExpr, b: HostExpr) -> HostExpr {
        if let (HostExpr::Const(x), HostExpr::Const(y)) = (&a, &b)
            && let Ok(v) = op.apply(*x, *y)
        {
            return HostExpr::Const(v);
        }
        HostExpr::Binary(op, Box::new(a), Box::new(b))
    }

    /// The value under `env`.
    ///
    /// # Errors
    /// Division by zero or a result outside of `i64`.
    pub fn eval(&self, env: &dyn HostEnv) -> Result<i64, HostExprError> {
        Ok(match self {
            HostExpr::Const(v) => *v,
            HostExpr::Symbol(s) => env.symbol(*s),
            HostExpr::Scalar(p) => env.scalar(*p),
            HostExpr::Dim(p, axis) => env.dim(*p, *axis),
            HostExpr::Not(a) => i64::from(a.eval(env)? == 0),
            // The right side of `&&` and `||` is not evaluated when the left one decides, as in Rust.
            HostExpr::Binary(HostOp::And, a, b) => i64::from(a.eval(env)? != 0 && b.eval(env)? != 0),
            HostExpr::Binary(HostOp::Or, a, b) => i64::from(a.eval(env)? != 0 || b.eval(env)? != 0),
            HostExpr::Binary(op, a, b) => op.apply(a.eval(env)?, b.eval(env)?)?,
        })
    }

    /// Calls `f` on every leaf and inner node.
    pub fn visit(&self, f: &mut dyn FnMut(&HostExpr)) {
        f(self);
        match self {
            HostExpr::Const(_) | HostExpr::Symbol(_) | HostExpr::Scalar(_) | HostExpr::Dim(..) => {}
            HostExpr::Not(a) => a.visit(f),
            HostExpr::Binary(_, a, b) => {
                a.visit(f);
                b.visit(f);
            }
        }
    }

    /// Writes the expression with the given names for its leaves, in the syntax of tile IR.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, f: &mut dyn fmt::Write, names: &dyn HostNames) -> fmt::Result {
        self.write_as(f, (names, Syntax::TileIr), 0)
    }

    /// The expression as the user writes it in the attribute of a kernel: `M.max(K)` and `x.dim(0)` instead of `max(M, K)` and `dim(x, 0)`.
    #[must_use]
    pub fn in_attribute(&self, names: &dyn HostNames) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_as(&mut out, (names, Syntax::Attribute), 0);
        out
    }

    /// Writes the expression, in parentheses if its precedence is too low for its position.
    fn write_as(
        &self,
        f: &mut dyn fmt::Write,
        how @ (names, syntax): (&dyn HostNames, Syntax),
        least: u8,
    ) -> fmt::Result {
        match self {
            HostExpr::Const(v) => write!(f, "{v}"),
            HostExpr::Symbol(s) => f.write_str(&names.symbol(*s)),
            HostExpr::Scalar(p) => f.write_str(&names.param(*p)),
            HostExpr::Dim(p, axis) => match syntax {
                Syntax::TileIr => write!(f, "dim({}, {axis})", names.param(*p)),
                Syntax::Attribute => write!(f, "{}.dim({axis})", names.param(*p)),
            },
            HostExpr::Not(a) => {
                f.write_str("!")?;
                a.write_as(f, how, PREFIX)
            }
            HostExpr::Binary(op, ..) if op.binds() < least => {
                f.write_str("(")?;
                self.write_as(f, how, 0)?;
                f.write_str(")")
            }
            HostExpr::Binary(op @ (HostOp::Min | HostOp::Max), a, b) if syntax == Syntax::Attribute => {
                a.write_as(f, how, op.binds())?;
                write!(f, ".{}(", op.text())?;
                b.write_as(f, how, 0)?;
                f.write_str(")")
            }
            HostExpr::Binary(op, a, b) if op.is_call() => {
                write!(f, "{}(", op.text())?;
                a.write_as(f, how, 0)?;
                f.write_str(", ")?;
                b.write_as(f, how, 0)?;
                f.write_str(")")
            }
            HostExpr::Binary(op, a, b) => {
                a.write_as(f, how, op.binds() + u8::from(op.is_comparison()))?;
                write!(f, " {} ", op.text())?;
                b.write_as(f, how, op.binds() + 1)
            }
        }
    }
}

/// How a host expression is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Syntax {
    TileIr,
    Attribute,
}

/// The precedence of `!`.
const PREFIX: u8 = 6;

/// The user's names of the leaves of a host expression, for printing it.
pub trait HostNames {
    /// The user's name of a shape symbol.
    fn symbol(&self, symbol: Symbol) -> String;
    /// The user's name of a parameter, as the text form writes it.
    fn param(&self, param: usize) -> String;
}
