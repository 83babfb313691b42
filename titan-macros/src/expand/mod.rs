//! The expansion of a kernel. Nothing here fails.
//!
//! ```text
//! pub fn gemm(..) -> Launch         the launch, with the user's docs and visibility
//! pub enum gemm {}                  carries `gemm::reference::<..>(..)`: functions and types do not share names
//! pub trait gemm_instance<..>       implemented for the declared instances; a missing one is an error with TITAN's message
//! const _: () = {
//!     fn gemm<..>(..) { body }      the shadow, one per tuple of element types
//!     impl gemm_instance<f16, 128> for gemm { static with the artifact; the reference }
//! };
//! impl Declares for gemm { .. }     the list of the instances, by which generic code and `dispatch!` find one
//! ```

mod fallback;
mod host;
mod imports;
mod reference;
mod surface;
mod tripwire;

pub(crate) use fallback::{fallback, misplaced, without_body};
pub(crate) use imports::{of as imports, prelude};

use crate::ast::{Expr, ExprId, ExprKind, Function, GenericKind, GenericParam, KernelItem, Res, TypeKind};
use crate::clock::{self, Part};
use crate::compile::Compiled;
use crate::ctxt::{Diag, Reports, compile_error};
use crate::items::Items;
use crate::judge;
use crate::shadow::Shadow;
use crate::targets::{self, Chosen};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote};
use titan_core::collections::SortedMap;
use titan_core::diag::Code;
use titan_core::ir::Elem;

/// The inputs of all parts of an expansion.
pub(crate) struct Expansion<'a> {
    pub(crate) krate: &'a TokenStream,
    pub(crate) item: &'a KernelItem,
    pub(crate) items: &'a Items,
    /// The companions that the kernel uses: paths and their places.
    pub(crate) asks: &'a [(String, Span)],
    /// The errors. They include those that rustc reports, because the build must fail even if rustc does not report them.
    pub(crate) reports: &'a Reports,
}

impl Expansion<'_> {
    /// The shadows and the instances.
    pub(crate) fn bodies(&self, compiled: &[Compiled]) -> TokenStream {
        let mut out = imports::of(self.krate, &self.item.func);
        out.extend(judge::of(self.krate, &self.item.func, &self.host_exprs()));
        // Instances with the same element types share a shadow.
        let mut groups: Vec<(Vec<String>, Vec<&Compiled>)> = Vec::new();
        for c in compiled {
            let elems: Vec<String> = c.instance.generics.elems.values().map(ToString::to_string).collect();
            match groups.iter_mut().find(|(k, _)| *k == elems) {
                Some((_, list)) => list.push(c),
                None => groups.push((elems, vec![c])),
            }
        }
        out.extend(self.declares(compiled));
        if groups.is_empty() {
            return out;
        }
        let body = Body::new(self, compiled);
        for (nth, (_, group)) in groups.iter().enumerate() {
            out.extend(self.group(group, &body, nth == 0));
        }
        out
    }

    /// The expressions of shapes, grid and requirements.
    fn host_exprs(&self) -> Vec<&Expr> {
        let KernelItem { func, config, .. } = self.item;
        let shapes = func.params.iter().flat_map(|p| &p.shape).flat_map(|(_, dims)| dims.iter().flatten());
        shapes.chain(config.grid.iter().flat_map(|(_, list)| list)).chain(&config.requires).collect()
    }

    /// The `#[cfg(..)]` attributes of the kernel, which apply to all generated items.
    fn cfgs(&self) -> Vec<&TokenStream> {
        let is_cfg = |a: &&TokenStream| a.to_string().replace(' ', "").starts_with("#[cfg(");
        self.item.attrs.iter().filter(is_cfg).collect()
    }

    /// Whether a kernel with errors has generic parameters and instances without errors in them, and a signature that rustc accepts.
    pub(crate) fn has_instances(&self, compiled: &[Compiled]) -> bool {
        let of_signature = |d: &Diag| matches!(d.code, Code::Parameter | Code::Generics | Code::Attribute);
        !self.item.func.generics.is_empty() && !compiled.is_empty() && !self.reports.ours.iter().any(of_signature)
    }

    /// The errors of a kernel whose surface is emitted, and the instances that it would have: all of those that may be named, if they are
    /// not known, so that nothing else is reported.
    pub(crate) fn broken(&self, errors: &[Diag], compiled: &[Compiled]) -> TokenStream {
        let errors: TokenStream = errors.iter().map(compile_error).collect();
        let (krate, func) = (self.krate, &self.item.func);
        let (name, trait_name) = (&func.name, surface::trait_name(&func.name));
        let declared: Vec<&TokenStream> = func.generics.iter().map(|g| &g.tokens).collect();
        let names: Vec<_> = func.generics.iter().map(GenericParam::argument).collect();
        let cfg = self.cfgs();
        let implemented = |types: &[TokenStream], head: TokenStream| {
            quote! {
                #(#cfg)*
                const _: () = {
                    #(#types)*
                    #[allow(unused, clippy::all)]
                    #head {
                        fn kernel() -> &'static #krate::__private::KernelRef { ::core::unreachable!() }
                        fn reference<const __TITAN_RUN: bool>(_: ::std::vec::Vec<#krate::__private::LaunchArg<'_>>) -> #krate::Result<()> {
                            ::core::unreachable!()
                        }
                    }
                };
            }
        };
        let of_instance = |c: &Compiled| {
            let (types, args) = (aliases(func, c), surface::instance_args(c));
            implemented(&types, quote!(impl #trait_name #args for #name))
        };
        let mut instances: Vec<TokenStream> = compiled.iter().map(of_instance).collect();
        if instances.is_empty() {
            instances.push(implemented(&[], quote!(impl<#(#declared),*> #trait_name<#(#names),*> for #name)));
        }
        let declares = self.declares(&[]);
        quote!(#errors #(#instances)* #declares)
    }

    /// The shadow of one tuple of element types, with its instances.
    fn group(&self, group: &[&Compiled], body: &Body<'_>, first: bool) -> TokenStream {
        let Some(any) = group.first() else { return TokenStream::new() };
        let Body { shadow, generics, params, block, .. } = body;
        let (name, krate, aliases) = (&self.item.func.name, self.krate, aliases(&self.item.func, any));
        // Lints are enabled only in the first shadow, so that they report once.
        let lints = self.item.attrs.iter().filter(|a| surface::lint_level(a).is_some());
        let quiet = if first { quote!(#(#lints)*) } else { quote!(#[allow(warnings)]) };
        let reference = self.shared_reference(body);
        let instances = group.iter().map(|c| self.instance(c, body));
        let broken = group.iter().any(|c| c.kernel.is_none());
        let tripwire = broken.then(|| self.tripwire(any, shadow));
        let roles = self.roles();
        let cfg = self.cfgs();
        quote! {
            #(#cfg)*
            const _: () = {
                // Operations of scalars are methods of these traits.
                #[allow(unused_imports)]
                use #krate::lang::{Cast as _, Float as _, Int as _, Num as _};
                #(#aliases)*
                #roles
                #quiet
                #[allow(non_snake_case, non_upper_case_globals, unstable_name_collisions, overflowing_literals)]
                #[allow(unused_parens, unused_braces, unused_qualifications, dead_code, clippy::all, clippy::pedantic, clippy::nursery)]
                fn #name<#generics>(#params) #block
                #reference
                #(#instances)*
                #tripwire
            };
        }
    }

    /// The enum `Role`, which is visible only in the shadow.
    fn roles(&self) -> TokenStream {
        let Some((_, roles)) = &self.item.config.roles else { return TokenStream::new() };
        let krate = self.krate;
        let names: Vec<_> = roles.iter().map(|r| format_ident!("{}", r.arm(), span = r.name.span())).collect();
        quote! {
            #[allow(dead_code)]
            #[derive(Clone, Copy)]
            enum Role { #(#names),* }
            impl #krate::lang::Roles for Role {
                const ALL: &'static [Self] = &[#(Role::#names),*];
            }
        }
    }

    /// Shape names as values, and uses of parameters that only the grid or a requirement uses.
    fn binds(&self) -> TokenStream {
        let mut out = TokenStream::new();
        let mut bound: Vec<String> = Vec::new();
        for p in &self.item.func.params {
            let tensor = &p.name;
            let optional = matches!(p.ty.kind, TypeKind::Tensor { optional: true, .. });
            for (axis, dim) in p.shape.iter().flat_map(|(_, dims)| dims).enumerate() {
                if let Some(e) = dim
                    && let ExprKind::Path(path, Res::Symbol(name)) = &e.kind
                    && let Some(ident) = crate::shadow::symbol(path)
                    && !optional
                    && !bound.contains(name)
                {
                    bound.push(name.clone());
                    out.extend(quote!(#[allow(unused_variables)] let #ident: i32 = #tensor.dim(#axis);));
                }
            }
            if self.in_host_expr(&tensor.to_string()) {
                out.extend(quote!(let _ = &#tensor;));
            }
        }
        out
    }

    /// Whether the grid or a requirement uses a parameter, so that the body need not use it.
    fn in_host_expr(&self, name: &str) -> bool {
        let config = &self.item.config;
        let grid = config.grid.iter().flat_map(|(_, list)| list);
        grid.chain(&config.requires).any(|e| crate::shadow::names(e, name))
    }

    fn instance(&self, c: &Compiled, body: &Body<'_>) -> TokenStream {
        let (krate, name) = (self.krate, &self.item.func.name);
        let trait_name = surface::trait_name(name);
        let generics = surface::instance_args(c);
        let full = c.kernel.as_ref().map_or_else(|| name.to_string(), |k| k.sig.full_name());
        let at = name.span().start();
        let [line, column] = [at.line, at.column + 1].map(|n| u32::try_from(n).unwrap_or(0));
        let artifact = match &c.kernel {
            Some(kernel) => {
                let text = clock::time(Part::Print, || titan_core::text::print(kernel));
                let chosen = Chosen::of(self.item.config.targets.as_deref());
                let config = &self.item.config;
                let instance = (full.as_str(), body.instances);
                let request = targets::request(&chosen, config.bulk, &config.warnings, instance, (name, &c.places));
                quote!(#krate::__private::compile!(#text #request))
            }
            None => quote!(&[]),
        };
        let (reference, inlined) = (self.reference(c, body), self.inlined_tripwire());
        quote! {
            #[diagnostic::do_not_recommend]
            impl #trait_name #generics for #name {
                fn kernel() -> &'static #krate::__private::KernelRef {
                    #inlined
                    static KERNEL: #krate::__private::KernelRef =
                        #krate::__private::KernelRef::new(#full, #artifact, ::core::file!(), [#line, #column]);
                    #krate::__private::inventory::submit! { #krate::__private::Listed(&KERNEL) }
                    &KERNEL
                }
                #reference
            }
        }
    }
}

/// The common part of all shadows of a kernel; they differ only in the types that its element type parameters stand for.
struct Body<'a> {
    shadow: Shadow<'a>,
    /// `const BM: i32, const BK_div_2: i32`
    generics: TokenStream,
    /// The parameters as the kernel sees them.
    params: TokenStream,
    /// The tokens that follow the parameters.
    block: TokenStream,
    /// The number of instances that are compiled.
    instances: usize,
}

impl<'a> Body<'a> {
    fn new(expansion: &Expansion<'a>, compiled: &[Compiled]) -> Self {
        let func = &expansion.item.func;
        let mut shadow = Shadow::new(expansion.krate, func);
        shadow.elems = agreed(compiled);
        let body = clock::time(Part::Shadow, || shadow.body());
        let params = shadow.params();
        let (consts, fresh) = (shadow.const_params(), shadow.fresh_params());
        let binds = expansion.binds();
        let block = if expansion.reports.rustcs.is_empty() {
            quote!({ #binds #body })
        } else {
            // See `tripwire`: an opaque result is as broken as the body.
            quote!(-> impl ::core::marker::Sized { #binds let () = #body; })
        };
        Body {
            generics: quote!(#(#consts,)* #(#fresh),*),
            params: quote!(#(#params),*),
            block,
            instances: compiled.iter().filter(|c| c.kernel.is_some()).count(),
            shadow,
        }
    }
}

/// The inferred element types on which all instances agree. After an error, rustc reads the code as written.
fn agreed(compiled: &[Compiled]) -> SortedMap<ExprId, Elem> {
    let [first, rest @ ..] = compiled else { return SortedMap::new() };
    let mut elems = first.elems.clone();
    elems.retain(|id, elem| rest.iter().all(|c| c.elems.get(id) == Some(elem)));
    if compiled.iter().any(|c| c.kernel.is_none()) { SortedMap::new() } else { elems }
}

/// `type T = f16;`
fn aliases(func: &Function, c: &Compiled) -> Vec<TokenStream> {
    let elems = func.generics.iter().zip(&c.instance.tokens).filter(|(g, _)| g.kind == GenericKind::Elem);
    elems
        .map(|(g, value)| {
            let name = &g.name;
            quote!(#[allow(dead_code)] type #name = #value;)
        })
        .collect()
}
