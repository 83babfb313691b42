//! Where the sides of a ring find together.
//!
//! Between roles, each slot has an mbarrier that counts the threads that fill it: their copies arrive there by themselves
//! (`CopyArrive`), or they do after their stores. In round `r` its phase has parity `r mod 2`. And it has what its readers
//! say that they are done at, for the next round:
//!
//! * an mbarrier at which one lane of each reading warp arrives, after its lanes have met. The phase before the first is
//!   complete, so the first round waits for nothing; or
//! * a word for each reading role, in which one thread stores how often the slot was given back, after the role has met.
//!
//! Nobody is ever more than one phase ahead of who waits: the filler of round `r + 1` has waited for the readers of round `r`.

use super::{Mode, Stage};
use crate::ir::FreeBy;
use crate::ir::{Op, OpId, Pipe, Pred};
use crate::lane::{IntBin, OpKind, Region, Space};
use crate::lower::{Lower, LowerError, Reg};

/// The words of a ring between roles.
#[derive(Clone, Debug)]
pub(in super::super) struct Words {
    /// The buffer: for each slot 8 bytes of who waits for its bytes; behind all of these, for each slot, of who waits for its
    /// readers, by reader if they have words.
    buffer: u32,
    /// The roles that read, and their warps.
    readers: Vec<(usize, u32)>,
}

impl Lower<'_> {
    /// Makes the words of a ring, and has one thread initialise them.
    pub(super) fn words(&mut self, pipe: Pipe) -> Mode {
        let [fill, read] = super::sides(self.k, pipe);
        let warps = |role: &usize| self.k.roles.get(*role).map_or(1, |r| r.warps);
        let readers: Vec<(usize, u32)> = read.iter().map(|role| (*role, warps(role))).collect();
        let filling: u32 = fill.iter().map(warps).sum::<u32>() * self.target.lanes;
        let reading: u32 = readers.iter().map(|(_, warps)| warps).sum();
        let slots = self.k.pipe(pipe).map_or(1, |p| p.slots);
        let columns = 1 + if self.laid.free == FreeBy::Sequence { readers.len() } else { 1 };
        let bytes = 8 * slots * u32::try_from(columns).unwrap_or(2);
        let buffer = self.b.buffer(&format!("{}, who waits", self.k.pipe_name(pipe)), bytes, 8);
        self.touch(Region::Buffer(buffer), true);
        let first = self.is_first_thread();
        let base = self.b.one(OpKind::Buffer(buffer), &[]);
        let zero = self.b.i32(0);
        for word in 0..bytes / 8 {
            let at = self.b.add_const(base, i64::from(8 * word));
            if word >= slots && self.laid.free == FreeBy::Sequence {
                let store = OpKind::Store { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: true };
                self.b.op(store, &[at, zero, first]);
            } else {
                let count = if word < slots { filling } else { reading };
                self.b.op(OpKind::MbarrierInit { count, masked: true }, &[at, first]);
            }
        }
        Mode::Parted(Words { buffer, readers })
    }

    /// The word of a slot in a column: 0 is that of its bytes.
    fn ring_word(&mut self, pipe: Pipe, stage: Stage, column: usize) -> Option<Reg> {
        let ring = self.rings.get(pipe.index())?;
        let (Mode::Parted(words), slots) = (&ring.mode, ring.slots) else { return None };
        let buffer = words.buffer;
        let column = u32::try_from(column).unwrap_or(0);
        self.touch(Region::Ring(buffer), true);
        let base = self.b.one(OpKind::Buffer(buffer), &[]);
        let eight = self.b.i32(8);
        let skip = self.b.mul(stage.slot, eight);
        let at = self.b.add(base, skip);
        Some(self.b.add_const(at, i64::from(8 * slots * column)))
    }

    /// The parity of the phase of a round.
    fn parity(&mut self, round: Reg) -> Reg {
        let one = self.b.i32(1);
        self.b.and(round, one)
    }

    /// Waits until the readers of the round before have given a slot back.
    pub(super) fn wait_free(&mut self, pipe: Pipe, stage: Stage) {
        let Some(Mode::Parted(words)) = self.rings.get(pipe.index()).map(|r| r.mode.clone()) else { return };
        match self.laid.free {
            FreeBy::Mbarrier => {
                let Some(word) = self.ring_word(pipe, stage, 1) else { return };
                let parity = self.parity(stage.round);
                let one = self.b.i32(1);
                let before = self.b.int(IntBin::Xor, parity, one);
                self.b.op(OpKind::MbarrierWait, &[word, before]);
            }
            FreeBy::Sequence => {
                for reader in 0..words.readers.len() {
                    let Some(word) = self.ring_word(pipe, stage, 1 + reader) else { return };
                    self.b.op(OpKind::SequenceWait, &[word, stage.round]);
                }
            }
        }
    }

    /// The bytes of a stage are copied, or stored, or some of them one and some the other.
    pub(super) fn filled(&mut self, id: OpId, (pipe, stage): (Pipe, Stage), [copied, stored]: [bool; 2]) {
        let Some(word) = self.ring_word(pipe, stage, 0) else { return self.close_group(id) };
        if copied && !stored {
            self.b.op(OpKind::CopyArrive { masked: false }, &[word]);
            return;
        }
        if copied {
            self.b.op(OpKind::CopyCommit, &[]);
            self.b.op(OpKind::CopyWait(0), &[]);
        }
        self.b.op(OpKind::MbarrierArrive { count: 1, masked: false }, &[word]);
    }

    /// Waits for the bytes of a stage.
    pub(super) fn wait_ready(&mut self, id: OpId, op: &Op) -> Result<(), LowerError> {
        let (pipe, stage) = self.stage_of(op.args[0])?;
        if let Some(word) = self.ring_word(pipe, stage, 0) {
            let parity = self.parity(stage.round);
            self.b.op(OpKind::MbarrierWait, &[word, parity]);
        } else {
            if self.target.copy_async {
                let younger = self.groups.waits.get(&id).copied().unwrap_or(0);
                self.b.op(OpKind::CopyWait(younger), &[]);
            }
            // Here the threads meet: what each of them copied is there for all, and what they read before is free.
            let buffer = self.rings[pipe.index()].buffer;
            self.touch(Region::Buffer(buffer), false);
        }
        self.pass_on(op);
        Ok(())
    }

    /// This role reads a stage no more.
    pub(super) fn give_back(&mut self, pipe: Pipe, stage: Stage) {
        let Some(Mode::Parted(words)) = self.rings.get(pipe.index()).map(|r| r.mode.clone()) else { return };
        let reader = words.readers.iter().position(|(role, _)| Some(*role) == self.crew.role).unwrap_or(0);
        let column = if self.laid.free == FreeBy::Sequence { 1 + reader } else { 1 };
        let Some(word) = self.ring_word(pipe, stage, column) else { return };
        match self.laid.free {
            FreeBy::Mbarrier => {
                self.b.op(OpKind::WarpBarrier, &[]);
                let lane = self.b.one(OpKind::LaneId, &[]);
                let zero = self.b.i32(0);
                let first = self.b.cmp_u(Pred::Eq, lane, zero);
                self.b.op(OpKind::MbarrierArrive { count: 1, masked: true }, &[word, first]);
            }
            FreeBy::Sequence => {
                self.meet();
                let first = self.is_first_thread();
                let next = self.b.add_const(stage.round, 1);
                self.b.op(OpKind::StoreRelease { masked: true }, &[word, next, first]);
            }
        }
    }

    /// The warps of a role wait for each other.
    fn meet(&mut self) {
        if self.crew.warps == 1 {
            self.b.op(OpKind::WarpBarrier, &[]);
            return;
        }
        let id = self.crew.role.and_then(|r| u8::try_from(r + 1).ok()).unwrap_or(1);
        let threads = self.crew.warps * self.target.lanes;
        self.b.op(OpKind::NamedBarrier { id, threads, wait: true }, &[]);
    }

    /// Closes a commit group, where the assignment of virtual tokens says so.
    pub(in super::super) fn close_group(&mut self, id: OpId) {
        if self.groups.commits.contains(&id) {
            if self.target.copy_async {
                self.b.op(OpKind::CopyCommit, &[]);
            }
            self.copying = false;
        }
    }

    /// Nothing that these threads have started is under way after this.
    pub(super) fn drain(&mut self) {
        if self.target.copy_async && !self.rings.is_empty() {
            if self.crew.role.is_some() {
                // Copies of rings between roles are in no group yet.
                self.b.op(OpKind::CopyCommit, &[]);
            }
            self.b.op(OpKind::CopyWait(0), &[]);
        }
    }
}
