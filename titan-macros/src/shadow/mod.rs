//! The shadow: the body as ordinary Rust over `titan::lang`, which rustc type-checks and borrow-checks, and which runs as
//! the reference.
//!
//! It is generic in the constant parameters, so that a forgotten `.t()` is an error even if the only instance is square.
//! A constant expression in shape position becomes a fresh constant parameter (`BK / 2` becomes `BK_div_2`), because stable
//! Rust has no arithmetic there. Every token keeps the user's span.
//!
//! Nothing here fails: constructs that Rust cannot express were reported before.

mod expr;
mod method;
mod ty;

use crate::ast::{Expr, ExprId, Function, GenericKind, GenericParam, ParamTyKind, Path};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use titan_core::collections::SortedMap;
use titan_core::ir::Elem;

/// A constant expression that became a parameter.
#[derive(Debug, Clone)]
pub(crate) struct Fresh {
    pub(crate) name: Ident,
    /// What distinguishes it from other expressions.
    text: String,
    pub(crate) expr: Expr,
}

/// The kinds of literals that are written as types of the library, which fit to the elements beside them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Literals {
    floats: bool,
    ints: bool,
}

impl Literals {
    /// Those of a function with these generic parameters. Where all elements are known, rustc has literals of their types.
    pub(crate) fn of(func: &Function) -> Self {
        let bound = |name: &str| {
            let has = |g: &GenericParam| g.kind == GenericKind::Elem && g.bounds.iter().any(|b| b == name);
            func.generics.iter().any(has)
        };
        Literals { floats: bound("Float"), ints: bound("Int") }
    }
}

/// Prints the body of one function.
pub(crate) struct Shadow<'a> {
    /// The path of the facade crate.
    pub(crate) krate: &'a TokenStream,
    pub(crate) func: &'a Function,
    /// The inferred element types where the kernel writes none: `Tile::zeros()`, `.cast()`. They are written in the shadow, because
    /// rustc's inference is weaker: in `mma(a, b, Tile::zeros()) * s` it would ask for a type.
    pub(crate) elems: SortedMap<ExprId, Elem>,
    /// Literals that take the element type of their neighbour, because the function is generic in it ([`Literals`]).
    pub(crate) literals: Literals,
    /// Fresh parameters so far. Device functions cannot have any.
    pub(crate) fresh: Vec<Fresh>,
}

impl<'a> Shadow<'a> {
    pub(crate) fn new(krate: &'a TokenStream, func: &'a Function) -> Self {
        Shadow { krate, func, elems: SortedMap::new(), literals: Literals::default(), fresh: Vec::new() }
    }

    /// The statements of the body, in braces.
    pub(crate) fn body(&mut self) -> TokenStream {
        let func = self.func;
        self.block(&func.body)
    }

    /// The constant parameters of the function.
    pub(crate) fn const_params(&self) -> Vec<TokenStream> {
        let consts =
            self.func.generics.iter().filter(|g| matches!(g.kind, GenericKind::ConstInt(_) | GenericKind::ConstBool));
        consts.map(|g| g.tokens.clone()).collect()
    }

    /// `const BK_div_2: i32`, for each fresh parameter.
    pub(crate) fn fresh_params(&self) -> Vec<TokenStream> {
        self.fresh.iter().map(|f| &f.name).map(|n| quote!(const #n: i32)).collect()
    }

    /// `::<BM, BK_div_2>`: its own parameters as arguments.
    pub(crate) fn arguments(&self) -> TokenStream {
        let own = self.func.generics.iter().filter(|g| g.kind.is_const()).map(GenericParam::argument);
        let fresh = self.fresh.iter().map(|f| &f.name).map(|n| quote!(#n));
        self.turbofish(&own.chain(fresh).collect::<Vec<_>>())
    }

    /// The arguments between `::<` and `>`; nothing if there are none.
    pub(crate) fn turbofish(&self, args: &[TokenStream]) -> TokenStream {
        if args.is_empty() { quote!() } else { quote!(::<#(#args),*>) }
    }

    /// The parameters with kernel-side types.
    pub(crate) fn params(&mut self) -> Vec<TokenStream> {
        let func = self.func;
        func.params
            .iter()
            .map(|p| {
                let (name, ty) = (&p.name, self.ty(&p.ty));
                // What an optional output refers to is borrowed for each use.
                let borrowed = ParamTyKind::of(p) == ParamTyKind::OptionalMut;
                let mutability = (p.mutable || borrowed).then(|| quote!(mut));
                let quiet = borrowed.then(|| quote!(#[allow(unused_mut)]));
                quote!(#quiet #mutability #name: #ty)
            })
            .collect()
    }
}

/// The variable of a shape name. It is renamed, because a constant of the same name in the user's module would turn `let PAGE = ..`
/// into a pattern that matches that constant. It is a name of this expansion alone: no variable of the user hides it, and it is the same
/// in the tokens of a macro and of its caller, as a generic parameter is.
pub(crate) fn symbol(path: &Path) -> Option<Ident> {
    path.single().map(|name| quote::format_ident!("shape_{}", name, span = Span::mixed_site().located_at(name.span())))
}

/// Whether an expression uses a constant parameter, so that stable Rust cannot express it in a type.
pub(crate) fn is_generic(e: &Expr, func: &Function) -> bool {
    let mut found = false;
    visit_paths(e, &mut |name| found |= func.generics.iter().any(|g| g.name == *name));
    found
}

/// Whether an expression mentions a name.
pub(crate) fn names(e: &Expr, name: &str) -> bool {
    let mut found = false;
    visit_paths(e, &mut |n| found |= n == name);
    found
}

fn visit_paths(e: &Expr, f: &mut dyn FnMut(&Ident)) {
    use crate::ast::ExprKind as K;
    match &e.kind {
        K::Path(p, _) => p.segments.iter().take(1).for_each(f),
        K::Unary(_, a) | K::Paren(a, _) | K::As(a, _) => visit_paths(a, f),
        K::Binary(_, a, b) | K::Lazy(_, a, b) => {
            visit_paths(a, f);
            visit_paths(b, f);
        }
        K::Call { args, .. } => args.iter().for_each(|a| visit_paths(a, f)),
        K::Method { recv, args, .. } => {
            visit_paths(recv, f);
            args.iter().for_each(|a| visit_paths(a, f));
        }
        _ => {}
    }
}

/// A path into the facade whose tokens have the span `span`, so that rustc underlines the user's token.
pub(crate) fn path_at(krate: &TokenStream, names: &[&str], span: Span) -> TokenStream {
    let mut path: TokenStream = krate
        .clone()
        .into_iter()
        .map(|mut t| {
            t.set_span(span);
            t
        })
        .collect();
    for name in names {
        let ident = Ident::new(name, span);
        path.extend(quote::quote_spanned!(ident.span()=> ::#ident));
    }
    path
}
