//! The executor beside hand-written code for the same work, in one run.
//!
//! Method: each case is a pair of closures over the same data, run alternately, ours first, for a fixed number of rounds after
//! a warm-up. Per round the ratio `theirs / ours` of wall-clock times is taken (above 1: the executor is faster); printed are
//! the best times and their ratio, and the medians of the times and of the ratios. Alternation puts both under the same clock,
//! cache and neighbours' load; on a machine with many neighbours the best times say more. Rates are those of the best times.
//! The other side uses rayon's global pool, ours as many threads of its own: run with `taskset -c 0` for one thread each.
//!
//! The other side is written as one would by hand, in plain Rust with std functions, compiled in the same profile:
//! * matrix products: one call of the `gemm` crates' kernel for the whole product. On more than one thread the rows of the
//!   result are dealt out, which is what the crate's own parallelism does at best.
//! * rows: a rayon loop over rows, sums in 16 partial sums so that the compiler can vectorize them.
//!
//! `cargo bench -p titan-gpu-cpu` runs everything; an argument selects the cases whose names contain it.
#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a benchmark reports on standard output, about sizes that are small"
)]

#[path = "paired/kernels.rs"]
mod kernels;
#[path = "paired/rows.rs"]
mod rows;

use rayon::prelude::*;
use std::time::Instant;
use titan_core::ir::Elem;
use titan_cpu::memory::Memory;
use titan_cpu::{Arg, Program};

/// Whether a case is to be run.
fn is_selected(name: &str) -> bool {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    filter.is_none_or(|f| name.contains(&f))
}

/// Runs both closures alternately and reports.
fn pair(name: &str, rounds: usize, work: Option<f64>, mut ours: impl FnMut(), mut theirs: impl FnMut()) {
    if !is_selected(name) {
        return;
    }
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..rounds + rounds / 5 + 1 {
        let start = Instant::now();
        ours();
        let a = start.elapsed().as_secs_f64();
        let start = Instant::now();
        theirs();
        let b = start.elapsed().as_secs_f64();
        if round > rounds / 5 {
            times[0].push(a);
            times[1].push(b);
            times[2].push(b / a);
        }
    }
    let [a, b, ratio] = times.map(|mut t| {
        t.sort_by(f64::total_cmp);
        (t[0], t[t.len() / 2])
    });
    let best = b.0 / a.0;
    let rate = work.map_or(String::new(), |w| format!("  {:6.1} against {:6.1} G/s", w / a.0 / 1e9, w / b.0 / 1e9));
    println!(
        "{name:46} best {:9.2} against {:9.2} us, ratio {best:.3}; medians {:9.1} against {:9.1}, ratio {:.3}{rate}",
        a.0 * 1e6,
        b.0 * 1e6,
        a.1 * 1e6,
        b.1 * 1e6,
        ratio.1
    );
}

/// A dense tensor argument with these values.
fn tensor(extents: &[i32], bytes: &[u8], elem: Elem) -> Arg {
    let len: usize = extents.iter().map(|n| *n as usize).product();
    let memory = Memory::zeroed(elem.bytes_for(len)).expect("memory for a benchmark");
    if !bytes.is_empty() {
        memory.write(0, bytes).expect("values of the right size");
    }
    let mut strides = vec![1i64; extents.len()];
    for i in (0..extents.len() - 1).rev() {
        strides[i] = strides[i + 1] * i64::from(extents[i + 1]);
    }
    Arg::Tensor { memory, offset: 0, extents: extents.to_vec(), strides }
}

fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1000) as f32 / 500.0 - 1.0).collect()
}

fn run(program: &Program, args: &[Arg], grid: [u32; 3]) {
    program.run(args, grid).expect("a benchmark's arguments fit");
}

/// `c = a · bᵀ` by the crate, rows dealt to the threads.
fn direct_product(a: &[f32], b: &[f32], c: &mut [f32], [_, n, k]: [usize; 3]) {
    let rows = (c.len() / n).div_ceil(rayon::current_num_threads());
    c.par_chunks_mut(rows * n).zip(a.par_chunks(rows * k)).for_each(|(c, a)| kernels::crate_product(a, b, c, n, k));
}

fn gemm() {
    for (elem, name) in [(Elem::F32, "f32"), (Elem::F16, "f16"), (Elem::Bf16, "bf16")] {
        for ([m, n, k], tile) in [
            ([1024, 1024, 1024], [128, 128, 64]),
            ([512, 512, 4096], [128, 128, 64]),
            ([1000, 1000, 1000], [128, 128, 64]),
            ([1024, 1024, 1024], [64, 64, 32]),
        ] {
            let title = format!("gemm {name} {m}x{n}x{k} tiles {tile:?}");
            if !is_selected(&title) {
                continue;
            }
            let (a, b) = (values((m * k) as usize), values((n * k) as usize));
            let program = kernels::gemm(elem, tile);
            let args = [
                tensor(&[m, k], &kernels::bytes_of(elem, &a), elem),
                tensor(&[n, k], &kernels::bytes_of(elem, &b), elem),
                tensor(&[m, n], &[], elem),
            ];
            let grid = [(m as u32).div_ceil(tile[0] as u32), (n as u32).div_ceil(tile[1] as u32), 1];
            let shape = [m as usize, n as usize, k as usize];
            let mut c = vec![0f32; (m * n) as usize];
            let flops = 2.0 * f64::from(m) * f64::from(n) * f64::from(k);
            pair(&title, 15, Some(flops), || run(&program, &args, grid), || direct_product(&a, &b, &mut c, shape));
        }
    }
}

/// Rows in memory, and rows in the second or third cache.
fn row_kernels() {
    for (m, rounds) in [(4096, 60), (256, 400)] {
        rows_of(m, 1024, rounds);
    }
}

fn rows_of(m: i32, n: i32, rounds: usize) {
    let (x, w) = (values((m * n) as usize), values(n as usize));
    for rows in [1, 4] {
        for norm in kernels::RowKernel::ALL {
            let title = format!("{norm:?} [{m}, {n}] tiles of {rows} rows");
            if !is_selected(&title) {
                continue;
            }
            let program = kernels::rows(norm, rows, n);
            let args = [
                tensor(&[m, n], bytemuck::cast_slice(&x), Elem::F32),
                tensor(&[n], bytemuck::cast_slice(&w), Elem::F32),
                tensor(&[m, n], &[], Elem::F32),
            ];
            let mut y = vec![0f32; x.len()];
            let grid = [(m / rows) as u32, 1, 1];
            let bytes = 8.0 * f64::from(m) * f64::from(n);
            let by_hand = norm.by_hand();
            pair(&title, rounds, Some(bytes), || run(&program, &args, grid), || by_hand(&x, &w, &mut y, n as usize));
        }
    }
}

fn launches() {
    let program = kernels::empty();
    pair(
        "launch of an empty kernel, grid 1",
        2000,
        None,
        || run(&program, &[], [1, 1, 1]),
        || std::hint::black_box(()),
    );
    let program = kernels::copy(1024);
    let x = values(1024);
    let args = [tensor(&[1, 1024], bytemuck::cast_slice(&x), Elem::F32), tensor(&[1, 1024], &[], Elem::F32)];
    pair(
        "launch of a copy of 4 KiB, grid 1",
        2000,
        None,
        || run(&program, &args, [1, 1, 1]),
        || std::hint::black_box(()),
    );
}

fn main() {
    println!("{} threads", rayon::current_num_threads());
    launches();
    gemm();
    row_kernels();
}
