//! Expressions, statements and patterns of the shadow.

use super::{Shadow, path_at};
use crate::ast::{
    Block, Builtin, Callee, Cond, Expr, ExprKind, Label, LazyOp, ParamTyKind, Pat, PatKind, Path, Res, RoleArm, Stmt,
    UnaryOp,
};
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use titan_core::ir::Elem;

impl Shadow<'_> {
    pub(super) fn block(&mut self, b: &Block) -> TokenStream {
        let stmts: Vec<TokenStream> = b.stmts.iter().map(|s| self.stmt(s)).collect();
        delimited(Delimiter::Brace, quote!(#(#stmts)*), b.span)
    }

    fn stmt(&mut self, s: &Stmt) -> TokenStream {
        match s {
            Stmt::Let { pat, ty, init, span } => {
                let pat = self.pat(pat);
                let ty = ty.as_ref().map(|t| self.ty(t)).map(|t| quote!(: #t));
                let init = init.as_ref().map(|e| self.expr(e)).map(|e| quote!(= #e));
                let keyword = Ident::new("let", *span);
                quote!(#keyword #pat #ty #init;)
            }
            Stmt::Expr { expr, semi } => {
                let e = self.expr(expr);
                match semi {
                    Some(span) => quote_spanned!(*span=> #e;),
                    None => e,
                }
            }
        }
    }

    fn pat(&self, p: &Pat) -> TokenStream {
        match &p.kind {
            PatKind::Wild | PatKind::Bad => quote_spanned!(p.span=> _),
            PatKind::Bind { name, mutable, .. } => {
                let mutability = mutable.then(|| Ident::new("mut", p.span));
                quote!(#mutability #name)
            }
            PatKind::Tuple(list) => {
                let list = list.iter().map(|p| self.pat(p));
                quote_spanned!(p.span=> (#(#list,)*))
            }
            PatKind::Array(list) => {
                let list = list.iter().map(|p| self.pat(p));
                quote_spanned!(p.span=> [#(#list),*])
            }
        }
    }

    pub(super) fn exprs(&mut self, list: &[Expr]) -> Vec<TokenStream> {
        list.iter().map(|e| self.expr(e)).collect()
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each case")]
    pub(super) fn expr(&mut self, e: &Expr) -> TokenStream {
        let span = e.span;
        match &e.kind {
            ExprKind::Int(.., lit) | ExprKind::Float(.., lit) => quote!(#lit),
            ExprKind::Bool(_, word) => quote!(#word),
            ExprKind::Path(path, Res::Symbol(_)) => super::symbol(path).map_or_else(TokenStream::new, |s| quote!(#s)),
            ExprKind::Path(path, _) => self.path(path),
            ExprKind::Unary(op, a) => self.unary(*op, a, span),
            ExprKind::Binary(op, a, b) => {
                let (a, b) = self.neighbours(a, b);
                self.op(op.name(), span, quote!(#a, #b))
            }
            ExprKind::Lazy(op, a, b) => {
                let (a, b) = (self.side(a), self.side(b));
                match op {
                    LazyOp::And => quote_spanned!(span=> #a && #b),
                    LazyOp::Or => quote_spanned!(span=> #a || #b),
                }
            }
            ExprKind::Assign(a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                quote_spanned!(span=> #a = #b)
            }
            ExprKind::AssignOp(op, a, b) => {
                let (a, b) = self.neighbours(a, b);
                let value = self.op(op.name(), span, quote!(#a, #b));
                quote_spanned!(span=> #a = #value)
            }
            ExprKind::Call { path, callee, args, paren } => {
                let elem = self.elems.get(&e.id).copied();
                self.call(path, callee, args, *paren, elem)
            }
            ExprKind::Method { recv, name, args, .. }
                if super::method::OP_METHODS.contains(&name.to_string().as_str()) && !self.is_literal(recv) =>
            {
                let recv = self.operand(recv);
                let args: Vec<TokenStream> = args.iter().map(|a| self.beside(a)).collect();
                self.op(&name.to_string(), name.span(), quote!(#recv #(, #args)*))
            }
            ExprKind::Method { recv, name, generics, args, paren } => {
                self.called(e.id, recv, name, generics, args, *paren)
            }
            ExprKind::Array(list, group) => {
                let list = self.exprs(list);
                delimited(Delimiter::Bracket, quote!(#(#list),*), *group)
            }
            ExprKind::Tuple(list, group) => {
                let list = self.exprs(list);
                delimited(Delimiter::Parenthesis, quote!(#(#list,)*), *group)
            }
            ExprKind::Index(a, i) => {
                if !matches!(i.kind, ExprKind::Int(..)) {
                    let f = path_at(self.krate, &["lang", "entry"], span);
                    let (a, i) = (self.expr(a), self.expr(i));
                    let args = delimited(Delimiter::Parenthesis, quote!(#a, #i), span);
                    return quote!(#f #args);
                }
                let (a, i) = (self.operand(a), self.expr(i));
                let index = delimited(Delimiter::Bracket, i, span);
                quote!(#a #index)
            }
            ExprKind::Field(a, _, n) => {
                let a = self.operand(a);
                quote!(#a.#n)
            }
            ExprKind::As(a, t) => {
                let (a, t) = (self.operand(a), self.ty(t));
                let keyword = Ident::new("as", span);
                quote!((#a #keyword #t))
            }
            ExprKind::Range { lo, hi, inclusive } => {
                let (lo, hi) = (self.operand(lo), self.operand(hi));
                if *inclusive { quote_spanned!(span=> (#lo..#hi + 1)) } else { quote_spanned!(span=> #lo..#hi) }
            }
            ExprKind::Paren(a, group) => {
                let inner = self.expr(a);
                // The operator has become a call, so its parentheses would be superfluous.
                if matches!(a.kind, ExprKind::Binary(..)) {
                    inner
                } else {
                    delimited(Delimiter::Parenthesis, inner, *group)
                }
            }
            ExprKind::Ref { mutable: true, inner } if self.is_output(inner) => {
                let inner = self.operand(inner);
                quote_spanned!(span=> &mut *#inner)
            }
            ExprKind::Ref { mutable, inner } => {
                let (m, inner) = (mutable.then(|| quote!(mut)), self.operand(inner));
                quote_spanned!(span=> &#m #inner)
            }
            ExprKind::Macro { name, args, format, tokens, .. } => self.mac(name, args, format.as_deref(), tokens),
            ExprKind::Closure { params, body } => {
                let params: Vec<TokenStream> = params.iter().map(|p| self.pat(p)).collect();
                let body = self.expr(body);
                quote_spanned!(span=> |#(#params),*| #body)
            }
            ExprKind::Bad => quote_spanned!(span=> ::core::unreachable!()),
            ExprKind::Roles { path, arms } => self.roles(path, arms, span),
            ExprKind::If { .. }
            | ExprKind::Block(_)
            | ExprKind::Unsafe(_)
            | ExprKind::For { .. }
            | ExprKind::While { .. }
            | ExprKind::Loop { .. }
            | ExprKind::Break { .. }
            | ExprKind::Continue { .. }
            | ExprKind::Return(_) => self.control(e),
        }
    }

    /// Two operands, of which one may be a literal that takes the element type of the other.
    fn neighbours(&mut self, a: &Expr, b: &Expr) -> (TokenStream, TokenStream) {
        match (self.is_literal(a), self.is_literal(b)) {
            (true, false) => (self.beside(a), self.expr(b)),
            (false, true) => (self.expr(a), self.beside(b)),
            (true, true) | (false, false) => (self.expr(a), self.expr(b)),
        }
    }

    /// Whether an expression is a literal, perhaps behind a minus, that may take the type of its neighbour.
    fn is_literal(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Float(_, None, _) => self.literals.floats,
            ExprKind::Int(_, None, _) => self.literals.ints,
            ExprKind::Unary(UnaryOp::Neg, a) | ExprKind::Paren(a, _) => self.is_literal(a),
            _ => false,
        }
    }

    /// An operand; a literal as a type that fits to any element.
    fn beside(&mut self, e: &Expr) -> TokenStream {
        let (name, lit) = match &e.kind {
            ExprKind::Float(_, None, lit) if self.literals.floats => ("FloatLiteral", lit),
            ExprKind::Int(_, None, lit) if self.literals.ints => ("IntLiteral", lit),
            ExprKind::Unary(UnaryOp::Neg, a) if self.is_literal(a) => {
                let inner = self.beside(a);
                return quote_spanned!(e.span=> -#inner);
            }
            ExprKind::Paren(a, _) if self.is_literal(a) => return self.beside(a),
            _ => return self.expr(e),
        };
        let literal = path_at(self.krate, &["lang", name], e.span);
        let value = delimited(Delimiter::Parenthesis, quote!(#lit), e.span);
        quote!(#literal #value)
    }

    /// Whether an expression is a `&mut Tensor` parameter, which is reborrowed as `&mut *c`.
    fn is_output(&self, e: &Expr) -> bool {
        let ExprKind::Path(_, Res::Local(var)) = e.kind else { return false };
        self.func.params.get(var).is_some_and(|p| ParamTyKind::of(p) == ParamTyKind::Mut)
    }

    /// Whether an expression is an `Option<&mut Tensor>` parameter, which `if let` borrows and does not move.
    fn is_optional_output(&self, e: &Expr) -> bool {
        let ExprKind::Path(_, Res::Local(var)) = e.kind else { return false };
        self.func.params.get(var).is_some_and(|p| ParamTyKind::of(p) == ParamTyKind::OptionalMut)
    }

    /// `condition(c)`; an expression that is syntactically a `bool` is not wrapped.
    fn condition(&mut self, c: &Expr) -> TokenStream {
        let value = self.expr(c);
        if matches!(c.kind, ExprKind::Bool(..) | ExprKind::Lazy(..)) {
            return value;
        }
        let f = path_at(self.krate, &["lang", "condition"], c.span);
        let args = delimited(Delimiter::Parenthesis, value, c.span);
        quote!(#f #args)
    }

    /// A side of `&&` or `||`.
    fn side(&mut self, e: &Expr) -> TokenStream {
        let value = self.condition(e);
        if matches!(e.kind, ExprKind::Lazy(..)) { delimited(Delimiter::Parenthesis, value, e.span) } else { value }
    }

    /// An operand of what binds more tightly than an expression of any kind. Only fragments of macros, which are operands without
    /// parentheses, and branches need any here.
    pub(super) fn operand(&mut self, e: &Expr) -> TokenStream {
        let value = self.expr(e);
        match &e.kind {
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::Bool(..)
            | ExprKind::Path(..)
            | ExprKind::Unary(UnaryOp::Not, _)
            | ExprKind::Binary(..)
            | ExprKind::Call { .. }
            | ExprKind::Method { .. }
            | ExprKind::Array(..)
            | ExprKind::Tuple(..)
            | ExprKind::Index(..)
            | ExprKind::Field(..)
            | ExprKind::As(..)
            | ExprKind::Paren(..)
            | ExprKind::Macro { .. }
            | ExprKind::Bad => value,
            ExprKind::Unary(UnaryOp::Neg | UnaryOp::Deref, _)
            | ExprKind::Lazy(..)
            | ExprKind::Assign(..)
            | ExprKind::AssignOp(..)
            | ExprKind::If { .. }
            | ExprKind::Block(_)
            | ExprKind::Unsafe(_)
            | ExprKind::For { .. }
            | ExprKind::While { .. }
            | ExprKind::Loop { .. }
            | ExprKind::Break { .. }
            | ExprKind::Continue { .. }
            | ExprKind::Return(_)
            | ExprKind::Closure { .. }
            | ExprKind::Range { .. }
            | ExprKind::Ref { .. }
            | ExprKind::Roles { .. } => delimited(Delimiter::Parenthesis, value, e.span),
        }
    }

    /// A function of `titan::lang::ops`, at the operator.
    pub(super) fn op(&self, name: &str, span: Span, args: TokenStream) -> TokenStream {
        let f = path_at(self.krate, &["lang", "ops", name], span);
        let args = delimited(Delimiter::Parenthesis, args, span);
        quote!(#f #args)
    }

    fn unary(&mut self, op: UnaryOp, a: &Expr, span: Span) -> TokenStream {
        let literal = matches!(a.kind, ExprKind::Int(..) | ExprKind::Float(..));
        let value = self.operand(a);
        match op {
            UnaryOp::Neg if literal => quote_spanned!(span=> -#value),
            UnaryOp::Neg => self.op("neg", span, value),
            UnaryOp::Not => self.op("not", span, value),
            UnaryOp::Deref => quote_spanned!(span=> *#value),
        }
    }

    /// A path as written, tiles by arity.
    fn path(&mut self, path: &Path) -> TokenStream {
        let leading = path.leading.then(|| quote!(::));
        let mut out = quote!(#leading);
        for (i, segment) in path.segments.iter().enumerate() {
            if i > 0 {
                out.extend(quote!(::));
            }
            out.extend(quote!(#segment));
            if let Some((at, args)) = &path.generics
                && *at == i
            {
                let args = self.generic_args(args);
                out.extend(quote_spanned!(segment.span()=> ::<#(#args),*>));
            }
        }
        out
    }

    fn call(&mut self, path: &Path, callee: &Callee, args: &[Expr], paren: Span, elem: Option<Elem>) -> TokenStream {
        let f = match callee {
            Callee::Builtin(b) => self.builtin(*b, path, elem),
            Callee::Device(_) | Callee::None => self.path(path),
        };
        let args = match (callee, args) {
            (Callee::Builtin(Builtin::Select), [mask, a, b]) => {
                let mask = self.expr(mask);
                let (a, b) = self.neighbours(a, b);
                vec![mask, a, b]
            }
            (Callee::Builtin(_) | Callee::Device(_) | Callee::None, _) => self.exprs(args),
        };
        let args = delimited(Delimiter::Parenthesis, quote!(#(#args),*), paren);
        quote!(#f #args)
    }

    /// A function of the language; `elem` is the inferred element type of the tile that it makes.
    fn builtin(&mut self, b: Builtin, path: &Path, elem: Option<Elem>) -> TokenStream {
        let span = path.span();
        let name = path.last().map(ToString::to_string).unwrap_or_default();
        if !b.of_a_type() {
            let f = path_at(self.krate, &["lang", &name], span);
            let args = path.generics.as_ref().map(|(_, g)| self.generic_args(g));
            let args = args.map(|a| quote_spanned!(span=> ::<#(#a),*>));
            return quote!(#f #args);
        }
        if !matches!(b, Builtin::TileZeros | Builtin::TileOnes | Builtin::TileFull) {
            return self.path(path);
        }
        let at = path.segments.first().map_or(span, Ident::span);
        let tile = path.parent();
        let constructor = path.last();
        let generics = path.generics.as_ref().map(|(_, g)| &g[..]).unwrap_or_default();
        match generics {
            [] => {
                let elem = elem.map(|e| self.elem(e, at)).map(|e| quote_spanned!(at=> ::<#e, _>));
                quote_spanned!(at=> #tile #elem :: #constructor)
            }
            [elem, dims @ ..] => {
                let elem = self.generic_args(std::slice::from_ref(elem));
                let shape = if dims.is_empty() { quote!(_) } else { self.shape(dims, at) };
                quote_spanned!(at=> #tile::<#(#elem)*, #shape>::#constructor)
            }
        }
    }

    fn control(&mut self, e: &Expr) -> TokenStream {
        let span = e.span;
        match &e.kind {
            ExprKind::If { cond, then, other } => {
                let cond = match &**cond {
                    Cond::Expr(c) => self.condition(c),
                    Cond::LetSome { pat, option, span } => {
                        let lent =
                            self.is_optional_output(option).then(|| quote_spanned!(option.span=> .as_deref_mut()));
                        let (pat, option) = (self.pat(pat), self.expr(option));
                        let keyword = Ident::new("let", *span);
                        quote!(#keyword ::core::option::Option::Some(#pat) = #option #lent)
                    }
                };
                let then = self.block(then);
                let other = other.as_ref().map(|o| self.expr(o)).map(|o| quote!(else #o));
                let keyword = Ident::new("if", span);
                quote!(#keyword #cond #then #other)
            }
            ExprKind::Block(b) => self.block(b),
            ExprKind::Unsafe(b) => {
                let b = self.block(b);
                let keyword = Ident::new("unsafe", span);
                quote!(#keyword #b)
            }
            ExprKind::For { label, pat, iter, body } => {
                let (pat, iter, body, label) =
                    (self.pat(pat), self.expr(iter), self.block(body), labelled(label.as_ref()));
                let keyword = Ident::new("for", span);
                quote!(#label #keyword #pat in #iter #body)
            }
            ExprKind::While { label, cond, body } => {
                let (cond, body, label) = (self.condition(cond), self.block(body), labelled(label.as_ref()));
                let keyword = Ident::new("while", span);
                quote!(#label #keyword #cond #body)
            }
            ExprKind::Loop { label, body } => {
                let (body, label) = (self.block(body), labelled(label.as_ref()));
                let keyword = Ident::new("loop", span);
                quote!(#label #keyword #body)
            }
            ExprKind::Break { label, value } => {
                let (label, value) = (lifetime(label.as_ref()), value.as_ref().map(|v| self.expr(v)));
                let keyword = Ident::new("break", span);
                quote!(#keyword #label #value)
            }
            ExprKind::Continue { label } => {
                let (keyword, label) = (Ident::new("continue", span), lifetime(label.as_ref()));
                quote!(#keyword #label)
            }
            ExprKind::Return(value) => {
                let value = value.as_ref().map(|v| self.expr(v));
                let keyword = Ident::new("return", span);
                quote!(#keyword #value)
            }
            _ => TokenStream::new(),
        }
    }

    /// The arms as written. The enum `Role` is generated next to the shadow.
    fn roles(&mut self, path: &Path, arms: &[RoleArm], span: Span) -> TokenStream {
        let role = self.builtin(Builtin::Role, path, None);
        let arms: Vec<TokenStream> = arms
            .iter()
            .map(|arm| {
                let ([of, name], body) = (&arm.path, self.expr(&arm.body));
                quote!(#of::#name => #body,)
            })
            .collect();
        let keyword = Ident::new("match", span);
        quote!(#keyword #role() { #(#arms)* })
    }

    fn mac(&mut self, name: &Ident, args: &[Expr], format: Option<&str>, tokens: &TokenStream) -> TokenStream {
        // Assertions on constants are checked for each instance before the shadow is generated.
        if name == "static_assert" {
            return quote!(());
        }
        let args = self.exprs(args);
        let path = path_at(self.krate, &[&name.to_string()], name.span());
        if name == "tassert" {
            let message = format.unwrap_or_default();
            return quote!(#path!(#(#args,)* "{}", #message));
        }
        let format: Vec<TokenTree> = tokens.clone().into_iter().take(1).collect();
        quote!(#path!(#(#format)* #(, #args)*))
    }
}

pub(super) fn delimited(delimiter: Delimiter, inner: TokenStream, span: Span) -> TokenStream {
    let mut group = Group::new(delimiter, inner);
    group.set_span(span);
    TokenTree::Group(group).into()
}

fn lifetime(label: Option<&Label>) -> Option<TokenStream> {
    label.map(|l| {
        let lifetime = syn::Lifetime { apostrophe: l.name.span(), ident: l.name.clone() };
        quote!(#lifetime)
    })
}

fn labelled(label: Option<&Label>) -> Option<TokenStream> {
    lifetime(label).map(|l| quote!(#l:))
}
