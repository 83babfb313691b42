//! What the user names: the launch function, the type of the same name, the trait of the declared instances.

use super::Expansion;
use crate::ast::{Function, GenericKind, KernelItem, Param, ParamTyKind, TypeKind, TypeRef};
use crate::compile::Compiled;
use crate::instance::Instance;
use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::{format_ident, quote};

/// The trait that declared instances implement.
pub(super) fn trait_name(name: &Ident) -> Ident {
    format_ident!("{}_instance", name.to_string().trim_start_matches("r#"))
}

/// `<f16, 128, 256, 64>`, or nothing.
pub(super) fn instance_args(c: &Compiled) -> TokenStream {
    let args = &c.instance.tokens;
    if args.is_empty() { quote!() } else { quote!(<#(#args),*>) }
}

impl Expansion<'_> {
    #[expect(clippy::cognitive_complexity, reason = "one long quotation")]
    pub(crate) fn surface(&self) -> TokenStream {
        let (krate, item) = (self.krate, self.item);
        let (func, vis, attrs) = (&item.func, &item.vis, &item.attrs);
        let (name, trait_name) = (&func.name, trait_name(&func.name));
        let declared: Vec<&TokenStream> = func.generics.iter().map(|g| &g.tokens).collect();
        let names: Vec<&Ident> = func.generics.iter().map(|g| &g.name).collect();
        let none = names.is_empty();
        let params_of = if none { quote!() } else { quote!(<#(#declared),*>) };
        let args_of = if none { quote!() } else { quote!(<#(#names),*>) };
        let launch_params = func.params.iter().map(|p| host_param(krate, p, true));
        let plain_params: Vec<TokenStream> = func.params.iter().map(|p| host_param(krate, p, false)).collect();
        let arg_names: Vec<&Ident> = func.params.iter().map(|p| &p.name).collect();
        let (message, label, note) = self.missing();
        let compiled = self.compiled_check();
        let cfg = self.cfgs();
        quote! {
            #compiled

            #(#cfg)*
            #[allow(non_camel_case_types, dead_code)]
            #[doc(hidden)]
            #vis enum #name {}

            #(#cfg)*
            #[allow(non_camel_case_types)]
            #[doc(hidden)]
            #[diagnostic::on_unimplemented(message = #message, label = #label, note = #note)]
            #vis trait #trait_name #params_of {
                fn kernel() -> &'static #krate::__private::KernelRef;
                #[allow(clippy::too_many_arguments, dead_code)]
                fn reference<const __TITAN_RUN: bool>(#(#plain_params),*) -> #krate::Result<()>;
            }

            #(#attrs)*
            #[allow(clippy::too_many_arguments)]
            #vis fn #name<'launch, #(#declared),*>(#(#launch_params),*) -> #krate::Launch<'launch>
            where
                #name: #trait_name #args_of,
            {
                #krate::Launch::new(
                    <#name as #trait_name #args_of>::kernel(),
                    ::std::vec![#(#krate::__private::LaunchArg::from(#arg_names)),*],
                )
            }

            #(#cfg)*
            impl #name {
                /// Runs the body as plain host code, program after program: what every device is compared with.
                ///
                /// # Errors
                /// As a launch, and the first trap.
                #[allow(clippy::too_many_arguments, dead_code)]
                #vis fn reference #params_of (#(#plain_params),*) -> #krate::Result<()>
                where
                    #name: #trait_name #args_of,
                {
                    <#name as #trait_name #args_of>::reference::<true>(#(#arg_names),*)
                }
            }
        }
    }

    /// What rustc says where an instance is missing: message, label and note.
    fn missing(&self) -> (String, &'static str, String) {
        let name = &self.item.func.name;
        if self.item.func.generics.is_empty() {
            return (format!("kernel `{name}` was not compiled"), "see the note", self.asked());
        }
        (format!("kernel `{name}` has no such instance"), "no such instance", note(self.item))
    }

    fn asked(&self) -> String {
        let list: Vec<String> = self.asks.iter().map(|(path, _)| format!("`{path}`")).collect();
        format!("it names {}: functions need `#[titan::device]`, constants `#[titan::constant]`, and both must be in scope", list.join(", "))
    }

    /// If a companion does not exist, rustc only says that a macro is missing. This adds what that means.
    fn compiled_check(&self) -> TokenStream {
        let Some((_, span)) = self.asks.first() else { return TokenStream::new() };
        let func = &self.item.func;
        if func.generics.is_empty() {
            return TokenStream::new();
        }
        let (name, compiled) = (&func.name, compiled_trait(&func.name));
        let (message, note) = (format!("kernel `{name}` was not compiled"), self.asked());
        let check = quote::quote_spanned!(span.resolved_at(proc_macro2::Span::call_site())=> needs::<#name>());
        let cfg = self.cfgs();
        quote! {
            #(#cfg)*
            #[allow(non_camel_case_types)]
            #[doc(hidden)]
            #[diagnostic::on_unimplemented(message = #message, label = "see the note", note = #note)]
            trait #compiled {}
            #(#cfg)*
            const _: fn() = || {
                fn needs<K: #compiled>() {}
                #check
            };
        }
    }
}

/// The trait that says that all companions have answered.
pub(super) fn compiled_trait(name: &Ident) -> Ident {
    format_ident!("{}_compiled", name.to_string().trim_start_matches("r#"))
}

/// The declared instances, for the message about one that is missing.
fn note(item: &KernelItem) -> String {
    const SHOWN: usize = 8;
    let name = &item.func.name;
    let instances = crate::instance::written(item);
    let list: Vec<String> = instances.iter().take(SHOWN).map(|args| format!("{name}::<{}>", args.join(", "))).collect();
    let more = if instances.len() > SHOWN { format!(", and {} more", instances.len() - SHOWN) } else { String::new() };
    format!("declared instances: {}{more}", list.join(", "))
}

impl ParamTyKind {
    pub(crate) const fn of(p: &Param) -> ParamTyKind {
        match p.ty.kind {
            TypeKind::Tensor { optional: true, .. } => ParamTyKind::Optional,
            TypeKind::Tensor { mutable: true, .. } => ParamTyKind::Mut,
            TypeKind::Tensor { .. } => ParamTyKind::In,
            _ => ParamTyKind::Scalar,
        }
    }
}

/// A parameter of the launch function or of the reference; `launch` borrows tensors for the launch.
pub(super) fn host_param(krate: &TokenStream, p: &Param, launch: bool) -> TokenStream {
    let (name, ty) = (&p.name, host_ty(krate, &p.ty, launch));
    quote!(#name: #ty)
}

fn host_ty(krate: &TokenStream, t: &TypeRef, launch: bool) -> TokenStream {
    let lifetime = launch.then(|| quote!('launch));
    match &t.kind {
        TypeKind::Tensor { elem, rank, mutable, optional, path: tensor, .. } => {
            // The user's own word, so that the import it needs is used.
            let (elem, rank) = (host_ty(krate, elem, launch), usize::from(*rank));
            match (optional, mutable) {
                (true, _) => quote!(::core::option::Option<& #lifetime #tensor<#elem, #rank>>),
                (false, true) => quote!(& #lifetime mut #tensor<#elem, #rank>),
                (false, false) => quote!(& #lifetime #tensor<#elem, #rank>),
            }
        }
        TypeKind::Elem(_, path) => path.clone(),
        _ => quote!(()),
    }
}

/// Generic element types replaced by an instance's.
pub(super) fn substitute(tokens: TokenStream, func: &Function, instance: &Instance) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|t| match t {
            TokenTree::Ident(i) => {
                let mut generics = func.generics.iter().zip(&instance.tokens);
                let found = generics.find(|(g, _)| g.kind == GenericKind::Elem && g.name == i);
                found.map_or_else(|| TokenTree::Ident(i).into(), |(_, value)| value.clone())
            }
            TokenTree::Group(g) => {
                let mut group = Group::new(g.delimiter(), substitute(g.stream(), func, instance));
                group.set_span(g.span());
                TokenTree::Group(group).into()
            }
            other => TokenStream::from(other),
        })
        .collect()
}
