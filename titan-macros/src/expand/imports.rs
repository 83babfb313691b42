//! Uses the imports of names that the shadow spells in another way: the names are repeated as the user wrote them, so that rustc does
//! not report their imports as unused, and so that a function of another crate with the same name is detected.

use crate::ast::{Function, Mention};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use titan_core::diag::Code;

/// The uses of the imports of a kernel or a device function.
pub(crate) fn of(krate: &TokenStream, func: &Function) -> TokenStream {
    let same = func.intrinsics.iter().filter_map(|name| comparison(krate, name));
    let (mut types, mut macros) = (Vec::new(), Vec::new());
    for mention in &func.mentions {
        match mention {
            Mention::Type(name) => types.push(name),
            Mention::Macro(name) => macros.push(name),
        }
    }
    let used = types.iter().chain(&macros).map(|n| (*n, format_ident!("{}_used", n)));
    let used = used.map(|(name, other)| quote!(use #name as #other;));
    quote! {
        #[allow(dead_code, unused_imports, non_camel_case_types, non_snake_case, clippy::all)]
        const _: () = {
            // A name that is not imported at all is found here, in another namespace.
            #(fn #types() {})*
            #(enum #macros {})*
            #(#used)*
            // The prelude contains `Sized`, so that its import always counts as used.
            const _: fn() = || {
                fn _used<T: Sized>() {}
                #(#same)*
            };
        };
    }
}

/// Makes an import of the prelude count as used, because it contains `Sized`.
pub(crate) fn prelude() -> TokenStream {
    quote!(
        const _: fn() = || {
            fn _used<T: Sized>() {}
        };
    )
}

/// Makes rustc check that this name in the file refers to the function of the language. Everything is at the name: rustc does not mention
/// the macro then. The name has no generic arguments of its own, because another function may have others.
fn comparison(krate: &TokenStream, name: &Ident) -> Option<TokenStream> {
    let (half, single, matrix) = (quote!(#krate::lang::f16), quote!(f32), quote!(#krate::lang::D2<1, 1>));
    let tile = quote!(#krate::lang::Tile);
    let args = match name.to_string().as_str() {
        "iota" | "unflatten" | "unflatten_grouped" => quote!(::<1>),
        "select" => quote!(::<bool, #single, #single, #single>),
        "mma" => quote!(::<#tile<#half, #matrix>, #tile<#half, #matrix>, #tile<#single, #matrix>>),
        "mma_async" | "mma_async_reg" => quote!(::<#half, #half, #tile<#single, #matrix>, #matrix, #matrix>),
        "role" => quote!(::<#krate::lang::pipeline::NoRoles>),
        "cdiv" | "program_id" | "num_programs" | "pipelined" => quote!(),
        _ => return None,
    };
    let message = format!("[{}] `{name}` is another function here than the one of TITAN", Code::NotForKernels);
    let label = format!("not TITAN's `{name}`");
    let note = format!(
        "a kernel reads this name as TITAN's: rename the other function; if that is marked `#[titan::device]`, `self::{name}(..)` calls it, \
         and `titan::{name}(..)` is TITAN's"
    );
    let at = name.span();
    Some(quote_spanned! {at=>
        {
            #[diagnostic::on_unimplemented(message = #message, label = #label, note = #note)]
            trait Same<F> {}
            #[diagnostic::do_not_recommend]
            impl<F> Same<F> for F {}
            fn same<A, B: Same<A>>(_: A, _: B) {}
            same(#krate::lang::#name #args, #name);
        }
    })
}
