//! Casts, bits and bytes.

use titan::lang::Tile;
use titan::prelude::*;

use crate::tile;

/// A cast of a scalar and of a tile gives one result.
#[track_caller]
fn cast<T: Elem, U: Elem>(x: T, want: U) {
    assert_eq!(x.cast::<U>(), want, "{x:?}");
    assert_eq!(Tile::<T, D1<1>>::full(x).cast::<U>().to_vec(), [want]);
}

#[test]
fn floats_to_narrower_floats_round_to_even_or_infinity() {
    cast(1.0 + f64::from(f32::EPSILON) / 2.0, 1.0_f32);
    cast(1e300_f64, f32::INFINITY);
    cast(65520.0_f32, f16::INFINITY);
    cast(65519.0_f32, f16::MAX);
    cast(1.0 + 2_f64.powi(-11) + 2_f64.powi(-40), f16::from_bits(0x3C01));
    cast(3.4e38_f32, bf16::INFINITY);
    cast(f32::MIN_POSITIVE / 2.0, bf16::from_bits(0x0040));
    assert!(f64::NAN.cast::<f16>().is_nan() && f32::NAN.cast::<bf16>().is_nan() && f16::NAN.cast::<f64>().is_nan());
    assert!(f32::NAN.cast::<tf32>().to_f32().is_nan());
}

#[test]
fn eight_bit_floats_saturate_from_infinity_too() {
    for big in [1e9, f32::INFINITY] {
        cast(big, e4m3::from_f32(448.0));
        cast(-big, e4m3::from_f32(-448.0));
        cast(big, e5m2::from_f32(57344.0));
        cast(-big, e5m2::from_f32(-57344.0));
    }
    assert_eq!(e4m3::from_f32(448.0).to_bits(), 0x7E);
    assert_eq!(e5m2::from_f32(57344.0).to_bits(), 0x7B);
    assert!(f32::NAN.cast::<e4m3>().to_f32().is_nan() && f32::NAN.cast::<e5m2>().to_f32().is_nan());
    cast(1_000_000_i32, e4m3::from_f32(448.0));
    cast(17_i32, e4m3::from_f32(16.0));
    cast(19_u8, e4m3::from_f32(20.0));
}

#[test]
fn storage_types_are_ordered_hashed_converted_and_printed_as_other_numbers() {
    assert!(e4m3::from_f32(0.5) < e4m3::from_f32(1.0) && e5m2::from_f32(-1.0) < e5m2::from_f32(0.5));
    assert_eq!(e4m3::from_bits(0x7F).partial_cmp(&e4m3::from_f32(0.0)), None);
    let floats: [f32; 3] = [tf32::from_f32(1.5).into(), e4m3::from_f32(1.5).into(), e5m2::from_f32(1.5).into()];
    assert_eq!((floats, i8::from(i4::from_i8(-3)), u8::from(u4::from_u8(9))), ([1.5; 3], -3, 9));
    let (code, negative) = (u4::from_u8(10), i4::from_i8(-3));
    assert_eq!(format!("{code:x} {code:X} {code:o} {code:#06b}"), "a A 12 0b1010");
    assert_eq!(format!("{negative:x} {negative:X} {negative:o} {negative:b}"), "d D 15 1101");
    fn is_a_key<T: std::hash::Hash + Eq>(_: T) {}
    is_a_key((code, negative));
}

#[test]
fn tf32_rounds_ties_away() {
    cast(1.0 + 2_f32.powi(-11), tf32::from_f32(1.0 + 2_f32.powi(-10)));
    cast(-1.0 - 2_f32.powi(-11), tf32::from_f32(-1.0 - 2_f32.powi(-10)));
    assert_eq!((1.0 + 2_f32.powi(-12)).cast::<tf32>().to_f32(), 1.0);
    assert_eq!((2049_i32).cast::<tf32>().to_f32(), 2050.0);
}

#[test]
fn floats_to_integers_truncate_and_saturate() {
    cast(-1.9_f32, -1_i32);
    cast(1e10_f32, i32::MAX);
    cast(f32::NEG_INFINITY, i32::MIN);
    cast(f32::NAN, 0_i32);
    cast(-1.0_f64, 0_u64);
    cast(1e30_f64, u64::MAX);
    cast(300.0_f32, 255_u8);
    cast(f16::INFINITY, i64::MAX);
    cast(bf16::from_f32(-200.0), i8::MIN);
    cast(-9.7_f32, i4::from_i8(-8));
    cast(7.9_f32, i4::from_i8(7));
    cast(100.0_f32, i4::from_i8(7));
    cast(f32::NAN, i4::from_i8(0));
    cast(-3.0_f32, u4::from_u8(0));
    cast(16.5_f32, u4::from_u8(15));
    cast(e4m3::from_f32(-3.5), -3_i32);
}

#[test]
fn integers_to_floats_round_once() {
    cast(16_777_217_i32, 16_777_216.0_f32);
    cast(i64::MAX, 9_223_372_036_854_775_808.0_f64);
    cast((1_u64 << 63) + (1 << 55) + 1, bf16::from_bits(0x5F01));
    cast((1_i64 << 40) + (1 << 16) + 1, 1_099_511_758_848.0_f32);
    cast(2049_i32, f16::from_f32(2048.0));
    cast(65519_u16, f16::MAX);
    cast(u64::MAX, f16::INFINITY);
    cast(-7_i8, f16::from_f32(-7.0));
    cast(i4::from_i8(-8), f16::from_f32(-8.0));
    cast(u4::from_u8(15), 15.0_f32);
}

#[test]
fn integers_keep_their_low_bits() {
    cast(300_i32, 44_u8);
    cast(-1_i32, u64::MAX);
    cast(200_u8, -56_i8);
    cast(u32::MAX, 0xFFFF_FFFF_i64);
    cast(0x1F_i32, i4::from_i8(-1));
    cast(0x1F_i32, u4::from_u8(15));
    cast(i4::from_i8(-1), 0xFFFF_u16);
    cast((1_i64 << 53) + 1, (1_u64 << 53) + 1);
}

#[test]
fn truth_is_one_and_numbers_are_true_unless_zero() {
    cast(true, 1_i32);
    cast(false, 0_u8);
    cast(true, f16::from_f32(1.0));
    cast(2_i32, true);
    cast(0_i32, false);
    cast(0.25_f32, true);
    cast(-0.0_f32, false);
    cast(f32::NAN, true);
    cast(256_i32, true);
}

#[test]
fn bits_survive_a_bitcast() {
    assert_eq!(1.0_f32.bitcast::<u32>(), 0x3F80_0000);
    assert_eq!(0x3C00_u16.bitcast::<f16>(), f16::from_f32(1.0));
    assert_eq!((-1_i64).bitcast::<u64>(), u64::MAX);
    assert_eq!(i4::from_i8(-3).bitcast::<u4>(), u4::from_u8(13));
    assert_eq!(0x7E_u8.bitcast::<e4m3>(), e4m3::from_f32(448.0));
    let nan = f32::from_bits(0xFF80_0001);
    assert!(nan.bitcast::<i32>().bitcast::<f32>().is_nan());
    assert_eq!(tile::<i8, 2>(&[-1, 1]).bitcast::<u8>().to_vec(), [255, 1]);
    assert_eq!(tile::<f64, 1>(&[-0.0]).bitcast::<i64>().to_vec(), [i64::MIN]);
}

#[track_caller]
fn bytes<T: Elem>(values: &[T], want: &[u8]) {
    assert_eq!(T::pack(values), want);
    assert_eq!(T::unpack(want, values.len()), values);
    if let Some(bytes) = T::as_bytes(values) {
        assert_eq!(bytes, want);
    } else {
        assert!(matches!(T::ELEM.name(), "i4" | "u4" | "tf32" | "e4m3" | "e5m2"));
    }
}

#[test]
fn elements_pack_as_devices_hold_them() {
    bytes(&[1_i32, -2], &[1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF]);
    bytes(&[0x0102_u16], &[2, 1]);
    bytes(&[1.0_f32], &[0, 0, 0x80, 0x3F]);
    bytes(&[1.0_f64], &[0, 0, 0, 0, 0, 0, 0xF0, 0x3F]);
    bytes(&[f16::from_f32(1.0), f16::from_f32(-2.0)], &[0, 0x3C, 0, 0xC0]);
    bytes(&[bf16::from_f32(1.0)], &[0x80, 0x3F]);
    bytes(&[tf32::from_f32(1.0)], &[0, 0, 0x80, 0x3F]);
    bytes(&[e4m3::from_f32(1.0), e4m3::from_f32(-448.0)], &[0x38, 0xFE]);
    bytes(&[e5m2::from_f32(1.0)], &[0x3C]);
    bytes(&[true, false, true], &[1, 0, 1]);
    bytes(&[i4::from_i8(1), i4::from_i8(-1), i4::from_i8(-8), i4::from_i8(7)], &[0xF1, 0x78]);
    bytes(&[u4::from_u8(2), u4::from_u8(15)], &[0xF2]);
    bytes(&[i64::MIN], &[0, 0, 0, 0, 0, 0, 0, 0x80]);
    assert_eq!(bool::unpack(&[2, 0], 2), [true, false]);
}
