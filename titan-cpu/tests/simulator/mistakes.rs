//! Mistakes (`mutants`) in random programs with bulk copies and MMAs of warpgroups, in clusters, and in stages that bulk copies and threads fill
//! together; and such programs without mistakes in the model checker.

use super::gpu::hopper;
use super::mutants::{Row, cluster, mistakes_with};
use super::random_groups::{self, Random};
use super::rng::Rng;
use super::ways::is_mixed;
use super::{grid, program_grid};
use std::collections::BTreeMap;
use titan_core::driver::stages;
use titan_core::ir::{Kernel, NvOp, OpKind};
use titan_core::verify::{verify, well_formed};
use titan_sim::sim;

/// Mistakes in programs with bulk copies and MMAs of warpgroups: each is refused, and goes wrong when it runs, or changes nothing that
/// the simulator shows.
#[test]
fn mistakes_with_warpgroups_are_refused() {
    mistakes_in_random((8, 40_000), 300, random_groups::small, |program| cluster(program) == 1);
}

/// The same in programs of clusters.
#[test]
fn mistakes_with_clusters_are_refused() {
    mistakes_in_random((4, 60_000), 150, random_groups::small, |program| cluster(program) > 1);
}

/// The same where bulk copies and threads fill the same stages.
#[test]
fn mistakes_in_stages_of_both_kinds_are_refused() {
    mistakes_in_random((6, 90_000), 250, random_groups::small_mixed, is_mixed);
}

fn mistakes_in_random(
    (wanted, first): (usize, u64),
    least: usize,
    make: fn(&mut Rng) -> Random,
    of_these: impl Fn(&Kernel) -> bool,
) {
    let mut table: BTreeMap<&str, Row> = BTreeMap::new();
    let mut programs = 0;
    for seed in first.. {
        if programs == wanted {
            break;
        }
        let Random { text, args } = make(&mut Rng::new(seed));
        let kernel = verify(titan_core::text::parse_one(&text).unwrap()).unwrap();
        let Ok(all) = stages(&kernel, hopper(), true, None) else { continue };
        let uses =
            |kind: fn(&NvOp) -> bool| all.barriers.ops.iter().any(|op| matches!(&op.kind, OpKind::Nv(nv) if kind(nv)));
        if !uses(|nv| matches!(nv, NvOp::BulkLoad { .. })) || !uses(|nv| *nv == NvOp::Wgmma) {
            continue;
        }
        if !of_these(&all.barriers) {
            continue;
        }
        programs += 1;
        mistakes_with((&kernel, &args), &all.barriers, (&format!("{seed}"), true), &mut table);
    }
    let mut wrong = Vec::new();
    for (name, row) in &table {
        println!("{name}: {} made, {} refused, {} fail", row.all, row.refused, row.failed);
        wrong.extend(row.missed.iter().map(|what| format!("{name}: accepted and wrong, {what}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(table.values().map(|row| row.all).sum::<usize>() > least, "too few");
}

/// The model checker runs the protocol of such programs, without data.
fn safe_in_every_order(first: u64, make: fn(&mut Rng) -> Random, of_these: impl Fn(&Kernel) -> bool) {
    let (mut safe, mut states, mut programs) = (0, 0, 0);
    for seed in first..first + 24 {
        let Random { text, args } = make(&mut Rng::new(seed));
        let kernel = verify(titan_core::text::parse_one(&text).unwrap()).unwrap();
        let Ok(all) = stages(&kernel, hopper(), true, None) else { continue };
        if programs == 6 || !of_these(&all.barriers) {
            continue;
        }
        programs += 1;
        let grid = program_grid(&all.barriers, grid(&kernel, &args).unwrap());
        let limits = sim::Limits { max_states: 20_000, ..sim::Limits::default() };
        let verdict = sim::explore(&well_formed(all.barriers).unwrap(), &args, Some(grid), &limits).unwrap();
        assert_eq!(verdict.finding(), None, "seed {seed}\n{text}");
        safe += usize::from(matches!(verdict, sim::Verdict::Safe(_)));
        states += verdict.explored().states;
    }
    println!("{safe} programs of {programs} are safe, {states} states");
    assert!(safe > 1, "{safe} programs, {states} states");
}

#[test]
fn programs_with_warpgroups_are_safe_in_every_order() {
    safe_in_every_order(50_000, random_groups::small, |_| true);
}

#[test]
fn stages_of_both_kinds_are_safe_in_every_order() {
    safe_in_every_order(95_000, random_groups::small_mixed, is_mixed);
}
