//! Rings in lane IR: one warp copies tiles to the slots of a ring, two warps sum them up and give the slots back.
//!
//! A tile is 512 bytes; of the consumers' 64 threads each adds words `c` and `c + 64` of every tile to its sum, which the copy
//! of other lanes brought. Parameters: the tiles, the sums (one for each thread of the program), their number.

use titan_core::ir::Pred;
use titan_core::lane::hazard::check;
use titan_core::lane::shared::place;
use titan_core::lane::{Builder, Func, IntBin, NvOp, OpKind, Region, Role, Space, Ty, Value, eliminate_dead};
use titan_core::launch::abi::Slot;

/// Words of a tile.
pub(crate) const TILE: usize = 128;
/// One producing warp, and two that consume.
pub(crate) const THREADS: u32 = 96;
const CONSUMERS: u32 = 2;
const PRODUCER: Role = Role { warps: 1, barrier: 1 };
const CONSUMER: Role = Role { warps: CONSUMERS, barrier: 2 };

/// How slots are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Free {
    /// One lane of each warp arrives at an mbarrier of the slot.
    Mbarrier,
    /// After a barrier of the consumers, one thread stores how often the slot has been released.
    Sequence,
}

/// What a program does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// The producer does not wait for slots.
    NoFreeWait,
    /// The consumers do not wait for tiles.
    NoReadyWait,
    /// They wait for the parity of the phase before.
    ReadyParity,
    /// The producer waits for the parity of the phase after.
    FreeParity,
    /// The barrier of a full slot expects one lane fewer, or one more.
    ReadyCount(i32),
    /// The barrier of an empty one one warp.
    FreeCount(i32),
    /// The producer arrives immediately, and not when its copies have landed.
    PlainArrive,
    /// A slot is released before all lanes have read it.
    NoMeeting,
    /// A slot is released by an ordinary store.
    WeakStore,
    /// The numbers of a slot are one ahead.
    SequenceAhead,
    /// There is no wait for the initialisation of the barriers.
    NoInitBarrier,
}

struct Ring {
    b: Builder,
    slots: i32,
    free: Free,
    mutant: Option<Mutant>,
    data: u32,
    words: u32,
}

/// Which slot, and how often the ring has been around.
#[derive(Clone, Copy)]
struct At {
    slot: Value,
    round: Value,
}

/// A program with so many slots.
pub(crate) fn program(slots: i32, free: Free, mutant: Option<Mutant>) -> Func {
    let params = vec![Slot::Address(0), Slot::Address(1), Slot::Scalar { param: 2, wide: false }];
    let mut b = Builder::new(&format!("ring{slots}_{free:?}_{mutant:?}"), params, THREADS, 32);
    let tiles = slots as u32 * 4 * TILE as u32;
    let data = b.buffer("tiles", tiles, 0);
    // Slot `s` has its full barrier, and after all full barriers the word that releases it: 8 bytes each.
    let words = b.buffer("barriers", 16 * slots as u32, tiles);
    let mut ring = Ring { b, slots, free, mutant, data, words };
    ring.begin();
    if !ring.is(Mutant::NoInitBarrier) {
        ring.b.op(OpKind::Barrier, &[]);
    }
    let mut open = ring.b.begin_roles(&[PRODUCER, CONSUMER], &[Ty::B32]);
    ring.produce();
    let zero = ring.b.i32(0);
    ring.b.terminate(OpKind::Yield, &[zero]);
    ring.b.begin_else(&mut open);
    let sum = ring.consume();
    ring.b.terminate(OpKind::Yield, &[sum]);
    let sum = ring.b.end(open)[0];
    ring.store_sum(sum);
    let mut b = ring.b;
    b.terminate(OpKind::Return, &[]);
    let mut func = b.finish().expect("operands fit");
    place(&mut func);
    let said = check(&mut func);
    assert_eq!(
        said.is_some(),
        mutant == Some(Mutant::NoInitBarrier),
        "only the barrier after the initialisation is the check's: {said:?}"
    );
    eliminate_dead(&mut func);
    func
}

impl Ring {
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn mark(&mut self, region: Region, write: bool) {
        self.b.op(OpKind::Access { region, write }, &[]);
    }

    fn word(&mut self, slot: Value, of_full: bool) -> Value {
        let (base, eight) = (self.b.one(OpKind::Buffer(self.words), &[]), self.b.i32(8));
        let offset = self.b.mul(slot, eight);
        let at = self.b.add(base, offset);
        if of_full { at } else { self.b.add_const(at, 8 * i64::from(self.slots)) }
    }

    fn place(&mut self, slot: Value) -> Value {
        let (base, bytes) = (self.b.one(OpKind::Buffer(self.data), &[]), self.b.i32(4 * TILE as i32));
        let offset = self.b.mul(slot, bytes);
        self.b.add(base, offset)
    }

    /// One thread initialises everything.
    fn begin(&mut self) {
        self.mark(Region::Buffer(self.words), true);
        let (thread, zero) = (self.b.one(OpKind::ThreadId, &[]), self.b.i32(0));
        let first = self.b.cmp_u(Pred::Eq, thread, zero);
        let count = |n: i32, wrong: i32| (n + wrong).cast_unsigned();
        let full = count(32, if let Some(Mutant::ReadyCount(by)) = self.mutant { by } else { 0 });
        let empty = count(CONSUMERS as i32, if let Some(Mutant::FreeCount(by)) = self.mutant { by } else { 0 });
        for slot in 0..self.slots {
            let slot = self.b.i32(slot);
            let at = self.word(slot, true);
            self.b.op(NvOp::MbarrierInit { count: full, masked: true }, &[at, first]);
            let at = self.word(slot, false);
            match self.free {
                Free::Mbarrier => drop(self.b.op(NvOp::MbarrierInit { count: empty, masked: true }, &[at, first])),
                Free::Sequence => {
                    let kind = OpKind::Store { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: true };
                    self.b.op(kind, &[at, zero, first]);
                }
            }
        }
    }

    /// A loop over tiles: their number, the slot, the round, and what `step` carries.
    fn each(&mut self, init: &[Value], step: impl FnOnce(&mut Ring, Value, At, &[Value]) -> Vec<Value>) -> Vec<Value> {
        let (zero, one, n) = (self.b.i32(0), self.b.i32(1), self.b.one(OpKind::Slot(2), &[]));
        let mut all = vec![zero, zero];
        all.extend(init);
        let (open, t, carried) = self.b.begin_for([zero, n, one], &all);
        let at = At { slot: carried[0], round: carried[1] };
        let mut next = step(self, t, at, &carried[2..]);
        let (up, last) = (self.b.add(at.slot, one), self.b.i32(self.slots));
        let wraps = self.b.cmp_u(Pred::Eq, up, last);
        let slot = self.b.select(wraps, zero, up);
        let further = self.b.add(at.round, one);
        let round = self.b.select(wraps, further, at.round);
        next.splice(0..0, [slot, round]);
        self.b.terminate(OpKind::Continue(0), &next);
        self.b.end(open).split_off(2)
    }

    fn parity(&mut self, round: Value, inverted: bool) -> Value {
        let one = self.b.i32(1);
        let low = self.b.and(round, one);
        if inverted { self.b.int(IntBin::Xor, low, one) } else { low }
    }

    fn produce(&mut self) {
        self.mark(Region::Ring(self.data), true);
        self.mark(Region::Ring(self.words), true);
        self.mark(Region::Tensor(0), false);
        let (lane, sixteen) = (self.b.one(OpKind::LaneId, &[]), self.b.i32(16));
        let own = self.b.mul(lane, sixteen);
        self.each(&[], |ring, t, at, _| {
            ring.wait_empty(at);
            let (tensor, bytes) = (ring.b.one(OpKind::Slot(0), &[]), ring.b.i32(4 * TILE as i32));
            let tile = ring.b.one(OpKind::MulWide { signed: false }, &[t, bytes]);
            let tile = ring.b.add(tensor, tile);
            let wide = ring.b.widen(own);
            let (from, place) = (ring.b.add(tile, wide), ring.place(at.slot));
            let to = ring.b.add(place, own);
            ring.b.op(NvOp::CopyAsync { bytes: 16, offset: 0, masked: false }, &[to, from]);
            let full = ring.word(at.slot, true);
            let arrive = if ring.is(Mutant::PlainArrive) {
                OpKind::Nv(NvOp::MbarrierArrive { count: 1, masked: false })
            } else {
                OpKind::Nv(NvOp::CopyArrive { masked: false })
            };
            ring.b.op(arrive, &[full]);
            vec![]
        });
    }

    /// In round `r` a slot has been released `r` times before; the phase before the first counts as complete.
    fn wait_empty(&mut self, at: At) {
        if self.is(Mutant::NoFreeWait) {
            return;
        }
        let word = self.word(at.slot, false);
        match self.free {
            Free::Mbarrier => {
                let inverted = !self.is(Mutant::FreeParity);
                let parity = self.parity(at.round, inverted);
                self.b.op(NvOp::MbarrierWait, &[word, parity]);
            }
            Free::Sequence => drop(self.b.op(OpKind::SequenceWait, &[word, at.round])),
        }
    }

    fn consume(&mut self) -> Value {
        let (thread, zero) = (self.b.one(OpKind::ThreadId, &[]), self.b.i32(0));
        let own = self.b.add_const(thread, -32);
        let four = self.b.i32(4);
        let own = self.b.mul(own, four);
        self.each(&[zero], |ring, _, at, sum| {
            ring.mark(Region::Ring(ring.data), false);
            ring.mark(Region::Ring(ring.words), true);
            if !ring.is(Mutant::NoReadyWait) {
                let wrong = ring.is(Mutant::ReadyParity);
                let (full, parity) = (ring.word(at.slot, true), ring.parity(at.round, wrong));
                ring.b.op(NvOp::MbarrierWait, &[full, parity]);
            }
            let place = ring.place(at.slot);
            let from = ring.b.add(place, own);
            let mut sum = sum[0];
            for offset in [0, 256] {
                let kind = OpKind::Load { space: Space::Shared, bytes: 4, n: 1, offset, masked: false };
                let word = ring.b.one(kind, &[from]);
                sum = ring.b.add(sum, word);
            }
            ring.give_back(at);
            vec![sum]
        })[0]
    }

    fn give_back(&mut self, at: At) {
        let (word, zero) = (self.word(at.slot, false), self.b.i32(0));
        let meets = !self.is(Mutant::NoMeeting);
        match self.free {
            Free::Mbarrier => {
                if meets {
                    self.b.op(OpKind::WarpBarrier, &[]);
                }
                let lane = self.b.one(OpKind::LaneId, &[]);
                let first = self.b.cmp_u(Pred::Eq, lane, zero);
                self.b.op(NvOp::MbarrierArrive { count: 1, masked: true }, &[word, first]);
            }
            Free::Sequence => {
                if meets {
                    let kind =
                        OpKind::Nv(NvOp::NamedBarrier { id: CONSUMER.barrier, threads: 32 * CONSUMERS, wait: true });
                    self.b.op(kind, &[]);
                }
                self.mark(Region::Ring(self.words), true);
                let (thread, first) = (self.b.one(OpKind::ThreadId, &[]), self.b.i32(32));
                let first = self.b.cmp_u(Pred::Eq, thread, first);
                let next = self.b.add_const(at.round, if self.is(Mutant::SequenceAhead) { 2 } else { 1 });
                let kind = if self.is(Mutant::WeakStore) {
                    OpKind::Store { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: true }
                } else {
                    OpKind::StoreRelease { masked: true }
                };
                self.b.op(kind, &[word, next, first]);
            }
        }
    }

    fn store_sum(&mut self, sum: Value) {
        let (base, thread, four) = (self.b.one(OpKind::Slot(1), &[]), self.b.one(OpKind::ThreadId, &[]), self.b.i32(4));
        let offset = self.b.one(OpKind::MulWide { signed: false }, &[thread, four]);
        let at = self.b.add(base, offset);
        self.b.op(OpKind::Store { space: Space::Global, bytes: 4, n: 1, offset: 0, masked: false }, &[at, sum]);
    }
}
