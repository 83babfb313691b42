//! The plan of a kernel for a target: the number of warps, the layout of each tile, the method of each MMA.
//!
//! Tiles that are connected by elementwise operations or carried by loops share one layout: they are a *class* (`classes`). MMAs determine
//! the layouts of their accumulators. Then, from the largest tiles to the smallest, a class takes the layout that agrees with adjacent
//! classes across reductions, broadcasts and transposes, or otherwise one with wide memory accesses (`layouts`). Tiles that are functions
//! of scalars and coordinates only are *flexible*: they have no layout, and are materialized in any requested one. Where an operation needs
//! another layout than its operand has, the lowering converts it.
//!
//! Deliberately absent: stages and roles, which the schedule determines; instructions.

mod classes;
mod error;
mod layouts;
mod mma;
mod no_group;
mod warps;

pub use classes::is_elementwise;
pub use error::LowerError;
pub(crate) use layouts::split_warps;
pub(crate) use layouts::wide_through_registers;
pub use layouts::{wide, wide_to_turn};
pub use mma::{Method, MmaPlan, Source, operands};
pub(crate) use no_group::NoGroup;
pub(crate) use warps::words;

use crate::analysis::cover;
use crate::collections::SortedMap;
pub use crate::ir::FreeBy;
use crate::ir::{Access, Def, HostExpr, Kernel, OpId, OpKind, ParamKind, Pipe, TtgOp, Ty, Value};
use crate::layout::{Encoding, Layout};
use crate::target::Target;
use crate::verify::Verified;
use classes::Classes;

/// The plan of a kernel for a target.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The target machine.
    pub target: Target,
    /// The number of warps of a program; with roles, the sum over all roles.
    pub warps: u32,
    /// The number of warps of each role.
    pub roles: Vec<u32>,
    /// How the slots of rings between roles are released.
    pub free: FreeBy,
    /// The layout of each tile that has one, by value.
    pub layouts: Vec<Option<Layout>>,
    /// The method of each `mma`.
    pub mmas: SortedMap<OpId, MmaPlan>,
    /// The encodings, by value, of loaded tiles that only MMAs read, so that they are loaded directly to shared memory.
    pub smem_resident: Vec<Option<Encoding>>,
    /// The encodings of the tiles of stages, by ring and field.
    pub stages: Vec<Vec<Encoding>>,
    /// Whether arguments are assumed to be aligned, so that vector accesses are possible.
    pub aligned: bool,
    /// For each parameter, whether it is a tensor of which tiles are loaded or stored: the assumptions concern those.
    pub vectored: Vec<bool>,
    /// Whether a role waits until the bulk stores of a tile are complete, before it computes the next tile.
    pub stores_waited: bool,
    /// The rings whose copies are divided: threads hold the tiles of a later stage in registers, until they store them to its slot.
    pub fetched: Vec<Pipe>,
    /// The choices and their reasons, for the user.
    pub notes: Vec<String>,
}

impl Plan {
    /// The layout of a tile; `None` for flexible tiles, tiles in shared memory, and other values.
    #[must_use]
    pub fn layout(&self, value: Value) -> Option<&Layout> {
        self.layouts.get(value.index()).and_then(Option::as_ref)
    }

    /// Whether offsets of elements in tensors are assumed to fit in 32 bits, to save instructions. Code with bulk copies has few addresses to
    /// compute, and also serves tensors of 2³¹ elements and more.
    #[must_use]
    pub fn index32(&self) -> bool {
        self.aligned && self.target.box_copies().is_none()
    }

    /// For each parameter, whether its rows are assumed to be aligned.
    #[must_use]
    pub fn aligned_rows(&self) -> Vec<bool> {
        self.vectored.iter().map(|rows| *rows && self.aligned).collect()
    }

    /// Whether any of its MMAs uses instructions of warpgroups.
    #[must_use]
    pub fn uses_warpgroups(&self) -> bool {
        self.mmas.values().any(MmaPlan::is_of_groups)
    }

    /// Assumes nothing about the rows of outputs, nor about inputs of one axis, such as the bias of each column.
    pub(crate) fn leave_outputs(&mut self, kernel: &Kernel) {
        for (wide, param) in self.vectored.iter_mut().zip(&kernel.sig.params) {
            *wide &= is_operand(&param.kind);
        }
    }

    /// Whether code that assumes nothing about outputs serves launches that code for aligned arguments does not: the rows of some output may
    /// be of any length although those of the operands of MMAs are multiples of 16 bytes.
    pub(crate) fn gains_from_any_outputs(&self, kernel: &Kernel) -> bool {
        let wide = |operand: bool| {
            let all = kernel.sig.params.iter().zip(&self.vectored).enumerate();
            all.filter_map(move |(index, (param, wide))| match &param.kind {
                ParamKind::Tensor { elem, access, optional, shape } if *wide => {
                    let wanted = if operand { is_operand(&param.kind) } else { *access == Access::Mut };
                    let last = shape.len().checked_sub(1).filter(|_| wanted)?;
                    Some((cover::extent(&kernel.sig, index, last)?, elem.bits(), *optional))
                }
                ParamKind::Tensor { .. } | ParamKind::Scalar(_) => None,
            })
        };
        // Rows of such an operand are multiples of 16 bytes only if those of the output are.
        let follows = |(extent, bits, _): &(HostExpr, u32, bool)| {
            wide(true).any(|(other, narrow, optional)| other == *extent && narrow <= *bits && !optional)
        };
        !self.mmas.is_empty() && wide(true).next().is_some() && wide(false).any(|output| !follows(&output))
    }

    /// Whether a loaded tile is kept in shared memory only, where MMAs read it.
    pub(crate) fn is_resident(&self, value: Value) -> bool {
        self.smem_resident.get(value.index()).is_some_and(Option::is_some)
    }

    /// The number of threads of a program.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.warps * self.target.lanes
    }
}

/// Plans a kernel. With `aligned`, addresses, strides and extents are assumed to be multiples of 16 bytes; such code may only be launched
/// if they are.
#[must_use]
pub fn plan(kernel: &Verified, target: &Target, aligned: bool) -> Plan {
    with_warps(kernel, target, aligned, None)
}

/// Plans a kernel with a given number of warps, a power of two; roles state their numbers of warps themselves.
#[must_use]
pub fn with_warps(kernel: &Verified, target: &Target, aligned: bool, warps: Option<u32>) -> Plan {
    let mut notes = Vec::new();
    let classes = Classes::of(kernel);
    let (warps, mmas, layouts) = if kernel.roles.is_empty() {
        let warps = warps.unwrap_or_else(|| warps::choose(kernel, target, &mut notes));
        let mmas = mma::choose(kernel, target, warps, &classes);
        notes.extend(mma::notes(mmas.values()));
        let layouts = layouts::choose(kernel, target, warps, &classes, &mmas);
        (warps, mmas, layouts)
    } else {
        by_role(kernel, target, &classes, &mut notes)
    };
    let mut plan = Plan {
        target: target.clone(),
        warps,
        roles: kernel.roles.iter().map(|r| role_warps(target, r.warps)).collect(),
        free: FreeBy::Mbarrier,
        smem_resident: vec![None; kernel.values.len()],
        stages: Vec::new(),
        layouts,
        mmas,
        aligned,
        vectored: vectored(kernel),
        stores_waited: false,
        fetched: Vec::new(),
        notes,
    };
    mma::settle(kernel, &mut plan);
    note_waste(kernel, &mut plan);
    plan
}

/// Plans the MMAs and layouts of a kernel with roles: the tiles of a role are laid out over its warps.
fn by_role(
    kernel: &Kernel,
    target: &Target,
    classes: &Classes,
    notes: &mut Vec<String>,
) -> (u32, SortedMap<OpId, MmaPlan>, Vec<Option<Layout>>) {
    let mut mmas = SortedMap::new();
    let mut layouts = vec![None; kernel.values.len()];
    let mut specialized = None;
    kernel.walk(&mut |id, op| {
        if op.kind == OpKind::Ttg(TtgOp::Roles) {
            specialized = Some(id);
        }
    });
    let regions = specialized.map(|id| kernel.op(id).regions.clone()).unwrap_or_default();
    for (role, region) in kernel.roles.iter().zip(regions) {
        // The lowering reports an error for numbers that are not powers of two.
        let warps = 1 << role_warps(target, role.warps).max(1).ilog2();
        let mut own = (crate::collections::SortedSet::new(), crate::collections::SortedSet::new());
        kernel.walk_block(region, &mut |id, op| {
            own.0.insert(id);
            own.1.extend(op.results.iter().copied());
            own.1.extend(op.regions.iter().flat_map(|r| kernel.block(*r).args.iter().copied()));
        });
        let of_role = mma::choose(kernel, target, warps, classes);
        let laid_out = layouts::choose(kernel, target, warps, classes, &of_role);
        let count = role_warps(target, role.warps);
        notes.push(format!("role {}: {count} warp{}", role.name, if count == 1 { "" } else { "s" }));
        notes.extend(mma::notes(of_role.iter().filter(|(id, _)| own.0.contains(id)).map(|(_, mma)| mma)));
        mmas.extend(of_role.into_iter().filter(|(id, _)| own.0.contains(id)));
        for value in own.1 {
            layouts[value.index()] = laid_out[value.index()].clone();
        }
    }
    (kernel.roles.iter().map(|r| role_warps(target, r.warps)).sum(), mmas, layouts)
}

/// The number of warps of a role on a machine, given the number in the kernel.
const fn role_warps(target: &Target, stated: u32) -> u32 {
    stated.next_multiple_of(if target.role_warps == 0 { 1 } else { target.role_warps })
}

/// Whether code for aligned arguments would differ from code for arbitrary ones: whether tiles of tensors are loaded or stored.
#[must_use]
pub fn has_wide_accesses(kernel: &Kernel) -> bool {
    vectored(kernel).contains(&true)
}

/// For each parameter, whether it is a tensor of which tiles are loaded or stored.
fn vectored(kernel: &Kernel) -> Vec<bool> {
    let mut out = vec![false; kernel.sig.params.len()];
    kernel.walk(&mut |_, op| {
        let rows = matches!(
            op.kind,
            OpKind::Load(..)
                | OpKind::Store(_)
                | OpKind::GatherRows { .. }
                | OpKind::ScatterRows
                | OpKind::AtomicTile(_)
                | OpKind::Ttg(TtgOp::Source(..) | TtgOp::SourceRows { .. } | TtgOp::StoreIssue(_))
        );
        if rows && let Some(param) = op.args.first().and_then(|t| parameter(kernel, *t)) {
            out[param] = true;
        }
    });
    out
}

/// Whether a parameter may be an operand of MMAs: an input of several axes.
fn is_operand(kind: &ParamKind) -> bool {
    matches!(kind, ParamKind::Tensor { access: Access::In, shape, .. } if shape.len() > 1)
}

/// The parameter that a tensor is a view of.
fn parameter(kernel: &Kernel, tensor: Value) -> Option<usize> {
    match kernel.value(tensor).def {
        Def::Param(index) => Some(index),
        Def::Result(op, _) => parameter(kernel, *kernel.op(op).args.first()?),
        Def::BlockArg(..) => None,
    }
}

/// Adds notes about tiles with padding, which costs time.
fn note_waste(kernel: &Kernel, plan: &mut Plan) {
    for (i, layout) in plan.layouts.iter().enumerate() {
        let value = Value::new(i);
        let (Some(layout), Some(name), Ty::Tile(_, shape)) = (layout, &kernel.value(value).name, kernel.ty(value))
        else {
            continue;
        };
        if layout.waste() > 0 {
            let note = format!("`{name}` of {shape} elements is padded by {} %", layout.waste());
            if !plan.notes.contains(&note) {
                plan.notes.push(note);
            }
        }
    }
}
