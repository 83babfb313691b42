//! Counters, barriers, and the end of a wave.

use super::{Run, Step, World};
use crate::emu::fail::Fail;
use crate::emu::group::{Group, Queue};
use crate::emu::op::Op;
use crate::emu::wave::Counter;
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

    /// Waits until at most `at_most` operations of vector memory are in flight. While one of generic addresses is among them, only a wait
    /// for all operations guarantees a completion.
    fn wait_vm(&mut self, wave: usize, at_most: u32, world: &mut World<'_>) -> Run<()> {
        if at_most >= 63 || (at_most > 0 && self.waves[wave].in_order(Counter::Vm).has_generic()) {
            return Ok(());
        }
        self.wait_queue(wave, Queue::Vm, at_most, world)
    }

    /// Waits for the local data share and scalar memory, which share a counter. Scalar loads complete in any order, so that a
    /// count above 0 guarantees no completion of them; for the others it guarantees as much as without scalar loads.
    fn wait_lgkm(&mut self, wave: usize, at_most: u32, world: &mut World<'_>) -> Run<()> {
        if at_most >= 15 || (at_most > 0 && self.waves[wave].in_order(Counter::Lds).has_generic()) {
            return Ok(());
        }
        self.wait_queue(wave, Queue::Lds, at_most, world)?;
        if at_most == 0 {
            self.wait_queue(wave, Queue::Smem, 0, world)?;
        }
        Ok(())
    }

    /// `s_barrier`: waits for all waves of the workgroup that have not ended. It waits for no counter, but what is issued after it comes
    /// after what was issued before it, in the memory that the workgroup sees.
    pub(super) fn barrier(&mut self, wave: usize, world: &mut World<'_>) -> Run<Step> {
        self.perform_all(wave, world)?;
        self.tell_held(wave, world)?;
        let agent = self.agent(wave);
        self.engine.meet(&[agent], self.barrier, None, true, world.watch).map_err(Fail::from)?;
        Ok(if self.engine.agents().state(agent) == State::Ready { Step::Next } else { Step::Wait })
    }

    /// Ends a wave, which waits for its operations in flight: ISA §12.5, `S_ENDPGM`.
    pub(super) fn end(&mut self, wave: usize, world: &mut World<'_>) -> Run<()> {
        for queue in [Queue::Vm, Queue::Lds, Queue::Smem] {
            self.wait_queue(wave, queue, 0, world)?;
        }
        self.tell_held(wave, world)?;
        self.waves[wave].done = true;
        let agent = self.agent(wave);
        world.watch.ends(agent);
        self.engine.exit(&[agent], world.watch).map_err(Fail::from)
    }
}
