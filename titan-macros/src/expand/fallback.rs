//! After an error: the errors, and the user's item with the same signature, so that the rest of the file still type-checks
//! and editors keep working.

use crate::ctxt::{Diag, compile_error};
use proc_macro2::TokenStream;
use quote::quote;

/// The errors and a launch function that is never called.
pub(crate) fn fallback(krate: &TokenStream, errors: &[Diag], item: TokenStream) -> TokenStream {
    let errors: TokenStream = errors.iter().map(compile_error).collect();
    let Ok(mut item) = syn::parse2::<syn::ItemFn>(item) else { return errors };
    for input in &mut item.sig.inputs {
        if let syn::FnArg::Typed(t) = input {
            t.attrs.clear();
        }
    }
    let sig = &mut item.sig;
    (sig.asyncness, sig.unsafety, sig.constness, sig.abi, sig.variadic) = (None, None, None, None, None);
    let (vis, name) = (&item.vis, sig.ident.clone());
    sig.output = syn::ReturnType::Default;
    let mut reference = sig.clone();
    reference.ident = syn::Ident::new("reference", name.span());
    quote! {
        #errors
        #[allow(non_camel_case_types, dead_code)]
        #[doc(hidden)]
        #vis enum #name {}
        #[allow(unused, clippy::all)]
        #[doc(hidden)]
        #vis #sig -> #krate::Launch<'static> { ::core::unreachable!() }
        impl #name {
            #[allow(unused, clippy::all)]
            #[doc(hidden)]
            #vis #reference -> #krate::Result<()> { ::core::unreachable!() }
        }
    }
}
