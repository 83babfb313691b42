//! The public items of a kernel: the launch function, the type of the same name, the trait of the declared instances.

use super::Expansion;
use crate::ast::{GenericParam, KernelItem, Param, ParamTyKind, TypeKind, TypeRef};
use crate::compile::Compiled;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{format_ident, quote};

/// `allow`, `expect`, `warn`, `deny` or `forbid`, of such an attribute.
pub(super) fn lint_level(attr: &TokenStream) -> Option<String> {
    let TokenTree::Group(inner) = attr.clone().into_iter().nth(1)? else { return None };
    let name = inner.stream().into_iter().next()?.to_string();
    ["allow", "expect", "warn", "deny", "forbid"].contains(&name.as_str()).then_some(name)
}

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
        let (func, vis) = (&item.func, &item.vis);
        // An `expect` attribute applies to the body.
        let attrs = item.attrs.iter().filter(|a| lint_level(a).as_deref() != Some("expect"));
        let (name, trait_name) = (&func.name, trait_name(&func.name));
        let declared: Vec<&TokenStream> = func.generics.iter().map(|g| &g.tokens).collect();
        let names: Vec<TokenStream> = func.generics.iter().map(GenericParam::argument).collect();
        let none = names.is_empty();
        let params_of = if none { quote!() } else { quote!(<#(#declared),*>) };
        let args_of = if none { quote!() } else { quote!(<#(#names),*>) };
        let launch_params = func.params.iter().map(|p| launch_param(krate, p, true));
        let plain_params = func.params.iter().map(|p| launch_param(krate, p, false));
        let args: Vec<TokenStream> = func.params.iter().map(|p| launch_arg(krate, p)).collect();
        let (instances, by_value) = (self.instances(), self.by_value());
        // Without generics, rustc would report the bound here, and not at the name without a companion.
        let bound = if none && !self.asks.is_empty() { quote!() } else { quote!(where #name: #trait_name #args_of,) };
        let at = self.asks.first().map_or_else(Span::call_site, |(_, s)| s.resolved_at(Span::call_site()));
        let itself = located(name, at);
        // Where the instance is named by values only, rustc would report that this function is never used.
        let only_by_value = (!none).then(|| quote!(#[allow(dead_code)]));
        let cfg = self.cfgs();
        quote! {
            #(#cfg)*
            #[allow(non_camel_case_types, dead_code)]
            #[doc(hidden)]
            #vis enum #name {}

            #instances

            #(#attrs)*
            #[allow(clippy::too_many_arguments)]
            #only_by_value
            #vis fn #name<'launch, #(#declared),*>(#(#launch_params),*) -> #krate::Launch<'launch>
            #bound
            {
                #krate::Launch::new(
                    <#itself as #trait_name #args_of>::kernel(),
                    ::std::vec![#(#krate::__private::LaunchArg::from(#args)),*],
                )
            }

            #(#cfg)*
            impl #name {
                /// Runs the body as plain host code, program after program: what every device is compared with.
                ///
                /// # Errors
                /// As a launch, and the first trap.
                #[allow(clippy::too_many_arguments, dead_code, non_snake_case)]
                #vis fn reference #params_of (#(#plain_params),*) -> #krate::Result<()>
                #bound
                {
                    <#itself as #trait_name #args_of>::reference::<true>(
                        ::std::vec![#(#krate::__private::LaunchArg::from(#args)),*],
                    )
                }
            }

            #by_value
        }
    }

    /// The trait of the declared instances.
    fn instances(&self) -> TokenStream {
        let (krate, func, vis) = (self.krate, &self.item.func, &self.item.vis);
        let trait_name = trait_name(&func.name);
        let declared: Vec<&TokenStream> = func.generics.iter().map(|g| &g.tokens).collect();
        let params_of = if declared.is_empty() { quote!() } else { quote!(<#(#declared),*>) };
        let (message, label, note) = self.missing();
        let generic = (!declared.is_empty()).then(|| {
            let text =
                format!("code that is generic itself calls `{}::generic::<..>(..)`, which needs no bound", func.name);
            quote!(, note = #text)
        });
        let cfg = self.cfgs();
        quote! {
            #(#cfg)*
            #[allow(non_camel_case_types)]
            #[doc(hidden)]
            #[diagnostic::on_unimplemented(message = #message, label = #label, note = #note #generic)]
            #vis trait #trait_name #params_of {
                fn kernel() -> &'static #krate::__private::KernelRef;
                #[allow(dead_code)]
                fn reference<const __TITAN_RUN: bool>(
                    args: ::std::vec::Vec<#krate::__private::LaunchArg<'_>>,
                ) -> #krate::Result<()>;
            }
        }
    }

    /// The message, label and note of rustc's error for a missing instance.
    fn missing(&self) -> (String, &'static str, String) {
        let name = &self.item.func.name;
        if self.item.func.generics.is_empty() {
            let note = "a device function that it calls has an error".to_owned();
            return (format!("kernel `{name}` was not compiled"), "not compiled", note);
        }
        (format!("kernel `{name}` has no such instance"), "no such instance", note(self.item))
    }
}

/// A name at another place, for messages.
fn located(name: &Ident, at: Span) -> Ident {
    let mut name = name.clone();
    name.set_span(name.span().located_at(at));
    name
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
            TypeKind::Tensor { optional: true, mutable: true, .. } => ParamTyKind::OptionalMut,
            TypeKind::Tensor { optional: true, .. } => ParamTyKind::Optional,
            TypeKind::Tensor { mutable: true, .. } => ParamTyKind::Mut,
            TypeKind::Tensor { .. } => ParamTyKind::In,
            _ => ParamTyKind::Scalar,
        }
    }
}

/// A parameter of the launch function, which borrows tensors for the launch, or of the public reference. Both take views
/// for tensors.
pub(super) fn launch_param(krate: &TokenStream, p: &Param, launch: bool) -> TokenStream {
    let TypeKind::Tensor { elem, rank, mutable, optional: false, path } = &p.ty.kind else {
        return host_param(krate, p, launch);
    };
    let (name, lifetime) = (&p.name, launch.then(|| quote!('launch)));
    // As written, so that its imports count as used.
    let (elem, rank, tensor) = (host_ty(krate, elem, launch), usize::from(*rank), path.tokens());
    if *mutable {
        quote!(#name: & #lifetime mut (impl #krate::AsTensorMut<#tensor<#elem, #rank>> + ?Sized))
    } else {
        quote!(#name: & #lifetime (impl #krate::AsTensor<#tensor<#elem, #rank>> + ?Sized))
    }
}

/// The parameter as a plain reference, an exclusive access or a value.
pub(super) fn launch_arg(krate: &TokenStream, p: &Param) -> TokenStream {
    let name = &p.name;
    match ParamTyKind::of(p) {
        ParamTyKind::In => quote!(#krate::AsTensor::as_tensor(#name)),
        ParamTyKind::Mut => quote!(#krate::AsTensorMut::as_tensor_mut(#name)),
        ParamTyKind::Optional | ParamTyKind::OptionalMut | ParamTyKind::Scalar => quote!(#name),
    }
}

/// A parameter as a plain reference, an exclusive access or a value; `launch` borrows tensors for the launch.
pub(super) fn host_param(krate: &TokenStream, p: &Param, launch: bool) -> TokenStream {
    let (name, ty) = (&p.name, host_ty(krate, &p.ty, launch));
    quote!(#name: #ty)
}

/// The generic arguments of a read of an argument by the reference: `f32, 2` of a tensor, `f32` of a scalar.
pub(super) fn argument_type(krate: &TokenStream, t: &TypeRef) -> TokenStream {
    match &t.kind {
        TypeKind::Tensor { elem, rank, .. } => {
            let (elem, rank) = (host_ty(krate, elem, false), usize::from(*rank));
            quote!(#elem, #rank)
        }
        _ => host_ty(krate, t, false),
    }
}

fn host_ty(krate: &TokenStream, t: &TypeRef, launch: bool) -> TokenStream {
    let lifetime = launch.then(|| quote!('launch));
    match &t.kind {
        TypeKind::Tensor { elem, rank, mutable, optional, path } => {
            let (elem, rank) = (host_ty(krate, elem, launch), usize::from(*rank));
            // As written: it is the host's `titan::Tensor`, and imports of it count as used.
            let tensor = path.tokens();
            match (optional, mutable) {
                (true, true) => quote!(::core::option::Option<& #lifetime mut #tensor<#elem, #rank>>),
                (true, false) => quote!(::core::option::Option<& #lifetime #tensor<#elem, #rank>>),
                (false, true) => {
                    let lifetime = lifetime.unwrap_or_else(|| quote!('_));
                    quote!(#krate::Exclusive<#lifetime, #tensor<#elem, #rank>>)
                }
                (false, false) => quote!(& #lifetime #tensor<#elem, #rank>),
            }
        }
        TypeKind::Elem(_, path) => path.tokens(),
        _ => quote!(()),
    }
}
