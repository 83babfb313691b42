//! Blocks of a cluster: their barrier, each other's shared memory, multicast, and stores that signal.

use crate::harness::{Shape, bytes, orders, refuses, run, text, wait};
use titan_nv::emu::{ErrorCode, Memory, Param};
use titan_nv::tma::{Element, TensorMap};

const MEET: &str = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n";

fn shape(cluster: u32, threads: u32) -> Shape {
    Shape { blocks: 2 * cluster, cluster, threads, shared: 1024 }
}

fn words(memory: &Memory, ptr: titan_nv::emu::DevicePtr, n: usize) -> Vec<u32> {
    let bytes = memory.read(ptr, 4 * n).unwrap();
    bytes.chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect()
}

/// The rank of the next block in `%r1`, the address of the own word in `%r2`, that of the next block in `%r3`.
const NEXT: &str = "mov.u32 %r0, %cluster_ctarank; mov.u32 %r4, %cluster_nctarank; add.u32 %r1, %r0, 1; rem.u32 %r1, %r1, %r4;\n\
    mov.u32 %r5, %tid.x; shl.b32 %r6, %r5, 2; mov.u32 %r2, smem; add.u32 %r2, %r2, %r6;\n\
    mapa.shared::cluster.u32 %r3, %r2, %r1; mov.u32 %r7, %ctaid.x; ld.param.u64 %rd0, [out];\n\
    mad.lo.u32 %r8, %r7, 32, %r5; mul.wide.u32 %rd1, %r8, 4; add.u64 %rd1, %rd1, %rd0;\n";

#[test]
fn a_block_reads_what_the_next_has_written() {
    for (cluster, options) in [2, 3, 4, 8].into_iter().zip(orders().into_iter().cycle()) {
        let mut memory = Memory::new();
        let n = 2 * cluster as usize * 32;
        let out = memory.alloc_named("out", n * 4);
        let body = format!(
            "{NEXT} mad.lo.u32 %r9, %r7, 1000, %r5; st.shared.u32 [%r2], %r9;\n{MEET}\
             ld.shared::cluster.u32 %r10, [%r3]; st.global.u32 [%rd1], %r10;\n{MEET}ret;"
        );
        let text = text(".param .u64 out", 1024, "", &body);
        run(&text, shape(cluster, 32), &[Param::Ptr(out)], &mut memory, &options).unwrap_or_else(|e| panic!("{e}"));
        let want: Vec<u32> = (0..n as u32)
            .map(|i| {
                let block = i / 32;
                (block / cluster * cluster + (block + 1) % cluster) * 1000 + i % 32
            })
            .collect();
        assert_eq!(words(&memory, out, n), want);
    }
}

#[test]
fn identities_of_blocks() {
    let mut memory = Memory::new();
    let out = memory.alloc_named("out", 4 * 32 * 4);
    let body = format!(
        "{NEXT} mov.u32 %r9, %clusterid.x; mov.u32 %r10, %nclusterid.x; mov.u32 %r11, %cluster_ctaid.x;\n\
         mov.u32 %r12, %cluster_nctaid.x; mov.u32 %r13, %is_explicit_cluster;\n{MEET}\
         getctarank.shared::cluster.u32 %r14, %r3; mad.lo.u32 %r20, %r9, 10, %r10; mad.lo.u32 %r20, %r20, 10, %r11;\n\
         mad.lo.u32 %r20, %r20, 10, %r12; mad.lo.u32 %r20, %r20, 10, %r14; mad.lo.u32 %r20, %r20, 10, %r13;\n\
         st.global.u32 [%rd1], %r20;\n{MEET}ret;"
    );
    let text = text(".param .u64 out", 1024, ".reqnctapercluster 2, 1, 1", &body);
    let shape = Shape { blocks: 4, cluster: 1, threads: 32, shared: 1024 };
    run(&text, shape, &[Param::Ptr(out)], &mut memory, &orders()[0]).unwrap_or_else(|e| panic!("{e}"));
    let all = words(&memory, out, 128);
    assert_eq!([all[0], all[32], all[64], all[96]], [20211, 21201, 120_211, 121_201]);
}

#[test]
fn a_relaxed_arrival_publishes_after_a_fence_only() {
    let body = |fence: &str, arrive: &str| {
        format!(
            "{NEXT} st.shared.u32 [%r2], %r5; {fence} barrier.cluster.arrive.{arrive}.aligned;\n\
             barrier.cluster.wait.acquire.aligned; ld.shared::cluster.u32 %r10, [%r3];\n{MEET}ret;"
        )
    };
    let of = |fence, arrive| text(".param .u64 out", 1024, "", &body(fence, arrive));
    let mut memory = Memory::new();
    let params = [Param::Ptr(memory.alloc_named("out", 4096))];
    for options in orders() {
        run(&of("", "release"), shape(2, 32), &params, &mut memory, &options).unwrap();
        run(&of("fence.acq_rel.cluster;", "relaxed"), shape(2, 32), &params, &mut memory, &options).unwrap();
    }
    let race = (ErrorCode::Race, "not ordered");
    refuses("relaxed", &of("", "relaxed"), shape(2, 32), &params, &memory, race);
    let inits = of("fence.mbarrier_init.release.cluster;", "relaxed");
    refuses("a fence of initialised barriers only", &inits, shape(2, 32), &params, &memory, race);
    let late = of("fence.acq_rel.cluster; st.shared.u32 [%r2], %r7;", "relaxed");
    refuses("a store after the fence", &late, shape(2, 32), &params, &memory, race);
}

/// Thread 0 stores a word and arrives at a barrier, and thread 32 waits there and reads the word.
fn passed_at_an_mbarrier(store: &str, arrive: &str, wait: &str) -> String {
    let body = format!(
        "{NEXT} mov.u32 %r11, bars; setp.ne.u32 %p0, %r5, 0; setp.ne.u32 %p1, %r5, 32;\n\
         @!%p0 mbarrier.init.shared::cta.b64 [%r11], 1; @!%p0 fence.mbarrier_init.release.cluster;\n\
         bar.sync 0; mov.u32 %r12, smem; @%p0 bra READ;\n{store}\n{arrive}\n\
         READ: @%p1 bra END;\n{wait}\nld.shared.u32 %r10, [%r12+256]; st.global.u32 [%rd1], %r10;\nEND: ret;"
    );
    text(".param .u64 out", 1024, "", &body)
}

#[test]
fn relaxed_arrivals_and_waits_order_what_is_fenced() {
    const STORE: &str = "st.shared.u32 [%r12+256], 7;";
    const FENCE: &str = "fence.acq_rel.cta;";
    let arrivals = [
        "mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r11];",
        "mbarrier.arrive_drop.relaxed.cta.shared::cta.b64 _, [%r11];",
        "mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%r11], 16;\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r12], [%rd0], 16, [%r11];",
        "mbarrier.arrive_drop.expect_tx.relaxed.cta.shared::cta.b64 _, [%r11], 16;\n\
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r12], [%rd0], 16, [%r11];",
    ];
    let (acquires, relaxed) = (wait("%r11", 0, "W"), wait("%r11", 0, "W").replace("parity.", "parity.relaxed.cta."));
    let fenced = format!("{relaxed}{FENCE}");
    let mut memory = Memory::new();
    let params = [Param::Ptr(memory.upload("out", &[0; 4096]))];
    let shape = Shape { blocks: 1, cluster: 1, threads: 64, shared: 1024 };
    let race = (ErrorCode::Race, "not ordered");
    for arrive in arrivals {
        let before = format!("{STORE} {FENCE}");
        for options in orders() {
            for (before, arrive, wait) in [
                (&*before, arrive, &acquires),
                (&*before, arrive, &fenced),
                (STORE, &*arrive.replace("relaxed", "release"), &acquires),
                (STORE, &*arrive.replace("relaxed", "release"), &fenced),
            ] {
                let text = passed_at_an_mbarrier(before, arrive, wait);
                run(&text, shape, &params, &mut memory.clone(), &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
            }
        }
        for (what, before, arrive, wait) in [
            ("no fence", STORE, arrive, &acquires),
            ("a store after the fence", &*format!("{FENCE} {STORE}"), arrive, &acquires),
            ("a wait without a fence", &before, arrive, &relaxed),
            (
                "a fence of initialised barriers",
                &*format!("{STORE} fence.mbarrier_init.release.cluster;"),
                arrive,
                &acquires,
            ),
            ("a fence before the wait", &before, arrive, &format!("{FENCE} {relaxed}")),
        ] {
            let text = passed_at_an_mbarrier(before, arrive, wait);
            refuses(what, &text, shape, &params, &memory, race);
        }
    }
}

#[test]
fn a_multicast_comes_to_all_blocks_of_its_mask() {
    for options in orders() {
        let mut memory = Memory::new();
        let data: Vec<u8> = (0..=255).collect();
        let tensor = memory.upload("tensor", &data);
        let out = memory.alloc_named("out", 4 * 32 * 4);
        let map = TensorMap::tiled(Element::U32, tensor.address(), &[64], &[], &[32]);
        // Block 0 brings the first half to both, block 1 nothing.
        let body = format!(
            "{NEXT} mov.u32 %r11, bars; mov.u64 %rd2, map; cvta.param.u64 %rd2, %rd2; setp.ne.u32 %p0, %r5, 0;\n\
             @%p0 bra READY;\nmbarrier.init.shared::cta.b64 [%r11], 1; fence.mbarrier_init.release.cluster;\n\
             mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r11], 128;\n\
             READY: bar.warp.sync -1; barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.acquire.aligned;\n\
             setp.ne.u32 %p1, %r0, 0; or.pred %p1, %p1, %p0; @%p1 bra WAIT;\n\
             mov.u32 %r12, smem; mov.u16 %h0, 3;\n\
             cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster \
             [%r12], [%rd2, {{16}}], [%r11], %h0;\n\
             WAIT: bar.warp.sync -1;\n{}\
             ld.shared.u32 %r10, [%r2]; st.global.u32 [%rd1], %r10;\n{MEET}ret;",
            wait("%r11", 0, "W")
        );
        let text = text(".param .align 64 .b8 map[128], .param .u64 out", 1024, "", &body);
        let params = [bytes(&map), Param::Ptr(out)];
        run(&text, shape(2, 32), &params, &mut memory, &options).unwrap_or_else(|e| panic!("{e}"));
        let want: Vec<u32> = data[64..192].chunks(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
        assert_eq!(words(&memory, out, 128), want.repeat(4));
    }
}

#[test]
fn stores_to_another_block_that_signal() {
    for options in orders() {
        let mut memory = Memory::new();
        let out = memory.alloc_named("out", 4 * 32 * 4);
        let body = format!(
            "{NEXT} mov.u32 %r11, bars; mapa.shared::cluster.u32 %r12, %r11, %r1; setp.ne.u32 %p0, %r5, 0;\n\
             @!%p0 mbarrier.init.shared::cta.b64 [%r11], 1; @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r11], 128;\n\
             {MEET} mad.lo.u32 %r9, %r7, 1000, %r5;\n\
             st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %r9, [%r12];\n{}\
             ld.shared.u32 %r10, [%r2]; st.global.u32 [%rd1], %r10;\n{MEET}ret;",
            wait("%r11", 0, "W")
        );
        let text = text(".param .u64 out", 1024, "", &body);
        run(&text, shape(2, 32), &[Param::Ptr(out)], &mut memory, &options).unwrap_or_else(|e| panic!("{e}"));
        let want: Vec<u32> = (0..128).map(|i| ((i / 32) ^ 1) * 1000 + i % 32).collect();
        assert_eq!(words(&memory, out, 128), want);
    }
}

#[test]
fn threads_that_have_ended_are_not_waited_for() {
    // A third of the threads end before the barrier, a third between arrival and wait.
    let body = format!(
        "{NEXT} rem.u32 %r9, %r5, 3; setp.eq.u32 %p0, %r9, 0; @%p0 ret;\nbarrier.cluster.arrive.release;\n\
         setp.eq.u32 %p1, %r9, 1; @%p1 ret;\nbarrier.cluster.wait.acquire;\n\
         barrier.cluster.arrive.release; barrier.cluster.wait.acquire; ret;"
    );
    let text = text(".param .u64 out", 1024, "", &body);
    let mut memory = Memory::new();
    let params = [Param::Ptr(memory.alloc_named("out", 4096))];
    for options in orders() {
        run(&text, shape(2, 48), &params, &mut memory, &options).unwrap_or_else(|e| panic!("{e}"));
        run(&text, shape(1, 48), &params, &mut memory, &options).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn what_blocks_must_not_do_to_each_other() {
    let mut memory = Memory::new();
    let params = [Param::Ptr(memory.alloc_named("out", 4096))];
    let of = |body: &str| text(".param .u64 out", 1024, "", &format!("{NEXT} {body} ret;"));
    let meet = MEET;
    let cases: &[(&str, String, ErrorCode, &str)] = &[
        (
            "access before the first barrier",
            "ld.shared::cluster.u32 %r10, [%r3];".to_owned(),
            ErrorCode::Race,
            "which may not have begun",
        ),
        (
            "access to a block that has ended",
            format!("{meet} setp.eq.u32 %p0, %r0, 1; @%p0 ret; L: ld.shared::cluster.u32 %r10, [%r3]; bra L;"),
            ErrorCode::Permission,
            "which has ended",
        ),
        (
            "no such block",
            "mov.u32 %r9, 2; mapa.shared::cluster.u32 %r10, %r2, %r9;".to_owned(),
            ErrorCode::Operand,
            "block 2 of a cluster of 2",
        ),
        (
            "another block's address as an own one",
            format!("{meet} ld.shared::cta.u32 %r10, [%r3];"),
            ErrorCode::OutOfBounds,
            "is of block",
        ),
        ("a wait without arrival", "barrier.cluster.wait;".to_owned(), ErrorCode::Barrier, "has not arrived there"),
        (
            "two arrivals",
            "barrier.cluster.arrive; barrier.cluster.arrive;".to_owned(),
            ErrorCode::Barrier,
            "has not waited for the last time",
        ),
        (
            "an arrival that is missing",
            "setp.eq.u32 %p0, %r0, 1; @%p0 bra L; barrier.cluster.arrive; barrier.cluster.wait;\nL: @!%p0 bra E; bar.sync 1, 64;\nE:"
                .to_owned(),
            ErrorCode::Deadlock,
            "the barrier of the cluster",
        ),
        (
            "an aligned barrier under divergence",
            "setp.eq.u32 %p0, %r5, 1; @%p0 bra L; barrier.cluster.arrive.aligned; L: bar.warp.sync -1;".to_owned(),
            ErrorCode::Divergence,
            "a barrier of the cluster",
        ),
        (
            "unordered stores to one word",
            format!("{meet} st.shared.u32 [%r2], %r7; st.shared::cluster.u32 [%r3], %r5; ld.shared.u32 %r10, [%r2]; {meet}"),
            ErrorCode::Race,
            "not ordered after",
        ),
    ];
    for (what, body, code, says) in cases {
        refuses(what, &of(body), shape(2, 32), &params, &memory, (*code, says));
    }
}

#[test]
fn launches_that_do_not_fit() {
    let body = "ret;";
    let memory = Memory::new();
    let launch = |before: &str, blocks, cluster| {
        let shape = Shape { blocks, cluster, threads: 32, shared: 0 };
        run(&text("", 0, before, body), shape, &[], &mut memory.clone(), &orders()[0]).map(drop)
    };
    for (before, blocks, cluster, says) in [
        (".reqnctapercluster 2, 1, 1", 4, 4, "requires clusters of [2, 1, 1] blocks"),
        (".reqnctapercluster 2, 1, 1", 3, 1, "does not consist of clusters"),
        (".explicitcluster", 4, 1, "the launch must say how large a cluster is"),
        ("", 32, 32, "1 to 16 are possible"),
    ] {
        let error = launch(before, blocks, cluster).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Launch);
        assert!(error.to_string().contains(says), "{error}");
    }
    launch(".explicitcluster", 4, 2).unwrap();
    launch(".reqnctapercluster 2, 1, 1", 4, 1).unwrap();
}
