//! Operations on tensor memory.

use super::facts::{operation, synchronous};
use super::syntax::{Form, Head, HeadError, Written};
use super::*;
use crate::ir::Completion::Phase;
use crate::ir::Effect::Pipeline;
use crate::ir::Proxy::Async;
use crate::ir::Stated::Nothing;
use crate::ir::traffic::On::Regions;
use crate::ir::traffic::{NO_TRAFFIC, one, reads};
use crate::ir::{Collector, Mma, Tcgen05Op};

table! {
    Tcgen05Op, facts -> Facts;

    "ttg.nv.tcgen05.alloc" TensorMemory [Tcgen05Op::Alloc { columns, cta_group }] {columns = 128, cta_group = 1}
        Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "" => "tmem", NONE, "one warp allocates columns of tensor memory", [TensorColumns TensorThreads];
    "ttg.nv.tcgen05.dealloc" TensorMemory [Tcgen05Op::Dealloc { cta_group }] {cta_group = 1}
        Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "tmem" => "", NONE, "one warp frees columns", [TensorColumns TensorThreads InFlight GroupOpen TensorUnfenced];
    "ttg.nv.tcgen05.relinquish_alloc_permit" TensorMemory [Tcgen05Op::Relinquish { cta_group }] {cta_group = 1}
        Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "" => "", NONE, "the block allocates no more columns", [TensorThreads];
    // The accesses are those to shared memory.
    "ttg.nv.tcgen05.mma" TensorMemory [Tcgen05Op::Mma(Mma {
        kind, cta_group, stationary: ws, scale_vec, shifted: ashift, collector, scaled_input: scale_input, a, b, d,
        shape: [m, n, k],
    })] {
        kind = f16, a = f16, b = f16, d = f32, m = 128, n = 256, k = 16, cta_group = 1, ws or false, scale_vec or 0,
        ashift or false, collector or Collector::Unstated, scale_input or false
    }
        Plain, operation(Pipeline, one(reads(Regions, Async)), Phase, Nothing),
        "", "d: tmem, a: region or tmem, b: region; with scales also the tmem of those of a and of b" => "", NONE,
        "one thread starts an MMA: d += a · b", [TensorMma TensorMmaShape TensorThreads TensorColumns RegionMade InFlight GroupOpen TensorUnfenced];
    "ttg.nv.tcgen05.ld" TensorMemory [Tcgen05Op::Load { shape, times }] {shape = "32x32b", times = 4}
        Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "tmem" => "", NONE, "warps load from tensor memory", [TensorThreads TensorColumns InFlight TensorUnfenced];
    "ttg.nv.tcgen05.st" TensorMemory [Tcgen05Op::Store { shape, times }] {shape = "32x32b", times = 4}
        Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "tmem" => "", NONE, "warps store to tensor memory", [TensorThreads TensorColumns InFlight TensorUnfenced];
    "ttg.nv.tcgen05.cp" TensorMemory [Tcgen05Op::Copy { cta_group }] {cta_group = 1}
        Plain, operation(Pipeline, one(reads(Regions, Async)), Phase, Nothing),
        "", "tmem, region" => "", NONE, "one thread starts a copy of shared memory to tensor memory", [TensorThreads TensorColumns InFlight GroupOpen TensorUnfenced];
    "ttg.nv.tcgen05.shift" TensorMemory [Tcgen05Op::Shift { cta_group }] {cta_group = 1}
        Plain, operation(Pipeline, NO_TRAFFIC, Phase, Nothing),
        "", "tmem" => "", NONE, "one thread shifts rows of tensor memory by one", [TensorThreads TensorColumns InFlight GroupOpen TensorUnfenced];
    // Orders nothing except the completion of MMAs and copies.
    "ttg.nv.tcgen05.commit" TensorMemory [Tcgen05Op::Commit { cta_group }] {cta_group = 1}
        Plain, operation(Pipeline, NO_TRAFFIC, Phase, Nothing),
        "", "mbarrier" => "", NONE, "arrives once when all earlier MMAs, copies and shifts of the thread are complete", [BarrierCount PhaseMixed TensorThreads];
    "ttg.nv.tcgen05.wait_ld" TensorMemory [Tcgen05Op::WaitLoad] Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "" => "", NONE, "waits for the loads of each thread", [];
    "ttg.nv.tcgen05.wait_st" TensorMemory [Tcgen05Op::WaitStore] Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "" => "", NONE, "waits for the stores of each thread", [];
    "ttg.nv.tcgen05.fence_before_thread_sync" TensorMemory [Tcgen05Op::FenceBefore]
        Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "" => "", NONE, "orders earlier operations on tensor memory before a synchronisation of threads", [];
    "ttg.nv.tcgen05.fence_after_thread_sync" TensorMemory [Tcgen05Op::FenceAfter]
        Plain, synchronous(Pipeline, NO_TRAFFIC),
        "", "" => "", NONE, "orders later operations on tensor memory after a synchronisation of threads", [];
}
