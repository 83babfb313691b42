//! A product with a ring, against plain loops.

use crate::args::fill;
use std::time::Instant;
use titan_core::ir::Elem;
use titan_core::num::{f16_from_f64, f16_to_f64};
use titan_core::verify::{WellFormed, verify};
use titan_sim::engine::Completion;
use titan_sim::sim::{Arg, Options, run};

/// `C = A · Bᵀ` in tiles of 128 × 64, by a producer and a consumer.
pub(crate) fn kernel(proxy: &str, keep: u8) -> WellFormed {
    let text = format!(
        r#"kernel @gemm_ws(%a: in tensor<f16>[M, K], %b: in tensor<f16>[N, K], %c: mut tensor<f16>[M, N])
 grid(cdiv(M, 128), cdiv(N, 64)) pipe(4, "ring", tile<128x64xf16>, tile<64x64xf16>) role(producer, 1) role(consumer, 4) {{
    %m = program_id<0>
    %n = program_id<1>
    %k = dim<1> %a
    %c63 = const 63 : i32
    %c64 = const 64 : i32
    %up = add %k, %c63
    %steps = div %up, %c64
    %zero = const 0 : i32
    %one = const 1 : i32
    %pad = const 0.0 : f16
    ttg.roles producer {{
        for %t = %zero to %steps step %one {{
            %slot = ttg.stage.acquire<0>
            %sa = ttg.source_tile %a[%m, %t] or %pad : source<128x64xf16>
            %sb = ttg.source_tile %b[%n, %t] or %pad : source<64x64xf16>
            ttg.stage.async_produce %slot, %sa, %sb {{bytes = 24576, proxy = {proxy}}}
            continue
        }}
        ttg.pipeline.finalize
        yield
    }} consumer {{
        %f0 = const 0.0 : f32
        %z = splat %f0 : tile<128x64xf32>
        %acc0 = ttg.acc.start<{keep}> %z
        %done = for %t2 = %zero to %steps step %one carry(%acc = %acc0) {{
            %r = ttg.stage.ready<0>
            %s = ttg.stage.wait_ready %r
            %p = ttg.stage.read_perm %s
            %va = ttg.stage.view<0> %p : smem<128x64xf16>
            %vb = ttg.stage.view<1> %p : smem<64x64xf16>
            %vbt = permute<1, 0> %vb
            %acc2 = ttg.acc.mma %acc, %p, %va, %vbt
            continue %acc2
        }}
        %sum = ttg.acc.finish %done
        %out = cast %sum : tile<128x64xf16>
        store_tile %c[%m, %n], %out
        ttg.pipeline.finalize
        yield
    }}
    return
}}
"#
    );
    verify(titan_core::text::parse_one(&text).unwrap()).unwrap().into()
}

fn arguments(m: usize, n: usize, k: usize) -> Vec<Arg> {
    let dense =
        |rows: usize, cols: usize| Arg::dense(Elem::F16, &[rows as i64, cols as i64], fill(Elem::F16, rows * cols));
    vec![dense(m, k), dense(n, k), Arg::dense(Elem::F16, &[m as i64, n as i64], vec![0; 2 * m * n])]
}

fn value(arg: &Arg, i: usize) -> f64 {
    let Arg::Tensor { bytes, .. } = arg else { panic!("a tensor") };
    f16_to_f64(u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]))
}

fn check(args: &[Arg], (m, n, k): (usize, usize, usize)) {
    for i in (0..m).step_by(7) {
        for j in (0..n).step_by(5) {
            let sum: f64 = (0..k).map(|x| value(&args[0], i * k + x) * value(&args[1], j * k + x)).sum();
            assert_eq!(value(&args[2], i * n + j), f16_to_f64(f16_from_f64(sum)), "{i}, {j}");
        }
    }
}

#[test]
fn products_are_right_however_their_copies_complete() {
    let orders = [(None, Completion::Late), (Some(3), Completion::Early), (Some(7), Completion::Seeded(7))];
    for (number, (proxy, keep)) in [("async", 1), ("generic", 1), ("async", 0), ("async", 3)].into_iter().enumerate() {
        let kernel = kernel(proxy, keep);
        // In the quick depth, each order for some of the kernels.
        let is_meant = |order: usize| test_depth::is_full() || order == number % orders.len();
        for (_, (seed, completion)) in orders.into_iter().enumerate().filter(|(order, _)| is_meant(*order)) {
            let size = (130, 70, 200);
            let mut args = arguments(size.0, size.1, size.2);
            let report = run(&kernel, &mut args, None, &Options { completion, seed, ..Options::default() }).unwrap();
            assert!(report.findings.is_empty(), "{proxy} {keep} {completion:?}: {}", report.findings[0]);
            assert_eq!(report.statistics.programs, 4);
            check(&args, size);
        }
    }
}

#[test]
fn a_product_of_512_takes_seconds_with_all_checks() {
    let mut args = arguments(512, 512, 512);
    let begin = Instant::now();
    let report = run(&kernel("async", 1), &mut args, None, &Options::default()).unwrap();
    let took = begin.elapsed();
    assert!(report.findings.is_empty(), "{}", report.findings[0]);
    check(&args, (512, 512, 512));
    println!("512³ sanitized: {:.2} s, {:?}", took.as_secs_f64(), report.statistics);
    assert!(took.as_secs() < 10, "{took:?}");
}
