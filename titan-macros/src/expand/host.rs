//! The functions by which host code names an instance by values: code that is generic itself, and `dispatch!`. Deliberately absent: the
//! launch of an instance that is written out, which is in `surface`.

use super::Expansion;
use super::surface::{host_param, launch_arg, launch_param, trait_name};
use crate::ast::{GenericKind, GenericParam, Param, ParamTyKind, TypeKind};
use crate::compile::Compiled;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};

impl Expansion<'_> {
    /// The functions of the type of the kernel's name.
    pub(super) fn by_value(&self) -> TokenStream {
        let (krate, item) = (self.krate, self.item);
        let (vis, name, cfg) = (&item.vis, &item.func.name, self.cfgs());
        let generic = (!item.func.generics.is_empty()).then(|| {
            let (generic, dispatch) = (self.in_generic_code(), self.at_run_time());
            quote!(#generic #dispatch)
        });
        quote! {
            #(#cfg)*
            impl #name {
                /// The declared instances, in the order of `instances(..)`.
                #[allow(dead_code)]
                #[must_use]
                #vis const fn instances() -> &'static [#krate::Instance] {
                    <Self as #krate::__private::Declares>::INSTANCES
                }
                #generic
            }
        }
    }

    /// The functions for generic code, which has no bound for the instance.
    fn in_generic_code(&self) -> TokenStream {
        let (krate, func, vis) = (self.krate, &self.item.func, &self.item.vis);
        let declared: Vec<&TokenStream> = func.generics.iter().map(|g| &g.tokens).collect();
        let launch_params = func.params.iter().map(|p| launch_param(krate, p, true));
        let plain_params = func.params.iter().map(|p| launch_param(krate, p, false));
        let args: Vec<TokenStream> = func.params.iter().map(|p| launch_arg(krate, p)).collect();
        let value = |g: &GenericParam| {
            let name = &g.name;
            match g.kind {
                GenericKind::Elem | GenericKind::Shape => {
                    quote!(#krate::GenericArg::Elem(<#name as #krate::lang::Elem>::ELEM))
                }
                GenericKind::ConstInt(_) => quote!(#krate::GenericArg::Int(#name)),
                GenericKind::ConstBool => quote!(#krate::GenericArg::Bool(#name)),
            }
        };
        let values: Vec<TokenStream> = func.generics.iter().map(value).collect();
        // Found while the generic code is compiled for its types.
        let nth = quote!(const {
            #krate::__private::position::<Self>(&[#(#values),*])
        });
        quote! {
            /// The launch, from code that is generic itself: it needs no bound for the instance. If the instance is not declared, the launch
            /// is an error; [`Self::declares`] says so before.
            #[allow(clippy::too_many_arguments, dead_code, non_snake_case)]
            #vis fn generic<'launch, #(#declared),*>(#(#launch_params),*) -> #krate::Launch<'launch> {
                #krate::Launch::of_instance::<Self>(
                    #nth, &[#(#values),*], ::std::vec![#(#krate::__private::LaunchArg::from(#args)),*],
                )
            }

            /// The reference, from code that is generic itself.
            ///
            /// # Errors
            /// As a launch, and the first trap; if the instance is not declared.
            #[allow(clippy::too_many_arguments, dead_code, non_snake_case)]
            #vis fn generic_reference<#(#declared),*>(#(#plain_params),*) -> #krate::Result<()> {
                #krate::__private::run_reference::<Self>(
                    #nth, &[#(#values),*], ::std::vec![#(#krate::__private::LaunchArg::from(#args)),*],
                )
            }

            /// Whether this instance is declared. In a constant of generic code,
            /// `const { assert!(kernel::declares::<T, 256>()) }`, `cargo build` fails where it is not.
            #[allow(dead_code)]
            #[must_use]
            #vis const fn declares<#(#declared),*>() -> bool {
                #nth.is_some()
            }
        }
    }

    /// The functions that `dispatch!` calls.
    fn at_run_time(&self) -> TokenStream {
        let (krate, func, vis) = (self.krate, &self.item.func, &self.item.vis);
        let names: Vec<Ident> =
            (0..func.generics.len()).map(|n| format_ident!("value_{n}", span = Span::mixed_site())).collect();
        let (mut types, mut values) = (Vec::new(), Vec::new());
        for (g, name) in func.generics.iter().zip(&names) {
            let tensor = func.params.iter().find_map(|p| self.elem_of_tensor(g, p));
            let (ty, value) = match (g.kind, tensor) {
                (GenericKind::ConstInt(_), _) => (quote!(::core::primitive::i32), quote!(Int(#name))),
                (GenericKind::ConstBool, _) => (quote!(::core::primitive::bool), quote!(Bool(#name))),
                (GenericKind::Elem | GenericKind::Shape, None) => (quote!(#krate::ElemType), quote!(Elem(#name))),
                (GenericKind::Elem | GenericKind::Shape, Some(elem)) => {
                    (quote!(impl #krate::ElemChoice), quote!(Elem(#krate::ElemChoice::or(#name, #elem))))
                }
            };
            types.push(ty);
            values.push(quote!(#krate::GenericArg::#value));
        }
        let params: Vec<TokenStream> = func.params.iter().map(|p| self.any_param(p)).collect();
        let args: Vec<TokenStream> = func.params.iter().map(|p| self.any_arg(p)).collect();
        // Parameters of the kernel may have these names too.
        let [chosen, instance] = ["values", "instance"].map(|name| Ident::new(name, Span::mixed_site()));
        let by_values = quote! {
            let (#(#names,)*) = #chosen;
            let #chosen = [#(#values),*];
        };
        let by_instance = quote!(let #chosen: ::std::vec::Vec<_> = #instance.args().iter().map(|a| a.1).collect(););
        let nth = quote!(#krate::__private::position::<Self>(&#chosen));
        let call = quote!(::<Self>(#nth, &#chosen, ::std::vec![#(#args),*]));
        let attrs = quote!(#[doc(hidden)] #[allow(clippy::too_many_arguments, dead_code, non_snake_case)]);
        quote! {
            #attrs
            #vis fn dispatch<'launch>(#chosen: (#(#types,)*), #(#params),*) -> #krate::Launch<'launch> {
                #by_values
                #krate::Launch::of_instance #call
            }
            #attrs
            #vis fn dispatch_to<'launch>(#instance: &#krate::Instance, #(#params),*) -> #krate::Launch<'launch> {
                #by_instance
                #krate::Launch::of_instance #call
            }
            #attrs
            #vis fn dispatch_reference<'launch>(#chosen: (#(#types,)*), #(#params),*) -> #krate::Result<()> {
                #by_values
                #krate::__private::run_reference #call
            }
            #attrs
            #vis fn dispatch_reference_to<'launch>(#instance: &#krate::Instance, #(#params),*) -> #krate::Result<()> {
                #by_instance
                #krate::__private::run_reference #call
            }
        }
    }

    /// Whether a type is a generic parameter of the kernel.
    fn is_generic(&self, elem: &TypeKind) -> Option<&GenericParam> {
        let TypeKind::Elem(_, path) = elem else { return None };
        let name = path.single()?;
        self.item.func.generics.iter().find(|g| g.name == *name)
    }

    /// The element type of a tensor argument as a value, if it is that of this generic parameter.
    fn elem_of_tensor(&self, generic: &GenericParam, p: &Param) -> Option<TokenStream> {
        let TypeKind::Tensor { elem, rank, mutable, optional: false, .. } = &p.ty.kind else { return None };
        self.is_generic(&elem.kind).filter(|g| g.name == generic.name)?;
        let (krate, name, rank) = (self.krate, &p.name, usize::from(*rank));
        let any = if *mutable { quote!(AnyTensorMut) } else { quote!(AnyTensor) };
        Some(quote!(#krate::#any::<#krate::AnyElem, #rank>::elem(#name)))
    }

    /// A parameter for `dispatch!`: a tensor of any element type where that depends on the instance.
    fn any_param(&self, p: &Param) -> TokenStream {
        let TypeKind::Tensor { elem, rank, mutable, optional, .. } = &p.ty.kind else {
            return host_param(self.krate, p, true);
        };
        let (krate, name, rank) = (self.krate, &p.name, usize::from(*rank));
        let elem = match (self.is_generic(&elem.kind), &elem.kind) {
            (None, TypeKind::Elem(_, path)) => path.tokens(),
            _ => quote!(#krate::AnyElem),
        };
        match (optional, mutable) {
            (true, true) => quote!(#name: impl #krate::AnyOptionMut<'launch, #elem, #rank>),
            (true, false) => quote!(#name: impl #krate::AnyOption<'launch, #elem, #rank>),
            (false, true) => quote!(#name: &'launch mut (impl #krate::AnyTensorMut<#elem, #rank> + ?Sized)),
            (false, false) => quote!(#name: &'launch (impl #krate::AnyTensor<#elem, #rank> + ?Sized)),
        }
    }

    /// The argument of the launch for such a parameter.
    fn any_arg(&self, p: &Param) -> TokenStream {
        let (krate, name) = (self.krate, &p.name);
        match ParamTyKind::of(p) {
            ParamTyKind::In => quote!(#krate::AnyTensor::launch_arg(#name)),
            ParamTyKind::Mut => quote!(#krate::AnyTensorMut::launch_arg_mut(#name)),
            ParamTyKind::Optional => quote!(#krate::AnyOption::launch_arg(#name)),
            ParamTyKind::OptionalMut => quote!(#krate::AnyOptionMut::launch_arg_mut(#name)),
            ParamTyKind::Scalar => quote!(#krate::__private::LaunchArg::from(#name)),
        }
    }

    /// The list of the instances, for these functions. After an error there is none.
    pub(super) fn declares(&self, compiled: &[Compiled]) -> TokenStream {
        let (krate, func, cfg) = (self.krate, &self.item.func, self.cfgs());
        let (name, trait_name) = (&func.name, trait_name(&func.name));
        let plain = name.to_string();
        let plain = plain.trim_start_matches("r#");
        let (n, mut instances, mut references) = (compiled.len(), Vec::new(), Vec::new());
        for (nth, c) in compiled.iter().enumerate() {
            let generics = super::surface::instance_args(c);
            let full = c.instance.full_name(plain);
            let args = func.generics.iter().map(|g| {
                let name = g.name.to_string();
                let value = self.value(&name, c);
                quote!((#name, #value))
            });
            instances.push(quote! {
                #krate::Instance::new(#full, &[#(#args),*], <#name as #trait_name #generics>::kernel)
            });
            references.push(quote!(#nth => <#name as #trait_name #generics>::reference::<__TITAN_RUN>(args)));
        }
        quote! {
            #(#cfg)*
            const _: () = {
                #[diagnostic::do_not_recommend]
                impl #krate::__private::Declares for #name {
                    const NAME: &'static ::core::primitive::str = #plain;
                    const INSTANCES: &'static [#krate::Instance] = &[#(#instances),*];
                    const BY_KEY: &'static [(::core::primitive::u64, ::core::primitive::usize)] =
                        &#krate::__private::by_key::<#n>(Self::INSTANCES);
                    #[allow(unused_variables)]
                    fn reference<const __TITAN_RUN: bool>(
                        nth: ::core::primitive::usize, args: ::std::vec::Vec<#krate::__private::LaunchArg<'_>>,
                    ) -> #krate::Result<()> {
                        match nth {
                            #(#references,)*
                            _ => ::core::unreachable!("a kernel has no more instances than it declares"),
                        }
                    }
                }
            };
        }
    }

    /// The value of a generic parameter in an instance.
    fn value(&self, name: &str, c: &Compiled) -> TokenStream {
        use crate::consts::ConstValue;
        let krate = self.krate;
        let generics = &c.instance.generics;
        match (generics.elems.get(name), generics.consts.get(name)) {
            (Some(elem), _) => {
                let variant = format_ident!("{elem:?}");
                quote!(#krate::GenericArg::Elem(#krate::ElemType::#variant))
            }
            (None, Some(ConstValue::Bool(value))) => quote!(#krate::GenericArg::Bool(#value)),
            (None, Some(ConstValue::Int(value))) => {
                // Its type has been checked.
                let value = i32::try_from(*value).unwrap_or(i32::MAX);
                quote!(#krate::GenericArg::Int(#value))
            }
            (None, Some(ConstValue::Float(_)) | None) => quote!(#krate::GenericArg::Int(0)),
        }
    }
}
