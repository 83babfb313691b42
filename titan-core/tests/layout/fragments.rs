//! Fragments of matrix instructions.

use crate::random::Random;
use titan_core::ir::Elem;
use titan_core::lane::MmaAtom;
use titan_core::layout::atoms::{Atom, WarpGrid};
use titan_core::layout::{Bit, Layout, check};

/// The shapes of `mma.sync` that warps of 32 lanes have.
pub(crate) const ATOMS: [MmaAtom; 5] = [
    MmaAtom { m: 16, n: 8, k: 16, a: Elem::F16, b: Elem::F16, acc: Elem::F32 },
    MmaAtom { m: 16, n: 8, k: 8, a: Elem::Tf32, b: Elem::Tf32, acc: Elem::F32 },
    MmaAtom { m: 16, n: 8, k: 32, a: Elem::I8, b: Elem::U8, acc: Elem::I32 },
    MmaAtom { m: 16, n: 8, k: 32, a: Elem::E4m3, b: Elem::E5m2, acc: Elem::F32 },
    MmaAtom { m: 8, n: 8, k: 4, a: Elem::F64, b: Elem::F64, acc: Elem::F64 },
];

/// The instruction with its fragments, which are in quads.
pub(crate) fn quads(mma: &MmaAtom) -> Atom {
    Atom::in_quads(*mma, mma.m, mma.n)
}

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
        let acc = quads(&atom).accumulator(&[m, n], grid);
        let (a, b) = (quads(&atom).operand_a(&[m, k], grid), quads(&atom).operand_b(&[n, k], grid));
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
        let a = quads(f16).operand_a(&[16, 16], ONE);
        for i in 0..8u32 {
            let row = if matches!(i, 0 | 1 | 4 | 5) { g } else { g + 8 };
            let column = t * 2 + (i & 1) + if i >= 4 { 8 } else { 0 };
            assert_eq!(a.coords(i as usize, lane, 0)[..2], [row, column], "f16 a{i}");
        }
        let b = quads(f16).operand_b(&[8, 16], ONE);
        for i in 0..4u32 {
            let row = t * 2 + (i & 1) + if i >= 2 { 8 } else { 0 };
            assert_eq!(b.coords(i as usize, lane, 0)[..2], [g, row], "f16 b{i}");
        }
        let c = quads(f16).accumulator(&[16, 8], ONE);
        for i in 0..4u32 {
            let row = if i < 2 { g } else { g + 8 };
            assert_eq!(c.coords(i as usize, lane, 0)[..2], [row, t * 2 + (i & 1)], "c{i}");
        }
        let a = quads(&ATOMS[1]).operand_a(&[16, 8], ONE);
        for (i, at) in [[g, t], [g + 8, t], [g, t + 4], [g + 8, t + 4]].into_iter().enumerate() {
            assert_eq!(a.coords(i, lane, 0)[..2], at, "tf32 a{i}");
        }
        let a = quads(&ATOMS[2]).operand_a(&[16, 32], ONE);
        for i in 0..16u32 {
            let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
            let column = t * 4 + (i & 3) + if i >= 8 { 16 } else { 0 };
            assert_eq!(a.coords(i as usize, lane, 0)[..2], [row, column], "i8 a{i}");
        }
        let b = quads(&ATOMS[2]).operand_b(&[8, 32], ONE);
        for i in 0..8u32 {
            let row = t * 4 + (i & 3) + if i >= 4 { 16 } else { 0 };
            assert_eq!(b.coords(i as usize, lane, 0)[..2], [g, row], "i8 b{i}");
        }
        let f64 = &ATOMS[4];
        assert_eq!(quads(f64).operand_a(&[8, 4], ONE).coords(0, lane, 0)[..2], [g, t]);
        assert_eq!(quads(f64).operand_b(&[8, 4], ONE).coords(0, lane, 0)[..2], [g, t]);
        for i in 0..2 {
            assert_eq!(quads(f64).accumulator(&[8, 8], ONE).coords(i, lane, 0)[..2], [g, t * 2 + i as u32]);
        }
    }
}

#[test]
fn registers_are_as_many_as_instructions_take() {
    for atom in &ATOMS {
        let count = atom.registers(32);
        let words = |layout: Layout, bits: u32| layout.registers() / (32 / bits).max(1) as usize;
        assert_eq!(words(quads(atom).operand_a(&[atom.m, atom.k], ONE), atom.a.bits()), count.a, "{atom:?}");
        assert_eq!(words(quads(atom).operand_b(&[atom.n, atom.k], ONE), atom.b.bits()), count.b, "{atom:?}");
        assert_eq!(quads(atom).accumulator(&[atom.m, atom.n], ONE).registers(), count.c, "{atom:?}");
    }
}

/// Rows and columns of the fragments of `v_mfma`, as the manual's tables have them: *AMD Instinct MI300 Instruction Set Architecture*, section
/// 7.1, for instructions of one block with operands of 8, 16 and 32 bits.
#[test]
fn fragments_in_columns_are_those_of_the_manual() {
    for (mma, run) in COLUMNS.into_iter().take(6) {
        let atom = Atom::in_columns(mma);
        assert_eq!(atom.check(64), Ok(()), "{mma:?}");
        let m = mma.m;
        let (a, acc) = (atom.operand_a(&[m, mma.k], ONE), atom.accumulator(&[m, m], ONE));
        assert_eq!(atom.operand_b(&[m, mma.k], ONE), a, "A and B are alike");
        assert_eq!((a.registers(), acc.registers()), (run as usize, (m * m / 64) as usize));
        for lane in 0..64u32 {
            for i in 0..run {
                assert_eq!(a.coords(i as usize, lane as usize, 0)[..2], [lane % m, run * (lane / m) + i]);
            }
            for i in 0..m * m / 64 {
                let row = i / 4 * (4 * 64 / m) + 4 * (lane / m) + i % 4;
                assert_eq!(acc.coords(i as usize, lane as usize, 0)[..2], [row, lane % m]);
            }
        }
    }
}

/// The instructions of a warp of 64 lanes: m, which is n, and k, with the elements that a lane holds of an operand.
const COLUMNS: [(MmaAtom, u32); 7] = {
    const fn mma(m: u32, k: u32, a: Elem, acc: Elem) -> MmaAtom {
        MmaAtom { m, n: m, k, a, b: a, acc }
    }
    [
        (mma(16, 16, Elem::F16, Elem::F32), 4),
        (mma(32, 8, Elem::Bf16, Elem::F32), 4),
        (mma(16, 32, Elem::I8, Elem::I32), 8),
        (mma(32, 16, Elem::E4m3, Elem::F32), 8),
        (mma(16, 8, Elem::Tf32, Elem::F32), 2),
        (mma(32, 2, Elem::F32, Elem::F32), 1),
        (mma(16, 4, Elem::F64, Elem::F64), 1),
    ]
};

/// The same section, "64-bit" rows: a lane holds every fourth row of a column.
#[test]
fn results_of_64_bits_are_four_rows_apart() {
    let acc = Atom::in_columns(COLUMNS[6].0).accumulator(&[16, 16], ONE);
    for lane in 0..64u32 {
        for i in 0..4 {
            assert_eq!(acc.coords(i as usize, lane as usize, 0)[..2], [4 * i + lane / 16, lane % 16]);
        }
    }
}

/// Exchanged operands leave the transpose, and several instructions together hold each element of their operands once.
#[test]
fn exchanged_operands_leave_the_transpose() {
    for (mma, run) in COLUMNS {
        let plain = Atom::in_columns(mma);
        for instructions in [1, 2, 4] {
            let atom = plain.clone().exchanged().over(instructions);
            assert_eq!(atom.check(64), Ok(()), "{mma:?}");
            assert_eq!((atom.k, atom.mma), (mma.k * instructions, mma));
            let m = mma.m;
            let (acc, turned) = (atom.accumulator(&[m, m], ONE), plain.accumulator(&[m, m], ONE));
            let a = atom.operand_a(&[m, atom.k], ONE);
            assert_eq!(atom.operand_b(&[m, atom.k], ONE), a);
            assert_eq!(a.vector(1), run * instructions, "they are adjacent");
            for lane in 0..64usize {
                for i in 0..acc.registers() {
                    let [row, column, ..] = turned.coords(i, lane, 0);
                    assert_eq!(acc.coords(i, lane, 0)[..2], [column, row]);
                }
                // All lanes of a row together give an instruction elements that no other instruction has.
                for i in 0..a.registers() as u32 {
                    let at = [lane as u32 % m, run * instructions * (lane as u32 / m) + i];
                    assert_eq!(a.coords(i as usize, lane, 0)[..2], at);
                }
            }
        }
    }
}

/// An accumulator becomes an operand within registers if as many elements of a row are adjacent in both: one of 64 bits, or four of 32 bits.
#[test]
fn accumulators_become_operands() {
    for (mma, run) in COLUMNS {
        for instructions in [1, 2, 4] {
            let atom = Atom::in_columns(mma).over(instructions);
            let alike = run * instructions == if mma.acc.bits() == 64 { 1 } else { 4 };
            assert_eq!(atom.clone().exchanged().takes_accumulators(), alike, "{instructions} {mma:?}");
            assert!(!atom.takes_accumulators(), "columns are not rows");
        }
    }
}

#[test]
fn fragments_that_do_not_hold_their_operands_are_refused() {
    let columns = COLUMNS.map(|(mma, _)| Atom::in_columns(mma));
    let exchanged = columns.clone().map(Atom::exchanged);
    let wide = exchanged.clone().map(|atom| atom.over(2));
    let of_waves = columns.into_iter().chain(exchanged).chain(wide).map(|atom| (atom, 64));
    for (right, lanes) in ATOMS.iter().map(|mma| (quads(mma), 32)).chain(of_waves) {
        assert_eq!(right.check(lanes), Ok(()), "{right:?}");
        assert!(right.check(96 - lanes).is_err(), "a warp of other lanes: {right:?}");
        let mut wrong: Vec<Atom> = Vec::new();
        let mut change = |change: &dyn Fn(&mut Atom)| {
            let mut atom = right.clone();
            change(&mut atom);
            wrong.push(atom);
        };
        let other = |bit: Bit| match bit {
            Bit::Step { axis, by } => Bit::Step { axis: 1 - axis, by },
            Bit::Copy => Bit::Copy,
        };
        for at in 0..right.a.lanes.len() {
            change(&|atom| _ = atom.a.lanes.remove(at));
            change(&|atom| atom.b.lanes[at] = Bit::Copy);
            change(&|atom| atom.acc.lanes[at] = other(atom.acc.lanes[at]));
            change(&|atom| atom.acc.lanes[at] = atom.acc.lanes[(at + 1) % 5]);
        }
        change(&|atom| atom.acc.registers.push(Bit::Step { axis: 0, by: atom.rows }));
        change(&|atom| _ = atom.acc.registers.pop());
        change(&|atom| atom.rows *= 2);
        change(&|atom| atom.columns /= 2);
        change(&|atom| atom.k *= 2);
        change(&|atom| atom.k /= 2);
        change(&|atom| atom.mma.k *= 4);
        change(&|atom| atom.mma.k = 0);
        for atom in wrong {
            assert!(atom.check(lanes).is_err(), "{atom:?}");
        }
    }
}
