//! Blocks, loops and branches. A carried tile becomes one carried value for each of its registers.

use super::barrier::is_init;
use super::tile::LoweredValue;
use super::{Lower, LowerError, Reg};
use crate::ir::{
    Block, Effect, Family, FenceSpace, Flow, ForKind, LocalOp, Op, OpId, OpKind, Pred, Proxy, Scope, TtgOp, Ty, Value,
};
use crate::lane::{self, IntBin};

impl Lower<'_> {
    /// Lowers a block, including its terminator.
    pub(super) fn block(&mut self, block: Block) -> Result<(), LowerError> {
        self.operations(&self.k.block(block).ops)
    }

    /// Lowers operations in sequence.
    pub(super) fn operations(&mut self, ops: &[OpId]) -> Result<(), LowerError> {
        let mut rest = ops;
        while let [id, behind @ ..] = rest {
            self.store_held_before(self.k.op(*id));
            let inits = rest.iter().take_while(|id| is_init(&self.k.op(**id).kind)).count();
            if inits > 0 {
                self.initialise(&rest[..inits])?;
                rest = &rest[inits..];
                continue;
            }
            self.op(*id)?;
            if self.b.is_terminated() {
                break;
            }
            rest = behind;
        }
        Ok(())
    }

    /// Stores what copies hold in registers, unless an operation is another copy or cannot read it.
    fn store_held_before(&mut self, op: &Op) {
        let copies = matches!(op.kind, OpKind::Local(LocalOp::Copy { .. }));
        if !copies && (op.kind.effect() != Effect::Pure || !op.regions.is_empty()) {
            self.store_all_held();
        }
    }

    /// Lowers the operations of a combining region inline, and returns the values that it yields.
    pub(super) fn inline(&mut self, block: Block) -> Result<Vec<Reg>, LowerError> {
        let ops = self.k.block(block).ops.clone();
        for id in ops {
            let op = self.k.op(id);
            if op.kind == OpKind::Yield {
                return Ok(self.scalars(&op.args.clone()));
            }
            self.op(id)?;
        }
        Err(self.defect("a combining function that yields nothing"))
    }

    #[expect(clippy::cognitive_complexity, reason = "a table: one row for each operation")]
    fn op(&mut self, id: OpId) -> Result<(), LowerError> {
        let op = self.k.op(id);
        self.at = Some(id);
        self.b.set_loc(op.loc);
        match &op.kind {
            OpKind::Const(c) => {
                let reg = super::scalar::constant(&mut self.b, *c);
                self.define(op.results[0], LoweredValue::Scalar(reg));
            }
            OpKind::ProgramId(axis) => {
                let index = self.program_index(*axis);
                self.define(op.results[0], LoweredValue::Scalar(index));
            }
            OpKind::NumPrograms(axis) => self.fact(op, lane::OpKind::NumPrograms(*axis)),
            OpKind::Splat(_) => self.splat(op),
            OpKind::Iota(_) => self.iota(op),
            OpKind::Broadcast { axis, .. } => self.broadcast(op, usize::from(*axis)),
            OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Cmp(_)
            | OpKind::Select
            | OpKind::MulAdd
            | OpKind::Cast(_)
            | OpKind::Bitcast(_) => self.elementwise_op(op)?,
            OpKind::Reshape(_) => self.reshape(op),
            OpKind::Permute(perm) => self.permute(op, *perm)?,
            OpKind::Interleave => self.interleave(op),
            OpKind::Split => self.split(op),
            OpKind::Scan(f, axis) => self.scan_plain(op, *f, usize::from(*axis))?,
            OpKind::ScanWith(axis) => self.scan_with(op, usize::from(*axis))?,
            OpKind::Dim(axis) => self.dim(op, usize::from(*axis))?,
            OpKind::Present => self.present(op)?,
            OpKind::Index(axis) => self.index_view(op, usize::from(*axis))?,
            OpKind::Slice(axis) => self.slice_view(op, usize::from(*axis))?,
            OpKind::Segment => self.segment_view(op)?,
            OpKind::Shared => self.shared_view(op)?,
            OpKind::Unflatten => self.unflatten(op),
            OpKind::UnflattenGrouped(rows) => self.unflatten_grouped(op, *rows),
            OpKind::RaggedCount { rows, cols } => self.ragged_count(op, *rows, *cols)?,
            OpKind::RaggedTile { rows, cols } => self.ragged_tile(op, *rows, *cols)?,
            OpKind::Reduce(..)
            | OpKind::ArgReduce(..)
            | OpKind::ReduceWith(_)
            | OpKind::Mma
            | OpKind::Cut { .. }
            | OpKind::Concat(_) => {
                return Err(LowerError::internal(self.k, "an operation on tiles that is not laid out".to_owned()));
            }
            OpKind::Load(unit, _) => self.load(op, *unit)?,
            OpKind::Store(unit) => self.store(op, *unit)?,
            OpKind::Get => self.get(op)?,
            OpKind::Set => self.set(op)?,
            OpKind::Gather => self.gather(op)?,
            OpKind::Scatter => self.scatter(op)?,
            OpKind::GatherRows { .. } => self.gather_rows(op)?,
            OpKind::ScatterRows => self.scatter_rows(op)?,
            OpKind::Atomic(f) => self.atomic(op, *f)?,
            OpKind::AtomicTile(f) => self.atomic_tile(op, *f)?,
            OpKind::Fetch(f) => self.fetch_update(op, *f)?,
            OpKind::CompareExchange => self.compare_exchange(op)?,
            OpKind::Print(format) => self.print(op, format)?,
            OpKind::Assert(message) => self.assert(op, message)?,
            OpKind::For(kind) => self.counted_loop(op, *kind)?,
            OpKind::Loop => self.free_loop(op)?,
            OpKind::If => self.branch(op)?,
            OpKind::Yield | OpKind::Break(_) | OpKind::Continue(_) | OpKind::Return => self.leave(id, op)?,
            OpKind::Ttg(TtgOp::Source(unit, _)) => self.source(op, *unit)?,
            OpKind::Ttg(TtgOp::SourceRows { .. }) => self.source_rows(op)?,
            OpKind::Ttg(TtgOp::Roles) => self.roles(op)?,
            // The waits at the end of a role are separate operations.
            OpKind::Ttg(TtgOp::Finalize | TtgOp::Claim(..)) => {}
            OpKind::Ttg(TtgOp::Fence { from: Proxy::Generic, to: Proxy::Async, scope, space: FenceSpace::Shared }) => {
                // No program outside of the cluster accesses its shared memory.
                self.b.op(lane::NvOp::ProxyFence { cluster: *scope > Scope::Cta }, &[]);
            }
            OpKind::Ttg(TtgOp::Fence { .. }) => return Err(self.unsupported("a fence between other proxies")),
            OpKind::Ttg(_) => return Err(self.defect("a ring operation in a barrier program")),
            OpKind::Local(local) => self.local_op(op, *local)?,
            OpKind::Region(region) => self.region_op(op, region)?,
            OpKind::Nv(nv) => self.nv_op(op, *nv)?,
            OpKind::Amd(_) => return Err(self.unsupported("a counter of an AMD GPU")),
        }
        Ok(())
    }

    fn elementwise_op(&mut self, op: &Op) -> Result<(), LowerError> {
        let result = op.results[0];
        if let Ty::Scalar(_) = self.k.ty(result) {
            let args = self.scalars(&op.args);
            let reg = self.element(op, &args)?;
            self.define(result, LoweredValue::Scalar(reg));
        } else {
            let layout = self.layout(result);
            let regs = self.elementwise(op, &layout)?;
            self.define(result, LoweredValue::Tile(regs));
        }
        Ok(())
    }

    /// Lowers scalars that depend only on the position of the program in the grid.
    fn fact(&mut self, op: &Op, kind: lane::OpKind) {
        let reg = self.b.one(kind, &[]);
        self.define(op.results[0], LoweredValue::Scalar(reg));
    }

    /// The registers of values that are carried or yielded, converted to the form of `slots`.
    fn flatten(&mut self, values: &[Value], slots: &[Value]) -> Result<Vec<Reg>, LowerError> {
        let mut out = Vec::new();
        for (value, slot) in values.iter().zip(slots) {
            let ty = self.k.ty(*slot);
            if let Ty::Scalar(_) = ty {
                out.push(self.scalar(*value));
            } else if ty.is_in_registers() {
                out.extend(self.regs(*value));
            } else {
                let kind = if let Ty::Tensor(..) = ty { "a view" } else { "a token of a pipeline" };
                let called = self.k.value(*slot).name.as_ref().map(|n| format!(", `{n}`,")).unwrap_or_default();
                return Err(self.unsupported(format!("{kind}{called} that a loop or branch passes on")));
            }
        }
        Ok(out)
    }

    /// The inverse of `flatten`: binds registers to values.
    fn restore(&mut self, slots: &[Value], regs: &[Reg]) {
        let mut rest = regs;
        for slot in slots {
            let n = match self.k.ty(*slot) {
                ty if ty.is_in_registers() => self.layout(*slot).registers(),
                _ => 1,
            };
            if rest.len() < n {
                self.b.fail(format!("{slot} is held in {n} registers, and only {} are passed on", rest.len()));
            }
            let (own, after) = rest.split_at(n.min(rest.len()));
            rest = after;
            let held = match (self.k.ty(*slot), own) {
                (Ty::Scalar(_), [reg]) => LoweredValue::Scalar(*reg),
                _ => LoweredValue::Tile(own.to_vec()),
            };
            self.define(*slot, held);
        }
    }

    /// The widths of the registers of all these values.
    fn widths(&mut self, slots: &[Value]) -> Vec<lane::Ty> {
        let mut out = Vec::new();
        for slot in slots {
            let ty = super::tile::reg_ty(self.k.ty(*slot).elem());
            let n = match self.k.ty(*slot) {
                ty if ty.is_in_registers() => self.layout(*slot).registers(),
                _ => 1,
            };
            out.extend(std::iter::repeat_n(ty, n));
        }
        out
    }

    fn counted_loop(&mut self, op: &Op, kind: ForKind) -> Result<(), LowerError> {
        let body = op.regions[0];
        let args = self.k.block(body).args.clone();
        let (index, carried) = (args[0], args[1..].to_vec());
        let bounds = self.scalars(&op.args[..3]);
        let init = self.flatten(&op.args[3..], &carried)?;
        let zero = self.b.i32(0);
        let one = self.b.i32(1);
        let distributed = kind == ForKind::Distributed;
        let by_one = self.b.func().constant(bounds[2]) == Some(1) && !distributed;
        let range = if by_one {
            [bounds[0], bounds[1], one]
        } else {
            // The loop counts iterations, so that its variable never overflows.
            let trips = self.trips(&bounds);
            if distributed {
                let first = self.b.one(lane::OpKind::ProgramId(0), &[]);
                let step = self.b.one(lane::OpKind::NumPrograms(0), &[]);
                // The number of clusters is the number of programs divided by the programs of a cluster.
                let shift = self.b.i32(self.laid.cluster.trailing_zeros().cast_signed());
                let [first, step] = [first, step].map(|n| self.b.int(IntBin::ShrU, n, shift));
                [first, trips, step]
            } else {
                [zero, trips, one]
            }
        };
        let (open, at, inside) = self.b.begin_for(range, &init);
        let value = if by_one {
            at
        } else {
            let skip = self.b.mul(at, bounds[2]);
            self.b.add(bounds[0], skip)
        };
        self.define(index, LoweredValue::Scalar(value));
        self.restore(&carried, &inside);
        self.block(body)?;
        let out = self.b.end(open);
        self.restore(&op.results, &out);
        Ok(())
    }

    /// The number of iterations of a range: at most 2³¹ − 1, since the step is 2 or more, or the range is over program ids.
    fn trips(&mut self, bounds: &[Reg]) -> Reg {
        let zero = self.b.i32(0);
        let span = self.b.int(IntBin::Sub, bounds[1], bounds[0]);
        // `(span + step - 1) / step` could overflow 32 bits; for `span > 0` it equals `(span - 1) / step + 1`.
        let before = self.b.add_const(span, -1);
        let one = self.b.i32(1);
        let step = self.b.int(IntBin::MaxS, bounds[2], one);
        let whole = self.b.int(IntBin::DivU, before, step);
        let trips = self.b.add_const(whole, 1);
        let some = self.b.cmp_s(Pred::Lt, bounds[0], bounds[1]);
        self.b.select(some, trips, zero)
    }

    fn free_loop(&mut self, op: &Op) -> Result<(), LowerError> {
        let body = op.regions[0];
        let carried = self.k.block(body).args.clone();
        let init = self.flatten(&op.args, &carried)?;
        let results = self.widths(&op.results);
        let (open, inside) = self.b.begin_loop(&init, &results);
        self.restore(&carried, &inside);
        self.block(body)?;
        let out = self.b.end(open);
        self.restore(&op.results, &out);
        Ok(())
    }

    fn branch(&mut self, op: &Op) -> Result<(), LowerError> {
        let cond = self.scalar(op.args[0]);
        let results = self.widths(&op.results);
        let mut open = self.b.begin_if(cond, &results);
        self.block(op.regions[0])?;
        self.b.begin_else(&mut open);
        match op.regions.get(1) {
            Some(other) => self.block(*other)?,
            None => self.b.terminate(lane::OpKind::Yield, &[]),
        }
        let out = self.b.end(open);
        self.restore(&op.results, &out);
        Ok(())
    }

    /// Lowers a terminator, which passes its operands to the receiving values.
    fn leave(&mut self, id: OpId, op: &Op) -> Result<(), LowerError> {
        let around: Vec<OpId> = self.tree.around(id).collect();
        let looped = |n: u32| {
            let found = around.iter().map(|o| self.k.op(*o)).filter(|o| o.kind.is_loop()).nth(n as usize);
            found.ok_or_else(|| self.defect("a jump to a loop that is not around it"))
        };
        let (kind, slots) = match op.kind.family() {
            Family::Flow(Flow::Break(n)) => (lane::OpKind::Break(n), looped(n)?.results.clone()),
            Family::Flow(Flow::Continue(n)) => {
                let target = looped(n)?;
                let skip = usize::from(target.kind != OpKind::Loop);
                let carried = self.k.block(target.regions[0]).args.iter().skip(skip);
                (lane::OpKind::Continue(n), carried.copied().collect())
            }
            Family::Flow(Flow::Yield) => {
                let Some(owner) = around.first() else { return Err(self.defect("a `yield` outside of regions")) };
                (lane::OpKind::Yield, self.k.op(*owner).results.clone())
            }
            Family::Flow(Flow::Return) => (lane::OpKind::Return, Vec::new()),
            Family::Flow(Flow::For(_) | Flow::Loop | Flow::If)
            | Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => return Err(self.defect("an operation that ends no block")),
        };
        let regs = self.flatten(&op.args, &slots)?;
        self.b.terminate(kind, &regs);
        Ok(())
    }
}
