//! Patterns: names, `_`, tuples and arrays.

use super::{Parser, first_span};
use crate::ast::{Pat, PatKind};
use crate::hygiene::Occurs;
use quote::ToTokens;
use titan_core::diag::Code;

impl Parser<'_> {
    pub(super) fn pat(&mut self, pat: &syn::Pat) -> Pat {
        let (span, kind) = match pat {
            syn::Pat::Wild(w) => (w.underscore_token.spans[0], PatKind::Wild),
            syn::Pat::Ident(i) if i.by_ref.is_none() && i.subpat.is_none() => {
                let span = i.mutability.map_or_else(|| i.ident.span(), |m| m.span);
                let mark = self.names.mark(&i.ident, Occurs::Bound);
                (span, PatKind::Bind { name: i.ident.clone(), mark, mutable: i.mutability.is_some(), var: 0 })
            }
            syn::Pat::Tuple(t) => {
                (t.paren_token.span.join(), PatKind::Tuple(t.elems.iter().map(|p| self.pat(p)).collect()))
            }
            syn::Pat::Slice(s) => {
                (s.bracket_token.span.join(), PatKind::Array(s.elems.iter().map(|p| self.pat(p)).collect()))
            }
            syn::Pat::Paren(p) => return self.pat(&p.pat),
            _ => {
                let span = first_span(pat.to_token_stream());
                let help = "patterns are names, `_`, tuples `(a, b)` and arrays `[a, b]`";
                self.cx.error_help(Code::Syntax, span, "this pattern is not supported in kernels", help);
                (span, PatKind::Bad)
            }
        };
        Pat { span, kind }
    }
}
