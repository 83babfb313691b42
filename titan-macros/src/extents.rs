//! The types of constant parameters where they are extents of tiles, which are `i32`, or axes, which are `usize`.
//!
//! Checked before types are inferred, and in device functions as they are written: rustc would report every use of the tile as well.
//!
//! Deliberately absent: the types of constant items, which are known only when their companions have answered; rustc reports these.

use crate::ast::{Expr, ExprKind, Function, GenericArg, GenericArgValue, GenericKind, GenericParam, TypeKind, TypeRef};
use crate::ctxt::Ctxt;
use crate::method;
use proc_macro2::Ident;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::Elem;

/// Checks the tiles of a signature.
pub(crate) fn check_signature(cx: &Ctxt, func: &Function) {
    func.params.iter().for_each(|p| check_type(cx, func, &p.ty));
    func.ret.iter().for_each(|t| check_type(cx, func, t));
}

fn check_type(cx: &Ctxt, func: &Function, ty: &TypeRef) {
    match &ty.kind {
        TypeKind::Tile(_, args, _) | TypeKind::Smem(_, args, _) | TypeKind::Dims(args) => check(cx, func, args),
        TypeKind::Tuple(list) => list.iter().for_each(|t| check_type(cx, func, t)),
        TypeKind::Array(t, _) => check_type(cx, func, t),
        TypeKind::Infer | TypeKind::Elem(..) | TypeKind::Tensor { .. } => {}
    }
}

/// Checks the generic arguments of a method: an axis first if it has one, else extents.
pub(crate) fn check_method(cx: &Ctxt, func: &Function, name: &Ident, generics: &[GenericArg], args: &[Expr]) {
    // Those of a part of a tile, whose argument is its place, are extents.
    let is_part = name == "slice" && matches!(args, [Expr { kind: ExprKind::Array(..), .. }]);
    let extents = match generics {
        [axis, extents @ ..] if method::takes_axis(&name.to_string()) && !is_part => {
            if let Some(param) = parameter(func, axis) {
                let title = format!("the axis `{}` is a parameter of the function", param.name);
                let help = format!(
                    "axes are written as numbers: `.{name}::<0>(..)`; write a branch for each: `if {} == 0`",
                    param.name
                );
                report(cx, Diagnostic::new(Code::IndexType, axis.span, title).help(help));
            }
            extents
        }
        args => args,
    };
    check(cx, func, extents);
}

/// Checks extents.
pub(crate) fn check(cx: &Ctxt, func: &Function, extents: &[GenericArg]) {
    for arg in extents {
        let other = match &arg.value {
            GenericArgValue::Type(TypeRef { kind: TypeKind::Dims(inner), .. }) => {
                check(cx, func, inner);
                None
            }
            GenericArgValue::Type(_) => parameter(func, arg),
            GenericArgValue::Const(e) => of_value(func, e),
        };
        if let Some(GenericParam { name, kind: GenericKind::ConstInt(elem), .. }) = other
            && *elem != Elem::I32
        {
            let title = format!("the extents of tiles are `i32`, but `{name}` is an `{elem}`");
            report(
                cx,
                Diagnostic::new(Code::IndexType, arg.span, title).help(format!("declare it as `const {name}: i32`")),
            );
        }
    }
}

/// A parameter that is used several times is one mistake.
fn report(cx: &Ctxt, diag: Diagnostic<proc_macro2::Span>) {
    if !cx.has(Code::IndexType) {
        cx.push(diag);
    }
}

/// The constant parameter that an argument names.
fn parameter<'f>(func: &'f Function, arg: &GenericArg) -> Option<&'f GenericParam> {
    match &arg.value {
        GenericArgValue::Type(TypeRef { kind: TypeKind::Elem(name, _), .. }) => named(func, name),
        GenericArgValue::Type(_) => None,
        GenericArgValue::Const(e) => of_value(func, e),
    }
}

fn named<'f>(func: &'f Function, name: &Ident) -> Option<&'f GenericParam> {
    func.generics.iter().find(|g| g.name == *name && matches!(g.kind, GenericKind::ConstInt(_)))
}

/// The constant parameter whose type is that of an expression.
fn of_value<'f>(func: &'f Function, e: &Expr) -> Option<&'f GenericParam> {
    match &e.kind {
        ExprKind::Path(path, _) => named(func, path.single()?),
        ExprKind::Paren(a, _) | ExprKind::Unary(_, a) => of_value(func, a),
        ExprKind::Binary(op, a, b) if !op.is_comparison() => of_value(func, a).or_else(|| of_value(func, b)),
        // A conversion has its own type; of any other expression, rustc finds it out.
        _ => None,
    }
}
