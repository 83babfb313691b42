//! Passes by name.

use super::read;
use titan_core::driver::passes::{Options, PASSES, PassError, Passed, run};
use titan_core::ir::Elem;
use titan_core::lane::MmaAtom;
use titan_core::layout::atoms::Atom;
use titan_core::pipeline::fence;
use titan_core::target::{CopyEngine, Target};
use titan_core::text::{parse, print};
use titan_core::verify::verify;

const STORED: &str = "kernel @k() {
    %smem = ttg.region {offset = 0, bytes = 256}
    ttg.region.write %smem
    ttg.nv.wgmma.mma_async %smem
    %g = ttg.nv.wgmma.commit_group : vtok<wgmma, 0>
    ttg.nv.wgmma.wait_group {n = 0}
    return
}
";

/// A machine with copies by threads.
fn options() -> Options {
    let halves = MmaAtom { m: 16, n: 8, k: 16, a: Elem::F16, b: Elem::F16, acc: Elem::F32 };
    let (atoms, copies) = (vec![Atom::in_quads(halves, 16, 8)], vec![CopyEngine::by_lanes()]);
    let target = Target { atoms, copies, ..Target::plain("some", 32) };
    Options { fence: fence::Options::default(), target }
}

fn passed(text: &str, passes: &[&str]) -> Result<Passed, PassError> {
    run(read(text), passes, &options())
}

#[test]
fn names_are_looked_up_before_anything_is_run() {
    let error = passed(STORED, &["fence", "fences"]).expect_err("there is no such pass");
    assert_eq!(
        error.to_string(),
        "there is no pass `fences`: there are `canonical`, `fence`, `fence-tilelang`, `rings`",
    );
    assert!(PASSES.is_sorted_by_key(|p| p.name));
    assert!(PASSES.iter().all(|p| !p.about.is_empty()));
}

#[test]
fn fences_are_placed_and_told() {
    for pass in ["fence", "fence-tilelang"] {
        let done = passed(STORED, &[pass, "canonical"]).expect("it applies");
        assert_eq!(
            done.notes,
            [format!("{pass}: fence inserted before `ttg.nv.wgmma.mma_async`: scope cta, space shared")]
        );
        assert!(verify(done.kernel).is_ok());
    }
}

#[test]
fn nothing_is_done_by_no_pass() {
    let done = passed(STORED, &[]).expect("nothing");
    assert_eq!((done.kernel, done.notes), (read(STORED), vec![]));
}

const LOOP: &str =
    "kernel @gemm(%a: in tensor<f16>[M, K], %b: in tensor<f16>[K, N], %c: mut tensor<f32>[M, N]) grid(M / 64, N / 64) {
    %m = program_id<0> : i32
    %n = program_id<1> : i32
    %zero = const 0 : i32
    %one = const 1 : i32
    %pad = const 0.0 : f16
    %fz = const 0.0 : f32
    %steps = dim<1> %a : i32
    %start = splat %fz : tile<64x64xf32>
    %sum = for %k = %zero to %steps step %one pipelined carry(%acc = %start) {
        %ta = load_tile %a[%m, %k] or %pad : tile<64x32xf16>
        %tb = load_tile %b[%k, %n] or %pad : tile<32x64xf16>
        %next = mma %ta, %tb, %acc : tile<64x64xf32>
        continue %next
    }
    store_tile %c[%m, %n], %sum
    return
}
";

#[test]
fn loops_become_rings_and_stay_right() {
    let done = passed(LOOP, &["rings"]).expect("it applies");
    assert_eq!(done.notes, ["rings: pipelined: `ta`, `tb` in 4 slots, copied 3 iterations ahead"]);
    let text = print(&done.kernel);
    assert!(text.contains("ttg.stage.async_produce"), "{text}");
    assert_eq!(parse(&text).expect("it reads back"), [done.kernel.canonical()]);
    let error = run(done.kernel, &["rings"], &options()).expect_err("there is no such loop any more");
    assert!(error.to_string().starts_with("`rings` does not apply: "), "{error}");
}
