//! Kernels that another compiler made, run by the emulator and compared with references in f64.
//!
//! Triton compiles without a GPU: `cargo xtask test` installs it under `target/tools`, or `pip install triton==3.9.0` into the
//! Python that `TITAN_PYTHON` names, or `python3`. Where it cannot be had, the tests say that they are skipped. Nothing that it makes is kept.

#[path = "triton/bench.rs"]
mod bench;
#[path = "triton/device.rs"]
mod device;
#[path = "triton/make.rs"]
mod make;

use bench::{Bench, El, folder};
use titan_nv::emu::{Completion, DevicePtr, EmuError, Options, Param, Schedule, Stats};
use titan_nv::tma::{Element, Swizzle, TensorMap};

/// Numbers in -1..1 that look random.
fn noise(n: usize, seed: u64) -> Vec<f32> {
    let mut rng = titan_sim::engine::Rng::new(seed);
    (0..n).map(|_| (rng.next_u64() >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// A text with the fences that Triton 3.9 leaves out where no other fence comes by chance: before bulk copies arrive at barriers, their
/// initialisation must be fenced (PTX ISA, "membar/fence", `fence.mbarrier_init`).
fn fenced(text: &str) -> String {
    let fence =
        |line: &str| if line.contains("mbarrier.init.") { "fence.mbarrier_init.release.cluster;\n" } else { "" };
    text.lines().map(|line| format!("{line}\n{}", fence(line))).collect()
}

/// The schedules and completions under which everything must come out the same.
fn all_options() -> Vec<Options> {
    let base = Options::default();
    vec![
        base.clone(),
        Options { completion: Completion::Early, ..base.clone() },
        Options { completion: Completion::Seeded(1), schedule: Schedule::Seeded(2), sanitize: true, ..base },
    ]
}

fn close(name: &str, got: &[f64], want: &[f64], relative: f64, absolute: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let tolerance = absolute + relative * w.abs();
        assert!((g - w).abs() <= tolerance || g == w, "{name}[{i}]: {g} instead of {w}");
    }
}

#[test]
fn vector_add_with_a_ragged_end() {
    for options in all_options() {
        let Some(mut b) = Bench::new("vector_add") else { return };
        let n = 5000;
        let (x, xs) = b.input("x", El::F32, &noise(n, 1));
        let (y, ys) = b.input("y", El::F32, &noise(n, 2));
        let out = b.output(El::F32, n);
        b.run([5, 1, 1], &[Param::Ptr(x), Param::Ptr(y), Param::Ptr(out), Param::I32(n as i32)], &options);
        let want: Vec<f64> = xs.iter().zip(&ys).map(|(a, b)| f64::from(*a as f32 + *b as f32)).collect();
        assert_eq!(b.values(out, El::F32, n), want);
    }
}

#[test]
fn softmax_of_rows() {
    for options in all_options() {
        let Some(mut b) = Bench::new("softmax") else { return };
        let (rows, n) = (6, 777);
        let (x, xs) = b.input("x", El::F32, &noise(rows * n, 3));
        let out = b.output(El::F32, rows * n);
        let n_param = Param::I32(n as i32);
        b.run([rows as u32, 1, 1], &[Param::Ptr(x), Param::Ptr(out), n_param.clone(), n_param], &options);
        for (got, row) in b.values(out, El::F32, rows * n).chunks(n).zip(xs.chunks(n)) {
            let total: f64 = row.iter().map(|v| v.exp()).sum();
            let want: Vec<f64> = row.iter().map(|v| v.exp() / total).collect();
            close("softmax", got, &want, 1e-5, 1e-9);
        }
    }
}

#[test]
fn layer_norm_of_halves() {
    let Some(mut b) = Bench::new("layer_norm") else { return };
    let (rows, n) = (4, 1000);
    let (x, xs) = b.input("x", El::F16, &noise(rows * n, 4));
    let (w, ws) = b.input("w", El::F16, &noise(n, 5));
    let (bias, bs) = b.input("b", El::F16, &noise(n, 6));
    let out = b.output(El::F16, rows * n);
    let n_param = Param::I32(n as i32);
    let params =
        [Param::Ptr(x), Param::Ptr(w), Param::Ptr(bias), Param::Ptr(out), n_param.clone(), n_param, Param::F32(1e-5)];
    b.run([rows as u32, 1, 1], &params, &Options::default());
    for (got, row) in b.values(out, El::F16, rows * n).chunks(n).zip(xs.chunks(n)) {
        let mean = row.iter().sum::<f64>() / n as f64;
        let var = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        let want: Vec<f64> = (0..n).map(|i| (row[i] - mean) / (var + 1e-5).sqrt() * ws[i] + bs[i]).collect();
        close("layer_norm", got, &want, 1e-3, 1e-3);
    }
}

/// A product of any types and sizes against one in f64.
#[expect(clippy::too_many_arguments, reason = "what a product is")]
fn product(file: &str, [m, n, k]: [usize; 3], ab: El, c: El, transposed: bool, options: &Options, rel: f64, abs: f64) {
    let Some(mut b) = Bench::new(file) else { return };
    let (pa, av) = b.input("a", ab, &noise(m * k, 7));
    let (pb, bv) = b.input("b", ab, &noise(n * k, 8));
    let out = b.output(c, m * n);
    let size = |x: usize| Param::I32(x as i32);
    let params = [Param::Ptr(pa), Param::Ptr(pb), Param::Ptr(out), size(m), size(n), size(k)];
    // The kernel reads whole tiles of rows: A and B have as many as the tiles.
    b.run([m.div_ceil(64) as u32, n.div_ceil(64) as u32, 1], &params, options);
    let at_b = |p: usize, j: usize| if transposed { bv[j * k + p] } else { bv[p * n + j] };
    let want: Vec<f64> = (0..m * n).map(|i| (0..k).map(|p| av[i / n * k + p] * at_b(p, i % n)).sum()).collect();
    close(file, &b.values(out, c, m * n), &want, rel, abs);
}

#[test]
fn products_of_halves() {
    for options in all_options() {
        product("matmul_f16", [128, 64, 160], El::F16, El::F16, false, &options, 1e-3, 1e-3);
    }
    let options = Options::default();
    product("matmul_f16_8warps", [64, 128, 96], El::F16, El::F16, false, &options, 1e-3, 1e-3);
    product("matmul_f16_f16", [64, 64, 64], El::F16, El::F16, true, &options, 1e-2, 3e-2);
    product("matmul_bf16", [64, 128, 64], El::Bf16, El::Bf16, false, &options, 1e-2, 1e-3);
}

#[test]
fn products_of_warpgroups() {
    for options in all_options() {
        product("wgmma_f16", [128, 64, 160], El::F16, El::F16, false, &options, 1e-3, 1e-3);
        product("wgmma_f16_t", [64, 128, 200], El::F16, El::F16, true, &options, 1e-3, 1e-3);
    }
    let options = Options::default();
    product("wgmma_bf16_8warps", [64, 128, 192], El::Bf16, El::Bf16, false, &options, 1e-2, 1e-3);
    product("wgmma_tf32", [64, 64, 96], El::F32, El::F32, true, &options, 1e-2, 2e-2);
    product("wgmma_i8", [64, 64, 192], El::I8, El::I32, true, &options, 0.0, 0.0);
    product("wgmma_e4m3", [64, 64, 128], El::E4m3, El::F16, true, &options, 1e-3, 1e-3);
}

/// Operand B in core matrices: its rows are along N, and no swizzle has them. Triton makes the descriptor of the layout that the kernel names.
#[test]
fn products_of_warpgroups_without_a_swizzle() {
    for (options, n) in all_options().into_iter().flat_map(|options| [8, 16, 32].map(|n| (options.clone(), n))) {
        let name = format!("wgmma_panels_{n}");
        let Some(mut b) = Bench::new(&name) else { return };
        let (pa, av) = b.input("a", El::F16, &noise(64 * 16, 31));
        let (pb, bv) = b.input("b", El::F16, &noise(16 * n, 32));
        let out = b.output(El::F32, 64 * n);
        b.run([1, 1, 1], &[pa, pb, out].map(Param::Ptr), &options);
        let want: Vec<f64> =
            (0..64 * n).map(|i| (0..16).map(|k| av[i / n * 16 + k] * bv[k * n + i % n]).sum()).collect();
        close(&name, &b.values(out, El::F32, 64 * n), &want, 1e-6, 1e-6);
    }
}

/// The tensor map of a matrix of halves by rows, and what Triton passes beside it: extents and strides.
fn tensor(ptr: DevicePtr, [rows, cols]: [usize; 2], [box_rows, box_cols]: [u32; 2]) -> Vec<Param> {
    let (rows_64, cols_64) = (rows as u64, cols as u64);
    let map = TensorMap::tiled(Element::F16, ptr.address(), &[cols_64, rows_64], &[cols_64 * 2], &[box_cols, box_rows]);
    let map = TensorMap { swizzle: Swizzle::B128, ..map };
    let (rows, cols) = (Param::I32(rows as i32), Param::I32(cols as i32));
    vec![Param::Bytes(map.to_bytes().to_vec()), rows, cols, Param::U64(cols_64), Param::U64(1)]
}

#[test]
fn products_of_boxes() {
    for options in all_options() {
        let Some(folder) = folder() else { return };
        let text = std::fs::read_to_string(folder.join("boxes_f16.ptx")).unwrap();
        let Some(mut b) = Bench::of("boxes_f16", &fenced(&text)) else { return };
        // Neither the sizes nor the number of steps fit the tiles; rows have multiples of 16 bytes.
        let [m, n, k] = [200, 136, 232];
        let (pa, av) = b.input("a", El::F16, &noise(m * k, 7));
        let (pb, bv) = b.input("b", El::F16, &noise(n * k, 8));
        let out = b.output(El::F16, m * n);
        // A box of 128 columns is stored as two of 64, as wide as the swizzle.
        let mut params =
            [tensor(pa, [m, k], [128, 64]), tensor(pb, [n, k], [128, 64]), tensor(out, [m, n], [128, 64])].concat();
        params.push(Param::I32(k as i32));
        b.run([2, 2, 1], &params, &options);
        let want: Vec<f64> = (0..m * n).map(|i| (0..k).map(|p| av[i / n * k + p] * bv[i % n * k + p]).sum()).collect();
        close("boxes_f16", &b.values(out, El::F16, m * n), &want, 1e-3, 1e-3);
    }
}

#[test]
fn products_of_other_types() {
    let options = Options::default();
    product("matmul_tf32", [64, 64, 96], El::F32, El::F32, false, &options, 1e-2, 2e-2);
    product("matmul_i8", [64, 64, 192], El::I8, El::I32, true, &options, 0.0, 0.0);
    product("matmul_e4m3", [64, 64, 128], El::E4m3, El::F16, true, &options, 1e-3, 1e-3);
    product("matmul_e5m2", [64, 64, 128], El::E5m2, El::F16, true, &options, 1e-3, 1e-3);
    product("matmul_e5m2_on_80", [64, 64, 128], El::E5m2, El::F16, true, &options, 1e-3, 1e-3);
    product("matmul_f64", [64, 64, 32], El::F64, El::F64, false, &options, 1e-14, 1e-14);
}

fn attention(file: &str, el: El, d: usize, n: usize, tolerance: f64, options: &Options) {
    let Some(mut b) = Bench::new(file) else { return };
    let heads = 2;
    let size = heads * n * d;
    let (q, qs) = b.input("q", el, &noise(size, 9));
    let (k, ks) = b.input("k", el, &noise(size, 10));
    let (v, vs) = b.input("v", el, &noise(size, 11));
    let out = b.output(el, size);
    let scale = 1.0 / (d as f32).sqrt() * std::f32::consts::LOG2_E;
    let params =
        [Param::Ptr(q), Param::Ptr(k), Param::Ptr(v), Param::Ptr(out), Param::I32(n as i32), Param::F32(scale)];
    b.run([(n / 64) as u32, heads as u32, 1], &params, options);
    let got = b.values(out, el, size);
    for (h, i) in (0..heads).flat_map(|h| (0..n).map(move |i| (h, i))) {
        let row = |m: &[f64], i: usize| m[(h * n + i) * d..][..d].to_vec();
        let qi = row(&qs, i);
        let dot = |j: usize| qi.iter().zip(row(&ks, j)).map(|(a, b)| a * b).sum::<f64>();
        let p: Vec<f64> = (0..=i).map(|j| (dot(j) * f64::from(scale)).exp2()).collect();
        let total: f64 = p.iter().sum();
        let want: Vec<f64> = (0..d)
            .map(|x| p.iter().enumerate().map(|(j, p)| p * vs[(h * n + j) * d + x]).sum::<f64>() / total)
            .collect();
        close(file, &got[(h * n + i) * d..][..d], &want, tolerance, tolerance);
    }
}

#[test]
fn causal_attention() {
    attention("attention", El::F16, 64, 192, 2e-3, &Options::default());
    attention("wgmma_attention", El::F16, 64, 192, 2e-3, &Options::default());
    attention("attention_bf16", El::Bf16, 128, 128, 1.5e-2, &Options::default());
    if let Some(options) = all_options().pop() {
        attention("attention", El::F16, 64, 128, 2e-3, &options);
    }
}

#[test]
fn atomics_sorting_scanning() {
    for options in all_options() {
        let Some(mut b) = Bench::new("histogram") else { return };
        let n = 3000;
        let xs: Vec<f32> = noise(n, 12).iter().map(|x| ((x + 1.0) * 5.0).floor()).collect();
        let (x, seen) = b.input("x", El::I32, &xs);
        let (out, _) = b.input("out", El::I32, &[0.0; 16]);
        b.run([3, 1, 1], &[Param::Ptr(x), Param::Ptr(out), Param::I32(n as i32)], &options);
        let want: Vec<f64> = (0..16).map(|v| seen.iter().filter(|x| **x == f64::from(v)).count() as f64).collect();
        assert_eq!(b.values(out, El::I32, 16), want);

        let Some(mut b) = Bench::new("sort") else { return };
        let xs: Vec<f32> = noise(256, 13).iter().map(|x| (x * 1e6).floor()).collect();
        let (x, mut seen) = b.input("x", El::I32, &xs);
        let out = b.output(El::I32, 256);
        b.run([1, 1, 1], &[Param::Ptr(x), Param::Ptr(out)], &options);
        seen.sort_by(f64::total_cmp);
        assert_eq!(b.values(out, El::I32, 256), seen);

        let Some(mut b) = Bench::new("scan") else { return };
        let (x, seen) = b.input("x", El::F32, &noise(512, 14));
        let out = b.output(El::F32, 512);
        b.run([1, 1, 1], &[Param::Ptr(x), Param::Ptr(out)], &options);
        let want: Vec<f64> = seen
            .iter()
            .scan(0.0, |s, x| {
                *s += x;
                Some(*s)
            })
            .collect();
        close("scan", &b.values(out, El::F32, 512), &want, 1e-5, 1e-4);
    }
}

#[test]
fn functions_of_numbers() {
    let Some(mut b) = Bench::new("functions") else { return };
    let n = 600;
    let xs: Vec<f32> = noise(n, 15).iter().map(|x| x * 6.0).collect();
    let (x, seen) = b.input("x", El::F32, &xs);
    let out = b.output(El::F32, n);
    b.run([3, 1, 1], &[Param::Ptr(x), Param::Ptr(out), Param::I32(n as i32)], &Options::default());
    let erf = |x: f64| {
        // The series of erf, enough terms for |x| < 7 in f64: by integration of exp(-t^2) instead, Simpson's rule.
        let (steps, h) = (4000, x / 4000.0);
        let f = |i: i32| (-(f64::from(i) * h).powi(2)).exp();
        let inner: f64 = (1..steps).map(|i| f(i) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
        (f(0) + inner + f(steps)) * h / 3.0 * 2.0 / std::f64::consts::PI.sqrt()
    };
    let want: Vec<f64> = seen
        .iter()
        .map(|v| {
            let a = v.abs();
            v.sin() + v.cos() + (a + 1.0).ln() + v.exp() + a.sqrt() + 1.0 / (a + 1.0).sqrt() + erf(*v) + v.floor()
        })
        .collect();
    close("functions", &b.values(out, El::F32, n), &want, 2e-6, 4e-6);
}

#[test]
fn transposed_tiles() {
    for options in all_options() {
        let Some(mut b) = Bench::new("transpose") else { return };
        let (m, n) = (128, 64);
        let (x, seen) = b.input("x", El::F16, &noise(m * n, 16));
        let out = b.output(El::F16, m * n);
        b.run([2, 1, 1], &[Param::Ptr(x), Param::Ptr(out), Param::I32(m as i32), Param::I32(n as i32)], &options);
        let want: Vec<f64> = (0..m * n).map(|i| seen[i % m * n + i / m]).collect();
        assert_eq!(b.values(out, El::F16, m * n), want);
    }
}

/// Runs a text on inputs that fit its kernel.
fn probe(file: &str, text: &str, options: &Options) -> Option<Result<Stats, EmuError>> {
    let mut b = Bench::of(file, text)?;
    let n = |x: i32| Param::I32(x);
    let params = match file {
        "matmul_f16" | "matmul_tf32" | "matmul_i8" => {
            let el = match file {
                "matmul_tf32" => El::F32,
                "matmul_i8" => El::I8,
                _ => El::F16,
            };
            let (a, _) = b.input("a", el, &noise(64 * 256, 1));
            let (bt, _) = b.input("b", el, &noise(64 * 256, 2));
            vec![Param::Ptr(a), Param::Ptr(bt), Param::Ptr(b.output(El::F32, 64 * 64)), n(64), n(64), n(256)]
        }
        "attention" => {
            let qkv = [1, 2, 3].map(|i| Param::Ptr(b.input("x", El::F16, &noise(128 * 64, i)).0));
            qkv.into_iter().chain([Param::Ptr(b.output(El::F16, 128 * 64)), n(128), Param::F32(0.1)]).collect()
        }
        "sort" => vec![Param::Ptr(b.input("x", El::I32, &noise(256, 1)).0), Param::Ptr(b.output(El::I32, 256))],
        "scan" => vec![Param::Ptr(b.input("x", El::F32, &noise(512, 1)).0), Param::Ptr(b.output(El::F32, 512))],
        "transpose" => {
            vec![
                Param::Ptr(b.input("x", El::F16, &noise(64 * 64, 1)).0),
                Param::Ptr(b.output(El::F16, 64 * 64)),
                n(64),
                n(64),
            ]
        }
        _ => vec![
            Param::Ptr(b.input("x", El::F32, &noise(1000, 1)).0),
            Param::Ptr(b.output(El::F32, 1000)),
            n(1000),
            n(1000),
        ],
    };
    let grid = if file == "attention" { [2, 1, 1] } else { [1, 1, 1] };
    Some(b.try_run(grid, &params, options))
}

/// Kernels without one of their barriers. Some barriers are redundant on these inputs; the others are missed.
#[test]
fn removed_barriers_are_missed() {
    let (mut removed, mut found) = (0, 0);
    for file in ["matmul_f16", "matmul_tf32", "matmul_i8", "attention", "softmax", "sort", "scan", "transpose"] {
        let Some(folder) = folder() else { return };
        let text = std::fs::read_to_string(folder.join(format!("{file}.ptx"))).unwrap();
        probe(file, &text, &Options::default()).unwrap().unwrap_or_else(|e| panic!("{file} {e}"));
        let lines: Vec<&str> = text.lines().collect();
        let barriers = (0..lines.len()).filter(|i| lines[*i].trim().starts_with("bar."));
        for i in barriers {
            let without: Vec<&str> = lines.iter().enumerate().map(|(j, l)| if i == j { "" } else { *l }).collect();
            removed += 1;
            found += usize::from(probe(file, &without.join("\n"), &Options::default()).unwrap().is_err());
        }
    }
    assert!(removed > 20 && found * 10 >= removed * 8, "{found} of {removed}");
}
