//! Kernels of Triton that make their tensor maps on the device (`tl.make_tensor_descriptor`), with exact results.

use super::{Bench, El, all_options, folder, noise};
use titan_nv::emu::{EmuError, Options, Param};

/// Small integers, whose products sum up without rounding.
fn integers(n: usize, seed: u64) -> Vec<f32> {
    noise(n, seed).iter().map(|x| (x * 3.0).round()).collect()
}

fn number(x: usize) -> Param {
    Param::I32(x as i32)
}

#[test]
fn copies_of_matrices_by_maps_of_the_kernel() {
    let types = [("f16", El::F16), ("bf16", El::Bf16), ("f32", El::F32), ("i32", El::I32), ("i8", El::I8)];
    for (options, (name, el)) in all_options().iter().flat_map(|o| types.map(|t| (o.clone(), t))) {
        let Some(mut b) = Bench::new(&format!("device_copy_{name}")) else { return };
        // Neither extent is a multiple of the tile; rows have multiples of 16 bytes.
        let (m, n) = (100, 144);
        let (x, seen) = b.input("x", el, &integers(m * n, 17));
        let out = b.output(el, m * n);
        b.run([2, 3, 1], &[Param::Ptr(x), Param::Ptr(out), number(m), number(n)], &options);
        assert_eq!(b.values(out, el, m * n), seen, "{name}");
    }
}

const N: usize = 136;
const K: usize = 200;
/// The number of rows of each group: empty ones, whole tiles, and ends that another group follows.
const ROWS: [usize; 7] = [0, 70, 0, 64, 1, 130, 0];

/// Runs the product of each group of rows with its own matrix; what it gives, and what it should.
fn grouped(text: &str, options: &Options) -> Option<Result<(Vec<f64>, Vec<f64>), EmuError>> {
    let mut b = Bench::of("device_grouped", text)?;
    let total: usize = ROWS.iter().sum();
    let starts: Vec<f32> = (0..=ROWS.len()).map(|g| ROWS[..g].iter().sum::<usize>() as f32).collect();
    let (x, xs) = b.input("x", El::F16, &integers(total * K, 18));
    let (w, ws) = b.input("w", El::F16, &integers(ROWS.len() * N * K, 19));
    let (starts, _) = b.input("starts", El::I32, &starts);
    let out = b.output(El::F16, total * N);
    let pointers = [x, w, out, starts].map(Param::Ptr);
    let params = [&pointers[..], &[number(ROWS.len()), number(N), number(K)]].concat();
    let ran = b.try_run([3, 1, 1], &params, options);
    let groups = ROWS.iter().enumerate().flat_map(|(g, rows)| std::iter::repeat_n(g, *rows));
    let row = |all: &[f64], i: usize| all[i * K..][..K].to_vec();
    let dot = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let want = groups.enumerate().flat_map(|(i, g)| (0..N).map(move |j| (i, g * N + j)));
    let want = want.map(|(i, j)| dot(row(&xs, i), row(&ws, j))).collect();
    Some(ran.map(|_| (b.values_any(out, El::F16, total * N), want)))
}

fn text() -> Option<String> {
    Some(std::fs::read_to_string(folder()?.join("device_grouped.ptx")).unwrap())
}

#[test]
fn grouped_products_by_maps_of_the_kernel() {
    let Some(text) = text() else { return };
    for options in all_options() {
        let Some(result) = grouped(&text, &options) else { return };
        let (got, want) = result.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(got, want);
    }
}

/// The kernel without one of the instructions that publish its maps, or that wait for copies before a map changes: an error or a wrong
/// result, each time.
#[test]
fn removed_fences_of_maps_are_missed() {
    let Some(text) = text() else { return };
    let lines: Vec<&str> = text.lines().collect();
    let fences =
        ["tensormap.cp_fenceproxy", "fence.proxy.tensormap", "tensormap.replace", "cp.async.bulk.wait_group \t0"];
    let mut removed = [0; 4];
    for (i, line) in lines.iter().enumerate() {
        let Some(kind) = fences.iter().position(|f| line.contains(f)) else { continue };
        removed[kind] += 1;
        let without: Vec<&str> = lines.iter().enumerate().map(|(j, l)| if i == j { "" } else { *l }).collect();
        let Some(result) = grouped(&without.join("\n"), &Options::default()) else { return };
        assert!(result.is_err() || result.is_ok_and(|(got, want)| got != want), "{line}");
    }
    assert_eq!(removed, [3, 3, 33, 1]);
}
