//! Lowers IR to steps: values get slots, operations become steps in order.

use super::open::OpenGroup;
use super::{BlockId, Node, ParamKind, ParamPlan, Plan, Slot, Step, TileSlot};
use titan_core::ir::{self, Block, Const, Kernel, Loc, Op, OpId, OpKind, ParamKind as IrParam, Ty};

/// A kernel that this device cannot run: among those that the verifier accepts, one with barriers of a GPU (`ttg.nv`, `ttg.amd`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (line {}, column {})", loc.line, loc.column)]
#[non_exhaustive]
pub struct CompileError {
    /// The message.
    pub message: String,
    /// The location in the kernel.
    pub loc: Loc,
}

pub(super) type Result<T> = std::result::Result<T, CompileError>;

/// A block that is being lowered.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub(super) nodes: Vec<Node>,
    pub(super) open: Vec<OpenGroup>,
}

/// The destinations of the values of `yield`, `break` and `continue`.
#[derive(Clone, Debug)]
pub(super) enum Region {
    /// A loop: the slots of the carried values and of the results.
    Loop { carried: Vec<Slot>, results: Vec<Slot> },
    /// An `if` or a reduction: the slots of the results.
    Other { results: Vec<Slot> },
}

/// The state of lowering.
#[derive(Debug)]
pub(super) struct Lower<'k> {
    pub(super) kernel: &'k Kernel,
    pub(super) slots: Vec<Option<Slot>>,
    /// The operations that use each value.
    pub(super) users: Vec<Vec<OpId>>,
    pub(super) plan: Plan,
    /// The tile slots that are block arguments, by block.
    args: Vec<Vec<TileSlot>>,
    pub(super) regions: Vec<Region>,
    pub(super) options: crate::Options,
    pub(super) loc: Loc,
    /// The role whose block is being lowered, and which roles read each ring.
    pub(super) role: usize,
    pub(super) readers: Vec<Vec<usize>>,
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
        rings: Vec::new(),
        waits: Vec::new(),
        classes: Vec::new(),
        cost: 0,
    };
    let slots = vec![None; kernel.values.len()];
    let (loc, readers) = (Loc::default(), super::lower_rings::readers(kernel));
    let mut lower =
        Lower { kernel, slots, users, plan, args: Vec::new(), regions: Vec::new(), options, loc, role: 0, readers };
    lower.params()?;
    lower.rings();
    lower.plan.body = lower.block(kernel.body)?;
    super::product::mark_by_program(&mut lower.plan);
    super::invariant::hoist(&mut lower.plan);
    super::rings::mark_waits(&mut lower.plan);
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
                (IrParam::Tensor { elem, access, optional, shape }, Slot::View(view)) => {
                    ParamKind::Tensor { view, elem: *elem, rank: shape.len(), access: *access, optional: *optional }
                }
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

    /// Lowers a block of the IR.
    pub(super) fn block(&mut self, block: Block) -> Result<BlockId> {
        self.block_with(block, None)
    }

    /// Lowers a block whose arguments after the first `n` have slots already: `carried` has those slots and `n`.
    pub(super) fn block_with(&mut self, block: Block, carried: Option<(&[Slot], usize)>) -> Result<BlockId> {
        let Some(data) = self.kernel.blocks.get(block.index()) else {
            return self.wrong("a block that does not exist");
        };
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
            let Some(op) = self.kernel.ops.get(op_id.index()) else {
                return self.wrong("an operation that does not exist");
            };
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
            OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Cmp(_)
            | OpKind::Select
            | OpKind::MulAdd
            | OpKind::Cast(_)
            | OpKind::Bitcast(_) => self.elementwise(frame, id, op),
            OpKind::Iota(_)
            | OpKind::Splat(_)
            | OpKind::Reshape(_)
            | OpKind::Broadcast { .. }
            | OpKind::Permute(_)
            | OpKind::Interleave
            | OpKind::Cut { .. }
            | OpKind::Concat(_)
            | OpKind::Split
            | OpKind::Reduce(..)
            | OpKind::ArgReduce(..)
            | OpKind::ReduceWith(_)
            | OpKind::Scan(..)
            | OpKind::ScanWith(_)
            | OpKind::Mma => self.tile_op(frame, id, op),
            OpKind::ProgramId(_)
            | OpKind::NumPrograms(_)
            | OpKind::Dim(_)
            | OpKind::Present
            | OpKind::Index(_)
            | OpKind::Slice(_)
            | OpKind::Segment
            | OpKind::Shared
            | OpKind::Unflatten
            | OpKind::UnflattenGrouped(_)
            | OpKind::RaggedCount { .. }
            | OpKind::RaggedTile { .. } => self.fact(frame, op),
            OpKind::Load(..)
            | OpKind::Store(_)
            | OpKind::Get
            | OpKind::Set
            | OpKind::GatherRows { .. }
            | OpKind::ScatterRows
            | OpKind::Gather
            | OpKind::Scatter
            | OpKind::Atomic(_)
            | OpKind::AtomicTile(_)
            | OpKind::Fetch(_)
            | OpKind::CompareExchange => self.memory_op(frame, id, op),
            OpKind::Print(_)
            | OpKind::Assert(_)
            | OpKind::For(_)
            | OpKind::Loop
            | OpKind::If
            | OpKind::Yield
            | OpKind::Break(_)
            | OpKind::Continue(_)
            | OpKind::Return => self.control(frame, op),
            OpKind::Ttg(ttg) => self.ring_op(frame, op, ttg),
            OpKind::Local(_) | OpKind::Region(_) | OpKind::Nv(_) | OpKind::Amd(_) => {
                let name = ir::op_table::mnemonic(&op.kind);
                self.wrong(&format!("`{name}` is an operation of a device: the CPU runs rings (`ttg`), not barriers"))
            }
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

/// Whether an operation may use a scalar that an open group computes without closing the group.
fn may_join(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Cmp(_)
            | OpKind::Select
            | OpKind::MulAdd
            | OpKind::Cast(_)
            | OpKind::Bitcast(_)
            | OpKind::Splat(_)
    )
}

/// The number of a slot or block as `u32`: there are fewer than 2³², because each is an entity of the kernel.
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
