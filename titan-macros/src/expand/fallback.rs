//! The expansion after an error: the errors, and an item with the user's signature, so that the rest of the file still type-checks
//! and editors keep working.

use super::imports;
use crate::ctxt::{Diag, compile_error};
use crate::parse;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use titan_core::diag::Code;

/// The errors and a launch function that is never called.
pub(crate) fn fallback(krate: &TokenStream, reports: &[Diag], item: TokenStream) -> TokenStream {
    let errors: TokenStream = reports.iter().map(compile_error).collect();
    let used = imports::prelude();
    let (mut parsed, body) = match (parse::function(&item), without_body(&item)) {
        (Ok(parsed), _) => (parsed, quote!(::core::unreachable!())),
        // Not a function: keep the item, because the rest of the file may need it.
        (Err(_), _) if syn::parse2::<syn::Item>(item.clone()).is_ok() => return quote!(#errors #used #item),
        (Err(_), Some(parsed)) => {
            let body = unparsed(&parsed.sig.ident);
            (parsed, body)
        }
        (Err(_), None) => return used,
    };
    let item = &mut parsed;
    let mut ranks = Vec::new();
    names_at(reports, Code::Parameter, item.sig.inputs.to_token_stream(), &mut ranks);
    for input in &mut item.sig.inputs {
        if let syn::FnArg::Typed(t) = input {
            t.attrs.clear();
            if reported(reports, Code::Parameter, t.ty.to_token_stream()) {
                *t.ty = syn::parse_quote!(impl ::core::marker::Sized);
            }
            if let syn::Type::Reference(lent) = &mut *t.ty {
                *lent.elem = shown(krate, &lent.elem, lent.mutability.is_some());
            }
            if reported(reports, Code::Parameter, t.pat.to_token_stream()) {
                *t.pat = syn::parse_quote!(_);
            }
        }
    }
    for param in &mut item.sig.generics.params {
        if let syn::GenericParam::Const(c) = param
            && reported(reports, Code::Generics, c.ty.to_token_stream())
            // Ranks are of this type: the parameters are as they were.
            && c.ty.to_token_stream().to_string() != "usize"
        {
            c.ty = syn::parse_quote!(i32);
        }
        // One that was used as a rank has the type of ranks, so that the other types that name it are accepted.
        if let syn::GenericParam::Const(c) = param
            && ranks.contains(&c.ident.to_string())
        {
            c.ty = syn::parse_quote!(::core::primitive::usize);
        }
    }
    let sig = &mut item.sig;
    sig.generics.where_clause = None;
    (sig.asyncness, sig.unsafety, sig.constness, sig.abi, sig.variadic) = (None, None, None, None, None);
    let (vis, name) = (&item.vis, sig.ident.clone());
    sig.output = syn::ReturnType::Default;
    let functions = functions(krate, vis, sig);
    quote! {
        #errors
        #used
        #[allow(non_camel_case_types, dead_code)]
        #[doc(hidden)]
        #vis enum #name {}
        #[allow(unused, clippy::all)]
        #[doc(hidden)]
        #vis #sig -> #krate::Launch<'static> { #body }
        impl #name {
            #functions
        }
    }
}

/// The functions of the kernel's type, with the user's signature or for any arguments.
fn functions(krate: &TokenStream, vis: &syn::Visibility, sig: &syn::Signature) -> TokenStream {
    let named = |name: &str| {
        let mut other = sig.clone();
        other.ident = syn::Ident::new(name, sig.ident.span());
        other
    };
    let (reference, generic, generic_reference) = (named("reference"), named("generic"), named("generic_reference"));
    let mut declares = named("declares");
    declares.inputs.clear();
    // `dispatch!` passes the values, or the instance, and then the arguments.
    let any = |input: &syn::FnArg| match input {
        syn::FnArg::Typed(t) if is_mutable(&t.ty) => quote!(_: &mut impl ::core::marker::Sized),
        syn::FnArg::Typed(_) | syn::FnArg::Receiver(_) => quote!(_: impl ::core::marker::Sized),
    };
    let any: Vec<TokenStream> =
        std::iter::once(quote!(_: impl ::core::marker::Sized)).chain(sig.inputs.iter().map(any)).collect();
    let (launch, result) = (quote!(#krate::Launch<'static>), quote!(#krate::Result<()>));
    let functions = [
        quote!(#reference -> #result { ::core::unreachable!() }),
        quote!(#generic -> #launch { ::core::unreachable!() }),
        quote!(#generic_reference -> #result { ::core::unreachable!() }),
        // So that no assertion fails as well.
        quote!(const #declares -> ::core::primitive::bool { true }),
        quote!(const fn instances() -> &'static [#krate::Instance] { &[] }),
        quote!(fn dispatch(#(#any),*) -> #launch { ::core::unreachable!() }),
        quote!(fn dispatch_to(#(#any),*) -> #launch { ::core::unreachable!() }),
        quote!(fn dispatch_reference(#(#any),*) -> #result { ::core::unreachable!() }),
        quote!(fn dispatch_reference_to(#(#any),*) -> #result { ::core::unreachable!() }),
    ];
    quote!(#(#[allow(unused, clippy::all)] #[doc(hidden)] #vis #functions)*)
}

/// The body of the launch function of a kernel that TITAN cannot parse. Most often rustc cannot either, and has reported it. If it can, using the
/// kernel is an error: a constant that is evaluated when code is generated, that is, only if there is no other error.
fn unparsed(name: &syn::Ident) -> TokenStream {
    let message = format!("[{}] `{name}` uses syntax that kernels do not support", Code::Syntax);
    quote! {
        struct Refused<T>(T);
        impl<T> Refused<T> {
            const HERE: () = ::core::panic!("{}", #message);
        }
        fn refused<T>() {
            Refused::<T>::HERE
        }
        refused::<()>();
        ::core::unreachable!()
    }
}

/// A function whose body does not parse, without it.
pub(crate) fn without_body(item: &TokenStream) -> Option<syn::ItemFn> {
    let is_body = |t: &TokenTree| matches!(t, TokenTree::Group(_)) && parse::is_in_braces(t.clone().into());
    let head: TokenStream = item.clone().into_iter().take_while(|t| !is_body(t)).collect();
    syn::parse2(quote!(#head {})).ok()
}

/// The errors of an item inside an `impl` or `trait`, and a function with its signature.
pub(crate) fn misplaced(krate: &TokenStream, reports: &[Diag], item: TokenStream, launches: bool) -> TokenStream {
    let errors: TokenStream = reports.iter().map(compile_error).collect();
    let Some(parsed) = without_body(&item) else { return quote!(#errors #item) };
    let (vis, mut sig) = (parsed.vis, parsed.sig);
    for input in &mut sig.inputs {
        match input {
            syn::FnArg::Typed(t) => t.attrs.clear(),
            syn::FnArg::Receiver(r) => r.attrs.clear(),
        }
    }
    if launches {
        sig.output = syn::parse_quote!(-> #krate::Launch<'static>);
    }
    quote! {
        #errors
        #[allow(unused, clippy::all)]
        #[doc(hidden)]
        #vis #sig {
            fn _used<T: Sized>() {}
            ::core::unreachable!()
        }
    }
}

/// Whether a type is `&mut ..`, of which a call takes a reborrow.
fn is_mutable(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Reference(lent) if lent.mutability.is_some())
}

/// The type of a launch's argument for a parameter that is a reference to `tensor`: it accepts views too.
fn shown(krate: &TokenStream, tensor: &syn::Type, mutable: bool) -> syn::Type {
    match (tensor, mutable) {
        (syn::Type::Path(_), false) => syn::parse_quote!((impl #krate::AsTensor<#tensor> + ?Sized)),
        (syn::Type::Path(_), true) => syn::parse_quote!((impl #krate::AsTensorMut<#tensor> + ?Sized)),
        _ => tensor.clone(),
    }
}

/// Whether there is an error of this code at one of the tokens, so that they are not passed to rustc.
fn reported(reports: &[Diag], code: Code, tokens: TokenStream) -> bool {
    let place = |s: Span| (s.start().line, s.start().column);
    tokens.into_iter().any(|t| {
        let here = reports.iter().any(|d| d.code == code && place(d.site) == place(t.span()));
        here || matches!(t, TokenTree::Group(g) if reported(reports, code, g.stream()))
    })
}

/// The names at which there is an error of this code.
fn names_at(reports: &[Diag], code: Code, tokens: TokenStream, names: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) if reported(reports, code, name.to_token_stream()) => names.push(name.to_string()),
            TokenTree::Group(group) => names_at(reports, code, group.stream(), names),
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}
