//! Operations of NVIDIA GPUs: barriers, copies, groups.

use super::facts::{PURE, operation, synchronous};
use super::syntax::{Form, Head, HeadError, Written};
use super::*;
use crate::ir::Completion::{Immediate, Phase, Prefix};
use crate::ir::Effect::{Pipeline, Write};
use crate::ir::Proxy::{Async, Generic};
use crate::ir::Stated::{Arrivals, Copies, CopyArrivals, Count, Expects, Named, Nothing, Registers};
use crate::ir::traffic::On::{Local, Regions, Tensor, Words};
use crate::ir::traffic::Order::{
    Acquires, Awaits, Commits, FencesWords, Polls, Releases, ReleasesCopies, Synchronizes,
};
use crate::ir::traffic::{NO_TRAFFIC, one, order, reads, three, two, writes};
use crate::ir::{Class, NvGroup, NvOp, Strided};

/// A bulk copy to shared memory. Its operand is a region or a tile in a region, so that there are accesses of both kinds; the same applies
/// to stores and MMAs.
const fn bulk_load(bytes: u32) -> Facts {
    let accesses = three(writes(Regions, Async), writes(Local, Async), reads(Tensor, Async));
    operation(Pipeline, accesses, Phase, Copies { bytes, bulk: true })
}

const fn bulk_store(bytes: u32) -> Facts {
    let accesses = three(reads(Regions, Async), reads(Local, Async), writes(Tensor, Async));
    operation(Write, accesses, Prefix(Class::BulkStore), Copies { bytes, bulk: true })
}

table! {
    NvOp, facts -> Facts;

    "ttg.nv.mbarrier.alloc" Barriers [NvOp::MbarrierAlloc { at, n }] {at = 0, n = 4} Plain, PURE,
        "", "region" => "mbarrier", NONE, "n barriers of 8 bytes each, from byte `at` of a region on", [BarrierWord];
    "ttg.nv.mbarrier.at" Barriers [NvOp::MbarrierAt] Plain, PURE,
        "", "mbarrier, i: i32" => "mbarrier", NONE, "one of them", [BarrierWord NotShown];
    // Initialisation and invalidation are generic writes of the words of the barrier.
    "ttg.nv.mbarrier.init" Barriers [NvOp::MbarrierInit { count }] {count = 1}
        Plain, operation(Pipeline, one(writes(Words, Generic)), Immediate, Count(*count)),
        "", "mbarrier" => "", NONE, "initialises the barrier: a phase completes with `count` arrivals and the expected bytes", [BarrierLife BarrierCount];
    "ttg.nv.mbarrier.inval" Barriers [NvOp::MbarrierInval] Plain, synchronous(Pipeline, one(writes(Words, Generic))),
        "", "mbarrier" => "", NONE, "invalidates the barrier: its word is ordinary memory again", [BarrierLife];
    "ttg.nv.mbarrier.arrive" Barriers [NvOp::Arrive { arrivals }] {arrivals = 1}
        Plain, operation(Pipeline, order(Releases), Immediate, Arrivals(*arrivals)),
        "", "mbarrier" => "mbarrier.state", NONE, "arrives this many times; gives the phase in which the arrivals counted", [BarrierCount PhaseMixed];
    "ttg.nv.mbarrier.arrive_cluster" Barriers [NvOp::ArriveCluster { arrivals }] {arrivals = 1}
        Plain, operation(Pipeline, order(Releases), Immediate, Arrivals(*arrivals)),
        "", "mbarrier" => "", NONE, "arrives this many times at this barrier of each program of the cluster", [NotShown];
    "ttg.nv.mbarrier.arrive_expect_tx" Barriers [NvOp::ArriveExpectTx { bytes }] {bytes = 16384}
        Plain, operation(Pipeline, order(Releases), Immediate, Expects(*bytes)),
        "", "mbarrier" => "mbarrier.state", NONE, "expects bytes (expect_tx) and arrives once", [TxBytes BarrierCount PhaseMixed];
    // Does not release the role's earlier accesses.
    "ttg.nv.mbarrier.expect_tx" Barriers [NvOp::ExpectTx { bytes }] {bytes = 16384}
        Plain, operation(Pipeline, NO_TRAFFIC, Immediate, Expects(*bytes)),
        "", "mbarrier" => "", NONE, "expects bytes (expect_tx)", [TxBytes PhaseMixed];
    "ttg.nv.mbarrier.wait" Barriers [NvOp::MbarrierWait] Plain, synchronous(Pipeline, order(Acquires)),
        "", "mbarrier, state" => "", NONE, "waits for the phase of an arrival", [NeverCompletes PhaseMixed NotShown];
    "ttg.nv.mbarrier.wait_parity" Barriers [NvOp::WaitParity] Plain, synchronous(Pipeline, order(Acquires)),
        "", "mbarrier, parity: i32" => "", NONE, "waits until the phase of this parity is complete", [WaitParity NeverCompletes PhaseMixed NotShown];
    "ttg.nv.mbarrier.try_wait" Barriers [NvOp::TryWait] Plain, synchronous(Pipeline, order(Polls)),
        "", "mbarrier, parity: i32" => "bool", NONE, "whether it is, after a suspended wait with a time limit; the result proves nothing, but a loop that only repeats the test until it is true is a wait", [BarrierLife];
    "ttg.nv.mbarrier.test_wait" Barriers [NvOp::TestWait] Plain, synchronous(Pipeline, order(Polls)),
        "", "mbarrier, parity: i32" => "bool", NONE, "whether it is; the result proves nothing, but a loop that only repeats the test until it is true is a wait", [BarrierLife];
    "ttg.nv.fence.mbarrier_init" Barriers [NvOp::FenceMbarrierInit] Plain, synchronous(Pipeline, order(FencesWords)),
        "", "" => "", NONE, "makes initialised barriers visible to bulk copies and to the cluster", [BarrierLife];

    "ttg.nv.cp_async_bulk_tensor.load" Copies [NvOp::BulkLoad { tensor: true, bytes, multicast, strided: Strided { along, boxed, every, zeros } }]
        {bytes = 16384, multicast or 0, along or 0, boxed or 0, every or 1, zeros or false} AtMany, bulk_load(*bytes),
        "", "t: tensor, an i32 per axis, region, mbarrier; or source, smem, mbarrier" => "", ANY,
        "starts a copy of a box of a tensor, or of a tile; its bytes are taken from what the barrier expects. Boxes of `boxed` elements `along` an axis may be stated, of which one in `every` is copied, and that what is beyond a box is to be zero (`zeros`)", [TxBytes InFlight PhaseMixed NotShown NoTensorMap StridedZeros];
    "ttg.nv.cp_async_bulk_tensor.store" Copies [NvOp::BulkStore { tensor: true, bytes }] {bytes = 16384} AtMany, bulk_store(*bytes),
        "", "t: tensor, an i32 per axis, region; or source, smem" => "", ANY,
        "starts a copy to a box of a tensor, or to a tile of one, in the open group of bulk stores", [InFlight InFlightAtEnd];
    "ttg.nv.cp_async_bulk.load" Copies [NvOp::BulkLoad { tensor: false, bytes, multicast, strided }]
        {bytes = 16384, multicast or 0} : unstrided(strided) AtMany, bulk_load(*bytes),
        "", "t: tensor, an i32 per axis, region, mbarrier" => "", ANY, "the same of contiguous bytes", [TxBytes InFlight PhaseMixed NotShown];
    "ttg.nv.cp_async_bulk.store" Copies [NvOp::BulkStore { tensor: false, bytes }] {bytes = 16384} AtMany, bulk_store(*bytes),
        "", "t: tensor, an i32 per axis, region" => "", ANY, "the same to contiguous bytes", [InFlight InFlightAtEnd];
    "ttg.nv.cp_async" Copies [NvOp::CpAsync { bytes }] {bytes = 16384}
        AtMany, operation(Pipeline, two(writes(Regions, Generic), reads(Tensor, Generic)), Prefix(Class::CpAsync),
            Copies { bytes: *bytes, bulk: false }),
        "", "t: tensor, an i32 per axis, region" => "", ANY, "starts copies of the role's threads, in the open group", [InFlight GroupOpen InFlightAtEnd];
    "ttg.nv.cp_async.mbarrier_arrive" Copies [NvOp::CpAsyncArrive { noinc, arrivals }] {arrivals = 32, noinc = true}
        Plain, operation(Pipeline, order(ReleasesCopies), Phase, CopyArrivals(*arrivals)),
        "", "mbarrier" => "", NONE, "each thread of the role arrives when all its earlier `cp.async` complete; without `noinc` the count is raised first", [BarrierCount PhaseMixed Participants];
    "ttg.nv.cp_async.commit_group" Copies [NvOp::Commit { group: NvGroup::CpAsync, n }] : vtok(n)
        Plain, synchronous(Pipeline, order(Commits(Class::CpAsync))),
        "", "" => "vtok", NONE, "commits the open group", [GroupOrder];
    "ttg.nv.cp_async.wait_group" Copies [NvOp::WaitGroup { group: NvGroup::CpAsync, n, read }] {n = 0} : off(read)
        Plain, synchronous(Pipeline, order(Awaits(Class::CpAsync))),
        "", "" => "", NONE, "waits until at most n groups are in flight", [];
    "ttg.nv.bulk_group.commit" Copies [NvOp::Commit { group: NvGroup::BulkStore, n }] : vtok(n)
        Plain, synchronous(Pipeline, order(Commits(Class::BulkStore))),
        "", "" => "vtok", NONE, "commits the open group of bulk stores", [GroupOrder];
    "ttg.nv.bulk_group.wait" Copies [NvOp::WaitGroup { group: NvGroup::BulkStore, n, read }] {n = 0, read = true}
        Plain, synchronous(Pipeline, order(Awaits(Class::BulkStore))),
        "", "" => "", NONE, "waits until at most n groups have not yet written or, with `read`, not yet read their regions", [];

    "ttg.nv.wgmma.fence" Warpgroups [NvOp::WgmmaFence] Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "" => "", NONE, "orders register accesses before MMAs that use them", [];
    "ttg.nv.wgmma.mma_async" Warpgroups [NvOp::Wgmma]
        Plain, operation(Pipeline, two(reads(Regions, Async), reads(Local, Async)), Prefix(Class::Wgmma), Nothing),
        "", "one or two regions; or a: tile or smem, b: smem, acc: tile or compute" => "compute", NONE,
        "starts an MMA on shared memory, in the open group; of tiles, the result of a · b + acc is in flight", [InFlight GroupOpen InFlightAtEnd];
    "ttg.nv.wgmma.commit_group" Warpgroups [NvOp::Commit { group: NvGroup::Wgmma, n }] : vtok(n)
        Plain, synchronous(Pipeline, order(Commits(Class::Wgmma))),
        "", "" => "vtok", NONE, "commits the open group", [GroupOrder];
    "ttg.nv.wgmma.wait_group" Warpgroups [NvOp::WaitGroup { group: NvGroup::Wgmma, n, read }] {n = 0} : off(read)
        Plain, synchronous(Pipeline, order(Awaits(Class::Wgmma))),
        "", "any number of: compute" => "as many tiles", NONE,
        "waits until at most n groups are in flight; gives the results of MMAs that are complete then", [];
    // The lanes of a warp count as one thread of control.
    "ttg.nv.warp.sync" Warpgroups [NvOp::WarpSync] Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "" => "", NONE, "a barrier of the lanes of each warp of the role", [];
    "ttg.nv.sequence.init" Warpgroups [NvOp::SequenceInit] Plain, synchronous(Pipeline, one(writes(Regions, Generic))),
        "", "region" => "", NONE, "sets the counters of a region, one word per part, to 0", [];
    "ttg.nv.sequence.store" Warpgroups [NvOp::SequenceStore] Plain, synchronous(Pipeline, order(Releases)),
        "", "region, n: i32" => "", NONE, "one thread stores a counter, with release semantics for its role's earlier accesses", [];
    "ttg.nv.sequence.wait" Warpgroups [NvOp::SequenceWait] Plain, synchronous(Pipeline, order(Acquires)),
        "", "region, n: i32" => "", NONE, "waits until a counter is at least n, with acquire semantics", [];
    "ttg.nv.setmaxnreg" Warpgroups [NvOp::SetMaxNReg { registers }] {registers = 240}
        Plain, operation(Pipeline, NO_TRAFFIC, Immediate, Registers(*registers)),
        "", "" => "", NONE, "sets the number of registers of each thread of the role, as its first operation; waits until the program has so many", [Participants];
    "ttg.nv.barrier.sync" Warpgroups [NvOp::BarrierSync { id, threads }] {id = 1, threads = 128}
        Plain, operation(Pipeline, order(Synchronizes), Immediate, Named { id: *id, threads: *threads }),
        "", "" => "", NONE, "arrives at a named barrier and waits for all its threads", [Participants NeverCompletes PhaseMixed];
    "ttg.nv.barrier.arrive" Warpgroups [NvOp::BarrierArrive { id, threads }] {id = 1, threads = 128}
        Plain, operation(Pipeline, order(Releases), Immediate, Named { id: *id, threads: *threads }),
        "", "" => "", NONE, "arrives at a named barrier without waiting", [Participants PhaseMixed];
    "ttg.nv.cluster.rank" Warpgroups [NvOp::ClusterRank] Plain, PURE,
        "", "" => "i32", NONE, "the number of this program in its cluster", [];
    "ttg.nv.cluster.arrive" Warpgroups [NvOp::ClusterArrive] Plain, synchronous(Pipeline, order(Releases)),
        "", "" => "", NONE, "arrives at the cluster barrier", [PhaseMixed];
    "ttg.nv.cluster.wait" Warpgroups [NvOp::ClusterWait] Plain, synchronous(Pipeline, order(Acquires)),
        "", "" => "", NONE, "waits at the cluster barrier", [NeverCompletes];

    dialects {
        NvOp::Tcgen05, op => tensor;
    }
}
