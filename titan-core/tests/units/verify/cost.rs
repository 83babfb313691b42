//! The cost of verification, in allocations of memory: each `cargo build` verifies every kernel with rings in this way, and the macro is
//! rarely optimized. So the cost must not explode with the number of slots or steps.
//!
//! Every sum of two symbolic numbers allocates its terms, so that the number of allocations grows as the number of sums does.
//!
//! Deliberately absent: times, which depend on the machine.

use crate::allocations;
use std::fmt::Write;
use titan_core::ir::Kernel;
use titan_core::text::parse_one;
use titan_core::verify::{barrier_program, verify};

/// Two roles with a ring of `slots` slots, of which each iteration fills and reads `steps`.
fn program(slots: usize, steps: usize) -> Kernel {
    let (mut fills, mut reads) = (String::new(), String::new());
    for k in 0..steps {
        let next = k + 1;
        for (text, side) in [(&mut fills, "f"), (&mut reads, "r")] {
            let _ = write!(
                text,
                "%{side}a{k} = add %{side}l{k}, %one\n%{side}e{k} = eq %{side}a{k}, %slots\n\
                 %{side}l{next} = select %{side}e{k}, %zero, %{side}a{k}\n%{side}t{k} = sub %one, %{side}q{k}\n\
                 %{side}q{next} = select %{side}e{k}, %{side}t{k}, %{side}q{k}\n"
            );
        }
        let _ = write!(
            fills,
            "%fm{k} = ttg.nv.mbarrier.at %empty, %fl{k}\n%fp{k} = sub %one, %fq{k}\n\
             ttg.nv.mbarrier.wait_parity %fm{k}, %fp{k}\nttg.claim.acquired<0> %ring, %fl{k}, %fq{k}\n\
             %fs{k} = ttg.source_tile %a[%p, %i] or %pad : source<16x16xf16, 0>\n%fr{k} = ttg.region.at %ring, %fl{k}\n\
             %fx{k} = ttg.region.tile %fr{k} {{offset = 0}} : smem<16x16xf16, 0>\nttg.local.copy_async %fs{k}, %fx{k}\n\
             %fn{k} = ttg.nv.mbarrier.at %full, %fl{k}\n\
             ttg.nv.cp_async.mbarrier_arrive %fn{k} {{arrivals = 32, noinc = true}}\n\
             ttg.claim.filled<0> %ring, %fl{k}, %fq{k}\n"
        );
        let _ = write!(
            reads,
            "ttg.claim.next<0> %ring, %rl{k}, %rq{k}\n%rm{k} = ttg.nv.mbarrier.at %full, %rl{k}\n\
             ttg.nv.mbarrier.wait_parity %rm{k}, %rq{k}\nttg.claim.ready<0> %ring, %rl{k}, %rq{k}\n\
             %rr{k} = ttg.region.at %ring, %rl{k}\n\
             %rx{k} = ttg.region.tile %rr{k} {{offset = 0}} : smem<16x16xf16, 0>\n\
             %ry{k} = ttg.local.load %rx{k} : tile<16x16xf16, 0>\n%rn{k} = ttg.nv.mbarrier.at %empty, %rl{k}\n\
             ttg.nv.warp.sync\n%rs{k} = ttg.nv.mbarrier.arrive %rn{k} {{arrivals = 1}}\n\
             ttg.claim.released<0> %ring, %rl{k}, %rq{k}\n"
        );
    }
    let (bytes, words) = (512 * slots, 8 * slots);
    let text = format!(
        "kernel @cost(%a: in tensor<f16>[M, K], %c: mut tensor<f16>[M, K], %n: i32) grid(cdiv(M, 16)) \
             pipe({slots}, \"ring\", tile<16x16xf16>) role(load, 1) role(work, 1)\n\
             plan(2, 32, mbarrier, index32, aligned(0, 1))\n\
             layout(16x16, reg(j1, j2, j4), lane(j8, i1, i2, i4, i8), warp())\n\
             encoding(16x16, 16, order(0, 1), row(16, 32), b32)\n{{\n\
         %zero = const 0 : i32\n%one = const 1 : i32\n%slots = const {slots} : i32\n%pad = const 0.0 : f16\n\
         %ring = ttg.region {{offset = 0, bytes = {bytes}, parts = {slots}}}\n\
         %words = ttg.region {{offset = {bytes}, bytes = {}}}\n\
         %full = ttg.nv.mbarrier.alloc %words {{at = 0, n = {slots}}}\nttg.nv.mbarrier.init %full {{count = 32}}\n\
         %empty = ttg.nv.mbarrier.alloc %words {{at = {words}, n = {slots}}}\n\
         ttg.nv.barrier.sync {{id = 0, threads = 64}}\nttg.nv.mbarrier.init %empty {{count = 1}}\n\
         %p = program_id<0>\nttg.nv.barrier.sync {{id = 0, threads = 64}}\n\
         ttg.roles load {{\n\
         %f, %g = for %i = %zero to %n step %one carry(%fl0 = %zero, %fq0 = %zero) : i32, i32 {{\n{fills}\
         continue %fl{steps}, %fq{steps}\n}}\n\
         %w = ttg.nv.cp_async.commit_group : vtok<cp_async, 0>\nttg.nv.cp_async.wait_group {{n = 0}}\n\
         ttg.pipeline.finalize\nyield\n}} work {{\n\
         %h, %k = for %j = %zero to %n step %one carry(%rl0 = %zero, %rq0 = %zero) : i32, i32 {{\n{reads}\
         store_tile %c[%p, %j], %ry0\ncontinue %rl{steps}, %rq{steps}\n}}\n\
         ttg.pipeline.finalize\nyield\n}}\nreturn\n}}\n",
        2 * words,
    );
    parse_one(&text).unwrap_or_else(|e| panic!("{e:#?}\n{text}"))
}

/// A ring with this many slots, which one role fills as far ahead of its reads as there are slots.
fn ring_of(slots: usize) -> Kernel {
    let ahead = slots - 1;
    let text = format!(
        r#"kernel @k(%b: in tensor<i32>[N], %c: mut tensor<f32>[M]) grid(M) pipe({slots}, "ring", tile<16xf32>) {{
            %zero = const 0 : i32
            %one = const 1 : i32
            %ahead = const {ahead} : i32
            %p = program_id<0> : i32
            %f = const 0.0 : f32
            %n = dim<0> %b
            for %i = %zero to %ahead step %one {{
                %some = lt %i, %n
                if %some {{
                    %s = ttg.stage.acquire<0>
                    ttg.stage.zero %s
                    yield
                }} else {{
                    yield
                }}
                continue
            }}
            for %j = %zero to %n step %one {{
                %t = add %j, %ahead
                %more = lt %t, %n
                if %more {{
                    %u = ttg.stage.acquire<0>
                    ttg.stage.zero %u
                    yield
                }} else {{
                    yield
                }}
                %r = ttg.stage.ready<0>
                %w = ttg.stage.wait_ready %r
                %q = ttg.stage.read_perm %w
                %d = ttg.stage.consumed %q
                ttg.stage.release %d
                continue
            }}
            set %c[%p], %f
            ttg.pipeline.finalize
            return
        }}"#
    );
    parse_one(&text).unwrap()
}

/// The number of allocations of what verifies a kernel.
fn cost(verified: impl FnOnce()) -> usize {
    allocations::of(verified).1.number
}

/// The cost of verifying a barrier program of so many slots and steps.
fn of_program(slots: usize, steps: usize) -> usize {
    let program = program(slots, steps);
    cost(|| barrier_program(&program).unwrap_or_else(|e| panic!("{slots} slots, {steps} steps: {e:#?}")))
}

#[test]
fn the_cost_of_a_ring_is_at_most_quadratic_in_its_slots() {
    // A ring has at most 64 slots.
    let costs = [4, 8, 16, 32, 64].map(|slots| {
        let ring = ring_of(slots);
        cost(|| drop(verify(ring).expect("a valid ring")))
    });
    for pair in costs.windows(2) {
        assert!(pair[1] <= 5 * pair[0], "twice the slots: {costs:?}");
    }
    assert!(costs[4] > 64 && costs[4] < 220_000, "{costs:?}");
}

#[test]
fn the_cost_is_at_most_quadratic_in_the_slots() {
    for steps in [1, 2] {
        let costs = [4, 8, 16, 32, 64].map(|slots| of_program(slots, steps));
        for pair in costs.windows(2) {
            assert!(pair[1] <= 5 * pair[0], "twice the slots, {steps} steps: {costs:?}");
        }
        assert!(costs[4] > 64 && costs[4] < 40_000, "{costs:?}");
    }
}

#[test]
fn the_cost_is_at_most_quadratic_in_the_steps_of_an_iteration() {
    let costs = [1, 2, 4, 8, 16].map(|steps| of_program(16, steps));
    for pair in costs.windows(2) {
        assert!(pair[1] <= 5 * pair[0], "twice the steps: {costs:?}");
    }
}
