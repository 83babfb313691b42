//! Constants whose names are not in upper case: without a path, they are taken for variables.
//!
//! A name that is not a variable is asked for if it is written like that of a constant (see [`crate::chain`]). Others are not: if there is no
//! companion either, rustc would report a macro that does not exist, where its own error for a variable that does not exist is better.

use super::Resolver;
use crate::ast::{TypeKind, TypeRef};
use crate::ctxt::Diag;
use crate::names::{is_constant_name, is_type};
use crate::nearby;
use proc_macro2::{Ident, Span};
use titan_core::diag::{Code, Diagnostic};

impl Resolver<'_> {
    /// Reports a name that is neither a variable nor written like that of a constant.
    pub(super) fn not_found(&self, name: &Ident, text: &str) {
        if self.lower_case_constant(name, text, format!("self::{text}")) {
            return;
        }
        // In a grid, a shape or a requirement, it is reported where these are compiled.
        if !self.host {
            self.cx.error(Code::UnknownName, name.span(), format!("`{text}` is not in scope"));
        }
    }

    /// Reports a name that seems to be that of a constant in lower case, and returns whether it is. `path` is how it is found.
    fn lower_case_constant(&self, name: &Ident, text: &str, path: String) -> bool {
        let is_constant = nearby::has_constant(text, name.span());
        if is_constant {
            self.cx.push(lower_case(text, &path, name.span()));
        }
        is_constant
    }

    /// Reports an extent that seems to be a constant in lower case.
    pub(super) fn argument(&self, ty: &TypeRef) {
        if let TypeKind::Elem(name, path) = &ty.kind
            && path.single().is_some()
        {
            let text = name.to_string();
            let is_known =
                is_type(&text) || self.symbols.contains(&text) || self.func.generics.iter().any(|g| g.name == text);
            if !is_known && !is_constant_name(&text) {
                self.lower_case_constant(name, &text, format!("{{ self::{text} }}"));
            }
        }
    }
}

/// The error of a constant whose name is not written like that of one, so that it is taken for a variable. `path` is how it is found.
pub(crate) fn lower_case(name: &str, path: &str, at: Span) -> Diag {
    let title =
        format!("`{name}` is not found: the name of a constant that is written without a path must be in upper case");
    let help = format!(
        "call it `{}`, or write its path, `{path}`; it must be marked `#[titan::constant]`",
        name.to_uppercase()
    );
    Diagnostic::new(Code::NotForKernels, at, title).help(help)
}
