//! Blocked layouts, and what is derived from layouts.

use crate::random::{Random, held};
use std::collections::BTreeSet;
use titan_core::layout::{Bit, Layout, check};
use titan_core::plan::wide;

fn good(layout: &Layout) {
    check::layout(layout).unwrap_or_else(|e| panic!("{layout}: {e}"));
}

fn threads(layout: &Layout) -> Vec<(usize, usize)> {
    let (lanes, warps) = (1 << layout.lane_bits().len(), 1 << layout.warp_bits().len());
    (0..warps).flat_map(|w| (0..lanes).map(move |l| (l, w))).collect()
}

/// The next random layout, of rank 1 to 4.
fn next(random: &mut Random) -> Layout {
    let rank = 1 + random.below(4) as usize;
    let (lanes, warps) = (random.of(&[32, 64]), 1 << random.below(4));
    let shape = random.shape(rank, 1 << 11);
    let layout = random.blocked(&shape, lanes, warps);
    assert_eq!(layout.threads(), (lanes * warps) as usize);
    assert_eq!(layout.extents(), shape);
    layout
}

#[test]
fn every_element_is_held_once() {
    let mut random = Random::new(1);
    for _ in 0..300 {
        good(&next(&mut random));
    }
}

#[test]
fn wide_layouts_hold_every_element_once_and_runs_of_neighbours() {
    let mut random = Random::new(2);
    for _ in 0..300 {
        let rank = 1 + random.below(4) as usize;
        let shape = random.shape(rank, 1 << 11);
        let (bits, lanes, warps) = (random.of(&[1, 4, 8, 16, 32, 64]), random.of(&[32, 64]), 1 << random.below(5));
        let layout = wide(&shape, bits, lanes, warps);
        good(&layout);
        assert_eq!(layout.threads(), (lanes * warps) as usize);
        let (last, extent) = (rank - 1, shape[rank - 1]);
        let vector = layout.vector(last);
        assert!(extent % vector == 0 && vector * bits.max(8) <= 128, "{layout}: {vector} of {bits} bits");
        // Lanes go along the last axis first: a warp's registers of one number are one line, as far as rows go.
        let line = vector * lanes;
        let at = |lane: usize| layout.coords(0, lane, 0)[last];
        for lane in 1..lanes as usize {
            let wanted = at(lane - 1) + vector;
            let wraps = wanted >= extent.next_power_of_two().min(line);
            assert!(wraps || at(lane) == wanted, "{layout}: lane {lane}");
        }
    }
}

#[test]
fn derived_layouts_hold_what_they_should() {
    let mut random = Random::new(3);
    for _ in 0..250 {
        let layout = next(&mut random);
        let rank = layout.rank();
        let axis = random.below(rank as u32) as usize;
        let perm: Vec<u8> = random.permutation(rank).iter().map(|p| *p as u8).collect();
        let turned = layout.permuted(&perm);
        good(&turned);
        let narrow = (rank > 1).then(|| layout.without(axis));
        let deep = (rank < 4).then(|| layout.batched(3));
        narrow.iter().chain(&deep).for_each(good);
        for (lane, warp) in threads(&layout).into_iter().step_by(7) {
            let own = held(&layout, lane, warp);
            let turn = |at: &[u32; 4]| {
                let mut out = [0; 4];
                (0..rank).for_each(|i| out[i] = at[usize::from(perm[i])]);
                out
            };
            let wanted: BTreeSet<_> = own.iter().map(turn).collect();
            assert_eq!(held(&turned, lane, warp).into_iter().collect::<BTreeSet<_>>(), wanted, "{layout} by {perm:?}");
            if let Some(narrow) = &narrow {
                let drop = |at: &[u32; 4]| {
                    let mut rest: Vec<u32> = at.to_vec();
                    rest.remove(axis);
                    [rest[0], rest[1], rest[2], 0]
                };
                let has: BTreeSet<_> = held(narrow, lane, warp).into_iter().collect();
                // Every thread that held a part holds the result.
                assert!(own.iter().all(|at| has.contains(&drop(at))), "{layout} without {axis}");
            }
            if let Some(deep) = &deep {
                let wanted: BTreeSet<_> = own.iter().flat_map(|at| (0..3).map(|b| [b, at[0], at[1], at[2]])).collect();
                assert_eq!(held(deep, lane, warp).into_iter().collect::<BTreeSet<_>>(), wanted, "{layout} three times");
                let each = layout.registers();
                for r in 0..deep.registers() {
                    assert_eq!(
                        deep.coords(r, lane, warp)[0] as usize,
                        r / each,
                        "parts of a batch lie one after the other"
                    );
                }
            }
        }
    }
}

#[test]
fn what_layouts_say_of_themselves_is_so() {
    let mut random = Random::new(4);
    for _ in 0..300 {
        let layout = next(&mut random);
        let atom = layout.atom();
        let real: u64 = layout.extents().iter().map(|n| u64::from(*n)).product();
        let copies = layout.lane_bits().iter().chain(layout.warp_bits()).filter(|b| **b == Bit::Copy).count();
        let held = ((layout.registers() * layout.threads()) >> copies) as u64;
        assert_eq!(u64::from(layout.waste()), (held - real) * 100 / real, "{layout}");
        for axis in 0..layout.rank() {
            let beyond = threads(&layout).iter().any(|(l, w)| {
                (0..layout.registers()).any(|r| layout.coords(r, *l, *w)[axis] >= layout.extents()[axis])
            });
            assert_eq!(layout.is_padded(axis), beyond, "{layout}, axis {axis}");
            assert_eq!(layout.repetitions()[axis], layout.extents()[axis].div_ceil(atom[axis]));
            let n = layout.vector(axis) as usize;
            let runs = |n: usize| {
                (0..layout.registers()).all(|r| {
                    let (start, mut at) = (r / n * n, layout.register_coords(r));
                    at[axis] = at[axis].wrapping_sub((r - start) as u32);
                    at == layout.register_coords(start) && at[axis].is_multiple_of(n as u32)
                })
            };
            assert!(runs(n), "{layout}: {n} neighbours along {axis}");
            // Repetitions may add up to more, but within the atom it is the most.
            let whole = n >= 1 << layout.register_bits().len();
            assert!(whole || !runs(2 * n), "{layout}: more than {n} neighbours along {axis}");
        }
    }
}

#[test]
fn the_check_finds_what_is_wrong() {
    let step = |axis, by| Bit::Step { axis, by };
    let layout = |lanes: Vec<Bit>, regs: Vec<Bit>| Layout::new(&[8], regs, lanes, vec![]);
    let says = |l: Layout| check::layout(&l).expect_err("it is wrong");
    assert_eq!(check::layout(&layout(vec![step(0, 1), step(0, 2)], vec![step(0, 4)])), Ok(()));
    assert_eq!(check::layout(&layout(vec![step(0, 1), Bit::Copy], vec![step(0, 2), step(0, 4)])), Ok(()));
    assert!(says(layout(vec![step(0, 1), step(0, 1)], vec![step(0, 4)])).contains("held"));
    assert!(says(layout(vec![step(0, 1)], vec![step(0, 4), step(0, 4)])).contains("in registers"));
    assert!(says(layout(vec![step(0, 2)], vec![step(0, 4), step(0, 8)])).contains("no thread holds"));
    assert!(
        says(layout(vec![step(0, 1), Bit::Copy], vec![Bit::Copy, step(0, 2), step(0, 4)])).contains("in registers")
    );
}
