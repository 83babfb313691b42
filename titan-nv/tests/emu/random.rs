//! Instructions on random operands, against the manual's definitions written out bit by bit.

use crate::harness::check;
use titan_sim::engine::Rng;

/// Operands with many zeros, ones and edges among them.
fn words_of(rng: &mut Rng, n: usize) -> Vec<u64> {
    let pick = |rng: &mut Rng| match rng.below(6) {
        0 => rng.next_u64() & 0xFF,
        1 => 1 << rng.below(64),
        2 => !0 << rng.below(64),
        3 => rng.next_u64() & 0xFFFF_FFFF,
        _ => rng.next_u64(),
    };
    (0..n).map(|_| pick(rng)).collect()
}

/// 96 random threads of an instruction of `n` operands.
fn random(body: &str, n: usize, want: impl Fn(&[u64]) -> u64) {
    let mut rng = Rng::new(body.len() as u64);
    let operands: Vec<Vec<u64>> = (0..96).map(|_| words_of(&mut rng, n)).collect();
    let threads: Vec<(&[u64], u64)> = operands.iter().map(|o| (&o[..], want(o))).collect();
    check("sm_80", &[(body, &threads)]);
}

const fn w(x: u64) -> u32 {
    x as u32
}

#[test]
fn bit_fields_bit_by_bit() {
    let bfe = |a: u64, b: u64, c: u64, msb: u64, signed: bool| {
        let (pos, len) = (b & 0xFF, c & 0xFF);
        let sign = signed && len != 0 && a >> (pos + len - 1).min(msb) & 1 == 1;
        (0..=msb).fold(0, |d, i| {
            let bit = if i < len && pos + i <= msb { a >> (pos + i) & 1 } else { u64::from(sign) };
            d | bit << i
        })
    };
    random("bfe.u32 %r, %a0, %a1, %a2;", 3, |o| bfe(o[0] & 0xFFFF_FFFF, o[1], o[2], 31, false));
    random("bfe.s32 %r, %a0, %a1, %a2;", 3, |o| bfe(o[0] & 0xFFFF_FFFF, o[1], o[2], 31, true));
    random("bfe.u64 %d, %x0, %a1, %a2;", 3, |o| bfe(o[0], o[1], o[2], 63, false));
    random("bfe.s64 %d, %x0, %a1, %a2;", 3, |o| bfe(o[0], o[1], o[2], 63, true));
    let bfi = |a: u64, b: u64, c: u64, d: u64, msb: u64| {
        let (pos, len) = (c & 0xFF, d & 0xFF);
        (0..len).filter(|i| pos + i <= msb).fold(b, |f, i| f & !(1 << (pos + i)) | (a >> i & 1) << (pos + i))
    };
    random("bfi.b32 %r, %a0, %a1, %a2, %a3;", 4, |o| bfi(o[0] & 0xFFFF_FFFF, o[1] & 0xFFFF_FFFF, o[2], o[3], 31));
    random("bfi.b64 %d, %x0, %x1, %a2, %a3;", 4, |o| bfi(o[0], o[1], o[2], o[3], 63));
}

#[test]
fn tables_and_permutations() {
    for table in [0x00, 0x1B, 0x96, 0xE8, 0xFF] {
        random(&format!("lop3.b32 %r, %a0, %a1, %a2, {table};"), 3, |o| {
            (0..32).fold(0, |d, i| {
                let index = (o[0] >> i & 1) << 2 | (o[1] >> i & 1) << 1 | o[2] >> i & 1;
                d | (table >> index & 1) << i
            })
        });
    }
    random("prmt.b32 %r, %a0, %a1, %a2;", 3, |o| {
        let bytes: Vec<u8> = w(o[0]).to_le_bytes().into_iter().chain(w(o[1]).to_le_bytes()).collect();
        let pick = |i: u32| {
            let sel = o[2] >> (4 * i) & 0xF;
            let byte = bytes[(sel & 7) as usize];
            if sel & 8 == 0 {
                byte
            } else if byte & 0x80 != 0 {
                0xFF
            } else {
                0
            }
        };
        u32::from_le_bytes([pick(0), pick(1), pick(2), pick(3)]).into()
    });
    random("shf.l.wrap.b32 %r, %a0, %a1, %a2;", 3, |o| {
        let n = w(o[2]) & 31;
        u64::from(if n == 0 { w(o[1]) } else { w(o[1]) << n | w(o[0]) >> (32 - n) })
    });
    random("shf.r.clamp.b32 %r, %a0, %a1, %a2;", 3, |o| {
        let n = w(o[2]).min(32);
        u64::from(match n {
            0 => w(o[0]),
            32 => w(o[1]),
            _ => w(o[1]) << (32 - n) | w(o[0]) >> n,
        })
    });
}

#[test]
fn integer_arithmetic() {
    random("mul.hi.s32 %r, %a0, %a1;", 2, |o| {
        let wide = i64::from(w(o[0]) as i32) * i64::from(w(o[1]) as i32);
        (wide >> 32) as u32 as u64
    });
    random("mul.hi.u64 %d, %x0, %x1;", 2, |o| ((u128::from(o[0]) * u128::from(o[1])) >> 64) as u64);
    random("mul.hi.s64 %d, %x0, %x1;", 2, |o| ((i128::from(o[0] as i64) * i128::from(o[1] as i64)) >> 64) as u64);
    random("mad.wide.s32 %d, %a0, %a1, %x2;", 3, |o| {
        (i64::from(w(o[0]) as i32) * i64::from(w(o[1]) as i32)).wrapping_add(o[2] as i64) as u64
    });
    random("add.cc.u32 %t0, %a0, %a1; addc.cc.u32 %t1, %a2, %a3; mov.b64 %d, {%t0, %t1};", 4, |o| {
        let join = |hi: u64, lo: u64| u64::from(w(hi)) << 32 | u64::from(w(lo));
        join(o[2], o[0]).wrapping_add(join(o[3], o[1]))
    });
    random("sub.cc.u32 %t0, %a0, %a1; subc.cc.u32 %t1, %a2, %a3; mov.b64 %d, {%t0, %t1};", 4, |o| {
        let join = |hi: u64, lo: u64| u64::from(w(hi)) << 32 | u64::from(w(lo));
        join(o[2], o[0]).wrapping_sub(join(o[3], o[1]))
    });
    // A 64-bit product of 32-bit halves, as compilers write it.
    let body = "mul.lo.u32 %t0, %a0, %a1; mul.hi.u32 %t1, %a0, %a1; mad.lo.cc.u32 %t2, %a0, %a2, %t1; \
                madc.hi.u32 %t3, %a0, %a2, 0; mov.b64 %d, {%t2, %t3};";
    random(body, 3, |o| {
        let high = (u64::from(w(o[0])) * u64::from(w(o[1]))) >> 32;
        u64::from(w(o[0])) * u64::from(w(o[2])) + high
    });
    random("div.s32 %r, %a0, %a1;", 2, |o| {
        let (a, b) = (w(o[0]) as i32, w(o[1]) as i32);
        // The result of a division by zero is unspecified; this is what the hardware returns.
        u64::from(if b == 0 { u32::MAX } else { a.wrapping_div(b) as u32 })
    });
}

#[test]
fn floats_round_like_the_machine() {
    let canonical = |x: f32| u64::from(if x.is_nan() { 0x7FFF_FFFF } else { x.to_bits() });
    let x = |o: &[u64], i: usize| f32::from_bits(w(o[i]));
    random("add.f32 %r, %a0, %a1;", 2, |o| canonical(x(o, 0) + x(o, 1)));
    random("mul.f32 %r, %a0, %a1;", 2, |o| canonical(x(o, 0) * x(o, 1)));
    random("div.rn.f32 %r, %a0, %a1;", 2, |o| canonical(x(o, 0) / x(o, 1)));
    random("fma.rn.f32 %r, %a0, %a1, %a2;", 3, |o| canonical(titan_core::num::fma(x(o, 0), x(o, 1), x(o, 2))));
    random("sqrt.rn.f32 %r, %a0;", 1, |o| canonical(x(o, 0).sqrt()));
    random("cvt.rzi.s32.f32 %r, %a0;", 1, |o| u64::from(x(o, 0) as i32 as u32));
    random("cvt.rzi.u64.f32 %d, %a0;", 1, |o| x(o, 0) as u64);
    random("cvt.rn.f32.u64 %r, %x0;", 1, |o| u64::from((o[0] as f32).to_bits()));
    random("cvt.rn.f32.s64 %r, %x0;", 1, |o| u64::from((o[0] as i64 as f32).to_bits()));
    random("cvt.rn.f32.f64 %r, %x0;", 1, |o| canonical(f64::from_bits(o[0]) as f32));
    // The same for warps of which not all threads execute the instruction.
    let odd = |body: &str| format!("setp.lt.u32 %q0, %a3, 0x80000000; @%q0 {body} @!%q0 {body}");
    random(&odd("fma.rn.f32 %r, %a0, %a1, %a2;"), 4, |o| canonical(titan_core::num::fma(x(o, 0), x(o, 1), x(o, 2))));
    random(&odd("mul.f32 %r, %a0, %a1;"), 4, |o| canonical(x(o, 0) * x(o, 1)));
    // One operation on pairs of halves, each half in f64.
    let half = |x: u64| titan_core::num::f16_to_f64(x as u16);
    random("fma.rn.f16 %s, %h0, %h1, %h2;", 3, |o| {
        let exact = half(o[0]) * half(o[1]) + half(o[2]);
        if exact.is_nan() { 0x7FFF } else { titan_core::num::f16_from_f64(exact).into() }
    });
}

#[test]
fn directed_roundings_enclose_the_result() {
    let x = |o: &[u64], i: usize| f32::from_bits(w(o[i]));
    for (op, f) in
        [("add", (|a: f64, b: f64| a + b) as fn(f64, f64) -> f64), ("mul", |a, b| a * b), ("div", |a, b| a / b)]
    {
        for (rnd, want) in [("rm", [true, false]), ("rp", [false, true])] {
            // The f32 below or above the f64 result; operands are close, so that f64 is exact enough.
            let body = format!(
                "and.b32 %t0, %a0, 0xBFFFFFFF; or.b32 %t0, %t0, 0x3F000000; and.b32 %t1, %a1, 0xBFFFFFFF; \
                                or.b32 %t1, %t1, 0x3F000000; {op}.{rnd}.f32 %r, %t0, %t1;"
            );
            random(&body, 2, |o| {
                let near = |i: usize| f64::from(f32::from_bits(x(o, i).to_bits() & 0xBFFF_FFFF | 0x3F00_0000));
                let exact = f(near(0), near(1));
                let r = exact as f32;
                let r = if exact == 0.0 {
                    if want[0] { -0.0 } else { 0.0 }
                } else if f64::from(r) > exact && want[0] {
                    r.next_down()
                } else if f64::from(r) < exact && want[1] {
                    r.next_up()
                } else {
                    r
                };
                u64::from(r.to_bits())
            });
        }
    }
}

/// Sums of products that cancel, vanish, overflow, or lie next to the middle of two results.
#[test]
fn sums_of_products_round_once() {
    let magnitudes =
        [0x0000_0000, 0x0000_0001, 0x0080_0000, 0x337F_FFFF, 0x3380_0000, 0x3380_0001, 0x3F80_0000, 0x3F80_0001];
    let more = [0x3F7F_FFFF, 0x4B80_0000, 0x4B80_0001, 0x7F7F_FFFF, 0x7F80_0000, 0x7FC0_0000, 0x7F80_0001, 0x00FF_FFFF];
    let edges: Vec<u64> = magnitudes.into_iter().chain(more).flat_map(|x: u64| [x, x | 0x8000_0000]).collect();
    let mut operands = Vec::new();
    for a in &edges {
        for b in &edges {
            operands.extend(edges.iter().map(|c| [*a, *b, *c]));
        }
    }
    let number = |bits: u64| f32::from_bits(w(bits));
    let want = |[a, b, c]: [u64; 3]| {
        let sum = titan_core::num::fma(number(a), number(b), number(c));
        u64::from(if sum.is_nan() { 0x7FFF_FFFF } else { sum.to_bits() })
    };
    let threads: Vec<(&[u64], u64)> = operands.iter().map(|o| (&o[..], want(*o))).collect();
    check("sm_80", &[("fma.rn.f32 %r, %a0, %a1, %a2;", &threads)]);
}
