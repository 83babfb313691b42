//! From IR to steps: values get slots, operations become steps in order.

use super::open::OpenGroup;
use super::{BlockId, Node, ParamKind, ParamPlan, Plan, ScalarSlot, Slot, Step, TileInfo, TileSlot, TileStep, ViewSlot, dense_strides, shape4};
use crate::rep;
use titan_core::ir::{self, Block, Const, Kernel, Loc, Op, OpId, OpKind, ParamKind as IrParam, TileShape, Ty, Value};

/// A kernel that this device cannot run. The verifier accepts no such kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (line {}, column {})", loc.line, loc.column)]
#[non_exhaustive]
pub struct CompileError {
    /// What is wrong.
    pub message: String,
    /// Where.
    pub loc: Loc,
}

pub(super) type Result<T> = std::result::Result<T, CompileError>;

/// A block whose steps are being made.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) nodes: Vec<Node>,
    pub(super) open: Vec<OpenGroup>,
}

/// Where `yield`, `break` and `continue` put their values.
#[derive(Clone, Debug)]
pub(super) enum Region {
    /// A loop: slots of the carried values and of the results.
    Loop { carried: Vec<Slot>, results: Vec<Slot> },
    /// An `if` or a reduction: slots of the results.
    Other { results: Vec<Slot> },
}

/// The state of lowering.
#[derive(Debug)]
pub(super) struct Lower<'k> {
    pub(super) kernel: &'k Kernel,
    slots: Vec<Option<Slot>>,
    /// Operations that use a value.
    pub(super) users: Vec<Vec<OpId>>,
    pub(super) plan: Plan,
    /// Tile slots that are block arguments, by block.
    args: Vec<Vec<TileSlot>>,
    pub(super) regions: Vec<Region>,
    pub(super) options: crate::Options,
    pub(super) loc: Loc,
}

/// Compiles a kernel.
pub(crate) fn lower(kernel: &Kernel, options: crate::Options) -> Result<Plan> {
    let mut users = vec![Vec::new(); kernel.values.len()];
    for (i, op) in kernel.ops.iter().enumerate() {
        for arg in &op.args {
            if let Some(list) = users.get_mut(arg.index()) {
                list.push(OpId::new(i));
            }
        }
    }
    let plan = Plan {
        params: Vec::new(),
        blocks: Vec::new(),
        body: 0,
        prologue: 0,
        kept: Vec::new(),
        scalars: Vec::new(),
        tiles: Vec::new(),
        views: 0,
        classes: Vec::new(),
        cost: 0,
    };
    let slots = vec![None; kernel.values.len()];
    let mut lower =
        Lower { kernel, slots, users, plan, args: Vec::new(), regions: Vec::new(), options, loc: Loc::default() };
    lower.params()?;
    lower.plan.body = lower.block(kernel.body)?;
    super::product::mark_by_program(&mut lower.plan);
    super::invariant::hoist(&mut lower.plan);
    lower.args.resize(lower.plan.blocks.len(), Vec::new());
    super::live::mark_kills(&mut lower.plan, &lower.args);
    lower.plan.cost = super::lower_control::cost(&lower.plan, lower.plan.body);
    Ok(lower.plan)
}

impl Lower<'_> {
    fn params(&mut self) -> Result<()> {
        for (i, param) in self.kernel.sig.params.iter().enumerate() {
            let value = self.kernel.param(i);
            let slot = self.define(value)?;
            let kind = match (&param.kind, slot) {
                (IrParam::Tensor { elem, access, optional, shape }, Slot::View(view)) => ParamKind::Tensor {
                    view,
                    elem: *elem,
                    rank: shape.len(),
                    access: *access,
                    optional: *optional,
                },
                (IrParam::Scalar(elem), Slot::Scalar(slot)) => ParamKind::Scalar { slot, elem: *elem },
                (IrParam::Tensor { .. } | IrParam::Scalar(_), _) => return self.wrong("a parameter of another type"),
            };
            self.plan.params.push(ParamPlan { name: param.name.clone(), kind });
        }
        Ok(())
    }

    pub(super) fn wrong<T>(&self, message: &str) -> Result<T> {
        Err(CompileError { message: message.to_owned(), loc: self.loc })
    }

    /// A new slot for a value.
    pub(super) fn define(&mut self, value: Value) -> Result<Slot> {
        let Some(data) = self.kernel.values.get(value.index()) else { return self.wrong("a value that does not exist") };
        let slot = match data.ty {
            Ty::Scalar(_) => Slot::Scalar(self.scalar_slot(0)),
            Ty::Tensor(..) => Slot::View(self.view_slot()),
            Ty::Tile(elem, shape) => {
                if shape.problem().is_some() {
                    return self.wrong("a tile of an illegal shape");
                }
                Slot::Tile(self.tile_slot(elem, shape))
            }
        };
        self.slots[value.index()] = Some(slot);
        Ok(slot)
    }

    pub(super) fn tile_slot(&mut self, elem: ir::Elem, shape: TileShape) -> TileSlot {
        let (len, size) = (shape.len(), rep::size(elem));
        let bytes = len * size;
        let known = self.plan.classes.iter().position(|c| *c == bytes);
        let class = known.unwrap_or_else(|| {
            self.plan.classes.push(bytes);
            self.plan.classes.len() - 1
        });
        let (dims, rank) = (shape4(shape), shape.rank());
        self.plan.tiles.push(TileInfo { elem, shape: dims, strides: dense_strides(dims), rank, len, size, class });
        number(self.plan.tiles.len() - 1)
    }

    pub(super) fn scalar_slot(&mut self, initial: u64) -> ScalarSlot {
        self.plan.scalars.push(initial);
        number(self.plan.scalars.len() - 1)
    }

    fn view_slot(&mut self) -> ViewSlot {
        self.plan.views += 1;
        number(self.plan.views - 1)
    }

    /// The slot of a value that is defined.
    pub(super) fn slot(&self, value: Value) -> Result<Slot> {
        match self.slots.get(value.index()).copied().flatten() {
            Some(slot) => Ok(slot),
            None => self.wrong("a value used before it is defined"),
        }
    }

    /// Lets a value stand for another one.
    pub(super) fn alias(&mut self, value: Value, slot: Slot) {
        self.slots[value.index()] = Some(slot);
    }

    /// The slot of a tile; if an open group makes it, the group is closed.
    pub(super) fn tile(&mut self, frame: &mut Frame, value: Value) -> Result<TileSlot> {
        self.close_group_of(frame, value)?;
        match (self.slot(value)?, self.kernel.ty(value)) {
            (Slot::Tile(tile), _) => Ok(tile),
            (Slot::Scalar(from), Ty::Tile(elem, shape)) => {
                let to = self.tile_slot(elem, shape);
                self.push(frame, Step::Tile(TileStep::Splat { to, from }), &[], &[Slot::Tile(to)]);
                Ok(to)
            }
            (Slot::Scalar(_) | Slot::View(_), _) => self.wrong("a tile is wanted here"),
        }
    }

    /// Whether values of a type are kept as scalars: tiles of one element are, as far as they are computed with.
    pub(super) fn is_one(&self, ty: Ty) -> bool {
        self.options.fuse && ty.tile_shape().is_some_and(|s| s.len() == 1)
    }

    /// The slot of a scalar, or of a tile of one element as a scalar.
    pub(super) fn one(&mut self, frame: &mut Frame, value: Value) -> Result<ScalarSlot> {
        self.close_group_of(frame, value)?;
        match self.slot(value)? {
            Slot::Scalar(scalar) => Ok(scalar),
            Slot::Tile(from) => {
                let (to, elem) = (self.scalar_slot(0), self.kernel.ty(value).elem());
                self.push(frame, Step::Tile(TileStep::Extract { to, from, elem }), &[Slot::Tile(from)], &[]);
                Ok(to)
            }
            Slot::View(_) => self.wrong("a scalar is wanted here"),
        }
    }

    pub(super) fn scalar(&self, value: Value) -> Result<ScalarSlot> {
        match self.slot(value)? {
            Slot::Scalar(scalar) => Ok(scalar),
            Slot::Tile(_) | Slot::View(_) => self.wrong("a scalar is wanted here"),
        }
    }

    pub(super) fn view(&self, value: Value) -> Result<ViewSlot> {
        match self.slot(value)? {
            Slot::View(view) => Ok(view),
            Slot::Scalar(_) | Slot::Tile(_) => self.wrong("a tensor is wanted here"),
        }
    }

    /// Any value; if it is a tile that an open group makes, the group is closed.
    pub(super) fn any(&mut self, frame: &mut Frame, value: Value) -> Result<Slot> {
        match self.kernel.ty(value) {
            Ty::Tile(..) => Ok(Slot::Tile(self.tile(frame, value)?)),
            Ty::Scalar(_) | Ty::Tensor(..) => self.slot(value),
        }
    }

    pub(super) fn scalars(&self, values: &[Value]) -> Result<Vec<ScalarSlot>> {
        values.iter().map(|v| self.scalar(*v)).collect()
    }

    /// Lowers a block of the IR.
    pub(super) fn block(&mut self, block: Block) -> Result<BlockId> {
        self.block_with(block, None)
    }

    /// Lowers a block whose arguments after the first `n` have slots already: `carried` is those slots and `n`.
    pub(super) fn block_with(&mut self, block: Block, carried: Option<(&[Slot], usize)>) -> Result<BlockId> {
        let Some(data) = self.kernel.blocks.get(block.index()) else { return self.wrong("a block that does not exist") };
        let id = self.plan.blocks.len();
        self.plan.blocks.push(Vec::new());
        let (known, fresh) = carried.unwrap_or((&[], data.args.len()));
        let mut args: Vec<Slot> = known.to_vec();
        for arg in data.args.iter().take(fresh) {
            args.push(self.define(*arg)?);
        }
        let tile = |slot: &Slot| match slot {
            Slot::Tile(tile) => Some(*tile),
            Slot::Scalar(_) | Slot::View(_) => None,
        };
        let args = args.iter().filter_map(tile).collect();
        self.args.resize(self.args.len().max(id + 1), Vec::new());
        self.args[id] = args;
        let mut frame = Frame::default();
        for op_id in &data.ops {
            let Some(op) = self.kernel.ops.get(op_id.index()) else { return self.wrong("an operation that does not exist") };
            self.loc = op.loc;
            self.op(&mut frame, *op_id, op)?;
        }
        self.plan.blocks[id] = frame.nodes;
        Ok(id)
    }

    fn op(&mut self, frame: &mut Frame, id: OpId, op: &Op) -> Result<()> {
        if !may_join(&op.kind) {
            for arg in &op.args {
                if matches!(self.kernel.ty(*arg), Ty::Scalar(_)) {
                    self.close_group_of(frame, *arg)?;
                }
            }
        }
        match &op.kind {
            OpKind::Const(c) => {
                let [result] = op.results[..] else { return self.wrong("a constant without a value") };
                let slot = self.scalar_slot(constant(*c));
                self.alias(result, Slot::Scalar(slot));
                Ok(())
            }
            OpKind::Unary(_) | OpKind::Binary(_) | OpKind::Cmp(_) | OpKind::Select | OpKind::MulAdd | OpKind::Cast(_)
            | OpKind::Bitcast(_) => self.elementwise(frame, id, op),
            OpKind::Iota(_) | OpKind::Splat(_) | OpKind::Reshape(_) | OpKind::Broadcast { .. } | OpKind::Permute(_)
            | OpKind::Interleave | OpKind::Split | OpKind::Reduce(..) | OpKind::ArgReduce(..) | OpKind::ReduceWith(_)
            | OpKind::Scan(..) | OpKind::ScanWith(_) | OpKind::Mma => self.tile_op(frame, id, op),
            OpKind::ProgramId(_) | OpKind::NumPrograms(_) | OpKind::Dim(_) | OpKind::Present | OpKind::Index(_)
            | OpKind::Slice(_) | OpKind::Segment | OpKind::Shared | OpKind::Unflatten | OpKind::RaggedCount { .. }
            | OpKind::RaggedTile { .. } => self.fact(frame, op),
            OpKind::Load(..) | OpKind::Store(_) | OpKind::Get | OpKind::Set | OpKind::GatherRows { .. }
            | OpKind::ScatterRows | OpKind::Gather | OpKind::Scatter | OpKind::Atomic(_) | OpKind::AtomicTile(_) => {
                self.memory_op(frame, id, op)
            }
            OpKind::Print(_) | OpKind::Assert(_) | OpKind::For(_) | OpKind::Loop | OpKind::If | OpKind::Yield
            | OpKind::Break(_) | OpKind::Continue(_) | OpKind::Return => self.control(frame, op),
        }
    }

    /// Appends a step.
    pub(super) fn push(&self, frame: &mut Frame, step: Step, uses: &[Slot], defs: &[Slot]) {
        let tiles = |slots: &[Slot]| {
            let tile = |slot: &Slot| match slot {
                Slot::Tile(tile) => Some(*tile),
                Slot::Scalar(_) | Slot::View(_) => None,
            };
            slots.iter().filter_map(tile).collect()
        };
        frame.nodes.push(Node { step, loc: self.loc, uses: tiles(uses), defs: tiles(defs), kills: Vec::new() });
    }
}

/// Whether an operation may use a scalar that an open group makes without closing it.
fn may_join(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Unary(_) | OpKind::Binary(_) | OpKind::Cmp(_) | OpKind::Select | OpKind::MulAdd | OpKind::Cast(_)
            | OpKind::Bitcast(_) | OpKind::Splat(_)
    )
}

/// Slots and blocks are fewer than 2³²: every one is an entity of the kernel.
pub(super) fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The scalar slot of a constant.
fn constant(c: Const) -> u64 {
    match c {
        Const::Int(e, v) => ir::fold::wrap(e, v).cast_unsigned(),
        Const::Float(e, v) => (crate::ops::cast::cast(ir::Elem::F64, e).scalar)([v.to_bits(), 0, 0]),
    }
}
