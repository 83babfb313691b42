//! Argument reduction of large numbers modulo π/2: M. Payne and R. Hanek, "Radian reduction for trigonometric functions", 1983.
//!
//! A float is an integer `m` times a power of two. The digits of 2/π whose products with it are multiples of 4 do not matter, nor do those
//! far behind the point: a window of 64 digits (`f32`) or 128 digits (`f64`) times `m`, wrapping, has two digits for the quadrant and the
//! others for the fraction. The window is chosen by selections, not by a load from memory.

use super::emit::{cvt, int_const, scale, un};
use super::trig::Reduced;
use crate::ir::Pred;
use crate::lane::{Builder, FloatTy, FloatUn, IntBin, Num, OpKind, Ty, Value};

/// The digits of 2/π in words of 32 bits, after 9 zeros: the window for the smallest `f32` that is reduced, 2¹⁶, begins with the first
/// word.
const SINGLE: [u32; 6] = [0x0051_7cc1, 0xb727_220a, 0x94fe_13ab, 0xe8fa_9a6e, 0xe06d_b14a, 0xcc9e_21c8];

/// The same in words of 64 bits, after 27 zeros: the window for the `f64` 2²⁷ begins with the first word.
const DOUBLE: [u64; 18] = [
    0x0000_0014_5f30_6dc9,
    0xc882_a53f_84ea_fa3e,
    0xa69b_b81b_6c52_b327,
    0x8872_083f_ca2c_757b,
    0xd778_ac36_e48d_c748,
    0x49ba_5c00_c925_dd41,
    0x3a32_439f_c3bd_6396,
    0x2534_e7dd_1046_bea5,
    0xd768_909d_338e_04d6,
    0x8bef_c827_323a_c730,
    0x6a67_3e93_908b_f177,
    0xbf25_0763_ff12_fffb,
    0xc0b3_01fd_e5e2_316b,
    0x414d_a3ed_a6cf_d9e4,
    0xf961_36e9_e8c7_ecd3,
    0xcbfd_45ae_a4f7_58fd,
    0x7cbe_2f67_a0e7_3ef1,
    0x4a52_5d4d_7f6b_f623,
];

/// The reduction of a number beyond the limits of [`super::trig`]. Infinities and NaN give NaN.
pub(super) fn reduce(b: &mut Builder, ty: FloatTy, x: Value) -> Reduced {
    let product = if ty == FloatTy::F64 { double_product(b, x) } else { single_product(b, x) };
    // There are 62 digits behind the point. The nearest integer is the quadrant, and the rest is signed.
    let moved = int_const(b, IntBin::Add, product, 1 << 61);
    let quadrant = int_const(b, IntBin::ShrU, moved, 62);
    let quadrant = b.one(OpKind::Truncate(Ty::B32), &[quadrant]);
    let fraction = int_const(b, IntBin::Shl, product, 2);
    let rest = if ty == FloatTy::F64 {
        let fraction = cvt(b, Num::S64, Num::F64, fraction);
        scale(b, ty, fraction, std::f64::consts::FRAC_PI_2 * 2f64.powi(-64))
    } else {
        let parts = b.op(OpKind::Unpack, &[fraction]);
        let high = parts.get(1).copied().unwrap_or(fraction);
        let fraction = cvt(b, Num::S32, Num::F32, high);
        scale(b, ty, fraction, std::f64::consts::FRAC_PI_2 * 2f64.powi(-32))
    };
    with_sign(b, ty, x, rest, quadrant)
}

/// Converts the reduction of a magnitude to that of the signed number; the result is NaN if the number is not finite.
fn with_sign(b: &mut Builder, ty: FloatTy, x: Value, rest: Value, quadrant: Value) -> Reduced {
    let zero = b.const_like(x, 0);
    let negative = b.cmp_s(Pred::Lt, x, zero);
    let minus = un(b, FloatUn::Neg, ty, rest);
    let rest = b.select(negative, minus, rest);
    let none = b.i32(0);
    let minus = b.int(IntBin::Sub, none, quadrant);
    let quadrant = b.select(negative, minus, quadrant);
    let (all, nan) = if ty == FloatTy::F64 {
        (b.i64(0x7ff0_0000_0000_0000), b.f64(f64::NAN))
    } else {
        (b.i32(0x7f80_0000), b.f32(f32::NAN))
    };
    let exponent = b.and(x, all);
    let unbounded = b.cmp_u(Pred::Eq, exponent, all);
    Reduced { rest: b.select(unbounded, nan, rest), quadrant }
}

/// The position of the window in digits after the first, and the significand with its leading one.
fn parts(b: &mut Builder, x: Value, digits: u64, first: i64) -> (Value, Value) {
    let exponent = int_const(b, IntBin::ShrU, x, digits);
    let mask = if digits == 52 { 0x7ff } else { 0xff };
    let exponent = int_const(b, IntBin::And, exponent, mask);
    let offset = b.add_const(exponent, -first);
    let significand = int_const(b, IntBin::And, x, (1 << digits) - 1);
    (offset, int_const(b, IntBin::Or, significand, 1 << digits))
}

/// Three adjacent words of a table, from `index` on. For each bit of the index, the highest first, one half of the candidates is discarded.
fn window(b: &mut Builder, mut words: Vec<Value>, index: Value, bits: u32) -> Vec<Value> {
    for bit in (0..bits).rev() {
        let step = 1usize << bit;
        let set = int_const(b, IntBin::And, index, 1 << bit);
        let zero = b.const_like(set, 0);
        let set = b.cmp_u(Pred::Ne, set, zero);
        words = (0..words.len().saturating_sub(step)).map(|i| b.select(set, words[i + step], words[i])).collect();
    }
    words
}

/// `m` times 64 digits of 2/π, modulo 2⁶⁴.
fn single_product(b: &mut Builder, x: Value) -> Value {
    let (offset, significand) = parts(b, x, 23, 127 + 16);
    let words = SINGLE.iter().map(|w| b.i32(w.cast_signed())).collect();
    let index = int_const(b, IntBin::ShrU, offset, 5);
    let words = window(b, words, index, 2);
    let [first, second, third] = [0, 1, 2].map(|i| words.get(i).copied().unwrap_or(index));
    let amount = int_const(b, IntBin::And, offset, 31);
    let wide = |b: &mut Builder, x: Value| b.one(OpKind::Extend { from: 32, signed: false, to: Ty::B64 }, &[x]);
    let high = b.one(OpKind::Pack, &[second, first]);
    let high = b.int(IntBin::Shl, high, amount);
    let low = wide(b, third);
    let low = b.int(IntBin::Shl, low, amount);
    let low = int_const(b, IntBin::ShrU, low, 32);
    let digits = b.or(high, low);
    let significand = wide(b, significand);
    b.mul(significand, digits)
}

/// The upper half of `m` times 128 digits of 2/π, modulo 2¹²⁸.
fn double_product(b: &mut Builder, x: Value) -> Value {
    let (offset, significand) = parts(b, x, 52, 1023 + 27);
    let offset = b.one(OpKind::Truncate(Ty::B32), &[offset]);
    let words = DOUBLE.iter().map(|w| b.i64(w.cast_signed())).collect();
    let index = int_const(b, IntBin::ShrU, offset, 6);
    let words = window(b, words, index, 4);
    let [first, second, third] = [0, 1, 2].map(|i| words.get(i).copied().unwrap_or(x));
    let amount = int_const(b, IntBin::And, offset, 63);
    let back = int_const(b, IntBin::Xor, amount, 63);
    let mut join = |high: Value, low: Value| {
        let high = b.int(IntBin::Shl, high, amount);
        // A shift by one and a shift by 63 less the amount: together a shift by 64 less the amount, which may be 64.
        let low = int_const(b, IntBin::ShrU, low, 1);
        let low = b.int(IntBin::ShrU, low, back);
        b.or(high, low)
    };
    let (high, low) = (join(first, second), join(second, third));
    let carried = b.int(IntBin::MulHi, significand, low);
    let product = b.mul(significand, high);
    b.add(product, carried)
}
