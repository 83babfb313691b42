//! Lays out a kernel over the threads of a target: every tile gets a layout or an encoding, and conversions become operations.
//!
//! The plan contains the layout of each tile and the method of each MMA. Here operations get their operands in the required layouts. An
//! operand in another layout is converted, in registers or through shared memory. A tile that is a function of scalars and coordinates only
//! is materialized in each requested layout. MMAs become loads of fragments and one `mma` for each step of K. Reductions across warps
//! become partial results that are exchanged through shared memory.
//!
//! | module | lays out |
//! |---|---|
//! | `tile` | tiles in requested layouts, elementwise operations |
//! | `slices` | stores of accumulators by bulk copies |
//! | `memory` | loads, stores, gathers, scatters, atomics |
//! | `shape` | reshape, transpose, interleave, split |
//! | `reduce` | reductions and scans |
//! | `mma` | MMAs |
//! | `group` | MMAs of warpgroups, which are asynchronous |
//! | `invariant` | operands of these that loops do not change |
//! | `control` | loops, branches and roles |
//! | `rings` | stages, whose tiles are in shared memory |
//!
//! Asynchronous operations are started, and what must be complete is named at later operations ([`crate::complete`]).
//!
//! Deliberately absent: the choice of layouts (`crate::plan`), groups of asynchronous operations, barriers between threads, and addresses.

mod control;
mod group;
mod invariant;
mod memory;
mod mma;
mod reduce;
mod rings;
mod shape;
mod slices;
mod tile;

pub(crate) use memory::{by_map, copies_itself, first_axis, part_by_map, parts};

use crate::analysis::uses::Tree;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{
    Builder, Const, Elem, Encoding, Kernel, LaidOut, Layout, LayoutId, LocalOp, Op, OpId, OpKind, RoleDecl, TileShape,
    Ty, Value,
};
use crate::plan::{LowerError, Plan};
use crate::verify::Verified;

/// Lays out a kernel by its plan.
///
/// # Errors
/// Returns an error if the target does not support an operation of the kernel.
pub fn lay_out(kernel: &Verified, plan: &Plan) -> Result<Kernel, LowerError> {
    let mut run = LayOut::new(kernel, plan);
    run.block(kernel.body)?;
    Ok(invariant::in_front(run.b.finish()))
}

/// The state while a kernel is laid out. Values called `old` are those of the input kernel.
struct LayOut<'a> {
    k: &'a Kernel,
    plan: &'a Plan,
    b: Builder,
    tree: Tree,
    /// The new value of each old one; for a tile, the tile in its own layout.
    made: Vec<Option<Value>>,
    /// The old tiles that were converted to other layouts, for each open block.
    memo: Vec<SortedMap<(Value, LayoutId), Value>>,
    /// The number of warps that execute the current code: those of the program, or of a role.
    warps: u32,
    /// The old accumulators that have MMAs in flight.
    in_flight: SortedMap<Value, group::InFlight>,
    /// The buffers to which copies were started that nothing was read from yet.
    copied: SortedSet<Value>,
    /// The bulk stores of a loop over tiles that may be in flight, and are waited for behind it.
    over_tiles: Option<slices::OverTiles>,
    /// The operation that is being laid out.
    at: Option<OpId>,
}

type Laid<T> = Result<T, LowerError>;

impl<'a> LayOut<'a> {
    fn new(kernel: &'a Kernel, plan: &'a Plan) -> Self {
        let mut b = Builder::like(kernel);
        let mut laid = LaidOut {
            warps: plan.warps,
            lanes: plan.target.lanes,
            aligned: plan.aligned_rows(),
            index32: plan.index32(),
            free: plan.free,
            cluster: 1,
            layouts: Vec::new(),
            encodings: Vec::new(),
            stages: Vec::new(),
        };
        laid.stages = plan.stages.iter().map(|fields| fields.iter().map(|e| laid.encoding(e)).collect()).collect();
        b.lay_out(laid);
        let warps = |(role, warps): (&RoleDecl, &u32)| RoleDecl { warps: *warps, ..role.clone() };
        b.set_roles(kernel.roles.iter().zip(&plan.roles).map(warps).collect());
        let mut made = vec![None; kernel.values.len()];
        (0..kernel.sig.params.len()).for_each(|i| made[i] = Some(Value::new(i)));
        LayOut {
            k: kernel,
            plan,
            b,
            tree: Tree::new(kernel),
            made,
            memo: vec![SortedMap::new()],
            warps: plan.warps,
            in_flight: SortedMap::new(),
            copied: SortedSet::new(),
            over_tiles: None,
            at: None,
        }
    }

    fn internal(&self, message: impl Into<String>) -> LowerError {
        LowerError::internal(self.k, message.into())
    }

    fn unsupported(&self, what: impl Into<String>) -> LowerError {
        LowerError::unsupported(self.k, self.at, self.plan.target.name, &what.into())
    }

    /// An error with a message and a help text, at the operation that is being laid out.
    fn refused(&self, message: String, help: &str) -> LowerError {
        LowerError::refused(self.k, self.at, format!("{message}, on {}", self.plan.target.name), help)
    }

    /// The new value of an old one that is not a tile in registers.
    fn same(&self, old: Value) -> Laid<Value> {
        self.made[old.index()].ok_or_else(|| self.internal(format!("{old} is not made yet")))
    }

    fn all_same(&self, old: &[Value]) -> Laid<Vec<Value>> {
        old.iter().map(|v| self.same(*v)).collect()
    }

    /// Sets the new value of an old one, with the user's name.
    fn make(&mut self, old: Value, new: Value) {
        if let Some(name) = &self.k.value(old).name {
            self.b.name(new, name);
        }
        self.made[old.index()] = Some(new);
    }

    fn op(&mut self, kind: OpKind, args: &[Value]) -> Laid<Vec<Value>> {
        self.b.op(kind, args).map_err(|e| LowerError::internal(self.k, e.to_string()))
    }

    fn one(&mut self, kind: OpKind, args: &[Value]) -> Laid<Value> {
        self.b.op1(kind, args).map_err(|e| LowerError::internal(self.k, e.to_string()))
    }

    /// An operation whose result is a tile in registers.
    fn tile_op(&mut self, kind: OpKind, args: &[Value], layout: &Layout) -> Laid<Value> {
        let value = self.one(kind, args)?;
        self.b.put(value, layout);
        Ok(value)
    }

    fn local(&mut self, op: LocalOp, args: &[Value], layout: &Layout) -> Laid<Value> {
        self.tile_op(OpKind::Local(op), args, layout)
    }

    /// Allocates a buffer in shared memory for a tile.
    fn buffer(&mut self, elem: Elem, extents: &[u32], encoding: &Encoding, name: &str) -> Laid<Value> {
        let shape = self.shape(extents)?;
        let buffer = self.one(OpKind::Local(LocalOp::Alloc { elem, shape }), &[])?;
        self.b.put_shared(buffer, encoding);
        self.b.name(buffer, name);
        Ok(buffer)
    }

    fn write(&mut self, tile: Value, buffer: Value) -> Laid<()> {
        self.op(OpKind::Local(LocalOp::Store), &[tile, buffer]).map(drop)
    }

    fn read(&mut self, buffer: Value, layout: &Layout) -> Laid<Value> {
        self.local(LocalOp::Load, &[buffer], layout)
    }

    fn shape(&self, extents: &[u32]) -> Laid<TileShape> {
        let dims: Vec<i32> = extents.iter().map(|n| i32::try_from(*n).unwrap_or(i32::MAX)).collect();
        TileShape::new(&dims).ok_or_else(|| self.internal("a tile without axes"))
    }

    fn zero(&mut self, elem: Elem) -> Value {
        self.b.constant(if elem.is_float() { Const::Float(elem, 0.0) } else { Const::Int(elem, 0) })
    }

    /// The extents of an old tile.
    fn extents(&self, old: Value) -> Vec<u32> {
        self.k.ty(old).tile_shape().map(Into::into).unwrap_or_default()
    }

    fn elem(&self, old: Value) -> Elem {
        self.k.ty(old).elem()
    }

    fn wide(&self, extents: &[u32], bits: u32) -> Layout {
        crate::plan::wide(extents, bits, self.plan.target.lanes, self.warps)
    }

    /// The layout of an old tile, or the default layout of a flexible one.
    fn layout(&self, old: Value) -> Layout {
        match self.plan.layout(old) {
            Some(layout) => layout.clone(),
            None => self.wide(&self.extents(old), self.elem(old).bits()),
        }
    }

    /// Copies an operation whose results are not tiles, with the new values of its operands.
    fn copy(&mut self, op: &Op) -> Laid<()> {
        let args = self.all_same(&op.args)?;
        let results = self.op(op.kind.clone(), &args)?;
        for (old, new) in op.results.iter().zip(results) {
            self.make(*old, new);
        }
        Ok(())
    }

    fn is_tile(&self, old: Value) -> bool {
        matches!(self.k.ty(old), Ty::Tile(..))
    }
}
