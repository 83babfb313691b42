//! Blocks, loops and branches. The match on operations here is exhaustive.

use super::{Laid, LayOut};
use crate::collections::SortedMap;
use crate::ir::op_table::mnemonic;
use crate::ir::{Block, Family, Flow, NvOp, Op, OpId, OpKind, Ty, Value};

impl LayOut<'_> {
    /// Lays out a block, including its terminator.
    pub(super) fn block(&mut self, block: Block) -> Laid<()> {
        self.memo.push(SortedMap::new());
        for id in &self.k.block(block).ops {
            self.visit(*id)?;
        }
        self.memo.pop();
        Ok(())
    }

    fn visit(&mut self, id: OpId) -> Laid<()> {
        let op = self.k.op(id);
        self.at = Some(id);
        self.b.set_loc(op.loc);
        match &op.kind {
            OpKind::Const(_)
            | OpKind::ProgramId(_)
            | OpKind::NumPrograms(_)
            | OpKind::Dim(_)
            | OpKind::Present
            | OpKind::Index(_)
            | OpKind::Slice(_)
            | OpKind::Segment
            | OpKind::Shared
            | OpKind::Get
            | OpKind::Set
            | OpKind::Unflatten
            | OpKind::UnflattenGrouped(_)
            | OpKind::RaggedCount { .. }
            | OpKind::RaggedTile { .. } => self.copy(op),
            // Tiles of these operations are materialized at their uses.
            OpKind::Splat(_) | OpKind::Iota(_) | OpKind::Broadcast { .. } => Ok(()),
            OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Cmp(_)
            | OpKind::Select
            | OpKind::MulAdd
            | OpKind::Cast(_)
            | OpKind::Bitcast(_) => self.elementwise_op(op),
            OpKind::Reshape(shape) => self.reshape(op, *shape),
            OpKind::Permute(perm) => self.permute(op, *perm),
            OpKind::Interleave => self.interleave(op),
            OpKind::Split => self.split(op),
            OpKind::Cut { axis, from, n } => self.cut(op, *axis, [*from, *n]),
            OpKind::Concat(axis) => self.concat(op, *axis),
            OpKind::Reduce(f, axis) => self.plain_reduce(op, *f, *axis),
            OpKind::ArgReduce(f, axis) => self.arg_reduce(op, *f, *axis),
            OpKind::ReduceWith(axis) => self.reduce_with(op, *axis),
            OpKind::Scan(_, axis) | OpKind::ScanWith(axis) => self.scan(op, *axis),
            OpKind::Mma => {
                let value = self.complete_mma(id, op)?;
                self.make(op.results[0], value);
                Ok(())
            }
            OpKind::Load(unit, _) => self.load(op, *unit),
            OpKind::Store(_) => self.store(op),
            OpKind::Gather | OpKind::Scatter | OpKind::Atomic(_) => self.by_index(op),
            OpKind::GatherRows { rows, width } => self.gathered_rows(op, [*rows, *width]),
            OpKind::ScatterRows => self.by_row(op),
            OpKind::AtomicTile(_) => self.atomic_tile(op),
            OpKind::Fetch(_) | OpKind::CompareExchange => self.fetch_update(op),
            OpKind::Print(_) => self.print(op),
            OpKind::Assert(_) => self.assert(op),
            OpKind::For(_) | OpKind::Loop => self.looped(op),
            OpKind::If => self.branch(op),
            OpKind::Yield | OpKind::Break(_) | OpKind::Continue(_) | OpKind::Return => self.leave(id, op),
            OpKind::Ttg(ttg) => self.ring_op(id, op, ttg),
            OpKind::Local(_) => Err(self.internal("a kernel that is laid out twice")),
            OpKind::Region(_) | OpKind::Nv(_) | OpKind::Amd(_) => {
                // Operations on tensor memory are reported first: code for them cannot be generated in any other form either.
                let tensor = self.k.ops.iter().find(|op| matches!(op.kind, OpKind::Nv(NvOp::Tcgen05(_))));
                let name = mnemonic(&tensor.unwrap_or(op).kind);
                Err(self.unsupported(format!("`{name}`, an explicit operation of the barrier dialect,")))
            }
        }
    }

    fn print(&mut self, op: &Op) -> Laid<()> {
        let mut args = Vec::new();
        for arg in &op.args {
            args.push(if self.is_tile(*arg) { self.own(*arg)?.1 } else { self.same(*arg)? });
        }
        self.op(op.kind.clone(), &args).map(drop)
    }

    /// The values in the layouts of the values that receive them: loop arguments, or results of branches. Where control flow joins, paths
    /// may differ in which MMAs are in flight, so all of these are waited for.
    fn given(&mut self, values: &[Value], slots: &[Value], joins: bool) -> Laid<Vec<Value>> {
        let mut out = Vec::new();
        for (value, slot) in values.iter().zip(slots) {
            if !self.k.ty(*value).is_in_registers() {
                out.push(self.same(*value)?);
                continue;
            }
            if joins {
                let own = self.in_flight.remove(value).unwrap_or_default();
                let tile = if self.made[value.index()].is_some() { Some(self.finished(*value, own)?) } else { None };
                self.made[value.index()] = tile;
            }
            let layout = self.layout(*slot);
            let new = self.tile(*value, &layout)?;
            out.extend(self.with_stages(*value, new));
        }
        Ok(out)
    }

    /// Binds old values to new ones. Tiles have the layouts of the old values, and accumulators have as many stages in flight as the values
    /// that were given for them.
    fn receive(&mut self, given: &[Value], old: &[Value], new: &[Value]) {
        let mut rest = new;
        for (i, old) in old.iter().enumerate() {
            let [own, more @ ..] = rest else { return };
            rest = more;
            if self.k.ty(*old).is_in_registers() {
                let layout = self.layout(*old);
                self.b.put(*own, &layout);
                if let Some(given) = given.get(i) {
                    rest = self.take_stages(*given, *old, rest);
                }
            }
            self.make(*old, *own);
        }
    }

    fn looped(&mut self, op: &Op) -> Laid<()> {
        self.settle_copies()?;
        let (looped, body) = (self.at, op.regions[0]);
        let args = &self.k.block(body).args;
        let (open, carried) = if let OpKind::For(kind) = &op.kind {
            let (bounds, init) = op.args.split_at(3);
            let bounds = self.all_same(bounds)?;
            let joins = self.joins_accumulators(body);
            let init = self.given(init, &args[1..], joins)?;
            let open = self.b.begin_for(*kind, [bounds[0], bounds[1], bounds[2]], &init);
            let open = open.map_err(|e| self.internal(e.to_string()))?;
            if let Some(index) = open.index {
                self.make(args[0], index);
            }
            (open, &args[1..])
        } else {
            let init = self.given(&op.args, args, true)?;
            (self.b.begin_loop(&init), &args[..])
        };
        let inside = open.carried.clone();
        let given = op.args.get(if matches!(op.kind, OpKind::For(_)) { 3 } else { 0 }..).unwrap_or_default();
        self.receive(given, carried, &inside);
        self.block(body)?;
        let tys: Vec<Ty> = op.results.iter().map(|v| self.held(*v)).collect();
        let out = self.b.end_loop(open, &tys);
        self.receive(given, &op.results, &out);
        self.wait_behind(looped)
    }

    /// Whether a loop passes on an accumulator that comes out of a branch or a loop that is left: these wait for all of its MMAs, so that none can be in
    /// flight where the loop begins.
    fn joins_accumulators(&self, body: Block) -> bool {
        let mut found = false;
        self.k.walk_block(body, &mut |_, op| {
            let joins = matches!(op.kind, OpKind::If | OpKind::Loop);
            found |= joins && op.results.iter().any(|v| matches!(self.k.ty(*v), Ty::Acc(..)));
        });
        found
    }

    /// The type of the new value of an old one; the result of an MMA in flight becomes a tile.
    fn held(&self, old: Value) -> Ty {
        let ty = self.k.ty(old);
        if let Ty::Compute(elem, shape) | Ty::Acc(elem, shape, _) = ty { Ty::Tile(elem, shape) } else { ty }
    }

    fn branch(&mut self, op: &Op) -> Laid<()> {
        self.settle_copies()?;
        let cond = self.same(op.args[0])?;
        let mut open = self.b.begin_if(cond);
        let outside = self.in_flight.clone();
        self.block(op.regions[0])?;
        self.b.begin_else(&mut open);
        self.in_flight = outside;
        match op.regions.get(1) {
            Some(other) => self.block(*other)?,
            None => self.b.terminate(OpKind::Yield, &[]),
        }
        let tys: Vec<Ty> = op.results.iter().map(|v| self.held(*v)).collect();
        let out = self.b.end_if(open, &tys);
        self.receive(&[], &op.results, &out);
        Ok(())
    }

    /// Lays out a terminator, whose operands are converted to the layouts of the receiving values.
    fn leave(&mut self, id: OpId, op: &Op) -> Laid<()> {
        let around: Vec<OpId> = self.tree.around(id).collect();
        let looped = |n: u32| {
            let found = around.iter().map(|o| self.k.op(*o)).filter(|o| o.kind.is_loop()).nth(n as usize);
            found.ok_or_else(|| self.internal("a jump to a loop that is not around it"))
        };
        let (slots, joins) = match op.kind.family() {
            Family::Flow(Flow::Yield) => {
                let owner = around.first().map(|o| self.k.op(*o));
                // The combining functions of reductions yield scalars, which have no layout, and roles yield nothing.
                (owner.filter(|o| o.kind == OpKind::If).map(|o| o.results.clone()), true)
            }
            Family::Flow(Flow::Break(n)) => (Some(looped(n)?.results.clone()), true),
            Family::Flow(Flow::Continue(n)) => {
                let target = looped(n)?;
                let skip = usize::from(target.kind != OpKind::Loop);
                let carried = self.k.block(target.regions[0]).args.iter().skip(skip);
                (Some(carried.copied().collect()), false)
            }
            Family::Flow(Flow::Return) => (Some(Vec::new()), true),
            Family::Flow(Flow::For(_) | Flow::Loop | Flow::If)
            | Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => return Err(self.internal("an operation that ends no block")),
        };
        let args = match slots {
            Some(slots) if slots.len() == op.args.len() => self.given(&op.args, &slots, joins)?,
            Some(_) => return Err(self.internal("a terminator with operands that nothing receives")),
            None => self.all_same(&op.args)?,
        };
        self.b.terminate(op.kind.clone(), &args);
        Ok(())
    }
}
