//! In-place edits of a kernel: operations are appended to its arenas, and inserted into blocks.

use crate::collections::SortedMap;
use crate::ir::infer::infer;
use crate::ir::{
    BinOp, Block, BlockData, Const, Def, Elem, Kernel, Loc, Op, OpId, OpKind, Origin, Place, Pred, Ty, Value, ValueData,
};

/// A kernel that is being edited. New blocks get the next numbers; [`Kernel::canonical`] renumbers.
pub(crate) struct Edit {
    pub(crate) kernel: Kernel,
    /// The operations that are collected for insertion.
    pub(crate) pending: Vec<OpId>,
    pub(crate) loc: Loc,
    /// The origin of operations that are added.
    pub(crate) origin: Option<Origin>,
}

impl Edit {
    pub(crate) fn new(kernel: Kernel) -> Self {
        Edit { kernel, pending: Vec::new(), loc: Loc::default(), origin: None }
    }

    fn value(&mut self, ty: Ty, def: Def) -> Value {
        self.kernel.values.push(ValueData { ty, name: None, def, place: Place::None });
        Value::new(self.kernel.values.len() - 1)
    }

    /// Adds an operation with inferred result types; `None` if the operands are invalid.
    pub(crate) fn op(&mut self, kind: OpKind, args: &[Value]) -> Option<Vec<Value>> {
        let tys: Vec<Ty> = args.iter().map(|v| self.kernel.ty(*v)).collect();
        let types = infer(&kind, &tys).ok()?;
        Some(self.raw(kind, args, &types, Vec::new()))
    }

    /// Adds an operation that has one result.
    pub(crate) fn one(&mut self, kind: OpKind, args: &[Value]) -> Option<Value> {
        self.op(kind, args)?.first().copied()
    }

    /// Adds an operation with these result types.
    pub(crate) fn raw(&mut self, kind: OpKind, args: &[Value], types: &[Ty], regions: Vec<Block>) -> Vec<Value> {
        let id = OpId::new(self.kernel.ops.len());
        let results: Vec<Value> = types.iter().enumerate().map(|(i, ty)| self.value(*ty, Def::Result(id, i))).collect();
        self.kernel.ops.push(Op {
            kind,
            args: args.to_vec(),
            results: results.clone(),
            regions,
            planned: None,
            peeled: false,
            unmasked: false,
            origin: self.origin,
            loc: self.loc,
        });
        self.pending.push(id);
        results
    }

    pub(crate) fn i32(&mut self, value: i64) -> Option<Value> {
        self.one(OpKind::Const(Const::Int(Elem::I32, value)), &[])
    }

    /// Collects operations into a new block; the previous collection continues afterwards.
    pub(crate) fn block(&mut self, args: &[Ty], fill: impl FnOnce(&mut Self, &[Value]) -> Option<()>) -> Option<Block> {
        let block = Block::new(self.kernel.blocks.len());
        self.kernel.blocks.push(BlockData::default());
        let args: Vec<Value> =
            args.iter().enumerate().map(|(i, ty)| self.value(*ty, Def::BlockArg(block, i))).collect();
        let outer = std::mem::take(&mut self.pending);
        let filled = fill(self, &args);
        let ops = std::mem::replace(&mut self.pending, outer);
        let data = &mut self.kernel.blocks[block.index()];
        (data.args, data.ops) = (args, ops);
        filled.map(|()| block)
    }

    /// Adds an `if` without results.
    pub(crate) fn branch(
        &mut self,
        some: Value,
        then: impl FnOnce(&mut Self) -> Option<()>,
        otherwise: impl FnOnce(&mut Self) -> Option<()>,
    ) -> Option<()> {
        let then = self.arm(then)?;
        let otherwise = self.arm(otherwise)?;
        self.raw(OpKind::If, &[some], &[], vec![then, otherwise]);
        Some(())
    }

    /// Adds an `if` without results, whose `else` is empty, with operations that exist already.
    pub(crate) fn guard(&mut self, some: Value, ops: Vec<OpId>) {
        let then = |edit: &mut Self| {
            edit.pending.extend(ops);
            Some(())
        };
        // Both arms can be filled.
        let _ = self.branch(some, then, |_| Some(()));
    }

    fn arm(&mut self, fill: impl FnOnce(&mut Self) -> Option<()>) -> Option<Block> {
        self.block(&[], |edit, _| {
            fill(edit)?;
            edit.raw(OpKind::Yield, &[], &[], Vec::new());
            Some(())
        })
    }

    /// Adds `x` divided by a constant, rounded up, for a non-negative `x`.
    pub(crate) fn cdiv(&mut self, x: Value, by: i64) -> Option<Value> {
        let (by, zero) = (self.i32(by)?, self.i32(0)?);
        let whole = self.one(OpKind::Binary(BinOp::Div), &[x, by])?;
        let rest = self.one(OpKind::Binary(BinOp::Rem), &[x, by])?;
        let more = self.one(OpKind::Cmp(Pred::Ne), &[rest, zero])?;
        let more = self.one(OpKind::Cast(Elem::I32), &[more])?;
        self.one(OpKind::Binary(BinOp::Add), &[whole, more])
    }

    /// Replaces all uses of a value by one that new operations compute from it.
    pub(crate) fn replace_by(
        &mut self,
        old: Value,
        make: impl FnOnce(&mut Self, Value) -> Option<Value>,
    ) -> Option<()> {
        let before = self.kernel.ops.len();
        let new = make(self, old)?;
        let uses = self.kernel.ops.iter_mut().take(before).flat_map(|op| &mut op.args);
        uses.filter(|v| **v == old).for_each(|v| *v = new);
        Some(())
    }

    /// Replaces an argument of a block by a new one; the old value then needs another definition.
    pub(crate) fn block_arg(&mut self, block: Block, at: usize, ty: Ty) -> Option<Value> {
        let new = self.value(ty, Def::BlockArg(block, at));
        *self.kernel.blocks.get_mut(block.index())?.args.get_mut(at)? = new;
        Some(new)
    }

    /// Adds a carried value to a loop. Returns the argument of its body; the caller passes the next value at the body's end.
    pub(crate) fn carry(&mut self, looped: OpId, body: Block, initial: Value) -> Option<Value> {
        let ty = self.kernel.ty(initial);
        let inside = self.value(ty, Def::BlockArg(body, self.kernel.block(body).args.len()));
        self.kernel.blocks.get_mut(body.index())?.args.push(inside);
        let after = self.value(ty, Def::Result(looped, self.kernel.op(looped).results.len()));
        let op = self.kernel.ops.get_mut(looped.index())?;
        op.args.push(initial);
        op.results.push(after);
        Some(inside)
    }

    /// Adds an operation that defines an existing value.
    pub(crate) fn define(&mut self, kind: OpKind, args: &[Value], result: Value) {
        let id = OpId::new(self.kernel.ops.len());
        self.kernel.ops.push(Op {
            kind,
            args: args.to_vec(),
            results: vec![result],
            regions: Vec::new(),
            planned: None,
            peeled: false,
            unmasked: false,
            origin: self.origin,
            loc: self.loc,
        });
        self.kernel.values[result.index()].def = Def::Result(id, 0);
        self.pending.push(id);
    }

    /// Inserts the collected operations into a block, before one of its operations.
    pub(crate) fn put_before(&mut self, block: Block, op: OpId) {
        let pending = std::mem::take(&mut self.pending);
        let ops = &mut self.kernel.blocks[block.index()].ops;
        let at = ops.iter().position(|o| *o == op).unwrap_or(ops.len());
        ops.splice(at..at, pending);
    }

    /// Inserts the collected operations after an operation.
    pub(crate) fn put_after(&mut self, block: Block, op: OpId) {
        let pending = std::mem::take(&mut self.pending);
        let ops = &mut self.kernel.blocks[block.index()].ops;
        let at = ops.iter().position(|o| *o == op).map_or(ops.len(), |at| at + 1);
        ops.splice(at..at, pending);
    }

    /// Removes an operation from its block.
    pub(crate) fn take_out(&mut self, block: Block, op: OpId) {
        self.kernel.blocks[block.index()].ops.retain(|o| *o != op);
    }

    /// Adds copies of operations with their regions. `names` renames their operands; the results of the copies are added to it.
    pub(crate) fn copies(&mut self, ops: &[OpId], names: &mut SortedMap<Value, Value>) {
        for id in ops {
            let Op { kind, args, results, regions, unmasked, loc, origin, planned: _, peeled: _ } =
                self.kernel.op(*id).clone();
            let args: Vec<Value> = args.iter().map(|v| names.get(v).copied().unwrap_or(*v)).collect();
            let regions: Vec<Block> = regions.iter().map(|block| self.copied_block(*block, names)).collect();
            self.loc = loc;
            let types: Vec<Ty> = results.iter().map(|v| self.kernel.ty(*v)).collect();
            let made = self.raw(kind, &args, &types, regions);
            self.kernel.ops.last_mut().into_iter().for_each(|op| (op.origin, op.unmasked) = (origin, unmasked));
            for (old, new) in results.iter().zip(made) {
                self.like(new, *old);
                names.insert(*old, new);
            }
        }
    }

    fn copied_block(&mut self, block: Block, names: &mut SortedMap<Value, Value>) -> Block {
        let BlockData { args, ops } = self.kernel.block(block).clone();
        let types: Vec<Ty> = args.iter().map(|v| self.kernel.ty(*v)).collect();
        let new = Block::new(self.kernel.blocks.len());
        self.kernel.blocks.push(BlockData::default());
        for (place, (old, ty)) in args.iter().zip(types).enumerate() {
            let arg = self.value(ty, Def::BlockArg(new, place));
            self.like(arg, *old);
            names.insert(*old, arg);
            self.kernel.blocks[new.index()].args.push(arg);
        }
        let outer = std::mem::take(&mut self.pending);
        self.copies(&ops, names);
        self.kernel.blocks[new.index()].ops = std::mem::replace(&mut self.pending, outer);
        new
    }

    /// Gives a value the user's name of another one, and its layout.
    pub(crate) fn like(&mut self, new: Value, old: Value) {
        let ValueData { name, place, .. } = self.kernel.value(old).clone();
        let data = &mut self.kernel.values[new.index()];
        (data.name, data.place) = (name, place);
    }

    /// Replaces all uses of a value by another one.
    pub(crate) fn replace(&mut self, from: Value, to: Value) {
        for op in &mut self.kernel.ops {
            op.args.iter_mut().filter(|v| **v == from).for_each(|v| *v = to);
        }
    }
}
