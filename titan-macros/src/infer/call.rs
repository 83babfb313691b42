//! Calls of functions: the language's own, and device functions.

use super::{E, ElemSlot, ITy, Infer, S};
use crate::ast::{Builtin, Callee, Expr, Path};
use crate::consts::ConstValue;
use crate::nearby;
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::{Elem, TileShape};

impl Infer<'_> {
    pub(super) fn call(&mut self, e: &Expr, path: &Path, callee: &Callee, args: &[Expr]) -> ITy {
        match callee {
            Callee::Builtin(b) => {
                let known = self.cx.known();
                let ty = self.builtin(*b, path, args, e.span);
                if self.cx.known() > known
                    && let Some(name) = path.single().map(ToString::to_string)
                    && nearby::has_function(&name, e.span)
                {
                    self.cx.of_another(known, e.span, &name);
                    return ITy::Unknown;
                }
                ty
            }
            Callee::Device(key) => self.device(key, path, args, e.span),
            Callee::None => ITy::Unknown,
        }
    }

    /// Checks the number of arguments.
    pub(super) fn arity(&mut self, args: &[Expr], n: usize, what: &str, span: Span) -> bool {
        if args.len() != n {
            self.wrong_count(args, n, what, span);
            args.iter().for_each(|a| drop(self.expr(a)));
        }
        args.len() == n
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each case")]
    fn builtin(&mut self, b: Builtin, path: &Path, args: &[Expr], span: Span) -> ITy {
        let i32 = |s: &mut Self| ITy::Scalar(s.known(Elem::I32));
        let name = path.last().map(ToString::to_string).unwrap_or_default();
        let n = match b {
            Builtin::TileZeros
            | Builtin::TileOnes
            | Builtin::Iota
            | Builtin::Role
            | Builtin::RingNew
            | Builtin::StagingNew
            | Builtin::AccZeros => 0,
            Builtin::AccFromTile | Builtin::StageJoin => 1,
            Builtin::MmaAsync | Builtin::MmaAsyncReg => 3,
            Builtin::ProgramId | Builtin::NumPrograms | Builtin::Pipelined | Builtin::TileFull | Builtin::Some => 1,
            Builtin::Cdiv | Builtin::Unflatten | Builtin::UnflattenGrouped => 2,
            Builtin::Mma | Builtin::Select => 3,
        };
        if !self.arity(args, n, &name, span) {
            return ITy::Unknown;
        }
        match b {
            Builtin::ProgramId | Builtin::NumPrograms => {
                self.const_axis(&args[0], 3);
                i32(self)
            }
            Builtin::Cdiv => {
                args.iter().for_each(|a| self.index_expr(a));
                i32(self)
            }
            Builtin::Unflatten => {
                self.index_expr(&args[0]);
                match self.expr(&args[1]) {
                    t @ ITy::Array(_, 1..=4) => {
                        let want = ITy::Array(Box::new(i32(self)), if let ITy::Array(_, n) = &t { *n } else { 0 });
                        self.unify(&want, &t, span)
                    }
                    other => {
                        let title = format!("`unflatten` takes one to four extents, not {}", self.describe(&other));
                        self.cx.error_help(Code::Arguments, args[1].span, title, "`unflatten(program_id(0), [B, H])`");
                        ITy::Unknown
                    }
                }
            }
            Builtin::UnflattenGrouped => {
                let generics = path.generics.as_ref().map(|(_, g)| &g[..]).unwrap_or_default();
                self.group_rows(generics, "unflatten_grouped::<8>(i, [rows, columns])", span);
                self.index_expr(&args[0]);
                let got = self.expr(&args[1]);
                let want = ITy::Array(Box::new(i32(self)), 2);
                self.unify(&want, &got, args[1].span)
            }
            Builtin::Pipelined => match self.expr(&args[0]) {
                ITy::Range | ITy::Unknown | ITy::Never => ITy::Range,
                other => {
                    self.wrong_kind(&ITy::Range, &other, args[0].span);
                    ITy::Range
                }
            },
            Builtin::Mma => self.mma(args, span),
            Builtin::Iota => {
                let generics = path.generics.as_ref().map(|(_, g)| &g[..]).unwrap_or_default();
                let [n] = generics else {
                    return self.cannot_infer(span, "the length of `iota`", "write `iota::<N>()`");
                };
                let shape = self.env.shape(std::slice::from_ref(n), span);
                match self.fault(shape) {
                    Some(s) => ITy::Tile(self.known(Elem::I32), self.known_shape(s)),
                    None => ITy::Unknown,
                }
            }
            Builtin::Select => self.select(args),
            Builtin::TileZeros | Builtin::TileOnes | Builtin::TileFull => {
                let (elem, shape) = self.tile_generics(path);
                if let Some(v) = args.first() {
                    let got = self.expr(v);
                    let want = ITy::Scalar(elem);
                    self.unify(&want, &got, v.span);
                }
                ITy::Tile(elem, shape)
            }
            Builtin::Role
            | Builtin::MmaAsync
            | Builtin::MmaAsyncReg
            | Builtin::RingNew
            | Builtin::StagingNew
            | Builtin::AccZeros
            | Builtin::AccFromTile
            | Builtin::StageJoin => self.pipe_builtin(b, path, args, span),
            Builtin::Some => {
                self.cx.error(
                    Code::Syntax,
                    span,
                    "kernels cannot create options; they test an optional tensor by `if let Some(x) = option`",
                );
                ITy::Unknown
            }
        }
    }

    /// `Tile::<T, A, B>::zeros()`: what is not written is inferred.
    fn tile_generics(&mut self, path: &Path) -> (E, S) {
        let generics = path.generics.as_ref().map(|(_, g)| &g[..]).unwrap_or_default();
        let [elem, dims @ ..] = generics else { return (self.fresh(ElemSlot::Any), self.fresh_shape()) };
        let e = match &elem.value {
            crate::ast::GenericArgValue::Type(t) => self.elem_ref(t),
            crate::ast::GenericArgValue::Const(_) => self.fresh(ElemSlot::Any),
        };
        let shape = if dims.is_empty() { None } else { Some(self.env.shape(dims, elem.span)) };
        let s = match shape.and_then(|s| self.fault(s)) {
            Some(s) => self.known_shape(s),
            None => self.fresh_shape(),
        };
        (e, s)
    }

    fn const_axis(&mut self, arg: &Expr, limit: i64) {
        self.expr(arg);
        match crate::consts::eval(arg, &self.env) {
            Ok(ConstValue::Int(v)) if (0..limit).contains(&v) => {}
            Ok(ConstValue::Int(v)) => {
                self.cx.error(Code::GridAxis, arg.span, format!("a grid has the axes 0, 1 and 2, but not {v}"))
            }
            _ => self.cx.error_help(
                Code::ConstEval,
                arg.span,
                "an axis must be a constant",
                "write a number or a constant parameter",
            ),
        }
    }

    fn mma(&mut self, args: &[Expr], span: Span) -> ITy {
        let tys: Vec<ITy> = args.iter().map(|a| self.expr(a)).collect();
        self.mma_types(&tys, span)
    }

    /// The type of an MMA with operands of these types, in registers or in a stage, and an accumulator.
    pub(super) fn mma_types(&mut self, tys: &[ITy], span: Span) -> ITy {
        let operand = |n: usize| tys.get(n).and_then(Self::operand_tile);
        let (Some((_, a)), Some((_, b)), Some(ITy::Tile(ec, c))) = (operand(0), operand(1), tys.get(2)) else {
            if !tys.iter().any(|t| matches!(t, ITy::Unknown | ITy::Never)) {
                let wrong = tys.iter().position(|t| Self::operand_tile(t).is_none()).and_then(|n| tys.get(n));
                let found = wrong.map_or_else(String::new, |t| format!(", not {}", self.describe(t)));
                let help = "write `mma(a, b, acc)` with the accumulator `Tile::<f32, M, N>::zeros()` to begin with";
                self.cx.error_help(Code::Arguments, span, format!("`mma` takes three tiles{found}"), help);
            }
            return ITy::Unknown;
        };
        let (Some(sa), Some(sb)) = (self.shape_of(a), self.shape_of(b)) else {
            return self.cannot_infer(span, "the shape of an operand of `mma`", "write its type");
        };
        let dims = match (&sa[..], &sb[..]) {
            ([m, k], [k2, n]) if k == k2 => TileShape::new(&[*m, *n]),
            ([l, m, k], [l2, k2, n]) if l == l2 && k == k2 => TileShape::new(&[*l, *m, *n]),
            _ => None,
        };
        let Some(dims) = dims else {
            self.cx.error(
                Code::MmaShapes,
                span,
                format!("`mma` of tiles of shape {sa} and {sb}: the inner extents differ"),
            );
            return tys[2].clone();
        };
        let want = self.known_shape(dims);
        if let Err((w, g)) = self.unify_shape(want, *c) {
            self.cx.error(
                Code::MmaShapes,
                span,
                format!("`mma` of tiles of shape {sa} and {sb} has the shape {w}, but the accumulator has {g}"),
            );
        }
        ITy::Tile(*ec, *c)
    }

    fn select(&mut self, args: &[Expr]) -> ITy {
        let tys: Vec<ITy> = args.iter().map(|a| self.expr(a)).collect();
        match &tys[0] {
            ITy::Tile(mask, shape) => {
                let bool = self.known(Elem::Bool);
                self.elem_or_report(bool, *mask, args[0].span);
                if self.small_mask(*shape, &tys[1..], args[0].span) {
                    return ITy::Unknown;
                }
                let (shape, elem) = (*shape, self.select_elem(&tys[1..]));
                for (t, a) in tys[1..].iter().zip(&args[1..]) {
                    self.beside_tile(elem, shape, t, a.span);
                }
                ITy::Tile(elem, shape)
            }
            ITy::Scalar(one) if self.elem_of(*one) == Some(Elem::Bool) => self.select_one(&tys[1..], &args[1..]),
            ITy::Unknown | ITy::Never => ITy::Unknown,
            other => {
                let title =
                    format!("the first argument of `select` is a mask or one `bool`, not {}", self.describe(other));
                let help = self.mask_help(other, &tys[1..]);
                self.cx.error_help(Code::Condition, args[0].span, title, help);
                ITy::Unknown
            }
        }
    }

    /// `select` by one `bool`, which takes one of two tiles or scalars as a whole.
    fn select_one(&mut self, tys: &[ITy], args: &[Expr]) -> ITy {
        let tile = tys.iter().find_map(|t| if let ITy::Tile(e, s) = t { Some((*e, *s)) } else { None });
        match (tile, tys) {
            (Some((elem, shape)), _) => {
                for (t, a) in tys.iter().zip(args) {
                    self.beside_tile(elem, shape, t, a.span);
                }
                ITy::Tile(elem, shape)
            }
            (None, [ITy::Scalar(a), ITy::Scalar(b)]) => {
                let (want, got, at) = if self.is_literal(*a) { (*b, *a, 0) } else { (*a, *b, 1) };
                self.elem_or_report(want, got, args[at].span);
                ITy::Scalar(*a)
            }
            (None, tys) if tys.iter().any(|t| matches!(t, ITy::Unknown | ITy::Never)) => ITy::Unknown,
            (None, tys) => {
                let kinds: Vec<String> = tys.iter().map(|t| self.describe(t)).collect();
                let title = format!("`select` by one `bool` cannot choose between {}", kinds.join(" and "));
                let help = "it chooses between tiles or scalars: choose before `.row()` and `.col()`, or write `if condition { a } else { b }`";
                self.cx.error_help(Code::Arguments, args[0].span, title, help);
                ITy::Unknown
            }
        }
    }

    /// The element of a `select`: that of the first operand which is not a scalar, or of the scalars.
    fn select_elem(&mut self, tys: &[ITy]) -> E {
        for t in tys {
            if let ITy::Tile(e, _) | ITy::Row(e, _) | ITy::Col(e, _) = t {
                return *e;
            }
        }
        for t in tys {
            if let ITy::Scalar(e) = t {
                return *e;
            }
        }
        self.fresh(ElemSlot::Any)
    }
}
