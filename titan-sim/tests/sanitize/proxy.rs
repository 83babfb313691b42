//! Fences between proxies.

use crate::harness::*;
use titan_sim::engine::{AccessKind, FenceSpace, Scope};
use titan_sim::sanitize::Rule;

/// A store through the asynchronous proxy.
fn store(w: &mut World, who: usize, address: u64) {
    w.op(who, STORE, &[(R, 0, address, 16)], &[]);
}

#[test]
fn a_write_needs_a_fence_before_an_asynchronous_read() {
    breaks(
        Rule::MissingFence,
        |w, right| {
            w.write(0, 0);
            if right {
                w.fence(0, Scope::Cta);
            }
            store(w, 0, 0);
        },
        1,
    );
}

#[test]
fn a_read_needs_a_fence_before_an_asynchronous_write() {
    breaks(
        Rule::MissingFence,
        |w, right| {
            let b = w.barrier(1);
            w.read(0, 0);
            if right {
                w.fence(0, Scope::Cta);
            }
            w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
        },
        1,
    );
}

#[test]
fn a_read_before_an_asynchronous_read_needs_one_in_strict_mode() {
    for strict in [false, true] {
        let mut c = config(&[0]);
        c.strict(strict);
        let mut w = with(c, 1);
        w.read(0, 0);
        store(&mut w, 0, 0);
        assert_eq!(w.rules(), if strict { vec![Rule::MissingFence] } else { vec![] });
    }
}

#[test]
fn a_fence_covers_what_was_before_it() {
    let mut w = world(1);
    w.write(0, 0);
    w.fence(0, Scope::Cta);
    w.write(0, 16);
    store(&mut w, 0, 0);
    w.clean();
    store(&mut w, 0, 16);
    w.finds(Rule::MissingFence);
}

#[test]
fn a_fence_is_about_its_own_memory() {
    let spaces = [
        (FenceSpace::All, [true, true]),
        (FenceSpace::Shared, [true, false]),
        (FenceSpace::Global, [false, true]),
        (FenceSpace::Inits, [false, false]),
    ];
    for (space, covers) in spaces {
        for (memory, covered) in [0, 2].into_iter().zip(covers) {
            let mut w = world(1);
            let write = w.base(0, AccessKind::Write, memory, 0, 16);
            w.access(write);
            w.fence_of(0, Scope::Device, space);
            w.op(0, STORE, &[(R, memory, 0, 16)], &[]);
            assert_eq!(
                w.rules(),
                if covered { vec![] } else { vec![Rule::MissingFence] },
                "{space:?}, memory {memory}"
            );
        }
    }
}

#[test]
fn an_arrival_publishes_the_fence_before_it_and_not_the_one_after() {
    breaks(
        Rule::MissingFence,
        |w, right| {
            let b = w.barrier(1);
            w.write(0, 0);
            if right {
                w.fence(0, Scope::Cta);
            }
            w.arrive(0, b);
            if !right {
                w.fence(0, Scope::Cta);
            }
            w.wait(1, b, false);
            store(w, 1, 0);
        },
        2,
    );
}

#[test]
fn who_waits_may_fence_after_the_wait_but_not_before() {
    breaks(
        Rule::MissingFence,
        |w, right| {
            let b = w.barrier(1);
            w.write(0, 0);
            w.arrive(0, b);
            if !right {
                w.fence(1, Scope::Cta);
            }
            w.wait(1, b, false);
            if right {
                w.fence(1, Scope::Cta);
            }
            store(w, 1, 0);
        },
        2,
    );
}

#[test]
fn a_meeting_carries_fences() {
    breaks(
        Rule::MissingFence,
        |w, right| {
            w.write(0, 0);
            if right {
                w.fence(0, Scope::Cta);
            }
            w.meet(&[0, 1]);
            store(w, 1, 0);
        },
        2,
    );
}

#[test]
fn the_destination_of_cp_async_is_generic() {
    breaks(
        Rule::MissingFence,
        |w, right| {
            w.op(0, CP, &[(W, 0, 0, 16)], &[]);
            w.commit(0, CP);
            // Before the wait there is nothing that the fence could cover.
            if !right {
                w.fence(0, Scope::Cta);
            }
            w.wait_groups(0, CP, 0);
            if right {
                w.fence(0, Scope::Cta);
            }
            w.op(0, WGMMA, &[(R, 0, 0, 16)], &[]);
        },
        1,
    );
}

#[test]
fn another_blocks_memory_needs_cluster_scope() {
    for (scope, rules) in [(Scope::Cta, vec![Rule::NarrowFence]), (Scope::Cluster, vec![])] {
        let mut w = cluster(&[0, 1]);
        let b = w.init(0, 1, 1);
        // Block 1 reads its own memory, and block 0 multicasts into it.
        let a = w.base(1, R, 1, 0, 16);
        w.access(a);
        w.fence(1, scope);
        w.meet(&[0, 1]);
        w.op(0, LOAD, &[(W, 0, 0, 64), (W, 1, 0, 64)], &[bytes(b, 64)]);
        assert_eq!(w.rules(), rules);
    }
}

#[test]
fn global_memory_needs_device_scope() {
    for (scope, rules) in [(Scope::Cluster, vec![Rule::NarrowFence]), (Scope::Device, vec![])] {
        let mut w = world(1);
        let a = w.base(0, W, 2, 0, 16);
        w.access(a);
        w.fence(0, scope);
        w.op(0, LOAD, &[(R, 2, 0, 16)], &[]);
        assert_eq!(w.rules(), rules);
    }
}

#[test]
fn nothing_is_fenced_twice() {
    let mut w = world(1);
    let b = w.barrier(1);
    w.arrive_expecting(0, b, 64);
    let op = w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
    w.complete(op);
    w.wait(0, b, false);
    // Completion orders asynchronous before generic, and before asynchronous.
    w.read(0, 0);
    store(&mut w, 0, 0);
    w.clean();
}

#[test]
fn barriers_themselves_need_no_proxy_fence() {
    let mut w = world(1);
    let b = w.init(0, 0, 1);
    w.arrive_expecting(0, b, 64);
    w.op(0, LOAD, &[(W, 0, 0, 64)], &[bytes(b, 64)]);
    w.clean();
}
