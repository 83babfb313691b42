//! Has rustc check which variable every name is, and which loop every label.
//!
//! Names are resolved by the macro for devices, and by rustc in the shadow for the reference. Next to the shadow there is a function
//! that consists of the user's blocks and names only. In it every variable has a type of its own, and every use states the
//! variable that the macro has found:
//!
//! ```text
//! let s = 3.0;              let s = Variable::<2>;
//! { let s = 1.0; f(s) }     { let s = Variable::<3>; is::<3>(s); }
//! ```
//!
//! The identifiers have the spans of the user's tokens, hence their hygiene, and blocks nest as in the shadow: so rustc finds the same variable in
//! both, and a use for which the macro has found another one is a type error at the user's token. A loop with a label has a
//! value of a type of its own, and every `break` and `continue` with a label states the loop.
//!
//! # Which names
//!
//! Those of a text that is declared more than once, or that occurs as more than one name. Any other text is declared once, and all its
//! identifiers are taken for that variable: rustc either finds the same, or nothing, which is its error in the shadow. It does not find an
//! item: `let s`, where `s` is a constant or a static, is an error in the shadow, and a function is no value in kernels.
//! Whether two identifiers are one name ([`crate::hygiene`]) makes no difference for identifiers in this function.
//!
//! The text of a variable is replaced by its number, so that nothing of the user's module is meant by it. Every identifier that is used is declared once more
//! around the whole function, as [`FREE`]: so rustc finds something in any case, and a name that the macro takes for a shape
//! name, a constant or a function is checked not to be a variable.

use crate::ast::{Block, Cond, Expr, ExprKind, Function, Label, Pat, PatKind, Path, Res, Stmt, VarId};
use crate::hygiene::{Mark, text_of};
use crate::shadow::path_at;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use titan_core::collections::{SortedMap, SortedSet};

/// The number of what is not a variable of the function. The variables follow.
const FREE: usize = 0;

/// The check of a function's names; nothing if none can be mistaken. `host` are the expressions of shapes, grid and requirements.
pub(crate) fn of(krate: &TokenStream, func: &Function, host: &[&Expr]) -> TokenStream {
    let mut found = Found::default();
    func.vars.iter().for_each(|v| found.variables.entry(text_of(&v.name)).or_default().declare(v.mark));
    host.iter().for_each(|e| found.expr(e));
    found.block(&func.body);
    let texts: SortedMap<String, usize> = checked(&found.variables).zip(0..).collect();
    let labels: SortedSet<String> = checked(&found.labels).collect();
    if texts.is_empty() && labels.is_empty() {
        return TokenStream::new();
    }
    let mut judge = Judge { krate, texts, labels, free: SortedMap::new() };
    let mut body = TokenStream::new();
    for (var, param) in func.params.iter().enumerate() {
        judge.declare(&param.name, var, &mut body);
    }
    host.iter().for_each(|e| judge.expr(e, &mut body));
    judge.block(&func.body, &mut body);
    let free = judge.free.values();
    let variable = path_at(krate, &["lang", "names", "Variable"], Span::call_site());
    let number = Literal::usize_unsuffixed(FREE);
    let free = free.map(|name| quote!(let #name = #variable::<#number>;));
    quote! {
        #[allow(unused, clippy::all, clippy::pedantic)]
        const _: fn() = || {
            #(#free)*
            #body
        };
    }
}

/// The identifiers of one text.
#[derive(Debug, Default)]
struct Text {
    declared: usize,
    names: SortedSet<Mark>,
}

impl Text {
    fn declare(&mut self, mark: Mark) {
        self.declared += 1;
        self.names.insert(mark);
    }

    /// Whether an identifier of this text may be taken for another variable or loop than it is.
    fn is_checked(&self) -> bool {
        self.declared > 1 || self.declared == 1 && self.names.len() > 1
    }
}

/// The texts that are checked.
fn checked(texts: &SortedMap<String, Text>) -> impl Iterator<Item = String> {
    texts.iter().filter(|(_, t)| t.is_checked()).map(|(text, _)| text.clone())
}

/// All identifiers of a function, by their texts.
#[derive(Debug, Default)]
struct Found {
    variables: SortedMap<String, Text>,
    labels: SortedMap<String, Text>,
}

impl Found {
    fn block(&mut self, block: &Block) {
        block.exprs(&mut |e| self.expr(e));
    }

    fn expr(&mut self, e: &Expr) {
        match own(&e.kind) {
            Own::Nothing => {}
            Own::Use(path, _) => {
                if let Some(name) = path.single() {
                    self.variables.entry(text_of(name)).or_default().names.insert(path.mark);
                }
            }
            Own::Loop(label) => self.labels.entry(text_of(&label.name)).or_default().declare(label.mark),
            Own::Leaves(label) => {
                self.labels.entry(text_of(&label.name)).or_default().names.insert(label.mark);
            }
        }
        e.children(&mut |e| self.expr(e));
    }
}

/// The name in an expression itself, apart from those in its parts.
enum Own<'a> {
    Nothing,
    /// A path, and the variable for which the macro takes it.
    Use(&'a Path, Option<VarId>),
    /// A loop with this label.
    Loop(&'a Label),
    /// A `break` or `continue` with this label.
    Leaves(&'a Label),
}

/// Names in types are left out: rustc allows no variables there.
fn own(kind: &ExprKind) -> Own<'_> {
    match kind {
        ExprKind::Path(path, res) => match res {
            Res::Local(var) => Own::Use(path, Some(*var)),
            Res::None | Res::ConstParam(_) | Res::Symbol(_) | Res::Builtin | Res::Assoc(_) | Res::Constant(_) => {
                Own::Use(path, None)
            }
        },
        ExprKind::Call { path, .. } | ExprKind::Roles { path, .. } => Own::Use(path, None),
        ExprKind::For { label, .. } | ExprKind::While { label, .. } | ExprKind::Loop { label, .. } => {
            label.as_ref().map_or(Own::Nothing, Own::Loop)
        }
        ExprKind::Break { label, .. } | ExprKind::Continue { label } => {
            label.as_ref().map_or(Own::Nothing, Own::Leaves)
        }
        ExprKind::Int(..)
        | ExprKind::Float(..)
        | ExprKind::Bool(..)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Lazy(..)
        | ExprKind::Assign(..)
        | ExprKind::AssignOp(..)
        | ExprKind::Method { .. }
        | ExprKind::If { .. }
        | ExprKind::Block(_)
        | ExprKind::Unsafe(_)
        | ExprKind::Return(_)
        | ExprKind::Array(..)
        | ExprKind::Tuple(..)
        | ExprKind::Index(..)
        | ExprKind::Field(..)
        | ExprKind::Closure { .. }
        | ExprKind::As(..)
        | ExprKind::Range { .. }
        | ExprKind::Paren(..)
        | ExprKind::Ref { .. }
        | ExprKind::Macro { .. }
        | ExprKind::Bad => Own::Nothing,
    }
}

/// Prints the function that rustc checks.
struct Judge<'a> {
    krate: &'a TokenStream,
    /// The numbers of the texts that are checked.
    texts: SortedMap<String, usize>,
    /// The texts of labels that are checked.
    labels: SortedSet<String>,
    /// An identifier of each name that is used.
    free: SortedMap<Mark, Ident>,
}

impl Judge<'_> {
    fn block(&mut self, block: &Block, out: &mut TokenStream) {
        let mut inner = TokenStream::new();
        for stmt in &block.stmts {
            match stmt {
                Stmt::Let { pat, init, .. } => {
                    init.iter().for_each(|e| self.expr(e, &mut inner));
                    self.pat(pat, &mut inner);
                }
                Stmt::Expr { expr, .. } => self.expr(expr, &mut inner),
            }
        }
        enclose(inner, out);
    }

    fn expr(&mut self, e: &Expr, out: &mut TokenStream) {
        if let Own::Use(path, var) = own(&e.kind) {
            self.used(path, var, out);
        }
        match &e.kind {
            ExprKind::If { cond, then, other } => {
                match &**cond {
                    Cond::Expr(c) => {
                        self.expr(c, out);
                        self.block(then, out);
                    }
                    Cond::LetSome { pat, option, .. } => {
                        self.expr(option, out);
                        self.scope(std::slice::from_ref(pat), out, |judge, out| judge.block(then, out));
                    }
                }
                other.iter().for_each(|e| self.expr(e, out));
            }
            ExprKind::Block(b) | ExprKind::Unsafe(b) => self.block(b, out),
            ExprKind::For { label, pat, iter, body } => {
                self.expr(iter, out);
                self.scope(std::slice::from_ref(pat), out, |judge, out| {
                    judge.labelled(label.as_ref(), out, |judge, out| judge.block(body, out));
                });
            }
            ExprKind::While { label, cond, body } => self.labelled(label.as_ref(), out, |judge, out| {
                judge.expr(cond, out);
                judge.block(body, out);
            }),
            ExprKind::Loop { label, body } => {
                self.labelled(label.as_ref(), out, |judge, out| judge.block(body, out));
            }
            ExprKind::Closure { params, body } => self.scope(params, out, |judge, out| judge.expr(body, out)),
            ExprKind::Break { label, value } => {
                value.iter().for_each(|v| self.expr(v, out));
                self.left(label.as_ref(), out);
            }
            ExprKind::Continue { label } => self.left(label.as_ref(), out),
            ExprKind::Roles { arms, .. } => arms.iter().for_each(|a| self.expr(&a.body, out)),
            ExprKind::Int(..)
            | ExprKind::Float(..)
            | ExprKind::Bool(..)
            | ExprKind::Path(..)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Lazy(..)
            | ExprKind::Assign(..)
            | ExprKind::AssignOp(..)
            | ExprKind::Call { .. }
            | ExprKind::Method { .. }
            | ExprKind::Return(_)
            | ExprKind::Array(..)
            | ExprKind::Tuple(..)
            | ExprKind::Index(..)
            | ExprKind::Field(..)
            | ExprKind::As(..)
            | ExprKind::Range { .. }
            | ExprKind::Paren(..)
            | ExprKind::Ref { .. }
            | ExprKind::Macro { .. }
            | ExprKind::Bad => e.children(&mut |e| self.expr(e, out)),
        }
    }

    /// The scope of the variables of patterns.
    fn scope(&mut self, pats: &[Pat], out: &mut TokenStream, inside: impl FnOnce(&mut Self, &mut TokenStream)) {
        let mut inner = TokenStream::new();
        pats.iter().for_each(|p| self.pat(p, &mut inner));
        inside(self, &mut inner);
        enclose(inner, out);
    }

    fn pat(&mut self, pat: &Pat, out: &mut TokenStream) {
        match &pat.kind {
            PatKind::Wild | PatKind::Bad => {}
            PatKind::Bind { name, var, .. } => self.declare(name, *var, out),
            PatKind::Tuple(list) | PatKind::Array(list) => list.iter().for_each(|p| self.pat(p, out)),
        }
    }

    fn declare(&mut self, name: &Ident, var: VarId, out: &mut TokenStream) {
        if let Some(text) = self.texts.get(&text_of(name)) {
            let (name, number) = (format_ident!("n{}", *text, span = name.span()), Literal::usize_unsuffixed(var + 1));
            let variable = path_at(self.krate, &["lang", "names", "Variable"], name.span());
            out.extend(quote!(let #name = #variable::<#number>;));
        }
    }

    fn used(&mut self, path: &Path, var: Option<VarId>, out: &mut TokenStream) {
        let Some(written) = path.single() else { return };
        if let Some(text) = self.texts.get(&text_of(written)) {
            let name = format_ident!("n{}", *text, span = written.span());
            self.free.entry(path.mark).or_insert_with(|| name.clone());
            let number = Literal::usize_unsuffixed(var.map_or(FREE, |var| var + 1));
            let is = path_at(self.krate, &["lang", "names", "is"], name.span());
            out.extend(quote_spanned!(name.span()=> #is::<#number>(#name);));
        }
    }

    /// The parts of a loop in which its label is visible: a block whose value has a type of its own.
    fn labelled(
        &mut self,
        label: Option<&Label>,
        out: &mut TokenStream,
        inside: impl FnOnce(&mut Self, &mut TokenStream),
    ) {
        let mut inner = TokenStream::new();
        inside(self, &mut inner);
        match label.and_then(|l| self.label(l)) {
            Some((lifetime, number)) => {
                let variable = path_at(self.krate, &["lang", "names", "Variable"], lifetime.ident.span());
                out.extend(quote!(let _: #variable<#number> = #lifetime: { #inner #variable::<#number> };));
            }
            None => enclose(inner, out),
        }
    }

    /// A `break` or `continue` with a label.
    fn left(&self, label: Option<&Label>, out: &mut TokenStream) {
        if let Some((lifetime, number)) = label.and_then(|l| self.label(l)) {
            let target = path_at(self.krate, &["lang", "names", "target"], lifetime.ident.span());
            out.extend(quote_spanned!(lifetime.ident.span()=> break #lifetime #target::<#number, _>();));
        }
    }

    /// A label of a text that is checked, and the number of the loop for which the macro takes it. rustc reports a label without a loop.
    fn label(&self, label: &Label) -> Option<(syn::Lifetime, Literal)> {
        let of = label.of.filter(|_| self.labels.contains(&text_of(&label.name)))?;
        let lifetime = syn::Lifetime { apostrophe: label.name.span(), ident: label.name.clone() };
        Some((lifetime, Literal::usize_unsuffixed(of)))
    }
}

/// Adds statements in a block, unless there are none.
fn enclose(inner: TokenStream, out: &mut TokenStream) {
    if !inner.is_empty() {
        out.extend(quote!({ #inner }));
    }
}
