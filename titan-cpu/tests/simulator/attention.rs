//! Attention on the machine with MMAs of warpgroups, whose second MMA runs one iteration late: in all ways (`ways`), and its barrier
//! program in the model checker.
//!
//! Scores are whole numbers and their weights powers of two, of few different exponents, so that every sum is exact.

use super::gpu::{hopper, machine};
use super::rng::Rng;
use super::ways::{Counts, compare};
use super::{grid, kernels};
use kernels::Mask;
use titan_core::driver::{Ahead, Schedule, Stages, barrier_program, follow, stages};
use titan_core::ir::{Const, Elem, Kernel, NvOp, OpKind};
use titan_core::num;
use titan_core::plan::plan;
use titan_core::text::parse_one;
use titan_core::verify::{Verified, WellFormed, verify, well_formed};
use titan_sim::sim::{self, Explored, Limits, Verdict};

/// The kernel; without the division by the sums of weights at its end, its results are exact.
pub(super) fn kernel(sizes: [u32; 3], mask: Mask, exact: bool) -> Verified {
    let text = kernels::text(sizes, mask);
    let text = if exact { text.replace("cast %mean", "cast %acc_end") } else { text };
    verify(parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// So many heads, queries, keys, and numbers of a head. A query and a key have few numbers that are not zero: scores are small.
pub(super) fn arguments([heads, queries, keys, size]: [i64; 4], seed: u64) -> Vec<sim::Arg> {
    let mut rng = Rng::new(seed);
    let mut tensor = |rows: i64, some: u32, values: &[f64]| {
        let n = heads * rows * size;
        let one = |_| if rng.below(some) == 0 { values[rng.below(values.len() as u32) as usize] } else { 0.0 };
        let bytes = (0..n).map(one).flat_map(|x: f64| num::f16_from_f64(x).to_le_bytes()).collect();
        sim::Arg::dense(Elem::F16, &[1, heads, rows, size], bytes)
    };
    let some = u32::try_from(size / 2).unwrap();
    let q = tensor(queries, some, &[1.0, -1.0]);
    let k = tensor(keys, 2, &[1.0, -1.0]);
    let v = tensor(keys, 1, &[0.0, 1.0, 2.0, 3.0]);
    let out = sim::Arg::dense(Elem::F16, &[1, heads, queries, size], vec![0xFF; (heads * queries * size * 2) as usize]);
    vec![q, k, v, out, sim::Arg::Scalar(Const::Float(Elem::F32, 1.0))]
}

fn is_shifted(made: &Stages) -> bool {
    made.schedule.shifted
}

/// Sizes of the kernel, heads, queries and keys, and the mask.
const CASES: [([u32; 3], [i64; 3], Mask); 12] = [
    // Tiles of queries that see no keys, one step of them and two.
    ([64, 64, 64], [1, 256, 128], Mask::Causal),
    // One step; two; as many as slots and more.
    ([64, 64, 64], [1, 30, 20], Mask::Tail),
    ([64, 64, 64], [2, 64, 128], Mask::None),
    ([64, 64, 64], [1, 64, 630], Mask::Tail),
    ([64, 64, 64], [1, 130, 600], Mask::Causal),
    ([128, 64, 128], [1, 100, 300], Mask::Causal),
    ([128, 64, 128], [1, 128, 129], Mask::Tail),
    ([128, 128, 64], [1, 70, 100], Mask::Causal),
    ([128, 128, 128], [1, 120, 40], Mask::Tail),
    ([128, 128, 128], [1, 128, 256], Mask::None),
    ([128, 128, 128], [1, 200, 500], Mask::Causal),
    ([128, 128, 128], [1, 10, 520], Mask::Tail),
];

/// The cases of the quick depth: each size and mask, and one with more steps than slots.
const QUICK: [usize; 6] = [1, 2, 3, 6, 7, 8];

/// Compares all ways of some cases, those of the quick depth alone in that.
fn agree(cases: impl IntoIterator<Item = usize>, exact: bool) {
    let is_meant = |(_, case): &(usize, usize)| test_depth::is_full() || QUICK.contains(case);
    let cases: Vec<(usize, usize)> = cases.into_iter().enumerate().filter(is_meant).collect();
    let n = cases.len();
    let (mut counts, mut found) = (Counts::default(), Vec::new());
    for (number, case) in cases {
        let (sizes, [heads, queries, keys], mask) = CASES[case];
        let kernel = kernel(sizes, mask, exact);
        let args = arguments([heads, queries, keys, sizes[1].into()], number as u64);
        let grid = grid(&kernel, &args).expect("arguments that fit");
        let wrong = compare(&kernel, (&args, grid), exact, &mut counts);
        found.extend(wrong.map(|w| format!("{sizes:?} {queries} {keys} {mask:?}: {w}")));
    }
    assert!(found.is_empty(), "{} wrong\n{}", found.len(), found.join("\n"));
    assert_eq!(counts.hopper, n, "{counts:?}");
}

#[test]
fn attention_is_shifted_on_hopper() {
    for (sizes, _, mask) in CASES {
        let made = stages(&kernel(sizes, mask, false), hopper(), true, None).unwrap();
        assert!(is_shifted(&made), "{sizes:?} {mask:?}: {}", made.schedule);
        let waits: Vec<u32> = made.barriers.ops.iter().filter_map(groups_left).collect();
        assert!(waits.contains(&1), "{waits:?}");
    }
}

fn groups_left(op: &titan_core::ir::Op) -> Option<u32> {
    let OpKind::Nv(NvOp::WaitGroup { n, .. }) = op.kind else { return None };
    Some(n)
}

#[test]
fn attention_of_heads_of_64_is_the_same_in_all_ways() {
    agree(0..7, true);
}

#[test]
fn attention_of_heads_of_128_is_the_same_in_all_ways() {
    agree(7..CASES.len(), true);
}

#[test]
fn attention_divides_by_the_sums_of_weights() {
    agree([1, 4, 8], false);
}

/// The rings of small tiles, with so many slots each, and their barrier program.
fn small(slots: u32) -> (Verified, WellFormed) {
    let kernel = kernel([64, 16, 16], Mask::Tail, true);
    let chosen = stages(&kernel, hopper(), true, None).unwrap().schedule;
    let loops = chosen.loops.iter().map(|ahead| Ahead { slots, ..ahead.clone() }).collect();
    let made = follow(&kernel, hopper(), &Schedule { loops, ..chosen }).unwrap_or_else(|e| panic!("{}", e.message));
    assert!(is_shifted(&made), "{}", made.schedule);
    (made.rings, well_formed(made.barriers).unwrap())
}

/// The same by a role of one warp, without bulk copies and MMAs of warpgroups: what it waits for and releases is the same.
fn of_one_warp(rings: &Verified) -> WellFormed {
    let mut one: Kernel = (**rings).clone();
    one.roles.iter_mut().for_each(|role| role.warps = 1);
    let one = verify(one).unwrap_or_else(|e| panic!("{e:?}"));
    let plan = plan(&one, &titan_nv::target(machine()), false);
    well_formed(barrier_program(&one, &plan).unwrap_or_else(|e| panic!("{}", e.message))).unwrap()
}

fn is_safe(program: &WellFormed, steps: i64) -> Explored {
    let args = arguments([1, 64, 16 * steps, 16], 1);
    let limits = Limits { max_states: 100_000, ..Limits::default() };
    match sim::explore(program, &args, Some([1, 1, 1]), &limits).unwrap() {
        Verdict::Safe(explored) => {
            println!("{steps} steps: {} states", explored.states);
            explored
        }
        other => panic!("{steps} steps: {other:?}"),
    }
}

#[test]
fn attention_is_safe_in_every_order() {
    for slots in 1..=3 {
        let (rings, program) = small(slots);
        let one = of_one_warp(&rings);
        for steps in 0..=i64::from(slots) + 2 {
            assert!(is_safe(&program, steps).determinate > 0, "{slots} slots, {steps} steps");
            is_safe(&one, steps);
        }
    }
}
