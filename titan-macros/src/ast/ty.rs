//! Types, generic arguments and paths as written.

use super::Expr;
use crate::hygiene::Mark;
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// A type as written in a signature, an annotation or a turbofish.
#[derive(Debug, Clone)]
pub(crate) struct TypeRef {
    pub(crate) span: Span,
    pub(crate) kind: TypeKind,
}

#[derive(Debug, Clone)]
pub(crate) enum TypeKind {
    /// `_`
    Infer,
    /// `f16`, `T`, or another path of one element type.
    Elem(Ident, Path),
    /// `Tile<T, A, B>` or `Tile<T, S>`
    Tile(Box<TypeRef>, Vec<GenericArg>, Path),
    /// `Smem<T, A, B>` or `Smem<T, S>`
    Smem(Box<TypeRef>, Vec<GenericArg>, Path),
    /// `D2<A, B>` as a shape argument
    Dims(Vec<GenericArg>),
    /// `&Tensor<T, R>`, `&mut Tensor<T, R>`, with `optional` in an `Option`
    Tensor { elem: Box<TypeRef>, rank: u8, mutable: bool, optional: bool, path: Path },
    /// `(A, B)`
    Tuple(Vec<TypeRef>),
    /// `[T; N]`
    Array(Box<TypeRef>, Box<Expr>),
}

/// An argument between `::<` and `>`.
#[derive(Debug, Clone)]
pub(crate) struct GenericArg {
    pub(crate) span: Span,
    pub(crate) value: GenericArgValue,
    /// As written.
    pub(crate) tokens: TokenStream,
}

#[derive(Debug, Clone)]
pub(crate) enum GenericArgValue {
    /// A type, or a name that may be a constant: `T`, `BM`.
    Type(TypeRef),
    /// A literal or `{ .. }`.
    Const(Box<Expr>),
}

/// A path: segments with the generic arguments of the last but one (`Tile::<..>::zeros`) or the last one.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) segments: Vec<Ident>,
    pub(crate) leading: bool,
    /// Of the first segment, where the path may name a variable or an item of a companion.
    pub(crate) mark: Mark,
    /// Generic arguments and the index of the segment that they follow.
    pub(crate) generics: Option<(usize, Vec<GenericArg>)>,
}

impl Path {
    pub(crate) fn span(&self) -> Span {
        self.last().map_or_else(Span::call_site, Ident::span)
    }

    pub(crate) fn last(&self) -> Option<&Ident> {
        self.segments.last()
    }

    /// The name of a path of one segment.
    pub(crate) fn single(&self) -> Option<&Ident> {
        match &self.segments[..] {
            [one] if !self.leading => Some(one),
            _ => None,
        }
    }

    /// `a::b::c` without generics.
    pub(crate) fn text(&self) -> String {
        let names: Vec<String> = self.segments.iter().map(ToString::to_string).collect();
        format!("{}{}", if self.leading { "::" } else { "" }, names.join("::"))
    }

    /// The text of a path to an item, which differs for paths of equal text whose first segments are different names, such as the
    /// `$crate` of two crates. What follows `#` is for the compiler only; see [`crate::names::text_of`].
    pub(crate) fn key(&self) -> String {
        match self.mark.nth() {
            0 => self.text(),
            n => format!("{}#{n}", self.text()),
        }
    }

    /// As written, without generics.
    pub(crate) fn tokens(&self) -> TokenStream {
        path_tokens(self.leading, &self.segments)
    }

    /// As written, without generics and the last segment: the type of `Tile::zeros`.
    pub(crate) fn parent(&self) -> TokenStream {
        let n = self.segments.len().saturating_sub(1);
        path_tokens(self.leading, &self.segments[..n])
    }
}

fn path_tokens(leading: bool, segments: &[Ident]) -> TokenStream {
    if leading { quote!(:: #(#segments)::*) } else { quote!(#(#segments)::*) }
}
