//! Division by the three instructions for it: the sequences that LLVM emits give the correctly rounded quotient, for numbers of every size.
//!
//! The reference is the division of the host, which IEEE 754 defines to the bit.

use crate::harness::records;
use crate::support::depth::tries;
use titan_amd::emu::Options;
use titan_sim::engine::Rng;

/// `v10 = v8 / v9`, as LLVM emits it where subnormal numbers are kept.
const SINGLE: &str = "
    v_div_scale_f32 v20, s[20:21], v9, v9, v8
    v_div_scale_f32 v21, vcc, v8, v9, v8
    v_rcp_f32_e32 v22, v20
    s_nop 0
    v_fma_f32 v23, -v20, v22, 1.0
    v_fmac_f32_e32 v22, v23, v22
    v_mul_f32_e32 v23, v21, v22
    v_fma_f32 v24, -v20, v23, v21
    v_fmac_f32_e32 v23, v24, v22
    v_fma_f32 v20, -v20, v23, v21
    v_div_fmas_f32 v20, v20, v22, v23
    v_div_fixup_f32 v10, v20, v9, v8";

/// `v[12:13] = v[8:9] / v[10:11]`.
const DOUBLE: &str = "
    v_div_scale_f64 v[20:21], s[20:21], v[10:11], v[10:11], v[8:9]
    v_rcp_f64_e32 v[22:23], v[20:21]
    v_div_scale_f64 v[30:31], vcc, v[8:9], v[10:11], v[8:9]
    v_fma_f64 v[24:25], -v[20:21], v[22:23], 1.0
    v_fmac_f64_e32 v[22:23], v[22:23], v[24:25]
    v_fma_f64 v[24:25], -v[20:21], v[22:23], 1.0
    v_fmac_f64_e32 v[22:23], v[22:23], v[24:25]
    v_mul_f64 v[26:27], v[30:31], v[22:23]
    v_fma_f64 v[20:21], -v[20:21], v[26:27], v[30:31]
    v_div_fmas_f64 v[20:21], v[20:21], v[22:23], v[26:27]
    v_div_fixup_f64 v[12:13], v[20:21], v[10:11], v[8:9]";

/// Bits of floats whose exponents are near a boundary of the steps, with the significands where rounding is closest.
fn corners(exponents: u32, fraction: u32, rng: &mut Rng) -> Vec<u64> {
    let (top, bias) = ((1_u64 << exponents) - 1, (1_u64 << (exponents - 1)) - 1);
    let fraction = u64::from(fraction);
    let near: Vec<u64> = match exponents {
        8 => vec![
            0, 1, 2, 22, 23, 24, 25, 30, 63, 64, 95, 96, 97, 126, 127, 128, 149, 150, 158, 222, 223, 224, 228, 230,
            252, 253, 254,
        ],
        _ => {
            let more =
                [52, 53, 54, 127, 128, 129, 255, 767, 768, 769, 1022, 1023, 1024, 1074, 1151, 1790, 1791, 1792, 1919];
            [0, 1, 2, 2044, 2045, 2046].into_iter().chain(more).collect()
        }
    };
    let ones = (1 << fraction) - 1;
    let mut all = Vec::new();
    for e in near {
        let random = rng.next_u64() & ones;
        all.extend([0, 1, ones, ones - 1, random].map(|f| e << fraction | f));
    }
    // Subnormal numbers of every size, zero, infinity, NaN.
    all.extend((0..fraction).flat_map(|n| [1 << n, (1 << n) - 1]));
    all.extend([0, top << fraction, top << fraction | 1 << (fraction - 1), bias << fraction]);
    let sign = 1 << (exponents + u32::try_from(fraction).unwrap());
    all.into_iter().flat_map(|x| [x, x | sign]).collect()
}

/// Pairs of corners, and random pairs whose quotient is near an end of the range.
fn pairs(exponents: u32, fraction: u32, count: usize) -> Vec<[u64; 2]> {
    let mut rng = Rng::new(u64::from(exponents));
    let corners = corners(exponents, fraction, &mut rng);
    let top = (1 << exponents) - 1;
    let mut all = Vec::new();
    for i in 0..count {
        let corner = |rng: &mut Rng| corners[rng.below(corners.len())];
        let random = rng.next_u64() >> (63 - exponents - fraction);
        let pair = match i % 4 {
            0 => [corner(&mut rng), corner(&mut rng)],
            1 => [random, corner(&mut rng)],
            2 => [corner(&mut rng), random],
            // A large divisor, and a numerator such that the quotient lies around the smallest normal number.
            _ => {
                let f = |rng: &mut Rng| rng.next_u64() & ((1 << fraction) - 1);
                let d = top - 1 - rng.below(4);
                let n = (d + rng.below(60)).saturating_sub(top / 2 + 30).min(top - 1);
                [(n as u64) << fraction | f(&mut rng), (d as u64) << fraction | f(&mut rng)]
            }
        };
        all.push(pair);
    }
    all
}

#[test]
fn f32_quotients_are_rounded_correctly() {
    let pairs = pairs(8, 23, tries(32_768, 1 << 20));
    for pairs in pairs.chunks(8192) {
        let words: Vec<u32> = pairs.iter().flatten().map(|x| *x as u32).collect();
        let got = records(SINGLE, (2, 1), &words, &Options::default()).unwrap();
        for (pair, got) in words.chunks(2).zip(got) {
            let [n, d] = [f32::from_bits(pair[0]), f32::from_bits(pair[1])];
            let (want, got) = (n / d, f32::from_bits(got));
            assert!(
                want.to_bits() == got.to_bits() || want.is_nan() && got.is_nan(),
                "{n:e} / {d:e}: {got:e}, not {want:e}"
            );
        }
    }
}

#[test]
fn f64_quotients_are_rounded_correctly() {
    let pairs = pairs(11, 52, tries(32_768, 1 << 20));
    for pairs in pairs.chunks(8192) {
        let words: Vec<u32> = pairs.iter().flatten().flat_map(|x| [*x as u32, (*x >> 32) as u32]).collect();
        let got = records(DOUBLE, (4, 2), &words, &Options::default()).unwrap();
        for ([n, d], got) in pairs.iter().zip(got.chunks(2)) {
            let (n, d) = (f64::from_bits(*n), f64::from_bits(*d));
            let (want, got) = (n / d, f64::from_bits(u64::from(got[0]) | u64::from(got[1]) << 32));
            assert!(
                want.to_bits() == got.to_bits() || want.is_nan() && got.is_nan(),
                "{n:e} / {d:e}: {got:e}, not {want:e}"
            );
        }
    }
}

/// Halves are divided in `f32`, and only the last step is one of `f16`. The product with the reciprocal may round to the middle between two
/// subnormal halves, which the quotient only comes close to: there LLVM's sequence is one unit off.
#[test]
fn f16_quotients_are_rounded_correctly() {
    let body = "
        v_cvt_f32_f16_e32 v21, v9
        v_rcp_f32_e32 v21, v21
        s_nop 0
        v_fma_mixlo_f16 v20, v8, v21, 0 op_sel_hi:[1,0,0]
        v_div_fixup_f16 v10, v20, v9, v8
        v_and_b32_e32 v10, 0xffff, v10";
    let mut rng = Rng::new(16);
    let all = |i: u64| [i & 0xFFFF, rng.next_u64() & 0xFFFF];
    let words: Vec<u32> = (0..tries(16_384, 1 << 20)).flat_map(all).map(|x| x as u32).collect();
    for words in words.chunks(16_384) {
        let got = records(body, (2, 1), words, &Options::default()).unwrap();
        for (pair, got) in words.chunks(2).zip(got) {
            let [n, d] = [pair[0], pair[1]].map(|x| half::f16::from_bits(x as u16));
            // The quotient in f64 lies on the same side of the middle of two halves as the exact one.
            let want = half::f16::from_f64(f64::from(n) / f64::from(d));
            let got = half::f16::from_bits(got as u16);
            let close = want.to_f64().abs() < 6.2e-5 && want.to_bits().abs_diff(got.to_bits()) == 1;
            let same = want.to_bits() == got.to_bits() || want.is_nan() && got.is_nan();
            assert!(same || close, "{n:e} / {d:e}: {got:e}, not {want:e}");
        }
    }
}
