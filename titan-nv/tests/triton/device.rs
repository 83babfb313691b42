//! Kernels of Triton that copy parts of tensors whose bounds only the device knows, with exact results: by tensor maps that the kernel makes
//! (`tl.make_tensor_descriptor`), and by one map of the host (`triton.tools.ragged_tma`).

use super::{Bench, El, all_options, fenced, folder, noise, tensor};
use titan_nv::emu::{DevicePtr, EmuError, Options, Param};
use titan_nv::tma::{Element, Swizzle, TensorMap};

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

/// The map of a matrix of halves whose rows are reached in parts, and what Triton passes beside it. A copy at 2³⁰, the end `e` of the part and
/// `2³⁰ - n + i` for row `i` of `n` is at row `e - n + i`, because 2³⁰ times the stride of the outermost axis is `-2³⁰` rows modulo 2⁶⁴. It
/// is inside as long as `i < n`.
fn ragged(ptr: DevicePtr, cols: usize) -> Vec<Param> {
    let (most, rows, row) = (0x7fff_0000, 1 << 30, cols as u64 * 2);
    let (extents, strides) = ([cols as u64, rows, most, most], [row, row, (1 << 34) - row]);
    let map = TensorMap::tiled(Element::F16, ptr.address(), &extents, &strides, &[64, 64, 1, 1]);
    let map = TensorMap { swizzle: Swizzle::B128, ..map };
    let extents = extents.into_iter().rev().map(|n| Param::I32(n as i32));
    let strides = strides.into_iter().rev().map(|bytes| Param::U64(bytes / 2)).chain([Param::U64(1)]);
    std::iter::once(Param::Bytes(map.to_bytes().to_vec())).chain(extents).chain(strides).collect()
}

/// What a kernel left in memory, and what is expected there.
type Found = (Vec<f64>, Vec<f64>);

/// Runs the product of each group of rows with its own matrix; what it gives, and what it should.
fn grouped(file: &str, text: &str, options: &Options) -> Option<Result<Found, EmuError>> {
    let mut b = Bench::of(file, text)?;
    let total: usize = ROWS.iter().sum();
    let starts: Vec<f32> = (0..=ROWS.len()).map(|g| ROWS[..g].iter().sum::<usize>() as f32).collect();
    let (x, xs) = b.input("x", El::F16, &integers(total * K, 18));
    let (w, ws) = b.input("w", El::F16, &integers(ROWS.len() * N * K, 19));
    let (starts, _) = b.input("starts", El::I32, &starts);
    let out = b.output(El::F16, total * N);
    let tensors = match file {
        "device_grouped" => [x, w, out].map(|ptr| vec![Param::Ptr(ptr)]),
        _ => [ragged(x, K), tensor(w, [ROWS.len() * N, K], [64, 64]), ragged(out, N)],
    };
    let params = [tensors.concat(), vec![Param::Ptr(starts), number(ROWS.len()), number(N), number(K)]].concat();
    let ran = b.try_run([3, 1, 1], &params, options);
    let groups = ROWS.iter().enumerate().flat_map(|(g, rows)| std::iter::repeat_n(g, *rows));
    let row = |all: &[f64], i: usize| all[i * K..][..K].to_vec();
    let dot = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let want = groups.enumerate().flat_map(|(i, g)| (0..N).map(move |j| (i, g * N + j)));
    let want = want.map(|(i, j)| dot(row(&xs, i), row(&ws, j))).collect();
    Some(ran.map(|_| (b.values_any(out, El::F16, total * N), want)))
}

fn text(file: &str) -> Option<String> {
    let text = std::fs::read_to_string(folder()?.join(format!("{file}.ptx"))).unwrap();
    Some(if file == "ragged_grouped" { fenced(&text) } else { text })
}

#[test]
fn grouped_products_by_maps_of_the_kernel_and_by_maps_of_the_host() {
    for file in ["device_grouped", "ragged_grouped"] {
        let Some(text) = text(file) else { return };
        for options in all_options() {
            let Some(result) = grouped(file, &text, &options) else { return };
            let (got, want) = result.unwrap_or_else(|e| panic!("{file} {e}"));
            assert_eq!(got, want, "{file}");
        }
    }
}

/// The kernel without one of the instructions that publish its maps, or that wait for copies before a map changes: an error or a wrong
/// result, each time.
#[test]
fn removed_fences_of_maps_are_missed() {
    let Some(text) = text("device_grouped") else { return };
    let lines: Vec<&str> = text.lines().collect();
    let fences =
        ["tensormap.cp_fenceproxy", "fence.proxy.tensormap", "tensormap.replace", "cp.async.bulk.wait_group \t0"];
    let mut removed = [0; 4];
    for (i, line) in lines.iter().enumerate() {
        let Some(kind) = fences.iter().position(|f| line.contains(f)) else { continue };
        removed[kind] += 1;
        let without: Vec<&str> = lines.iter().enumerate().map(|(j, l)| if i == j { "" } else { *l }).collect();
        let Some(result) = grouped("device_grouped", &without.join("\n"), &Options::default()) else { return };
        assert!(result.is_err() || result.is_ok_and(|(got, want)| got != want), "{line}");
    }
    assert_eq!(removed, [3, 3, 33, 1]);
}
