//! The constants of the standard library that kernels may name, and evaluation of constant expressions.
//!
//! Constant expressions are used as extents, in conditions that remove an arm, and in `#[titan::constant]` items.
//! Integers are evaluated in `i64`; a value that does not fit the type is an error and never wraps.

use crate::ast::{BinaryOp, Builtin, Callee, Expr, ExprKind, LazyOp, Path, Res, UnaryOp};
use titan_core::ir::{Const, Elem};

/// The value of `f32::MAX`, `i32::MIN`, `std::f32::consts::PI` and the like.
pub(crate) fn builtin(path: &Path) -> Option<Const> {
    let names: Vec<String> = path.segments.iter().map(ToString::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match &names[..] {
        ["std" | "core", "f32", "consts", name] => math(name).map(|v| Const::Float(Elem::F32, round_to_f32(v))),
        ["std" | "core", "f64", "consts", name] => math(name).map(|v| Const::Float(Elem::F64, v)),
        ["std" | "core", ty, name] | [ty, name] => assoc(Elem::from_name(ty)?, name),
        _ => None,
    }
}

/// The nearest `f32`.
#[expect(clippy::cast_possible_truncation, reason = "the conversion is meant to round")]
pub(crate) fn round_to_f32(v: f64) -> f64 {
    f64::from(v as f32)
}

/// An associated constant of an element type.
pub(crate) fn assoc(e: Elem, name: &str) -> Option<Const> {
    if e.is_float() {
        return float_assoc(e, name).map(|v| Const::Float(e, v));
    }
    let (bits, signed) = (e.bits(), e.is_signed_int());
    let v = match name {
        "MAX" if e == Elem::U64 => -1,
        "MAX" => (1i64 << (bits - u32::from(signed))).wrapping_sub(1),
        "MIN" if signed => i64::MIN >> (64 - bits),
        "MIN" => 0,
        "BITS" => return Some(Const::Int(Elem::U32, bits.into())),
        _ => return None,
    };
    e.is_int().then_some(Const::Int(e, v))
}

fn float_assoc(e: Elem, name: &str) -> Option<f64> {
    let (max, min_positive, epsilon) = match e {
        Elem::F64 => (f64::MAX, f64::MIN_POSITIVE, f64::EPSILON),
        Elem::F32 => (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE), f64::from(f32::EPSILON)),
        Elem::F16 => (65504.0, 6.103_515_625e-5, 9.765_625e-4),
        Elem::Bf16 => (3.389_531_389_251_535_5e38, f64::from(f32::MIN_POSITIVE), 0.007_812_5),
        _ => return None,
    };
    Some(match name {
        "MAX" => max,
        "MIN" => -max,
        "MIN_POSITIVE" => min_positive,
        "EPSILON" => epsilon,
        "INFINITY" => f64::INFINITY,
        "NEG_INFINITY" => f64::NEG_INFINITY,
        "NAN" => f64::NAN,
        _ => return None,
    })
}

/// Whether it is one of `std::f32::consts`.
pub(crate) fn is_mathematical(name: &str) -> bool {
    math(name).is_some()
}

fn math(name: &str) -> Option<f64> {
    use std::f64::consts as c;
    Some(match name {
        "PI" => c::PI,
        "TAU" => c::TAU,
        "E" => c::E,
        "LN_2" => c::LN_2,
        "LN_10" => c::LN_10,
        "LOG2_E" => c::LOG2_E,
        "LOG10_E" => c::LOG10_E,
        "LOG2_10" => c::LOG2_10,
        "LOG10_2" => c::LOG10_2,
        "SQRT_2" => c::SQRT_2,
        "FRAC_1_SQRT_2" => c::FRAC_1_SQRT_2,
        "FRAC_PI_2" => c::FRAC_PI_2,
        "FRAC_PI_3" => c::FRAC_PI_3,
        "FRAC_PI_4" => c::FRAC_PI_4,
        "FRAC_PI_6" => c::FRAC_PI_6,
        "FRAC_PI_8" => c::FRAC_PI_8,
        "FRAC_1_PI" => c::FRAC_1_PI,
        "FRAC_2_PI" => c::FRAC_2_PI,
        "FRAC_2_SQRT_PI" => c::FRAC_2_SQRT_PI,
        _ => return None,
    })
}

/// A constant value; literals have no type of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ConstValue {
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// The reason why an expression has no constant value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotConst {
    /// The value depends on the launch.
    Runtime,
    /// The expression is constant, but its evaluation fails.
    Error(String),
}

/// The environment that provides the values of names in constant expressions.
pub(crate) trait ConstEnv {
    fn value(&self, path: &Path, res: &Res) -> Option<ConstValue>;

    /// The number at a place of a constant table; nothing if it is no table, or has no such place.
    fn entry(&self, _table: &Res, _place: i64) -> Option<Result<ConstValue, NotConst>> {
        None
    }

    /// Rounds a float to the type of the expression: each operation rounds once.
    fn round(&self, v: f64) -> f64 {
        v
    }
}

/// Evaluates a constant expression.
pub(crate) fn eval(e: &Expr, env: &dyn ConstEnv) -> Result<ConstValue, NotConst> {
    match &e.kind {
        ExprKind::Int(v, _, _) => {
            i64::try_from(*v).map(ConstValue::Int).map_err(|_| NotConst::Error(format!("{v} is out of range")))
        }
        // A literal out of range is an error where it is compiled.
        ExprKind::Float(v, ..) if !v.is_finite() => Err(NotConst::Runtime),
        ExprKind::Float(v, ..) => Ok(ConstValue::Float(env.round(*v))),
        ExprKind::Bool(v, _) => Ok(ConstValue::Bool(*v)),
        ExprKind::Path(path, res) => {
            if let Some(c) = builtin(path) {
                return Ok(match c {
                    Const::Int(_, v) => ConstValue::Int(v),
                    Const::Float(_, v) => ConstValue::Float(v),
                });
            }
            env.value(path, res).ok_or(NotConst::Runtime)
        }
        ExprKind::Index(table, place) => match (&table.kind, eval(place, env)?) {
            (ExprKind::Path(_, res), ConstValue::Int(place)) => env.entry(res, place).unwrap_or(Err(NotConst::Runtime)),
            _ => Err(NotConst::Runtime),
        },
        ExprKind::Paren(a, _) => eval(a, env),
        ExprKind::As(a, ty) => cast(eval(a, env)?, ty, env),
        ExprKind::Unary(op, a) => match (op, eval(a, env)?) {
            (UnaryOp::Neg, ConstValue::Int(v)) => v.checked_neg().map(ConstValue::Int).ok_or_else(overflow),
            (UnaryOp::Neg, ConstValue::Float(v)) => Ok(ConstValue::Float(-v)),
            (UnaryOp::Not, ConstValue::Bool(v)) => Ok(ConstValue::Bool(!v)),
            _ => Err(NotConst::Runtime),
        },
        ExprKind::Binary(op, a, b) => Ok(match binary(*op, eval(a, env)?, eval(b, env)?)? {
            ConstValue::Float(v) => ConstValue::Float(env.round(v)),
            v => v,
        }),
        ExprKind::Lazy(op, a, b) => match (op, eval(a, env)?) {
            (LazyOp::And, ConstValue::Bool(false)) => Ok(ConstValue::Bool(false)),
            (LazyOp::Or, ConstValue::Bool(true)) => Ok(ConstValue::Bool(true)),
            (_, ConstValue::Bool(_)) => eval(b, env),
            _ => Err(NotConst::Runtime),
        },
        ExprKind::Call { callee: Callee::Builtin(Builtin::Cdiv), args, .. } => match &args[..] {
            [a, b] => match (eval(a, env)?, eval(b, env)?) {
                (ConstValue::Int(_), ConstValue::Int(0)) => Err(NotConst::Error("a division by zero".to_owned())),
                (ConstValue::Int(a), ConstValue::Int(b)) => a
                    .checked_add(b)
                    .and_then(|s| s.checked_sub(1))
                    .and_then(|s| s.checked_div(b))
                    .map(ConstValue::Int)
                    .ok_or_else(overflow),
                _ => Err(NotConst::Runtime),
            },
            _ => Err(NotConst::Runtime),
        },
        ExprKind::Method { recv, name, args, .. } => method(&name.to_string(), recv, args, env),
        ExprKind::Block(b) => block(b, env),
        ExprKind::If { cond, then, other } => branch(cond, then, other.as_deref(), env),
        _ => Err(NotConst::Runtime),
    }
}

/// `x as T`: between integers the low bits stay, floats truncate.
fn cast(v: ConstValue, ty: &crate::ast::TypeRef, env: &dyn ConstEnv) -> Result<ConstValue, NotConst> {
    let crate::ast::TypeKind::Elem(name, _) = &ty.kind else { return Err(NotConst::Runtime) };
    let to = Elem::from_name(&name.to_string()).ok_or(NotConst::Runtime)?;
    Ok(match v {
        ConstValue::Int(v) if to.is_float() => ConstValue::Float(env.round(v as f64)),
        ConstValue::Int(v) => ConstValue::Int(titan_core::ir::fold::wrap(to, v)),
        ConstValue::Float(v) if to == Elem::F32 => ConstValue::Float(round_to_f32(v)),
        ConstValue::Float(v) if to == Elem::F64 => ConstValue::Float(v),
        ConstValue::Bool(b) if to.is_int() => ConstValue::Int(b.into()),
        ConstValue::Float(_) | ConstValue::Bool(_) => return Err(NotConst::Runtime),
    })
}

fn branch(
    cond: &crate::ast::Cond,
    then: &crate::ast::Block,
    other: Option<&Expr>,
    env: &dyn ConstEnv,
) -> Result<ConstValue, NotConst> {
    let crate::ast::Cond::Expr(cond) = cond else { return Err(NotConst::Runtime) };
    match (eval(cond, env)?, other) {
        (ConstValue::Bool(true), _) => block(then, env),
        (ConstValue::Bool(false), Some(Expr { kind: ExprKind::Block(b), .. })) => block(b, env),
        (ConstValue::Bool(false), Some(e)) => eval(e, env),
        _ => Err(NotConst::Runtime),
    }
}

fn block(b: &crate::ast::Block, env: &dyn ConstEnv) -> Result<ConstValue, NotConst> {
    match &b.stmts[..] {
        [crate::ast::Stmt::Expr { expr, semi: None }] => eval(expr, env),
        _ => Err(NotConst::Runtime),
    }
}

fn method(name: &str, recv: &Expr, args: &[Expr], env: &dyn ConstEnv) -> Result<ConstValue, NotConst> {
    let recv = eval(recv, env)?;
    let arg = args.first().map(|a| eval(a, env)).transpose()?;
    Ok(match (name, recv, arg) {
        ("min", ConstValue::Int(a), Some(ConstValue::Int(b))) => ConstValue::Int(a.min(b)),
        ("max", ConstValue::Int(a), Some(ConstValue::Int(b))) => ConstValue::Int(a.max(b)),
        ("min", ConstValue::Float(a), Some(ConstValue::Float(b))) => ConstValue::Float(a.min(b)),
        ("max", ConstValue::Float(a), Some(ConstValue::Float(b))) => ConstValue::Float(a.max(b)),
        _ => return Err(NotConst::Runtime),
    })
}

fn overflow() -> NotConst {
    NotConst::Error("an overflow".to_owned())
}

fn binary(op: BinaryOp, a: ConstValue, b: ConstValue) -> Result<ConstValue, NotConst> {
    match (a, b) {
        (ConstValue::Int(a), ConstValue::Int(b)) => ints(op, a, b),
        (ConstValue::Float(a), ConstValue::Float(b)) => floats(op, a, b).ok_or(NotConst::Runtime),
        (ConstValue::Bool(a), ConstValue::Bool(b)) => Ok(ConstValue::Bool(match op {
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor | BinaryOp::Ne => a != b,
            BinaryOp::Eq => a == b,
            _ => return Err(NotConst::Runtime),
        })),
        _ => Err(NotConst::Runtime),
    }
}

fn ints(op: BinaryOp, a: i64, b: i64) -> Result<ConstValue, NotConst> {
    let zero = || NotConst::Error("a division by zero".to_owned());
    let shift = || u32::try_from(b).map_err(|_| overflow());
    Ok(match op {
        BinaryOp::Add => ConstValue::Int(a.checked_add(b).ok_or_else(overflow)?),
        BinaryOp::Sub => ConstValue::Int(a.checked_sub(b).ok_or_else(overflow)?),
        BinaryOp::Mul => ConstValue::Int(a.checked_mul(b).ok_or_else(overflow)?),
        BinaryOp::Div => ConstValue::Int(a.checked_div(b).ok_or_else(zero)?),
        BinaryOp::Rem => ConstValue::Int(a.checked_rem(b).ok_or_else(zero)?),
        BinaryOp::And => ConstValue::Int(a & b),
        BinaryOp::Or => ConstValue::Int(a | b),
        BinaryOp::Xor => ConstValue::Int(a ^ b),
        BinaryOp::Shl => ConstValue::Int(a.checked_shl(shift()?).ok_or_else(overflow)?),
        BinaryOp::Shr => ConstValue::Int(a.checked_shr(shift()?).ok_or_else(overflow)?),
        BinaryOp::Eq => ConstValue::Bool(a == b),
        BinaryOp::Ne => ConstValue::Bool(a != b),
        BinaryOp::Lt => ConstValue::Bool(a < b),
        BinaryOp::Le => ConstValue::Bool(a <= b),
        BinaryOp::Gt => ConstValue::Bool(a > b),
        BinaryOp::Ge => ConstValue::Bool(a >= b),
    })
}

fn floats(op: BinaryOp, a: f64, b: f64) -> Option<ConstValue> {
    Some(match op {
        BinaryOp::Add => ConstValue::Float(a + b),
        BinaryOp::Sub => ConstValue::Float(a - b),
        BinaryOp::Mul => ConstValue::Float(a * b),
        BinaryOp::Div => ConstValue::Float(a / b),
        BinaryOp::Rem => ConstValue::Float(a % b),
        BinaryOp::Lt => ConstValue::Bool(a < b),
        BinaryOp::Le => ConstValue::Bool(a <= b),
        BinaryOp::Gt => ConstValue::Bool(a > b),
        BinaryOp::Ge => ConstValue::Bool(a >= b),
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => {
            return None;
        }
    })
}
