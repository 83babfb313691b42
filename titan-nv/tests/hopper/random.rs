//! Random products for sm_90a: elements, orders in memory, tiles and with them swizzles, rings of a few slots, loops over `pipelined(..)`
//! and roles by hand, programs alone and in clusters of two and four, ragged tensors, outputs of any alignment. Each is exact when copies complete late, early and at
//! random, with races and the sanitizer observed.

use super::lowered::{Gemm, kernel, run_on};
use super::multicast::{self, along, verified};
use super::ptxas;
use titan_core::driver::{Arguments, Schedule, Stages, Walk, follow, stages};
use titan_core::ir::Elem;
use titan_nv::Machine;
use titan_nv::emu::{Completion, Options, Schedule as Turns};
use titan_sim::engine::Rng;

/// Kernels of each of the three tests.
fn kernels() -> usize {
    test_depth::cases(27, 6)
}

/// Tensors for each kernel.
fn sizes() -> usize {
    test_depth::cases(4, 1)
}

/// A number below `n`.
fn below(rng: &mut Rng, n: usize) -> usize {
    (rng.next_u64() % n as u64) as usize
}

fn one<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[below(rng, of.len())]
}

/// A kernel: its product, the slots of its ring if its roles are written by hand, and the cluster that it is to have.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    gemm: Gemm,
    slots: Option<u32>,
    cluster: u32,
    axis: usize,
}

fn drawn(rng: &mut Rng, cluster: u32) -> Drawn {
    let (a, b, c) = match below(rng, 8) {
        0 | 1 => (Elem::F16, Elem::F16, Elem::F32),
        2 | 3 => (Elem::Bf16, Elem::Bf16, Elem::F32),
        4 => (Elem::Tf32, Elem::Tf32, Elem::F32),
        5 => (Elem::I8, Elem::I8, Elem::I32),
        _ => (one(rng, &[Elem::E4m3, Elem::E5m2]), one(rng, &[Elem::E4m3, Elem::E5m2]), Elem::F32),
    };
    let halves = matches!(a, Elem::F16 | Elem::Bf16);
    // Operands of other elements than halves lie with K as the last axis.
    let transposed = if halves { [below(rng, 2) == 0, below(rng, 2) == 0] } else { [false; 2] };
    let stored = if halves && below(rng, 2) == 0 { a } else { c };
    // Rows of 32, 64 and 128 bytes: the three swizzles. A cluster of four divides what has four groups of 8 rows.
    let rows = if cluster > 2 { &[64, 128][..] } else { &[32, 64, 128][..] };
    let bk = one(rng, rows) / (a.bits() / 8);
    let bm = if below(rng, 8) == 0 { 128 } else { 64 };
    let bn = if cluster > 1 {
        one(rng, &[32, 64])
    } else {
        one(rng, &[16, 24, 48, 80].map(|n| if transposed[1] { n / 16 * 16 } else { n }))
    };
    let axis = below(rng, 2);
    let slots = (below(rng, 2) == 0).then(|| one(rng, &[2, 3, 4]));
    Drawn {
        gemm: Gemm { elems: (a, b, c), stored, transposed, tile: [bm, bn, bk], size: [0; 3] },
        slots,
        cluster,
        axis,
    }
}

/// The code of a kernel, with the cluster that is asked for.
fn made(drawn: &Drawn, number: usize) -> Stages {
    let Drawn { gemm, slots, cluster, axis } = drawn;
    let text = slots.map_or_else(|| kernel(gemm), |slots| multicast::kernel(gemm, slots, number.is_multiple_of(2)));
    let (kernel, machine) = (verified(&text), Machine::from_name("sm_90a").expect("it is known"));
    let any = *cluster == 1 && number.is_multiple_of(2);
    let arguments = if any { Arguments::AlignedInputs } else { Arguments::Aligned };
    let chosen =
        stages(&kernel, machine, arguments, None).unwrap_or_else(|e| panic!("{drawn:?}: {}", e.message)).schedule;
    let cluster = (*cluster > 1).then(|| along(*axis, *cluster));
    let walk = Walk { cluster, ..chosen.walk };
    let schedule = Schedule { walk, bodies: Vec::new(), ..chosen };
    follow(&kernel, machine, &schedule).unwrap_or_else(|e| panic!("{drawn:?}: {}", e.message))
}

/// The orders of completion in which every case runs.
fn orders(seed: u64) -> [Options; 3] {
    let of = |completion, schedule| Options { completion, schedule, races: true, sanitize: true, ..Options::default() };
    [
        of(Completion::Late, Turns::InTurn),
        of(Completion::Early, Turns::InTurn),
        of(Completion::Seeded(seed), Turns::Seeded(seed ^ 0x5a)),
    ]
}

/// All cases of a test, whose kernels have clusters of one, two and four programs.
fn are_exact(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut by_cluster = [0; 3];
    let mut swizzles = std::collections::BTreeSet::new();
    for number in 0..kernels() {
        let cluster = [1, 2, 4][number % 3];
        let drawn = drawn(&mut rng, cluster);
        let code = made(&drawn, number);
        assert_eq!(code.lanes.cluster.max(1), cluster, "{drawn:?}");
        assert!(code.lanes.maps.len() >= 2, "{drawn:?} copies threads");
        swizzles.extend(code.lanes.maps.iter().map(|map| format!("{:?}", map.swizzle)));
        let shared = String::from_utf8_lossy(&code.code.payload).contains("multicast::cluster");
        assert_eq!(shared, cluster > 1, "{drawn:?}");
        for _ in 0..sizes() {
            let [bm, bn, bk] = drawn.gemm.tile.map(|n| n as usize);
            let steps = below(&mut rng, 6);
            let size =
                [1 + below(&mut rng, bm + 30), 1 + below(&mut rng, bn + 20), 1 + steps * bk + below(&mut rng, bk)];
            let gemm = Gemm { size, ..drawn.gemm };
            let programs = if code.schedule.walk.is_persistent() || drawn.slots.is_some() {
                [cluster * (1 + below(&mut rng, 3) as u32), 1, 1]
            } else {
                [size[0].div_ceil(bm) as u32, size[1].div_ceil(bn) as u32, 1]
            };
            let orders = orders(seed + number as u64);
            let some = if test_depth::is_full() { &orders[..] } else { &orders[number / 3 % 3..][..1] };
            for options in some {
                run_on(&gemm, &code, options, rng.next_u64(), programs).unwrap_or_else(|e| {
                    panic!("{gemm:?}, {drawn:?}, {programs:?} programs, {:?}: {e}", options.completion)
                });
            }
            by_cluster[number % 3] += 1;
        }
    }
    assert_eq!(by_cluster, [kernels() * sizes() / 3; 3]);
    assert!(swizzles.len() >= test_depth::cases(3, 2), "{swizzles:?}");
    ptxas::say(&format!("{} random products in clusters of 1, 2 and 4, {swizzles:?}", kernels() * sizes()));
}

#[test]
fn a_first_hundred_is_exact() {
    are_exact(11);
}

#[test]
fn a_second_hundred_is_exact() {
    are_exact(12);
}

#[test]
fn a_third_hundred_is_exact() {
    are_exact(13);
}
