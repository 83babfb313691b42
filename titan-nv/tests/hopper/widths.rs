//! Every width that MMAs of warpgroups have, from the kernel to exact results: N = 8, 16, ..., 256 for floats of 16 and of 8 bits, and the
//! fewer ones of integers; and operands whose rows lie along M or N, with tiles so narrow that they are padded, or have no such MMA.

use super::harness::orders;
use super::lowered::{Gemm, assembles, compiled, kernel, run};
use titan_core::driver::Stages;
use titan_core::ir::Elem;

const HALVES: [(Elem, Elem, Elem); 2] = [(Elem::F16, Elem::F16, Elem::F32), (Elem::Bf16, Elem::Bf16, Elem::F32)];
const FP8: [(Elem, Elem, Elem); 4] = [
    (Elem::E4m3, Elem::E4m3, Elem::F32),
    (Elem::E4m3, Elem::E5m2, Elem::F32),
    (Elem::E5m2, Elem::E4m3, Elem::F32),
    (Elem::E5m2, Elem::E5m2, Elem::F32),
];
const INTEGERS: (Elem, Elem, Elem) = (Elem::I8, Elem::I8, Elem::I32);

/// PTX ISA, `wgmma.mma_async`: N of integers is 8, 24, or a multiple of 16.
fn of_integers(n: u32) -> bool {
    matches!(n, 8 | 24) || n.is_multiple_of(16)
}

fn widths() -> impl Iterator<Item = u32> {
    (1..=32).map(|i| 8 * i)
}

fn text(made: &Stages) -> String {
    String::from_utf8(made.code.payload.clone()).expect("PTX is text")
}

/// A product whose tiles are `n` wide, of a tensor that ends in its second tile.
fn product(elems: (Elem, Elem, Elem), n: u32, transposed: [bool; 2]) -> Gemm {
    let step = 32 * 8 / elems.0.bits();
    let size = [70, n as usize + 5, 2 * step as usize + 3];
    Gemm { elems, stored: elems.2, transposed, tile: [64, n, step], size }
}

/// One instruction multiplies the whole width, and the result is exact in one of the orders, which take turns.
#[track_caller]
fn is_exact(gemm: &Gemm, number: usize) {
    let made = compiled(&kernel(gemm));
    let [_, n, step] = gemm.tile;
    let mma = format!("wgmma.mma_async.sync.aligned.m64n{n}k{step}.");
    assert!(text(&made).contains(&mma), "{gemm:?} has no `{mma}`");
    assembles(&made, "sm_90a", 0);
    let options = &orders()[number % 4];
    run(gemm, &made, options, number as u64).unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
}

#[test]
fn every_width_of_halves() {
    for (number, n) in widths().enumerate() {
        is_exact(&product(HALVES[number % 2], n, [false; 2]), number);
    }
}

#[test]
fn every_width_of_the_other_half_with_rows_along_m() {
    for (number, n) in widths().enumerate() {
        is_exact(&product(HALVES[1 - number % 2], n, [true, false]), number);
    }
}

#[test]
fn every_width_of_8_bit_floats() {
    for (number, n) in widths().enumerate() {
        is_exact(&product(FP8[number % 4], n, [false; 2]), number);
    }
}

#[test]
fn every_width_of_integers() {
    for (number, n) in widths().filter(|n| of_integers(*n)).enumerate() {
        is_exact(&product(INTEGERS, n, [false; 2]), number);
    }
}

/// Rows of B along N are swizzled in 32, 64 or 128 bytes, so N is a multiple of 16.
#[test]
fn every_width_of_rows_along_n() {
    for (number, n) in widths().filter(|n| n.is_multiple_of(16)).enumerate() {
        is_exact(&product(HALVES[number % 2], n, [number % 3 == 0, true]), number);
    }
}

/// Where warpgroups have no such MMA, warps multiply instead, as exactly.
#[test]
fn widths_that_warpgroups_do_not_have() {
    let mut cases: Vec<Gemm> = [8, 24, 40, 56].map(|n| product(HALVES[0], n, [false, true])).to_vec();
    cases.extend([40, 56, 72].map(|n| product(INTEGERS, n, [false; 2])));
    for (number, gemm) in cases.iter_mut().enumerate() {
        // Rows that are copied by 16 bytes are whole multiples of them.
        let [_, n, step] = gemm.tile.map(|n| n as usize);
        gemm.size = [70, n + 8, 2 * step + 16];
        let made = compiled(&kernel(gemm));
        assert!(!text(&made).contains("wgmma.mma_async") && text(&made).contains("mma.sync"), "{gemm:?}");
        assembles(&made, "sm_90a", 0);
        let options = &orders()[number % 4];
        run(gemm, &made, options, number as u64).unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
    }
}

/// Tensors narrower than the tile: its box ends outside, also before the second line of a swizzle or the second panel.
#[test]
fn tensors_narrower_than_a_tile_with_rows_along_m_and_n() {
    for (number, tile) in
        [[64, 16, 16], [64, 32, 32], [64, 48, 16], [64, 80, 32], [128, 128, 16]].into_iter().enumerate()
    {
        let base = Gemm { tile, ..product(HALVES[number % 2], 16, [true, true]) };
        let made = compiled(&kernel(&base));
        assert!(text(&made).contains("wgmma.mma_async"), "{base:?}");
        for size in [[1, 1, 1], [3, 7, 40], [9, 17, 16], [63, 31, 5], [65, tile[1] as usize + 1, 33]] {
            let gemm = Gemm { size, ..base };
            for options in orders().into_iter().skip(number % 2).step_by(2) {
                run(&gemm, &made, &options, 5).unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
            }
        }
    }
}
