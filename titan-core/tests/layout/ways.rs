//! Conversions by looking at every thread.

use crate::random::Random;
use std::collections::BTreeSet;
use titan_core::layout::convert::{Way, way};
use titan_core::layout::{Layout, check};
use titan_core::target::Banks;

fn inside(layout: &Layout, at: [u32; 4]) -> bool {
    at.iter().zip(layout.extents()).all(|(x, n)| x < n)
}

/// For each register of `to`, those of `from` that hold its element in every thread where it has one.
fn maps(from: &Layout, to: &Layout) -> Vec<BTreeSet<usize>> {
    let mut all = vec![(0..from.registers()).collect::<BTreeSet<_>>(); to.registers()];
    for warp in 0..1 << to.warp_bits().len() {
        for lane in 0..1 << to.lane_bits().len() {
            let have: Vec<[u32; 4]> = (0..from.registers()).map(|r| from.coords(r, lane, warp)).collect();
            for (r, good) in all.iter_mut().enumerate() {
                let want = to.coords(r, lane, warp);
                if inside(to, want) {
                    good.retain(|s| have[*s] == want);
                }
            }
        }
    }
    all
}

#[test]
fn registers_move_where_every_thread_has_what_it_needs() {
    let mut random = Random::new(11);
    let (mut direct, mut shared) = (0, 0);
    for _ in 0..400 {
        let rank = 1 + random.below(3) as usize;
        let (lanes, warps, shape) = (random.of(&[32, 64]), 1 << random.below(3), random.shape(rank, 1 << 10));
        let from = random.blocked(&shape, lanes, warps);
        let to = match random.below(4) {
            0 => from.clone(),
            // The same threads, registers otherwise.
            1 => {
                let mut regs = from.register_bits().to_vec();
                if regs.len() > 1 {
                    let (i, j) = (random.below(regs.len() as u32) as usize, random.below(regs.len() as u32) as usize);
                    regs.swap(i, j);
                }
                Layout::new(&shape, regs, from.lane_bits().to_vec(), from.warp_bits().to_vec())
            }
            _ => random.blocked(&shape, lanes, warps),
        };
        let maps = maps(&from, &to);
        let possible = maps.iter().all(|m| !m.is_empty());
        match way(&from, &to, 32, &Banks::default()) {
            Way::Registers(map) => {
                direct += 1;
                assert_eq!(map.len(), to.registers());
                for (r, s) in map.iter().enumerate() {
                    assert!(maps[r].contains(s), "{from} to {to}: register {r} is not {s}");
                }
            }
            Way::Shared(encoding) => {
                shared += 1;
                assert!(!possible, "{from} to {to} needs no shared memory");
                check::encoding(&encoding).unwrap_or_else(|e| panic!("{encoding:?}: {e}"));
                assert_eq!(encoding.extents, shape);
            }
        }
    }
    assert!(direct > 80 && shared > 80, "{direct} by registers, {shared} through shared memory");
}
