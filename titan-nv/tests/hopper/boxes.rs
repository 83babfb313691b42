//! Bulk tensor copies against what they mean, element by element.

use crate::harness::{Shape, bytes, orders, refuses, run, text, wait};
use titan_nv::emu::{DevicePtr, Memory, Options, Param};
use titan_nv::tma::{self, Element, Fill, MAX_RANK, Swizzle, TensorMap};
use titan_sim::engine::Rng;

/// A box of a tensor of which every element has its own value.
struct Case {
    map: TensorMap,
    coords: Vec<i64>,
    /// Bytes of the allocation.
    len: usize,
}

fn below(rng: &mut Rng, n: u64) -> u64 {
    rng.next_u64() % n
}

fn random(rng: &mut Rng) -> Case {
    let elements = [Element::U8, Element::F16, Element::Bf16, Element::F32, Element::U32, Element::F64, Element::I64];
    let element = elements[below(rng, 7) as usize];
    let size = u64::from(element.bytes());
    let rank = 1 + below(rng, MAX_RANK as u64) as usize;
    let swizzle = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128][below(rng, 4) as usize];
    let inner = swizzle.span().map_or_else(|| 16 * (1 + below(rng, 4)), u64::from) / size;
    let mut extents = vec![1 + below(rng, inner * 2)];
    let mut box_extents = vec![inner as u32];
    let mut element_strides = vec![1];
    let mut strides = Vec::new();
    let mut stride = (extents[0] * size).next_multiple_of(16) + 16 * below(rng, 2);
    for _ in 1..rank {
        let extent = 1 + below(rng, 6);
        strides.push(stride);
        stride = stride * extent + 16 * below(rng, 2);
        extents.push(extent);
        box_extents.push(1 + below(rng, 6) as u32);
        element_strides.push(1 + below(rng, 3) as u32);
    }
    let mut map = TensorMap::tiled(element, 0, &extents, &strides, &box_extents);
    map.element_strides[..rank].copy_from_slice(&element_strides);
    map.swizzle = swizzle;
    map.fill = if element.is_float() && below(rng, 3) == 0 { Fill::Nan } else { Fill::Zero };
    let coords = (0..rank).map(|d| below(rng, 2 * extents[d] + 4) as i64 - extents[d] as i64 / 2 - 2).collect();
    Case { map, coords, len: stride as usize }
}

/// Each element of a box: where it is in shared memory, and in the tensor, unless it is outside.
fn elements(case: &Case) -> Vec<(usize, Option<usize>)> {
    let Case { map, coords, .. } = case;
    let (rank, size) = (map.dims(), map.element.bytes() as usize);
    let tile: Vec<usize> = (0..rank).map(|d| if d == 0 { map.box_extents[0] } else { map.tile(d) } as usize).collect();
    let n: usize = tile.iter().product();
    (0..n)
        .map(|i| {
            let (mut rest, mut global, mut inside) = (i, 0, true);
            for d in 0..rank {
                let step = if d == 0 { 1 } else { i64::from(map.element_strides[d]) };
                let at = coords[d] + (rest % tile[d]) as i64 * step;
                rest /= tile[d];
                inside &= 0 <= at && at < map.extents[d] as i64;
                global += at * if d == 0 { size as i64 } else { map.strides[d - 1] as i64 };
            }
            // The exclusive or with the number of the group of 128 bytes, which is 8, 4 or 2 groups long.
            let plain = i * size;
            let groups = map.swizzle.span().map_or(1, |span| span as usize / 16);
            let shared = plain ^ ((plain / 128 % groups) * 16);
            (shared, inside.then_some(global as usize))
        })
        .collect()
}

fn setup(case: &mut Case) -> (Memory, DevicePtr, Vec<u8>) {
    let tensor: Vec<u8> = (0..case.len).map(|i| (i * 7 + i / 256 * 13 + 1) as u8).collect();
    let mut memory = Memory::new();
    let ptr = memory.upload("tensor", &tensor);
    case.map.address = ptr.address();
    assert_eq!(case.map.check(), Ok(()));
    (memory, ptr, tensor)
}

fn coordinates(coords: &[i64]) -> String {
    coords.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn load_text(case: &Case) -> String {
    let (n, rank) = (case.map.box_bytes(), case.map.dims());
    let coords = coordinates(&case.coords);
    let body = format!(
        "mov.u32 %r0, smem; mov.u32 %r1, bars; mov.u32 %r2, %tid.x; setp.ne.u32 %p0, %r2, 0;\n\
         mov.u64 %rd0, map; cvta.param.u64 %rd0, %rd0; ld.param.u64 %rd1, [out];\n\
         @%p0 bra READY;\n\
         mbarrier.init.shared::cta.b64 [%r1], 1; fence.mbarrier_init.release.cluster;\n\
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {n};\n\
         cp.async.bulk.tensor.{rank}d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r0], [%rd0, {{{coords}}}], [%r1];\n\
         READY: bar.sync 0;\n{}\
         shl.b32 %r3, %r2, 2;\n\
         COPY: setp.ge.u32 %p1, %r3, {n}; @%p1 bra DONE;\n\
         add.u32 %r4, %r0, %r3; ld.shared.u32 %r5, [%r4]; cvt.u64.u32 %rd2, %r3; add.u64 %rd2, %rd2, %rd1;\n\
         st.global.u32 [%rd2], %r5; add.u32 %r3, %r3, 128; bra COPY;\n\
         DONE: ret;",
        wait("%r1", 0, "W")
    );
    text(".param .align 64 .b8 map[128], .param .u64 out", n, "", &body)
}

#[test]
fn loads_are_what_they_mean() {
    let mut rng = Rng::new(11);
    for i in 0..test_depth::cases(400, 100) {
        let mut case = random(&mut rng);
        let (mut memory, _, tensor) = setup(&mut case);
        let n = case.map.box_bytes() as usize;
        let out = memory.alloc_named("out", n);
        let shape = Shape { blocks: 1, cluster: 1, threads: 32, shared: n as u32 };
        let options = &orders()[i % 4];
        let params = [bytes(&case.map), Param::Ptr(out)];
        run(&load_text(&case), shape, &params, &mut memory, options).unwrap_or_else(|e| panic!("{}: {e}", case.map));
        let got = memory.read(out, n).unwrap();
        let size = case.map.element.bytes() as usize;
        let fill = vec![if case.map.fill == Fill::Nan { 0xFF } else { 0 }; size];
        for (shared, global) in elements(&case) {
            let want = global.map_or(&fill[..], |g| &tensor[g..g + size]);
            assert_eq!(&got[shared..shared + size], want, "{}: {:?}", case.map, case.coords);
        }
        // The model of such copies says the same.
        let (mut global, mut shared) = (tensor, vec![0; n]);
        let coords: Vec<i32> = case.coords.iter().map(|x| *x as i32).collect();
        let map = TensorMap { address: 0, ..case.map };
        let model = tma::Memory { global: &mut global, shared: &mut shared };
        tma::tma(&coords, 0, &map, tma::Direction::Load, model).unwrap();
        assert_eq!(got, shared, "{}: {:?}", case.map, case.coords);
    }
}

/// Stores a box, or adds it, and waits for it.
fn store_text(case: &Case, reduce: &str) -> String {
    let (n, rank) = (case.map.box_bytes(), case.map.dims());
    let coords = coordinates(&case.coords);
    let op = if reduce.is_empty() {
        format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%rd0, {{{coords}}}], [%r0];")
    } else {
        format!(
            "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{reduce}.bulk_group [%rd0, {{{coords}}}], [%r0];"
        )
    };
    let body = format!(
        "mov.u32 %r0, smem; mov.u32 %r2, %tid.x; setp.ne.u32 %p0, %r2, 0;\n\
         mov.u64 %rd0, map; cvta.param.u64 %rd0, %rd0; ld.param.u64 %rd1, [out];\n\
         shl.b32 %r3, %r2, 2;\n\
         COPY: setp.ge.u32 %p1, %r3, {n}; @%p1 bra COPIED;\n\
         add.u32 %r4, %r0, %r3; cvt.u64.u32 %rd2, %r3; add.u64 %rd2, %rd2, %rd1; ld.global.u32 %r5, [%rd2];\n\
         st.shared.u32 [%r4], %r5; add.u32 %r3, %r3, 128; bra COPY;\n\
         COPIED: fence.proxy.async.shared::cta; bar.sync 0;\n\
         @%p0 bra DONE;\n{op}\n\
         cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n\
         DONE: ret;"
    );
    text(".param .align 64 .b8 map[128], .param .u64 out", n, "", &body)
}

#[test]
fn stores_are_what_they_mean() {
    let mut rng = Rng::new(12);
    for i in 0..test_depth::cases(300, 80) {
        let mut case = random(&mut rng);
        let adds = case.map.element == Element::U32 && i % 2 == 0;
        let (mut memory, ptr, mut tensor) = setup(&mut case);
        let n = case.map.box_bytes() as usize;
        let source: Vec<u8> = (0..n).map(|i| (i * 5 + 3) as u8).collect();
        let out = memory.upload("source", &source);
        let shape = Shape { blocks: 1, cluster: 1, threads: 32, shared: n as u32 };
        let params = [bytes(&case.map), Param::Ptr(out)];
        let text = store_text(&case, if adds { "add" } else { "" });
        run(&text, shape, &params, &mut memory, &orders()[i % 4]).unwrap_or_else(|e| panic!("{}: {e}", case.map));
        let size = case.map.element.bytes() as usize;
        for (shared, global) in elements(&case) {
            let Some(g) = global else { continue };
            let new = &source[shared..shared + size];
            if adds {
                let word = |b: &[u8]| u32::from_le_bytes(b.try_into().unwrap());
                let sum = word(&tensor[g..g + 4]).wrapping_add(word(new));
                tensor[g..g + 4].copy_from_slice(&sum.to_le_bytes());
            } else {
                tensor[g..g + size].copy_from_slice(new);
            }
        }
        assert_eq!(memory.read(ptr, tensor.len()).unwrap(), tensor, "{}: {:?}", case.map, case.coords);
    }
}

#[test]
fn ranges_go_both_ways() {
    for options in orders() {
        let mut memory = Memory::new();
        let (a, b) = (memory.upload("a", &[7; 64]), memory.alloc_named("b", 64));
        let body = format!(
            "mov.u32 %r0, smem; mov.u32 %r1, bars; ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [b];\n\
             mbarrier.init.shared::cta.b64 [%r1], 1; fence.mbarrier_init.release.cluster;\n\
             mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;\n\
             cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%rd0], 64, [%r1];\n{}\
             cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r0], 64;\n\
             cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;",
            wait("%r1", 0, "W")
        );
        let text = text(".param .u64 a, .param .u64 b", 64, "", &body);
        let shape = Shape { blocks: 1, cluster: 1, threads: 1, shared: 64 };
        run(&text, shape, &[Param::Ptr(a), Param::Ptr(b)], &mut memory, &options).unwrap();
        assert_eq!(memory.read(b, 64).unwrap(), [7; 64]);
    }
}

#[test]
fn a_store_is_not_there_before_the_wait() {
    let mut memory = Memory::new();
    let (a, b) = (memory.upload("a", &[1; 16]), memory.alloc_named("b", 4));
    let body = "mov.u32 %r0, smem; ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [b];\n\
        st.shared.v4.u32 [%r0], {5, 5, 5, 5}; fence.proxy.async.shared::cta;\n\
        cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r0], 16; cp.async.bulk.commit_group;\n\
        cp.async.bulk.wait_group.read 0; ld.global.u32 %r5, [%rd0]; st.global.u32 [%rd1], %r5;\n\
        cp.async.bulk.wait_group 0; ret;";
    let text = text(".param .u64 a, .param .u64 b", 16, "", body);
    let shape = Shape { blocks: 1, cluster: 1, threads: 1, shared: 16 };
    run(&text, shape, &[Param::Ptr(a), Param::Ptr(b)], &mut memory, &Options::default()).unwrap();
    assert_eq!(memory.read(b, 4).unwrap(), [1; 4], "only the source was waited for");
    assert_eq!(memory.read(a, 16).unwrap(), 5_u32.to_le_bytes().repeat(4));
}

/// A second copy over bytes that the threads of a warp have read, with something between the reads and the copy.
fn copied_over(between: &str) -> String {
    let copy = "@%p0 bra STARTED$; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n\
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%rd0], 128, [%r1];\nSTARTED$:\n";
    let body = format!(
        "mov.u32 %r0, smem; mov.u32 %r1, bars; mov.u32 %r2, %tid.x; setp.ne.u32 %p0, %r2, 0;\n\
         ld.param.u64 %rd0, [a]; ld.param.u64 %rd1, [b]; shl.b32 %r3, %r2, 2; add.u32 %r4, %r0, %r3;\n\
         @%p0 bra READY; mbarrier.init.shared::cta.b64 [%r1], 1; mbarrier.init.shared::cta.b64 [%r1+8], 32;\n\
         fence.mbarrier_init.release.cluster;\n\
         READY: bar.sync 0;\n{}{}\
         ld.shared.u32 %r5, [%r4];\n{between}\n{}{}\
         cvt.u64.u32 %rd2, %r3; add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2], %r5; ret;",
        copy.replace('$', "0"),
        wait("%r1", 0, "W0"),
        copy.replace('$', "1"),
        wait("%r1", 1, "W1"),
    );
    text(".param .u64 a, .param .u64 b", 128, "", &body)
}

#[test]
fn a_fence_covers_the_reads_of_its_own_thread_and_those_released_to_it() {
    const FENCE: &str = "fence.proxy.async.shared::cta;";
    let mut memory = Memory::new();
    let words: Vec<u8> = (0..32_u32).flat_map(u32::to_le_bytes).collect();
    let (a, b) = (memory.upload("a", &words), memory.alloc_named("b", 128));
    let (shape, params) = (Shape { blocks: 1, cluster: 1, threads: 32, shared: 128 }, [Param::Ptr(a), Param::Ptr(b)]);
    let arrived = format!("mbarrier.arrive.shared::cta.b64 _, [%r1+8];\n{}", wait("%r1+8", 0, "R"));
    for between in [
        format!("{FENCE} bar.sync 0;"),
        format!("bar.sync 0; @!%p0 {FENCE}"),
        format!("bar.warp.sync 0xffffffff; @!%p0 {FENCE}"),
        format!("{FENCE} {arrived}"),
        format!("{arrived} @!%p0 {FENCE}"),
        format!("@%p0 {FENCE} @!%p0 {FENCE} bar.sync 0;"),
        format!("@%p0 fence.proxy.async; @!%p0 {FENCE} bar.sync 0;"),
    ] {
        for options in orders() {
            run(&copied_over(&between), shape, &params, &mut memory, &options)
                .unwrap_or_else(|e| panic!("{between}: {e}"));
            assert_eq!(memory.read(b, 128).unwrap(), words);
        }
    }
    for between in [
        "bar.sync 0;".to_owned(),
        format!("@!%p0 {FENCE} bar.sync 0;"),
        format!("@%p0 {FENCE} bar.sync 0;"),
        format!("@!%p0 {FENCE} {arrived}"),
        format!("{arrived} @%p0 {FENCE} bar.sync 0; ld.shared.u32 %r5, [%r4]; @!%p0 {FENCE} bar.warp.sync 0xffffffff;"),
        "fence.proxy.async.global; bar.sync 0;".to_owned(),
        format!("@!%p0 {FENCE} @%p0 fence.proxy.async.global; bar.sync 0;"),
    ] {
        let wrong = (titan_nv::emu::ErrorCode::Race, "[sanitizer: missing-fence]");
        refuses(&between, &copied_over(&between), shape, &params, &memory, wrong);
    }
}

/// A thread that writes, executes the fence, and stores the bytes in bulk needs none of the other threads, which have read something else.
#[test]
fn a_fence_covers_the_writes_of_its_own_thread() {
    let mut memory = Memory::new();
    let b = memory.alloc_named("b", 16);
    let with = |fence: &str| {
        let body = format!(
            "mov.u32 %r0, smem; mov.u32 %r2, %tid.x; setp.ne.u32 %p0, %r2, 0; ld.param.u64 %rd1, [b];\n\
             @!%p0 st.shared.u32 [%r0+64], 7; bar.sync 0; ld.shared.u32 %r5, [%r0+64];\n@%p0 bra DONE;\n\
             st.shared.v4.u32 [%r0], {{%r5, %r5, %r5, %r5}}; {fence}\n\
             cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r0], 16; cp.async.bulk.commit_group;\n\
             cp.async.bulk.wait_group 0;\nDONE: ret;"
        );
        text(".param .u64 b", 128, "", &body)
    };
    let (shape, params) = (Shape { blocks: 1, cluster: 1, threads: 32, shared: 128 }, [Param::Ptr(b)]);
    for options in orders() {
        run(&with("fence.proxy.async.shared::cta;"), shape, &params, &mut memory, &options).unwrap();
        assert_eq!(memory.read(b, 16).unwrap(), 7_u32.to_le_bytes().repeat(4));
    }
    let wrong = (titan_nv::emu::ErrorCode::Race, "[sanitizer: missing-fence]");
    refuses("no fence", &with(""), shape, &params, &memory, wrong);
}
