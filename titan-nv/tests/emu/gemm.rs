//! A product of matrices as a compiler for sm_80 writes it, by the text of a small generator: copies in three stages,
//! swizzled shared memory, `ldmatrix`, `mma.sync`. For its result, and for the emulator's speed.

use crate::harness::{assemble, header};
use std::fmt::Write as _;
use std::time::Instant;
use titan_core::num;
use titan_nv::emu::{Completion, ErrorCode, Launch, Memory, Module, Options, Param, Schedule, Stats};
use titan_sim::engine::Rng;

const STAGES: u32 = 3;
/// Bytes of a stage: 64 × 32 halves of A, and of B.
const STAGE: u32 = 2 * 64 * 64;

/// C[m, n] = Σ A[m, k] · B[n, k], f16 with f32 sums, tiles of 64 × 64 × 32, four warps of 32 × 32. `wait` is the number
/// of groups that may be outstanding when a stage is read: `STAGES - 2` is right.
fn text(wait: u32, barrier: bool) -> String {
    let mut t = header("sm_80");
    t += ".extern .shared .align 128 .b8 pool[];\n.visible .entry gemm(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn, .param .u32 pk)\n.maxntid 128, 1, 1\n{\n";
    t += "  .reg .b64 %a, %b, %c, %ga<2>, %gb<2>, %t<2>;\n  .reg .b32 %ti, %lane, %warp, %n, %k, %m0, %n0, %wm, %wn, %pool, %kt, %steps, %st, %rd, %wr, %x<16>, %dst<2>;\n";
    t += "  .reg .b32 %fa<8>, %fb<8>, %sa, %sb;\n  .reg .f32 %acc<32>;\n  .reg .b16 %h<2>;\n  .reg .pred %p<4>;\n";
    t += "  mov.u32 %ti, %tid.x; mov.u32 %lane, %laneid; shr.u32 %warp, %ti, 5;\n  ld.param.u64 %a, [pa]; ld.param.u64 %b, [pb]; ld.param.u64 %c, [pc]; ld.param.u32 %n, [pn]; ld.param.u32 %k, [pk];\n";
    t += "  mov.u32 %m0, %ctaid.x; shl.b32 %m0, %m0, 6; mov.u32 %n0, %ctaid.y; shl.b32 %n0, %n0, 6;\n  and.b32 %wm, %warp, 1; shl.b32 %wm, %wm, 5; shr.u32 %wn, %warp, 1; shl.b32 %wn, %wn, 5;\n  mov.u32 %pool, pool; shr.u32 %steps, %k, 5;\n";
    // A thread copies two rows' worth of 16 bytes of A and of B: row tid/4 (+32), chunk tid%4; chunks are swizzled by the row.
    t += "  shr.u32 %x0, %ti, 2; and.b32 %x1, %ti, 3;\n";
    for i in 0..2 {
        writeln!(t, "  add.u32 %x2, %x0, {}; shr.u32 %x3, %x2, 1; and.b32 %x3, %x3, 3; xor.b32 %x3, %x3, %x1; shl.b32 %x3, %x3, 4; mad.lo.u32 %dst{i}, %x2, 64, %x3; add.u32 %dst{i}, %dst{i}, %pool;", 32 * i).unwrap();
        for (g, base, origin) in [("ga", "a", "m0"), ("gb", "b", "n0")] {
            writeln!(t, "  add.u32 %x4, %{origin}, %x2; mul.lo.u32 %x4, %x4, %k; shl.b32 %x5, %x1, 3; add.u32 %x4, %x4, %x5; mad.wide.u32 %{g}{i}, %x4, 2, %{base};").unwrap();
        }
    }
    let copy = |t: &mut String| {
        for i in 0..2 {
            writeln!(t, "  add.u32 %x6, %dst{i}, %wr; @%p0 cp.async.cg.shared.global [%x6], [%ga{i}], 16; @%p0 cp.async.cg.shared.global [%x6+4096], [%gb{i}], 16; add.u64 %ga{i}, %ga{i}, 64; add.u64 %gb{i}, %gb{i}, 64;").unwrap();
        }
        *t += "  cp.async.commit_group; add.u32 %wr, %wr, 8192; setp.eq.u32 %p1, %wr, 24576; selp.u32 %wr, 0, %wr, %p1;\n";
    };
    t += "  mov.u32 %wr, 0; mov.u32 %rd, 0; mov.u32 %kt, 0;\n";
    for s in 0..STAGES - 1 {
        writeln!(t, "  setp.gt.u32 %p0, %steps, {s};").unwrap();
        copy(&mut t);
    }
    for i in 0..32 {
        writeln!(t, "  mov.f32 %acc{i}, 0f00000000;").unwrap();
    }
    t += "LOOP:\n";
    writeln!(t, "  cp.async.wait_group {wait};").unwrap();
    if barrier {
        t += "  bar.sync 0;\n";
    }
    writeln!(t, "  add.u32 %x7, %kt, {}; setp.lt.u32 %p0, %x7, %steps;", STAGES - 1).unwrap();
    copy(&mut t);
    for half in 0..2 {
        // Lane l gives row l%16 and chunk l/16 of a 16 × 16 part.
        writeln!(t, "  and.b32 %x8, %lane, 15; shr.u32 %x9, %lane, 4; add.u32 %x9, %x9, {};", 2 * half).unwrap();
        for (frag, warp, base) in [("fa", "wm", 0), ("fb", "wn", 4096)] {
            for i in 0..2 {
                writeln!(t, "  add.u32 %x10, %x8, %{warp}; add.u32 %x10, %x10, {}; shr.u32 %x11, %x10, 1; and.b32 %x11, %x11, 3; xor.b32 %x11, %x11, %x9; shl.b32 %x11, %x11, 4; mad.lo.u32 %x12, %x10, 64, %x11; add.u32 %x12, %x12, %pool; add.u32 %x12, %x12, %rd;", 16 * i).unwrap();
                let f = 4 * i;
                // Matrices of B: rows 0-7 and 8-15 of n are two products, each with both halves of k.
                let order = if frag == "fa" { [f, f + 1, f + 2, f + 3] } else { [f, f + 2, f + 1, f + 3] };
                writeln!(
                    t,
                    "  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{{}}}, [%x12+{base}];",
                    order.map(|r| format!("%{frag}{r}")).join(", ")
                )
                .unwrap();
            }
        }
        for (m, n) in (0..2).flat_map(|m| (0..4).map(move |n| (m, n))) {
            let acc = (0..4).map(|i| format!("%acc{}", (m * 4 + n) * 4 + i)).collect::<Vec<_>>().join(", ");
            let a = (0..4).map(|i| format!("%fa{}", m * 4 + i)).collect::<Vec<_>>().join(", ");
            writeln!(
                t,
                "  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{acc}}}, {{{a}}}, {{%fb{}, %fb{}}}, {{{acc}}};",
                2 * n,
                2 * n + 1
            )
            .unwrap();
        }
    }
    t += "  add.u32 %rd, %rd, 8192; setp.eq.u32 %p1, %rd, 24576; selp.u32 %rd, 0, %rd, %p1;\n  add.u32 %kt, %kt, 1; setp.lt.u32 %p2, %kt, %steps; @%p2 bra LOOP;\n";
    t += "  shr.u32 %x0, %lane, 2; and.b32 %x1, %lane, 3; shl.b32 %x1, %x1, 1; add.u32 %x0, %x0, %m0; add.u32 %x0, %x0, %wm; add.u32 %x1, %x1, %n0; add.u32 %x1, %x1, %wn;\n";
    for (m, n, i) in (0..2).flat_map(|m| (0..4).flat_map(move |n| (0..2).map(move |i| (m, n, i)))) {
        let acc = (m * 4 + n) * 4 + 2 * i;
        writeln!(t, "  add.u32 %x2, %x0, {}; mad.lo.u32 %x2, %x2, %n, %x1; add.u32 %x2, %x2, {}; mad.wide.u32 %t0, %x2, 2, %c; cvt.rn.f16x2.f32 %x3, %acc{}, %acc{acc}; st.global.b32 [%t0], %x3;", 16 * m + 8 * i, 8 * n, acc + 1).unwrap();
    }
    t + "  ret;\n}\n"
}

struct Run {
    stats: Stats,
    seconds: f64,
}

fn run(text: &str, n: usize, options: &Options) -> Result<Run, titan_nv::emu::EmuError> {
    let module = Module::parse(text).unwrap_or_else(|e| panic!("{e}"));
    let mut rng = Rng::new(n as u64);
    let mut random = |_| num::f16_from_f32(rng.next_u64() as i32 as f32 / (1_u32 << 31) as f32);
    let (a, b): (Vec<u16>, Vec<u16>) = ((0..n * n).map(&mut random).collect(), (0..n * n).map(&mut random).collect());
    let mut memory = Memory::new();
    let bytes = |v: &[u16]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    let (pa, pb, pc) =
        (memory.upload("A", &bytes(&a)), memory.upload("B", &bytes(&b)), memory.alloc_named("C", n * n * 2));
    let params = [Param::Ptr(pa), Param::Ptr(pb), Param::Ptr(pc), Param::U32(n as u32), Param::U32(n as u32)];
    let tiles = (n / 64) as u32;
    let launch = Launch {
        grid: [tiles, tiles, 1],
        block: [128, 1, 1],
        dynamic_shared: STAGES * STAGE,
        cluster: None,
        params: &params,
    };
    let start = Instant::now();
    let stats = module.entry("gemm")?.run(&launch, &mut memory, options)?;
    let seconds = start.elapsed().as_secs_f64();
    let c = memory.read(pc, n * n * 2)?;
    let value = |v: &[u16]| v.iter().map(|x| num::f16_to_f64(*x)).collect::<Vec<_>>();
    let (a, b) = (value(&a), value(&b));
    for (i, got) in c.chunks(2).enumerate().step_by(37) {
        let (row, col) = (i / n, i % n);
        let want: f64 = (0..n).map(|k| a[row * n + k] * b[col * n + k]).sum();
        let got = num::f16_to_f64(u16::from_le_bytes([got[0], got[1]]));
        assert!((got - want).abs() <= want.abs() / 1024.0 + 1e-3, "C[{row}, {col}] is {got} instead of {want}");
    }
    Ok(Run { stats, seconds })
}

#[test]
fn a_pipelined_product_is_right_on_every_schedule() {
    let text = text(STAGES - 2, true);
    assemble(&text, "sm_80");
    for completion in [Completion::Late, Completion::Early, Completion::Seeded(1)] {
        for schedule in [Schedule::InTurn, Schedule::Seeded(2)] {
            run(&text, 128, &Options { completion, schedule, sanitize: true, ..Options::default() })
                .unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn a_pipeline_that_waits_too_little_is_a_race() {
    for (wait, barrier) in [(STAGES - 1, true), (STAGES - 2, false)] {
        let error = run(&text(wait, barrier), 128, &Options::default()).err().expect("a race");
        assert_eq!(error.code(), ErrorCode::Race, "{error}");
        let message = error.to_string();
        assert!(message.contains("`pool`") && message.contains("cp.async"), "{message}");
    }
}

/// Five seconds for 256³ and thirty for 512³ on one core are the emulator's budget; both are met many times over.
#[test]
fn products_stay_within_their_budget() {
    let text = text(STAGES - 2, true);
    for (n, budget) in [(256, 5.0), (512, 30.0)] {
        let Run { stats, seconds } = run(&text, n, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        assert!(seconds < budget, "{n}³ took {seconds:.1} s for {} instructions of warps", stats.instructions);
    }
}
