//! Conversions of numbers: every code of every format, ties, and the published facts of the formats.

use titan_core::num::{
    Format, Fused, bf16_from_f32, bf16_to_f64, e4m3_from_f64, e4m3_to_f64, e5m2_from_f64, e5m2_to_f64, f16_from_f32,
    f16_from_f64, f16_to_f64, fma, nibble_to_i8, pack_nibbles, tf32_from_f32, tf32_from_f64, unpack_nibbles,
};

/// A format, with what its definition says.
struct Row {
    format: Format,
    /// The number of bits, the highest of which is the sign.
    bits: u32,
    max_finite: u32,
    /// The code that infinity and numbers that are too large become.
    overflow: u32,
    ties_away: bool,
}

impl Row {
    const fn sign_bit(&self) -> u32 {
        1 << (self.bits - 1)
    }
}

const fn row(format: Format, bits: u32, max_finite: u32, overflow: u32, ties_away: bool) -> Row {
    Row { format, bits, max_finite, overflow, ties_away }
}

const FORMATS: [Row; 5] = [
    row(Format::F16, 16, 0x7bff, 0x7c00, false),
    row(Format::BF16, 16, 0x7f7f, 0x7f80, false),
    row(Format::E4M3, 8, 0x7e, 0x7e, false),
    row(Format::E5M2, 8, 0x7b, 0x7b, false),
    row(Format::TF32, 19, 0x3fbff, 0x3fc00, true),
];

#[test]
fn every_code_survives_a_round_trip() {
    for row in FORMATS {
        let format = row.format;
        for code in 0..1_u32 << row.bits {
            let x = format.to_f64(code);
            let back = format.from_f64(x);
            if x.is_nan() {
                assert!(format.to_f64(back).is_nan());
            } else if x.is_finite() {
                assert_eq!(back, code, "{format:?} {code:#x} {x}");
            } else {
                assert_eq!(back, row.overflow | code & row.sign_bit(), "{format:?} {code:#x}");
            }
        }
    }
}

/// Between adjacent numbers, the middle is rounded as a tie, and numbers close to the middle are rounded to the nearer one.
#[test]
fn halfway_points_round_as_declared() {
    for row in FORMATS {
        let format = row.format;
        for lo in 0..row.max_finite {
            let (a, b) = (format.to_f64(lo), format.to_f64(lo + 1));
            let middle = f64::midpoint(a, b);
            let tie = if row.ties_away || lo & 1 == 1 { lo + 1 } else { lo };
            assert_eq!(format.from_f64(middle), tie, "{format:?} {lo:#x}");
            assert_eq!(format.from_f64(middle.next_down()), lo, "{format:?} below {lo:#x}");
            assert_eq!(format.from_f64(middle.next_up()), lo + 1, "{format:?} above {lo:#x}");
            assert_eq!(format.from_f64(-middle), tie | row.sign_bit());
        }
    }
}

#[test]
fn halves_agree_with_the_half_crate() {
    for bits in 0..=u16::MAX {
        for (ours, theirs) in [
            (f16_to_f64(bits), half::f16::from_bits(bits).to_f64()),
            (bf16_to_f64(bits), half::bf16::from_bits(bits).to_f64()),
        ] {
            assert!(ours == theirs || ours.is_nan() && theirs.is_nan(), "{bits:#x}");
        }
    }
    // Every upper half of an `f32`, with lower halves at and around the ties.
    for hi in 0..=u16::MAX {
        for lo in [0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFF] {
            let x = f32::from_bits(u32::from(hi) << 16 | lo);
            if x.is_nan() {
                assert!(f16_to_f64(f16_from_f32(x)).is_nan() && bf16_to_f64(bf16_from_f32(x)).is_nan());
            } else {
                assert_eq!(f16_from_f32(x), half::f16::from_f32_const(x).to_bits(), "{x}");
                assert_eq!(bf16_from_f32(x), half::bf16::from_f32_const(x).to_bits(), "{x}");
            }
        }
    }
}

#[test]
fn tf32_is_the_f32_rounded_on_its_bits() {
    for hi in 0..=u16::MAX {
        for lo in [0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF, 0x3000, 0x8000, 0xFFFF] {
            let bits = u32::from(hi) << 16 | lo;
            let x = f32::from_bits(bits);
            let ours = tf32_from_f32(x);
            if x.is_nan() {
                assert!(ours.is_nan());
            } else {
                assert_eq!(ours.to_bits(), bits.wrapping_add(0x1000) & !0x1FFF, "{x}");
            }
        }
    }
}

#[test]
fn facts_of_the_formats() {
    let facts: [(u8, f64); 7] = [
        (0x7E, 448.0),
        (0x08, 0.015_625),
        (0x01, 0.001_953_125),
        (0x38, 1.0),
        (0xC0, -2.0),
        (0x80, -0.0),
        (0x07, 0.013_671_875),
    ];
    for (code, value) in facts {
        assert_eq!(e4m3_to_f64(code).to_bits(), value.to_bits());
    }
    let facts: [(u8, f64); 5] =
        [(0x7B, 57344.0), (0x04, 6.103_515_625e-5), (0x01, 1.525_878_906_25e-5), (0x3C, 1.0), (0x7C, f64::INFINITY)];
    for (code, value) in facts {
        assert_eq!(e5m2_to_f64(code).to_bits(), value.to_bits());
    }
    for code in 0x7D..=0x7F {
        assert!(e5m2_to_f64(code).is_nan());
    }
    assert!(e4m3_to_f64(0x7F).is_nan() && e4m3_to_f64(0xFF).is_nan());
    assert_eq!(f16_to_f64(0x7BFF), 65504.0);
    assert_eq!(f16_from_f64(65519.999), 0x7BFF);
    assert_eq!(f16_from_f64(65520.0), 0x7C00);
}

#[test]
fn eight_bit_floats_saturate() {
    for big in [465.0, 480.0, 1e30, f64::INFINITY] {
        assert_eq!((e4m3_from_f64(big), e4m3_from_f64(-big)), (0x7E, 0xFE));
    }
    for big in [61440.0, 65536.0, 1e300, f64::INFINITY] {
        assert_eq!((e5m2_from_f64(big), e5m2_from_f64(-big)), (0x7B, 0xFB));
    }
    assert!(e4m3_to_f64(e4m3_from_f64(f64::NAN)).is_nan() && e5m2_to_f64(e5m2_from_f64(f64::NAN)).is_nan());
}

#[test]
fn doubles_and_integers_round_once() {
    // Just above a tie of f16, but a tie after rounding to f32.
    let x = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    assert_eq!(f16_from_f64(x), 0x3C01);
    assert_eq!(f16_from_f64(1.0 + 2f64.powi(-11)), 0x3C00, "what a rounding to f32 on the way would give");
    // Just above a tie of bf16, but a tie after rounding to f64.
    let n = (1_u64 << 63) + (1 << 55) + 1;
    assert_eq!(Format::BF16.from_int(false, n), 0x5F01);
    assert_eq!(Format::BF16.from_f64(n as f64), 0x5F00);
    assert_eq!(Format::BF16.from_int(true, 1 << 63), 0xDF00);
    assert_eq!(Format::F16.from_int(false, u64::MAX), 0x7C00);
    assert_eq!(Format::F16.from_int(false, 65519), 0x7BFF);
    assert_eq!(Format::F16.from_int(false, 0), 0);
    assert_eq!(tf32_from_f64(f64::from_bits(1)), 0.0);
    assert_eq!(tf32_from_f64(1.0 + 2f64.powi(-11)), 1.0 + 2f32.powi(-10));
}

#[test]
fn nibbles_put_the_lower_index_low() {
    assert_eq!(pack_nibbles(&[1, 0xF2, 3]), [0x21, 0x03]);
    assert_eq!(unpack_nibbles(&[0x21, 0x03], 3), [1, 2, 3]);
    assert_eq!([0, 7, 8, 15].map(nibble_to_i8), [0, 7, -8, -1]);
    let all: Vec<u8> = (0..16).collect();
    assert_eq!(unpack_nibbles(&pack_nibbles(&all), 16), all);
}

/// Sums that the C library of mingw rounds twice.
#[test]
fn a_product_and_its_sum_are_rounded_once() {
    let [a, b, c] = [0x607F_9D1A, 0x13EE_7598, 0xFF].map(f32::from_bits);
    assert_eq!(fma(a, b, c).to_bits(), 0x34EE_1979);
    let [a, b, c] = [1.216_360_330_581_665, 1.770_822_644_233_703_6, 0.083_710_573_613_643_65].map(|x: f64| x as f32);
    assert_eq!(fma(a, b, c).to_bits(), 0x400F_35F8);
    let above = 1.0 + f64::EPSILON;
    assert_eq!(fma(above, above, -(1.0 + 2.0 * f64::EPSILON)), f64::EPSILON * f64::EPSILON);
    // A tie but for what is far below.
    assert_eq!(fma(1.0 + f64::EPSILON, 0.5 * f64::EPSILON, 1.0), 1.0 + f64::EPSILON);
    assert_eq!(fma(f64::EPSILON, 0.5, 1.0), 1.0);
    assert_eq!(fma(-0.0, 1.0, -0.0_f64).to_bits(), (-0.0_f64).to_bits());
    assert_eq!(fma(f64::MAX, 2.0, f64::NEG_INFINITY), f64::NEG_INFINITY);
}

/// Where std rounds once, it is what the function without an instruction is compared with.
#[cfg(not(all(windows, target_env = "gnu")))]
#[test]
fn what_is_computed_by_hand_is_what_an_instruction_gives() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // Any numbers, numbers near each other, sums that nearly cancel, and the ends of the range.
    let near = |bits: u64, exponent: u64| f64::from_bits(bits & !(0x7FF << 52) | exponent << 52);
    let ends = [0.0, -0.0, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE, 5e-324, -5e-324, f64::MAX, f64::MIN, 1.0];
    for i in 0..test_depth::cases(2_000_000, 60_000) {
        let ([a, b, c], k) = ([random(), random(), random()], random());
        let [x, y, z] = match i % 5 {
            0 => [a, b, c].map(f64::from_bits),
            1 => [near(a, 1023 + k % 4), near(b, 1023), near(c, 903 + (k >> 8) % 240)],
            2 => [near(a, 500 + k % 40), near(b, 500 + (k >> 8) % 60), near(c, (k >> 16) % 100)],
            3 => [a, b, c].map(|bits| ends[(bits % 10) as usize]),
            _ => {
                let [x, y] = [a, b].map(|bits| near(bits, 1023));
                [x, y, -(x * y) * (1.0 + ((k % 3) as f64 - 1.0) * f64::EPSILON)]
            }
        };
        let (hand, std) = (x.by_hand(y, z), x.by_std(y, z));
        assert!(
            hand.to_bits() == std.to_bits() || hand.is_nan() && std.is_nan(),
            "{x:e} {y:e} {z:e}: {hand:e}, not {std:e}"
        );
        let [x, y, z] =
            if i % 5 == 0 { [a, b, c].map(|bits| f32::from_bits(bits as u32)) } else { [x, y, z].map(|x| x as f32) };
        let (hand, std) = (x.by_hand(y, z), x.by_std(y, z));
        assert!(
            hand.to_bits() == std.to_bits() || hand.is_nan() && std.is_nan(),
            "{x:e} {y:e} {z:e}: {hand:e}, not {std:e}"
        );
    }
}
