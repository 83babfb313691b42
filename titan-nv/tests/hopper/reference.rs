//! Kernels for sm_90a that others wrote by hand, if `TITAN_REFERENCE_PTX` names a folder with them; they are not kept here.

use std::io::Write as _;
use titan_core::num;
use titan_nv::emu::{Completion, DevicePtr, EmuError, Launch, Memory, Module, Options, Param, Schedule, Stats};
use titan_nv::tma::{Element, Swizzle, TensorMap};

pub(super) fn text(name: &str) -> Option<String> {
    let Some(folder) = std::env::var_os("TITAN_REFERENCE_PTX") else {
        std::io::stderr().write_all(b"SKIPPED hand-written kernels for sm_90a: no TITAN_REFERENCE_PTX\n").unwrap();
        return None;
    };
    Some(std::fs::read_to_string(std::path::Path::new(&folder).join(name)).unwrap())
}

/// Small whole numbers, whose sums are exact.
fn whole(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = titan_sim::engine::Rng::new(seed);
    (0..n).map(|_| (rng.next_u64() >> 61) as f32 - 3.0).collect()
}

/// What a kernel is given: elements of A and B, and how the tensors are cut into boxes and tiles.
#[derive(Clone, Copy)]
struct Gemm<'a> {
    entry: &'a str,
    element: Element,
    /// Along M and N in elements of a block, along K of a step.
    tile: [u64; 3],
    /// Rows of the boxes of A, B and D.
    boxes: [u32; 3],
    shared: u32,
    /// Blocks, clusters of two; and the tiles of a cluster along M, N and K.
    blocks: u32,
    tiles: [u32; 3],
}

const COOPERATIVE: Gemm<'_> = Gemm {
    entry: "gemm_bf16_sm90a",
    element: Element::Bf16,
    tile: [128, 256, 64],
    boxes: [128, 128, 64],
    shared: 229_440,
    blocks: 2,
    tiles: [1, 2, 6],
};

fn encode(element: Element, x: f32) -> Vec<u8> {
    if element == Element::U8 { vec![num::e4m3_from_f32(x)] } else { num::bf16_from_f32(x).to_le_bytes().to_vec() }
}

fn upload(memory: &mut Memory, name: &str, element: Element, values: &[f32]) -> DevicePtr {
    let bytes: Vec<u8> = values.iter().flat_map(|x| encode(element, *x)).collect();
    memory.upload(name, &bytes)
}

/// Rows in boxes of 128 bytes.
fn map(element: Element, ptr: DevicePtr, rows: u64, cols: u64, rows_in_box: u32) -> Param {
    let size = element.bytes();
    let strides = [cols * u64::from(size)];
    let map = TensorMap::tiled(element, ptr.address(), &[cols, rows], &strides, &[128 / size, rows_in_box]);
    Param::Bytes(TensorMap { swizzle: Swizzle::B128, ..map }.to_bytes().to_vec())
}

fn run(text: &str, gemm: &Gemm<'_>, options: &Options) -> Result<Stats, EmuError> {
    let [mt, nt, kt] = gemm.tiles.map(u64::from);
    let (m, n, k) = (mt * gemm.tile[0] * 2, nt * gemm.tile[1], kt * gemm.tile[2]);
    let (a, b) = (whole((m * k) as usize, 1), whole((n * k) as usize, 2));
    let mut memory = Memory::new();
    let element = gemm.element;
    let (pa, pb) = (upload(&mut memory, "a", element, &a), upload(&mut memory, "b", element, &b));
    let pd = memory.alloc_named("d", (m * n * 2) as usize);
    let [mt, nt, kt] = gemm.tiles.map(Param::U32);
    let [box_a, box_b, box_d] = gemm.boxes;
    let maps = [map(element, pa, m, k, box_a), map(element, pb, n, k, box_b), map(Element::Bf16, pd, m, n, box_d)];
    let params = [&maps[..], &[mt, nt, kt]].concat();
    let launch = Launch {
        grid: [gemm.blocks, 1, 1],
        block: [384, 1, 1],
        dynamic_shared: gemm.shared,
        cluster: None,
        params: &params,
    };
    let module = Module::parse(text)?;
    let stats = module.entry(gemm.entry)?.run(&launch, &mut memory, options)?;
    let out = memory.read(pd, (m * n * 2) as usize)?;
    let (m, n, k) = (m as usize, n as usize, k as usize);
    for row in 0..m {
        for col in 0..n {
            let dot: f32 = (0..k).map(|i| a[row * k + i] * b[col * k + i]).sum();
            let at = (row * n + col) * 2;
            let got = u16::from_le_bytes([out[at], out[at + 1]]);
            assert_eq!(got, num::bf16_from_f32(dot), "row {row}, column {col}");
        }
    }
    Ok(stats)
}

fn under_all_orders(text: &str, gemm: &Gemm<'_>) {
    for (completion, schedule) in [
        (Completion::Late, Schedule::InTurn),
        (Completion::Early, Schedule::InTurn),
        (Completion::Seeded(7), Schedule::Seeded(7)),
    ] {
        let options = Options { completion, schedule, sanitize: true, ..Options::default() };
        run(text, gemm, &options).unwrap_or_else(|e| panic!("{completion:?}: {e}"));
    }
}

#[test]
fn a_persistent_gemm_with_clusters() {
    let Some(text) = text("gemm_sm90a.ptx") else { return };
    under_all_orders(&text, &Gemm { tiles: [1, 1, 6], ..COOPERATIVE });
    // One step, fewer than the ring has stages; more tiles than clusters.
    run(&text, &Gemm { tiles: [1, 2, 1], ..COOPERATIVE }, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn consumers_that_take_turns() {
    let Some(text) = text("gemm_sm90a_pingpong.ptx") else { return };
    let gemm = Gemm { tile: [128, 192, 64], boxes: [128, 96, 128], shared: 196_672, tiles: [1, 3, 5], ..COOPERATIVE };
    under_all_orders(&text, &gemm);
}

#[test]
fn a_gemm_of_fp8() {
    let Some(text) = text("gemm_sm90a_fp8.ptx") else { return };
    let gemm = Gemm { element: Element::U8, tile: [128, 256, 128], tiles: [1, 1, 5], ..COOPERATIVE };
    under_all_orders(&text, &gemm);
}

/// Each mutant: what it is, and what is replaced by what.
const MUTANTS: &[(&str, &str, &str)] = &[
    ("no fence before the bulk store", "fence.proxy.async.shared::cta;", ""),
    (
        "no barrier before the bulk store",
        "fence.proxy.async.shared::cta;\n  bar.sync %r21, 128;",
        "fence.proxy.async.shared::cta;",
    ),
    ("no wait for the source", "@%p5 cp.async.bulk.wait_group.read 1;", ""),
    ("no barrier after the wait", "// buffer 0 free again\n  bar.sync %r21, 128;", ""),
    ("no wait for the stage", "@!%pw bra C_W1;", ""),
    ("no wait for the slot", "@!%pw bra P_W;", ""),
    ("wrong parity of the producer", "mov.u32 %ph, 1;", "mov.u32 %ph, 0;"),
    (
        "wrong parity of the consumer",
        "mov.u32 %tile, %cid; mov.u32 %s, 0; mov.u32 %ph, 0;",
        "mov.u32 %tile, %cid; mov.u32 %s, 0; mov.u32 %ph, 1;",
    ),
    ("too few bytes", "[%full], 49152", "[%full], 32768"),
    ("too many bytes", "[%full], 49152", "[%full], 65536"),
    (
        "too many arrivals expected",
        "mbarrier.init.shared::cta.b64 [%bar+8], 16;",
        "mbarrier.init.shared::cta.b64 [%bar+8], 17;",
    ),
    (
        "too few arrivals expected",
        "mbarrier.init.shared::cta.b64 [%bar+8], 16;",
        "mbarrier.init.shared::cta.b64 [%bar+8], 8;",
    ),
    ("released too early", "  wgmma.wait_group.sync.aligned 1;\n", "  wgmma.wait_group.sync.aligned 2;\n"),
    ("released before the wait", "  wgmma.wait_group.sync.aligned 1;\n", ""),
    ("the own stage released", "mov.u32 %r22, %s;\n  add", "mov.u32 %r22, 1;\n  add"),
    (
        "accumulators read too early",
        "C_KDONE:\n  wgmma.wait_group.sync.aligned 0;",
        "C_KDONE:\n  wgmma.wait_group.sync.aligned 1;",
    ),
    ("no first fence", "ne.u32 %pfalse, 0, 0;\n  wgmma.fence.sync.aligned;", "ne.u32 %pfalse, 0, 0;"),
    ("no commit", "  wgmma.commit_group.sync.aligned;\n", ""),
    ("accumulator not cleared", "%dbh, %pfalse, 1, 1, 0, 0;", "%dbh, %ptrue, 1, 1, 0, 0;"),
    ("wrong stride of the descriptor", "or.b64 %da, %da, 0x4000004000010000;", "or.b64 %da, %da, 0x4000002000010000;"),
    ("wrong swizzle of the descriptor", "or.b64 %db, %db, 0x4000004000010000;", "or.b64 %db, %db, 0x8000004000010000;"),
    ("wrong step of the descriptor", "add.s64 %rd11, %dah, 2;", "add.s64 %rd11, %dah, 4;"),
    ("wrong coordinate", "mul.lo.u32 %r34, %k, 64;", "mul.lo.u32 %r34, %k, 32;"),
    ("wrong place of the box", "mad.lo.u32 %r33, %crank, 16384, %r33;", ""),
    ("multicast to one block", "mov.u16 %h0, 3;", "mov.u16 %h0, 1;"),
    ("multicast to a block that is not there", "mov.u16 %h0, 3;", "mov.u16 %h0, 7;"),
    ("arrivals at the own block only", "and.b32 %r5, %lane, 1;", "mov.u32 %r5, %crank;"),
    ("no fence of the barriers", "fence.mbarrier_init.release.cluster;", ""),
    (
        "no barrier of the cluster",
        "  barrier.cluster.arrive.relaxed.aligned;\n  barrier.cluster.wait.acquire.aligned;\n",
        "  bar.sync 0;\n",
    ),
    ("no wait before the end", "@%p4 bra P_T;", ""),
    ("more registers than there are", "setmaxnreg.inc.sync.aligned.u32 232;", "setmaxnreg.inc.sync.aligned.u32 240;"),
    ("no registers released", "setmaxnreg.dec.sync.aligned.u32 40;", ""),
    (
        "registers of one warp",
        "setmaxnreg.dec.sync.aligned.u32 40;\n  setp.ne.u32 %p6, %warp, 8;\n  @%p6 bra P_DONE;",
        "setp.ne.u32 %p6, %warp, 8;\n  @%p6 bra P_DONE;\n  setmaxnreg.dec.sync.aligned.u32 40;",
    ),
    ("every lane issues", "elect.sync _|%pel, -1;\n  @!%pel bra P_DONE;", ""),
    (
        "the store's box",
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r13+0]",
        "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r14+0]",
    ),
    ("no commit of the store", "  @%p5 cp.async.bulk.commit_group;\n", ""),
];

#[test]
fn mutants_of_it_are_found() {
    let Some(text) = text("gemm_sm90a.ptx") else { return };
    let mut missed = Vec::new();
    for (what, from, to) in MUTANTS {
        assert!(text.contains(from), "{what}: `{from}` is not there");
        let mutant = text.replace(from, to);
        let tries = [(Completion::Late, true), (Completion::Early, true)];
        let found = tries.into_iter().find_map(|(completion, sanitize)| {
            let options = Options { completion, sanitize, max_steps: 1 << 24, ..Options::default() };
            let done = std::panic::catch_unwind(|| run(&mutant, &COOPERATIVE, &options).map(drop));
            match done {
                Ok(Ok(())) => None,
                Ok(Err(e)) => Some(e.to_string()),
                Err(_) => Some("wrong results".to_owned()),
            }
        });
        if found.is_none() {
            missed.push(*what);
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
