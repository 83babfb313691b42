//! Fragments of matrix instructions.

use crate::random::Random;
use titan_core::ir::Elem;
use titan_core::lane::MmaAtom;
use titan_core::layout::atoms::{WarpGrid, accumulator, operand_a, operand_b};
use titan_core::layout::{Layout, check};

/// The shapes of `mma.sync` that warps of 32 lanes have.
pub(crate) const ATOMS: [MmaAtom; 5] = [
    MmaAtom { m: 16, n: 8, k: 16, a: Elem::F16, b: Elem::F16, acc: Elem::F32 },
    MmaAtom { m: 16, n: 8, k: 8, a: Elem::Tf32, b: Elem::Tf32, acc: Elem::F32 },
    MmaAtom { m: 16, n: 8, k: 32, a: Elem::I8, b: Elem::U8, acc: Elem::I32 },
    MmaAtom { m: 16, n: 8, k: 32, a: Elem::E4m3, b: Elem::E5m2, acc: Elem::F32 },
    MmaAtom { m: 8, n: 8, k: 4, a: Elem::F64, b: Elem::F64, acc: Elem::F64 },
];

/// One instruction of one warp.
pub(crate) const ONE: WarpGrid = WarpGrid { m: 1, n: 1, all: 1 };

fn good(layout: &Layout) {
    check::layout(layout).unwrap_or_else(|e| panic!("{layout}: {e}"));
}

#[test]
fn operands_of_any_extent_are_held_whole() {
    let mut random = Random::new(5);
    for _ in 0..test_depth::cases(120, 60) {
        let atom = random.of(&ATOMS);
        let [m, n, k] = [random.shape(1, 200)[0], random.shape(1, 200)[0], random.shape(1, 200)[0]];
        let (wm, wn, spare) = (1 << random.below(3), 1 << random.below(3), 1 << random.below(2));
        let grid = WarpGrid { m: wm, n: wn, all: wm * wn * spare };
        let acc = accumulator(&atom, &[m, n], grid);
        let (a, b) = (operand_a(&atom, &[m, k], grid), operand_b(&atom, &[n, k], grid));
        for layout in [&acc, &a, &b] {
            good(layout);
            assert_eq!(layout.threads(), (32 * grid.all) as usize);
        }
        good(&acc.batched(2));
        // Warps agree on which rows and columns they multiply.
        for warp in 0..grid.all as usize {
            assert_eq!(a.coords(0, 0, warp)[0], acc.coords(0, 0, warp)[0], "{a} and {acc}");
            assert_eq!(b.coords(0, 0, warp)[0], acc.coords(0, 0, warp)[1], "{b} and {acc}");
        }
    }
}

/// Row and column of each register of a fragment, as the manual's tables have them: PTX ISA, "Warp-level matrix fragment
/// layouts". Words of 32 bits are taken apart into elements.
#[test]
fn the_manual_says_so() {
    let (group, t) = (|lane: usize| lane as u32 / 4, |lane: usize| lane as u32 % 4);
    for lane in 0..32 {
        let (g, t) = (group(lane), t(lane));
        let f16 = &ATOMS[0];
        let a = operand_a(f16, &[16, 16], ONE);
        for i in 0..8u32 {
            let row = if matches!(i, 0 | 1 | 4 | 5) { g } else { g + 8 };
            let column = t * 2 + (i & 1) + if i >= 4 { 8 } else { 0 };
            assert_eq!(a.coords(i as usize, lane, 0)[..2], [row, column], "f16 a{i}");
        }
        let b = operand_b(f16, &[8, 16], ONE);
        for i in 0..4u32 {
            let row = t * 2 + (i & 1) + if i >= 2 { 8 } else { 0 };
            assert_eq!(b.coords(i as usize, lane, 0)[..2], [g, row], "f16 b{i}");
        }
        let c = accumulator(f16, &[16, 8], ONE);
        for i in 0..4u32 {
            let row = if i < 2 { g } else { g + 8 };
            assert_eq!(c.coords(i as usize, lane, 0)[..2], [row, t * 2 + (i & 1)], "c{i}");
        }
        let a = operand_a(&ATOMS[1], &[16, 8], ONE);
        for (i, at) in [[g, t], [g + 8, t], [g, t + 4], [g + 8, t + 4]].into_iter().enumerate() {
            assert_eq!(a.coords(i, lane, 0)[..2], at, "tf32 a{i}");
        }
        let a = operand_a(&ATOMS[2], &[16, 32], ONE);
        for i in 0..16u32 {
            let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
            let column = t * 4 + (i & 3) + if i >= 8 { 16 } else { 0 };
            assert_eq!(a.coords(i as usize, lane, 0)[..2], [row, column], "i8 a{i}");
        }
        let b = operand_b(&ATOMS[2], &[8, 32], ONE);
        for i in 0..8u32 {
            let row = t * 4 + (i & 3) + if i >= 4 { 16 } else { 0 };
            assert_eq!(b.coords(i as usize, lane, 0)[..2], [g, row], "i8 b{i}");
        }
        let f64 = &ATOMS[4];
        assert_eq!(operand_a(f64, &[8, 4], ONE).coords(0, lane, 0)[..2], [g, t]);
        assert_eq!(operand_b(f64, &[8, 4], ONE).coords(0, lane, 0)[..2], [g, t]);
        for i in 0..2 {
            assert_eq!(accumulator(f64, &[8, 8], ONE).coords(i, lane, 0)[..2], [g, t * 2 + i as u32]);
        }
    }
}

#[test]
fn registers_are_as_many_as_instructions_take() {
    for atom in &ATOMS {
        let count = atom.registers(32);
        let words = |layout: Layout, bits: u32| layout.registers() / (32 / bits).max(1) as usize;
        assert_eq!(words(operand_a(atom, &[atom.m, atom.k], ONE), atom.a.bits()), count.a, "{atom:?}");
        assert_eq!(words(operand_b(atom, &[atom.n, atom.k], ONE), atom.b.bits()), count.b, "{atom:?}");
        assert_eq!(accumulator(atom, &[atom.m, atom.n], ONE).registers(), count.c, "{atom:?}");
    }
}
