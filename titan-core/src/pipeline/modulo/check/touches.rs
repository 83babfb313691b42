//! What the execution of an operation touches and changes: the dependences between operations other than those through values.
//!
//! Two executions may change places unless both touch one object and one of them changes it. Everything is read from the operation table.
//!
//! | object | is changed by | is touched by |
//! |---|---|---|
//! | a token, an MMA in flight | what consumes it | what borrows it, reads of the stage by names made from it; until an MMA in flight on a stage is waited for, what uses its result |
//! | a tile in shared memory | stores, copies to it, waits for its copies | loads, MMAs, stores from it |
//! | one side of a ring: acquisitions, fills, pending waits, waits, releases | each of them, since they name the next time | |
//! | the stage of a time of a ring | the fill with this number | the wait with this number |
//! | the slot of a time of a ring | the acquisition that is D, the number of slots, after the release with this number | this release |
//! | a tensor | stores, atomic updates | loads, copies |
//! | all tensors | atomic updates | all accesses to tensors |
//! | all shared memory and tensors | fences between proxies; of shared memory, waits for all bulk stores | all accesses |
//! | the registers of a product of warpgroups | the fence in front of its MMAs | these MMAs, what computes their operands |
//! | the registers of all products | fences in nested operations | all fences, MMAs of warpgroups, and what computes their operands |
//! | what can be observed | prints, traps, stores of elements, atomic updates, a loop that may not end | stores of tiles |
//! | everything | operations of barrier programs, and others that loops with schedules do not contain | all others with an effect |
//!
//! Copies to a ring read tensors that nothing in the kernel writes (T0617), so that their order against stores does not matter.
//! Fills and waits have numbers only where a body has as many of one as of the other, none of them in a branch or a loop, unless both arms of
//! the branch fill one stage; the same applies to acquisitions and releases. That no slot is overwritten too early, and that no wait is for ever, is shown of the barrier program.

use super::labels::{Label, Labels};
use crate::collections::SortedMap;
use crate::ir::traffic::{On, traffic};
use crate::ir::{Effect, Family, Flow, Kernel, LocalOp, NvOp, Op, OpId, OpKind, Pipe, TtgOp, Ty, Use};

/// One side of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Acquires,
    Fills,
    Pends,
    Waits,
    Releases,
}

/// What executions share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    /// What a label stands for: a token, a tensor, a tile in shared memory.
    Named(Label),
    /// The shared memory that an operation of the body allocates, which is the same in all iterations.
    Allocated(OpId),
    Ring(Pipe, Side),
    /// What the fill with this number, counted from the loop's first one on, has filled.
    Filled(Pipe, i32),
    /// The slot that the release with this number sets free.
    Freed(Pipe, i32),
    Tensors,
    Shared,
    /// The registers of the MMAs behind this fence, up to the next one of the body.
    Fenced(OpId),
    Registers,
    Observed,
    Everything,
}

impl Object {
    /// The object in the words of messages.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Object::Named(_) => "what this stage, tile or tensor holds",
            Object::Allocated(_) => "a buffer in shared memory",
            Object::Ring(..) => "the order of the stages of a ring",
            Object::Filled(..) => "the stage that one fills and the other waits for",
            Object::Freed(..) => "the slot that one sets free and the other acquires: the ring has too few slots",
            Object::Tensors => "tensors",
            Object::Shared => "shared memory",
            Object::Fenced(_) | Object::Registers => "the registers of MMAs in flight",
            Object::Observed => "what is printed or trapped",
            Object::Everything => "memory",
        }
    }
}

/// What one operation touches, and whether it changes it.
pub(super) struct Touches {
    pub(super) objects: Vec<(Object, bool)>,
    /// Whether it may access a tensor.
    pub(super) of_tensors: bool,
}

/// The numbers of operations on rings in a loop's body: for each, the object that it touches in the first iteration, whether it changes it,
/// and by how much the number is greater in the next one.
pub(super) fn numbered(kernel: &Kernel, ops: &[OpId]) -> SortedMap<OpId, (Object, bool, i32)> {
    let side = |id: &OpId| {
        let op = kernel.op(*id);
        if let Some(pipe) = filled_in_either_arm(kernel, op) {
            return Some((pipe, 0));
        }
        let OpKind::Ttg(ttg) = &op.kind else { return None };
        let is = [
            matches!(ttg, TtgOp::AsyncProduce { .. } | TtgOp::Fill(_)),
            *ttg == TtgOp::WaitReady,
            matches!(ttg, TtgOp::Acquire(_)),
            *ttg == TtgOp::Release,
        ];
        Some((ring_of(kernel, op)?, is.iter().position(|is| *is)?))
    };
    let mut found: SortedMap<(Pipe, usize), Vec<OpId>> = SortedMap::new();
    ops.iter().filter_map(|id| Some((side(id)?, *id))).for_each(|(key, id)| found.entry(key).or_default().push(id));
    let mut numbers = SortedMap::new();
    for (pipe, decl) in kernel.pipes.iter().enumerate().map(|(at, decl)| (Pipe::new(at), decl)) {
        let mut nested = false;
        // An operation of the ring in a branch or in a loop is executed an unknown number of times in an iteration, and
        // so the numbers behind it are not known. Then no object links the sides of this ring, and each keeps the order
        // of its own operations.
        let others = ops.iter().filter(|id| filled_in_either_arm(kernel, kernel.op(**id)) != Some(pipe));
        for block in others.flat_map(|id| &kernel.op(*id).regions) {
            kernel.walk_block(*block, &mut |_, op| nested |= ring_of(kernel, op) == Some(pipe));
        }
        if nested {
            continue;
        }
        let of = |side: usize| found.get(&(pipe, side)).map_or(&[][..], Vec::as_slice);
        let slots = i32::try_from(decl.slots).unwrap_or(i32::MAX / 2);
        for (first, second) in [(0, 1), (2, 3)] {
            let per_iteration = i32::try_from(of(first).len()).unwrap_or(0);
            // With two fills and one wait in a body, the number of a wait would not advance as that of the fills, and
            // the pairs would be wrong.
            if of(first).len() != of(second).len() {
                continue;
            }
            for (side, place, id) in
                [first, second].into_iter().flat_map(|side| (0..).zip(of(side)).map(move |(n, id)| (side, n, id)))
            {
                let number = match side {
                    0 => (Object::Filled(pipe, place), true, per_iteration),
                    1 => (Object::Filled(pipe, place), false, per_iteration),
                    // In a ring of two slots with one acquisition and one release in an iteration: acquisition 0
                    // touches number -2, acquisition 2 number 0, which is what release 0 touches. So acquisition 2 must
                    // follow release 0, and acquisitions 0 and 1 follow nothing.
                    2 => (Object::Freed(pipe, place - slots), true, per_iteration),
                    _ => (Object::Freed(pipe, place), false, per_iteration),
                };
                numbers.insert(*id, number);
            }
        }
    }
    numbers
}

impl Object {
    /// The same object of a later iteration.
    pub(super) const fn later(self, by: i32) -> Object {
        match self {
            Object::Filled(pipe, n) => Object::Filled(pipe, n + by),
            Object::Freed(pipe, n) => Object::Freed(pipe, n + by),
            Object::Named(_)
            | Object::Allocated(_)
            | Object::Ring(..)
            | Object::Tensors
            | Object::Shared
            | Object::Fenced(_)
            | Object::Registers
            | Object::Observed
            | Object::Everything => self,
        }
    }
}

/// The ring of which a branch fills one stage, whichever arm is executed, without doing anything else to rings.
fn filled_in_either_arm(kernel: &Kernel, op: &Op) -> Option<Pipe> {
    if op.kind != OpKind::If {
        return None;
    }
    let mut rings = Vec::new();
    for arm in &op.regions {
        let (mut fills, mut others) = (Vec::new(), false);
        for id in &kernel.block(*arm).ops {
            let op = kernel.op(*id);
            // Both arms must fill the same ring once, and do nothing else to rings: then the branch fills it once
            // whichever arm is executed.
            if matches!(op.kind, OpKind::Ttg(TtgOp::AsyncProduce { .. } | TtgOp::Fill(_))) {
                fills.push(ring_of(kernel, op)?);
            } else {
                others |= ring_of(kernel, op).is_some() || !op.regions.is_empty();
            }
        }
        let ([ring], false) = (&fills[..], others) else { return None };
        rings.push(*ring);
    }
    match rings[..] {
        [first, second] if first == second => Some(first),
        _ => None,
    }
}

/// The ring that an operation is on.
pub(super) fn ring_of(kernel: &Kernel, op: &Op) -> Option<Pipe> {
    op.args.iter().chain(&op.results).find_map(|v| kernel.ty(*v).ring())
}

/// What an operation itself touches, without those nested in it. Its operands have these labels.
///
/// `before` is the kernel whose operations instances are of, and `fence` the fence in front of the MMA that this is, if that is known, or this
/// one.
pub(super) fn touches(
    [before, kernel]: [&Kernel; 2],
    (op, fence): (&Op, Option<OpId>),
    args: &[Label],
    labels: &Labels,
) -> Touches {
    let mut found = Found { before, kernel, op, fence, args, labels, objects: Vec::new(), of_tensors: false };
    found.of_kind();
    found.of_tokens();
    found.of_accesses();
    // Every operation with an effect touches everything without changing it. So it is kept in order with those that
    // change everything, as the end of a loop that is left, and with no others.
    if op.kind.effect() != Effect::Pure {
        found.objects.push((Object::Everything, false));
    }
    Touches { objects: found.objects, of_tensors: found.of_tensors }
}

struct Found<'k> {
    before: &'k Kernel,
    kernel: &'k Kernel,
    op: &'k Op,
    fence: Option<OpId>,
    args: &'k [Label],
    labels: &'k Labels,
    objects: Vec<(Object, bool)>,
    of_tensors: bool,
}

impl Found<'_> {
    fn changes(&mut self, object: Object) {
        self.objects.push((object, true));
    }

    fn touches(&mut self, object: Object) {
        self.objects.push((object, false));
    }

    fn side(&mut self, side: Side) {
        match ring_of(self.kernel, self.op) {
            Some(pipe) => self.changes(Object::Ring(pipe, side)),
            None => self.changes(Object::Everything),
        }
    }

    /// The memory that a root stands for.
    fn object(&self, root: Label) -> Object {
        let allocates = |op: &OpId| {
            let op = self.before.ops.get(op.index());
            op.is_some_and(|op| matches!(op.kind, OpKind::Local(LocalOp::Alloc { .. })))
        };
        self.labels.instance_of(root).filter(allocates).map_or(Object::Named(root), Object::Allocated)
    }

    /// The memory that an operand names, or whatever of its kind there is.
    fn memory(&mut self, place: usize, changes: bool, any: Object) {
        let roots = self.args.get(place).map_or(&[][..], |label| self.labels.roots(*label));
        // A name of unknown memory may be of any of its kind. It changes `any` although it may only read: all others
        // touch `any`, and so each of them stays in order with it.
        if roots.is_empty() || roots.contains(&Labels::ANYWHERE) {
            self.changes(any);
        }
        for root in roots {
            self.objects.push((self.object(*root), changes));
        }
        self.touches(any);
    }

    /// What the dialect of the operation says, other than its accesses.
    fn of_kind(&mut self) {
        match self.op.kind.family() {
            Family::Data(effect) => self.of_data(effect),
            // What is in a branch or a loop is told operation by operation; a `loop` may not end.
            Family::Flow(Flow::Loop) => self.changes(Object::Observed),
            Family::Flow(Flow::For(_) | Flow::If | Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return) => {
            }
            Family::Ttg(op) => self.of_ttg(op),
            Family::Local(op) => self.of_local(op),
            Family::Region(_) | Family::Amd(_) => self.changes(Object::Everything),
            Family::Nv(op) => self.of_nv(op),
        }
    }

    fn of_data(&mut self, effect: Effect) {
        match effect {
            Effect::Pure | Effect::Read | Effect::Control => {}
            Effect::Trap | Effect::Print => self.changes(Object::Observed),
            // A store of an element traps if there is no such element; one of a tile leaves out what is outside.
            Effect::Write if self.op.kind == OpKind::Set => self.changes(Object::Observed),
            Effect::Write => self.touches(Object::Observed),
            Effect::Atomic => {
                self.changes(Object::Observed);
                self.changes(Object::Tensors);
            }
            Effect::Pipeline => self.changes(Object::Everything),
        }
    }

    fn of_ttg(&mut self, op: &TtgOp) {
        match op {
            TtgOp::Acquire(pipe) => self.changes(Object::Ring(*pipe, Side::Acquires)),
            TtgOp::Ready(pipe) => self.changes(Object::Ring(*pipe, Side::Pends)),
            TtgOp::AsyncProduce { .. } | TtgOp::Fill(_) | TtgOp::Write => self.side(Side::Fills),
            TtgOp::WaitReady => self.side(Side::Waits),
            TtgOp::Release => self.side(Side::Releases),
            // Names and permissions, whose tokens and accesses say all.
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Poisoned
            | TtgOp::ReadPerm
            | TtgOp::Split(_)
            | TtgOp::Join
            | TtgOp::View { .. }
            | TtgOp::Read
            | TtgOp::Consumed
            | TtgOp::ComputeIssue
            | TtgOp::ComputeWait
            | TtgOp::StoreWait
            | TtgOp::Rematerialize => {}
            TtgOp::StoreIssue(_) => self.touches(Object::Observed),
            TtgOp::Fence { .. } => {
                self.changes(Object::Shared);
                self.changes(Object::Tensors);
            }
            // An accumulator releases stages whose tokens it has taken.
            TtgOp::AccStart(_) | TtgOp::AccMma | TtgOp::AccFinish => self.changes(Object::Everything),
            TtgOp::Roles | TtgOp::Finalize | TtgOp::Claim(..) => self.changes(Object::Everything),
        }
    }

    fn of_local(&mut self, op: &LocalOp) {
        match op {
            LocalOp::Settle { .. } if self.op.args.is_empty() => self.changes(Object::Shared),
            LocalOp::Settle { .. } => {
                (0..self.op.args.len()).for_each(|place| self.memory(place, true, Object::Shared))
            }
            // Where shared memory is allocated does not matter, only which operations use it; these are told by their accesses.
            LocalOp::Alloc { .. } | LocalOp::Store | LocalOp::Load | LocalOp::Copy { .. } | LocalOp::Fetch { .. } => {}
            LocalOp::Guard
            | LocalOp::Slice { .. }
            | LocalOp::Reshape(_)
            | LocalOp::Stack
            | LocalOp::Mma
            | LocalOp::Convert
            | LocalOp::Fold { .. } => {}
        }
    }

    fn of_nv(&mut self, op: NvOp) {
        match op {
            NvOp::WgmmaFence => match self.fence {
                Some(fence) => {
                    self.changes(Object::Fenced(fence));
                    self.touches(Object::Registers);
                }
                // It may be in front of any product.
                None => self.changes(Object::Registers),
            },
            NvOp::Wgmma => {
                self.objects.extend(self.fence.map(|fence| (Object::Fenced(fence), false)));
                self.touches(Object::Registers);
            }
            NvOp::BulkStore { .. } => self.touches(Object::Observed),
            NvOp::ClusterRank | NvOp::BulkLoad { .. } => {}
            NvOp::MbarrierAlloc { .. }
            | NvOp::MbarrierAt
            | NvOp::MbarrierInit { .. }
            | NvOp::MbarrierInval
            | NvOp::Arrive { .. }
            | NvOp::ArriveCluster { .. }
            | NvOp::ArriveExpectTx { .. }
            | NvOp::ExpectTx { .. }
            | NvOp::MbarrierWait
            | NvOp::WaitParity
            | NvOp::TryWait
            | NvOp::TestWait
            | NvOp::FenceMbarrierInit
            | NvOp::CpAsync { .. }
            | NvOp::CpAsyncArrive { .. }
            | NvOp::Commit { .. }
            | NvOp::WaitGroup { .. }
            | NvOp::BarrierSync { .. }
            | NvOp::BarrierArrive { .. }
            | NvOp::ClusterArrive
            | NvOp::ClusterWait
            | NvOp::WarpSync
            | NvOp::SequenceInit
            | NvOp::SequenceStore
            | NvOp::SequenceWait
            | NvOp::SetMaxNReg { .. }
            | NvOp::Tcgen05(_) => self.changes(Object::Everything),
        }
    }

    /// Tokens are consumed by what does not borrow them, branches and loops included.
    fn of_tokens(&mut self) {
        let borrows = match self.op.kind.family() {
            Family::Ttg(op) => op.uses() == Use::Borrow,
            Family::Data(_)
            | Family::Flow(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => false,
        };
        for (value, label) in self.op.args.iter().zip(self.args) {
            match self.kernel.ty(*value) {
                // Consuming a token is a change, so a read of the stage through a borrowed token may change places with
                // another read, but not with the release.
                Ty::Token(..) | Ty::Acc(..) => self.objects.push((Object::Named(*label), !borrows)),
                // An MMA in flight reads its operands until it is waited for.
                Ty::Compute(..) => {
                    self.objects.push((Object::Named(*label), !borrows));
                    for root in self.labels.roots(*label) {
                        self.objects.push((self.object(*root), false));
                    }
                }
                // These belong to barrier programs.
                Ty::Barrier(_) => self.objects.push((Object::Everything, true)),
                Ty::Scalar(_) | Ty::Tile(..) | Ty::Tensor(..) | Ty::Source(..) | Ty::Smem(..) => {}
            }
        }
    }

    fn of_accesses(&mut self) {
        for access in traffic(&self.op.kind).accesses.iter().flatten() {
            for place in 0..self.op.args.len() {
                let Some(value) = self.op.args.get(place) else { continue };
                match (access.on, self.kernel.ty(*value)) {
                    (On::Tensor, Ty::Tensor(..) | Ty::Source(..)) => {
                        self.of_tensors = true;
                        self.memory(place, access.writes, Object::Tensors);
                    }
                    (On::Regions | On::Words | On::Stage | On::Local, Ty::Smem(..)) => {
                        self.memory(place, access.writes, Object::Shared);
                    }
                    // A slot is written by what consumes its token.
                    (On::Stage, Ty::Token(..)) => self.touches(Object::Shared),
                    (On::Regions | On::Words | On::Local, Ty::Token(..))
                    | (On::Tensor, Ty::Token(..) | Ty::Smem(..))
                    | (On::Regions | On::Words | On::Stage | On::Local, Ty::Tensor(..) | Ty::Source(..))
                    | (_, Ty::Scalar(_) | Ty::Tile(..) | Ty::Compute(..) | Ty::Acc(..) | Ty::Barrier(_)) => {}
                }
            }
        }
    }
}
