//! Imports are used: names of the language that the shadow spells in its own way are repeated as the user wrote them, so that
//! rustc does not call their imports unused, and so that a function of the same name but of another crate is found out.

use crate::ast::{Function, Mention};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// What a kernel or a device function says of its imports.
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
            // The prelude has `Sized` too, so that importing it is never in vain.
            const _: fn() = || {
                fn same<F: Sized>(_: F, _: F) {}
                #(#same)*
            };
        };
    }
}

/// What makes an import of the prelude count as used: it has `Sized` too.
pub(crate) fn prelude() -> TokenStream {
    quote!(
        const _: fn() = || {
            fn _used<T: Sized>() {}
        };
    )
}

/// The function is the language's, whatever the file calls so: rustc compares the two.
fn comparison(krate: &TokenStream, name: &Ident) -> Option<TokenStream> {
    let (half, single, matrix) = (quote!(#krate::lang::f16), quote!(f32), quote!(#krate::lang::D2<1, 1>));
    let args = match name.to_string().as_str() {
        "iota" | "unflatten" | "unflatten_grouped" => quote!(::<1>),
        "select" => quote!(::<#single, #matrix, #single, #single>),
        "mma" => quote!(::<#krate::lang::Tile<#half, #matrix>, #krate::lang::Tile<#half, #matrix>, #single, #matrix>),
        "mma_async" | "mma_async_reg" => quote!(::<#half, #half, #single, #matrix, #matrix, #matrix>),
        "role" => quote!(::<#krate::lang::pipeline::Nobody>),
        "cdiv" | "program_id" | "num_programs" | "pipelined" => quote!(),
        _ => return None,
    };
    Some(quote!(same(#krate::lang::#name #args, #name #args);))
}
