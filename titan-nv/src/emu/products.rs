//! The registers of a warp that `wgmma` uses while it is in flight.
//!
//! | register | between issue and wait | before the issue |
//! |---|---|---|
//! | accumulator | may be used by a `wgmma` with the same accumulator, and by nothing else | its writes are followed by `wgmma.fence` |
//! | A operand | may be read, not written | its writes are followed by `wgmma.fence` |
//!
//! Source: PTX ISA, "wgmma.mma_async", "wgmma.fence", "wgmma.wait_group".

use titan_sim::engine::OpId;

/// An MMA in flight.
#[derive(Clone, Debug)]
struct InFlight {
    /// The commit group of the MMA, if it is committed.
    group: Option<u32>,
    accumulator: Vec<u32>,
    operand: Vec<u32>,
}

/// The registers that a warp's MMAs in flight use.
#[derive(Clone, Debug)]
pub struct Products {
    /// For each register, the number of MMAs in flight that accumulate into it, and of those that read it.
    accumulates: Vec<u16>,
    reads: Vec<u16>,
    /// For each register, whether it was written since the last `wgmma.fence`.
    unfenced: Vec<bool>,
    in_flight: Vec<InFlight>,
    committed: u32,
    /// Whether a `wgmma.fence` was executed at all.
    pub(crate) fenced: bool,
    /// The last MMA: those of a warp take effect in order.
    pub(crate) last: Option<OpId>,
    /// A register that was written while an MMA used it.
    pub clobbered: Option<u32>,
}

/// The reason why an MMA may not be issued with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// An MMA in flight accumulates into it, in another position or shape.
    OtherAccumulator,
    /// The register was written since the last fence.
    Unfenced,
}

impl Products {
    /// For a thread of so many registers.
    #[must_use]
    pub fn new(n_regs: usize) -> Products {
        Products {
            accumulates: vec![0; n_regs],
            reads: vec![0; n_regs],
            unfenced: vec![false; n_regs],
            in_flight: Vec::new(),
            committed: 0,
            fenced: false,
            last: None,
            clobbered: None,
        }
    }

    /// Records that an ordinary instruction writes a register.
    pub fn write(&mut self, r: usize) {
        self.unfenced[r] = true;
        if self.accumulates[r] + self.reads[r] > 0 {
            self.clobbered = u32::try_from(r).ok();
        }
    }

    /// Whether an MMA in flight accumulates into a register.
    pub fn is_accumulator(&self, r: u32) -> bool {
        self.accumulates.get(r as usize).is_some_and(|n| *n > 0)
    }

    /// Records a fence: ordinary instructions have written the registers.
    pub fn fence(&mut self) {
        self.fenced = true;
        self.unfenced.fill(false);
    }

    /// Whether an MMA may use these registers; if not, the register and the reason.
    pub fn conflict(&self, accumulator: &[u32], operand: &[u32]) -> Option<(u32, Conflict)> {
        let same = |p: &InFlight| p.accumulator == accumulator;
        let meets = |p: &InFlight, r: &u32| p.accumulator.contains(r);
        let others = self.in_flight.iter().filter(|p| !same(p));
        for p in others {
            if let Some(r) = accumulator.iter().chain(operand).find(|r| meets(p, r)) {
                return Some((*r, Conflict::OtherAccumulator));
            }
            if let Some(r) = accumulator.iter().find(|r| p.operand.contains(r)) {
                return Some((*r, Conflict::OtherAccumulator));
            }
        }
        if let Some(r) = operand.iter().find(|r| accumulator.contains(r) || self.is_accumulator(**r)) {
            return Some((*r, Conflict::OtherAccumulator));
        }
        let unfenced = accumulator.iter().chain(operand).find(|r| self.unfenced[**r as usize]);
        unfenced.map(|r| (*r, Conflict::Unfenced))
    }

    /// Records the issue of an MMA.
    pub fn issue(&mut self, accumulator: &[u32], operand: &[u32], op: OpId) {
        accumulator.iter().for_each(|r| self.accumulates[*r as usize] += 1);
        operand.iter().for_each(|r| self.reads[*r as usize] += 1);
        let (accumulator, operand) = (accumulator.to_vec(), operand.to_vec());
        self.in_flight.push(InFlight { group: None, accumulator, operand });
        self.last = Some(op);
    }

    /// Commits the MMAs since the last commit as a group.
    pub fn commit(&mut self) {
        for p in &mut self.in_flight {
            p.group.get_or_insert(self.committed);
        }
        self.committed += 1;
    }

    /// Waits for all but the last groups; returns the accumulators that become accessible again.
    pub fn wait(&mut self, at_most: u32) -> Vec<u32> {
        let done = self.committed.saturating_sub(at_most);
        let mut free = Vec::new();
        let (accumulates, reads) = (&mut self.accumulates, &mut self.reads);
        self.in_flight.retain(|p| {
            let over = p.group.is_some_and(|g| g < done);
            if over {
                p.operand.iter().for_each(|r| reads[*r as usize] -= 1);
                for r in &p.accumulator {
                    accumulates[*r as usize] -= 1;
                    if accumulates[*r as usize] == 0 {
                        free.push(*r);
                    }
                }
            }
            !over
        });
        free
    }

    /// Whether an MMA may still use registers.
    #[must_use]
    pub fn any_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }
}
