//! `ldmatrix`, `stmatrix`, `movmatrix`, and `mma.sync` of every type, against products of whole matrices.
//!
//! The test puts elements into fragments by the manual's formulas for each shape, spelled out here again and not shared
//! with the emulator.

use crate::harness::{assemble, gives, header, words};
use titan_core::num;
use titan_nv::emu::{Launch, Memory, Module, Options, Param};
use titan_sim::engine::Rng;

const BUF: &str = ".shared .align 16 .b8 buf[1024];\n";

#[test]
fn matrices_are_loaded_by_rows() {
    // Element (row, col) of matrix m is 100 m + 8 row + col.
    let fill = "mov.u32 %r0, buf; mad.lo.u32 %r1, %ti, 16, %r0; shr.u32 %r2, %ti, 3; mul.lo.u32 %r2, %r2, 100;
        and.b32 %r3, %ti, 7; mad.lo.u32 %r2, %r3, 8, %r2; mad.lo.u32 %r2, %r2, 0x10001, 0x10000;
        add.u32 %r3, %r2, 0x20002; add.u32 %r4, %r2, 0x40004; add.u32 %r5, %r2, 0x60006;
        st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5}; bar.warp.sync -1;";
    let at = |m: u32, row: u32, col: u32| 100 * m + 8 * row + col;
    for (i, register) in ["%r8", "%r9", "%r10", "%r11"].iter().enumerate() {
        let i = i as u32;
        let body = format!(
            "{fill} ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r8, %r9, %r10, %r11}}, [%r1]; st.global.u32 [%mine], {register};"
        );
        gives("sm_80", BUF, &body, 32, |t| at(i, t / 4, t % 4 * 2) | at(i, t / 4, t % 4 * 2 + 1) << 16);
        let body = format!(
            "{fill} ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {{%r8, %r9, %r10, %r11}}, [%r1]; st.global.u32 [%mine], {register};"
        );
        gives("sm_80", BUF, &body, 32, |t| at(i, t % 4 * 2, t / 4) | at(i, t % 4 * 2 + 1, t / 4) << 16);
    }
    let body =
        format!("{fill} ldmatrix.sync.aligned.m8n8.x2.shared.b16 {{%r8, %v}}, [%r1]; st.global.u32 [%mine], %v;");
    gives("sm_80", BUF, &body, 32, |t| at(1, t / 4, t % 4 * 2) | at(1, t / 4, t % 4 * 2 + 1) << 16);
    let body = format!(
        "{fill} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%v}}, [%r1]; movmatrix.sync.aligned.m8n8.trans.b16 %v, %v; st.global.u32 [%mine], %v;"
    );
    gives("sm_80", BUF, &body, 32, |t| at(0, t % 4 * 2, t / 4) | at(0, t % 4 * 2 + 1, t / 4) << 16);
    for (trans, load) in [("", ""), (".trans", ".trans")] {
        let body = format!(
            "{fill} ldmatrix.sync.aligned.m8n8.x4{load}.shared.b16 {{%r8, %r9, %r10, %r11}}, [%r1]; bar.warp.sync -1;
            stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r1+512], {{%r8, %r9, %r10, %r11}}; bar.warp.sync -1;
            ld.shared.u32 %v, [%r1+516]; st.global.u32 [%mine], %v;"
        );
        gives("sm_90", BUF, &body, 32, |t| at(t / 8, t % 8, 2) | at(t / 8, t % 8, 3) << 16);
    }
}

/// A type of operands: its name, bits, and its values from codes.
#[derive(Clone, Copy)]
struct El {
    name: &'static str,
    bits: usize,
    value: fn(u64) -> f64,
}

const F16: El = El { name: "f16", bits: 16, value: |c| num::f16_to_f64(c as u16) };
const BF16: El = El { name: "bf16", bits: 16, value: |c| num::bf16_to_f64(c as u16) };
const TF32: El = El { name: "tf32", bits: 32, value: |c| f32::from_bits(c as u32 & !0x1FFF).into() };
const F64: El = El { name: "f64", bits: 64, value: f64::from_bits };
const S8: El = El { name: "s8", bits: 8, value: |c| f64::from(c as u8 as i8) };
const U8: El = El { name: "u8", bits: 8, value: |c| f64::from(c as u8) };
const S4: El = El { name: "s4", bits: 4, value: |c| f64::from(num::nibble_to_i8(c as u8)) };
const U4: El = El { name: "u4", bits: 4, value: |c| (c & 15) as f64 };
const E4M3: El = El { name: "e4m3", bits: 8, value: |c| num::e4m3_to_f64(c as u8) };
const E5M2: El = El { name: "e5m2", bits: 8, value: |c| num::e5m2_to_f64(c as u8) };

impl El {
    /// A code of a modest value.
    fn random(self, rng: &mut Rng) -> u64 {
        let x = rng.next_u64() as i32 as f32 / (1_u32 << 31) as f32;
        match self.name {
            "f16" => num::f16_from_f32(x).into(),
            "bf16" => num::bf16_from_f32(x).into(),
            // With bits below those that count.
            "tf32" => x.to_bits().into(),
            "f64" => f64::from(x).to_bits(),
            "e4m3" => num::e4m3_from_f32(x).into(),
            "e5m2" => num::e5m2_from_f32(x).into(),
            _ => rng.next_u64() & ((1 << self.bits) - 1),
        }
    }
}

/// Where element `i` of a thread's fragment of A is, by shape: PTX ISA, "Matrix Fragments".
fn a_at([m, _, k]: [usize; 3], bits: usize, lane: usize, i: usize) -> (usize, usize) {
    let (g, t) = (lane >> 2, lane % 4);
    match (m, k, bits) {
        (8, 4, 64) => (g, t),
        (16, 4, _) => (if i == 0 { g } else { g + 8 }, t),
        (16, 8, 32 | 64) => (if i == 0 || i == 2 { g } else { g + 8 }, if i < 2 { t } else { t + 4 }),
        (16, 16, 64) if i & 1 == 0 => (g, i * 2 + t),
        (16, 16, 64) => (g + 8, i * 2 - 2 + t),
        (16, 8, 16) => (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1)),
        (16, 16, 16) => {
            (if i < 2 || (4..6).contains(&i) { g } else { g + 8 }, t * 2 + (i & 1) + if i >= 4 { 8 } else { 0 })
        }
        (16, 16, 8) => (if i < 4 { g } else { g + 8 }, t * 4 + (i & 3)),
        (16, 32, 8) => {
            (if i < 4 || (8..12).contains(&i) { g } else { g + 8 }, t * 4 + (i & 3) + if i >= 8 { 16 } else { 0 })
        }
        (16, 32, 4) => (if i < 8 { g } else { g + 8 }, t * 8 + (i & 7)),
        (16, 64, 4) => {
            (if i < 8 || (16..24).contains(&i) { g } else { g + 8 }, t * 8 + (i & 7) + if i >= 16 { 32 } else { 0 })
        }
        (8, 16, 8) => (g, t * 4 + i),
        (8, 32, 4) => (g, t * 8 + i),
        other => panic!("{other:?}"),
    }
}

fn b_at([m, _, k]: [usize; 3], bits: usize, lane: usize, i: usize) -> (usize, usize) {
    let (g, t) = (lane >> 2, lane % 4);
    let row = match (m, k, bits) {
        (8 | 16, 4, _) => t,
        (16, 8, 32 | 64) => {
            if i == 0 {
                t
            } else {
                t + 4
            }
        }
        (16, 16, 64) => i * 4 + t,
        (16, 8, 16) => t * 2 + i,
        (16, 16, 16) => t * 2 + (i & 1) + if i >= 2 { 8 } else { 0 },
        (16, 16, 8) | (8, 16, 8) => t * 4 + i,
        (16, 32, 8) => t * 4 + (i & 3) + if i >= 4 { 16 } else { 0 },
        (16, 32, 4) | (8, 32, 4) => t * 8 + i,
        (16, 64, 4) => t * 8 + (i & 7) + if i >= 8 { 32 } else { 0 },
        other => panic!("{other:?}"),
    };
    (row, g)
}

fn c_at(m: usize, lane: usize, i: usize) -> (usize, usize) {
    let (g, t) = (lane >> 2, lane % 4);
    (if m == 8 || i < 2 { g } else { g + 8 }, t * 2 + (i & 1))
}

/// Registers of a fragment, from its elements.
fn pack(bits: usize, codes: &[u64]) -> Vec<u64> {
    let per = (32 / bits).max(1);
    codes.chunks(per).map(|c| c.iter().rev().fold(0, |r, x| if bits >= 32 { *x } else { r << bits | x })).collect()
}

fn names(prefix: &str, n: usize) -> String {
    (0..n).map(|i| format!("%{prefix}{i}")).collect::<Vec<_>>().join(", ")
}

struct Product {
    target: &'static str,
    shape: [usize; 3],
    a: El,
    b: El,
    acc: &'static str,
    saturate: bool,
}

/// A kernel that loads fragments, multiplies, and stores the result; and the registers of A, B, and C.
fn kernel(p: &Product) -> (String, [usize; 3]) {
    let Product { target, shape: [m, n, k], a, b, acc, saturate } = *p;
    let elements = [m * k / 32, k * n / 32, m * n / 32];
    let wide = a.bits == 64;
    let per = |bits: usize| (32 / bits).max(1);
    let regs = [elements[0] / per(a.bits), elements[1] / per(b.bits), elements[2] / if acc == "f16" { 2 } else { 1 }];
    let total: usize = regs.iter().sum();
    let kind = if wide { "f64" } else { "b32" };
    let acc_kind = match acc {
        "f32" => "f32",
        "f64" => "f64",
        _ => "b32",
    };
    let mut text = header(target)
        + &format!(
            ".visible .entry k(.param .u64 in, .param .u64 out) {{\n  .reg .b64 %in, %out, %at, %w;\n  .reg .b32 %ti, %n;\n  \
         .reg .{kind} %a<8>, %b<8>;\n  .reg .{acc_kind} %c<8>, %d<8>;\n  mov.u32 %ti, %tid.x; ld.param.u64 %in, [in]; ld.param.u64 %out, [out];\n  \
         mul.wide.u32 %at, %ti, {}; add.u64 %in, %in, %at; mul.wide.u32 %at, %ti, {}; add.u64 %out, %out, %at;\n",
            total * 8,
            regs[2] * 8
        );
    let mut offset = 0;
    for (prefix, count, kind) in [("a", regs[0], kind), ("b", regs[1], kind), ("c", regs[2], acc_kind)] {
        for i in 0..count {
            text += &format!("  ld.global.{kind} %{prefix}{i}, [%in+{}];\n", offset * 8);
            offset += 1;
        }
    }
    let sat = if saturate { ".satfinite" } else { "" };
    text += &format!(
        "  mma.sync.aligned.m{m}n{n}k{k}.row.col{sat}.{acc}.{}.{}.{acc} {{{}}}, {{{}}}, {{{}}}, {{{}}};\n",
        a.name,
        b.name,
        names("d", regs[2]),
        names("a", regs[0]),
        names("b", regs[1]),
        names("c", regs[2])
    );
    for i in 0..regs[2] {
        let zero =
            if acc_kind == "f64" { String::new() } else { format!("  st.global.u32 [%out+{}], 0;\n", i * 8 + 4) };
        text += &format!("  st.global.{acc_kind} [%out+{}], %d{i};\n{zero}", i * 8);
    }
    text += "  ret;\n}\n";
    (text, regs)
}

/// One instruction on random operands, element by element.
fn product(p: &Product, seed: u64) {
    let Product { target, shape: [m, n, k], a, b, acc, saturate } = *p;
    let mut rng = Rng::new(seed);
    let am: Vec<u64> = (0..m * k).map(|_| a.random(&mut rng)).collect();
    let bm: Vec<u64> = (0..k * n).map(|_| b.random(&mut rng)).collect();
    let cm: Vec<f64> = (0..m * n)
        .map(|_| match acc {
            "s32" if saturate => f64::from(i32::MAX - (rng.below(2000) as i32)),
            "s32" => f64::from(rng.next_u64() as i32 >> 12),
            _ => (F16.value)(F16.random(&mut rng)),
        })
        .collect();
    let elements = [m * k / 32, k * n / 32, m * n / 32];
    let mut input: Vec<u64> = Vec::new();
    for lane in 0..32 {
        let codes = |count: usize, at: &dyn Fn(usize) -> u64| (0..count).map(at).collect::<Vec<_>>();
        let a_codes = codes(elements[0], &|i| {
            let (r, c) = a_at(p.shape, a.bits, lane, i);
            am[r * k + c]
        });
        let b_codes = codes(elements[1], &|i| {
            let (r, c) = b_at(p.shape, b.bits, lane, i);
            bm[r * n + c]
        });
        let c_codes = codes(elements[2], &|i| {
            let (r, c) = c_at(m, lane, i);
            let x = cm[r * n + c];
            match acc {
                "f16" => num::f16_from_f64(x).into(),
                "f32" => (x as f32).to_bits().into(),
                "f64" => x.to_bits(),
                _ => (x as i32 as u32).into(),
            }
        });
        input.extend(pack(a.bits, &a_codes));
        input.extend(pack(b.bits, &b_codes));
        input.extend(pack(
            match acc {
                "f16" => 16,
                "f64" => 64,
                _ => 32,
            },
            &c_codes,
        ));
    }
    let (text, regs) = kernel(p);
    assemble(&text, target);
    let module = Module::parse(&text).unwrap_or_else(|e| panic!("{e}"));
    let mut memory = Memory::new();
    let input = memory.upload("in", &input.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>());
    let out = memory.alloc_named("out", 32 * regs[2] * 8);
    let params = [Param::Ptr(input), Param::Ptr(out)];
    let launch = Launch { grid: [1; 3], block: [32, 1, 1], dynamic_shared: 0, cluster: None, params: &params };
    module.entry("k").unwrap().run(&launch, &mut memory, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let got = words(&memory, out, 32 * regs[2]);
    for (lane, i) in (0..32).flat_map(|l| (0..elements[2]).map(move |i| (l, i))) {
        let (row, col) = c_at(m, lane, i);
        let exact: f64 =
            cm[row * n + col] + (0..k).map(|j| (a.value)(am[row * k + j]) * (b.value)(bm[j * n + col])).sum::<f64>();
        let per_c = if acc == "f16" { 2 } else { 1 };
        let bits = got[lane * regs[2] + i / per_c] >> (16 * (i % per_c));
        let (value, tolerance) = match acc {
            "f16" => (num::f16_to_f64(bits as u16), exact.abs() / 1024.0 + 1e-6),
            "f32" => (f64::from(f32::from_bits(bits as u32)), exact.abs() * 1e-6 + 1e-7),
            "f64" => (f64::from_bits(bits), 1e-14),
            _ if saturate => (f64::from(bits as i32), 0.0),
            _ => (f64::from(bits as i32), 0.0),
        };
        let exact = if saturate { exact.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) } else { exact };
        assert!(
            (value - exact).abs() <= tolerance,
            "m{m}n{n}k{k} {} {}: ({row}, {col}) is {value} instead of {exact}",
            a.name,
            b.name
        );
    }
}

#[test]
fn every_product_of_sm_80() {
    let all =
        |shape, a, b, acc| product(&Product { target: "sm_80", shape, a, b, acc, saturate: false }, shape[2] as u64);
    for k in [8, 16] {
        all([16, 8, k], F16, F16, "f32");
        all([16, 8, k], F16, F16, "f16");
        all([16, 8, k], BF16, BF16, "f32");
    }
    for k in [4, 8] {
        all([16, 8, k], TF32, TF32, "f32");
    }
    all([8, 8, 4], F64, F64, "f64");
    for k in [16, 32] {
        for (a, b) in [(S8, S8), (U8, U8), (S8, U8), (U8, S8)] {
            all([16, 8, k], a, b, "s32");
        }
    }
    for k in [32, 64] {
        for (a, b) in [(S4, S4), (U4, U4), (S4, U4)] {
            all([16, 8, k], a, b, "s32");
        }
    }
    all([8, 8, 16], S8, U8, "s32");
    all([8, 8, 32], S4, U4, "s32");
    let sat = |a, b, shape| product(&Product { target: "sm_80", shape, a, b, acc: "s32", saturate: true }, 5);
    sat(S8, S8, [16, 8, 32]);
    sat(U8, U8, [16, 8, 16]);
    sat(U4, U4, [16, 8, 64]);
}

#[test]
fn products_of_later_targets() {
    for (a, b) in [(E4M3, E4M3), (E5M2, E5M2), (E4M3, E5M2), (E5M2, E4M3)] {
        product(&Product { target: "sm_89", shape: [16, 8, 32], a, b, acc: "f32", saturate: false }, 9);
    }
    for k in [4, 8, 16] {
        product(&Product { target: "sm_90", shape: [16, 8, k], a: F64, b: F64, acc: "f64", saturate: false }, 9);
    }
}

#[test]
fn nan_and_infinity_pass_through() {
    // The row of A that has a NaN, and nothing else, becomes NaN, the canonical one.
    let body = "mov.b32 %r0, 0; setp.eq.u32 %p0, %ti, 5; @%p0 mov.b32 %r0, 0x00007C01;
        mov.f32 %f0, 0f3F800000;
        mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r0, 0}, {0}, {%f0, %f0, %f0, %f0};
        mov.b32 %v, %f1; st.global.u32 [%mine], %v;";
    let body = body.replace("{%r0, 0}, {0}", "{%r0, %r1}, {%r1}").replace("mov.f32 %f0", "mov.b32 %r1, 0; mov.f32 %f0");
    gives("sm_80", "", &body, 32, |t| if t / 4 == 1 { 0x7FFF_FFFF } else { 0x3F80_0000 });
}
