//! Blocks, loops, branches and roles. Operations not on rings are copied; loops and branches carry the clocks that advance in them.

use super::filling::Filling;
use super::{Expand, Made, Moving, Registers, Stage};
use crate::analysis::sides;
use crate::ir::{Block, Family, Flow, LocalOp, NvOp, Op, OpId, OpKind, Pipe, Ty, Value};

impl Expand<'_> {
    pub(super) fn block(&mut self, block: Block) -> Made<()> {
        for id in &self.k.block(block).ops {
            self.visit(*id)?;
        }
        Ok(())
    }

    fn visit(&mut self, id: OpId) -> Made<()> {
        let op = self.k.op(id);
        self.at = Some(id);
        self.b.set_loc(op.loc);
        if let OpKind::Store(unit) = op.kind {
            let args = self.all_same(&op.args)?;
            return self.store(unit, args);
        }
        if let OpKind::Print(_) = op.kind {
            return self.print(op);
        }
        match op.kind.family() {
            Family::Ttg(ttg) => self.ring_op(op, ttg),
            Family::Local(LocalOp::Settle { .. }) => Err(self.internal("a wait that is not counted")),
            Family::Local(LocalOp::Alloc { elem, shape }) => self.alloc(op, *elem, *shape),
            Family::Flow(Flow::For(_) | Flow::Loop) => self.looped(op),
            Family::Flow(Flow::If) => self.branch(op),
            Family::Flow(Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return) => self.leave(op),
            // These operations are not on rings.
            Family::Data(_) | Family::Local(_) | Family::Region(_) | Family::Nv(_) | Family::Amd(_) => self.copy(op),
        }
    }

    /// Copies an operation, with the combining function of a reduction.
    pub(super) fn copy(&mut self, op: &Op) -> Made<()> {
        let args = self.all_same(&op.args)?;
        let results = match op.regions.first() {
            Some(region) => {
                let (body, both) = self.b.begin_combine(self.b.ty(args[0]).elem());
                for (old, new) in self.k.block(*region).args.iter().zip(both) {
                    self.make(*old, new);
                }
                self.moving.push(Moving { is_loop: false, clocks: Vec::new() });
                self.block(*region)?;
                self.moving.pop();
                let value = self.b.end_combine(op.kind.clone(), &args, body);
                vec![value.map_err(|e| self.internal(e.to_string()))?]
            }
            None => self.op(op.kind.clone(), &args)?,
        };
        for (old, new) in op.results.iter().zip(results) {
            self.make(*old, new);
        }
        Ok(())
    }

    /// The new operands for old carried values: for a token, its slot and its parity or round, depending on its ring.
    fn given(&self, old: &[Value]) -> Made<Vec<Value>> {
        let mut out = Vec::new();
        for value in old {
            match (self.k.ty(*value), self.stages.get(value)) {
                (Ty::Token(..), Some(stage)) => out.extend([stage.slot, stage.turn]),
                (_, _) => out.push(self.same(*value)?),
            }
        }
        Ok(out)
    }

    /// The types of carried values.
    fn types(&self, old: &[Value]) -> Vec<Ty> {
        let of = |v: &Value| {
            let ty = self.k.ty(*v);
            if matches!(ty, Ty::Token(..)) { vec![Ty::I32; 2] } else { vec![ty] }
        };
        old.iter().flat_map(of).collect()
    }

    /// Binds old values to the first new ones; returns the remaining new ones.
    fn take<'v>(&mut self, old: &[Value], new: &'v [Value]) -> &'v [Value] {
        let mut rest = new;
        for value in old {
            match (self.k.ty(*value), rest) {
                (Ty::Token(_, pipe), [slot, turn, more @ ..]) => {
                    self.stages.insert(*value, Stage { pipe: pipe.index(), slot: *slot, turn: *turn });
                    rest = more;
                }
                (_, [one, more @ ..]) => {
                    self.make(*value, *one);
                    rest = more;
                }
                (_, []) => {}
            }
        }
        rest
    }

    fn looped(&mut self, op: &Op) -> Made<()> {
        let body = op.regions[0];
        let args = self.k.block(body).args.clone();
        let moving = self.moving_in(&op.regions);
        let (open, carried) = if let OpKind::For(kind) = &op.kind {
            let (bounds, init) = op.args.split_at(3);
            let bounds = self.all_same(bounds)?;
            let init = [self.given(init)?, self.clocks(&moving)].concat();
            let open = self.b.begin_for(*kind, [bounds[0], bounds[1], bounds[2]], &init);
            let open = open.map_err(|e| self.internal(e.to_string()))?;
            if let Some(index) = open.index {
                self.make(args[0], index);
            }
            (open, args[1..].to_vec())
        } else {
            let init = [self.given(&op.args)?, self.clocks(&moving)].concat();
            (self.b.begin_loop(&init), args)
        };
        let inside = open.carried.clone();
        let clocks = self.take(&carried, &inside);
        self.set_clocks(&moving, clocks);
        self.moving.push(Moving { is_loop: true, clocks: moving.clone() });
        self.make_memory_in_loop(&moving)?;
        self.block(body)?;
        self.moving.pop();
        let mut tys = self.types(&op.results);
        tys.extend(moving.iter().map(|_| Ty::I32));
        let out = self.b.end_loop(open, &tys);
        self.receive(op, &out, &moving);
        Ok(())
    }

    /// Binds the old results to the new ones, which are followed by the clocks.
    fn receive(&mut self, op: &Op, out: &[Value], moving: &[super::ring::ClockPart]) {
        let clocks = self.take(&op.results, out);
        self.set_clocks(moving, clocks);
    }

    fn branch(&mut self, op: &Op) -> Made<()> {
        let cond = self.same(op.args[0])?;
        let moving = self.moving_in(&op.regions);
        let before = self.clocks(&moving);
        let mut open = self.b.begin_if(cond);
        self.moving.push(Moving { is_loop: false, clocks: moving.clone() });
        self.block(op.regions[0])?;
        self.b.begin_else(&mut open);
        self.set_clocks(&moving, &before);
        match op.regions.get(1) {
            Some(other) => self.block(*other)?,
            None => self.b.terminate(OpKind::Yield, &before),
        }
        self.moving.pop();
        let mut tys = self.types(&op.results);
        tys.extend(moving.iter().map(|_| Ty::I32));
        let out = self.b.end_if(open, &tys);
        self.receive(op, &out, &moving);
        Ok(())
    }

    /// Lowers a terminator, which passes the clocks too.
    fn leave(&mut self, op: &Op) -> Made<()> {
        let mut args = self.given(&op.args)?;
        let carrier = if let OpKind::Break(n) | OpKind::Continue(n) = op.kind {
            self.moving.iter().rev().filter(|m| m.is_loop).nth(n as usize)
        } else {
            // A `yield` ends the enclosing operation.
            self.moving.last().filter(|_| op.kind == OpKind::Yield)
        };
        args.extend(carrier.map(|m| self.clocks(&m.clocks)).unwrap_or_default());
        self.b.terminate(op.kind.clone(), &args);
        Ok(())
    }

    /// The number of registers per thread of each role, if roles that only start bulk copies can release some for the others: the number
    /// that they keep is enough for addresses and counters, and the sum is at most the number with which all threads begin. Empty if there
    /// is no benefit.
    fn pool(&self, op: &Op) -> Vec<u32> {
        let (roles, each) = (&self.k.roles, self.target.role_warps * self.laid.lanes);
        let threads: u32 = roles.iter().map(|r| r.warps * self.laid.lanes).sum();
        let entry = self.target.equal_registers(threads);
        let giving: Vec<usize> = (0..roles.len()).filter(|role| self.only_copies(op, *role)).collect();
        let taking = (0..roles.len()).filter(|role| !giving.contains(role));
        let taking: u32 = taking.map(|role| roles[role].warps * self.laid.lanes).sum();
        // For sm_120a, ptxas 12.9 divides by a subroutine, and ignores `setmaxnreg` beside calls (C7506). Only MMAs of warpgroups need it.
        let warps = self.target.group_atoms.is_empty();
        if warps || each <= self.laid.lanes || giving.is_empty() || taking == 0 || entry >= self.target.registers {
            return Vec::new();
        }
        let Registers { copying, copying_to_many, few_rings, most } = self.registers;
        let kept = |role: &usize| {
            let filled =
                (0..self.rings.len()).filter(|ring| sides::of(self.k, Pipe::new(*ring))[0].contains(role)).count();
            if filled > few_rings { copying_to_many } else { copying }
        };
        let given: u32 = giving.iter().map(|role| kept(role) * roles[*role].warps * self.laid.lanes).sum();
        let more = ((entry * threads - given) / taking / 8 * 8).min(most);
        (0..roles.len()).map(|role| if giving.contains(&role) { kept(&role) } else { more }).collect()
    }

    /// Whether a role starts bulk copies, reads no ring, and holds no tiles.
    fn only_copies(&self, op: &Op, role: usize) -> bool {
        let sides = (0..self.rings.len()).map(|ring| (ring, sides::of(self.k, Pipe::new(ring))));
        let (mut fills, mut reads) = (false, false);
        for (ring, [fill, read]) in sides {
            let by_one = self.rings[ring].filling == Filling::Bulk;
            fills |= fill.contains(&role) && by_one;
            reads |= read.contains(&role) || fill.contains(&role) && !by_one;
        }
        let mut holds = false;
        if let Some(region) = op.regions.get(role) {
            self.k
                .walk_block(*region, &mut |_, op| holds |= op.results.iter().any(|v| self.k.ty(*v).is_in_registers()));
        }
        fills && !reads && !holds
    }

    /// Lowers the roles, each with its own clocks and commit groups.
    pub(super) fn roles(&mut self, op: &Op) -> Made<()> {
        let (warps, start) = (self.warps, self.rings.iter().map(|r| r.clocks).collect::<Vec<_>>());
        let mut regions = Vec::new();
        let pool = self.pool(op);
        for (role, region) in op.regions.iter().enumerate() {
            self.rings.iter_mut().zip(&start).for_each(|(ring, start)| ring.clocks = *start);
            self.warps = self.k.roles.get(role).map_or(1, |r| r.warps);
            self.role = Some(role);
            regions.push(self.b.begin_role());
            if let Some(registers) = pool.get(role) {
                self.op(OpKind::Nv(NvOp::SetMaxNReg { registers: *registers }), &[])?;
            }
            self.moving.push(Moving { is_loop: false, clocks: Vec::new() });
            self.block(*region)?;
            self.moving.pop();
            self.b.end_role();
        }
        self.warps = warps;
        self.role = None;
        self.rendezvous()?;
        self.b.roles(regions);
        self.rendezvous()
    }

    /// A barrier of the programs of a cluster: before the roles, because the barriers of all programs must be initialised, and after them,
    /// because no program may end while others copy to it or arrive at its barriers.
    fn rendezvous(&mut self) -> Made<()> {
        if self.laid.cluster > 1 {
            self.op(OpKind::Nv(NvOp::ClusterArrive), &[])?;
            self.op(OpKind::Nv(NvOp::ClusterWait), &[])?;
        }
        Ok(())
    }
}
