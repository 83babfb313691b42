//! `kernel::reference`: the shadow run on host copies.
//!
//! It is generic in an unused constant, so that its code is generated only if it is called.

use super::{Body, Expansion, surface};
use crate::ast::{GenericKind, ParamTyKind};
use crate::compile::Compiled;
use crate::consts::{self, ConstValue};
use crate::items::FnEnv;
use crate::shadow::Shadow;
use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};
use titan_core::ir::{Block, Kernel, OpKind, Pipe, TtgOp};

impl Expansion<'_> {
    /// The reference of all instances of a tuple of element types.
    pub(super) fn shared_reference(&self, body: &Body<'_>) -> TokenStream {
        let (krate, func) = (self.krate, &self.item.func);
        let (mut hosts, mut pass, mut back) = (Vec::new(), Vec::new(), Vec::new());
        for (nth, p) in func.params.iter().enumerate() {
            let host = format_ident!("__titan_host_{}", p.name);
            let ty = surface::argument_type(krate, &p.ty);
            match ParamTyKind::of(p) {
                ParamTyKind::Scalar => {
                    hosts.push(quote!(let #host = __titan_reference.scalar::<#ty>(#nth)?;));
                    pass.push(quote!(#host));
                }
                ParamTyKind::In => {
                    hosts.push(quote!(let #host = __titan_reference.tensor::<#ty>(#nth)?;));
                    pass.push(quote!(#host.tensor()));
                }
                ParamTyKind::Optional => {
                    hosts.push(quote!(let #host = __titan_reference.optional::<#ty>(#nth)?;));
                    pass.push(quote!(#host.as_ref().map(|t| t.tensor())));
                }
                ParamTyKind::OptionalMut => {
                    hosts.push(quote!(let mut #host = __titan_reference.optional::<#ty>(#nth)?;));
                    pass.push(quote!(#host.as_mut().map(|t| t.tensor_mut())));
                    back.push(quote! {
                        if let ::core::option::Option::Some(host) = #host {
                            __titan_reference.copy_back(#nth, host)?;
                        }
                    });
                }
                ParamTyKind::Mut => {
                    hosts.push(quote!(let mut #host = __titan_reference.tensor::<#ty>(#nth)?;));
                    pass.push(quote!(#host.tensor_mut()));
                    back.push(quote!(__titan_reference.copy_back(#nth, #host)?;));
                }
            }
        }
        let Body { shadow, generics, .. } = body;
        let (name, args) = (&func.name, shadow.arguments());
        quote! {
            #[allow(non_snake_case, non_upper_case_globals)]
            fn __titan_reference<const __TITAN_RUN: bool, #generics>(
                __titan_kernel: &'static #krate::__private::KernelRef,
                __titan_roles: &[usize],
                __titan_args: ::std::vec::Vec<#krate::__private::LaunchArg<'_>>,
            ) -> #krate::Result<()> {
                let __titan_reference = #krate::__private::Reference::new(__titan_kernel, __titan_args)?;
                #(#hosts)*
                let __titan_done = __titan_reference.run(__titan_roles, || { #name #args (#(#pass),*); });
                #(#back)*
                __titan_done
            }
        }
    }

    /// The reference of an instance.
    pub(super) fn reference(&self, c: &Compiled, body: &Body<'_>) -> TokenStream {
        let (krate, Body { shadow, .. }) = (self.krate, body);
        let consts = self.shadow_args(c, shadow);
        let roles = c.kernel.as_ref().map_or_else(|| vec![0], |k| role_order(k));
        let (trait_name, generics) = (surface::trait_name(&self.item.func.name), surface::instance_args(c));
        quote! {
            fn reference<const __TITAN_RUN: bool>(
                args: ::std::vec::Vec<#krate::__private::LaunchArg<'_>>,
            ) -> #krate::Result<()> {
                __titan_reference::<__TITAN_RUN, #(#consts),*>(<Self as #trait_name #generics>::kernel(), &[#(#roles),*], args)
            }
        }
    }

    /// The constant arguments of the shadow for an instance.
    pub(super) fn shadow_args(&self, c: &Compiled, shadow: &Shadow<'_>) -> Vec<TokenStream> {
        let func = &self.item.func;
        let is_const = |k| matches!(k, GenericKind::ConstInt(_) | GenericKind::ConstBool);
        let consts =
            func.generics.iter().zip(&c.instance.tokens).filter(|(g, _)| is_const(g.kind)).map(|(_, t)| quote!({ #t }));
        let env = FnEnv { func, generics: &c.instance.generics, items: self.items };
        let fresh = shadow.fresh.iter().map(|f| match consts::eval(&f.expr, &env) {
            Ok(ConstValue::Int(v)) => {
                let digits = Literal::u64_unsuffixed(v.unsigned_abs());
                if v < 0 { quote!({ -#digits }) } else { quote!(#digits) }
            }
            _ => quote!(1),
        });
        consts.chain(fresh).collect()
    }
}

/// The roles of a kernel, those that fill a ring before those that read it as far as that is possible: in the reference they
/// run one after the other.
fn role_order(kernel: &Kernel) -> Vec<usize> {
    let mut regions = Vec::new();
    kernel.walk(&mut |_, op| {
        if op.kind == OpKind::Ttg(TtgOp::Roles) {
            regions.clone_from(&op.regions);
        }
    });
    if regions.is_empty() {
        return vec![0];
    }
    let sides: Vec<(Vec<Pipe>, Vec<Pipe>)> = regions.iter().map(|r| sides(kernel, *r)).collect();
    let mut left: Vec<usize> = (0..sides.len()).collect();
    let mut order = Vec::new();
    while let Some(first) = left.first().copied() {
        let waits = |reader: usize, on: usize| on != reader && sides[reader].1.iter().any(|p| sides[on].0.contains(p));
        let free = left.iter().copied().find(|r| !left.iter().any(|on| waits(*r, *on)));
        let next = free.unwrap_or(first);
        order.push(next);
        left.retain(|r| *r != next);
    }
    order
}

/// The rings that a role fills, and those that it reads.
fn sides(kernel: &Kernel, region: Block) -> (Vec<Pipe>, Vec<Pipe>) {
    let (mut fills, mut reads) = (Vec::new(), Vec::new());
    kernel.walk_block(region, &mut |_, op| match op.kind {
        OpKind::Ttg(TtgOp::Acquire(pipe)) => fills.push(pipe),
        OpKind::Ttg(TtgOp::Ready(pipe)) => reads.push(pipe),
        _ => {}
    });
    (fills, reads)
}
