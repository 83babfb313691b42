//! Launches: grids, arguments, shared memory, several blocks that need each other, equal results every time.

use crate::harness::{assemble, header, words32};
use titan_nv::emu::{ErrorCode, Launch, Memory, Module, Options, Param, Stats};

fn module(text: &str) -> Module {
    let text = header("sm_80") + text;
    assemble(&text, "sm_80");
    Module::parse(&text).unwrap_or_else(|e| panic!("{e}"))
}

fn run(
    m: &Module,
    memory: &mut Memory,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    params: &[Param],
) -> Result<Stats, ErrorCode> {
    let launch = Launch { grid, block, dynamic_shared: shared, cluster: None, params };
    m.entry("k").unwrap().run(&launch, memory, &Options::default()).map_err(|e| e.code())
}

#[test]
fn every_thread_of_every_block_runs_once() {
    let m = module(".visible .entry k(.param .u64 out) { .reg .b64 %rd<3>; .reg .b32 %r<20>;
        ld.param.u64 %rd0, [out];
        mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ctaid.z; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %nctaid.y;
        mad.lo.u32 %r5, %r2, %r4, %r1; mad.lo.u32 %r5, %r5, %r3, %r0;
        mov.u32 %r6, %tid.x; mov.u32 %r7, %tid.y; mov.u32 %r8, %tid.z; mov.u32 %r9, %ntid.x; mov.u32 %r10, %ntid.y; mov.u32 %r11, %ntid.z;
        mad.lo.u32 %r12, %r8, %r10, %r7; mad.lo.u32 %r12, %r12, %r9, %r6;
        mul.lo.u32 %r13, %r9, %r10; mul.lo.u32 %r13, %r13, %r11; mad.lo.u32 %r14, %r5, %r13, %r12;
        mad.wide.u32 %rd1, %r14, 4, %rd0; red.global.add.u32 [%rd1], %r14; ret; }");
    let mut memory = Memory::new();
    let n = 2 * 3 * 4 * 5 * 3 * 7;
    let out = memory.upload("out", &vec![0; n * 4]);
    let stats = run(&m, &mut memory, [2, 3, 4], [5, 3, 7], 0, &[Param::Ptr(out)]).unwrap();
    assert_eq!(words32(&memory, out, n), (0..n as u32).collect::<Vec<_>>());
    assert_eq!(stats.blocks, 24);
}

#[test]
fn launches_that_do_not_fit() {
    let m = module(
        ".visible .entry k(.param .u32 n, .param .f64 x) .reqntid 32, 2 { ret; }
        .visible .entry j() .maxntid 64 { .shared .align 4 .b8 buf[1024]; ret; }",
    );
    let mut memory = Memory::new();
    let params = [Param::U32(1), Param::F64(2.0)];
    let mut bad = |kernel: &str, grid, block, shared, params: &[Param], says: &str| {
        let launch = Launch { grid, block, dynamic_shared: shared, cluster: None, params };
        let error = m.entry(kernel).unwrap().run(&launch, &mut memory, &Options::default()).expect_err(says);
        assert!(error.code() == ErrorCode::Launch && error.to_string().contains(says), "{error}");
    };
    bad("k", [1; 3], [64, 1, 1], 0, &params, "requires blocks of 32 × 2 × 1");
    bad("k", [1; 3], [32, 2, 1], 0, &params[..1], "takes 2 parameters, not 1");
    bad("k", [1; 3], [32, 2, 1], 0, &[Param::U32(1), Param::F32(2.0)], "parameter `x` is a value of 8 bytes, not 4");
    bad("j", [1; 3], [65, 1, 1], 0, &[], "at most 64 threads, not 65");
    bad("j", [1, 0, 1], [1; 3], 0, &[], "a grid of 1 × 0 × 1");
    bad("j", [1; 3], [0, 1, 1], 0, &[], "0 × 1 × 1 threads");
    bad("j", [1; 3], [1; 3], 232_000, &[], "233024 bytes of shared memory");
    let error = m.entry("l").unwrap_err();
    assert!(error.to_string().contains("there is no kernel `l`; the module has `k`, `j`"), "{error}");
    let launch = Launch { grid: [1; 3], block: [32, 2, 1], dynamic_shared: 0, cluster: None, params: &params };
    m.entry("k").unwrap().run(&launch, &mut memory, &Options::default()).unwrap();
}

#[test]
fn the_launch_sizes_the_shared_array() {
    let m = module(
        ".extern .shared .align 16 .b8 pool[];
        .visible .entry k(.param .u64 out) { .reg .b64 %rd; .reg .b32 %r<4>; .shared .align 4 .b32 own[4];
        ld.param.u64 %rd, [out]; mov.u32 %r0, pool; st.shared.u32 [%r0+60], 5; st.shared.u32 [own], 6;
        mov.u32 %r1, %dynamic_smem_size; ld.shared.u32 %r2, [%r0+60]; ld.shared.u32 %r3, [own];
        add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.global.u32 [%rd], %r1; ret; }",
    );
    let mut memory = Memory::new();
    let out = memory.alloc(4);
    run(&m, &mut memory, [1; 3], [1; 3], 64, &[Param::Ptr(out)]).unwrap();
    assert_eq!(words32(&memory, out, 1), [64 + 5 + 6]);
    assert_eq!(run(&m, &mut memory, [1; 3], [1; 3], 60, &[Param::Ptr(out)]), Err(ErrorCode::OutOfBounds));
}

#[test]
fn blocks_begin_with_fresh_shared_memory() {
    let m = module(
        ".visible .entry k(.param .u64 out) { .reg .b64 %rd; .reg .b32 %r<4>; .reg .pred %p; .shared .align 4 .b32 w;
        mov.u32 %r0, %ctaid.x; setp.ne.u32 %p, %r0, 0; @!%p st.shared.u32 [w], 5; ld.shared.u32 %r1, [w]; ret; }",
    );
    let mut memory = Memory::new();
    let out = memory.alloc(4);
    assert_eq!(run(&m, &mut memory, [1; 3], [1; 3], 0, &[Param::Ptr(out)]), Ok(Stats { instructions: 5, blocks: 1 }));
    assert_eq!(run(&m, &mut memory, [2, 1, 1], [1; 3], 0, &[Param::Ptr(out)]), Err(ErrorCode::Uninitialised));
}

/// Each block waits for the one with a *greater* index, so none could finish if blocks ran one by one to their end.
const TURNSTILE: &str =
    ".visible .entry k(.param .u64 turn, .param .u64 out) { .reg .b64 %rd<3>; .reg .b32 %r<8>; .reg .pred %p<2>;
    ld.param.u64 %rd0, [turn]; ld.param.u64 %rd1, [out]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %nctaid.x;
    sub.u32 %r2, %r1, %r0; sub.u32 %r2, %r2, 1;
    WAIT: ld.acquire.gpu.global.u32 %r3, [%rd0]; setp.ne.u32 %p0, %r3, %r2; @%p0 bra WAIT;
    mad.wide.u32 %rd2, %r0, 4, %rd1; st.global.u32 [%rd2], %r3; add.u32 %r3, %r3, STEP;
    st.release.gpu.global.u32 [%rd0], %r3; ret; }";

#[test]
fn blocks_that_wait_for_each_other_make_progress() {
    let m = module(&TURNSTILE.replace("STEP", "1"));
    let mut memory = Memory::new();
    let (turn, out) = (memory.upload("turn", &[0; 4]), memory.alloc(20));
    run(&m, &mut memory, [5, 1, 1], [1; 3], 0, &[Param::Ptr(turn), Param::Ptr(out)]).unwrap();
    assert_eq!(words32(&memory, out, 5), [4, 3, 2, 1, 0]);
}

#[test]
fn blocks_that_wait_without_end_are_reported() {
    let m = module(&TURNSTILE.replace("STEP", "2"));
    let mut memory = Memory::new();
    let (turn, out) = (memory.upload("turn", &[0; 4]), memory.alloc(20));
    assert_eq!(
        run(&m, &mut memory, [5, 1, 1], [1; 3], 0, &[Param::Ptr(turn), Param::Ptr(out)]),
        Err(ErrorCode::Deadlock)
    );
}

#[test]
fn variables_of_the_module_keep_their_values() {
    let m = module(
        ".global .align 4 .u32 count = 10;
        .visible .entry k(.param .u64 out) { .reg .b64 %rd; .reg .b32 %r<2>; ld.param.u64 %rd, [out];
        atom.global.add.u32 %r0, [count], 1; st.global.u32 [%rd], %r0; ret; }",
    );
    let mut memory = Memory::new();
    let out = memory.alloc(4);
    for want in [10, 11, 12] {
        run(&m, &mut memory, [1; 3], [1; 3], 0, &[Param::Ptr(out)]).unwrap();
        assert_eq!(words32(&memory, out, 1), [want]);
    }
}
