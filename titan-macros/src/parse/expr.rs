//! Expressions.

use super::{Parser, first_span, ungrouped};
use crate::ast::{BinaryOp, Callee, Expr, ExprKind, LazyOp, Res, UnaryOp};
use crate::method::{Receiver, lookup};
use crate::usage;
use quote::ToTokens;
use syn::BinOp;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::Elem;

impl Parser<'_> {
    pub(super) fn expr(&mut self, e: &syn::Expr) -> Expr {
        self.no_attrs(attributes(e));
        match e {
            syn::Expr::Lit(l) => self.lit(&l.lit),
            syn::Expr::Path(p) if p.qself.is_none() => {
                let path = self.path(&p.path);
                let span = path.span();
                self.make(span, ExprKind::Path(path, Res::None))
            }
            syn::Expr::Paren(p) => {
                let inner = self.expr(&p.expr);
                self.make(inner.span, ExprKind::Paren(Box::new(inner), p.paren_token.span.join()))
            }
            syn::Expr::Group(g) => self.expr(&g.expr),
            syn::Expr::Unary(u) => self.unary(u),
            syn::Expr::Binary(b) => self.binary(b),
            syn::Expr::Assign(a) => {
                let (place, value) = (self.boxed(&a.left), self.boxed(&a.right));
                self.make(a.eq_token.span, ExprKind::Assign(place, value))
            }
            syn::Expr::Call(c) => self.call(c),
            syn::Expr::MethodCall(m) => self.method(m),
            syn::Expr::If(_)
            | syn::Expr::ForLoop(_)
            | syn::Expr::While(_)
            | syn::Expr::Loop(_)
            | syn::Expr::Block(_)
            | syn::Expr::Unsafe(_)
            | syn::Expr::Break(_)
            | syn::Expr::Continue(_)
            | syn::Expr::Return(_)
            | syn::Expr::Match(_) => self.control(e),
            syn::Expr::Array(a) => {
                let items = a.elems.iter().map(|e| self.expr(e)).collect();
                let span = a.bracket_token.span;
                self.make(span.open(), ExprKind::Array(items, span.join()))
            }
            syn::Expr::Tuple(t) => {
                let items = t.elems.iter().map(|e| self.expr(e)).collect();
                let span = t.paren_token.span;
                self.make(span.open(), ExprKind::Tuple(items, span.join()))
            }
            syn::Expr::Index(i) => {
                let (base, index) = (self.boxed(&i.expr), self.boxed(&i.index));
                self.make(i.bracket_token.span.open(), ExprKind::Index(base, index))
            }
            syn::Expr::Field(f) => self.field(f),
            syn::Expr::Closure(c) => self.closure(c),
            syn::Expr::Cast(c) => {
                let (inner, ty) = (self.boxed(&c.expr), self.ty(&c.ty));
                self.make(c.as_token.span, ExprKind::As(inner, ty))
            }
            syn::Expr::Range(r) => self.range(r),
            syn::Expr::Reference(r) => {
                let inner = self.boxed(&r.expr);
                self.make(r.and_token.span, ExprKind::Ref { mutable: r.mutability.is_some(), inner })
            }
            syn::Expr::Macro(m) => self.mac(&m.mac),
            other => self.unsupported(other),
        }
    }

    pub(super) fn boxed(&mut self, e: &syn::Expr) -> Box<Expr> {
        Box::new(self.expr(e))
    }

    pub(super) fn unsupported(&mut self, e: &syn::Expr) -> Expr {
        let span = first_span(e.to_token_stream());
        let (what, help) = match e {
            syn::Expr::Match(_) => {
                ("`match`", "write `if` and `else if`; the only `match` in kernels is `match role() { .. }`")
            }
            syn::Expr::Struct(_) => {
                self.has_struct = true;
                ("a struct", "kernels have scalars, tiles, tuples and arrays")
            }
            syn::Expr::Try(_) => ("`?`", "kernels return no errors; `tassert!` stops the launch"),
            syn::Expr::Await(_) | syn::Expr::Async(_) => {
                ("`async`", "the loads of a `pipelined` loop are asynchronous without it")
            }
            syn::Expr::Repeat(_) => ("`[value; n]`", "`Tile::<T, N>::full(value)` makes a tile"),
            syn::Expr::Let(_) => {
                ("`let` in a condition", "`if let Some(x) = option` cannot be combined with other conditions")
            }
            syn::Expr::Yield(_) | syn::Expr::TryBlock(_) | syn::Expr::Const(_) => {
                ("this expression", "docs/language.md describes the language of kernels")
            }
            _ => ("this expression", "docs/language.md describes the language of kernels"),
        };
        self.cx.error_help(Code::Syntax, span, format!("{what} is not supported in kernels"), help);
        self.bad(span)
    }

    fn lit(&mut self, lit: &syn::Lit) -> Expr {
        let span = lit.span();
        let suffix = |p: &Self, s: &str| match Elem::from_name(s) {
            Some(e) => Some(e),
            None => {
                if !s.is_empty() {
                    let title = format!("the suffix `{s}` of a literal is not an element type");
                    p.cx.error_help(
                        Code::Syntax,
                        span,
                        title,
                        "indices and loop bounds are `i32`; a literal needs no suffix",
                    );
                }
                None
            }
        };
        let kind = match lit {
            // In generic arguments the sign belongs to the literal.
            syn::Lit::Int(i) if i.base10_digits().starts_with('-') => {
                let title = format!("expected a number of at least 0, found `{}`", i.base10_digits());
                let help = "extents are at least 1, axes count from 0";
                self.cx.error_help(Code::LiteralRange, span, title, help);
                ExprKind::Bad
            }
            syn::Lit::Int(i) => match i.base10_parse::<u128>() {
                // `1f32` is an integer literal to the parser.
                Ok(v) => match suffix(self, i.suffix()) {
                    Some(e) if e.is_float() => {
                        ExprKind::Float(i.base10_digits().parse().unwrap_or(0.0), Some(e), i.token())
                    }
                    e => ExprKind::Int(v, e, i.token()),
                },
                Err(e) => {
                    self.syn_error(Code::LiteralRange, &e);
                    ExprKind::Bad
                }
            },
            syn::Lit::Float(f) => match suffix(self, f.suffix()) {
                // An `f32` literal is rounded once, from its decimal digits.
                Some(Elem::F32) => {
                    ExprKind::Float(f.base10_parse::<f32>().map_or(0.0, f64::from), Some(Elem::F32), f.token())
                }
                e => ExprKind::Float(f.base10_parse().unwrap_or(0.0), e, f.token()),
            },
            syn::Lit::Bool(b) => {
                ExprKind::Bool(b.value, syn::Ident::new(if b.value { "true" } else { "false" }, b.span))
            }
            _ => {
                self.cx.error_help(
                    Code::Syntax,
                    span,
                    "this literal is not supported in kernels",
                    "the literals are numbers, `true` and `false`",
                );
                ExprKind::Bad
            }
        };
        self.make(span, kind)
    }

    fn unary(&mut self, u: &syn::ExprUnary) -> Expr {
        let inner = self.boxed(&u.expr);
        match u.op {
            syn::UnOp::Neg(t) => self.make(t.span, ExprKind::Unary(UnaryOp::Neg, inner)),
            syn::UnOp::Not(t) => self.make(t.span, ExprKind::Unary(UnaryOp::Not, inner)),
            syn::UnOp::Deref(t) => self.make(t.span, ExprKind::Unary(UnaryOp::Deref, inner)),
            _ => self.bad(inner.span),
        }
    }

    fn binary(&mut self, b: &syn::ExprBinary) -> Expr {
        let (l, r) = (self.boxed(&b.left), self.boxed(&b.right));
        let span = first_span(b.op.to_token_stream());
        let kind = match b.op {
            BinOp::And(_) => ExprKind::Lazy(LazyOp::And, l, r),
            BinOp::Or(_) => ExprKind::Lazy(LazyOp::Or, l, r),
            op => match operator(op) {
                Some((op, false)) => ExprKind::Binary(op, l, r),
                Some((op, true)) => ExprKind::AssignOp(op, l, r),
                None => ExprKind::Bad,
            },
        };
        self.make(span, kind)
    }

    fn call(&mut self, c: &syn::ExprCall) -> Expr {
        let args = c.args.iter().map(|e| self.expr(e)).collect();
        let paren = c.paren_token.span.join();
        if let syn::Expr::Path(p) = ungrouped(&c.func)
            && p.qself.is_none()
        {
            let path = self.path(&p.path);
            let span = path.span();
            return self.make(span, ExprKind::Call { path, callee: Callee::None, args, paren });
        }
        let span = first_span(c.func.to_token_stream());
        let help = "give the function a name: `#[titan::device] fn f(..)`";
        self.cx.error_help(Code::Syntax, span, "kernels can only call functions by name", help);
        self.bad(span)
    }

    fn method(&mut self, m: &syn::ExprMethodCall) -> Expr {
        let recv = self.boxed(&m.receiver);
        let generics = m.turbofish.as_ref().map(|t| self.angle_args(t)).unwrap_or_default();
        let args = m.args.iter().map(|e| self.expr(e)).collect();
        let (name, paren) = (m.method.clone(), m.paren_token.span.join());
        self.make(name.span(), ExprKind::Method { recv, name, generics, args, paren })
    }

    fn field(&mut self, f: &syn::ExprField) -> Expr {
        let base = self.boxed(&f.base);
        match &f.member {
            syn::Member::Unnamed(i) => {
                let mut lit = proc_macro2::Literal::u32_unsuffixed(i.index);
                lit.set_span(i.span);
                self.make(i.span, ExprKind::Field(base, i.index as usize, lit))
            }
            syn::Member::Named(n) if is_method(&n.to_string()) => {
                let help = match usage::example(&n.to_string()) {
                    Some(example) => format!("call it: `{example}`"),
                    None => format!("call it: `x.{n}()`"),
                };
                self.cx.error_help(Code::Syntax, n.span(), format!("`{n}` is an operation, not a field"), help);
                self.bad(n.span())
            }
            syn::Member::Named(n) => {
                if !std::mem::replace(&mut self.has_struct, true) {
                    let help = "group values in tuples; the index of the program is `program_id(axis)`, an extent is `x.dim(axis)`";
                    let title = "structs and their fields are not supported in kernels";
                    // The struct may have been reported as the type of a parameter.
                    self.cx.unless_broken(Diagnostic::new(Code::Syntax, n.span(), title).help(help));
                }
                self.bad(n.span())
            }
        }
    }

    fn closure(&mut self, c: &syn::ExprClosure) -> Expr {
        let params = c
            .inputs
            .iter()
            .map(|p| match p {
                syn::Pat::Type(t) => self.pat(&t.pat),
                other => self.pat(other),
            })
            .collect();
        let body = self.boxed(&c.body);
        self.make(c.or1_token.span, ExprKind::Closure { params, body })
    }

    fn range(&mut self, r: &syn::ExprRange) -> Expr {
        let span = first_span(r.limits.to_token_stream());
        let (Some(lo), Some(hi)) = (&r.start, &r.end) else {
            self.cx.error_help(Code::Syntax, span, "a range must have both ends", "as in `0..n`");
            return self.bad(span);
        };
        let (lo, hi) = (self.boxed(lo), self.boxed(hi));
        let inclusive = matches!(r.limits, syn::RangeLimits::Closed(_));
        self.make(span, ExprKind::Range { lo, hi, inclusive })
    }
}

/// The attributes of an expression of a kind that kernels support.
fn attributes(e: &syn::Expr) -> &[syn::Attribute] {
    macro_rules! of {
        ($($variant:ident)*) => {
            match e {
                $(syn::Expr::$variant(e) => &e.attrs,)*
                _ => &[],
            }
        };
    }
    of! {
        Lit Path Paren Unary Binary Assign Call MethodCall If ForLoop While Loop Block Unsafe Break Continue Return Array Tuple Index
        Field Closure Cast Range Reference Macro Match
    }
}

/// The operator, and whether it assigns.
pub(super) fn operator(op: BinOp) -> Option<(BinaryOp, bool)> {
    Some(match op {
        BinOp::Add(_) => (BinaryOp::Add, false),
        BinOp::Sub(_) => (BinaryOp::Sub, false),
        BinOp::Mul(_) => (BinaryOp::Mul, false),
        BinOp::Div(_) => (BinaryOp::Div, false),
        BinOp::Rem(_) => (BinaryOp::Rem, false),
        BinOp::BitAnd(_) => (BinaryOp::And, false),
        BinOp::BitOr(_) => (BinaryOp::Or, false),
        BinOp::BitXor(_) => (BinaryOp::Xor, false),
        BinOp::Shl(_) => (BinaryOp::Shl, false),
        BinOp::Shr(_) => (BinaryOp::Shr, false),
        BinOp::Eq(_) => (BinaryOp::Eq, false),
        BinOp::Ne(_) => (BinaryOp::Ne, false),
        BinOp::Lt(_) => (BinaryOp::Lt, false),
        BinOp::Le(_) => (BinaryOp::Le, false),
        BinOp::Gt(_) => (BinaryOp::Gt, false),
        BinOp::Ge(_) => (BinaryOp::Ge, false),
        BinOp::AddAssign(_) => (BinaryOp::Add, true),
        BinOp::SubAssign(_) => (BinaryOp::Sub, true),
        BinOp::MulAssign(_) => (BinaryOp::Mul, true),
        BinOp::DivAssign(_) => (BinaryOp::Div, true),
        BinOp::RemAssign(_) => (BinaryOp::Rem, true),
        BinOp::BitAndAssign(_) => (BinaryOp::And, true),
        BinOp::BitOrAssign(_) => (BinaryOp::Or, true),
        BinOp::BitXorAssign(_) => (BinaryOp::Xor, true),
        BinOp::ShlAssign(_) => (BinaryOp::Shl, true),
        BinOp::ShrAssign(_) => (BinaryOp::Shr, true),
        _ => return None,
    })
}

/// Whether a tensor, tile or scalar has an operation of this name.
fn is_method(name: &str) -> bool {
    [Receiver::Tensor, Receiver::Tile, Receiver::Scalar].into_iter().any(|r| lookup(r, name).is_some())
}
