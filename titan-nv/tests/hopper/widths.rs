//! Every width that MMAs of warpgroups have, from the kernel to exact results: N = 8, 16, ..., 256 for floats of 32, 16 and 8 bits, and the
//! fewer ones of integers; and operands whose rows lie along M or N, with tiles so narrow that no swizzle has their rows.

use super::harness::{order_of, orders, orders_of};
use super::lowered::{Gemm, assembles, compiled, kernel, run, run_on};
use titan_core::driver::Stages;
use titan_core::ir::Elem;

const HALVES: [(Elem, Elem, Elem); 2] = [(Elem::F16, Elem::F16, Elem::F32), (Elem::Bf16, Elem::Bf16, Elem::F32)];
const FP8: [(Elem, Elem, Elem); 4] = [
    (Elem::E4m3, Elem::E4m3, Elem::F32),
    (Elem::E4m3, Elem::E5m2, Elem::F32),
    (Elem::E5m2, Elem::E4m3, Elem::F32),
    (Elem::E5m2, Elem::E5m2, Elem::F32),
];
const TF32: (Elem, Elem, Elem) = (Elem::Tf32, Elem::Tf32, Elem::F32);
pub(super) const INTEGERS: (Elem, Elem, Elem) = (Elem::I8, Elem::I8, Elem::I32);

/// PTX ISA, `wgmma.mma_async`: N of integers is 8, 24, or a multiple of 16.
fn of_integers(n: u32) -> bool {
    matches!(n, 8 | 24) || n.is_multiple_of(16)
}

/// All widths, numbered; in the quick depth some of each size of panels, large and small, on every order, others from test to test.
fn widths(test: usize) -> Vec<(usize, u32)> {
    let mut all: Vec<(usize, u32)> = (1..=32).map(|i| 8 * i).enumerate().collect();
    all.rotate_left(5 * test);
    let traits = |(number, n): &(usize, u32)| {
        let panel = [64, 32, 16, 8].into_iter().find(|panel| n.is_multiple_of(*panel));
        vec![format!("{panel:?}"), format!("large: {}", n / 129), format!("order {}", number % 4)]
    };
    test_depth::covering(all, traits)
}

fn text(made: &Stages) -> String {
    String::from_utf8(made.code.payload.clone()).expect("PTX is text")
}

/// A product whose tiles are `n` wide, of a tensor that ends in its second tile.
pub(super) fn product(elems: (Elem, Elem, Elem), n: u32, transposed: [bool; 2]) -> Gemm {
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
    let options = order_of(number);
    run(gemm, &made, &options, number as u64).unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
}

#[test]
fn every_width_of_halves() {
    for (number, n) in widths(0) {
        is_exact(&product(HALVES[number % 2], n, [false; 2]), number);
    }
}

#[test]
fn every_width_of_the_other_half_with_rows_along_m() {
    for (number, n) in widths(1) {
        is_exact(&product(HALVES[1 - number % 2], n, [true, false]), number);
    }
}

#[test]
fn every_width_of_8_bit_floats() {
    for (number, n) in widths(2) {
        is_exact(&product(FP8[number % 4], n, [false; 2]), number);
    }
}

#[test]
fn every_width_of_tf32() {
    for (number, n) in widths(3) {
        is_exact(&product(TF32, n, [false; 2]), number);
    }
}

#[test]
fn every_width_of_integers() {
    for (number, n) in widths(4).into_iter().filter(|(_, n)| of_integers(*n)) {
        is_exact(&product(INTEGERS, n, [false; 2]), number);
    }
}

/// Rows of B along N are swizzled in 32, 64 or 128 bytes if N is a multiple of 16; otherwise they lie in panels of 16 bytes without a
/// swizzle, and the results are exact in every order.
#[test]
fn every_width_of_rows_along_n() {
    for (number, n) in widths(5) {
        let gemm = product(HALVES[number % 2], n, [number % 3 == 0, true]);
        is_exact(&gemm, number);
        if !n.is_multiple_of(16) {
            let made = compiled(&kernel(&gemm));
            for options in orders_of(number) {
                run(&gemm, &made, &options, 7).unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
            }
        }
    }
}

/// B is computed, so that threads store it to shared memory, in panels where no swizzle has its rows.
#[test]
fn computed_operands_with_rows_along_n() {
    for (number, n) in [8, 24, 32, 56].into_iter().enumerate() {
        let gemm = product(HALVES[number % 2], n, [false, true]);
        let (elem, step) = (gemm.elems.1, gemm.tile[2]);
        let computed = format!(
            "%po = const 1.0 : {elem}\n%ones = splat %po : tile<{step}x{n}x{elem}>\n\
             %bq = mul %bp, %ones : tile<{step}x{n}x{elem}>\n%next = mma %ap, %bq,"
        );
        let made = compiled(&kernel(&gemm).replace("%next = mma %ap, %bp,", &computed));
        assert!(text(&made).contains(&format!("wgmma.mma_async.sync.aligned.m64n{n}k16.")), "{gemm:?}");
        assembles(&made, "sm_90a", 0);
        for options in orders_of(number) {
            run(&gemm, &made, &options, 11).unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
        }
    }
}

/// A product by roles, of which one warpgroup multiplies 64 rows with this many columns; rows of B are along N.
pub(super) fn wide(n: u32) -> String {
    let changes = [
        ("%b: in tensor<f16>[N, K]", "%b: in tensor<f16>[K, N]"),
        ("%N = dim<0> %b", "%N = dim<1> %b"),
        ("role(consumer, 8)", "role(consumer, 4)"),
        ("pipe(4, ", "pipe(2, "),
        ("%56 = permute<1, 0> %55 : smem<64x256xf16>", ""),
        ("%54, %56", "%54, %55"),
        ("%b[%n, %t]", "%b[%t, %n]"),
        ("256x64", "64x256"),
        ("128x", "64x"),
        ("const 128", "const 64"),
        ("x256x", &format!("x{n}x")),
        ("const 256", &format!("const {n}")),
        ("bytes = 49152", &format!("bytes = {}", 2 * 64 * (64 + n))),
    ];
    changes.iter().fold(include_str!("kernels/gemm_ws.tir").to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}\n{text}");
        text.replace(from, to)
    })
}

/// Two instructions share the columns. The second one begins within a panel of the swizzle that the rows would have, so there is none.
#[test]
fn widths_of_two_instructions() {
    for (number, n) in [272, 320, 384].into_iter().enumerate() {
        let made = compiled(&wide(n));
        assert!(text(&made).contains(&format!("wgmma.mma_async.sync.aligned.m64n{}k16.", n / 2)), "{n}");
        assembles(&made, "sm_90a", 0);
        let gemm = Gemm {
            elems: HALVES[0],
            stored: Elem::F16,
            transposed: [false, true],
            tile: [64, n, 64],
            size: [70, n as usize + 5, 67],
        };
        let options = &order_of(number);
        run_on(&gemm, &made, options, 3, [made.lanes.cluster, 1, 1])
            .unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
    }
}

/// Where warpgroups have no such MMA, warps multiply instead, as exactly.
#[test]
fn widths_that_warpgroups_do_not_have() {
    let mut cases: Vec<Gemm> = [40, 56, 72].map(|n| product(INTEGERS, n, [false; 2])).to_vec();
    for (number, gemm) in cases.iter_mut().enumerate() {
        // Rows that are copied by 16 bytes are whole multiples of them.
        let [_, n, step] = gemm.tile.map(|n| n as usize);
        gemm.size = [70, n + 8, 2 * step + 16];
        let made = compiled(&kernel(gemm));
        assert!(!text(&made).contains("wgmma.mma_async") && text(&made).contains("mma.sync"), "{gemm:?}");
        assembles(&made, "sm_90a", 0);
        let options = &order_of(number);
        run(gemm, &made, options, number as u64).unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
    }
}

/// Tensors narrower than the tile: its box ends outside, also before the second line of a swizzle or the second panel.
#[test]
fn tensors_narrower_than_a_tile_with_rows_along_m_and_n() {
    for (number, tile) in
        [[64, 8, 16], [64, 16, 16], [64, 24, 32], [64, 32, 32], [64, 48, 16], [64, 80, 32], [128, 128, 16]]
            .into_iter()
            .enumerate()
    {
        let base = Gemm { tile, ..product(HALVES[number % 2], 16, [true, true]) };
        let made = compiled(&kernel(&base));
        assert!(text(&made).contains("wgmma.mma_async"), "{base:?}");
        let sizes = [[1, 1, 1], [3, 7, 40], [9, 17, 16], [63, 31, 5], [65, tile[1] as usize + 1, 33]];
        // In the quick depth two of the sizes, each with one order, in turn.
        let is_meant = |nth: &usize| test_depth::is_full() || (nth + 2 * number) % 5 < 2;
        for (nth, size) in sizes.into_iter().enumerate().filter(|(nth, _)| is_meant(nth)) {
            let gemm = Gemm { size, ..base };
            let all = orders().into_iter().skip(number % 2).step_by(2).enumerate();
            for (_, options) in all.filter(|(turn, _)| test_depth::is_full() || *turn == nth % 2) {
                run(&gemm, &made, &options, 5).unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
            }
        }
    }
}
