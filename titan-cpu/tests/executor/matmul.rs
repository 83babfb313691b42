//! Matrix products: single `mma`s, whole loops, every element triple, ragged edges, fast against slow paths.
#![expect(clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "test data are small")]

use crate::common::{K, Tensor, all_options, assert_close, data, round_to, run, shape_of};
use titan_core::ir::{Const, Elem, ForKind, OpKind, Ty, mma_is_legal};
use titan_cpu::{Options, Program};

/// `c[m, n] = Σ a[m, k] · b[n, k]`, as in the design document.
fn gemm(ab: [Elem; 2], c: Elem, acc: Elem, tiles: [i32; 3], options: Options) -> Program {
    gemm_over(ab, c, acc, tiles, tiles[2] - 1, options)
}

/// The same over (K + `more`) / BK steps.
fn gemm_over(ab: [Elem; 2], c: Elem, acc: Elem, [bm, bn, bk]: [i32; 3], more: i32, options: Options) -> Program {
    let mut k = K::new("gemm");
    let (a, b) = (k.input("a", ab[0], 2), k.input("b", ab[1], 2));
    let out = k.output("c", c, 2);
    let (m, n) = (k.pid(0), k.pid(1));
    let zero = k.zero(acc);
    let init = k.op(OpKind::Splat(shape_of(&[bm, bn])), &[zero]);
    let extent = k.op(OpKind::Dim(1), &[a]);
    let (more, by) = (k.i32(more), k.i32(bk));
    let sum = k.op(OpKind::Binary(titan_core::ir::BinOp::Add), &[extent, more]);
    let hi = k.op(OpKind::Binary(titan_core::ir::BinOp::Div), &[sum, by]);
    let (lo, step) = (k.i32(0), k.i32(1));
    let open = k.0.begin_for(ForKind::Pipelined, [lo, hi, step], &[init]).unwrap();
    let (at, index) = (open.carried[0], open.index.unwrap());
    let ta = k.load(a, &[m, index], &[bm, bk]);
    let tb = k.load(b, &[n, index], &[bn, bk]);
    let tb = k.op(OpKind::Permute([1, 0, 2, 3]), &[tb]);
    let next = k.op(OpKind::Mma, &[ta, tb, at]);
    k.0.terminate(OpKind::Continue(0), &[next]);
    let result = k.0.end_loop(open, &[])[0];
    let cast = k.op(OpKind::Cast(c), &[result]);
    k.store(out, &[m, n], cast);
    k.compile(options)
}

fn reference(a: &[f64], b: &[f64], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|l| a[i * k + l] * b[j * k + l]).sum();
        }
    }
    c
}

fn check_gemm(ab: [Elem; 2], acc: Elem, tiles: [i32; 3], extents: [i32; 3], options: Options) {
    let [m, n, k] = extents.map(|e| e as usize);
    let (a, b) = (data(ab[0], m * k, 3), data(ab[1], n * k, 5));
    let ta = Tensor::new(ab[0], &[extents[0], extents[2]], &a);
    let tb = Tensor::new(ab[1], &[extents[1], extents[2]], &b);
    let tc = Tensor::zeros(acc, &[extents[0], extents[1]]);
    let program = gemm(ab, acc, acc, tiles, options);
    let programs = |axis: usize| (extents[axis] as u32).div_ceil(tiles[axis] as u32);
    let grid = [programs(0), programs(1), 1];
    for _ in 0..2 {
        run(&program, &[ta.arg(), tb.arg(), tc.arg()], grid);
    }
    let what = format!("{ab:?} {acc:?} tiles {tiles:?} extents {extents:?} {options:?}");
    assert_close(&tc.values(), &reference(&a, &b, [m, n, k]), 1e-4 * (k as f64).sqrt(), &what);
}

#[test]
fn gemm_of_every_element_triple_and_option() {
    for a in Elem::ALL {
        for b in Elem::ALL {
            for acc in Elem::ALL.into_iter().filter(|acc| mma_is_legal(a, b, *acc)) {
                for options in all_options() {
                    check_gemm([a, b], acc, [16, 8, 4], [50, 33, 19], options);
                }
            }
        }
    }
}

#[test]
fn gemm_of_many_shapes() {
    let extents = [[1, 1, 1], [16, 16, 16], [64, 64, 64], [65, 63, 70], [130, 16, 5], [7, 200, 33], [256, 64, 1200]];
    let kinds =
        [(Elem::F32, Elem::F32, [16, 16, 16]), (Elem::F16, Elem::F32, [32, 16, 8]), (Elem::I8, Elem::I32, [32, 16, 8])];
    let cases = all_options().into_iter().flat_map(|options| extents.map(|extents| (options, extents)));
    let cases = cases.flat_map(|(options, extents)| kinds.map(|kind| (options, extents, kind)));
    let traits = |(options, extents, (elem, ..)): &(Options, [i32; 3], (Elem, Elem, [i32; 3]))| {
        vec![format!("{options:?} {elem}"), format!("{extents:?}")]
    };
    for (options, extents, (elem, acc, tiles)) in test_depth::covering(cases, traits) {
        check_gemm([elem; 2], acc, tiles, extents, options);
    }
}

/// What a product has where its factors are padding: sums of zeros, or NaN where the other factor is not finite. The result
/// is larger than the factors' extents so that this is seen.
#[test]
fn steps_that_leave_out_the_last_part_of_k_do_not_add_it() {
    for options in all_options() {
        let program = gemm_over([Elem::F32; 2], Elem::F32, Elem::F32, [8, 8, 16], 0, options);
        let (a, b) = (data(Elem::F32, 8 * 20, 3), data(Elem::F32, 8 * 20, 5));
        let (ta, tb) = (Tensor::new(Elem::F32, &[8, 20], &a), Tensor::new(Elem::F32, &[8, 20], &b));
        let tc = Tensor::zeros(Elem::F32, &[8, 8]);
        run(&program, &[ta.arg(), tb.arg(), tc.arg()], [1, 1, 1]);
        let first = |of: &[f64]| of.chunks(20).flat_map(|row| row[..16].to_vec()).collect::<Vec<f64>>();
        assert_close(&tc.values(), &reference(&first(&a), &first(&b), [8, 8, 16]), 1e-3, &format!("{options:?}"));
    }
}

/// A product whose result is larger than its factors, which have an infinity and a NaN.
fn check_padding(elem: Elem, acc: Elem, tiles: [i32; 3], extents: [i32; 3]) {
    let [m, n, k] = extents.map(|e: i32| e as usize);
    let programs = [0, 1].map(|axis| (extents[axis] + tiles[axis] - 1) / tiles[axis] + 1);
    let all = [0, 1].map(|axis| programs[axis] * tiles[axis]);
    let (mut a, mut b) = (data(elem, m * k, 3), data(elem, n * k, 5));
    let infinite = round_to(elem, f64::INFINITY);
    (a[(m - 1) * k + k - 1], b[(n - 1) * k + 1]) = (infinite, f64::NAN);
    let ta = Tensor::new(elem, &[extents[0], extents[2]], &a);
    let tb = Tensor::new(elem, &[extents[1], extents[2]], &b);
    let padded = k.next_multiple_of(tiles[2] as usize);
    let at = |x: &[f64], i: usize, rows: usize, l: usize| if i < rows && l < k { x[i * k + l] } else { 0.0 };
    let element = |i: usize, j: usize| (0..padded).map(|l| at(&a, i, m, l) * at(&b, j, n, l)).sum();
    let columns = all[1] as usize;
    let want: Vec<f64> = (0..all[0] as usize * columns).map(|e| element(e / columns, e % columns)).collect();
    for options in all_options() {
        let tc = Tensor::zeros(acc, &all);
        let program = gemm([elem; 2], acc, acc, tiles, options);
        run(&program, &[ta.arg(), tb.arg(), tc.arg()], [programs[0] as u32, programs[1] as u32, 1]);
        assert_close(&tc.values(), &want, 1e-4, &format!("{elem:?} {acc:?} {extents:?} {options:?}"));
    }
}

#[test]
fn padding_is_multiplied_too() {
    check_padding(Elem::F32, Elem::F32, [8, 8, 8], [21, 13, 19]);
    check_padding(Elem::F64, Elem::F64, [8, 8, 8], [21, 13, 19]);
}

/// The products of decoding, in which one factor has few rows: those of its tile, or those that are inside of its tensor or not zeros.
#[test]
fn products_of_few_rows_with_many() {
    let kinds = [Elem::F32, Elem::F16, Elem::Bf16, Elem::E4m3];
    let cases = kinds.into_iter().flat_map(|elem| {
        [1, 2, 3, 4, 5, 7, 8, 9, 15].into_iter().flat_map(move |few| {
            [[few, 37, 70], [37, few, 70], [few, 64, 16], [few, few, 5], [few + 16, 33, 40]]
                .map(|extents| (elem, extents))
        })
    });
    let traits = |(elem, extents): &(Elem, [i32; 3])| {
        let [m, n, k] = extents;
        vec![format!("{elem} {m}"), format!("{} {k}", n % 16), format!("{m} {n}")]
    };
    for (elem, extents) in test_depth::covering(cases, traits) {
        check_padding(elem, Elem::F32, [16, 16, 16], extents);
        for options in all_options() {
            check_gemm([elem; 2], Elem::F32, [16, 16, 16], extents, options);
        }
    }
    for options in all_options() {
        check_gemm([Elem::F16; 2], Elem::F32, [4, 32, 64], [4, 100, 300], options);
        check_gemm([Elem::F16, Elem::F16], Elem::F32, [32, 8, 32], [100, 8, 300], options);
        check_gemm([Elem::F16; 2], Elem::F32, [16, 64, 64], [3, 70, 2100], options);
    }
}

/// Programs of one grid whose factors end in different places, although they start at the same addresses.
#[test]
fn products_kept_for_several_programs_are_only_theirs() {
    for options in all_options() {
        check_gemm([Elem::F32; 2], Elem::F32, [16, 64, 32], [16 * 9 + 3, 150, 96], options);
        check_gemm([Elem::F32; 2], Elem::F32, [128, 32, 16], [700, 33, 50], options);
    }
}

#[test]
fn a_loop_over_no_tile_leaves_the_accumulator() {
    for options in all_options() {
        let program = gemm([Elem::F32; 2], Elem::F32, Elem::F32, [8, 8, 8], options);
        let a = Tensor::zeros(Elem::F32, &[8, 0]);
        let c = Tensor::new(Elem::F32, &[8, 8], &[7.0; 64]);
        run(&program, &[a.arg(), a.arg(), c.arg()], [1, 1, 1]);
        assert_eq!(c.values(), [0.0; 64]);
    }
}

#[test]
fn products_of_i8_wrap_and_stay_exact() {
    let mut k = K::new("wrap");
    let a = k.input("a", Elem::I8, 2);
    let out = k.output("c", Elem::I32, 2);
    let zero = k.i32(0);
    let ta = k.load(a, &[zero, zero], &[2, 3000]);
    let tb = k.op(OpKind::Permute([1, 0, 2, 3]), &[ta]);
    let most = k.0.constant(Const::Int(Elem::I32, i32::MAX.into()));
    let acc = k.op(OpKind::Splat(shape_of(&[2, 2])), &[most]);
    let c = k.op(OpKind::Mma, &[ta, tb, acc]);
    k.store(out, &[zero, zero], c);
    let program = k.compile(Options::default());
    let a = Tensor::new(Elem::I8, &[2, 3000], &[-128.0; 6000]);
    let c = Tensor::zeros(Elem::I32, &[2, 2]);
    run(&program, &[a.arg(), c.arg()], [1, 1, 1]);
    assert_eq!(c.int_values(), [i64::from(i32::MAX.wrapping_add(3000 * 16384)); 4]);
}

#[test]
fn batched_products_and_reused_accumulators() {
    let mut k = K::new("batched");
    let (a, b) = (k.input("a", Elem::F32, 3), k.input("b", Elem::F32, 3));
    let out = k.output("c", Elem::F32, 3);
    let zero = k.i32(0);
    let ta = k.load(a, &[zero, zero, zero], &[3, 4, 5]);
    let tb = k.load(b, &[zero, zero, zero], &[3, 5, 6]);
    let one = k.0.constant(Const::Float(Elem::F32, 1.0));
    let acc = k.op(OpKind::Splat(shape_of(&[3, 4, 6])), &[one]);
    let first = k.op(OpKind::Mma, &[ta, tb, acc]);
    // The accumulator is used again afterwards, so the product must not be made in its place.
    let second = k.op(OpKind::Mma, &[ta, tb, first]);
    let sum = k.op(OpKind::Binary(titan_core::ir::BinOp::Add), &[first, second]);
    k.store(out, &[zero, zero, zero], sum);
    assert_eq!(k.0.ty(sum), Ty::Tile(Elem::F32, shape_of(&[3, 4, 6])));
    let program = k.compile(Options::default());
    let (a, b) = (data(Elem::F32, 60, 1), data(Elem::F32, 90, 2));
    let (ta, tb) = (Tensor::new(Elem::F32, &[3, 4, 5], &a), Tensor::new(Elem::F32, &[3, 5, 6], &b));
    let c = Tensor::zeros(Elem::F32, &[3, 4, 6]);
    run(&program, &[ta.arg(), tb.arg(), c.arg()], [1, 1, 1]);
    let mut want = Vec::new();
    for l in 0..3 {
        for i in 0..4 {
            for j in 0..6 {
                let p: f64 = (0..5).map(|x| a[l * 20 + i * 5 + x] * b[l * 30 + x * 6 + j]).sum();
                want.push((p + 1.0) + (2.0 * p + 1.0));
            }
        }
    }
    assert_close(&c.values(), &want, 1e-5, "batched");
}
