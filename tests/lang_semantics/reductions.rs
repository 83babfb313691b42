//! Reductions, scans, matrix products, and the operations that move elements.

use titan::lang::{MmaTypes, Tile, ops};
use titan::prelude::*;

use crate::{tensor, tile};

/// `0, 1, …` in shape `[2, 3, 4]`.
fn cube() -> Tile<i32, D3<2, 3, 4>> {
    iota::<24>().reshape::<D3<2, 3, 4>>()
}

#[test]
fn reductions_drop_their_axis() {
    assert_eq!(cube().reduce_sum::<0>().to_vec(), [12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34]);
    assert_eq!(cube().reduce_sum::<1>().to_vec(), [12, 15, 18, 21, 48, 51, 54, 57]);
    let rows: Tile<i32, D2<2, 3>> = cube().reduce_sum::<2>();
    assert_eq!(rows.to_vec(), [6, 22, 38, 54, 70, 86]);
    let whole: i32 = rows.reduce_sum::<1>().reduce_sum::<0>();
    assert_eq!(whole, 276);
    let four = iota::<16>().reshape::<D4<2, 2, 2, 2>>();
    assert_eq!(four.reduce_max::<3>().to_vec(), [1, 3, 5, 7, 9, 11, 13, 15]);
    assert_eq!(four.reduce_min::<0>().to_vec(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(tile::<i32, 4>(&[2, 3, -4, 5]).reduce_prod::<0>(), -120);
    assert_eq!(tile::<u32, 3>(&[5, 6, 7]).reduce::<0>(0, |a, b| a ^ b), 4);
}

#[test]
fn integer_sums_wrap_in_their_own_type() {
    assert_eq!(tile::<i8, 3>(&[100, 100, 100]).reduce_sum::<0>(), 44);
    assert_eq!(tile::<u8, 3>(&[16, 16, 3]).reduce_prod::<0>(), 0);
    assert_eq!(tile::<i64, 2>(&[i64::MAX, 1]).reduce_sum::<0>(), i64::MIN);
}

#[test]
fn half_sums_round_once() {
    // Rounded after every addition, 2048 + 1 + 1 would stay 2048.
    let t = tile::<f16, 3>(&[2048.0, 1.0, 1.0].map(f16::from_f32));
    assert_eq!(t.reduce_sum::<0>(), f16::from_f32(2050.0));
    assert_eq!(t.scan_sum::<0>().to_vec(), [2048.0, 2048.0, 2050.0].map(f16::from_f32));
    // Too large on the way, but not at the end.
    let t = tile::<f16, 3>(&[60000.0, 60000.0, -60000.0].map(f16::from_f32));
    assert_eq!(t.reduce_sum::<0>(), f16::from_f32(60000.0));
    let p = tile::<bf16, 3>(&[3.0, 3.0, 29.0].map(bf16::from_f32));
    assert_eq!(p.reduce_prod::<0>(), bf16::from_f32(261.0));
}

#[test]
fn extremes_ignore_nan_unless_all_are() {
    let t = tile::<f32, 6>(&[f32::NAN, 3.0, -1.0, f32::NAN, f32::NAN, f32::NAN]).reshape::<D2<2, 3>>();
    let (max, min) = (t.reduce_max::<1>().to_vec(), t.reduce_min::<1>().to_vec());
    assert_eq!((max[0], min[0]), (3.0, -1.0));
    assert!(max[1].is_nan() && min[1].is_nan());
    let zeros = tile::<f32, 2>(&[0.0, -0.0]);
    assert!(zeros.reduce_min::<0>().is_sign_negative() && zeros.reduce_max::<0>().is_sign_positive());
    assert_eq!(tile::<f16, 2>(&[f16::NEG_INFINITY, f16::NAN]).reduce_max::<0>(), f16::NEG_INFINITY);
}

#[test]
fn the_lowest_index_wins_and_nan_loses() {
    let t = tile::<f32, 5>(&[f32::NAN, 2.0, 7.0, 7.0, 2.0]);
    assert_eq!(t.argmax::<0>(), (7.0, 2));
    assert_eq!(t.argmin::<0>(), (2.0, 1));
    let (value, index) = tile::<f32, 3>(&[f32::NAN; 3]).argmax::<0>();
    assert!(value.is_nan() && index == 0);
    assert_eq!(tile::<f32, 2>(&[f32::NAN, f32::NEG_INFINITY]).argmax::<0>(), (f32::NEG_INFINITY, 1));
    assert_eq!(tile::<f32, 2>(&[-0.0, 0.0]).argmax::<0>().1, 0);
    let (values, indices) = cube().argmax::<1>();
    assert_eq!(values.to_vec(), [8, 9, 10, 11, 20, 21, 22, 23]);
    assert_eq!(indices.to_vec(), [2; 8]);
}

#[test]
fn scans_are_inclusive_and_keep_the_shape() {
    let t = iota::<6>().reshape::<D2<2, 3>>();
    assert_eq!(t.scan_sum::<1>().to_vec(), [0, 1, 3, 3, 7, 12]);
    assert_eq!(t.scan_sum::<0>().to_vec(), [0, 1, 2, 3, 5, 7]);
    let m = tile::<f32, 5>(&[f32::NAN, 2.0, 1.0, f32::NAN, 3.0]).scan_max::<0>().to_vec();
    assert!(m[0].is_nan());
    assert_eq!(m[1..], [2.0, 2.0, 2.0, 3.0]);
    assert_eq!(tile::<i32, 4>(&[1, 2, 3, 4]).scan::<0>(1, |a, b| a * b).to_vec(), [1, 2, 6, 24]);
}

#[test]
fn masks_reduce_by_any_and_all() {
    let m = ops::gt(iota::<6>().reshape::<D2<2, 3>>(), 1);
    assert_eq!(m.any::<1>().to_vec(), [true, true]);
    assert_eq!(m.all::<1>().to_vec(), [false, true]);
    assert!(m.any::<1>().all::<0>());
    assert!(!m.all::<0>().all::<0>());
}

#[test]
fn products_of_every_legal_triple() {
    fn dot<A, B: Elem, C: Elem>(a: [f64; 2], b: [f64; 2], c: f64) -> C
    where
        A: MmaTypes<B, C>,
    {
        let a = tile::<A, 2>(&a.map(Cast::cast)).reshape::<D2<1, 2>>();
        let b = tile::<B, 2>(&b.map(Cast::cast)).reshape::<D2<2, 1>>();
        mma(a, b, Tile::<C, D2<1, 1>>::full(c.cast())).to_vec()[0]
    }
    let (a, b) = ([1.5, -2.0], [4.0, 0.5]);
    assert_eq!(dot::<f16, f16, f32>(a, b, 1.0), 6.0);
    assert_eq!(dot::<bf16, bf16, f32>(a, b, 1.0), 6.0);
    assert_eq!(dot::<tf32, tf32, f32>(a, b, 1.0), 6.0);
    assert_eq!(dot::<f32, f32, f32>(a, b, 1.0), 6.0);
    assert_eq!(dot::<e4m3, e4m3, f32>(a, b, 1.0), 6.0);
    assert_eq!(dot::<e4m3, e5m2, f32>(a, b, 1.0), 6.0);
    assert_eq!(dot::<e5m2, e4m3, f32>(a, b, 1.0), 6.0);
    assert_eq!(dot::<e5m2, e5m2, f32>(a, b, 1.0), 6.0);
    assert_eq!(dot::<f64, f64, f64>(a, b, 1.0), 6.0);
    assert_eq!(dot::<i8, i8, i32>([100.0, -100.0], [127.0, -128.0], 5.0), 25505);
    assert_eq!(dot::<i8, i8, i32>([1.0, 0.0], [1.0, 0.0], f64::from(i32::MAX)), i32::MIN);
    // Products are exact: in f16 this one would be infinite.
    assert_eq!(dot::<f16, f16, f32>([60000.0, 0.0], [60000.0, 0.0], 0.0), 3.6e9);
}

#[test]
fn products_of_rank_3_go_batch_by_batch() {
    let a = cube().cast::<i8>();
    let b = cube().cast::<i8>().t();
    let c = mma(a, b, Tile::<i32, D3<2, 3, 3>>::ones());
    let at = |z: i32, i: i32, k: i32| z * 12 + i * 4 + k;
    let mut want = Vec::new();
    for (z, i, j) in (0..18).map(|n| (n / 9, n / 3 % 3, n % 3)) {
        want.push(1 + (0..4).map(|k| at(z, i, k) * at(z, j, k)).sum::<i32>());
    }
    assert_eq!(c.to_vec(), want);
}

#[test]
fn elements_move_where_they_should() {
    let t = iota::<6>().reshape::<D2<2, 3>>();
    assert_eq!(t.t().to_vec(), [0, 3, 1, 4, 2, 5]);
    assert_eq!(cube().t().to_vec()[..5], [0, 4, 8, 1, 5]);
    assert_eq!(t.broadcast::<0, 2>().to_vec(), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]);
    assert_eq!(t.broadcast::<1, 2>().to_vec(), [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
    let last: Tile<i32, D3<2, 3, 2>> = t.broadcast::<2, 2>();
    assert_eq!(last.to_vec(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    assert_eq!(cube().broadcast::<3, 1>().reshape::<D1<24>>().to_vec(), iota::<24>().to_vec());
    let woven = t.interleave::<D2<2, 6>>(ops::add(t, 10));
    assert_eq!(woven.to_vec(), [0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15]);
    let (even, odd) = woven.split::<D2<2, 3>>();
    assert_eq!(even.to_vec(), t.to_vec());
    assert_eq!(odd.to_vec(), ops::add(t, 10).to_vec());
    assert_eq!(format!("{} {:?}", t, Tile::<f32, D1<2>>::ones()), "[[0, 1, 2], [3, 4, 5]] [1.0, 1.0]");
    assert_eq!(Tile::<bool, D2<1, 2>>::zeros().to_vec(), [false, false]);
}

#[test]
fn sums_of_many_floats_stay_accurate() {
    let values: Vec<f32> = (0..1000).map(|_| 0.1).collect();
    let t = tensor(&values, [1000]).load_tile::<1000>([0]);
    assert_eq!(t.reduce_sum::<0>(), 100.0);
}
