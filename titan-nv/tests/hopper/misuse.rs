//! What misuses bulk copies, `wgmma`, fences between proxies and register pools: each is found, and in which words.

use crate::harness::{Shape, bytes, orders, refuses, run, text, wait};
use titan_nv::emu::{ErrorCode, Memory, Param};
use titan_nv::tma::{Element, Swizzle, TensorMap};

/// What is wrong, the changes that make it so, and what is said of it.
type Mistake<'a> = (&'a str, &'a [(&'a str, &'a str)], ErrorCode, &'a str);

/// One warpgroup multiplies 64×8 by 8×16 of bf16, whose operands it has stored itself; `{…}` are places for mistakes.
const PRODUCT: &str = "mov.u32 %r0, smem; mov.u32 %r3, %tid.x; ld.param.u64 %rd3, [out];\n\
    mad.lo.u32 %r4, %r3, 16, %r0; mov.u32 %r5, 0x3F803F80;\n\
    st.shared.v4.u32 [%r4], {%r5, %r5, %r5, %r5}; setp.lt.u32 %p0, %r3, 16; @%p0 st.shared.v4.u32 [%r4+2048], {%r5, %r5, %r5, %r5};\n\
    <after stores>fence.proxy.async.shared::cta; bar.sync 0;<before>\n\
    shr.u32 %r6, %r0, 4; cvt.u64.u32 %rd4, %r6; or.b64 %rd4, %rd4, 0x0000000800400000;\n\
    add.u32 %r7, %r0, 2048; shr.u32 %r7, %r7, 4; cvt.u64.u32 %rd5, %r7; or.b64 %rd5, %rd5, 0x0000000800080000;\n\
    mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;\n\
    wgmma.fence.sync.aligned;<fenced>\n\
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd4, %rd5, 1, 1, 1, 0, 0;\n\
    <issued>wgmma.commit_group.sync.aligned;<committed>\n\
    wgmma.wait_group.sync.aligned 0;<waited>\n\
    mul.wide.u32 %rd6, %r3, 16; add.u64 %rd6, %rd6, %rd3; st.global.v4.f32 [%rd6], {%f0, %f1, %f2, %f3}; ret;";

fn product(changes: &[(&str, &str)]) -> String {
    let mut body = PRODUCT.to_owned();
    for (from, to) in changes {
        assert!(body.contains(from), "{from}");
        body = body.replace(from, to);
    }
    for place in ["<after stores>", "<before>", "<fenced>", "<issued>", "<committed>", "<waited>"] {
        body = body.replace(place, "");
    }
    text(".param .u64 out", 4096, ".maxntid 128 .minnctapersm 1", &body)
}

const ONE: Shape = Shape { blocks: 1, cluster: 1, threads: 128, shared: 4096 };

fn output() -> (Memory, Vec<Param>) {
    let mut memory = Memory::new();
    let out = memory.alloc_named("out", 128 * 16);
    (memory, vec![Param::Ptr(out)])
}

#[test]
fn a_product_that_is_right() {
    for options in orders() {
        let (mut memory, params) = output();
        run(&product(&[]), ONE, &params, &mut memory, &options).unwrap_or_else(|e| panic!("{e}"));
        let Param::Ptr(out) = params[0] else { unreachable!() };
        assert_eq!(memory.read(out, 2048).unwrap(), 16_f32.to_le_bytes().repeat(512));
    }
}

#[test]
fn products_that_are_wrong() {
    let race = ErrorCode::Race;
    let cases: &[Mistake<'_>] = &[
        ("no fence of the proxies", &[("fence.proxy.async.shared::cta; ", "")], ErrorCode::Uninitialised, "not fenced"),
        (
            "a fence before the stores",
            &[
                ("fence.proxy.async.shared::cta; ", ""),
                ("mov.u32 %r5, 0x3F803F80;", "mov.u32 %r5, 0x3F803F80; fence.proxy.async;"),
            ],
            ErrorCode::Uninitialised,
            "not fenced",
        ),
        (
            "a fence of global memory",
            &[("fence.proxy.async.shared::cta; ", "fence.proxy.async.global; ")],
            ErrorCode::Uninitialised,
            "not fenced",
        ),
        (
            "a fence of one warp",
            &[("fence.proxy.async.shared::cta; ", "setp.lt.u32 %p1, %r3, 32; @%p1 fence.proxy.async.shared::cta; ")],
            ErrorCode::Uninitialised,
            "not fenced",
        ),
        ("no barrier", &[("bar.sync 0;", "")], race, "not ordered after"),
        ("stores after the barrier", &[("<before>", "st.shared.u32 [%r4], %r5;")], race, "not ordered after"),
        ("stores under a product", &[("<committed>", "st.shared.u32 [%r4], %r3;")], race, "asynchronous"),
        (
            "no fence of the registers",
            &[("wgmma.fence.sync.aligned;", "")],
            ErrorCode::InFlight,
            "no `wgmma.fence` before the first",
        ),
        (
            "a register written after the fence",
            &[("<fenced>", "mov.f32 %f2, 0f3F800000;")],
            ErrorCode::InFlight,
            "register `%f2` was written after the last `wgmma.fence`",
        ),
        (
            "an accumulator read in flight",
            &[("<committed>", "add.f32 %f5, %f1, %f1;")],
            ErrorCode::InFlight,
            "register `%f1` is read, and a `wgmma` in flight accumulates into it",
        ),
        (
            "an accumulator written in flight",
            &[("<committed>", "mov.f32 %f3, 0f00000000;")],
            ErrorCode::InFlight,
            "register `%f3` is written, and a `wgmma` in flight uses it",
        ),
        (
            "no commit",
            &[("wgmma.commit_group.sync.aligned;", "")],
            ErrorCode::InFlight,
            "in flight accumulates into it",
        ),
        (
            "too weak a wait",
            &[("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;")],
            ErrorCode::InFlight,
            "in flight accumulates into it",
        ),
        (
            "accumulators in another order",
            &[(
                "<issued>",
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f0, %f2, %f3}, %rd4, %rd5, 1, 1, 1, 0, 0;",
            )],
            ErrorCode::InFlight,
            "belongs to another `wgmma` in flight",
        ),
        (
            "an accumulator that was never written",
            &[("mov.f32 %f2, 0f00000000; ", "")],
            ErrorCode::Uninitialised,
            "register `%f2` is read and was never written",
        ),
        (
            "an operand out of bounds",
            &[("add.u32 %r7, %r0, 2048;", "add.u32 %r7, %r0, 4096;")],
            ErrorCode::OutOfBounds,
            "a matrix operand",
        ),
        (
            "descriptors that differ between warps",
            &[("<before>", "setp.ge.u32 %p1, %r3, 96; @%p1 add.u32 %r0, %r0, 128;")],
            ErrorCode::Divergence,
            "with different operands",
        ),
        (
            "descriptors that differ within a warp",
            &[("<before>", "setp.eq.u32 %p1, %r3, 5; @%p1 add.u32 %r0, %r0, 128;")],
            ErrorCode::Divergence,
            "a matrix descriptor differs within the warp",
        ),
        (
            "a warp that does not multiply",
            &[("<before>", "setp.ge.u32 %p1, %r3, 96; @%p1 ret;")],
            ErrorCode::Divergence,
            "which it has not",
        ),
        (
            "a thread that does not multiply",
            &[("<before>", "setp.eq.u32 %p1, %r3, 96; @%p1 ret;")],
            ErrorCode::Divergence,
            "needs 32 threads",
        ),
        (
            "a product under a guard",
            &[("wgmma.mma_async", "@%p0 wgmma.mma_async"), ("<before>", "setp.ne.u32 %p0, %r3, 7;")],
            ErrorCode::Divergence,
            "have not come with them",
        ),
        ("a base offset", &[("0x0000000800400000", "0x0002000800400000")], ErrorCode::Unknown, "a base offset"),
    ];
    let (memory, params) = output();
    for (what, changes, code, says) in cases {
        refuses(what, &product(changes), ONE, &params, &memory, (*code, says));
    }
    // Half a warpgroup.
    let half = Shape { threads: 64, ..ONE };
    let says = (ErrorCode::Divergence, "fewer than the four of a warpgroup");
    let stored = [("mad.lo.u32 %r4, %r3, 16, %r0;", "mad.lo.u32 %r4, %r3, 16, %r0;")];
    refuses("half a warpgroup", &product(&stored), half, &params, &memory, says);
}

/// A thread loads a box of 32 words, all wait for it, one stores it back elsewhere.
const COPY: &str = "mov.u32 %r0, smem; mov.u32 %r1, bars; mov.u32 %r3, %tid.x; setp.ne.u32 %p0, %r3, 0;\n\
    mov.u64 %rd0, from; cvta.param.u64 %rd0, %rd0; mov.u64 %rd1, to; cvta.param.u64 %rd1, %rd1;\n\
    @%p0 bra READY;\n\
    mbarrier.init.shared::cta.b64 [%r1], 1; fence.mbarrier_init.release.cluster;\n\
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n\
    cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%rd0, {0}], [%r1];\n\
    READY: bar.sync 0;\n<wait>\
    mad.lo.u32 %r4, %r3, 4, %r0; ld.shared.u32 %r5, [%r4]; add.u32 %r5, %r5, 1; st.shared.u32 [%r4], %r5;\n\
    fence.proxy.async.shared::cta; bar.sync 0;\n\
    @%p0 bra DONE;\n\
    cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {0}], [%r0];\n\
    cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\n\
    DONE: bar.sync 0; st.shared.u32 [%r4], %r3; ret;";

fn copy(changes: &[(&str, &str)]) -> String {
    let mut body = COPY.replace("<wait>", &wait("%r1", 0, "W"));
    for (from, to) in changes {
        assert!(body.contains(from), "{from}");
        body = body.replace(from, to);
    }
    text(".param .align 64 .b8 from[128], .param .align 64 .b8 to[128]", 128, "", &body)
}

fn tensors() -> (Memory, TensorMap, TensorMap) {
    let mut memory = Memory::new();
    let (a, b) = (memory.upload("a", &[3; 128]), memory.alloc_named("b", 128));
    let map = |ptr: titan_nv::emu::DevicePtr| TensorMap::tiled(Element::U32, ptr.address(), &[32], &[], &[32]);
    let (a, b) = (map(a), map(b));
    (memory, a, b)
}

const WARP: Shape = Shape { blocks: 1, cluster: 1, threads: 32, shared: 128 };

#[test]
fn a_copy_that_is_right() {
    for options in orders() {
        let (mut memory, a, b) = tensors();
        run(&copy(&[]), WARP, &[bytes(&a), bytes(&b)], &mut memory, &options).unwrap_or_else(|e| panic!("{e}"));
        let out = memory.read(titan_nv::emu::DevicePtr::from_address(b.address), 128).unwrap();
        assert_eq!(out, 0x0303_0304_u32.to_le_bytes().repeat(32));
    }
}

#[test]
fn copies_that_are_wrong() {
    let (race, operand) = (ErrorCode::Race, ErrorCode::Operand);
    let cases: &[Mistake<'_>] = &[
        ("no wait", &[("@!%p7 bra W;", "")], race, "not ordered after"),
        ("the wrong parity", &[("[%r1], 0;\n@!%p7", "[%r1], 1;\n@!%p7")], race, "not ordered after"),
        ("too many bytes expected", &[("[%r1], 128;", "[%r1], 144;")], ErrorCode::Deadlock, "bytes"),
        ("too few bytes expected", &[("[%r1], 128;", "[%r1], 112;")], ErrorCode::Deadlock, "-16 bytes are missing"),
        (
            "no arrival",
            &[(
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1]",
                "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1]",
            )],
            ErrorCode::Deadlock,
            "",
        ),
        ("two arrivals expected", &[("[%r1], 1; fence", "[%r1], 2; fence")], ErrorCode::Deadlock, "mbarrier"),
        (
            "a barrier that is not initialised",
            &[("mbarrier.init.shared::cta.b64 [%r1], 1;", "")],
            ErrorCode::Barrier,
            "not",
        ),
        (
            "a box that is not aligned",
            &[("mov.u32 %r0, smem;", "mov.u32 %r0, smem; add.u32 %r0, %r0, 16;")],
            ErrorCode::Misaligned,
            "not a multiple of 128",
        ),
        (
            "a box beyond the memory",
            &[("mov.u32 %r0, smem;", "mov.u32 %r0, smem; add.u32 %r0, %r0, 128;")],
            ErrorCode::OutOfBounds,
            "",
        ),
        (
            "the number of dimensions",
            &[("tensor.1d.shared::cta.global", "tensor.2d.shared::cta.global"), ("[%rd0, {0}]", "[%rd0, {0, 0}]")],
            operand,
            "has 1 dimensions, the copy 2",
        ),
        (
            "no tensor map",
            &[
                ("mov.u64 %rd0, from;", "mov.u64 %rd0, to;"),
                ("cvta.param.u64 %rd0, %rd0;", "add.u64 %rd0, %rd0, 64; cvta.param.u64 %rd0, %rd0;"),
            ],
            ErrorCode::OutOfBounds,
            "not inside of the parameters",
        ),
        (
            "a tensor map in the wrong place",
            &[("mov.u64 %rd0, from;", "mov.u64 %rd0, from; add.u64 %rd0, %rd0, 64;")],
            operand,
            "no tensor map",
        ),
        (
            "a tensor map that is not aligned",
            &[("mov.u64 %rd0, from;", "mov.u64 %rd0, from; add.u64 %rd0, %rd0, 16;")],
            ErrorCode::Misaligned,
            "64",
        ),
        ("every thread loads", &[("@%p0 bra READY;\n", "")], ErrorCode::Barrier, ""),
        ("no fence before the store", &[("fence.proxy.async.shared::cta;", "")], race, "fence"),
        (
            "no barrier before the store",
            &[("fence.proxy.async.shared::cta; bar.sync 0;", "fence.proxy.async.shared::cta;")],
            race,
            "not ordered after",
        ),
        ("no wait for the source", &[("cp.async.bulk.wait_group.read 0;", "")], race, "asynchronous"),
        ("no commit", &[("cp.async.bulk.commit_group;", "")], race, "asynchronous"),
        (
            "a wait by another thread",
            &[
                ("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;", "cp.async.bulk.commit_group;"),
                ("DONE: bar.sync 0;", "DONE: @%p0 cp.async.bulk.wait_group.read 0; bar.sync 0;"),
            ],
            race,
            "asynchronous",
        ),
        ("no barrier after the wait", &[("DONE: bar.sync 0;", "DONE:")], race, "asynchronous"),
    ];
    let (memory, a, b) = tensors();
    for (what, changes, code, says) in cases {
        refuses(what, &copy(changes), WARP, &[bytes(&a), bytes(&b)], &memory, (*code, says));
    }
    let broken = [
        (
            "narrower than the swizzle",
            TensorMap { swizzle: Swizzle::B128, box_extents: [16, 1, 1, 1, 1], ..a },
            ErrorCode::Unknown,
            "fewer than the swizzle",
        ),
        ("what the encoder refuses", TensorMap { address: a.address + 8, ..a }, operand, "not a multiple of 16 bytes"),
        (
            "a tensor beyond its memory",
            TensorMap { extents: [40, 1, 1, 1, 1], box_extents: [40, 1, 1, 1, 1], ..a },
            ErrorCode::OutOfBounds,
            "",
        ),
    ];
    for (what, map, code, says) in broken {
        let roomy = Shape { shared: 256, ..WARP };
        refuses(what, &copy(&[]), roomy, &[bytes(&map), bytes(&b)], &memory, (code, says));
    }
}

#[test]
fn register_pools_block() {
    // 384 threads begin with 168 registers each.
    let body = |dec: &str, inc: &str| {
        format!(
            "mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 7; setp.ne.u32 %p0, %r1, 0; @%p0 bra CONSUMER;\n\
             {dec} ret;\nCONSUMER: {inc} ret;"
        )
    };
    let of = |dec: &str, inc: &str| text("", 0, ".maxntid 384 .minnctapersm 1", &body(dec, inc));
    let shape = Shape { blocks: 1, cluster: 1, threads: 384, shared: 0 };
    let memory = Memory::new();
    let (down, up) = ("setmaxnreg.dec.sync.aligned.u32 40;", "setmaxnreg.inc.sync.aligned.u32 232;");
    for options in orders() {
        run(&of(down, up), shape, &[], &mut memory.clone(), &options).unwrap_or_else(|e| panic!("{e}"));
    }
    for (what, dec, inc, code, says) in [
        (
            "too many",
            down,
            "setmaxnreg.inc.sync.aligned.u32 240;",
            ErrorCode::Deadlock,
            "`setmaxnreg.inc` goes on when",
        ),
        ("none released", "", up, ErrorCode::Deadlock, "registers of the block's pool"),
        (
            "lowered by an increase",
            down,
            "setmaxnreg.inc.sync.aligned.u32 160;",
            ErrorCode::Operand,
            "cannot be raised to 160",
        ),
        (
            "raised by a decrease",
            "setmaxnreg.dec.sync.aligned.u32 176;",
            up,
            ErrorCode::Operand,
            "cannot be lowered to 176",
        ),
        (
            "one warp of a warpgroup",
            "setp.lt.u32 %p1, %r0, 32; @%p1 bra L; ret; L: setmaxnreg.dec.sync.aligned.u32 40;",
            "",
            ErrorCode::Divergence,
            "which it has not",
        ),
    ] {
        refuses(what, &of(dec, inc), shape, &[], &memory, (code, says));
    }
}
