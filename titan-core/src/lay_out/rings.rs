//! Stages of rings: the encodings of their tiles in shared memory, and the layouts by which threads copy to them.
//!
//! When an MMA of a warp is complete, it has read its operands. So its result is a tile, and an accumulator that takes a stage releases it
//! after the last step of the MMA. MMAs of warpgroups are asynchronous (`super::group`).

use super::{Laid, LayOut};
use crate::ir::{Def, Encoding, LocalOp, Op, OpId, OpKind, Token, TtgOp, Ty, Value};
use crate::plan::LowerError;

/// The maximum number of roles: each has a named barrier of its own, and number 0 is that of the program.
const MOST_ROLES: usize = 15;

impl LayOut<'_> {
    pub(super) fn ring_op(&mut self, id: OpId, op: &Op, ttg: &TtgOp) -> Laid<()> {
        match ttg {
            TtgOp::AsyncProduce { .. } => {
                self.name_again(op)?;
                self.produce(op)
            }
            TtgOp::Acquire(_)
            | TtgOp::Fill(_)
            | TtgOp::Ready(_)
            | TtgOp::WaitReady
            | TtgOp::Poisoned
            | TtgOp::ReadPerm
            | TtgOp::Split(_)
            | TtgOp::Join
            | TtgOp::Consumed
            | TtgOp::Release
            | TtgOp::StoreIssue(_)
            | TtgOp::StoreWait
            | TtgOp::Finalize
            | TtgOp::Fence { .. } => self.copy(op),
            TtgOp::Source(..) => {
                self.copy(op)?;
                self.copied_stage(op)
            }
            TtgOp::SourceRows { .. } => self.rows_source(op, ttg),
            TtgOp::View { field, .. } => self.view(op, usize::from(*field)),
            TtgOp::Read => {
                let buffer = self.same(op.args[0])?;
                let layout = self.layout(op.results[0]);
                let value = self.read(buffer, &layout)?;
                self.make(op.results[0], value);
                Ok(())
            }
            TtgOp::Write => {
                let mut args = vec![self.same(op.args[0])?];
                for tile in &op.args[1..] {
                    args.push(self.own(*tile)?.1);
                }
                let written = self.one(op.kind.clone(), &args)?;
                self.make(op.results[0], written);
                Ok(())
            }
            TtgOp::ComputeIssue => {
                let value = self.started(id, op)?;
                self.make(op.results[0], value);
                Ok(())
            }
            TtgOp::AccStart(_) | TtgOp::AccMma | TtgOp::AccFinish => self.accumulator(id, op, ttg),
            TtgOp::Claim(..) => Err(self.unsupported("a claim of a barrier program")),
            TtgOp::ComputeWait | TtgOp::Rematerialize => {
                let result = op.results[0];
                if self.is_in_flight(op.args[0]) {
                    let value = self.same(op.args[0])?;
                    let value = self.retire(value)?;
                    return self.settle(result, value);
                }
                if self.k.ty(result).is_in_registers() {
                    let layout = self.layout(result);
                    let value = self.tile(op.args[0], &layout)?;
                    self.made[result.index()] = Some(value);
                    return Ok(());
                }
                let value = self.same(op.args[0])?;
                self.made[result.index()] = Some(value);
                Ok(())
            }
            TtgOp::Roles => self.roles(op),
        }
    }

    fn roles(&mut self, op: &Op) -> Laid<()> {
        let all = self.warps;
        let mut regions = Vec::new();
        if op.regions.len() > MOST_ROLES {
            let message = format!("the kernel has {} roles; at most {MOST_ROLES} are supported", op.regions.len());
            return Err(self.refused(message, "merge some of them"));
        }
        for (role, region) in op.regions.iter().enumerate() {
            self.warps = self.plan.roles.get(role).copied().unwrap_or(1);
            if !self.warps.is_power_of_two() {
                let name = self.k.roles.get(role).map_or_else(String::new, |r| r.name.clone());
                let message = format!("the role `{name}` has {} warps; the count must be a power of two", self.warps);
                let refused = self.refused(message, "give the role 1, 2, 4, 8 or 16 warps");
                // The place of the roles is that of the first one.
                let loc = self.k.block(*region).ops.first().map_or(refused.loc, |id| self.k.op(*id).loc);
                return Err(LowerError { loc, ..refused });
            }
            regions.push(self.b.begin_role());
            self.block(*region)?;
            self.b.end_role();
        }
        self.warps = all;
        self.b.roles(regions);
        Ok(())
    }

    /// Copies to a stage; where that is divided, fetches its tiles to registers first.
    fn produce(&mut self, op: &Op) -> Laid<()> {
        let of_ring = op.args.first().and_then(|slot| self.k.ty(*slot).ring());
        let divided = of_ring.is_some_and(|pipe| self.plan.fetched.contains(&pipe));
        if !divided || !matches!(op.kind, OpKind::Ttg(TtgOp::AsyncProduce { skipped: None, .. })) {
            return self.copy(op);
        }
        let mut args = Vec::new();
        for arg in &op.args {
            let new = self.same(*arg)?;
            args.push(if self.is_fetched(*arg) { self.fetch(*arg, new)? } else { new });
        }
        self.op(op.kind.clone(), &args).map(drop)
    }

    /// Whether a source of a copy to a stage is fetched to registers: one tile of whole bytes that fills its encoding. Rows that indices select
    /// are loaded element by element, which takes more registers.
    fn is_fetched(&self, source: Value) -> bool {
        let named = self.k.def_op(source).is_some_and(|op| matches!(op.kind, OpKind::Ttg(TtgOp::Source(..))));
        let fills = self.destination(source).is_some_and(|encoding| encoding.extents == self.extents(source));
        named && fills && self.elem(source).bits() >= 8
    }

    fn fetch(&mut self, old: Value, source: Value) -> Laid<Value> {
        let by = self.destination(old).map(|encoding| self.copied_by(encoding));
        let Some(by) = by else { return Err(self.internal("a source without a layout")) };
        let fetched = self.one(OpKind::Local(LocalOp::Fetch { guarded: false }), &[source])?;
        self.b.put(fetched, &by);
        if let Some(name) = self.k.value(old).name.clone() {
            self.b.name(fetched, &name);
        }
        Ok(fetched)
    }

    /// The encoding of the stage's tile to which a source is copied.
    fn destination(&self, source: Value) -> Option<&Encoding> {
        self.tree.users(source).iter().find_map(|id| {
            let op = self.k.op(*id);
            let field = op.args.get(1..)?.iter().position(|v| *v == source)?;
            let Ty::Token(Token::Slot, pipe) = self.k.ty(*op.args.first()?) else { return None };
            self.plan.stages.get(pipe.index())?.get(field)
        })
    }

    /// Repeats sources that are defined before the roles in the role that copies them, because their layout depends on the warps of that
    /// role.
    fn name_again(&mut self, op: &Op) -> Laid<()> {
        let before_roles = &self.k.block(self.k.body).ops;
        for value in op.args.iter().filter(|_| !self.k.roles.is_empty()) {
            let Def::Result(id, _) = self.k.value(*value).def else { continue };
            let named = self.k.op(id);
            if matches!(named.kind, OpKind::Ttg(TtgOp::Source(..))) && before_roles.contains(&id) {
                self.copy(named)?;
                self.copied_stage(named)?;
            }
        }
        Ok(())
    }

    /// Sets the layout by which threads copy a source.
    fn copied_stage(&mut self, op: &Op) -> Laid<()> {
        if let Some(encoding) = self.destination(op.results[0]).cloned() {
            let by = self.copied_by(&encoding);
            let source = self.same(op.results[0])?;
            self.b.put(source, &by);
        }
        Ok(())
    }

    fn rows_source(&mut self, op: &Op, ttg: &TtgOp) -> Laid<()> {
        let bits = self.destination(op.results[0]).map_or_else(|| self.elem(op.results[0]).bits(), |e| e.bits);
        let source = self.rows_named(op, ttg.clone(), bits)?;
        self.make(op.results[0], source);
        Ok(())
    }

    fn view(&mut self, op: &Op, field: usize) -> Laid<()> {
        let Ty::Token(_, pipe) = self.k.ty(op.args[0]) else { return Err(self.internal("a view of what is no stage")) };
        let encoding = self.plan.stages.get(pipe.index()).and_then(|fields| fields.get(field)).cloned();
        let Some(encoding) = encoding else { return Err(self.internal("a stage without an encoding")) };
        let right = self.same(op.args[0])?;
        let view = self.one(op.kind.clone(), &[right])?;
        self.b.put_shared(view, &encoding);
        self.make(op.results[0], view);
        Ok(())
    }
}
