//! Whole kernels.

use super::values::Random;
use super::{bytes, launch, machine, words};
use crate::kernels;
use titan_nv::Machine;
use titan_nv::emu::{Memory, Param};

const TARGETS: [&str; 2] = ["sm_80", "sm_90a"];

fn targets() -> impl Iterator<Item = &'static Machine> {
    TARGETS.into_iter().map(machine)
}

fn floats(words: &[f32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

#[test]
fn vectors_are_added_up_to_their_end() {
    for machine in targets() {
        for n in [0usize, 1, 3, 511, 512, 513, 1500] {
            let mut memory = Memory::new();
            let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
            let y: Vec<f32> = (0..n).map(|i| 1000.0 - i as f32).collect();
            // Nothing beyond the end may be touched: the allocations end there.
            let (a, b) = (memory.upload("a", &floats(&x)), memory.upload("b", &floats(&y)));
            let c = memory.alloc_named("c", 4 * n);
            let params = [Param::Ptr(a), Param::Ptr(b), Param::Ptr(c), Param::I32(n as i32)];
            let grid = [n.div_ceil(512).max(1) as u32, 1, 1];
            launch(&kernels::vector_add(), machine, grid, &params, &mut memory);
            let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
            let found = if n == 0 { Vec::new() } else { memory.read(c, 4 * n).unwrap() };
            assert_eq!(found, floats(&want), "n = {n}");
        }
    }
}

#[test]
fn rows_are_summed() {
    for machine in targets() {
        for n in [1usize, 31, 256, 257, 1000] {
            let rows = 3;
            let x: Vec<f32> = (0..rows * n).map(|i| ((i * 7919) % 64) as f32).collect();
            let mut memory = Memory::new();
            let from = memory.upload("x", &floats(&x));
            let to = memory.alloc_named("sums", 4 * rows);
            let params = [Param::Ptr(from), Param::Ptr(to), Param::I32(n as i32)];
            launch(&kernels::row_sum(), machine, [rows as u32, 1, 1], &params, &mut memory);
            let want: Vec<f32> = x.chunks(n).map(|row| row.iter().sum()).collect();
            assert_eq!(memory.read(to, 4 * rows).unwrap(), floats(&want), "n = {n}");
        }
    }
}

#[test]
fn matrices_are_multiplied() {
    for machine in targets() {
        let (m, n, k) = (128usize, 64, 96);
        let mut random = Random::new(3);
        let mut some = |count: usize| -> Vec<i32> { (0..count).map(|_| (random.next() % 9) as i32 - 4).collect() };
        let (a, b) = (some(m * k), some(n * k));
        let half = |x: &i32| (titan_core::num::Format::F16.from_f64(f64::from(*x)) as u16).to_le_bytes();
        let mut memory = Memory::new();
        let pa = memory.upload("a", &a.iter().flat_map(half).collect::<Vec<_>>());
        let pb = memory.upload("b", &b.iter().flat_map(half).collect::<Vec<_>>());
        let pc = memory.alloc_named("c", 4 * m * n);
        let params = [Param::Ptr(pa), Param::Ptr(pb), Param::Ptr(pc), Param::I32(n as i32), Param::I32(k as i32)];
        launch(&kernels::matmul(), machine, [m as u32 / 64, n as u32 / 64, 1], &params, &mut memory);
        let sum = |i: usize, j: usize| (0..k).map(|x| a[i * k + x] * b[j * k + x]).sum::<i32>() as f32;
        let want: Vec<f32> = (0..m * n).map(|at| sum(at / n, at % n)).collect();
        assert_eq!(memory.read(pc, 4 * m * n).unwrap(), floats(&want), "{}", machine.name);
    }
}

/// The kernel in Rust.
fn collatz(seed: i32, limit: i32) -> i32 {
    let mut total = 0;
    'outer: for i in 0..8 {
        let (mut x, mut steps) = (seed + i, 0);
        loop {
            if x == 1 {
                break;
            }
            if steps == limit {
                total = -1;
                break 'outer;
            }
            x = if x & 1 == 1 { 3 * x + 1 } else { x / 2 };
            steps += 1;
        }
        if steps & 1 == 0 {
            continue;
        }
        total += steps;
    }
    total
}

#[test]
fn lanes_leave_loops_at_different_times() {
    for machine in targets() {
        for limit in [0, 20, 100, 1000] {
            let seeds: Vec<u32> = (0..64).map(|i| i * 13 % 97 + 1).collect();
            let mut memory = Memory::new();
            let from = memory.upload("seeds", &bytes(&seeds));
            let to = memory.alloc_named("totals", 256);
            let params = [Param::Ptr(from), Param::Ptr(to), Param::I32(limit)];
            launch(&kernels::collatz(), machine, [1, 1, 1], &params, &mut memory);
            let found = words(&memory.read(to, 256).unwrap());
            let want: Vec<u32> = seeds.iter().map(|s| collatz(*s as i32, limit) as u32).collect();
            assert_eq!(found, want, "limit {limit}");
            let escaped = want.iter().filter(|t| **t == u32::MAX).count();
            assert_eq!(escaped == 64, limit == 0, "the limits part the lanes: {escaped}");
        }
    }
}

#[test]
fn carried_values_change_places() {
    for machine in targets() {
        for n in 0..5usize {
            let mut memory = Memory::new();
            let from = memory.upload("in", &bytes(&[10, 20, 30, 0]));
            let to = memory.alloc_named("out", 12);
            let params = [Param::Ptr(from), Param::Ptr(to), Param::I32(n as i32)];
            launch(&kernels::rotate(), machine, [1, 1, 1], &params, &mut memory);
            let found = words(&memory.read(to, 12).unwrap());
            let want: Vec<u32> = (0..3).map(|i| 10 * ((i + n as u32) % 3 + 1)).collect();
            assert_eq!(found, want, "{n} times");
        }
    }
}

#[test]
fn carried_values_of_every_width_change_places() {
    for machine in targets() {
        for n in 0..4 {
            let cells = [0u64, 1, 0x1111, 0x2222, 0x3333_3333, 0x4444_4444, 5 << 40, 6 << 40];
            let mut memory = Memory::new();
            let from = memory.upload("in", &cells.iter().flat_map(|c| c.to_le_bytes()).collect::<Vec<_>>());
            let to = memory.upload("out", &[0; 64]);
            let params = [Param::Ptr(from), Param::Ptr(to), Param::I32(n)];
            launch(&kernels::swap(), machine, [1, 1, 1], &params, &mut memory);
            let out = memory.read(to, 64).unwrap();
            let found: Vec<u64> = out.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect();
            let mut want = cells;
            if n % 2 == 1 {
                want.chunks_mut(2).for_each(|pair| pair.swap(0, 1));
            }
            // The condition that is carried beside them inverts the first pair until the loop has run.
            if n == 0 {
                want[..2].iter_mut().for_each(|p| *p ^= 1);
            }
            assert_eq!(found, want, "{n} times");
        }
    }
}

/// Bounds near the ends of numbers: a loop that goes on past 2³¹ − 1 would not end.
#[test]
fn loops_end_at_the_end_of_numbers() {
    let bounds: [(i32, i32, i32); 9] = [
        (0, 10, 3),
        (5, 5, 1),
        (7, 3, 1),
        (i32::MAX - 5, i32::MAX, 2),
        (i32::MAX - 1, i32::MAX, i32::MAX),
        (i32::MIN, i32::MIN + 3, 2),
        (i32::MIN, i32::MAX, i32::MAX),
        (-1, 1, 1),
        (i32::MIN, i32::MAX, 1 << 30),
    ];
    for machine in targets() {
        for (lo, hi, step) in bounds {
            let mut memory = Memory::new();
            let from = memory.upload("bounds", &bytes(&[lo as u32, hi as u32, step as u32, 0]));
            let to = memory.alloc_named("out", 8);
            launch(&kernels::count(), machine, [1, 1, 1], &[Param::Ptr(from), Param::Ptr(to)], &mut memory);
            let found = words(&memory.read(to, 8).unwrap());
            let steps: Vec<i64> = (i64::from(lo)..i64::from(hi)).step_by(step as usize).collect();
            let sum = steps.iter().fold(0u32, |sum, i| sum.wrapping_add(*i as u32));
            assert_eq!(found, [steps.len() as u32, sum], "{lo}..{hi} by {step}");
        }
    }
}

#[test]
fn bytes_of_words_are_converted_two_at_once() {
    use titan_core::num::Format;
    let machine = machine("sm_89");
    let ptx = titan_nv::emit(&kernels::bytes(), machine, None).unwrap().text;
    assert_eq!(ptx.matches("prmt").count(), 4, "only what is dead takes the word apart:\n{ptx}");
    let sources: Vec<u32> = (0..64u32).map(|i| u32::from_le_bytes([0, 1, 2, 3].map(|j| (4 * i + j) as u8))).collect();
    let mut memory = Memory::new();
    let from = memory.upload("in", &bytes(&sources));
    let to = memory.alloc_named("out", 256);
    launch(&kernels::bytes(), machine, [1, 1, 1], &[Param::Ptr(from), Param::Ptr(to)], &mut memory);
    let found = memory.read(to, 256).unwrap();
    for (code, found) in (0..).zip(found) {
        let x = Format::E4M3.to_f64(code);
        let y = Format::E5M2.to_f64(u32::from(found));
        let want = Format::E5M2.to_f64(Format::E5M2.from_f64(2.0 * x));
        assert!(y == want || (y.is_nan() && want.is_nan()), "{code:#x}: {y}, not {want}");
    }
}
