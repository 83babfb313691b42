//! Expressions.

use super::{Parser, first_span};
use crate::ast::{BinaryOp, Callee, Cond, Expr, ExprKind, LazyOp, Res, UnaryOp};
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{BinOp, Token};
use titan_core::diag::Code;
use titan_core::ir::Elem;

impl Parser<'_> {
    pub(super) fn expr(&mut self, e: &syn::Expr) -> Expr {
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
            syn::Expr::If(_) | syn::Expr::ForLoop(_) | syn::Expr::While(_) | syn::Expr::Loop(_) | syn::Expr::Block(_)
            | syn::Expr::Unsafe(_) | syn::Expr::Break(_) | syn::Expr::Continue(_) | syn::Expr::Return(_) => self.control(e),
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

    fn unsupported(&mut self, e: &syn::Expr) -> Expr {
        let span = first_span(e.to_token_stream());
        let (what, help) = match e {
            syn::Expr::Match(_) => ("`match`", "write `if` and `else if`"),
            syn::Expr::Struct(_) => {
                self.has_struct = true;
                ("a struct", "kernels have scalars, tiles, tuples and arrays")
            }
            syn::Expr::Try(_) => ("`?`", "kernels have no errors; `tassert!` traps"),
            syn::Expr::Await(_) | syn::Expr::Async(_) => ("`async`", "loads of a `pipelined` loop run ahead by themselves"),
            syn::Expr::Repeat(_) => ("`[value; n]`", "`Tile::<T, N>::full(value)` makes a tile"),
            syn::Expr::Let(_) => ("`let` in a condition", "`if let Some(x) = option` stands alone"),
            syn::Expr::Yield(_) | syn::Expr::TryBlock(_) | syn::Expr::Const(_) => ("this expression", "see docs/language.md"),
            _ => ("this expression", "see docs/language.md for what kernels have"),
        };
        self.cx.error_help(Code::Syntax, span, format!("{what} is not part of kernels"), help);
        self.bad(span)
    }

    fn lit(&mut self, lit: &syn::Lit) -> Expr {
        let span = lit.span();
        let suffix = |p: &Self, s: &str| match Elem::from_name(s) {
            Some(e) => Some(e),
            None => {
                if !s.is_empty() {
                    p.cx.error(Code::Syntax, span, format!("the literal's type `{s}` is not an element type"));
                }
                None
            }
        };
        let kind = match lit {
            syn::Lit::Int(i) => match i.base10_parse::<u128>() {
                // `1f32` is an integer literal to the parser.
                Ok(v) => match suffix(self, i.suffix()) {
                    Some(e) if e.is_float() => ExprKind::Float(i.base10_digits().parse().unwrap_or(0.0), Some(e), i.token()),
                    e => ExprKind::Int(v, e, i.token()),
                },
                Err(e) => {
                    self.syn_error(Code::LiteralRange, &e);
                    ExprKind::Bad
                }
            },
            syn::Lit::Float(f) => match suffix(self, f.suffix()) {
                // An `f32` literal is rounded once, from its decimal digits.
                Some(Elem::F32) => ExprKind::Float(f.base10_parse::<f32>().map_or(0.0, f64::from), Some(Elem::F32), f.token()),
                e => ExprKind::Float(f.base10_parse().unwrap_or(0.0), e, f.token()),
            },
            syn::Lit::Bool(b) => ExprKind::Bool(b.value, syn::Ident::new(if b.value { "true" } else { "false" }, b.span)),
            _ => {
                self.cx.error_help(Code::Syntax, span, "a literal that kernels do not have", "they have numbers, `true` and `false`");
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
        if let syn::Expr::Path(p) = &*c.func
            && p.qself.is_none()
        {
            let path = self.path(&p.path);
            let span = path.span();
            return self.make(span, ExprKind::Call { path, callee: Callee::None, args, paren });
        }
        let span = first_span(c.func.to_token_stream());
        let help = "give the function a name: `#[titan::device] fn f(..)`";
        self.cx.error_help(Code::Syntax, span, "only functions with a name are called in kernels", help);
        self.bad(span)
    }

    fn method(&mut self, m: &syn::ExprMethodCall) -> Expr {
        let recv = self.boxed(&m.receiver);
        let generics = m.turbofish.as_ref().map(|t| self.angle_args(t)).unwrap_or_default();
        let args = m.args.iter().map(|e| self.expr(e)).collect();
        let (name, paren) = (m.method.clone(), m.paren_token.span.join());
        self.make(name.span(), ExprKind::Method { recv, name, generics, args, paren })
    }

    fn control(&mut self, e: &syn::Expr) -> Expr {
        match e {
            syn::Expr::If(i) => self.branch(i),
            syn::Expr::ForLoop(f) => {
                let (pat, iter, body) = (self.pat(&f.pat), self.boxed(&f.expr), self.block(&f.body));
                self.make(f.for_token.span, ExprKind::For { label: label(f.label.as_ref()), pat, iter, body })
            }
            syn::Expr::While(w) => {
                let (cond, body) = (self.boxed(&w.cond), self.block(&w.body));
                self.make(w.while_token.span, ExprKind::While { label: label(w.label.as_ref()), cond, body })
            }
            syn::Expr::Loop(l) => {
                let body = self.block(&l.body);
                self.make(l.loop_token.span, ExprKind::Loop { label: label(l.label.as_ref()), body })
            }
            syn::Expr::Block(b) => {
                if let Some(l) = &b.label {
                    self.cx.error(Code::Syntax, l.name.ident.span(), "labels name loops in kernels");
                }
                let block = self.block(&b.block);
                self.make(block.span, ExprKind::Block(block))
            }
            syn::Expr::Unsafe(u) => {
                let block = self.block(&u.block);
                self.make(u.unsafe_token.span, ExprKind::Unsafe(block))
            }
            syn::Expr::Break(b) => {
                let value = b.expr.as_ref().map(|e| self.boxed(e));
                let label = b.label.as_ref().map(|l| l.ident.clone());
                self.make(b.break_token.span, ExprKind::Break { label, value })
            }
            syn::Expr::Continue(c) => {
                let label = c.label.as_ref().map(|l| l.ident.clone());
                self.make(c.continue_token.span, ExprKind::Continue { label })
            }
            syn::Expr::Return(r) => {
                let value = r.expr.as_ref().map(|e| self.boxed(e));
                self.make(r.return_token.span, ExprKind::Return(value))
            }
            other => self.unsupported(other),
        }
    }

    fn branch(&mut self, i: &syn::ExprIf) -> Expr {
        let cond = match &*i.cond {
            syn::Expr::Let(l) => self.let_some(l),
            other => Cond::Expr(self.expr(other)),
        };
        let then = self.block(&i.then_branch);
        let other = i.else_branch.as_ref().map(|(_, e)| self.boxed(e));
        self.make(i.if_token.span, ExprKind::If { cond: Box::new(cond), then, other })
    }

    /// `let Some(name) = option`
    fn let_some(&mut self, l: &syn::ExprLet) -> Cond {
        let option = self.expr(&l.expr);
        if let syn::Pat::TupleStruct(t) = &*l.pat
            && t.path.is_ident("Some")
            && let Some(inner) = t.elems.first()
            && t.elems.len() == 1
        {
            return Cond::LetSome { pat: self.pat(inner), option, span: l.let_token.span };
        }
        let help = "`if let Some(x) = option` asks whether an optional tensor was given";
        self.cx.error_help(Code::Syntax, l.let_token.span, "a pattern that kernels do not have", help);
        Cond::Expr(self.bad(l.let_token.span))
    }

    fn field(&mut self, f: &syn::ExprField) -> Expr {
        let base = self.boxed(&f.base);
        match &f.member {
            syn::Member::Unnamed(i) => {
                let mut lit = proc_macro2::Literal::u32_unsuffixed(i.index);
                lit.set_span(i.span);
                self.make(i.span, ExprKind::Field(base, i.index as usize, lit))
            }
            syn::Member::Named(n) => {
                if !self.has_struct {
                    self.cx.error(Code::Syntax, n.span(), "kernels have no structs, so no named fields");
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
            self.cx.error_help(Code::Syntax, span, "a range without both ends", "as in `0..n`");
            return self.bad(span);
        };
        let (lo, hi) = (self.boxed(lo), self.boxed(hi));
        let inclusive = matches!(r.limits, syn::RangeLimits::Closed(_));
        self.make(span, ExprKind::Range { lo, hi, inclusive })
    }

    pub(super) fn mac(&mut self, m: &syn::Macro) -> Expr {
        let span = m.path.segments.last().map_or_else(Span::call_site, |s| s.ident.span());
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        let (format, args) = match name.as_str() {
            "tprint" => self.format_args(m.tokens.clone()),
            "tassert" | "static_assert" => self.assert_args(m.tokens.clone()),
            _ => {
                let help = "kernels have `tprint!`, `tassert!` and `static_assert!`";
                self.cx.error_help(Code::ForeignMacro, span, format!("`{name}!` is not part of kernels"), help);
                return self.bad(span);
            }
        };
        let name = proc_macro2::Ident::new(&name, span);
        let kind = ExprKind::Macro { name, format, args, tokens: m.tokens.clone() };
        self.make(span, kind)
    }

    /// `"format {}", a, b`
    fn format_args(&mut self, tokens: TokenStream) -> (Option<String>, Vec<Expr>) {
        let parser = |input: syn::parse::ParseStream<'_>| {
            let format: syn::LitStr = input.parse()?;
            let mut args = Vec::new();
            while !input.is_empty() {
                input.parse::<Token![,]>()?;
                if !input.is_empty() {
                    args.push(input.parse::<syn::Expr>()?);
                }
            }
            Ok((format, args))
        };
        match parser.parse2(tokens) {
            Ok((format, args)) => {
                let args: Vec<Expr> = args.iter().map(|a| self.expr(a)).collect();
                self.check_format(&format, args.len());
                (Some(format.value()), args)
            }
            Err(e) => {
                self.syn_error(Code::Syntax, &e);
                (None, Vec::new())
            }
        }
    }

    fn check_format(&self, format: &syn::LitStr, n_args: usize) {
        let text = format.value().replace("{{", "").replace("}}", "");
        let holes = text.matches("{}").count();
        if text.matches('{').count() != holes || text.matches('}').count() != holes {
            let help = "`{}` prints the next value; write `{{` for a brace";
            self.cx.error_help(Code::Syntax, format.span(), "a placeholder that `tprint!` does not have", help);
        } else if holes != n_args {
            let title = format!("{holes} placeholders for {n_args} values");
            self.cx.error(Code::Syntax, format.span(), title);
        }
    }

    /// `condition` or `condition, "message"`
    fn assert_args(&mut self, tokens: TokenStream) -> (Option<String>, Vec<Expr>) {
        let text = tokens.to_string();
        match Punctuated::<syn::Expr, Token![,]>::parse_terminated.parse2(tokens) {
            Ok(list) => {
                let message = match list.iter().nth(1) {
                    Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. })) => s.value(),
                    _ => text,
                };
                let cond: Vec<Expr> = list.iter().take(1).map(|e| self.expr(e)).collect();
                (Some(message), cond)
            }
            Err(e) => {
                self.syn_error(Code::Syntax, &e);
                (None, Vec::new())
            }
        }
    }
}

fn label(label: Option<&syn::Label>) -> Option<syn::Ident> {
    label.map(|l| l.name.ident.clone())
}

/// The operator, and whether it assigns.
fn operator(op: BinOp) -> Option<(BinaryOp, bool)> {
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
