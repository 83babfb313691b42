//! Types of signatures, annotations and turbofishes.

use super::{Parser, as_written, first_span, path_start, ungrouped};
use crate::ast::{GenericArg, GenericArgValue, Path, TypeKind, TypeRef};
use crate::hygiene::{Mark, Occurs};
use crate::names::is_constant_name;
use proc_macro2::Span;
use quote::ToTokens;
use syn::{GenericArgument, PathArguments};
use titan_core::diag::{Code, Diagnostic};

impl Parser<'_> {
    pub(super) fn ty(&mut self, ty: &syn::Type) -> TypeRef {
        let (span, kind) = match ty {
            syn::Type::Infer(i) => (i.underscore_token.spans[0], TypeKind::Infer),
            syn::Type::Paren(p) => return self.ty(&p.elem),
            syn::Type::Group(g) => return self.ty(&g.elem),
            syn::Type::Tuple(t) => {
                let list = t.elems.iter().map(|t| self.ty(t)).collect();
                (t.paren_token.span.join(), TypeKind::Tuple(list))
            }
            syn::Type::Array(a) => {
                let (item, n) = (self.ty(&a.elem), self.expr(&a.len));
                (a.bracket_token.span.join(), TypeKind::Array(Box::new(item), Box::new(n)))
            }
            syn::Type::Reference(r) => return self.reference(r),
            syn::Type::Path(p) if p.qself.is_none() => return self.type_of_path(&p.path),
            syn::Type::Slice(s) => {
                let help = "take a tensor: `&Tensor<f32, 1>`, or `&mut Tensor<f32, 1>` for an output";
                let span = s.bracket_token.span.open();
                self.cx.error_help(Code::Parameter, span, "slices are not supported in kernels", help);
                (span, TypeKind::Infer)
            }
            _ => return self.bad_type(first_span(ty.to_token_stream())),
        };
        TypeRef { span, kind }
    }

    fn bad_type(&self, span: Span) -> TypeRef {
        let help = "the types are scalars, `Tile<T, A, B>`, `&Tensor<T, R>`, `&mut Tensor<T, R>`, `Option<&Tensor<T, R>>`, \
            tuples and arrays";
        self.cx.error_help(Code::Parameter, span, "this type is not supported in kernels", help);
        TypeRef { span, kind: TypeKind::Infer }
    }

    /// Reports a type of the language with too few or too many generic arguments.
    fn counted(&self, span: Span, title: &str, example: &str) -> TypeRef {
        self.cx.error_help(Code::Parameter, span, title, format!("as in {example}"));
        TypeRef { span, kind: TypeKind::Infer }
    }

    fn reference(&mut self, r: &syn::TypeReference) -> TypeRef {
        let span = r.and_token.span;
        if let Some(l) = &r.lifetime
            && !self.has_lifetime
        {
            self.cx.error(Code::Generics, l.ident.span(), "kernels cannot have lifetime parameters");
        }
        let mut inner = self.ty(&r.elem);
        if let syn::Type::Reference(_) = &*r.elem {
            let title = "a reference to a reference is no parameter";
            self.cx.error_help(Code::Parameter, span, title, "take the tensor by one `&` or `&mut`");
        }
        match &mut inner.kind {
            TypeKind::Tensor { mutable, .. } => *mutable = r.mutability.is_some(),
            TypeKind::Infer => {}
            TypeKind::Elem(..)
            | TypeKind::Tile(..)
            | TypeKind::Smem(..)
            | TypeKind::Dims(_)
            | TypeKind::Tuple(_)
            | TypeKind::Array(..) => {
                let title = "only tensors are passed by reference";
                self.cx.error_help(Code::Parameter, span, title, "pass scalars and tiles by value");
            }
        }
        inner.span = span;
        inner
    }

    pub(super) fn type_of_path(&mut self, path: &syn::Path) -> TypeRef {
        let span = path_start(path);
        let Some(last) = path.segments.last() else { return self.bad_type(span) };
        let name = last.ident.to_string();
        let args: Vec<GenericArg> = self.generic_args(&last.arguments);
        if self.generics.contains(&name) && args.is_empty() {
            return TypeRef { span, kind: TypeKind::Elem(last.ident.clone(), plain(path)) };
        }
        let kind = match (name.as_str(), args.len()) {
            ("Tile", 2..) => {
                let mut args = args.into_iter();
                let Some(elem) = args.next().and_then(|a| self.arg_type(a)) else { return self.bad_type(span) };
                TypeKind::Tile(Box::new(elem), args.collect(), plain(path))
            }
            ("Smem", 2..) => {
                let mut args = args.into_iter();
                let Some(elem) = args.next().and_then(|a| self.arg_type(a)) else { return self.bad_type(span) };
                TypeKind::Smem(Box::new(elem), args.collect(), plain(path))
            }
            ("D1" | "D2" | "D3" | "D4", 1..) => {
                self.mention(path, true);
                TypeKind::Dims(args)
            }
            ("Tensor", 2) => {
                self.mention(path, true);
                return self.tensor(path, args);
            }
            ("Tensor", _) => {
                return self.counted(
                    span,
                    "the generic arguments of `Tensor` are an element type and a rank",
                    "`&Tensor<f32, 2>`",
                );
            }
            ("Tile", _) => {
                return self.counted(
                    span,
                    "the generic arguments of `Tile` are an element type and one to four extents",
                    "`Tile<f32, 16, 16>`",
                );
            }
            ("Option", 1) => return self.optional(span, args),
            (_, 0) => TypeKind::Elem(last.ident.clone(), self.item_path(path, &name)),
            _ => return self.bad_type(span),
        };
        TypeRef { span, kind }
    }

    fn arg_type(&mut self, arg: GenericArg) -> Option<TypeRef> {
        match arg.value {
            GenericArgValue::Type(t) => Some(t),
            GenericArgValue::Const(_) => {
                self.cx.error(Code::Parameter, arg.span, "expected an element type");
                None
            }
        }
    }

    fn tensor(&mut self, path: &syn::Path, args: Vec<GenericArg>) -> TypeRef {
        let path = plain(path);
        let span = path.span();
        let mut args = args.into_iter();
        let elem = args.next().and_then(|a| self.arg_type(a));
        let rank = args.next().map(|a| (a.span, a.value));
        let literal = match &rank {
            Some((_, GenericArgValue::Const(e))) => match e.kind {
                crate::ast::ExprKind::Int(n @ 1..=5, ..) => u8::try_from(n).ok(),
                _ => None,
            },
            _ => None,
        };
        let (Some(elem), Some(rank)) = (elem, literal) else {
            let (at, named) = rank.map_or((span, false), |(s, v)| (s, matches!(v, GenericArgValue::Type(_))));
            let (title, help) = ("the rank of a tensor must be a number from 1 to 5", "as in `&Tensor<f32, 2>`");
            let diag = Diagnostic::new(Code::Parameter, at, title).help(help);
            // A name that is used as the rank of several tensors is one mistake.
            if named {
                self.cx.unless_broken(diag)
            } else {
                self.cx.push(diag)
            }
            return TypeRef { span, kind: TypeKind::Infer };
        };
        let kind = TypeKind::Tensor { elem: Box::new(elem), rank, mutable: false, optional: false, path };
        TypeRef { span, kind }
    }

    fn optional(&mut self, span: Span, args: Vec<GenericArg>) -> TypeRef {
        let inner = args.into_iter().next().and_then(|a| self.arg_type(a));
        match inner {
            Some(TypeRef { kind: TypeKind::Tensor { elem, rank, mutable, path, .. }, .. }) => {
                TypeRef { span, kind: TypeKind::Tensor { elem, rank, mutable, optional: true, path } }
            }
            _ => {
                let title = "only a tensor can be optional";
                let help = "as in `Option<&Tensor<f32, 1>>`, or `Option<&mut Tensor<f32, 1>>` for an output";
                self.cx.error_help(Code::Parameter, span, title, help);
                TypeRef { span, kind: TypeKind::Infer }
            }
        }
    }

    pub(super) fn generic_args(&mut self, args: &PathArguments) -> Vec<GenericArg> {
        match args {
            PathArguments::None => Vec::new(),
            PathArguments::AngleBracketed(list) => self.angle_args(list),
            PathArguments::Parenthesized(p) => {
                self.cx.error(Code::Syntax, p.paren_token.span.open(), "function types are not supported in kernels");
                Vec::new()
            }
        }
    }

    pub(super) fn angle_args(&mut self, list: &syn::AngleBracketedGenericArguments) -> Vec<GenericArg> {
        list.args.iter().filter_map(|a| self.generic_arg(a)).collect()
    }

    fn generic_arg(&mut self, arg: &GenericArgument) -> Option<GenericArg> {
        let tokens = as_written(arg);
        let span = match arg {
            GenericArgument::Type(syn::Type::Path(t)) => path_start(&t.path),
            GenericArgument::Const(syn::Expr::Lit(l)) => l.lit.span(),
            _ => first_span(tokens.clone()),
        };
        let value = match arg {
            GenericArgument::Type(t) => GenericArgValue::Type(self.ty(t)),
            GenericArgument::Const(e) => GenericArgValue::Const(Box::new(self.const_arg(e))),
            _ => {
                self.cx.error(Code::Syntax, span, "this generic argument is not supported in kernels");
                return None;
            }
        };
        Some(GenericArg { span, value, tokens })
    }

    /// A literal or the inside of `{ .. }`.
    fn const_arg(&mut self, e: &syn::Expr) -> crate::ast::Expr {
        if let syn::Expr::Block(b) = ungrouped(e)
            && let [syn::Stmt::Expr(inner, None)] = &b.block.stmts[..]
        {
            return self.expr(inner);
        }
        self.expr(e)
    }

    pub(super) fn path(&mut self, path: &syn::Path) -> Path {
        let mut generics = None;
        for (i, s) in path.segments.iter().enumerate() {
            let args = self.generic_args(&s.arguments);
            if !args.is_empty() {
                generics = Some((i, args));
            }
        }
        let mark = path.segments.first().map_or_else(Mark::default, |s| self.names.mark(&s.ident, Occurs::Used));
        Path { generics, mark, ..plain(path) }
    }

    /// A path in the place of a type: that of a constant, by its name, is asked for.
    fn item_path(&mut self, path: &syn::Path, name: &str) -> Path {
        let first = path.segments.first().filter(|_| is_constant_name(name));
        let mark = first.map_or_else(Mark::default, |s| self.names.mark(&s.ident, Occurs::Used));
        Path { mark, ..plain(path) }
    }
}

/// A path without generic arguments.
fn plain(path: &syn::Path) -> Path {
    let segments = path.segments.iter().map(|s| s.ident.clone()).collect();
    Path { segments, leading: path.leading_colon.is_some(), mark: Mark::default(), generics: None }
}
