//! Calls of methods in the shadow.

use super::expr::delimited;
use super::{Shadow, path_at};
use crate::ast::{Expr, ExprId, ExprKind, GenericArg};
use proc_macro2::{Delimiter, Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

/// Methods whose turbofish is a shape.
const SHAPE_METHODS: [&str; 4] = ["reshape", "interleave", "split", "concat"];

/// Methods that become functions of `titan::lang::ops`, because Rust's own methods of scalars differ in special cases.
pub(super) const OP_METHODS: [&str; 6] = ["abs", "min", "max", "clamp", "mul_hi", "powf"];

impl Shadow<'_> {
    /// A call of a method that is not an operator.
    pub(super) fn called(
        &mut self,
        id: ExprId,
        recv: &Expr,
        name: &Ident,
        generics: &[GenericArg],
        args: &[Expr],
        paren: Span,
    ) -> TokenStream {
        // Of a tuple of tiles; that of one tile has a neutral element too.
        let one_function = matches!(args, [Expr { kind: ExprKind::Closure { .. }, .. }]);
        if one_function && (name == "reduce" || name == "scan") {
            let f = path_at(self.krate, &["lang", &format!("{name}_tuple")], name.span());
            let (recv, generics, args) = (self.expr(recv), self.generic_args(generics), self.exprs(args));
            let args = delimited(Delimiter::Parenthesis, quote!(#recv #(, #args)*), paren);
            return quote_spanned!(name.span()=> #f::<#(#generics,)* _> #args);
        }
        let recv = self.operand(recv);
        // A part of a tile has extents, a slice of a tensor an axis.
        let is_part = name == "slice" && matches!(args, [Expr { kind: ExprKind::Array(..), .. }]);
        let turbofish = if is_part && !generics.is_empty() {
            let shape = self.shape(generics, name.span());
            Some(quote_spanned!(name.span()=> ::<#shape>))
        } else {
            self.turbofish_of(id, name, generics)
        };
        self.method(&recv, name, turbofish.as_ref(), args, paren)
    }

    fn method(
        &mut self,
        recv: &TokenStream,
        name: &Ident,
        turbofish: Option<&TokenStream>,
        args: &[Expr],
        paren: Span,
    ) -> TokenStream {
        let args = self.exprs(args);
        if OP_METHODS.contains(&name.to_string().as_str()) {
            return self.op(&name.to_string(), name.span(), quote!(#recv #(, #args)*));
        }
        let args = delimited(Delimiter::Parenthesis, quote!(#(#args),*), paren);
        let dot = quote_spanned!(name.span()=> .);
        quote!(#recv #dot #name #turbofish #args)
    }

    /// The generic arguments of a method as written, or the inferred ones.
    fn turbofish_of(&mut self, id: ExprId, name: &Ident, generics: &[GenericArg]) -> Option<TokenStream> {
        if generics.is_empty() {
            let elem = self.elem(*self.elems.get(&id)?, name.span());
            return Some(quote_spanned!(name.span()=> ::<#elem>));
        }
        if SHAPE_METHODS.contains(&name.to_string().as_str()) {
            let shape = self.shape(generics, name.span());
            return Some(quote_spanned!(name.span()=> ::<#shape>));
        }
        let list = self.generic_args(generics);
        Some(quote_spanned!(name.span()=> ::<#(#list),*>))
    }
}
