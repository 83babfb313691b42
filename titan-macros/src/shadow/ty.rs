//! Types and generic arguments in the shadow: tiles by arity, tensors as the kernel sees them, fresh parameters.

use super::{Fresh, Shadow, is_generic, path_at};
use crate::ast::{Expr, GenericArg, GenericArgValue, GenericKind, Res, TypeKind, TypeRef};
use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use titan_core::ir::Elem;

impl Shadow<'_> {
    pub(crate) fn ty(&mut self, t: &TypeRef) -> TokenStream {
        match &t.kind {
            TypeKind::Infer => quote_spanned!(t.span=> _),
            TypeKind::Elem(_, path) => path.tokens(),
            TypeKind::Tile(elem, dims, path) | TypeKind::Smem(elem, dims, path) => {
                let (elem, shape, tile) = (self.ty(elem), self.shape(dims, t.span), path.tokens());
                quote_spanned!(t.span=> #tile<#elem, #shape>)
            }
            TypeKind::Dims(dims) => self.shape(dims, t.span),
            TypeKind::Tensor { elem, rank, mutable, optional, path } => {
                let elem = self.ty(elem);
                let name = path.span();
                let path = path_at(self.krate, &["lang", "Tensor"], name);
                let rank = usize::from(*rank);
                // The whole type has spans between the user's `&` and `Tensor`, so that rustc can suggest `&mut` there.
                let tensor = quote_spanned!(name=> #path<#elem, #rank>);
                match (optional, mutable) {
                    (true, true) => quote!(::core::option::Option<&mut #tensor>),
                    (true, false) => quote!(::core::option::Option<&#tensor>),
                    (false, true) => quote_spanned!(t.span=> &mut #tensor),
                    (false, false) => quote_spanned!(t.span=> & #tensor),
                }
            }
            TypeKind::Tuple(list) => {
                let list: Vec<TokenStream> = list.iter().map(|t| self.ty(t)).collect();
                quote!((#(#list,)*))
            }
            TypeKind::Array(item, n) => {
                let (item, n) = (self.ty(item), self.expr(n));
                quote!([#item; #n])
            }
        }
    }

    /// An element type by an absolute path.
    pub(super) fn elem(&self, elem: Elem, span: Span) -> TokenStream {
        match elem {
            Elem::F16 | Elem::Bf16 | Elem::Tf32 | Elem::E4m3 | Elem::E5m2 | Elem::I4 | Elem::U4 => {
                path_at(self.krate, &["lang", elem.name()], span)
            }
            Elem::F64
            | Elem::F32
            | Elem::I64
            | Elem::I32
            | Elem::I16
            | Elem::I8
            | Elem::U64
            | Elem::U32
            | Elem::U16
            | Elem::U8
            | Elem::Bool => {
                let name = Ident::new(elem.name(), span);
                quote_spanned!(span=> ::core::primitive::#name)
            }
        }
    }

    /// `D2<A, B>` for two extents; a shape parameter or a written `D2` is kept.
    pub(super) fn shape(&mut self, dims: &[GenericArg], span: Span) -> TokenStream {
        if let [GenericArg { value: GenericArgValue::Type(t), .. }] = dims {
            match &t.kind {
                TypeKind::Dims(inner) => return self.shape(inner, t.span),
                TypeKind::Elem(name, path) => {
                    let is_shape = |g: &crate::ast::GenericParam| g.kind == GenericKind::Shape && g.name == *name;
                    if self.func.generics.iter().any(is_shape) {
                        return path.tokens();
                    }
                }
                _ => {}
            }
        }
        let d = ["D1", "D2", "D3", "D4"].get(dims.len().saturating_sub(1)).copied().unwrap_or("D4");
        let d = path_at(self.krate, &["lang", d], span);
        let dims = self.generic_args(dims);
        quote!(#d<#(#dims),*>)
    }

    pub(super) fn generic_args(&mut self, args: &[GenericArg]) -> Vec<TokenStream> {
        args.iter().map(|a| self.generic_arg(a)).collect()
    }

    fn generic_arg(&mut self, arg: &GenericArg) -> TokenStream {
        match &arg.value {
            GenericArgValue::Type(t) => match &t.kind {
                // A type with the constant's name may shadow it (see `chain`); in braces the name refers to the constant.
                TypeKind::Elem(name, path) if self.is_constant(name) => {
                    let path = path.tokens();
                    quote_spanned!(name.span()=> { #path })
                }
                TypeKind::Elem(..) => arg.tokens.clone(),
                _ => self.ty(t),
            },
            GenericArgValue::Const(e) => self.const_arg(e, &arg.tokens),
        }
    }

    /// Whether a name in a type position is a `#[titan::constant]`, or a constant parameter that has the name of a type.
    fn is_constant(&self, name: &Ident) -> bool {
        let text = name.to_string();
        let of_a_type =
            || crate::names::is_type(&text) && self.func.generics.iter().any(|g| g.name == text && g.kind.is_const());
        crate::names::is_constant_of_others(self.func, &text) || of_a_type()
    }

    fn const_arg(&mut self, e: &Expr, written: &TokenStream) -> TokenStream {
        if let crate::ast::ExprKind::Path(..) = &e.kind {
            return written.clone();
        }
        if !is_generic(e, self.func) {
            return written.clone();
        }
        let name = self.fresh_name(e, written);
        quote!(#name)
    }

    /// The parameter that replaces a constant expression; equal texts share one.
    fn fresh_name(&mut self, e: &Expr, written: &TokenStream) -> Ident {
        let text = text_of(written.clone()) + &distinct(e);
        if let Some(known) = self.fresh.iter().find(|f| f.text == text) {
            return Ident::new(&known.name.to_string(), Span::call_site().located_at(e.span));
        }
        let mut name = parameter_name(&text);
        while self.fresh.iter().any(|f| f.name == name) {
            name.push('_');
        }
        let name = Ident::new(&name, Span::call_site().located_at(e.span));
        self.fresh.push(Fresh { name: name.clone(), text, expr: e.clone() });
        name
    }
}

/// The text of an expression. The invisible groups around fragments of macros are parentheses.
fn text_of(tokens: TokenStream) -> String {
    let mut text = String::new();
    for t in tokens {
        match t {
            TokenTree::Group(g) => {
                let (open, close) = match g.delimiter() {
                    Delimiter::None if g.stream().into_iter().nth(1).is_none() => ("", ""),
                    Delimiter::Parenthesis | Delimiter::None => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                };
                text.extend([open, &text_of(g.stream()), close]);
            }
            t => {
                text.push_str(&t.to_string());
                text.push(' ');
            }
        }
    }
    text
}

/// What distinguishes the expression from others of equal text: in macros of two crates, `$crate` is not the same.
fn distinct(e: &Expr) -> String {
    let mut text = String::new();
    if let crate::ast::ExprKind::Path(path, Res::Constant(_)) = &e.kind
        && path.mark.nth() > 0
    {
        text.push_str(&format!("_{}", path.mark.nth()));
    }
    e.children(&mut |e| text.push_str(&distinct(e)));
    text
}

/// A readable parameter name for an expression such as `{ BK / 2 }`.
fn parameter_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        match c {
            '+' => name.push_str("_plus_"),
            '-' => name.push_str("_minus_"),
            '*' => name.push_str("_times_"),
            '/' => name.push_str("_div_"),
            '%' => name.push_str("_mod_"),
            '<' => name.push_str("_lt_"),
            '>' => name.push_str("_gt_"),
            c if c.is_ascii_alphanumeric() || c == '_' => name.push(c),
            c if !c.is_ascii() => name.push_str(&format!("u{:x}", u32::from(c))),
            ' ' | '{' | '}' => {}
            _ => name.push('_'),
        }
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'n');
    }
    name
}
