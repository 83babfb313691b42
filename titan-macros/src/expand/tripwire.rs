//! Fails the build if TITAN found an error that rustc should report, but rustc did not.
//!
//! The shadow then returns `impl Sized`. If its body has an error, so has that type, and a constant that asks for its size is
//! dropped without a second message; if the body is accepted, the constant is evaluated and panics with TITAN's message.

use super::Expansion;
use crate::compile::Compiled;
use crate::ctxt::Diag;
use crate::resolve;
use crate::shadow::Shadow;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use titan_core::diag::Code;

impl Expansion<'_> {
    /// The same for an error inside a device function. rustc reports it there, not in the shadow of the kernel. This constant is
    /// evaluated when code is generated for the launch, that is, only if there was no error.
    pub(super) fn inlined_tripwire(&self) -> TokenStream {
        let Some(diag) = self.reports.inlined.first() else { return TokenStream::new() };
        let message = message(diag);
        quote!(const { ::core::panic!("{}", #message) };)
    }

    pub(super) fn tripwire(&self, any: &Compiled, shadow: &Shadow<'_>) -> TokenStream {
        let Some(diag) = self.reports.rustcs.first() else { return TokenStream::new() };
        let name = &self.item.func.name;
        let types: Vec<_> = (0..self.item.func.params.len()).map(|i| format_ident!("A{i}")).collect();
        let holes = types.iter().map(|_| quote!(_));
        let args = shadow.turbofish(&self.shadow_args(any, shadow));
        let message = message(diag);
        quote! {
            const _: () = {
                const fn size<R, #(#types),*>(_: fn(#(#types),*) -> R) -> usize {
                    ::core::mem::size_of::<R>()
                }
                ::core::assert!(size(#name #args as fn(#(#holes),*) -> _) == ::core::primitive::usize::MAX, "{}", #message);
            };
        }
    }
}

fn message(diag: &Diag) -> String {
    // rustc finds an item where TITAN looks for a variable.
    if let (Code::UnknownName, Some((name, _))) =
        (diag.code, diag.title.strip_prefix('`').and_then(|t| t.split_once('`')))
    {
        return resolve::lower_case(name, &format!("self::{name}"), diag.site).text();
    }
    let line = diag.site.start().line;
    format!("[{}] rustc accepts what TITAN rejects, at line {line}: {}", Code::Internal, diag.text())
}
