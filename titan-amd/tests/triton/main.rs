//! Kernels that Triton compiles for gfx942: every instruction decodes, and each kernel runs in the emulator with the
//! results of a reference in `f64`.
//!
//! The sources are in `kernels.py`; they were written for these tests. What Triton 3.9.0 makes of them is in `objects`, so that the tests need
//! no Triton. Where there is one (`cargo xtask test --full` installs it under `target/tools`), a test shows that the objects are what
//! it makes; `TITAN_BLESS=1` writes them.

#[path = "../../../titan-nv/tests/triton/make.rs"]
mod make;
mod number;
mod others;
#[path = "../support/mod.rs"]
mod support;

use make::make;
use number::{El, close, noise};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::depth;
use titan_amd::emu::{Arg, Args, Completion, DevicePtr, Launch, Memory, Module, Options, Schedule};
use titan_amd::isa::decode;

/// The folder with the compiled kernels.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/triton/objects")
}

fn load(file: &str) -> Module {
    let bytes = std::fs::read(folder().join(format!("{file}.hsaco"))).unwrap();
    Module::load(&bytes).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// The files of a folder, without those that are hidden.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let all = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let named = all.filter(|path| path.extension().is_some_and(|e| e == "hsaco" || e == "txt"));
    named.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(&path).unwrap())).collect()
}

/// In the full depth, where Triton is installed.
#[test]
fn objects_are_what_triton_compiles() {
    if !depth::full() {
        return;
    }
    let Some(made) = make("objects against Triton", "triton-amd", "tests/triton/kernels.py") else { return };
    let made = files(&made);
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::create_dir_all(folder()).unwrap();
        files(&folder()).keys().for_each(|name| std::fs::remove_file(folder().join(name)).unwrap());
        made.iter().for_each(|(name, bytes)| std::fs::write(folder().join(name), bytes).unwrap());
    }
    let kept = files(&folder());
    let names = |all: &BTreeMap<String, Vec<u8>>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&kept), names(&made));
    let differ: Vec<&String> = made.keys().filter(|name| made[*name] != kept[*name]).collect();
    assert!(
        differ.is_empty(),
        "Triton compiles something else for {differ:?}: TITAN_BLESS=1 writes it to tests/triton/objects"
    );
}

struct Bench {
    module: Module,
    name: String,
    lds: u32,
    waves: u32,
    memory: Memory,
}

impl Bench {
    fn new(file: &str) -> Bench {
        let meta = std::fs::read_to_string(folder().join(format!("{file}.txt"))).unwrap();
        let meta: Vec<&str> = meta.split_whitespace().collect();
        let (lds, waves) = (meta[1].parse().unwrap(), meta[2].parse().unwrap());
        Bench { module: load(file), name: meta[0].to_owned(), lds, waves, memory: Memory::new() }
    }

    /// Uploads values; what the kernel then sees of them.
    fn input(&mut self, name: &str, el: El, values: &[f32]) -> (Arg, Vec<f64>) {
        let bytes: Vec<u8> = values.iter().flat_map(|x| el.encode(*x)).collect();
        let seen = bytes.chunks(el.size()).map(|b| el.decode(b)).collect();
        (Arg::Ptr(self.memory.upload(name, &bytes).unwrap()), seen)
    }

    fn output(&mut self, el: El, n: usize) -> DevicePtr {
        self.memory.alloc("out", n * el.size()).unwrap()
    }

    fn values(&self, ptr: DevicePtr, el: El, n: usize) -> Vec<f64> {
        let bytes = self.memory.read(ptr, n * el.size()).unwrap();
        bytes.chunks(el.size()).map(|b| el.decode(b)).collect()
    }

    fn run(&mut self, grid: [usize; 3], args: &[Arg], options: &Options) {
        let kernel = self.module.kernel(&self.name).unwrap();
        let mut args = args.to_vec();
        // Triton adds pointers to scratch memory that these kernels do not have.
        args.resize(kernel.entry().args().len(), Arg::Ptr(DevicePtr::NULL));
        let grid = grid.map(|g| g as u32);
        let launch = Launch { grid, block: [self.waves * 64, 1, 1], dynamic_lds: self.lds, args: Args::Each(&args) };
        kernel.run(&launch, &mut self.memory, options).unwrap_or_else(|e| panic!("{}: {e}", self.name));
    }
}

/// The schedules and completions under which everything must come out the same.
fn all_options() -> Vec<Options> {
    let base = Options::default();
    let random = |seed| Options {
        completion: Completion::Seeded(seed),
        schedule: Schedule::Seeded(seed + 1),
        undefined_seed: seed,
        ..base.clone()
    };
    let fixed = [base.clone(), Options { completion: Completion::Early, ..base.clone() }];
    fixed.into_iter().chain((1..=depth::tries(1, 4)).map(random)).collect()
}

/// One of them for a kernel that takes long: another one for each kernel, all of them in the full depth.
fn some_options(kernel: usize) -> Vec<Options> {
    let all = all_options();
    if depth::full() { all } else { vec![all[kernel % all.len()].clone()] }
}

fn size(x: usize) -> Arg {
    Arg::I32(i32::try_from(x).unwrap())
}

#[test]
fn every_instruction_decodes() {
    let (mut kernels, mut instructions) = (0, 0);
    for (name, bytes) in files(&folder()).into_iter().filter(|(name, _)| name.ends_with(".hsaco")) {
        let module = Module::load(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        let object = module.object();
        kernels += object.kernels.len();
        for code in &object.code {
            let mut at = code.start;
            while at < code.end {
                let rest = object.bytes(at, code.end - at).unwrap();
                let (inst, size) = decode(rest).unwrap_or_else(|e| panic!("{name} at {at:#x}: {e}"));
                assert_eq!(inst.bytes().unwrap(), rest[..size], "{name}: {inst}");
                instructions += 1;
                at += size as u64;
            }
        }
    }
    assert!(kernels >= 24 && instructions > 10_000, "{kernels} kernels, {instructions} instructions");
}

#[test]
fn vector_add_with_a_ragged_end() {
    for options in all_options() {
        let mut b = Bench::new("vector_add");
        let n = 5000;
        let (x, xs) = b.input("x", El::F32, &noise(n, 1));
        let (y, ys) = b.input("y", El::F32, &noise(n, 2));
        let out = b.output(El::F32, n);
        b.run([5, 1, 1], &[x, y, Arg::Ptr(out), size(n)], &options);
        let want: Vec<f64> = xs.iter().zip(&ys).map(|(a, b)| f64::from(*a as f32 + *b as f32)).collect();
        assert_eq!(b.values(out, El::F32, n), want);
    }
}

#[test]
fn softmax_of_rows() {
    for options in all_options() {
        let mut b = Bench::new("softmax");
        let (rows, n) = (6, 777);
        let (x, xs) = b.input("x", El::F32, &noise(rows * n, 3));
        let out = b.output(El::F32, rows * n);
        b.run([rows, 1, 1], &[x, Arg::Ptr(out), size(n)], &options);
        for (got, row) in b.values(out, El::F32, rows * n).chunks(n).zip(xs.chunks(n)) {
            let total: f64 = row.iter().map(|v| v.exp()).sum();
            let want: Vec<f64> = row.iter().map(|v| v.exp() / total).collect();
            close("softmax", got, &want, 1e-5, 1e-9);
        }
    }
}

#[test]
fn layer_norm_of_halves() {
    for options in all_options() {
        let mut b = Bench::new("layer_norm");
        let (rows, n) = (3, 1000);
        let (x, xs) = b.input("x", El::F16, &noise(rows * n, 4));
        let (w, ws) = b.input("w", El::F16, &noise(n, 5));
        let (bias, bs) = b.input("b", El::F16, &noise(n, 6));
        let out = b.output(El::F16, rows * n);
        b.run([rows, 1, 1], &[x, w, bias, Arg::Ptr(out), size(n), Arg::F32(1e-5)], &options);
        for (got, row) in b.values(out, El::F16, rows * n).chunks(n).zip(xs.chunks(n)) {
            let mean = row.iter().sum::<f64>() / n as f64;
            let var = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
            let want: Vec<f64> = (0..n).map(|i| (row[i] - mean) / (var + 1e-5).sqrt() * ws[i] + bs[i]).collect();
            close("layer_norm", got, &want, 1e-3, 1e-3);
        }
    }
}

/// A product of whole tiles against one in `f64`, to a part of the sum of its terms' sizes.
fn product(file: &str, tile: usize, [m, n, k]: [usize; 3], (ab, c): (El, El), options: &Options, part: f64) {
    let mut b = Bench::new(file);
    let (pa, av) = b.input("a", ab, &noise(m * k, 7));
    let (pb, bv) = b.input("b", ab, &noise(n * k, 8));
    let out = b.output(c, m * n);
    b.run([m / tile, n / tile, 1], &[pa, pb, Arg::Ptr(out), size(m), size(n), size(k)], options);
    for (i, got) in b.values(out, c, m * n).into_iter().enumerate() {
        let terms = || (0..k).map(|p| av[i / n * k + p] * bv[p * n + i % n]);
        close(file, &[got], &[terms().sum()], 0.0, part * terms().map(f64::abs).sum::<f64>());
    }
}

#[test]
fn products_of_halves() {
    let run = |kernel, file, tile, shape, types, part| {
        some_options(kernel).iter().for_each(|options| product(file, tile, shape, types, options, part));
    };
    run(0, "matmul_f16", 64, [64, 128, 192], (El::F16, El::F32), 1e-5);
    run(1, "matmul_bf16", 64, [128, 64, 128], (El::Bf16, El::Bf16), 4e-3);
    run(2, "matmul_bf16_16", 64, [64, 64, 160], (El::Bf16, El::F32), 1e-5);
    run(0, "matmul_bf16_wide", 128, [128, 128, 192], (El::Bf16, El::F32), 1e-5);
}

#[test]
fn products_of_other_types() {
    let run = |kernel, file, tile, shape, types, part| {
        some_options(kernel).iter().for_each(|options| product(file, tile, shape, types, options, part));
    };
    run(1, "matmul_f32", 64, [64, 64, 96], (El::F32, El::F32), 1e-3);
    run(2, "matmul_f64", 32, [32, 64, 48], (El::F64, El::F64), 1e-14);
    run(0, "matmul_i8", 64, [64, 64, 192], (El::I8, El::I32), 0.0);
    run(1, "matmul_e4m3", 64, [64, 64, 128], (El::E4m3, El::F32), 1e-5);
    run(2, "matmul_e5m2", 64, [64, 64, 128], (El::E5m2, El::F32), 1e-5);
}

fn attention(file: &str, el: El, d: usize, n: usize, tolerance: f64, options: &Options) {
    let mut b = Bench::new(file);
    let heads = 2;
    let all = heads * n * d;
    let (q, qs) = b.input("q", el, &noise(all, 9));
    let (k, ks) = b.input("k", el, &noise(all, 10));
    let (v, vs) = b.input("v", el, &noise(all, 11));
    let out = b.output(el, all);
    let scale = 1.0 / (d as f32).sqrt() * std::f32::consts::LOG2_E;
    b.run([n / 64, heads, 1], &[q, k, v, Arg::Ptr(out), size(n), Arg::F32(scale)], options);
    let got = b.values(out, el, all);
    for (h, i) in (0..heads).flat_map(|h| (0..n).map(move |i| (h, i))) {
        let row = |m: &[f64], i: usize| m[(h * n + i) * d..][..d].to_vec();
        let qi = row(&qs, i);
        let dot = |j: usize| qi.iter().zip(row(&ks, j)).map(|(a, b)| a * b).sum::<f64>();
        let p: Vec<f64> = (0..=i).map(|j| (dot(j) * f64::from(scale)).exp2()).collect();
        let total: f64 = p.iter().sum();
        let mixed = |x: usize| p.iter().enumerate().map(|(j, p)| p * vs[(h * n + j) * d + x]).sum::<f64>() / total;
        let want: Vec<f64> = (0..d).map(mixed).collect();
        close(file, &got[(h * n + i) * d..][..d], &want, tolerance, tolerance);
    }
}

#[test]
fn causal_attention() {
    for options in some_options(2) {
        attention("attention", El::F16, 64, 128, 2e-3, &options);
    }
    for options in some_options(1) {
        attention("attention_bf16", El::Bf16, 128, 128, 1.5e-2, &options);
    }
}

#[test]
fn atomics_sorting_scanning() {
    for options in all_options() {
        let mut b = Bench::new("histogram");
        let n = 3000;
        let xs: Vec<f32> = noise(n, 12).iter().map(|x| ((x + 1.0) * 5.0).floor()).collect();
        let (x, seen) = b.input("x", El::I32, &xs);
        let out = b.output(El::I32, 16);
        b.memory.write(out, &[0; 64]).unwrap();
        b.run([3, 1, 1], &[x, Arg::Ptr(out), size(n)], &options);
        let want: Vec<f64> = (0..16).map(|v| seen.iter().filter(|x| **x == f64::from(v)).count() as f64).collect();
        assert_eq!(b.values(out, El::I32, 16), want);

        let mut b = Bench::new("sort");
        let xs: Vec<f32> = noise(256, 13).iter().map(|x| (x * 1e6).floor()).collect();
        let (x, mut seen) = b.input("x", El::I32, &xs);
        let out = b.output(El::I32, 256);
        b.run([1, 1, 1], &[x, Arg::Ptr(out)], &options);
        seen.sort_by(f64::total_cmp);
        assert_eq!(b.values(out, El::I32, 256), seen);

        let mut b = Bench::new("scan");
        let (x, seen) = b.input("x", El::F32, &noise(512, 14));
        let out = b.output(El::F32, 512);
        b.run([1, 1, 1], &[x, Arg::Ptr(out)], &options);
        let mut sum = 0.0;
        let want: Vec<f64> = seen
            .iter()
            .map(|x| {
                sum += x;
                sum
            })
            .collect();
        close("scan", &b.values(out, El::F32, 512), &want, 1e-5, 1e-4);
    }
}

#[test]
fn functions_of_numbers() {
    for options in all_options() {
        let mut b = Bench::new("functions");
        let n = 600;
        let xs: Vec<f32> = noise(n, 15).iter().map(|x| x * 6.0).collect();
        let (x, seen) = b.input("x", El::F32, &xs);
        let out = b.output(El::F32, n);
        b.run([3, 1, 1], &[x, Arg::Ptr(out), size(n)], &options);
        let f = |v: &f64| {
            let a = v.abs();
            v.sin() + v.cos() + (a + 1.0).ln() + v.exp() + a.sqrt() + (a + 1.0).sqrt().recip() + v.floor()
        };
        close("functions", &b.values(out, El::F32, n), &seen.iter().map(f).collect::<Vec<_>>(), 1e-5, 1e-4);
    }
}
