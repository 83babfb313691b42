//! Barriers and fences of a block.

use super::access::{fence_of, observed};
use super::{Fail, Run, Step, Who, misplaced};
use crate::emu::cluster::{Cluster, NOTHING};
use crate::emu::error::ErrorCode;
use crate::emu::op::{Dst, Op, PredSrc, Reduce, Src};
use crate::emu::warp::{Hold, lanes_of};
use crate::emu::watch::Watch;
use titan_sim::engine::{Event, Observer as _, RendezvousId, State};

impl Cluster<'_> {
    pub(super) fn synchronise(&mut self, who: Who, op: &Op, watch: &mut Watch) -> Run<Step> {
        match op {
            Op::Barrier { id, count, waits, aligned, reduce } => {
                self.barrier(who, (*id, *count), (*waits, *aligned), *reduce, watch)
            }
            Op::WarpBarrier { mask } => self.warp_barrier(who, *mask, watch),
            Op::Fence { acquire, release } => {
                for lane in lanes_of(who.active) {
                    let agent = self.agent(who.warp, lane);
                    if *acquire {
                        let (space, address) = observed(agent);
                        watch.event(&Event::Acquire { agent, space, address })?;
                    }
                    if *release {
                        let (space, address) = fence_of(agent);
                        watch.event(&Event::Release { agent, space, address })?;
                    }
                }
                Ok(Step::Next)
            }
            _ => Err(misplaced()),
        }
    }

    /// The value of a source that must be the same in all active threads.
    pub(super) fn uniform(&self, who: Who, src: Src, what: &str) -> Run<u64> {
        let values = self.need(who, src)?;
        let first = values[who.active.trailing_zeros() as usize & 31];
        match lanes_of(who.active).find(|l| values[*l] != first) {
            None => Ok(first),
            Some(lane) => {
                let message = format!("{what} differs within the warp: {first} and {}", values[lane]);
                Err(Fail::new(ErrorCode::Divergence, message).lane(lane))
            }
        }
    }

    /// Checks that all threads of the warp that have not ended execute this instruction together. If others end later, it is executed then.
    pub(super) fn together(&self, who: Who, what: &str) -> Run<()> {
        let missing = self.warps[who.warp].live & !who.active;
        if missing == 0 {
            return Ok(());
        }
        let message = format!(
            "{what} is executed by threads {:#010x} of the warp, and threads {missing:#010x} have not come with them",
            who.active
        );
        let fail =
            Fail::new(ErrorCode::Divergence, message).lane(missing.trailing_zeros() as usize).absent(missing, false);
        Err(fail.help("instructions that are `.aligned` need all threads of the warp at the same time"))
    }

    fn barrier(
        &mut self,
        who: Who,
        (id, count): (Src, Option<Src>),
        (waits, aligned): (bool, bool),
        reduce: Option<(Reduce, Dst, PredSrc)>,
        watch: &mut Watch,
    ) -> Run<Step> {
        if aligned {
            self.together(who, "a barrier")?;
        }
        if self.part(who) {
            return Ok(Step::Changed);
        }
        let number = self.uniform(who, id, "the barrier")?;
        let number = usize::try_from(number).ok().filter(|n| *n < self.cta(who.warp).named.len());
        let Some(number) = number else {
            return Err(Fail::new(ErrorCode::Barrier, "a block has the barriers 0 to 15"));
        };
        let expected = match count {
            None => None,
            Some(src) => {
                let n = self.uniform(who, src, "the number of threads")?;
                if n == 0 || n % 32 != 0 || n > 1024 {
                    let message = format!("{n} threads: their number is a multiple of 32, up to 1024");
                    return Err(Fail::new(ErrorCode::Barrier, message));
                }
                u32::try_from(n).ok()
            }
        };
        if let Some((_, _, p)) = reduce {
            let holds = self.need_pred(who, p)? & who.active;
            let rank = self.warps[who.warp].rank as usize;
            let g = &mut self.ctas[rank].gathering[number];
            g.count += holds.count_ones();
            g.all &= holds == who.active;
            g.any |= holds != 0;
        }
        self.meet(who, number, (expected, waits), reduce, watch)
    }

    fn meet(
        &mut self,
        who: Who,
        number: usize,
        (expected, waits): (Option<u32>, bool),
        reduce: Option<(Reduce, Dst, PredSrc)>,
        watch: &mut Watch,
    ) -> Run<Step> {
        let place = self.cta(who.warp).named[number];
        let generation = self.generation(place);
        let agents = self.agents(who.warp, who.active);
        watch.at(&agents, who.pc)?;
        self.engine.meet(&agents, place, expected, waits, watch)?;
        self.progress += 1;
        self.settle_reductions();
        let barrier = u32::try_from(number).unwrap_or(0);
        let hold = match reduce {
            Some((op, dst, _)) => Hold::Reduction { barrier, generation, op, dst },
            None => Hold::Agents,
        };
        let blocked = self.engine.agents().state(agents[0]) != State::Ready;
        if !blocked && reduce.is_none() {
            return Ok(Step::Next);
        }
        // The result of the reduction is read when the fragment runs again.
        let fragment = &mut self.warps[who.warp].fragments[who.fragment];
        fragment.wait = hold;
        fragment.pc = who.pc + 1;
        Ok(Step::Held)
    }

    /// If only some threads of a fragment execute an instruction that waits, splits them from the others, which continue.
    pub(super) fn part(&mut self, who: Who) -> bool {
        let w = &mut self.warps[who.warp];
        let rest = w.fragments[who.fragment].mask & !who.active;
        if rest != 0 {
            w.split(who.fragment, None, &[(who.pc + 1, rest), (who.pc, who.active)]);
        }
        rest != 0
    }

    fn generation(&self, place: RendezvousId) -> u32 {
        self.engine.meeting(place).map_or(0, titan_sim::engine::Rendezvous::generation)
    }

    /// Moves the operands of reductions whose barrier has completed to their results.
    fn settle_reductions(&mut self) {
        for cta in &mut self.ctas {
            for number in 0..cta.named.len() {
                let Some(m) = self.engine.meeting(cta.named[number]) else { continue };
                let gathered = cta.gathering[number];
                let touched = gathered.count > 0 || gathered.any || !gathered.all;
                if m.arrived() == 0 && m.generation() > 0 {
                    let key = (u32::try_from(number).unwrap_or(0), m.generation() - 1);
                    cta.gathering[number] = NOTHING;
                    if touched || !cta.gathered.contains_key(&key) {
                        cta.gathered.insert(key, gathered);
                    }
                    // Results of earlier completions are no longer read.
                    if let Some(old) = key.1.checked_sub(2) {
                        cta.gathered.remove(&(key.0, old));
                    }
                }
            }
        }
    }

    fn warp_barrier(&mut self, who: Who, mask: Src, watch: &mut Watch) -> Run<Step> {
        let mask = self.membership(who, mask)?;
        if mask & self.warps[who.warp].live & !who.active == 0 {
            self.tell_warp(who.warp, who.active, watch)?;
            return Ok(Step::Next);
        }
        if self.part(who) {
            return Ok(Step::Changed);
        }
        let w = &mut self.warps[who.warp];
        w.fragments[who.fragment].wait = Hold::Warp(mask);
        w.fragments[who.fragment].pc = who.pc + 1;
        self.settle(who.warp, watch)?;
        Ok(Step::Held)
    }

    /// Completes every `bar.warp.sync` of a warp at which all its threads have arrived.
    pub(super) fn settle(&mut self, warp: usize, watch: &mut Watch) -> Run<()> {
        self.settle_reductions();
        let masks: Vec<u32> = self.warps[warp]
            .fragments
            .iter()
            .filter_map(|f| match f.wait {
                Hold::Warp(mask) => Some(mask),
                Hold::None | Hold::Agents | Hold::Reduction { .. } | Hold::Registers(_) | Hold::Ends { .. } => None,
            })
            .collect();
        for mask in masks {
            if let Some(here) = self.warps[warp].warp_meeting(mask).filter(|h| *h != 0) {
                self.progress += 1;
                self.tell_warp(warp, here, watch)?;
                // Their position is behind the barrier, where they may be merged with other fragments.
                let waiting: Vec<u32> =
                    self.warps[warp].fragments.iter().filter(|f| f.mask & here != 0).map(|f| f.mask).collect();
                for mask in waiting {
                    let w = &mut self.warps[warp];
                    if let Some(f) = w.fragments.iter().position(|f| f.mask == mask) {
                        let pc = w.fragments[f].pc;
                        w.advance(f, pc);
                    }
                }
            }
        }
        Ok(())
    }

    fn tell_warp(&self, warp: usize, mask: u32, watch: &mut Watch) -> Run<()> {
        let agents = self.agents(warp, mask);
        let event = Event::Meet { rendezvous: RendezvousId::new(usize::from(u16::MAX)), waited: &agents, passed: &[] };
        Ok(watch.event(&event)?)
    }

    /// The member mask of an instruction: the same in all active threads, which are all members.
    pub(super) fn membership(&self, who: Who, mask: Src) -> Run<u32> {
        let mask = self.uniform(who, mask, "the member mask")?;
        let mask = u32::try_from(mask & 0xFFFF_FFFF).unwrap_or(0);
        let outside = who.active & !mask;
        if outside != 0 {
            let message = format!("threads {outside:#010x} of the warp are not in the member mask {mask:#010x}");
            return Err(Fail::new(ErrorCode::Divergence, message).lane(outside.trailing_zeros() as usize));
        }
        Ok(mask)
    }
}
