//! Compiles one kernel from its AST to the verified tile IR of every declared instance, or reports errors.

use crate::ast::{Builtin, Callee, Expr, ExprId, ExprKind, GenericKind, InstanceAxis, KernelItem, Param};
use crate::chain::Kind;
use crate::clock::{self, Part};
use crate::ctxt::Ctxt;
use crate::infer::{ITy, Infer};
use crate::instance::{self, Instance};
use crate::items::{FnEnv, Items};
use crate::lower::{self, Places, Shared};
use crate::names::Companion;
use crate::pipeline;
use crate::resolve;
use crate::signature;
use proc_macro2::{Ident, Span};
use titan_core::analysis::access::{self, kind_of};
use titan_core::analysis::cover;
use titan_core::analysis::grid::infer_grid;
use titan_core::analysis::number::root;
use titan_core::collections::{SortedMap, SortedSet};
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{Access, Builder, Elem, ForKind, GridSpec, HostExpr, Kernel, Loc, OpKind, ParamKind, RoleDecl};
use titan_core::verify::{Verified, verify};

/// An instance with its IR.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) instance: Instance,
    /// `None` after an error.
    pub(crate) kernel: Option<Verified>,
    /// The inferred element types of expressions for which the kernel writes none.
    pub(crate) elems: SortedMap<ExprId, Elem>,
    /// The places of its operations in the user's file.
    pub(crate) places: Vec<Span>,
}

/// Resolves all names of a kernel, in its body, its grid and its shapes. Returns the companions that it needs.
pub(crate) fn resolve(cx: &Ctxt, item: &mut KernelItem) -> Vec<Companion> {
    let symbols = signature::symbols(item);
    let mut companions = resolve::resolve(cx, Kind::Kernel, &mut item.func, &symbols);
    let mut shapes: Vec<_> = item.func.params.iter_mut().map(|p| p.shape.take()).collect();
    let mut exprs: Vec<&mut Expr> =
        shapes.iter_mut().flatten().flat_map(|(_, dims)| dims.iter_mut().flatten()).collect();
    exprs.extend(item.config.grid.iter_mut().flat_map(|(_, list)| list));
    exprs.extend(item.config.requires.iter_mut());
    companions.extend(resolve::resolve_host(cx, &mut item.func, &symbols, &mut exprs));
    for (p, shape) in item.func.params.iter_mut().zip(shapes) {
        p.shape = shape;
    }
    let is_const = |name: &Ident| {
        let g = item.func.generics.iter().find(|g| g.name == *name);
        g.is_none_or(|g| matches!(g.kind, GenericKind::ConstInt(_) | GenericKind::ConstBool))
    };
    let wanted = |a: &mut InstanceAxis| a.names.iter().map(is_const).collect::<Vec<bool>>();
    let wanted: Vec<Vec<bool>> = item.config.instances.iter_mut().map(wanted).collect();
    let rows = item
        .config
        .instances
        .iter_mut()
        .zip(&wanted)
        .flat_map(|(a, w)| a.values.iter_mut().map(move |row| row.iter_mut().zip(w)));
    let mut values: Vec<_> = rows.flatten().filter(|(_, w)| **w).map(|(v, _)| &mut v.value).collect();
    companions.extend(resolve::resolve_values(cx, &mut item.func, &mut values));
    let mut seen: Vec<String> = Vec::new();
    companions.retain(|c| {
        let new = !seen.contains(&c.key);
        seen.push(c.key.clone());
        new
    });
    companions
}

/// Compiles every instance.
pub(crate) fn compile(cx: &Ctxt, item: &KernelItem, items: &Items) -> Vec<Compiled> {
    pipeline::check(cx, item);
    let instances = instance::expand(cx, item, items);
    let total = instances.len();
    let mut lowered: Vec<Lowered> = Vec::new();
    for instance in instances {
        cx.compiles(instance.full_name(&item.func.name.to_string()), total);
        let mut elems = SortedMap::new();
        let mut places = Places::new(item.func.name.span());
        let kernel = one(cx, item, items, &instance, (&mut elems, &mut places));
        lowered.push(Lowered { instance, kernel, elems, places });
    }
    only_stored_by_some(&mut lowered);
    lowered
        .into_iter()
        .map(|Lowered { instance, kernel, elems, places }| {
            cx.compiles(instance.full_name(&item.func.name.to_string()), total);
            let finished = |(kernel, grid)| clock::time(Part::Verify, || finish(cx, item, kernel, grid, &places));
            let kernel = kernel.and_then(finished);
            let places = kernel.as_ref().map(|k| used(k, &places)).unwrap_or_default();
            Compiled { instance, kernel, elems, places }
        })
        .collect()
}

/// An instance before it is verified.
struct Lowered {
    instance: Instance,
    /// The IR and the declared grid; `None` after an error.
    kernel: Option<(Kernel, Option<GridSpec>)>,
    elems: SortedMap<ExprId, Elem>,
    places: Places,
}

/// An output that some instances store and others do not, by a condition on constants, is an input of the others: they leave what it holds.
fn only_stored_by_some(instances: &mut [Lowered]) {
    let params = instances.iter().filter_map(|l| l.kernel.as_ref()).map(|(k, _)| k.sig.params.len()).max().unwrap_or(0);
    for param in 0..params {
        let stored: Vec<bool> =
            instances.iter().map(|l| l.kernel.as_ref().is_some_and(|(k, _)| stores(k, param))).collect();
        if !stored.contains(&true) {
            continue;
        }
        for (lowered, _) in instances.iter_mut().zip(&stored).filter(|(_, stored)| !**stored) {
            let kind = lowered.kernel.as_mut().and_then(|(k, _)| k.sig.params.get_mut(param)).map(|p| &mut p.kind);
            if let Some(ParamKind::Tensor { access, .. }) = kind {
                *access = Access::In;
            }
        }
    }
}

/// Whether a kernel stores to a parameter in any way.
fn stores(kernel: &Kernel, param: usize) -> bool {
    let mut found = false;
    kernel.walk(&mut |_, op| {
        let writes = kind_of(&op.kind).is_some_and(|kind| kind != access::Kind::Read);
        found |= writes && op.args.first().is_some_and(|tensor| root(kernel, *tensor) == Some(param));
    });
    found
}

/// The places of a kernel's operations, each once.
fn used(kernel: &Verified, places: &Places) -> Vec<Span> {
    let mut locs: SortedSet<Loc> = kernel.pipes.iter().map(|p| p.loc).collect();
    kernel.walk(&mut |_, op| {
        locs.insert(op.loc);
    });
    locs.into_iter().filter_map(|loc| places.known(loc)).collect()
}

fn one(
    cx: &Ctxt,
    item: &KernelItem,
    items: &Items,
    instance: &Instance,
    (elems_found, places): (&mut SortedMap<ExprId, Elem>, &mut Places),
) -> Option<(Kernel, Option<GridSpec>)> {
    let env = FnEnv { func: &item.func, generics: &instance.generics, items };
    let before = cx.reports();
    let mut infer = Infer::new(cx, env);
    // A type without meaning is reported with the parameter.
    let mut ty = |p: &Param| if signature::is_unknown(&p.ty, env) { ITy::Unknown } else { infer.ty_ref(&p.ty) };
    let tys: Vec<ITy> = item.func.params.iter().map(&mut ty).collect();
    let elems: Vec<_> = tys
        .iter()
        .map(|t| match t {
            ITy::Scalar(e) => infer.elem_of(*e),
            _ => None,
        })
        .collect();
    let mut b = Builder::new(&item.func.name.to_string(), instance.args.clone());
    if !signature::declare(cx, item, env, &mut b, &tys, &elems) {
        return None;
    }
    let grid = signature::grid(cx, item, env, &mut b);
    signature::requires(cx, item, env, &mut b);
    clock::time(Part::Infer, || infer.run(tys));
    if cx.reports() != before {
        return None;
    }
    item.func.body.exprs(&mut |e| found(e, &infer, elems_found));
    let mut sh = Shared::new(cx, b, places);
    let roles = item.config.roles.iter().flat_map(|(_, list)| list);
    sh.roles = roles
        .map(|r| (r.arm(), RoleDecl { name: r.name.to_string(), warps: r.warps, instances: r.instances }))
        .collect();
    for (name, param, axis) in signature::symbol_dims(&sh.b) {
        let tensor = sh.b.kernel().param(param);
        let dim = sh.b.op1(OpKind::Dim(axis), &[tensor]).ok()?;
        sh.b.name(dim, &name);
        sh.symbols.insert(name, dim);
    }
    clock::time(Part::Lower, || lower::kernel(&mut sh, env, infer)).ok()?;
    if cx.reports() != before {
        drop(sh);
        return None;
    }
    sh.b.set_tails(item.config.tails);
    sh.b.set_scheduler(item.config.scheduler);
    if let Some(grid) = &grid {
        sh.b.set_grid(grid.clone());
    }
    sh.b.set_partial(item.config.partial);
    let Shared { b, .. } = sh;
    Some((b.finish(), grid))
}

/// Records the inferred element types of tiles and casts for which none is written.
fn found(e: &Expr, infer: &Infer<'_>, elems: &mut SortedMap<ExprId, Elem>) {
    let open = match &e.kind {
        ExprKind::Method { name, generics, .. } => generics.is_empty() && (name == "cast" || name == "bitcast"),
        ExprKind::Call {
            callee: Callee::Builtin(Builtin::TileZeros | Builtin::TileOnes | Builtin::TileFull),
            path,
            ..
        } => path.generics.is_none(),
        _ => false,
    };
    if let (true, ITy::Tile(elem, _) | ITy::Scalar(elem)) = (open, infer.ty(e.id))
        && let Some(elem) = infer.elem_of(*elem)
    {
        elems.insert(e.id, elem);
    }
    e.children(&mut |c| found(c, infer, elems));
}

/// Infers the grid if it was not declared, and verifies.
fn finish(
    cx: &Ctxt,
    item: &KernelItem,
    mut kernel: Kernel,
    declared: Option<GridSpec>,
    places: &Places,
) -> Option<Verified> {
    if declared.is_none() {
        match grid_of(&kernel) {
            Ok(grid) => kernel.sig.grid = grid,
            Err(diag) => {
                // The grid may not be inferable because of another error in the stores.
                let causes = apart_from_the_grid(kernel);
                let causes = if causes.is_empty() { vec![diag] } else { causes };
                causes.into_iter().for_each(|d| report(cx, item, places, d));
                return None;
            }
        }
    }
    match verify(kernel) {
        Ok(verified) => {
            let short = cover::short(&verified, verified.partition());
            if let Some(s) = &short {
                let extent = item.config.grid.iter().find_map(|(_, list)| list.get(usize::from(s.need.axis)));
                let span = extent.map_or_else(|| item.func.name.span(), |e| e.span);
                cx.push_cover(s.diagnostic(&verified.sig).map_site(|_| span), &verified.sig.instance);
                return None;
            }
            // A grid with too few programs may be the reason for elements that are not written.
            let unwritten = cover::unwritten(&verified, verified.partition());
            for diag in &unwritten {
                let diag = diag.clone().map_site(|loc| places.span(loc, item.func.name.span()));
                cx.push_cover(diag, &verified.sig.instance);
            }
            unwritten.is_empty().then_some(verified)
        }
        Err(diags) => {
            diags.into_iter().for_each(|d| report(cx, item, places, d));
            None
        }
    }
}

/// The errors of a kernel that do not depend on its grid.
fn apart_from_the_grid(mut kernel: Kernel) -> Vec<Diagnostic<Loc>> {
    let mut axes = 0;
    kernel.walk(&mut |_, op| {
        if let OpKind::ProgramId(axis) | OpKind::NumPrograms(axis) = op.kind {
            axes = axes.max(usize::from(axis) + 1);
        }
    });
    kernel.sig.grid = GridSpec::Extents(vec![HostExpr::Const(2); axes.clamp(1, 3)]);
    let of_the_grid = |c: Code| matches!(c, Code::Grid | Code::GridAxis | Code::GridDisagrees | Code::Overlap);
    verify(kernel).err().unwrap_or_default().into_iter().filter(|d| !of_the_grid(d.code)).collect()
}

fn grid_of(kernel: &Kernel) -> Result<GridSpec, Diagnostic<Loc>> {
    let mut distributed = false;
    kernel.walk(&mut |_, op| distributed |= op.kind == OpKind::For(ForKind::Distributed));
    if distributed { Ok(GridSpec::Persistent) } else { infer_grid(kernel) }
}

fn report(cx: &Ctxt, item: &KernelItem, places: &Places, diag: Diagnostic<Loc>) {
    let name = item.func.name.span();
    // An error of the output rule without a place is reported at the parameter that it names.
    let param = item.func.params.iter().find(|p| diag.title.contains(&format!("`{}`", p.name)));
    let fallback = param.map_or(name, |p| p.name.span());
    let nowhere = diag.site == Loc::default();
    let mut mapped = diag.map_site(|loc| places.span(loc, name));
    if nowhere {
        mapped.site = fallback;
    }
    if mapped.code == Code::Structure && mapped.title.starts_with("blocks nest") {
        let help = "every `else if` adds a level: compute the choice arithmetically, or read it from a tensor";
        mapped = Diagnostic::new(Code::Syntax, mapped.site, mapped.title).help(help);
    }
    if matches!(mapped.code, Code::Structure | Code::Visibility | Code::TypeAnnotation) {
        mapped = Diagnostic::new(Code::Internal, mapped.site, format!("{}; please report this kernel", mapped.title));
    }
    cx.push(mapped);
}
