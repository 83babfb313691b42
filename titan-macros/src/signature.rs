//! Parameters, shape names, grid and requirements of one instance.

use crate::ast::{Expr, ExprKind, KernelItem, Param, Res, TypeKind, TypeRef, UnaryOp};
use crate::consts::{self, ConstValue};
use crate::ctxt::Ctxt;
use crate::hygiene::Mark;
use crate::infer::ITy;
use crate::items::FnEnv;
use crate::lower::host::Host;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{Builder, DimSpec, Elem, GridSpec, HostExpr};

/// The shape names of a kernel: single names in `#[shape(..)]` that are neither generics nor parameters.
pub(crate) fn symbols(item: &KernelItem) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for p in &item.func.params {
        for dim in p.shape.iter().flat_map(|(_, dims)| dims).flatten() {
            if let Some((name, mark)) = lone_name(dim) {
                let is_generic = item.func.generics.iter().any(|g| g.name == name);
                let is_param = item.func.params.iter().any(|p| p.mark == mark);
                if !is_generic && !is_param && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    names
}

fn lone_name(e: &Expr) -> Option<(String, Mark)> {
    match &e.kind {
        ExprKind::Path(p, _) => p.single().map(|name| (name.to_string(), p.mark)),
        _ => None,
    }
}

/// The place where a grid, shape or requirement uses a constant of this name.
pub(crate) fn mentioned(item: &KernelItem, key: &str) -> Option<Span> {
    fn find(e: &Expr, key: &str, found: &mut Option<Span>) {
        if matches!(&e.kind, ExprKind::Path(_, Res::Constant(name)) if name == key) {
            found.get_or_insert(e.span);
        }
        e.children(&mut |c| find(c, key, found));
    }
    let shapes = item.func.params.iter().flat_map(|p| &p.shape).flat_map(|(_, dims)| dims.iter().flatten());
    let grid = item.config.grid.iter().flat_map(|(_, extents)| extents);
    let mut found = None;
    shapes.chain(grid).chain(&item.config.requires).for_each(|e| find(e, key, &mut found));
    found
}

/// Adds the parameters and their shapes; returns whether there was no error.
pub(crate) fn declare(
    cx: &Ctxt,
    item: &KernelItem,
    env: FnEnv<'_>,
    b: &mut Builder,
    tys: &[ITy],
    elems: &[Option<Elem>],
) -> bool {
    let mut ok = true;
    for ((p, ty), elem) in item.func.params.iter().zip(tys).zip(elems) {
        ok &= add_param(cx, p, ty, *elem, b);
    }
    if !ok {
        return false;
    }
    let mut bound: Vec<String> = Vec::new();
    for (i, p) in item.func.params.iter().enumerate() {
        let ITy::Tensor(t) = &tys[i] else { continue };
        let Some((span, dims)) = &p.shape else { continue };
        if dims.len() != usize::from(t.rank) {
            let plural = if dims.len() == 1 { "" } else { "s" };
            let title = format!("{} extent{plural} for a tensor of rank {}", dims.len(), t.rank);
            cx.error_help(Code::ShapeRank, *span, title, rank_help(dims.len(), t.rank));
            ok = false;
            continue;
        }
        let specs = dims.iter().map(|d| dim_spec(cx, env, b, d.as_ref(), t.optional, &mut bound)).collect();
        b.set_shape(i, specs);
    }
    // After a broken declaration, a name that it would have bound is not reported as missing.
    ok && all_bound(cx, item, &bound)
}

/// How a declaration and a rank are made to agree.
fn rank_help(extents: usize, rank: u8) -> String {
    match extents.saturating_sub(usize::from(rank)) {
        0 => "write `_` for an extent without a name".to_owned(),
        1 => format!("remove one of the extents, or declare a tensor of rank {extents}: `Tensor<.., {extents}>`"),
        more => format!("remove {more} of the extents, or declare a tensor of rank {extents}: `Tensor<.., {extents}>`"),
    }
}

fn add_param(cx: &Ctxt, p: &Param, ty: &ITy, elem: Option<Elem>, b: &mut Builder) -> bool {
    match ty {
        ITy::Tensor(t) => {
            b.tensor(&p.name.to_string(), t.elem, t.access, t.optional, vec![DimSpec::Any; usize::from(t.rank)]);
            true
        }
        ITy::Scalar(_) => {
            if let Some((span, _)) = &p.shape {
                let help =
                    "only tensors have shapes; a scalar argument may be used in `grid` and `require` by its name";
                cx.error_help(Code::ShapeTarget, *span, format!("`{}` is a scalar and has no shape", p.name), help);
                return false;
            }
            let Some(elem) = elem else { return false };
            if let TypeKind::Elem(name, _) = &p.ty.kind
                && Elem::from_name(&name.to_string()).is_none()
            {
                let title = format!("the scalar `{}` has a generic type", p.name);
                let help = format!(
                    "give it a fixed type, as in `{}: f32`, and convert it in the kernel: `.cast::<{name}>()`",
                    p.name
                );
                cx.error_help(Code::Parameter, p.ty.span, title, help);
                return false;
            }
            if !(elem.is_arith() || elem == Elem::Bool) {
                cx.error(
                    Code::Parameter,
                    p.ty.span,
                    format!("an argument cannot have the type `{elem}`: only elements of tensors and tiles can"),
                );
                return false;
            }
            b.scalar(&p.name.to_string(), elem);
            true
        }
        _ => {
            refuse(cx, p);
            false
        }
    }
}

/// Reports a parameter that is neither a tensor nor a scalar.
pub(crate) fn refuse(cx: &Ctxt, p: &Param) {
    let (span, title, help) = refused(p);
    cx.error_help(Code::Parameter, span, title, help);
}

fn refused(p: &Param) -> (Span, String, String) {
    let help = "a parameter is a scalar, `&Tensor<T, R>`, `&mut Tensor<T, R>` or `Option<&Tensor<T, R>>`".to_owned();
    match &p.ty.kind {
        TypeKind::Tensor { elem, .. } => {
            let name = if let TypeKind::Elem(name, _) = &elem.kind { name.to_string() } else { "this".to_owned() };
            let list: Vec<&str> = Elem::ALL.iter().map(|e| e.name()).collect();
            (elem.span, format!("`{name}` is not an element type"), format!("element types: {}", list.join(", ")))
        }
        TypeKind::Tile(..) => (p.ty.span, format!("`{}` is a tile, but tiles exist only inside kernels", p.name), help),
        TypeKind::Elem(name, _) if name == "usize" || name == "isize" => {
            let help = "extents and indices are `i32`".to_owned();
            (p.ty.span, format!("`{}` has the type `{name}`, which kernels do not take", p.name), help)
        }
        _ => (p.ty.span, format!("`{}` has a type that kernels do not take", p.name), help),
    }
}

/// Whether the element type of a tensor, or the type of a scalar, is unknown.
pub(crate) fn is_unknown(ty: &TypeRef, env: FnEnv<'_>) -> bool {
    match &ty.kind {
        TypeKind::Tensor { elem, .. } => is_unknown(elem, env),
        TypeKind::Elem(name, _) => env.elem(&name.to_string()).is_none(),
        _ => false,
    }
}

fn dim_spec(
    cx: &Ctxt,
    env: FnEnv<'_>,
    b: &mut Builder,
    dim: Option<&Expr>,
    optional: bool,
    bound: &mut Vec<String>,
) -> DimSpec {
    let Some(e) = dim else { return DimSpec::Any };
    if let ExprKind::Path(_, Res::Symbol(name)) = &e.kind
        && !optional
        && !bound.contains(name)
    {
        bound.push(name.clone());
        return DimSpec::Bind(b.symbol(name));
    }
    match (Host { cx, env }).expr(b, e) {
        Some(expr) => DimSpec::Equals(expr),
        None => DimSpec::Any,
    }
}

/// Checks that every shape name is bound by a tensor that is not optional.
fn all_bound(cx: &Ctxt, item: &KernelItem, bound: &[String]) -> bool {
    let mut ok = true;
    for p in &item.func.params {
        for dim in p.shape.iter().flat_map(|(_, dims)| dims).flatten() {
            if let ExprKind::Path(_, Res::Symbol(name)) = &dim.kind
                && !bound.contains(name)
            {
                let title = format!("`{name}` is declared only by a tensor that may be absent");
                cx.error_help(Code::ShapeName, dim.span, title, "declare it by a tensor that is not optional");
                ok = false;
            }
        }
    }
    ok
}

/// The grid as declared; `None` if it is to be inferred.
pub(crate) fn grid(cx: &Ctxt, item: &KernelItem, env: FnEnv<'_>, b: &mut Builder) -> Option<GridSpec> {
    let (span, exprs) = item.config.grid.as_ref()?;
    if !(1..=3).contains(&exprs.len()) {
        cx.error(Code::Grid, *span, format!("a grid must have one to three extents, not {}", exprs.len()));
    }
    let host = Host { cx, env };
    let extents: Vec<HostExpr> = exprs.iter().filter_map(|e| host.expr(b, e)).collect();
    Some(GridSpec::Extents(extents))
}

/// Adds the requirements.
pub(crate) fn requires(cx: &Ctxt, item: &KernelItem, env: FnEnv<'_>, b: &mut Builder) {
    let host = Host { cx, env };
    for e in &item.config.requires {
        if !is_condition(e, item, env) {
            let help = "compare it: `require(N % 64 == 0)`";
            cx.error_help(Code::Attribute, e.span, "a requirement must be a condition, not a number", help);
            continue;
        }
        match host.expr(b, e) {
            Some(HostExpr::Const(0)) => {
                let name = b.kernel().sig.full_name();
                cx.error(Code::Requirement, e.span, format!("no launch of `{name}` can meet this requirement"));
            }
            Some(HostExpr::Const(_)) | None => {}
            Some(expr) => b.require(expr),
        }
    }
}

/// Whether a requirement is a condition. Expressions that are not allowed here at all are reported elsewhere.
fn is_condition(e: &Expr, item: &KernelItem, env: FnEnv<'_>) -> bool {
    match &e.kind {
        ExprKind::Paren(inner, _) => is_condition(inner, item, env),
        ExprKind::Binary(op, ..) => op.is_comparison(),
        ExprKind::Int(..) | ExprKind::Call { .. } | ExprKind::Method { .. } | ExprKind::Path(_, Res::Symbol(_)) => {
            false
        }
        ExprKind::Unary(op, _) => *op == UnaryOp::Not,
        ExprKind::Path(_, Res::Local(param)) => item.func.params.get(*param).is_none_or(|p| match &p.ty.kind {
            TypeKind::Elem(name, _) => env.elem(&name.to_string()).is_none_or(|e| e == Elem::Bool),
            _ => true,
        }),
        _ => !matches!(consts::eval(e, &env), Ok(ConstValue::Int(_))),
    }
}

/// Values of the shape names, at the start of the body.
pub(crate) fn symbol_dims(b: &Builder) -> Vec<(String, usize, u8)> {
    let sig = &b.kernel().sig;
    let mut out = Vec::new();
    for (i, p) in sig.params.iter().enumerate() {
        if let titan_core::ir::ParamKind::Tensor { shape, .. } = &p.kind {
            for (axis, d) in shape.iter().enumerate() {
                if let DimSpec::Bind(s) = d {
                    out.push((sig.symbols[s.index()].clone(), i, u8::try_from(axis).unwrap_or(0)));
                }
            }
        }
    }
    out
}
