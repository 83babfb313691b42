//! Rings: their shared memory, their clocks, and the waits of their sides.

use super::filling::{Filling, is_loaded};
use super::{Expand, Made, Stage};
use crate::analysis::sides;
use crate::collections::SortedSet;
use crate::ir::{
    BinOp, Block, Claim, Elem, Encoding, EncodingId, Fill, FreeBy, Kernel, Loc, NvOp, OpKind, Pipe, Pred, RegionOp,
    TileShape, TtgOp, Ty, Value,
};

/// A ring, a side of it, and a component of that side's clock: the slot, or the parity or number of the round.
pub(super) type ClockPart = (usize, usize, usize);

/// The synchronization between the sides of a ring.
#[derive(Clone, Debug)]
pub(super) enum Mode {
    /// By commit groups of copies, if one warp set fills and reads it.
    Counted,
    /// By two mbarriers for each slot: copies arrive at `full`, readers at `empty`.
    Mbarriers { full: Value, empty: Value },
    /// By `full` for copies, and for each reading role a counter of its releases for each slot.
    Sequence { full: Value, words: Vec<Value>, readers: Vec<usize> },
}

/// A ring in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// The region; `None` until it is created.
    pub(super) region: Option<Value>,
    /// The size of a slot in bytes.
    stride: u32,
    /// The offsets and encodings of the tiles of a stage.
    pub(super) fields: Vec<(u32, EncodingId)>,
    pub(super) slots: u32,
    pub(super) mode: Mode,
    /// The clocks of the filling and of the reading side: the next slot, and its parity or number of rounds.
    pub(super) clocks: [[Value; 2]; 2],
    pub(super) filling: Filling,
    /// Whether some of its copies are for all programs of the cluster; a slot is then free when the readers of all programs have released
    /// it.
    pub(super) shared: bool,
    /// For rings whose stages may be poisoned: a word for each slot, which is not 0 if the stage is poisoned.
    pub(super) poison: Option<Value>,
}

/// The ring whose clock an operation advances, and whether that is the clock of the reading side.
fn advances(kind: &OpKind) -> Option<(Pipe, bool)> {
    let OpKind::Ttg(TtgOp::Acquire(pipe) | TtgOp::Ready(pipe)) = kind else { return None };
    Some((*pipe, matches!(kind, OpKind::Ttg(TtgOp::Ready(_)))))
}

fn may_be_poison(kernel: &Kernel, pipe: Pipe) -> bool {
    let mut found = false;
    kernel.walk(&mut |_, op| {
        let poisons = matches!(
            op.kind,
            OpKind::Ttg(TtgOp::Fill(Fill::Poison) | TtgOp::AsyncProduce { skipped: Some(Fill::Poison), .. })
        );
        found |= poisons && op.args.first().is_some_and(|v| matches!(kernel.ty(*v), Ty::Token(_, p) if p == pipe));
    });
    found
}

/// The initialisations of barriers and counters.
#[derive(Default)]
struct Inits {
    /// The ring's location, the operation, and what it initialises.
    ops: Vec<(Loc, NvOp, Value)>,
    /// Whether bulk copies or threads of other programs arrive at one of the barriers: then a fence must follow its initialisation.
    fenced: bool,
}

impl Expand<'_> {
    /// Creates the memory of every ring, and initialises its barriers and counters.
    pub(super) fn make_rings(&mut self) -> Made<()> {
        let mut inits = Inits::default();
        for index in 0..self.k.pipes.len() {
            let pipe = Pipe::new(index);
            let slots = self.k.pipes[index].slots;
            self.b.set_loc(self.k.pipes[index].loc);
            let mut fields = Vec::new();
            let (mut bytes, mut align) = (0u32, 16u32);
            for id in self.laid.stages.get(index).into_iter().flatten() {
                let Some(encoding) = self.laid.encodings.get(id.index()) else { continue };
                // Any engine may fill the ring.
                let own = encoding.align().max(self.target.stage_alignment());
                bytes = bytes.next_multiple_of(own);
                align = align.max(own);
                fields.push((bytes, *id));
                bytes = bytes.saturating_add(encoding.bytes());
            }
            let stride = bytes.next_multiple_of(align);
            let clocks = [[self.b.i32(0); 2]; 2];
            self.rings.push(Ring {
                region: None,
                stride,
                fields,
                slots,
                mode: Mode::Counted,
                clocks,
                filling: Filling::Threads,
                shared: false,
                poison: None,
            });
            if self.loops_around_memory(index) == 0 {
                self.make_memory(index)?;
            }
            if sides::joins_roles(self.k, pipe) {
                self.rings[index].filling = self.filling(pipe);
                self.rings[index].shared = self.rings[index].filling.has_boxes() && self.is_shared(pipe);
                self.rings[index].mode = self.join(pipe, slots, &mut inits)?;
            }
        }
        // One thread executes all of them, one after the other, and one fence is enough for all.
        for (loc, op, words) in inits.ops {
            self.b.set_loc(loc);
            self.op(OpKind::Nv(op), &[words])?;
        }
        if inits.fenced {
            self.op(OpKind::Nv(NvOp::FenceMbarrierInit), &[])?;
        }
        Ok(())
    }

    /// The loop depth at which the memory of a ring is created.
    fn loops_around_memory(&self, ring: usize) -> usize {
        self.anew.get(ring).copied().unwrap_or(0)
    }

    /// Creates the memory of the rings that restart in the innermost open loop, in which these clocks advance.
    pub(super) fn make_memory_in_loop(&mut self, moving: &[ClockPart]) -> Made<()> {
        let open = self.moving.iter().filter(|m| m.is_loop).count();
        for (ring, _, _) in moving.iter().filter(|(_, side, part)| (*side, *part) == (0, 0)) {
            if self.loops_around_memory(*ring) == open {
                self.make_memory(*ring)?;
            }
        }
        Ok(())
    }

    fn make_memory(&mut self, index: usize) -> Made<()> {
        let pipe = Pipe::new(index);
        let (stride, slots) = (self.rings[index].stride, self.rings[index].slots);
        let name = self.k.pipe_name(pipe);
        self.b.set_loc(self.k.pipes[index].loc);
        self.rings[index].region = Some(self.region(stride.saturating_mul(slots), slots, &name)?);
        if may_be_poison(self.k, pipe) {
            let words = self.region(4 * slots, slots, &format!("{name}, poison"))?;
            self.rings[index].poison = Some(words);
        }
        Ok(())
    }

    /// Creates a region of shared memory, whose address is assigned later.
    pub(super) fn region(&mut self, bytes: u32, parts: u32, name: &str) -> Made<Value> {
        let region = self.one(OpKind::Region(RegionOp::Place { offset: 0, bytes: bytes.max(1), parts }), &[])?;
        self.b.name(region, name);
        Ok(region)
    }

    /// Creates the barriers and counters between roles. Their initialisations are added to `inits`.
    fn join(&mut self, pipe: Pipe, slots: u32, inits: &mut Inits) -> Made<Mode> {
        let [fill, read] = sides::of(self.k, pipe);
        let warps = |role: &usize| self.k.roles.get(*role).map_or(1, |r| r.warps);
        let filling: u32 = fill.iter().map(warps).sum::<u32>() * self.laid.lanes;
        let reading: u32 = read.iter().map(warps).sum();
        let name = self.k.pipe_name(pipe);
        let barriers = if self.laid.free == FreeBy::Mbarrier { 2 * slots } else { slots };
        let words = self.region(8 * barriers, 1, &format!("{name}, barriers"))?;
        let full = self.one(OpKind::Nv(NvOp::MbarrierAlloc { at: 0, n: slots }), &[words])?;
        let Ring { filling: how, shared, .. } = &self.rings[pipe.index()];
        let (boxes, shared) = (how.has_boxes(), *shared);
        let count = match how {
            Filling::Threads => filling,
            Filling::Bulk => 1,
            // One more thread arrives with the bytes of the bulk copies.
            Filling::Mixed(_) => filling + 1,
        };
        let loc = self.k.pipes[pipe.index()].loc;
        inits.ops.push((loc, NvOp::MbarrierInit { count }, full));
        // The barrier counts the bytes of bulk copies.
        inits.fenced |= boxes;
        if self.laid.free == FreeBy::Mbarrier {
            let empty = self.one(OpKind::Nv(NvOp::MbarrierAlloc { at: 8 * slots, n: slots }), &[words])?;
            let programs = if shared { self.laid.cluster } else { 1 };
            inits.ops.push((loc, NvOp::MbarrierInit { count: reading * programs }, empty));
            // Readers of other programs arrive at the barrier.
            inits.fenced |= shared;
            return Ok(Mode::Mbarriers { full, empty });
        }
        let mut counters = Vec::new();
        for role in &read {
            let of = self.k.roles.get(*role).map_or_else(String::new, |r| r.name.clone());
            let counter = self.region(4 * slots, slots, &format!("{name}, releases by {of}"))?;
            inits.ops.push((loc, NvOp::SequenceInit, counter));
            counters.push(counter);
        }
        Ok(Mode::Sequence { full, words: counters, readers: read.into_iter().collect() })
    }

    /// The clocks that advance in blocks, in order.
    pub(super) fn moving_in(&self, blocks: &[Block]) -> Vec<ClockPart> {
        let mut found = SortedSet::new();
        for block in blocks {
            self.k.walk_block(*block, &mut |_, op| {
                let Some((pipe, reads)) = advances(&op.kind) else { return };
                let (pipe, side) = (pipe.index(), usize::from(reads));
                found.insert((pipe, side, 0));
                if !matches!(self.rings[pipe].mode, Mode::Counted) {
                    found.insert((pipe, side, 1));
                }
            });
        }
        found.into_iter().collect()
    }

    /// The current values of clocks.
    pub(super) fn clocks(&self, moving: &[ClockPart]) -> Vec<Value> {
        moving.iter().map(|(ring, side, part)| self.rings[*ring].clocks[*side][*part]).collect()
    }

    /// Sets the values of clocks.
    pub(super) fn set_clocks(&mut self, moving: &[ClockPart], values: &[Value]) {
        for ((ring, side, part), value) in moving.iter().zip(values) {
            self.rings[*ring].clocks[*side][*part] = *value;
        }
    }

    /// Returns the stage at a clock, and advances the clock.
    pub(super) fn tick(&mut self, pipe: Pipe, side: usize) -> Made<Stage> {
        let pipe = pipe.index();
        let [slot, turn] = self.rings[pipe].clocks[side];
        let slots = i32::try_from(self.rings[pipe].slots).unwrap_or(i32::MAX);
        let (zero, one, end) = (self.b.i32(0), self.b.i32(1), self.b.i32(slots));
        let next = self.one(OpKind::Binary(BinOp::Add), &[slot, one])?;
        let wraps = self.one(OpKind::Cmp(Pred::Eq), &[next, end])?;
        let next = self.one(OpKind::Select, &[wraps, zero, next])?;
        let further = match self.rings[pipe].mode {
            Mode::Counted => turn,
            Mode::Mbarriers { .. } => {
                let other = self.one(OpKind::Binary(BinOp::Sub), &[one, turn])?;
                self.one(OpKind::Select, &[wraps, other, turn])?
            }
            Mode::Sequence { .. } => {
                let further = self.one(OpKind::Binary(BinOp::Add), &[turn, one])?;
                self.one(OpKind::Select, &[wraps, further, turn])?
            }
        };
        self.rings[pipe].clocks[side] = [next, further];
        Ok(Stage { pipe, slot, turn })
    }

    /// The parity of the phase of a round.
    fn parity(&mut self, stage: Stage) -> Made<Value> {
        match self.rings[stage.pipe].mode {
            Mode::Counted | Mode::Mbarriers { .. } => Ok(stage.turn),
            Mode::Sequence { .. } => {
                // The number of a round is not negative, so that a mask is a remainder.
                let one = self.b.i32(1);
                self.one(OpKind::Binary(BinOp::And), &[stage.turn, one])
            }
        }
    }

    pub(super) fn barrier_of(&mut self, barriers: Value, stage: Stage) -> Made<Value> {
        self.one(OpKind::Nv(NvOp::MbarrierAt), &[barriers, stage.slot])
    }

    /// Waits until the readers of the previous round have released a slot.
    pub(super) fn wait_free(&mut self, stage: Stage) -> Made<()> {
        self.await_free(stage)?;
        self.claim(Claim::Acquired, stage)
    }

    fn await_free(&mut self, stage: Stage) -> Made<()> {
        match self.rings[stage.pipe].mode.clone() {
            Mode::Counted => Ok(()),
            Mode::Mbarriers { empty, .. } => {
                let barrier = self.barrier_of(empty, stage)?;
                let parity = self.parity(stage)?;
                let one = self.b.i32(1);
                let before = self.one(OpKind::Binary(BinOp::Sub), &[one, parity])?;
                self.op(OpKind::Nv(NvOp::WaitParity), &[barrier, before]).map(drop)
            }
            Mode::Sequence { words, .. } => {
                for word in words {
                    let counter = self.one(OpKind::Region(RegionOp::At), &[word, stage.slot])?;
                    self.op(OpKind::Nv(NvOp::SequenceWait), &[counter, stage.turn])?;
                }
                Ok(())
            }
        }
    }

    /// Signals that a stage is filled, by copies, by stores of the threads, or by both.
    pub(super) fn filled(&mut self, stage: Stage, how: [bool; 2]) -> Made<()> {
        self.tell_filled(stage, how)?;
        self.claim(Claim::Filled, stage)
    }

    fn tell_filled(&mut self, stage: Stage, [copied, stored]: [bool; 2]) -> Made<()> {
        let full = match &self.rings[stage.pipe].mode {
            // The group is committed behind the operation.
            Mode::Counted => return Ok(()),
            Mode::Mbarriers { full, .. } | Mode::Sequence { full, .. } => *full,
        };
        let barrier = self.barrier_of(full, stage)?;
        let arrivals = self.threads();
        if copied && !stored {
            let arrive = NvOp::CpAsyncArrive { noinc: true, arrivals };
            return self.op(OpKind::Nv(arrive), &[barrier]).map(drop);
        }
        if copied {
            self.commit()?;
            self.wait_groups(0)?;
        }
        self.op(OpKind::Nv(NvOp::Arrive { arrivals }), &[barrier]).map(drop)
    }

    /// Waits for the bytes of a stage.
    pub(super) fn wait_ready(&mut self, stage: Stage) -> Made<()> {
        self.await_ready(stage)?;
        self.claim(Claim::Ready, stage)
    }

    fn await_ready(&mut self, stage: Stage) -> Made<()> {
        let full = match &self.rings[stage.pipe].mode {
            // The group was waited for before the operation.
            Mode::Counted => return Ok(()),
            Mode::Mbarriers { full, .. } | Mode::Sequence { full, .. } => *full,
        };
        let barrier = self.barrier_of(full, stage)?;
        let parity = self.parity(stage)?;
        self.op(OpKind::Nv(NvOp::WaitParity), &[barrier, parity]).map(drop)
    }

    /// Releases a stage by this role.
    pub(super) fn release(&mut self, stage: Stage) -> Made<()> {
        self.tell_released(stage)?;
        self.claim(Claim::Released, stage)
    }

    fn tell_released(&mut self, stage: Stage) -> Made<()> {
        match self.rings[stage.pipe].mode.clone() {
            Mode::Counted => Ok(()),
            Mode::Mbarriers { empty, .. } => {
                let barrier = self.barrier_of(empty, stage)?;
                if is_loaded(self.k, stage.pipe) {
                    self.op(OpKind::Nv(NvOp::WarpSync), &[])?;
                }
                let arrivals = self.warps;
                let shared = self.rings[stage.pipe].shared;
                let arrive = if shared { NvOp::ArriveCluster { arrivals } } else { NvOp::Arrive { arrivals } };
                self.op(OpKind::Nv(arrive), &[barrier]).map(drop)
            }
            Mode::Sequence { words, readers, .. } => {
                let reader = readers.iter().position(|role| Some(*role) == self.role).unwrap_or(0);
                let Some(word) = words.get(reader) else { return Err(self.internal("a reader without a counter")) };
                let counter = self.one(OpKind::Region(RegionOp::At), &[*word, stage.slot])?;
                self.role_barrier()?;
                let one = self.b.i32(1);
                let times = self.one(OpKind::Binary(BinOp::Add), &[stage.turn, one])?;
                self.op(OpKind::Nv(NvOp::SequenceStore), &[counter, times]).map(drop)
            }
        }
    }

    /// Inserts a claim about the operations before it, which the verifier checks.
    pub(super) fn claim(&mut self, claim: Claim, stage: Stage) -> Made<()> {
        let ring = &self.rings[stage.pipe];
        let Some(region) = ring.region else { return Err(self.internal("a ring without memory")) };
        let mut args = vec![region, stage.slot];
        if !matches!(ring.mode, Mode::Counted) {
            args.push(stage.turn);
        }
        self.op(OpKind::Ttg(TtgOp::Claim(claim, Pipe::new(stage.pipe))), &args).map(drop)
    }

    /// Inserts a barrier of the role's warps.
    fn role_barrier(&mut self) -> Made<()> {
        if self.warps == 1 {
            return self.op(OpKind::Nv(NvOp::WarpSync), &[]).map(drop);
        }
        let id = self.role.and_then(|r| u8::try_from(r + 1).ok()).unwrap_or(0);
        self.op(OpKind::Nv(NvOp::BarrierSync { id, threads: self.threads() }), &[]).map(drop)
    }

    /// A tile of a stage, in shared memory.
    pub(super) fn field(&mut self, stage: Stage, field: usize, elem: Elem, shape: TileShape) -> Made<Value> {
        let ring = &self.rings[stage.pipe];
        let (region, place) = (ring.region, ring.fields.get(field).copied());
        let Some(region) = region else { return Err(self.internal("a ring without memory")) };
        let Some((offset, encoding)) = place else { return Err(self.internal("a tile that a stage does not have")) };
        let part = self.one(OpKind::Region(RegionOp::At), &[region, stage.slot])?;
        let tile = self.one(OpKind::Region(RegionOp::Tile { offset, elem, shape }), &[part])?;
        self.b.set_place(tile, crate::ir::Place::Shared(encoding));
        Ok(tile)
    }

    /// The poison word of a stage, as a tile of one element.
    pub(super) fn poison_word(&mut self, stage: Stage) -> Made<Option<Value>> {
        let Some(words) = self.rings[stage.pipe].poison else { return Ok(None) };
        let part = self.one(OpKind::Region(RegionOp::At), &[words, stage.slot])?;
        let Some(shape) = TileShape::new(&[1]) else { return Err(self.internal("a tile without axes")) };
        let word = self.one(OpKind::Region(RegionOp::Tile { offset: 0, elem: Elem::I32, shape }), &[part])?;
        self.b.put_shared(word, &Encoding::padded(&[1], 32, &[0], 0));
        Ok(Some(word))
    }
}
