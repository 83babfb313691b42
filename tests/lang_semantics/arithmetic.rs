//! Arithmetic, shifts, comparisons, minima and maxima: of scalars and tiles alike.

use titan::lang::{Num, Tile, ops};
use titan::prelude::*;

use crate::tile;

#[track_caller]
fn agree<U: Elem>(what: &str, scalar: U, tiles: [Tile<U, D1<1>>; 3], want: U) {
    assert_eq!(scalar, want, "{what}");
    for tile in tiles {
        assert_eq!(tile.to_vec(), [want], "{what}");
    }
}

/// One operation on scalars, on tiles, and on a mixture of them gives one result.
macro_rules! check {
    ($t:ident: $($op:ident($a:expr, $b:expr) = $want:expr;)*) => {$({
        let (a, b): ($t, $t) = ($a, $b);
        let want = $want;
        let (ta, tb) = (Tile::<$t, D1<1>>::full(a), Tile::<$t, D1<1>>::full(b));
        let tiles = [ops::$op(ta, tb), ops::$op(ta, b), ops::$op(a, tb)];
        agree(stringify!($op($a, $b)), ops::$op(a, b), tiles, want);
    })*};
}

#[test]
fn integers_wrap_and_division_never_traps() {
    check! { i32:
        add(i32::MAX, 1) = i32::MIN;
        sub(i32::MIN, 1) = i32::MAX;
        mul(1 << 30, 4) = 0;
        div(7, 0) = 0;
        rem(7, 0) = 7;
        div(i32::MIN, -1) = i32::MIN;
        rem(i32::MIN, -1) = 0;
        div(-7, 2) = -3;
        rem(-7, 2) = -1;
    }
    check! { i8: add(127, 1) = -128; mul(-128, -1) = -128; div(-128, -1) = -128; rem(-5, 0) = -5; }
    check! { u8: sub(0, 1) = 255; div(200, 0) = 0; rem(200, 0) = 200; div(200, 7) = 28; rem(200, 7) = 4; }
    check! { i64: add(i64::MAX, 1) = i64::MIN; div(i64::MIN, -1) = i64::MIN; rem(i64::MIN, 0) = i64::MIN; }
    check! { u64: sub(1, 2) = u64::MAX; mul(1 << 63, 2) = 0; div(u64::MAX, 3) = 6_148_914_691_236_517_205; }
    check! { i16: sub(i16::MIN, 1) = i16::MAX; }
    check! { u16: mul(65535, 65535) = 1; }
    check! { u32: add(u32::MAX, 2) = 1; }
}

#[test]
fn shifts_beyond_the_width_shift_everything_out() {
    check! { i32:
        shl(1, 31) = i32::MIN;
        shl(1, 32) = 0;
        shl(1, -1) = 0;
        shr(-8, 1) = -4;
        shr(-8, 32) = -1;
        shr(-8, -1) = -1;
        shr(8, 100) = 0;
    }
    check! { u8: shl(0x81, 1) = 2; shl(1, 8) = 0; shr(0x80, 7) = 1; shr(0x80, 8) = 0; shr(0xFF, 255) = 0; }
    check! { i8: shr(-128, 7) = -1; shr(-128, 8) = -1; shl(1, 7) = -128; }
    check! { u64: shl(1, 63) = 1 << 63; shl(1, 1 << 40) = 0; shr(u64::MAX, 64) = 0; }
    check! { i64: shr(i64::MIN, i64::MAX) = -1; shl(1, i64::MIN) = 0; }
}

#[test]
fn bits_combine_in_masks_and_integers() {
    check! { bool: and(true, false) = false; or(true, false) = true; xor(true, true) = false; }
    check! { u8: and(0xF0, 0x3C) = 0x30; or(0xF0, 0x0C) = 0xFC; xor(0xF0, 0xFF) = 0x0F; }
    assert!(!ops::not(true));
    assert_eq!(ops::not(0_u8), 255);
    assert_eq!(ops::not(tile::<i32, 2>(&[0, -2])).to_vec(), [-1, 1]);
}

#[test]
fn negation_and_magnitude_of_the_least_integer_wrap() {
    assert_eq!(ops::neg(i32::MIN), i32::MIN);
    assert_eq!(ops::abs(i32::MIN), i32::MIN);
    assert_eq!(ops::abs(i8::MIN), i8::MIN);
    assert_eq!(ops::neg(1_u8), 255);
    assert_eq!(tile::<i16, 3>(&[i16::MIN, -3, 4]).abs().to_vec(), [i16::MIN, 3, 4]);
    assert_eq!(ops::neg(tile::<i16, 2>(&[i16::MIN, -3])).to_vec(), [i16::MIN, 3]);
    assert!(ops::abs(-0.0_f32).is_sign_positive() && ops::neg(0.0_f32).is_sign_negative());
}

#[test]
fn halves_round_once_per_operation() {
    let h = f16::from_f32;
    check! { f16:
        add(h(2048.0), h(1.0)) = h(2048.0);
        add(h(2048.0), h(3.0)) = h(2052.0);
        mul(h(60000.0), h(2.0)) = f16::INFINITY;
        div(h(1.0), h(3.0)) = h(0.333_251_95);
        sub(h(1.0), f16::from_bits(1)) = h(1.0);
    }
    // With f32 between, `x * 3 - 1` would keep what the first rounding drops.
    let x = h(0.333_251_95);
    let t = Tile::<f16, D1<1>>::full(x);
    assert_eq!(ops::sub(ops::mul(t, 3.0), 1.0).to_vec(), [h(0.0)]);
    assert_eq!(t.mul_add(3.0, -1.0).to_vec(), [h(-0.000_244_140_63)]);
    let b = bf16::from_f32;
    check! { bf16: add(b(256.0), b(1.0)) = b(256.0); add(b(256.0), b(3.0)) = b(260.0); }
}

#[test]
fn a_scalar_beside_a_half_tile_is_rounded_first() {
    let t = Tile::<f16, D1<1>>::full(f16::from_f32(2048.0));
    // 1.0004 is 1.0 as f16, and 2048 · 1.0004 = 2048.8 would round to 2048 or 2050.
    assert_eq!(ops::mul(t, 1.0004).to_vec(), [f16::from_f32(2048.0)]);
    assert_eq!(ops::mul(t, 1.0006).to_vec(), [f16::from_f32(2050.0)]);
    assert_eq!(ops::sub(1.0004, t).to_vec(), [f16::from_f32(-2047.0)]);
    assert_eq!(ops::mul(f16::from_f32(2048.0), 1.0004_f32), f16::from_f32(2048.0));
    let b = Tile::<bf16, D1<1>>::full(bf16::from_f32(1.0));
    assert_eq!(ops::add(b, 0.1).to_vec(), [bf16::from_f32(1.101_562_5)]);
    assert_eq!(b.max(1e-3).to_vec(), [bf16::from_f32(1.0)]);
}

#[test]
fn mul_add_rounds_once() {
    let (a, b, c) = (bf16::from_f32(1.0625), bf16::from_f32(1.1875), bf16::from_f32(-(2_f32.powi(-100))));
    // The product lies between 161/128 and 162/128; the addend puts the sum below the middle.
    assert_eq!(Float::mul_add(a, b, c), bf16::from_f32(161.0 / 128.0));
    assert_eq!(Float::mul_add(a, b, bf16::ZERO), bf16::from_f32(162.0 / 128.0));
    let x = tile::<f32, 1>(&[1.0 + f32::EPSILON]);
    assert_eq!(x.mul_add(x, ops::neg(ops::mul(x, x))).to_vec(), [f32::EPSILON * f32::EPSILON]);
    assert_eq!(tile::<f64, 1>(&[3.0]).mul_add(2.0, 1.0).to_vec(), [7.0]);
}

#[test]
fn nothing_else_is_contracted() {
    let x = 1.0 + f32::EPSILON;
    let t = Tile::<f32, D1<1>>::full(x);
    assert_eq!(ops::sub(ops::mul(t, t), ops::mul(x, x)).to_vec(), [0.0]);
}

fn extremes<T: Num + Float>() {
    let [nan, one, two] = [f64::NAN, 1.0, 2.0].map(Cast::cast::<T>);
    let [plus, minus] = [0.0, -0.0].map(Cast::cast::<T>);
    let pairs = [(nan, one), (one, nan), (one, two), (two, one), (minus, plus), (plus, minus), (nan, nan)];
    let (a, b): (Vec<T>, Vec<T>) = pairs.into_iter().unzip();
    let bits = |t: Tile<T, D1<7>>| t.to_vec().into_iter().map(Cast::cast::<f64>).collect::<Vec<_>>();
    let (max, min) = (bits(tile(&a).max(tile(&b))), bits(tile(&a).min(tile(&b))));
    assert_eq!(max[..4], [1.0, 1.0, 2.0, 2.0]);
    assert_eq!(min[..4], [1.0, 1.0, 1.0, 1.0]);
    for zero in 4..6 {
        assert!(max[zero].is_sign_positive() && min[zero].is_sign_negative());
    }
    assert!(max[6].is_nan() && min[6].is_nan());
    let clamped = bits(tile(&[nan, two, one, minus, plus, two, nan]).clamp(one, two));
    assert_eq!(clamped, [1.0, 2.0, 1.0, 1.0, 1.0, 2.0, 1.0]);
}

#[test]
fn nan_loses_and_minus_zero_is_less_than_zero() {
    extremes::<f64>();
    extremes::<f32>();
    extremes::<f16>();
    extremes::<bf16>();
    assert_eq!(tile::<i32, 2>(&[-5, 9]).max(0).to_vec(), [0, 9]);
    assert_eq!(tile::<i32, 2>(&[-5, 9]).clamp(3, 1).to_vec(), [1, 1]);
}

#[test]
fn extremes_of_scalars_are_those_of_tiles() {
    check! { f32: max(f32::NAN, 1.0) = 1.0; min(1.0, f32::NAN) = 1.0; max(2.0, 3.0) = 3.0; min(2.0, 3.0) = 2.0; }
    check! { i32: max(-5, 3) = 3; min(-5, 3) = -5; }
    check! { f16: max(f16::NAN, f16::ONE) = f16::ONE; }
    assert!(ops::max(-0.0_f32, 0.0).is_sign_positive() && ops::min(0.0_f32, -0.0).is_sign_negative());
    assert_eq!(ops::clamp(5, 7, 2), 2);
    assert_eq!(ops::clamp(f32::NAN, 1.0, 2.0), 1.0);
    assert_eq!(ops::clamp(tile::<f16, 2>(&[f16::NAN, f16::MAX]), 0.5, 2.0).to_vec(), [0.5, 2.0].map(f16::from_f32));
}

#[test]
fn with_nan_only_unequal_holds() {
    check! { f32:
        lt(f32::NAN, 1.0) = false;
        le(f32::NAN, f32::NAN) = false;
        gt(1.0, f32::NAN) = false;
        ge(f32::NAN, 1.0) = false;
        eq(f32::NAN, f32::NAN) = false;
        ne(f32::NAN, f32::NAN) = true;
        eq(0.0, -0.0) = true;
        lt(-0.0, 0.0) = false;
        ge(2.0, 2.0) = true;
    }
    check! { f16: lt(f16::NAN, f16::ONE) = false; ne(f16::NAN, f16::ONE) = true; gt(f16::ONE, f16::ZERO) = true; }
    check! { u8: gt(200, 100) = true; le(3, 2) = false; }
    check! { bool: eq(true, true) = true; ne(true, true) = false; }
    assert_eq!(tile::<f32, 2>(&[f32::NAN, 1.0]).is_nan().to_vec(), [true, false]);
    assert_eq!(tile::<bf16, 2>(&[bf16::NAN, bf16::INFINITY]).is_nan().to_vec(), [true, false]);
}

#[test]
fn lines_stay_lines_beside_scalars_and_each_other() {
    let (row, col) = (tile::<i32, 3>(&[1, 2, 3]).row(), tile::<i32, 2>(&[10, 20]).col());
    let (row, col) = (ops::sub(2, ops::mul(row, 5)), ops::add(col, ops::neg(col)));
    assert_eq!(ops::add(row, col).to_vec(), [-3, -8, -13, -3, -8, -13]);
    let beyond = ops::not(ops::lt(row, -5));
    assert_eq!(ops::and(beyond, ops::eq(col, col)).to_vec(), [true, false, false, true, false, false]);
    let half = ops::mul(tile::<f16, 2>(&[f16::ONE, f16::from_f32(3.0)]).row(), 0.1f32);
    let tenth = f16::from_f32(0.1);
    let whole = ops::mul(tile::<f16, 2>(&[f16::ONE, f16::from_f32(3.0)]).reshape::<D2<1, 2>>(), tenth);
    assert_eq!(ops::add(half, tile::<f16, 1>(&[f16::ZERO]).col()).to_vec(), whole.to_vec());
}

#[test]
fn rows_and_columns_meet_tiles_in_either_order() {
    let (row, col) = (tile::<i32, 3>(&[1, 2, 3]).row(), tile::<i32, 2>(&[10, 20]).col());
    let both = [9, 8, 7, 19, 18, 17];
    assert_eq!(ops::sub(col, row).to_vec(), both);
    assert_eq!(ops::sub(row, col).to_vec(), both.map(|x| -x));
    let m = tile::<i32, 6>(&[0, 1, 2, 3, 4, 5]).reshape::<D2<2, 3>>();
    assert_eq!(ops::sub(m, row).to_vec(), [-1, -1, -1, 2, 2, 2]);
    assert_eq!(ops::sub(row, m).to_vec(), [1, 1, 1, -2, -2, -2]);
    assert_eq!(ops::sub(m, col).to_vec(), [-10, -9, -8, -17, -16, -15]);
    assert_eq!(ops::sub(col, m).to_vec(), [10, 9, 8, 17, 16, 15]);
    assert_eq!(ops::gt(col, ops::mul(m, 5)).to_vec(), [true, true, false, true, false, false]);
    assert_eq!(m.max(row).to_vec(), [1, 2, 3, 3, 4, 5]);
    assert_eq!(select(ops::lt(m, 3), row, col).to_vec(), [1, 2, 3, 20, 20, 20]);
    assert_eq!(select(ops::lt(m, 3), 0, m).to_vec(), [0, 0, 0, 3, 4, 5]);
    let mut sum = m;
    ops::add_assign(&mut sum, col);
    assert_eq!(sum.to_vec(), [10, 11, 12, 23, 24, 25]);
    let halves = select(ops::lt(m, 3), -1.5, m.cast::<f16>());
    assert_eq!(halves.cast::<f32>().to_vec(), [-1.5, -1.5, -1.5, 3.0, 4.0, 5.0]);
}

#[test]
fn assigning_forms_assign() {
    let mut x = 7;
    ops::add_assign(&mut x, 5);
    ops::sub_assign(&mut x, 2);
    ops::mul_assign(&mut x, 3);
    ops::div_assign(&mut x, 4);
    ops::rem_assign(&mut x, 4);
    assert_eq!(x, 3);
    ops::shl_assign(&mut x, 4);
    ops::or_assign(&mut x, 1);
    ops::xor_assign(&mut x, 0xF);
    ops::and_assign(&mut x, 0x3E);
    ops::shr_assign(&mut x, 1);
    assert_eq!(x, 31);
}
