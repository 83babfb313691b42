//! Changes of programs that state their protocol with barriers and groups.

use crate::changes::*;
use crate::kinds::{Fate, Kind, barriers, same};
use crate::sources::Level;
use crate::text::Text;

pub(crate) const KINDS: &[Kind] = &[
    barriers("a reader does not wait for the copy", |t| each(t, &waits_of(t, Copies::No), Text::without)),
    barriers("a copier does not wait for a free slot", |t| each(t, &waits_of(t, Copies::Yes), Text::without)),
    barriers("a reader does not arrive", |t| each(t, &in_loops(t, "ttg.nv.mbarrier.arrive"), Text::without)),
    barriers("a reader arrives twice", |t| each(t, &in_loops(t, "ttg.nv.mbarrier.arrive"), Text::doubled)),
    barriers("a reader arrives before it reads", |t| {
        arrives_before(t, &["ttg.region.read", "ttg.nv.wgmma.wait_group"])
    }),
    barriers("a reader arrives at the next slot's barrier", |t| beside(t, "ttg.nv.mbarrier.arrive", 0)),
    barriers("a reader waits for the next slot's barrier", |t| beside_of(t, &waits_of(t, Copies::No), 0)),
    barriers("a copier waits for the next slot's barrier", |t| beside_of(t, &waits_of(t, Copies::Yes), 0)),
    barriers("a copy into the next slot", |t| beside_of(t, &guarded_copies(t), target(t))),
    barriers("a read of the next slot", |t| beside_of(t, &in_loops(t, "ttg.region.read"), 0)),
    barriers("an MMA of the next slot", |t| beside_of(t, &in_loops(t, "ttg.nv.wgmma.mma_async"), 0)),
    barriers("a copy that brings its bytes to the next slot's barrier", |t| beside_last(t, &bulk_loads(t))),
    barriers("bytes expected at the next slot's barrier", |t| beside(t, "ttg.nv.mbarrier.arrive_expect_tx", 0)),
    barriers("a reader waits for the other parity", |t| parity(t, Copies::No, None)),
    barriers("the first wait of a copier is for the wrong phase", |t| parity(t, Copies::Yes, None)),
    barriers("a reader's parity stays 0", |t| parity(t, Copies::No, Some("%nil"))),
    barriers("a copier's parity stays 1", |t| parity(t, Copies::Yes, Some("%unit"))),
    barriers("fewer bytes are expected than arrive", |t| number(t, &expects(t), "bytes", |b| b - 16)),
    barriers("more bytes are expected than arrive", |t| number(t, &expects(t), "bytes", |b| b + 16)),
    barriers("bytes are expected twice", announced_twice),
    barriers("bytes are not expected", not_announced),
    barriers("a copy is issued twice", |t| each(t, &bulk_loads(t), Text::doubled)),
    barriers("a copy is forgotten", |t| each(t, &bulk_loads(t), Text::without)),
    barriers("a barrier counts one arrival too many", |t| number(t, &awaited(t), "count", |c| c + 1)),
    barriers("a barrier counts one arrival too few", |t| number(t, &counted(t, 2), "count", |c| c - 1)),
    barriers("a barrier is not initialised", |t| each(t, &used(t), Text::without)),
    barriers("a barrier is initialised twice", |t| each(t, &t.ops("ttg.nv.mbarrier.init"), Text::doubled)),
    barriers("a barrier is gone before it is used", early_inval),
    barriers("barriers are not fenced before others use them", |t| each(t, &needed_fences(t), Text::without)),
    barriers("a fence between proxies is forgotten", |t| each(t, &proxy_fences(t), Text::without)),
    barriers("a fence between proxies comes after the arrival", |t| {
        after_next(t, &proxy_fences(t), "ttg.nv.mbarrier.arrive")
    }),
    barriers("a fence between proxies comes before the access", |t| before_last(t, &proxy_fences(t))),
    barriers("a fence between proxies is for other memory", |t| {
        each(t, &proxy_fences(t), |t, i| t.with(i, &t.line(i).replace("space = shared", "space = global")))
    }),
    barriers("one barrier for all slots", one_for_all),
    barriers("one side counts one slot fewer", |t| depth(t, -1)),
    barriers("one side counts one slot more", |t| depth(t, 1)),
    barriers("the copier has one tile more", |t| bounds(t, Copies::Yes, "add")),
    barriers("the copier has one tile fewer", |t| bounds(t, Copies::Yes, "sub")),
    barriers("the reader has one tile more", |t| bounds(t, Copies::No, "add")),
    barriers("the reader has one tile fewer", |t| bounds(t, Copies::No, "sub")),
    barriers("the copier begins at the second tile", |t| starts(t, Copies::Yes)),
    barriers("the reader begins at the second tile", |t| starts(t, Copies::No)),
    barriers("one group too many may be in flight", |t| number(t, &needed_waits(t), "n", |n| n + 1)),
    barriers("groups are not waited for", |t| each(t, &needed_waits(t), Text::without)),
    barriers("a group is not committed", |t| each(t, &commits(t), Text::without)),
    barriers("a barrier's word inside a slot", words_inside),
    barriers("a role arrives at a named barrier and does not wait", |t| {
        named(t, "ttg.nv.barrier.sync", "ttg.nv.barrier.arrive")
    }),
    barriers("a role does not arrive at a named barrier", |t| {
        each(t, &looping(t, &["ttg.nv.barrier.arrive", "ttg.nv.barrier.sync"]), Text::without)
    }),
    barriers("a named barrier of another number of threads", |t| {
        number(t, &in_roles(t, &["ttg.nv.barrier.arrive", "ttg.nv.barrier.sync"]), "threads", |n| n + 32)
    }),
    barriers("another named barrier", |t| {
        number(t, &in_roles(t, &["ttg.nv.barrier.arrive", "ttg.nv.barrier.sync"]), "id", |n| n + 5)
    }),
    barriers("the barrier of the cluster is not waited for", |t| each(t, &readers_wait(t), Text::without)),
    barriers("a role does not arrive at the barrier of the cluster", |t| {
        each(t, &t.ops("ttg.nv.cluster.arrive"), Text::without)
    }),
    barriers("the counter of vector memory is one too high", |t| {
        number(t, &t.ops("ttg.amd.s_waitcnt"), "vmcnt", |n| n + 1)
    }),
    barriers("the counter of local memory is one too high", |t| {
        number(t, &t.ops("ttg.amd.s_waitcnt"), "lgkmcnt", |n| n + 1)
    }),
    barriers("a counter is not waited for", |t| each(t, &t.ops("ttg.amd.s_waitcnt"), Text::without)),
    barriers("threads arrive before they copy", |t| {
        moved_before(t, "ttg.nv.cp_async.mbarrier_arrive", "ttg.nv.cp_async")
    }),
    barriers("threads arrive that are not counted", |t| {
        replaced(t, "ttg.nv.cp_async.mbarrier_arrive", "noinc = true", "noinc = false")
    }),
    barriers("no thread arrives for its copies", |t| {
        number(t, &t.ops("ttg.nv.cp_async.mbarrier_arrive"), "arrivals", |_| 0)
    }),
    barriers("a fence of barriers instead of one between proxies", |t| {
        each(t, &proxy_fences(t), |t, i| t.with(i, "ttg.nv.fence.mbarrier_init"))
    }),
    barriers("a part out of range is selected", |t| beyond(t, &in_loops(t, "ttg.region.at"))),
    barriers("a barrier out of range is selected", |t| beyond(t, &in_loops(t, "ttg.nv.mbarrier.at"))),
    barriers("an output is read while a bulk store may still write it", |t| {
        each(t, &t.ops("ttg.nv.cp_async_bulk_tensor.store"), read_back)
    }),
    barriers("fewer threads arrive than are counted", |t| {
        number(t, &t.ops("ttg.nv.cp_async.mbarrier_arrive"), "arrivals", |n| n - 1)
    }),
    barriers("the stage of an MMA is freed while it is read", |t| {
        swapped(t, "ttg.nv.wgmma.wait_group", "ttg.nv.mbarrier.arrive")
    }),
    Kind {
        fate: Fate::Idle,
        ..barriers("a role does not end in finalize", |t| each(t, &t.ops("ttg.pipeline.finalize"), Text::without))
    },
    same(Level::Barriers, "a stage is read twice", |t| each(t, &t.ops("ttg.region.read"), Text::doubled)),
    same(Level::Barriers, "a reader does not read", |t| each(t, &t.ops("ttg.region.read"), Text::without)),
    same(Level::Barriers, "the waiting side fences, not the arriving side", the_waiter_fences),
    same(Level::Barriers, "a fence between proxies twice", |t| each(t, &proxy_fences(t), Text::doubled)),
    same(Level::Barriers, "a try-wait before the wait", |t| each(t, &unconditional(t), peeked)),
    same(Level::Barriers, "a wait for a phase twice", |t| each(t, &waits_of(t, Copies::No), Text::doubled)),
    same(Level::Barriers, "fewer groups may be in flight", |t| number(t, &counted_n(t), "n", |n| n - 1)),
    same(Level::Barriers, "an unused scalar", |t| vec![t.with_constants()]),
];
