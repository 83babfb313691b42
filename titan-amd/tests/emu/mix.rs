//! Mixed precision: every source is an `f32`, either half of a register, or a constant of the format that is read.

use crate::harness::records;
use half::f16;
use titan_amd::emu::Options;

/// How a source is spelled, whether it is read as a half and which, and its value for the words of a lane.
struct Source {
    text: &'static str,
    half: bool,
    high: bool,
    value: fn(u32) -> f32,
}

fn half(bits: u32) -> f32 {
    f16::from_bits(bits as u16).to_f32()
}

const SOURCES: [Source; 8] = [
    Source { text: "v", half: false, high: false, value: f32::from_bits },
    Source { text: "v", half: true, high: false, value: half },
    Source { text: "v", half: true, high: true, value: |x| half(x >> 16) },
    Source { text: "1.0", half: false, high: false, value: |_| 1.0 },
    Source { text: "1.0", half: true, high: false, value: |_| 1.0 },
    Source { text: "-4.0", half: true, high: false, value: |_| -4.0 },
    // The upper half of a constant is empty.
    Source { text: "0.5", half: true, high: true, value: |_| 0.0 },
    // An integer is the bits of a subnormal number.
    Source { text: "3", half: true, high: false, value: |_| half(3) },
];

#[test]
fn mixed_products_read_halves_words_and_constants() {
    let words: Vec<u32> = (0..64 * 3_u32)
        .map(|i| {
            let [low, high] = [f16::from_f32(i as f32 / 8.0 - 9.0), f16::from_f32(3.0 - i as f32 / 16.0)];
            u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16
        })
        .collect();
    let mut tried = 0;
    for (i, j, k) in (0..512).map(|n| (n / 64, n / 8 % 8, n % 8)) {
        let chosen = [&SOURCES[i], &SOURCES[j], &SOURCES[k]];
        let operands: Vec<String> =
            (8..).zip(chosen).map(|(r, s)| if s.text == "v" { format!("v{r}") } else { s.text.to_owned() }).collect();
        let bits = |f: fn(&Source) -> bool| chosen.map(|s| u8::from(f(s)).to_string()).join(",");
        let (sel, hi) = (bits(|s| s.high), bits(|s| s.half));
        let body = format!("v_fma_mix_f32 v11, {} op_sel:[{sel}] op_sel_hi:[{hi}]", operands.join(", "));
        let got = records(&body, (3, 1), &words, &Options::default()).unwrap_or_else(|e| panic!("{body}: {e}"));
        for (lane, (x, got)) in words.chunks(3).zip(got).enumerate() {
            let [a, b, c] = [0, 1, 2].map(|n| (chosen[n].value)(x[n]));
            let want = titan_core::num::fma(a, b, c);
            let same = got == want.to_bits() || f32::from_bits(got).is_nan() && want.is_nan();
            assert!(same, "{body}, lane {lane}: {} instead of {want}", f32::from_bits(got));
        }
        tried += 1;
    }
    assert_eq!(tried, 512);
}

#[test]
fn packed_words_that_are_not_chosen_may_be_anything() {
    let words: Vec<u32> = (0..64 * 2).map(|i| (i as f32 + 0.5).to_bits()).collect();
    let run = |body: &str| records(&format!("s_mov_b32 s20, 2.0\n{body}"), (2, 2), &words, &Options::default());
    // `s21` and `v15` were never written.
    for body in [
        "v_pk_mul_f32 v[10:11], s[20:21], v[8:9] op_sel_hi:[0,1]",
        "v_mov_b32_e32 v14, 2.0\nv_pk_mul_f32 v[10:11], v[14:15], v[8:9] op_sel_hi:[0,1]",
    ] {
        let got = run(body).unwrap_or_else(|e| panic!("{body}: {e}"));
        let want: Vec<u32> = words.iter().map(|x| (2.0 * f32::from_bits(*x)).to_bits()).collect();
        assert_eq!(got, want, "{body}");
    }
    let got = run("v_mov_b32_e32 v14, 2.0\nv_pk_mov_b32 v[10:11], v[8:9], v[14:15] op_sel:[1,0]").unwrap();
    assert!(got.chunks(2).zip(words.chunks(2)).all(|(g, w)| g == [w[1], 2.0_f32.to_bits()]));
    for body in ["v_pk_mul_f32 v[10:11], s[20:21], v[8:9]", "v_pk_mul_f32 v[10:11], s[20:21], v[8:9] op_sel:[1,0]"] {
        let error = run(body).unwrap_err().to_string();
        assert!(error.contains("depend on `s21`, which was never written"), "{body}: {error}");
    }
}
