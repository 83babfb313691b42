//! Programs with bulk copies, MMAs of warpgroups and clusters in the model checker: a few orders stand for all where synchronisation is
//! determinate. Products with small tiles, alone and in clusters, for as many steps as slots and more.

use super::documented::told;
use super::gpu::hopper;
use super::{Elem, GridSpec, bytes, grid, program_grid};
use std::fmt::Write as _;
use std::ops::RangeInclusive;
use titan_core::driver::{Ahead, Cluster, Schedule, Walk, follow, stages};
use titan_core::text::parse_one;
use titan_core::verify::{Verified, WellFormed, verify, well_formed};
use titan_sim::sim::{self, Limits, Verdict};

const GEMM: &str = include_str!("../../../titan-nv/tests/hopper/kernels/gemm.tir");
const GEMM_WS: &str = include_str!("../../../titan-nv/tests/hopper/kernels/gemm_ws.tir");

/// A kernel with smaller tiles: 64 by 32, 16 deep.
fn smaller(text: &str, slots: u32) -> Verified {
    let tiles = [
        ("64x256", "16x32"),
        ("128x256", "64x32"),
        ("128x64", "64x16"),
        ("256x64", "32x16"),
        ("const 64 ", "const 16 "),
        ("const 128 ", "const 64 "),
        ("const 256 ", "const 32 "),
        ("cdiv(M, 128), cdiv(N, 256)", "cdiv(M, 64), cdiv(N, 32)"),
        ("49152", "3072"),
        ("role(consumer, 8)", "role(consumer, 4)"),
    ];
    let text = tiles.iter().fold(text.to_owned(), |text, (large, small)| text.replace(large, small));
    // With an MMA in flight a stage is released one step late: there must be another slot.
    let text = if slots == 1 { text.replace("acc.start<1>", "acc.start<0>").replace("acc<1,", "acc<0,") } else { text };
    verify(parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// The barrier program of a kernel with so many slots in each ring, in a cluster or not.
fn made(kernel: &Verified, slots: u32, instances: Option<u32>, cluster: Option<Cluster>) -> WellFormed {
    let chosen = stages(kernel, hopper(), true, None).unwrap().schedule;
    let loops = chosen.loops.iter().map(|ahead| Ahead { slots, ..ahead.clone() }).collect();
    let all = chosen.slots.iter().map(|_| slots).collect();
    let walk = Walk { instances, cluster, ..chosen.walk };
    let schedule = Schedule { loops, slots: all, walk, bodies: Vec::new(), ..chosen };
    let made = follow(kernel, hopper(), &schedule).unwrap_or_else(|e| panic!("{schedule}: {}", e.message));
    well_formed(made.barriers).unwrap()
}

/// Two factors and their product.
fn arguments([m, n, k]: [i64; 3]) -> Vec<sim::Arg> {
    let one = |(i, shape): (usize, &[i64; 2])| {
        sim::Arg::dense(Elem::F16, shape, bytes(Elem::F16, shape.iter().product::<i64>() as usize, i))
    };
    [[m, k], [n, k], [m, n]].iter().enumerate().map(one).collect()
}

/// The programs that run, and how far along K: so many tiles for each of them.
fn launched(
    kernel: &Verified,
    program: &WellFormed,
    cluster: Option<Cluster>,
    [tiles, steps]: [u32; 2],
) -> (Vec<sim::Arg>, [u32; 3]) {
    let size = cluster.map_or(1, |c| c.size);
    let [rows, columns] = match cluster {
        Some(Cluster { size, axis: 0 }) => [tiles * size, 1],
        Some(Cluster { size, .. }) => [tiles, size],
        None => [tiles, 1],
    };
    let args = arguments([i64::from(64 * rows), i64::from(32 * columns), i64::from(16 * steps)]);
    let persistent = program.sig.grid == GridSpec::Persistent;
    let grid = if persistent { [size, 1, 1] } else { program_grid(program, grid(kernel, &args).unwrap()) };
    (args, grid)
}

/// A product: its kernel, its instances, and the slots of its rings. The ring of a loop has two slots at least, and so has each instance.
type Product = (&'static str, &'static str, Option<u32>, RangeInclusive<u32>);

const KERNELS: [Product; 3] =
    [("gemm", GEMM, None, 2..=3), ("gemm_ws", GEMM_WS, None, 1..=3), ("gemm by two instances", GEMM, Some(2), 4..=6)];

#[test]
fn products_in_clusters_are_safe_in_every_order() {
    let mut text = "| | slots | steps | states |\n|---|---|---|---|\n".to_owned();
    let of = |size, axis| Some(Cluster { size, axis });
    let clusters = [None, of(2, 0), of(2, 1), of(4, 0), of(4, 1)];
    let all = KERNELS.iter().flat_map(|kernel| clusters.into_iter().map(move |cluster| (kernel, cluster)));
    let all = all.flat_map(|(kernel, cluster)| kernel.3.clone().map(move |slots| (kernel, cluster, slots)));
    // In the quick depth, the fewer slots, the larger the clusters.
    let is_small = |cluster: &Option<Cluster>, slots: u32| cluster.is_none_or(|c| c.size * slots <= 8);
    let all = all.filter(|(_, cluster, slots)| test_depth::is_full() || is_small(cluster, *slots));
    let traits = |((name, ..), cluster, slots): &(&Product, Option<Cluster>, u32)| {
        vec![format!("{name} {slots}"), format!("{cluster:?}")]
    };
    for ((name, source, instances, _), cluster, slots) in test_depth::covering(all, traits) {
        let kernel = smaller(source, slots);
        let program = made(&kernel, slots, *instances, cluster);
        assert_eq!(program.laid_out.as_deref().unwrap().cluster, cluster.map_or(1, |c| c.size));
        let mut states = (u64::MAX, 0);
        let (each, tiles) = instances.map_or((slots, 2), |n| (slots.div_ceil(n), 3));
        for steps in 0..=each + 2 {
            let (args, grid) = launched(&kernel, &program, cluster, [tiles, steps]);
            let limits = Limits { max_states: 100_000, ..Limits::default() };
            let verdict = sim::explore(&program, &args, Some(grid), &limits).unwrap();
            let Verdict::Safe(e) = verdict else { panic!("{name} {cluster:?} {slots} {steps}: {verdict:?}") };
            assert!(e.determinate > 0, "{name} {cluster:?} {slots} {steps}: not determinate");
            assert_eq!(e.occupied, e.times.min(each.into()), "{name} {cluster:?} {slots} {steps}");
            states = (states.0.min(e.states), states.1.max(e.states));
        }
        let what = cluster.map_or(String::new(), |c| format!(", {} programs along axis {}", c.size, c.axis));
        let _ = writeln!(text, "| `{name}`{what} | {slots} | 0 to {} | {} to {} |", each + 2, states.0, states.1);
    }
    told("simulator", ("orders", "products are explored"), &text);
}
