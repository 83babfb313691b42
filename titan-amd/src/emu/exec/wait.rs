//! Counters, barriers, and the end of a wave.

use super::{Run, Step, World};
use crate::emu::fail::Fail;
use crate::emu::group::{Group, Queue};
use crate::emu::op::Op;
use crate::isa::Operand;
use titan_sim::engine::State;

impl Group<'_> {
    /// `s_waitcnt`: ISA §12.5, §4.4.
    pub(super) fn waitcnt(&mut self, wave: usize, op: &Op, world: &mut World<'_>) -> Run<()> {
        let imm = op.inst.operands().iter().find_map(|o| match o {
            Operand::Imm(v) => Some(v.cast_unsigned()),
            _ => None,
        });
        let imm = imm.unwrap_or(0);
        let (vm, lgkm) = (imm & 15 | imm >> 10 & 48, imm >> 8 & 15);
        self.wait_vm(wave, vm, world)?;
        self.wait_lgkm(wave, lgkm, world)
    }

    /// Waits until at most `at_most` operations of vector memory are in flight. Operations on flat addresses complete in any order: while
    /// one is in flight, only a wait for all operations guarantees a completion.
    fn wait_vm(&mut self, wave: usize, at_most: u32, world: &mut World<'_>) -> Run<()> {
        if at_most >= 63 || (at_most > 0 && !self.waves[wave].flat.is_empty()) {
            return Ok(());
        }
        self.wait_queue(wave, Queue::Vm, at_most, world)?;
        if at_most == 0 {
            self.waves[wave].flat.iter_mut().for_each(|f| f.1 = true);
            self.finish_flat(wave, world)?;
        }
        Ok(())
    }

    /// Waits for the local data share and scalar memory, which share a counter. Scalar loads complete in any order, so that a
    /// count above 0 guarantees no completion of them; for the others it guarantees as much as without scalar loads.
    fn wait_lgkm(&mut self, wave: usize, at_most: u32, world: &mut World<'_>) -> Run<()> {
        if at_most >= 15 || (at_most > 0 && !self.waves[wave].flat.is_empty()) {
            return Ok(());
        }
        self.wait_queue(wave, Queue::Lds, at_most, world)?;
        if at_most == 0 {
            self.wait_queue(wave, Queue::Smem, 0, world)?;
            self.waves[wave].flat.iter_mut().for_each(|f| f.2 = true);
            self.finish_flat(wave, world)?;
        }
        Ok(())
    }

    /// Completes the operations on flat addresses for which both counters were waited for.
    fn finish_flat(&mut self, wave: usize, world: &mut World<'_>) -> Run<()> {
        let flat = std::mem::take(&mut self.waves[wave].flat);
        let (done, rest): (Vec<_>, Vec<_>) = flat.into_iter().partition(|f| f.1 && f.2);
        self.waves[wave].flat = rest;
        if self.waves[wave].flat.is_empty() && !done.is_empty() {
            self.wait_queue(wave, Queue::Flat, 0, world)?;
        } else {
            for (op, ..) in done {
                self.complete(op, world)?;
            }
        }
        Ok(())
    }

    /// `s_barrier`: waits for all waves of the workgroup that have not ended; it does not wait for counters.
    pub(super) fn barrier(&mut self, wave: usize, world: &mut World<'_>) -> Run<Step> {
        let agent = self.agent(wave);
        self.engine.meet(&[agent], self.barrier, None, true, world.watch).map_err(Fail::from)?;
        Ok(if self.engine.agents().state(agent) == State::Ready { Step::Next } else { Step::Wait })
    }

    /// Ends a wave, which waits for its operations in flight: ISA §12.5, `S_ENDPGM`.
    pub(super) fn end(&mut self, wave: usize, world: &mut World<'_>) -> Run<()> {
        for queue in [Queue::Vm, Queue::Lds, Queue::Smem, Queue::Flat] {
            self.wait_queue(wave, queue, 0, world)?;
        }
        self.waves[wave].flat.clear();
        self.waves[wave].done = true;
        self.engine.exit(&[self.agent(wave)], world.watch).map_err(Fail::from)
    }
}
