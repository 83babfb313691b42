//! Statements and expressions.

use super::{ElemSlot, ITy, Infer};
use crate::ast::{Block, Expr, ExprKind, Res, Stmt, TypeKind, TypeRef, UnaryOp};
use crate::consts::{self, ConstValue};
use proc_macro2::Span;
use titan_core::diag::{Code, counted};
use titan_core::ir::Elem;

/// The most elements of an array that is indexed at run time: each but one costs a selection.
const TABLE: usize = 256;

impl Infer<'_> {
    pub(super) fn block(&mut self, block: &Block) -> ITy {
        let mut last = ITy::Unit;
        let mut diverges = false;
        for stmt in &block.stmts {
            last = ITy::Unit;
            match stmt {
                Stmt::Let { pat, ty, init, span } => {
                    let annotated = ty.as_ref().map(|t| self.ty_ref(t));
                    let value = init.as_ref().map(|e| self.value(e, "; write the call without a `let`"));
                    let ty = match (annotated, value) {
                        (Some(a), Some(v)) => self.unify(&a, &v, init.as_ref().map_or(*span, |e| e.span)),
                        (Some(t), None) | (None, Some(t)) => t,
                        (None, None) => ITy::Unknown,
                    };
                    diverges |= ty == ITy::Never;
                    self.bind(pat, &ty);
                }
                Stmt::Expr { expr, semi } => {
                    let ty = self.expr(expr);
                    diverges |= ty == ITy::Never;
                    last = if semi.is_some() { ITy::Unit } else { ty };
                }
            }
        }
        if diverges { ITy::Never } else { last }
    }

    pub(crate) fn expr(&mut self, e: &Expr) -> ITy {
        let ty = self.expr_kind(e);
        self.record(e, ty)
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each case")]
    fn expr_kind(&mut self, e: &Expr) -> ITy {
        match &e.kind {
            ExprKind::Int(_, suffix, _) => ITy::Scalar(self.literal(*suffix, ElemSlot::Int)),
            ExprKind::Float(_, suffix, _) => ITy::Scalar(self.literal(*suffix, ElemSlot::Float)),
            ExprKind::Bool(..) => ITy::Scalar(self.known(Elem::Bool)),
            ExprKind::Path(path, res) => self.path(path, res),
            ExprKind::Unary(op, a) => {
                let ty = self.expr(a);
                self.unary(*op, ty, e.span)
            }
            ExprKind::Binary(op, a, b) => {
                let (ta, tb) = (self.value(a, ""), self.value(b, ""));
                self.binary(*op, (&ta, a.span), (&tb, b.span), e.span)
            }
            ExprKind::Lazy(op, a, b) => {
                for side in [a, b] {
                    let ty = self.expr(side);
                    if !self.is_bool(&ty) {
                        // The same error on both sides is reported once.
                        self.not_a_condition(&ty, Some(op.symbol()), e.span);
                        return ITy::Unknown;
                    }
                }
                ITy::Scalar(self.known(Elem::Bool))
            }
            ExprKind::Assign(place, value) => {
                let want = self.expr(place);
                let got = self.value(value, "");
                let ty = self.unify(&want, &got, value.span);
                self.initialise(place, ty);
                ITy::Unit
            }
            ExprKind::AssignOp(op, place, value) => {
                let (a, b) = (self.expr(place), self.value(value, ""));
                let result = self.binary(*op, (&a, place.span), (&b, value.span), e.span);
                self.unify(&a, &result, e.span);
                ITy::Unit
            }
            ExprKind::Call { path, callee, args, .. } => self.call(e, path, callee, args),
            ExprKind::Method { recv, name, generics, args, .. } => self.method(recv, name, generics, args),
            ExprKind::If { .. }
            | ExprKind::Block(_)
            | ExprKind::Unsafe(_)
            | ExprKind::For { .. }
            | ExprKind::While { .. }
            | ExprKind::Loop { .. }
            | ExprKind::Break { .. }
            | ExprKind::Continue { .. }
            | ExprKind::Return(_)
            | ExprKind::Roles { .. } => self.control(e),
            ExprKind::Bad => ITy::Never,
            ExprKind::Array(list, _) => self.array(list, e.span),
            ExprKind::Tuple(list, _) if list.is_empty() => ITy::Unit,
            ExprKind::Tuple(list, _) => ITy::Tuple(list.iter().map(|e| self.expr(e)).collect()),
            ExprKind::Index(base, index) => self.index(base, index, e.span),
            ExprKind::Field(base, n, _) => match self.expr(base) {
                ITy::Tuple(list) if *n < list.len() => list[*n].clone(),
                ITy::Unknown | ITy::Never => ITy::Unknown,
                other => self.no_such(&format!("field `{n}`"), &other, e.span),
            },
            ExprKind::Closure { .. } => {
                let help = "closures are only allowed as arguments of `.map`, `.reduce` and `.scan`; write a function `#[titan::device] fn f(..)`";
                self.cx.error_help(Code::Syntax, e.span, "a closure cannot be a value", help);
                ITy::Unknown
            }
            ExprKind::As(a, ty) => self.as_cast(a, ty, e.span),
            ExprKind::Range { lo, hi, .. } => {
                self.index_expr(lo);
                self.index_expr(hi);
                ITy::Range
            }
            ExprKind::Paren(a, _) | ExprKind::Ref { inner: a, .. } => self.expr(a),
            ExprKind::Macro { name, args, .. } => {
                let is_assert = name == "tassert" || name == "static_assert";
                for a in args {
                    let ty = self.expr(a);
                    if is_assert && !matches!(&ty, ITy::Tile(..)) {
                        let _reported = self.expect_bool(&ty, a.span);
                    }
                }
                ITy::Unit
            }
        }
    }

    fn literal(&mut self, suffix: Option<Elem>, slot: ElemSlot) -> super::E {
        match suffix {
            Some(e) => self.known(e),
            None => self.fresh(slot),
        }
    }

    fn path(&mut self, path: &crate::ast::Path, res: &Res) -> ITy {
        let elem = match res {
            Res::Local(var) => return self.vars[*var].clone(),
            Res::Symbol(_) => Some(Elem::I32),
            Res::ConstParam(i) => match self.env.func.generics[*i].kind {
                crate::ast::GenericKind::ConstInt(e) => Some(e),
                _ => Some(Elem::Bool),
            },
            Res::Builtin => consts::builtin(path).map(titan_core::ir::Const::elem),
            Res::Assoc(i) => {
                let generic = self.env.func.generics[*i].name.to_string();
                let name = path.last().map(ToString::to_string).unwrap_or_default();
                self.env.elem(&generic).and_then(|e| consts::assoc(e, &name)).map(titan_core::ir::Const::elem)
            }
            Res::Constant(key) => {
                let constant = self.env.items.constants.get(key);
                if let Some((entries, elem)) = constant.and_then(|c| Some((c.entries()?, c.elem))) {
                    return ITy::Array(Box::new(ITy::Scalar(self.known(elem))), entries.len());
                }
                constant.map(|c| c.elem)
            }
            Res::None => return ITy::Unknown,
        };
        match elem {
            Some(e) => ITy::Scalar(self.known(e)),
            None => {
                self.cx.error(Code::UnknownName, path.span(), format!("`{}` is not in scope", path.text()));
                ITy::Unknown
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, ty: ITy, span: Span) -> ITy {
        match (op, &ty) {
            (UnaryOp::Deref, _) => {
                let help = match &ty {
                    ITy::Tensor(t) => {
                        &format!("{}, and store a tile by `y.store_tile([i], v)`", super::advice::load_help(t.rank))
                    }
                    _ => "scalars and tiles are values: remove `&` and `*`",
                };
                self.cx.error_help(Code::Syntax, span, "kernels have no pointers to dereference", help);
                ITy::Unknown
            }
            (UnaryOp::Not, ITy::Scalar(e) | ITy::Tile(e, _) | ITy::Row(e, _) | ITy::Col(e, _))
                if self.elem_of(*e).is_some_and(Elem::is_float) =>
            {
                let title = format!("`!` is not defined for `{}`", super::describe_slot(self.elem_slot(*e)));
                let help = "it takes `bool` and integers; a comparison is a `bool`: `x == 0.0`";
                self.cx.error_help(Code::ElementUnsupported, span, title, help);
                ITy::Unknown
            }
            (_, ITy::Scalar(_) | ITy::Tile(..) | ITy::Row(..) | ITy::Col(..) | ITy::Unknown | ITy::Never) => ty,
            (UnaryOp::Neg, other) => self.no_such("`-`", &other.clone(), span),
            (UnaryOp::Not, other) => self.no_such("`!`", &other.clone(), span),
        }
    }

    pub(super) fn no_such(&mut self, what: &str, ty: &ITy, span: Span) -> ITy {
        match ty {
            ITy::Unknown | ITy::Never => {}
            ITy::Tensor(_) => self.in_memory(ty, &format!("{what} works on tiles and scalars"), span),
            _ => self.cx.error(Code::UnknownOp, span, format!("{} has no {what}", self.describe(ty))),
        }
        ITy::Unknown
    }

    /// Whether a condition is one `bool`; reports it if not.
    pub(super) fn condition(&mut self, e: &Expr) -> bool {
        let ty = self.expr(e);
        self.expect_bool(&ty, e.span)
    }

    fn is_bool(&self, ty: &ITy) -> bool {
        match ty {
            ITy::Unknown | ITy::Never => true,
            ITy::Scalar(e) => self.elem_of(*e) == Some(Elem::Bool),
            _ => false,
        }
    }

    fn expect_bool(&mut self, ty: &ITy, span: Span) -> bool {
        let fits = self.is_bool(ty);
        if !fits {
            self.not_a_condition(ty, None, span);
        }
        fits
    }

    /// An `i32` scalar.
    pub(super) fn index_expr(&mut self, e: &Expr) {
        let ty = self.expr(e);
        let i32 = ITy::Scalar(self.known(Elem::I32));
        if !matches!(ty, ITy::Scalar(_) | ITy::Unknown | ITy::Never) {
            self.not_an_index(&ty, e.span);
            return;
        }
        if self.index_elem(&ty, e.span) {
            self.unify(&i32, &ty, e.span);
        }
    }

    /// Whether a scalar may still be an `i32`; reports it if not.
    pub(super) fn index_elem(&mut self, ty: &ITy, span: Span) -> bool {
        let ITy::Scalar(e) = ty else { return true };
        let fits = self.elem_of(*e).is_none_or(|e| e == Elem::I32);
        if !fits {
            self.not_an_index(ty, span);
        }
        fits
    }

    fn not_an_index(&mut self, ty: &ITy, span: Span) {
        let title = format!("an index must be an `i32`, not {}", self.describe(ty));
        let help = match ty {
            ITy::Scalar(_) => "convert it by `as i32`, if all of its values fit".to_owned(),
            ITy::Array(..) => "write one `i32`, without brackets".to_owned(),
            _ => "for example `program_id(0)`, the variable of a loop, or a shape name".to_owned(),
        };
        self.cx.error_help(Code::IndexType, span, title, help);
    }

    fn array(&mut self, list: &[Expr], span: Span) -> ITy {
        let mut item = ITy::Unknown;
        for e in list {
            let ty = self.expr(e);
            item = self.unify(&item, &ty, e.span);
        }
        if list.is_empty() {
            return self.cannot_infer(
                span,
                "the type of an empty array",
                "arrays in kernels have at least one element",
            );
        }
        ITy::Array(Box::new(item), list.len())
    }

    fn index(&mut self, base: &Expr, index: &Expr, span: Span) -> ITy {
        let ty = self.expr(base);
        let got = self.expr(index);
        let ITy::Array(item, n) = ty else { return self.not_indexed(base, &ty, span) };
        if let ITy::Scalar(e) = got
            && self.elem_of(e).is_none()
        {
            self.set_elem(e, Elem::I32);
        }
        match consts::eval(index, &self.env) {
            Ok(ConstValue::Int(i)) if usize::try_from(i).is_ok_and(|i| i < n) => *item,
            Ok(_) => {
                self.cx.error(
                    Code::ConstEval,
                    index.span,
                    format!("index out of bounds: the array has {}", counted(n, "element")),
                );
                ITy::Unknown
            }
            Err(_) => self.chosen(*item, n, &got, index.span),
        }
    }

    /// The type of an element of an array at a place that is known only at run time.
    fn chosen(&mut self, item: ITy, n: usize, place: &ITy, span: Span) -> ITy {
        let fits = match place {
            ITy::Scalar(e) | ITy::Tile(e, _) => self.elem_of(*e).is_none_or(|e| e == Elem::I32),
            ITy::Unknown | ITy::Never => return ITy::Unknown,
            _ => false,
        };
        if !fits {
            let title = format!("an array is indexed by an `i32` or a tile of `i32`, not by {}", self.describe(place));
            self.cx.error_help(Code::IndexType, span, title, "convert it by `.cast::<i32>()`, if all values fit");
            return ITy::Unknown;
        }
        if n > TABLE {
            let title = format!("an array of {n} elements is indexed at run time; at most {TABLE} are chosen from");
            let help = "put them in a tensor, and read it by `x.gather([i])` or `x.get([i])`";
            self.cx.error_help(Code::Arguments, span, title, help);
            return ITy::Unknown;
        }
        match (item, place) {
            (ITy::Scalar(e), ITy::Tile(_, s)) => ITy::Tile(e, *s),
            (item @ (ITy::Scalar(_) | ITy::Tile(..)), ITy::Scalar(_)) => item,
            (ITy::Unknown | ITy::Never, _) => ITy::Unknown,
            (item, _) => {
                let title = format!(
                    "the elements of this array are {}, which are not chosen at run time",
                    self.describe(&item)
                );
                let help = "arrays of numbers are indexed by an `i32` or a tile of them, arrays of tiles by an `i32`";
                self.cx.error_help(Code::Arguments, span, title, help);
                ITy::Unknown
            }
        }
    }

    /// Reports `x[i]` of a value that is not an array.
    fn not_indexed(&mut self, base: &Expr, ty: &ITy, span: Span) -> ITy {
        let name = if let ExprKind::Path(path, _) = &base.kind { path.text() } else { "x".to_owned() };
        let help = match ty {
            ITy::Tensor(t) if t.access == titan_core::ir::Access::In => {
                format!("`{name}.get([i])` reads one element, `{name}.load_tile::<..>([i])` a tile")
            }
            ITy::Tensor(_) => format!(
                "`{name}.get([i])` reads one element, `{name}.set([i], v)` writes one, and `{name}.load_tile::<..>([i])` reads a tile"
            ),
            ITy::Tile(..) => {
                "single elements are read from tensors, by `get`; a tile is used as a whole, by `reduce_..`, `split` or `select`"
                    .to_owned()
            }
            _ => return self.no_such("`[..]`", ty, span),
        };
        self.cx.error_help(Code::Syntax, span, format!("{} cannot be indexed by `[..]`", self.describe(ty)), help);
        ITy::Unknown
    }

    fn as_cast(&mut self, a: &Expr, ty: &TypeRef, span: Span) -> ITy {
        let from = self.expr(a);
        if let TypeKind::Elem(name, _) = &ty.kind
            && matches!(name.to_string().as_str(), "usize" | "isize" | "u128" | "i128" | "char")
        {
            let help = "indices and extents are `i32`";
            self.cx.error_help(Code::AsCast, ty.span, format!("kernels have no type `{name}`"), help);
            return ITy::Unknown;
        }
        let to = self.ty_ref(ty);
        match (&from, &to) {
            (ITy::Scalar(f), ITy::Scalar(t)) => {
                let half = |e: Option<Elem>| {
                    e.is_some_and(|e| !(e.is_arith_int() || matches!(e, Elem::F32 | Elem::F64 | Elem::Bool)))
                };
                if half(self.elem_of(*f)) || half(self.elem_of(*t)) {
                    let title = format!("`as` cannot convert {} to {}", self.describe(&from), self.describe(&to));
                    self.cast_instead(span, title, ty);
                }
                to
            }
            (ITy::Unknown | ITy::Never, _) | (_, ITy::Unknown) => to,
            _ => {
                let title = format!("`as` cannot convert {}, only scalars", self.describe(&from));
                self.cast_instead(span, title, ty);
                match (from, to) {
                    (ITy::Tile(_, s), ITy::Scalar(e)) => ITy::Tile(e, s),
                    _ => ITy::Unknown,
                }
            }
        }
    }

    fn cast_instead(&mut self, span: Span, title: String, ty: &TypeRef) {
        let name = if let TypeKind::Elem(name, _) = &ty.kind { name.to_string() } else { "..".to_owned() };
        self.cx.error_help(Code::AsCast, span, title, format!("write `.cast::<{name}>()`"));
    }

    /// The first assignment to a variable without initial value determines its type.
    fn initialise(&mut self, place: &Expr, ty: ITy) {
        match &place.kind {
            ExprKind::Path(_, Res::Local(var)) => {
                if self.vars[*var] == ITy::Unknown {
                    self.vars[*var] = ty;
                }
            }
            ExprKind::Tuple(list, _) => {
                if let ITy::Tuple(tys) = ty {
                    list.iter().zip(tys).for_each(|(p, t)| self.initialise(p, t));
                }
            }
            _ => self.cx.error(Code::Syntax, place.span, "only variables can be assigned to"),
        }
    }
}
