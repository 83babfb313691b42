//! `wgmma` and `setmaxnreg`: instructions of four warps.
//!
//! Each warp issues its own part of an MMA, 16 of the 64 rows, as an operation of its first thread; the other threads acquire
//! what that one acquires after `wgmma.wait_group`. The instructions of the warps are compared, see [`crate::emu::group`].

use super::{Fail, Run, Step, Who, World, misplaced};
use crate::emu::async_op::{GroupA, GroupMma};
use crate::emu::cluster::{Cluster, MULTIPLY, in_block};
use crate::emu::error::ErrorCode;
use crate::emu::group;
use crate::emu::job::{Job, What};
use crate::emu::op::Op;
use crate::emu::product::{Descriptor, Product, ROWS};
use crate::emu::products::Conflict;
use crate::emu::proxy::View;
use crate::emu::warp::Hold;
use titan_sim::engine::{AccessKind, Agent, Completion, Event, Helper, Observer as _, Op as AsyncOp, Place};

impl Cluster<'_> {
    pub(super) fn warpgroup(&mut self, who: Who, op: &Op, world: &mut World<'_>) -> Run<Step> {
        if who.active != u32::MAX {
            self.together(who, "an instruction of a warpgroup")?;
            let message = "an instruction of a warpgroup needs 32 threads in each warp, and no guard";
            return Err(Fail::new(ErrorCode::Divergence, message));
        }
        match op {
            Op::MultiplyFence => {
                self.step_group(who, [0; 2])?;
                if let Some(products) = &mut self.warps[who.warp].products {
                    products.fence();
                }
            }
            Op::Multiply(op) => self.multiply_group(who, op, world)?,
            Op::MultiplyCommit => {
                self.step_group(who, [0; 2])?;
                let agent = self.agent(who.warp, 0);
                self.engine.commit(agent, MULTIPLY, world.watch)?;
                if let Some(products) = &mut self.warps[who.warp].products {
                    products.commit();
                }
            }
            Op::MultiplyWait { at_most } => self.multiply_wait(who, *at_most, world)?,
            Op::SetMaxRegisters { count, increase } => return self.set_max_registers(who, *count, *increase),
            _ => return Err(misplaced()),
        }
        Ok(Step::Next)
    }

    /// Whether MMAs of a warp are in flight.
    pub(super) fn multiplies(&self, warp: usize) -> bool {
        self.warps[warp].products.as_ref().is_some_and(|p| p.any_in_flight())
    }

    /// Whether an MMA in flight accumulates into a register.
    pub(super) fn is_accumulator(&self, warp: usize, r: u32) -> bool {
        self.warps[warp].products.as_ref().is_some_and(|p| p.is_accumulator(r))
    }

    /// Records that the warps of a warpgroup execute the same instruction, with these operands.
    fn step_group(&mut self, who: Who, operands: [u64; 2]) -> Run<()> {
        let w = &self.warps[who.warp];
        let (rank, number) = (w.rank as usize, w.first as usize / 32);
        let complete = w.first / 128 * 128 + 128 <= self.env.threads;
        if !complete {
            let message = "the last warps of the block are fewer than the four of a warpgroup";
            return Err(Fail::new(ErrorCode::Divergence, message));
        }
        let group = &mut self.ctas[rank].groups[number / 4];
        group.step(number % 4, (who.pc, operands)).map_err(|other| self.apart(other, (who.pc, operands)))
    }

    fn apart(&self, (pc, _): group::Step, now: group::Step) -> Fail {
        let message = if pc == now.0 {
            "the warps of a warpgroup execute this with different operands".to_owned()
        } else {
            format!("another warp of the warpgroup executes PTX line {} instead", self.env.line(pc))
        };
        Fail::new(ErrorCode::Divergence, message).help("the four warps of a warpgroup execute the same instructions")
    }

    /// Checks at the end of a warp that it has executed all instructions that the others of its warpgroup have.
    pub(super) fn leave_group(&self, who: Who) -> Run<()> {
        let w = &self.warps[who.warp];
        if w.live & !who.active != 0 {
            return Ok(());
        }
        let number = w.first as usize / 32;
        let group = self.cta(who.warp).groups.get(number / 4);
        match group.and_then(|g| g.missed(number % 4)) {
            None => Ok(()),
            Some((pc, _)) => {
                let message = format!(
                    "the warp ends, and others of its warpgroup have executed PTX line {}, which it has not",
                    self.env.line(pc)
                );
                Err(Fail::new(ErrorCode::Divergence, message))
            }
        }
    }

    fn multiply_group(&mut self, who: Who, op: &GroupMma, world: &mut World<'_>) -> Run<()> {
        let b_bits = self.uniform(who, op.b_from, "a matrix descriptor")?;
        let (a_bits, operand) = match &op.a_from {
            GroupA::Descriptor(src) => (Some(self.uniform(who, *src, "a matrix descriptor")?), &[][..]),
            GroupA::Registers(regs) => (None, &regs[..]),
        };
        let adds = self.need_pred(who, op.adds)?;
        if adds != 0 && adds != u32::MAX {
            return Err(Fail::new(
                ErrorCode::Divergence,
                "whether the accumulator is added to differs within the warp",
            ));
        }
        self.step_group(who, [a_bits.unwrap_or(0), b_bits ^ u64::from(adds & 1)])?;
        self.check_registers(who, op, operand, adds != 0)?;
        let (a, b) = (a_bits.map(Descriptor::new).transpose()?, Descriptor::new(b_bits)?);
        let w = &self.warps[who.warp];
        let base = in_block(w.rank.into(), 0);
        let first = w.first as usize / 32 % 4 * ROWS;
        let product = Product { pc: who.pc, warp: who.warp, base, a, b, adds: adds != 0 };
        let after = w.products.as_ref().and_then(|p| p.last).into_iter().collect();
        let what = What::Multiply(Box::new(product));
        let agent = self.agent(who.warp, 0);
        let k = op.shape.k;
        let a_units = a.map_or_else(Vec::new, |a| a.units(op.mn_major[0], first..first + ROWS, k, op.a));
        let b_units = b.units(op.mn_major[1], 0..op.shape.n, k, op.b);
        let reads = merged(base, [a_units, b_units]);
        let mut view = View::default();
        for (address, len) in &reads {
            self.inside(*address, *len)
                .map_err(|f| Fail { message: format!("a matrix operand: {}", f.message), ..f })?;
            self.read_view(self.writer(agent.index()), *address, u64::from(*len), &mut view);
        }
        let job = AsyncOp {
            agent,
            class: MULTIPLY,
            after,
            signals: vec![],
            payload: Job { place: who.pc, what, view, map: None },
        };
        let id = self.engine.issue(job, false, Place::new(who.pc as usize), world.watch)?;
        for range in reads {
            self.tell_async(who, (0, Helper { class: MULTIPLY, op: id }), range, AccessKind::Read, world)?;
        }
        let w = &mut self.warps[who.warp];
        if let Some(products) = &mut w.products {
            products.issue(&op.d_regs, operand, id);
        }
        w.set_defined(&op.d_regs, false);
        if self.env.options.completion == Completion::Early {
            self.complete(id, world).map_err(|f| *f)?;
        }
        Ok(())
    }

    /// Checks whether an MMA may use its registers.
    fn check_registers(&self, who: Who, op: &GroupMma, operand: &[u32], adds: bool) -> Run<()> {
        let w = &self.warps[who.warp];
        let Some(products) = &w.products else { return Err(misplaced()) };
        let name = |r: u32| self.env.program.reg_names.get(r as usize).map_or("?", String::as_str);
        if !products.fenced {
            return Err(Fail::new(
                ErrorCode::InFlight,
                "there was no `wgmma.fence` before the first `wgmma.mma_async`",
            ));
        }
        match products.conflict(&op.d_regs, operand) {
            None => {}
            Some((r, Conflict::Unfenced)) => {
                let message = format!("register `{}` was written after the last `wgmma.fence`", name(r));
                let help = "execute `wgmma.fence` between ordinary writes of its registers and a `wgmma.mma_async`";
                return Err(Fail::new(ErrorCode::InFlight, message).help(help));
            }
            Some((r, Conflict::OtherAccumulator)) => {
                let message = format!("register `{}` belongs to another `wgmma` in flight", name(r));
                return Err(Fail::new(ErrorCode::InFlight, message).help("wait by `wgmma.wait_group` before"));
            }
        }
        let mut read = operand.iter().chain(op.d_regs.iter().filter(|r| adds && !products.is_accumulator(**r)));
        match read.find(|r| w.reg(**r).1 != u32::MAX) {
            None => Ok(()),
            Some(r) => {
                let message = format!("register `{}` is read and was never written", name(*r));
                Err(Fail::new(ErrorCode::Uninitialised, message))
            }
        }
    }

    fn multiply_wait(&mut self, who: Who, at_most: u32, world: &mut World<'_>) -> Run<()> {
        self.step_group(who, [at_most.into(), 0])?;
        let agent = self.agent(who.warp, 0);
        self.wait_groups(who, agent, MULTIPLY, at_most, world)?;
        let others: Vec<Agent> = (1..32).map(|lane| self.agent(who.warp, lane)).collect();
        world.watch.event(&Event::Fork { agent, into: &others })?;
        let w = &mut self.warps[who.warp];
        let free = w.products.as_mut().map_or_else(Vec::new, |p| p.wait(at_most));
        w.set_defined(&free, true);
        self.progress += 1;
        Ok(())
    }

    /// PTX ISA, "setmaxnreg": releases registers to the block's pool, or waits until it has enough.
    fn set_max_registers(&mut self, who: Who, count: u32, increase: bool) -> Run<Step> {
        let w = &self.warps[who.warp];
        let (rank, budget) = (w.rank as usize, w.budget);
        let misuse = if increase { count < budget } else { count > budget };
        if misuse {
            let verb = if increase { "raised" } else { "lowered" };
            let message = format!("the warp has {budget} registers for each thread, which cannot be {verb} to {count}");
            return Err(Fail::new(ErrorCode::Operand, message));
        }
        if increase {
            let wanted = (count - budget) * 32;
            if self.ctas[rank].free_registers < wanted {
                self.warps[who.warp].fragments[who.fragment].wait = Hold::Registers(wanted);
                return Ok(Step::Held);
            }
            self.ctas[rank].free_registers -= wanted;
        } else {
            self.ctas[rank].free_registers += (budget - count) * 32;
        }
        self.step_group(who, [count.into(), increase.into()])?;
        self.warps[who.warp].budget = count;
        self.progress += 1;
        Ok(Step::Next)
    }
}

/// The byte ranges of the 16-byte units of each operand: address with the block's rank, and number of bytes.
fn merged(base: u64, operands: [Vec<u64>; 2]) -> Vec<(u64, u32)> {
    let mut ranges = Vec::new();
    for mut units in operands {
        units.sort_unstable();
        units.dedup();
        let runs = units.chunk_by(|a, b| a + 16 == *b);
        ranges.extend(runs.map(|run| (base | run[0], u32::try_from(run.len() * 16).unwrap_or(u32::MAX))));
    }
    ranges
}
