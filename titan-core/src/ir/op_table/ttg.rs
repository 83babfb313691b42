//! Operations on rings, roles and fences.

use super::facts::{PURE, operation, synchronous};
use super::syntax::{Form, Head, HeadError, Int, Written};
use super::*;
use crate::ir::Completion::Phase;
use crate::ir::Effect::{Control, Pipeline, Read, Write};
use crate::ir::Proxy::{Async, Generic};
use crate::ir::Stated::Nothing;
use crate::ir::Use::{Borrow, Move};
use crate::ir::traffic::On::{Stage, Tensor};
use crate::ir::traffic::Order::{Ends, Fences, Specializes};
use crate::ir::traffic::{NO_TRAFFIC, one, order, reads, two, writes};
use crate::ir::{Claim, Fill, TtgOp, Unit, Use};

/// The meaning of the integer in angle brackets.
const RING: &str = "the number of the ring";

/// The facts of an operation of this dialect.
#[derive(Clone, Copy, Debug)]
pub(in crate::ir) struct TtgFacts {
    facts: Facts,
    /// The use of the tokens among the operands.
    pub(in crate::ir) uses: Use,
    /// Whether it is an operation on stages, which barrier programs do not contain.
    pub(in crate::ir) of_rings: bool,
}

/// An operation on stages: fills, reads, stores, releases.
const fn ring(uses: Use, facts: Facts) -> TtgFacts {
    TtgFacts { facts, uses, of_rings: true }
}

/// An operation that barrier programs may contain.
const fn other(uses: Use, facts: Facts) -> TtgFacts {
    TtgFacts { facts, uses, of_rings: false }
}

pub(super) const fn facts(op: &TtgOp) -> Facts {
    ttg_facts(op).facts
}

table! {
    TtgOp, ttg_facts -> TtgFacts;

    "ttg.source_tile" Stages [TtgOp::Source(Unit::Tile, shape)] : source(shape) AtOr, other(Move, PURE),
        "`t.tile([i, j])`", "t: tensor, an i32 per axis, pad: scalar" => "source [A, B]", ANY,
        "the tile at tile coordinates, as the source of a copy", [RankMismatch IndexType TileSize];
    "ttg.source_at" Stages [TtgOp::Source(Unit::Elem, shape)] : source(shape) AtOr, other(Move, PURE),
        "`t.tile_at([r, c])`", "t: tensor, an i32 per axis, pad: scalar" => "source [A, B]", ANY,
        "the tile whose first element is at these coordinates, as the source of a copy", [RankMismatch IndexType TileSize];
    "ttg.source_rows" Stages [TtgOp::SourceRows { rows, width }] : rows_of_source(rows, width)
        AtOr, other(Move, synchronous(Read, NO_TRAFFIC)),
        "`t.rows((i, ..), col)`", "t: tensor, an i32 or Tile<i32, N> per leading axis, col: i32, pad: scalar"
        => "source [N, W]", ANY, "rows named by indices, for a copy", [IndexType TileSize];
    // Rings have their own protocol, which the verifier checks: their waits and releases order nothing here.
    "ttg.stage.acquire" Stages [TtgOp::Acquire(pipe)] <pipe> RING Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`ring.acquire()`  `ring.produce(range)`", "perhaps the time: i32" => "slot", NONE,
        "waits for Free(s, e) of the next time of the filling side", [RingMade WrongSide WaitCycle TooManyHeld WrongTime];
    "ttg.stage.async_produce" Stages [TtgOp::AsyncProduce { bytes, proxy, skipped }]
        {bytes = 16384, proxy = generic, skipped or None}
        Plain, ring(Move, operation(Pipeline, one(writes(Stage, *proxy)), Phase, Nothing)),
        "`slot.copy(source).commit()`  `slot.copy_if(c, source).commit()`", "slot, a source per field (or what was fetched of it), perhaps a condition"
        => "", NONE, "starts the copies; Ready(s, e) when the bytes are there, or what `skipped` says if the condition is false",
        [StageContents SourceWritten];
    "ttg.stage.zero" Stages [TtgOp::Fill(Fill::Zero)]
        Plain, ring(Move, synchronous(Pipeline, one(writes(Stage, Generic)))),
        "`slot.zero().commit()`", "slot" => "", NONE, "the stage is ready and holds zeros, which the copier writes", [];
    // Counts as a write: the next copy into the slot comes after it.
    "ttg.stage.poison" Stages [TtgOp::Fill(Fill::Poison)]
        Plain, ring(Move, synchronous(Pipeline, one(writes(Stage, Generic)))),
        "`slot.poison().commit()`", "slot" => "", NONE, "the stage is ready and may not be read", [];
    "ttg.stage.ready" Stages [TtgOp::Ready(pipe)] <pipe> RING Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`ring.ready()`  `ring.consume(range)`", "perhaps the time: i32" => "ready", NONE,
        "a pending wait for the next time of the reading side; does not wait", [RingMade WrongSide WrongTime];
    "ttg.stage.wait_ready" Stages [TtgOp::WaitReady] Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`ready.wait()`", "ready" => "stage", NONE, "waits for Ready(s, e)", [Unbalanced WaitCycle TooManyHeld];
    "ttg.stage.poisoned" Stages [TtgOp::Poisoned] Plain, ring(Borrow, synchronous(Pipeline, NO_TRAFFIC)),
        "`if let Some(stage) = ready.wait_filled() { .. }`", "stage" => "bool", NONE, "whether the stage is poison", [];
    "ttg.stage.read_perm" Stages [TtgOp::ReadPerm] Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`ready.wait()`", "stage" => "rperm", NONE, "the permission to read the stage", [PoisonRead];
    "ttg.rperm.split" Stages [TtgOp::Split(parts)] <parts> "how many parts"
        Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`stage.split::<2>()`", "rperm" => "so many parts", NONE, "splits the read permission into a part for each of several readers",
        [ReadersApart];
    "ttg.rperm.join" Stages [TtgOp::Join] Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`Stage::join(parts)`", "every part" => "rperm", NONE, "joins the parts of a read permission", [ReadersApart];
    "ttg.stage.view" Stages [TtgOp::View { field, elem, shape }] <field> "which tile of the stage" : smem(elem, shape)
        Plain, ring(Borrow, PURE),
        "`stage.a()`  `stage.get()`", "rperm or a part" => "smem [A, B]", ANY, "a tile of the stage, in shared memory",
        [StageContents EarlyRelease];
    "ttg.stage.read" Stages [TtgOp::Read] Plain, ring(Move, synchronous(Read, one(reads(Stage, Generic)))),
        "`stage.a().load()`", "smem" => "tile [A, B]", ANY, "its elements, in registers", [EarlyRelease];
    "ttg.stage.consumed" Stages [TtgOp::Consumed] Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`stage.release()`", "rperm, or the stage unread" => "consumed", NONE, "the end of reading the stage",
        [EarlyRelease ReadersApart];
    "ttg.stage.release" Stages [TtgOp::Release] Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`stage.release()`", "consumed" => "", NONE, "Free(s, e + 1)", [];
    "ttg.stage.write" Stages [TtgOp::Write] Plain, ring(Move, synchronous(Pipeline, one(writes(Stage, Generic)))),
        "`slot.write(tile)`", "slot, a tile per field" => "written", ANY, "fills a slot of a staging ring from registers",
        [StageContents StagingReused];

    "ttg.compute.issue" Compute [TtgOp::ComputeIssue]
        Plain, ring(Move, synchronous(Pipeline, one(reads(Stage, Async)))),
        "`mma_async(a, b, acc)`", "a: smem or tile, b: smem, acc: tile" => "compute", TRIPLES,
        "starts a · b + acc", [MmaElements ShapeMismatch];
    "ttg.compute.wait" Compute [TtgOp::ComputeWait] Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`product.wait()`", "compute" => "tile", ANY, "waits for the MMA", [];
    "ttg.acc.start" Compute [TtgOp::AccStart(n)] <n> "how many MMAs may be in flight"
        Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`Acc::<f32, D2<M, N>, KEEP>::zeros()`", "tile" => "acc", ANY, "an accumulator with up to KEEP MMAs in flight", [];
    "ttg.acc.mma" Compute [TtgOp::AccMma] Plain, ring(Move, synchronous(Pipeline, one(reads(Stage, Async)))),
        "`acc.mma(stage, |s| (s.a(), s.b()))`", "acc, rperm, a, b" => "acc", TRIPLES,
        "starts acc += a · b and takes the stage, which is released when the MMA has read it: at most KEEP MMAs later",
        [MmaElements ShapeMismatch];
    "ttg.acc.finish" Compute [TtgOp::AccFinish] Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`acc.finish()`", "acc" => "tile", ANY, "waits for all its MMAs and releases their stages", [];

    "ttg.store.issue_tile" Stores [TtgOp::StoreIssue(Unit::Tile)]
        AtValue, ring(Move, synchronous(Write, two(reads(Stage, Async), writes(Tensor, Async)))),
        "`written.store(&mut c, [m, n])`", "t: tensor, an i32 per axis, written" => "store", ANY,
        "starts the store of a slot at tile coordinates", [StoreToInput StageContents InFlight];
    "ttg.store.issue_at" Stores [TtgOp::StoreIssue(Unit::Elem)]
        AtValue, ring(Move, synchronous(Write, two(reads(Stage, Async), writes(Tensor, Async)))),
        "`written.store_at(&mut c, [r, c])`", "t: tensor, an i32 per axis, written" => "store", ANY,
        "starts the store of a slot at element coordinates", [StoreToInput StageContents InFlight];
    "ttg.store.wait" Stores [TtgOp::StoreWait] Plain, ring(Move, synchronous(Pipeline, NO_TRAFFIC)),
        "`store.wait()`", "store" => "", NONE, "waits until the slot has been read: it may be filled again", [];

    "ttg.roles" Roles [TtgOp::Roles] Plain, other(Move, synchronous(Control, order(Specializes))),
        "`match role() { Role::Producer => .., Role::Consumer => .. }`", "" => "", NONE,
        "every role runs its block with its own warps, concurrently", [RolesAttr RolesDiverge RoleValue TwoWriters];
    "ttg.pipeline.finalize" Roles [TtgOp::Finalize] Plain, other(Move, synchronous(Pipeline, order(Ends))),
        "the end of a role", "" => "", NONE, "none of the role's asynchronous work is still in flight", [NotFinalized];
    "ttg.hint.rematerialize" Roles [TtgOp::Rematerialize] Plain, ring(Move, PURE),
        "", "x" => "as x", ANY, "x, which is cheaper to compute again than to keep", [];
    "ttg.claim.acquired" Roles [TtgOp::Claim(Claim::Acquired, pipe)] <pipe> RING
        Plain, other(Borrow, synchronous(Pipeline, NO_TRAFFIC)),
        "", "region, slot: i32, round: i32" => "", NONE, "the operations before have waited until the slot is free", [];
    "ttg.claim.filled" Roles [TtgOp::Claim(Claim::Filled, pipe)] <pipe> RING
        Plain, other(Borrow, synchronous(Pipeline, NO_TRAFFIC)),
        "", "region, slot: i32, round: i32" => "", NONE, "the operations before determine when the slot is filled", [];
    "ttg.claim.next" Roles [TtgOp::Claim(Claim::Next, pipe)] <pipe> RING
        Plain, other(Borrow, synchronous(Pipeline, NO_TRAFFIC)),
        "", "region, slot: i32, round: i32" => "", NONE, "this is the slot that this role reads next", [];
    "ttg.claim.ready" Roles [TtgOp::Claim(Claim::Ready, pipe)] <pipe> RING
        Plain, other(Borrow, synchronous(Pipeline, NO_TRAFFIC)),
        "", "region, slot: i32, round: i32" => "", NONE, "the operations before have waited until the slot is filled", [];
    "ttg.claim.released" Roles [TtgOp::Claim(Claim::Released, pipe)] <pipe> RING
        Plain, other(Borrow, synchronous(Pipeline, NO_TRAFFIC)),
        "", "region, slot: i32, round: i32" => "", NONE, "the operations before release the slot for this role", [];
    "ttg.fence.proxy" Roles [TtgOp::Fence { from, to, scope, space }]
        {from = generic, to = async, scope = cta, space = shared}
        Plain, other(Move, synchronous(Pipeline, order(Fences))),
        "", "" => "", NONE, "orders earlier accesses through the proxy `from` before later accesses through the proxy `to`", [];
}
