//! `cp.async.bulk`, `cp.reduce.async.bulk` and `st.async`: copies that the copy engine makes for one thread.
//!
//! A copy to shared memory is one operation for each block that receives it, and completes its bytes at the barrier of that
//! block. A copy to global memory is two operations, of two classes: its reads, for which
//! `wait_group.read` waits, and its writes.

use super::access::At;
use super::{Fail, Run, Step, Who, World, misplaced};
use crate::emu::async_op::{BulkEnd, BulkOp, BulkPlace, BulkReduce};
use crate::emu::boxes;
use crate::emu::cluster::{Cluster, LOAD, PUT, STORE, TAKE, in_block, rank_of, split};
use crate::emu::decode::atom_fn;
use crate::emu::error::ErrorCode;
use crate::emu::job::{Job, Other, Piece, Reduction, What, numbered};
use crate::emu::lane::lo;
use crate::emu::op::{Addr, Op, Src};
use crate::emu::proxy::{GLOBAL, View};
use crate::emu::touched::Touch;
use crate::emu::ty::{Space, Ty};
use crate::emu::warp::lanes_of;
use crate::tma::{Element, TensorMap};
use titan_sim::engine::{AccessKind, Class, Completion, Helper, Op as AsyncOp, OpId, Place, Signal};

/// The unit of copies, in bytes.
const UNIT: u32 = 16;
/// The alignment of a box in shared memory.
const BOX_ALIGNMENT: u64 = 128;

/// The copy that one thread requests.
struct Request {
    pieces: Vec<Piece>,
    /// The first byte in shared memory, with the block's rank, and the number of bytes.
    shared: u64,
    bytes: u32,
    element: Option<Element>,
    /// The address of the tensor map, if it is in global memory and may change there.
    map: Option<u64>,
}

impl Cluster<'_> {
    pub(super) fn bulk(&mut self, who: Who, op: &Op, world: &mut World<'_>) -> Run<Step> {
        match op {
            Op::Bulk(op) => {
                for lane in lanes_of(who.active) {
                    self.bulk_of(who, lane, op, world).map_err(|f| if f.lane.is_none() { f.lane(lane) } else { f })?;
                }
                self.progress += 1;
            }
            Op::BulkCommit => {
                for lane in lanes_of(who.active) {
                    let agent = self.agent(who.warp, lane);
                    self.engine.commit(agent, TAKE, world.watch)?;
                    self.engine.commit(agent, PUT, world.watch)?;
                }
            }
            Op::BulkWait { at_most, reads } => {
                for lane in lanes_of(who.active) {
                    let agent = self.agent(who.warp, lane);
                    self.wait_groups(who, agent, TAKE, *at_most, world)?;
                    if !reads {
                        self.wait_groups(who, agent, PUT, *at_most, world)?;
                    }
                }
                self.progress += 1;
            }
            Op::StoreAsync { srcs, addr, barrier, bytes } => {
                self.store_async(who, srcs, (addr, barrier), *bytes, world)?;
            }
            _ => return Err(misplaced()),
        }
        Ok(Step::Next)
    }

    /// The address of one thread, with the block's rank if it is in shared memory.
    fn one(&self, who: Who, lane: usize, addr: &Addr, align: u32) -> Run<At> {
        let addresses = self.addresses(Who { active: 1 << lane, ..who }, addr)?;
        self.at(who, lane, addr, addresses[lane], align)
    }

    fn value(&self, who: Who, lane: usize, src: Src) -> Run<u64> {
        Ok(self.need(Who { active: 1 << lane, ..who }, src)?[lane])
    }

    fn bulk_of(&mut self, who: Who, lane: usize, op: &BulkOp, world: &mut World<'_>) -> Run<()> {
        let loads = matches!(op.end, BulkEnd::Barrier(_));
        let request = self.request(who, lane, op, world)?;
        let touch = if loads { Touch::Read } else { Touch::Write };
        for piece in &request.pieces {
            let Other::Global(address) = piece.other else { continue };
            let space = &world.memory.space;
            space.check(address, piece.bytes as usize).map_err(|f| Fail::of(space, &f))?;
            world.memory.touch(touch, address, piece.bytes);
        }
        match &op.end {
            BulkEnd::Barrier(barrier) => {
                let barrier = self.one(who, lane, barrier, 8)?;
                let targets = match op.mask {
                    None => vec![rank_of(request.shared)],
                    Some(mask) => self.targets(who, lane, mask)?,
                };
                for rank in targets {
                    self.load_box(who, lane, &request, (rank, barrier, op.mask.is_some()), world)?;
                }
                Ok(())
            }
            BulkEnd::Group => self.store_box(who, lane, request, op.reduce, world),
        }
    }

    /// The ranks of the blocks in a mask.
    fn targets(&self, who: Who, lane: usize, mask: Src) -> Run<Vec<u64>> {
        let mask = self.value(who, lane, mask)?;
        let ranks: Vec<u64> = (0..16).filter(|rank| mask >> rank & 1 == 1).collect();
        if mask == 0 || ranks.iter().any(|rank| *rank >= self.ctas.len() as u64) {
            let message =
                format!("the mask {mask:#x} is of blocks that a cluster of {} does not have", self.ctas.len());
            return Err(Fail::new(ErrorCode::Operand, message));
        }
        Ok(ranks)
    }

    /// Determines the pieces of a copy.
    fn request(&self, who: Who, lane: usize, op: &BulkOp, world: &mut World<'_>) -> Run<Request> {
        let (tensor, range, is_load) = match (&op.to, &op.from) {
            (BulkPlace::Range(to), BulkPlace::Box { map, coords }) => ((map, coords), to, true),
            (BulkPlace::Box { map, coords }, BulkPlace::Range(from)) => ((map, coords), from, false),
            (BulkPlace::Range(to), BulkPlace::Range(from)) => return self.range(who, lane, op, (to, from)),
            (BulkPlace::Box { .. }, BulkPlace::Box { .. }) => return Err(misplaced()),
        };
        let (map, place) = self.tensor_map(who, lane, tensor.0, world)?;
        if map.dims() != tensor.1.len() {
            let message = format!("the tensor map has {} dimensions, the copy {}", map.dims(), tensor.1.len());
            return Err(Fail::new(ErrorCode::Operand, message));
        }
        let coords = tensor.1.iter().map(|c| Ok(i64::from(lo(self.value(who, lane, *c)?).cast_signed())));
        let coords = coords.collect::<Run<Vec<i64>>>()?;
        let at = self.one(who, lane, range, 1)?;
        if at.address % BOX_ALIGNMENT != 0 {
            let message = format!("a box at shared address {}: not a multiple of 128", self.address_name(at.address));
            return Err(Fail::new(ErrorCode::Misaligned, message));
        }
        let pieces = boxes::pieces(&map, &coords, split(at.address).1, is_load)?;
        let ranked = |p: Piece| Piece { shared: in_block(rank_of(at.address), p.shared), ..p };
        let pieces = pieces.into_iter().map(ranked).collect();
        let (bytes, element) = (map.box_bytes(), Some(map.element));
        let request = Request { pieces, shared: at.address, bytes, element, map: place };
        self.inside(at.address, request.bytes)?;
        Ok(request)
    }

    fn range(&self, who: Who, lane: usize, op: &BulkOp, (to, from): (&Addr, &Addr)) -> Run<Request> {
        let (to, from) = (self.one(who, lane, to, UNIT)?, self.one(who, lane, from, UNIT)?);
        let bytes = op.bytes.map_or(Ok(0), |b| self.value(who, lane, b).map(lo))?;
        if bytes == 0 || bytes % UNIT != 0 {
            let message = format!("a bulk copy of {bytes} bytes: multiples of 16 are possible");
            return Err(Fail::new(ErrorCode::Operand, message));
        }
        let (shared, other) = match (to.space, from.space) {
            (Space::Shared, Space::Shared) => (to.address, Other::Shared(from.address)),
            (Space::Shared, _) => (to.address, Other::Global(from.address)),
            (_, _) => (from.address, Other::Global(to.address)),
        };
        self.inside(shared, bytes)?;
        if let Other::Shared(from) = other {
            self.inside(from, bytes)?;
        }
        Ok(Request { pieces: vec![Piece { shared, other, bytes }], shared, bytes, element: None, map: None })
    }

    /// Reads the tensor map at an address: 128 bytes, at a multiple of 64. Returns also its address, if it may change there.
    fn tensor_map(&self, who: Who, lane: usize, addr: &Addr, world: &World<'_>) -> Run<(TensorMap, Option<u64>)> {
        let at = self.one(who, lane, addr, 64)?;
        let (mut bytes, mut place) = ([0; 128], None);
        match at.space {
            Space::Param => {
                let start = usize::try_from(at.address).unwrap_or(usize::MAX);
                let found = start.checked_add(128).and_then(|end| self.env.params.get(start..end));
                let outside = || Fail::new(ErrorCode::OutOfBounds, "the tensor map is not inside of the parameters");
                bytes.copy_from_slice(found.ok_or_else(outside)?);
            }
            Space::Global | Space::Const | Space::Generic => {
                let space = &world.memory.space;
                let id = space.check(at.address, bytes.len()).map_err(|f| Fail::of(space, &f))?;
                // Nobody writes to constants, which need no fence.
                if space.is_writable(id) {
                    (bytes, place) = (self.acquired(who, at, world)?, Some(at.address));
                } else {
                    space.read(at.address, &mut bytes).map_err(|f| Fail::of(space, &f))?;
                }
            }
            Space::Shared | Space::Local | Space::Cluster => {
                return Err(Fail::new(ErrorCode::Operand, "a tensor map is in global, constant or parameter memory"));
            }
        }
        let unknown = || Fail::new(ErrorCode::Operand, "these 128 bytes are no tensor map that was encoded here");
        let map = TensorMap::from_bytes(&bytes).ok_or_else(unknown)?;
        map.check().map_err(|e| Fail::new(ErrorCode::Operand, e.to_string()))?;
        Ok((map, place))
    }

    fn load_box(
        &mut self,
        who: Who,
        lane: usize,
        request: &Request,
        (rank, barrier, multicast): (u64, At, bool),
        world: &mut World<'_>,
    ) -> Run<()> {
        let there = |address: u64| in_block(rank, address);
        if rank_of(barrier.address) != rank_of(request.shared) {
            return Err(Fail::new(ErrorCode::Operand, "the barrier is not in the block that gets the data"));
        }
        if multicast {
            // Every block that receives data must exist and not have ended.
            self.ranked(who, in_block(rank + 1, 0), true)?;
        }
        let word = there(barrier.address);
        let id = self.barrier_of(word)?;
        self.is_visible(word, "a bulk copy").map_err(|f| f.lane(lane))?;
        let pieces: Vec<Piece> = request.pieces.iter().map(|p| Piece { shared: there(p.shared), ..*p }).collect();
        let signals = vec![Signal::Bytes { barrier: id, bytes: request.bytes }];
        let view = self.view_of(who, lane, &pieces, (there(request.shared), request.bytes), world);
        let op = self.begin(who, lane, (LOAD, vec![], signals), (What::Load(pieces), view, request.map), world)?;
        let helper = Helper { class: LOAD, op };
        if let Some(Piece { other: Other::Shared(from), .. }) = request.pieces.first() {
            self.tell_async(who, (lane, helper), (*from, request.bytes), AccessKind::Read, world)?;
        }
        self.tell_async(who, (lane, helper), (there(request.shared), request.bytes), AccessKind::Write, world)?;
        self.early(op, world)
    }

    fn writer_of(&self, who: Who, lane: usize) -> u64 {
        self.writer(self.agent(who.warp, lane).index())
    }

    /// The bytes that a load sees differently than threads do.
    fn view_of(&self, who: Who, lane: usize, pieces: &[Piece], (to, bytes): (u64, u32), world: &World<'_>) -> View {
        let (me, mut view) = (self.writer_of(who, lane), View::default());
        for piece in pieces {
            match piece.other {
                Other::Outside(_) => {}
                Other::Global(from) => world.stores.read(me, GLOBAL, from, piece.bytes.into(), &mut view),
                Other::Shared(from) => self.read_view(me, from, piece.bytes.into(), &mut view),
            }
        }
        let (space, address) = split(to);
        self.stores.write(me, numbered(space), address, bytes.into(), &mut view);
        view
    }

    fn store_box(
        &mut self,
        who: Who,
        lane: usize,
        request: Request,
        reduce: Option<BulkReduce>,
        world: &mut World<'_>,
    ) -> Run<()> {
        let reduce = reduce.map(|r| reduction(r, request.element)).transpose()?;
        let ticket = self.tickets;
        self.tickets += 1;
        let Request { pieces, shared, bytes, map, .. } = request;
        let take = What::Take { ticket, pieces: pieces.clone() };
        let mut view = View::default();
        self.read_view(self.writer_of(who, lane), shared, bytes.into(), &mut view);
        let take = self.begin(who, lane, (TAKE, vec![], vec![]), (take, view, map), world)?;
        self.tell_async(who, (lane, Helper { class: TAKE, op: take }), (shared, bytes), AccessKind::Read, world)?;
        let put = (What::Put { ticket, pieces, reduce }, View::default(), map);
        let put = self.begin(who, lane, (PUT, vec![take], vec![]), put, world)?;
        self.early(take, world)?;
        self.early(put, world)
    }

    /// Starts an operation of one thread; operations with signals are outside of groups.
    fn begin(
        &mut self,
        who: Who,
        lane: usize,
        (class, after, signals): (Class, Vec<OpId>, Vec<Signal>),
        (what, view, map): (What, View, Option<u64>),
        world: &mut World<'_>,
    ) -> Run<OpId> {
        let agent = self.agent(who.warp, lane);
        let ungrouped = !signals.is_empty();
        let op = AsyncOp { agent, class, after, signals, payload: Job { place: who.pc, what, view, map } };
        Ok(self.engine.issue(op, ungrouped, Place::new(who.pc as usize), world.watch)?)
    }

    fn early(&mut self, op: OpId, world: &mut World<'_>) -> Run<()> {
        if self.env.options.completion == Completion::Early && self.engine.pending().get(op).is_some() {
            self.complete(op, world).map_err(|f| *f)?;
        }
        Ok(())
    }

    fn store_async(
        &mut self,
        who: Who,
        srcs: &[Src],
        (addr, barrier): (&Addr, &Addr),
        size: u32,
        world: &mut World<'_>,
    ) -> Run<()> {
        let total = size * u32::try_from(srcs.len()).unwrap_or(1);
        for lane in lanes_of(who.active) {
            let (to, word) = (self.one(who, lane, addr, total)?, self.one(who, lane, barrier, 8)?);
            if rank_of(to.address) != rank_of(word.address) {
                let message = "the barrier is not in the block that gets the data";
                return Err(Fail::new(ErrorCode::Operand, message).lane(lane));
            }
            self.inside(to.address, total).map_err(|f| f.lane(lane))?;
            let barrier = self.barrier_of(word.address).map_err(|f| f.lane(lane))?;
            let mut bytes = Vec::new();
            for src in srcs {
                bytes.extend(&self.value(who, lane, *src)?.to_le_bytes()[..size as usize]);
            }
            let signals = vec![Signal::Bytes { barrier, bytes: total }];
            let what = What::Store { to: to.address, bytes, written: true };
            let op = self.begin(who, lane, (STORE, vec![], signals), (what, View::default(), None), world)?;
            self.tell(who, to, total, super::events::How::copy(Helper { class: STORE, op }), world)?;
            self.early(op, world)?;
        }
        self.progress += 1;
        Ok(())
    }
}

/// The arithmetic of a reduction; the tensor map gives the type if the copy has one.
fn reduction(reduce: BulkReduce, element: Option<Element>) -> Run<Reduction> {
    let ty = reduce.ty.or(element.map(|e| match e {
        Element::U8 => Ty::U8,
        Element::U16 => Ty::U16,
        Element::U32 => Ty::U32,
        Element::I32 => Ty::S32,
        Element::U64 => Ty::U64,
        Element::I64 => Ty::S64,
        Element::F16 => Ty::F16,
        Element::F32 => Ty::F32,
        Element::F64 => Ty::F64,
        Element::Bf16 => Ty::Bf16,
    }));
    let bits = matches!(reduce.name, "and" | "or" | "xor");
    let named = ty.map(|ty| match ty.bytes() {
        4 if bits => Ty::B32,
        8 if bits => Ty::B64,
        _ => ty,
    });
    let f = named.and_then(|ty| atom_fn(reduce.name, ty)).zip(named);
    let missing = || Fail::new(ErrorCode::Unknown, format!("a bulk `.{}` on this type is not emulated", reduce.name));
    f.map(|(f, ty)| Reduction { f, bytes: ty.bytes() }).ok_or_else(missing)
}
