//! `wgmma` of all types, layouts and shapes against products in f64; operands come by tensor maps.

use crate::harness::{Shape, bytes, orders, run, text, wait};
use titan_core::num;
use titan_nv::emu::{Memory, Param};
use titan_nv::tma::{Element, Swizzle, TensorMap};
use titan_sim::engine::Rng;

/// A type of operands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ty {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    S8,
    U8,
}

impl Ty {
    fn name(self) -> &'static str {
        match self {
            Ty::F16 => "f16",
            Ty::Bf16 => "bf16",
            Ty::Tf32 => "tf32",
            Ty::E4m3 => "e4m3",
            Ty::E5m2 => "e5m2",
            Ty::S8 => "s8",
            Ty::U8 => "u8",
        }
    }
    fn element(self) -> Element {
        match self {
            Ty::F16 => Element::F16,
            Ty::Bf16 => Element::Bf16,
            Ty::Tf32 => Element::F32,
            Ty::E4m3 | Ty::E5m2 | Ty::S8 | Ty::U8 => Element::U8,
        }
    }
    fn size(self) -> usize {
        self.element().bytes() as usize
    }
    /// Of a small whole number, which all have.
    fn encode(self, x: i32) -> Vec<u8> {
        let f = x as f32;
        match self {
            Ty::F16 => num::f16_from_f32(f).to_le_bytes().to_vec(),
            Ty::Bf16 => num::bf16_from_f32(f).to_le_bytes().to_vec(),
            Ty::Tf32 => f.to_le_bytes().to_vec(),
            Ty::E4m3 => vec![num::e4m3_from_f32(f)],
            Ty::E5m2 => vec![num::e5m2_from_f32(f)],
            Ty::S8 => vec![(x as i8).cast_unsigned()],
            Ty::U8 => vec![x as u8],
        }
    }
    fn signed(self) -> bool {
        self != Ty::U8
    }
}

/// An operand: rows of M or N, by K.
struct Operand {
    ty: Ty,
    mn: usize,
    k: usize,
    mn_major: bool,
    swizzle: Swizzle,
}

impl Operand {
    /// The box that a load brings, and the boxes of the operand: coordinates, innermost first, and bytes from its start.
    fn boxes(&self) -> ([u32; 2], Vec<([usize; 2], usize)>) {
        let size = self.ty.size();
        let (inner, outer) = if self.mn_major { (self.mn, self.k) } else { (self.k, self.mn) };
        let width = self.swizzle.span().unwrap_or(16) as usize / size;
        let all = (0..inner).step_by(width).enumerate();
        let bytes = width * outer * size;
        ([width as u32, outer as u32], all.map(|(i, x)| ([x, 0], i * bytes)).collect())
    }

    fn bytes(&self) -> usize {
        self.mn * self.k * self.ty.size()
    }

    /// The descriptor without its address, and how far step `i` of K is from the start, in bytes.
    fn descriptor(&self, step_k: usize) -> (u64, impl Fn(usize) -> usize) {
        let size = self.ty.size();
        let w = self.swizzle.span().unwrap_or(16) as usize;
        let outer = if self.mn_major { self.k } else { self.mn };
        // Neighbouring boxes are `outer` lines apart; groups of 8 lines inside of one are 8.
        let (next_box, next_group) = (outer * w, 8 * w);
        let (lbo, sbo) = match (self.swizzle, self.mn_major) {
            (Swizzle::None, true) => (next_group, next_box),
            _ => (next_box, next_group),
        };
        let mode = match self.swizzle {
            Swizzle::None => 0_u64,
            Swizzle::B128 => 1,
            Swizzle::B64 => 2,
            Swizzle::B32 => 3,
        };
        let high = (lbo as u64 / 16) << 16 | (sbo as u64 / 16) << 32 | mode << 62;
        let mn_major = self.mn_major;
        let offset = move |i: usize| {
            if mn_major {
                i * step_k / 8 * next_group
            } else {
                let byte = i * step_k * size;
                byte / w * next_box + byte % w
            }
        };
        (high, offset)
    }
}

struct Case {
    a: Operand,
    b: Operand,
    acc: &'static str,
    a_in_registers: bool,
    negate: [bool; 2],
}

fn step_of(ty: Ty) -> usize {
    32 / ty.size()
}

/// Loads of an operand's boxes to `%r{base}`.
fn loads(map: &str, operand: &Operand, base: &str) -> String {
    let (_, boxes) = operand.boxes();
    boxes
        .iter()
        .map(|([x, y], at)| {
            format!(
                "add.u32 %r9, {base}, {at};\n\
                 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
                 [%r9], [{map}, {{{x}, {y}}}], [%r1];\n"
            )
        })
        .collect()
}

/// One warpgroup; A from registers is read from a plain copy in global memory.
fn kernel(case: &Case) -> String {
    let (a, b, n) = (&case.a, &case.b, case.b.mn);
    let step = step_of(a.ty);
    let steps = a.k / step;
    let b_at = a.bytes().next_multiple_of(1024);
    let total = a.bytes() + b.bytes();
    let n_acc = if case.acc == "f16" { n / 4 } else { n / 2 };
    let kind = if case.acc == "f32" { "%f" } else { "%r" };
    let acc: Vec<String> = (0..n_acc).map(|i| format!("{kind}{}", 100 + i)).collect();
    let ((a_high, a_step), (b_high, b_step)) = (a.descriptor(step), b.descriptor(step));
    let sign = |negative: bool| if negative { -1 } else { 1 };
    let halves = matches!(a.ty, Ty::F16 | Ty::Bf16);
    let mut body = format!(
        ".reg .b32 %r<512>; .reg .f32 %f<512>;\n\
         mov.u32 %r0, smem; add.u32 %r2, %r0, {b_at}; mov.u32 %r1, bars; mov.u32 %r3, %tid.x; setp.ne.u32 %p0, %r3, 0;\n\
         mov.u64 %rd0, map_a; cvta.param.u64 %rd0, %rd0; mov.u64 %rd1, map_b; cvta.param.u64 %rd1, %rd1;\n\
         ld.param.u64 %rd2, [plain]; ld.param.u64 %rd3, [out];\n\
         @%p0 bra READY;\n\
         mbarrier.init.shared::cta.b64 [%r1], 1; fence.mbarrier_init.release.cluster;\n\
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], {total};\n{}{}\
         READY: bar.sync 0;\n{}",
        loads("%rd0", a, "%r0"),
        loads("%rd1", b, "%r2"),
        wait("%r1", 0, "W"),
    )
    .replace(".reg .b32 %r<512>; .reg .f32 %f<512>;\n", "");
    let mut mma = String::new();
    for i in 0..steps {
        let mut a_operand = "%rd4".to_owned();
        if case.a_in_registers {
            // Thread t of a warp has rows t / 4 and t / 4 + 8, and 4 bytes at each of two places of its 32.
            mma += &format!(
                "shr.u32 %r10, %r3, 5; shl.b32 %r10, %r10, 4; and.b32 %r11, %r3, 31; shr.u32 %r12, %r11, 2; \
                 add.u32 %r10, %r10, %r12; and.b32 %r11, %r11, 3; shl.b32 %r11, %r11, 2;\n\
                 mad.lo.u32 %r10, %r10, {row}, %r11; add.u32 %r10, %r10, {at}; cvt.u64.u32 %rd6, %r10; add.u64 %rd6, %rd6, %rd2;\n",
                row = a.k * a.ty.size(),
                at = i * 32,
            );
            for (r, offset) in [0, 8 * a.k * a.ty.size(), 16, 8 * a.k * a.ty.size() + 16].iter().enumerate() {
                mma += &format!("ld.global.u32 %r{}, [%rd6+{offset}];\n", 20 + 4 * i + r);
            }
            let regs: Vec<String> = (0..4).map(|r| format!("%r{}", 20 + 4 * i + r)).collect();
            a_operand = format!("{{{}}}", regs.join(", "));
        }
        body += &mma;
        mma = format!(
            "add.u32 %r5, %r0, {}; shr.u32 %r5, %r5, 4; cvt.u64.u32 %rd4, %r5; or.b64 %rd4, %rd4, {a_high:#x};\n\
             add.u32 %r6, %r2, {}; shr.u32 %r6, %r6, 4; cvt.u64.u32 %rd5, %r6; or.b64 %rd5, %rd5, {b_high:#x};\n\
             setp.ne.u32 %p1, {i}, 0;\n",
            a_step(i),
            b_step(i)
        );
        let scales = match case.acc {
            "s32" => "%p1".to_owned(),
            _ => format!("%p1, {}, {}", sign(case.negate[0]), sign(case.negate[1])),
        };
        let majors = match (halves, case.a_in_registers) {
            (false, _) => String::new(),
            (true, true) => format!(", {}", u8::from(b.mn_major)),
            (true, false) => format!(", {}, {}", u8::from(a.mn_major), u8::from(b.mn_major)),
        };
        mma += &format!(
            "wgmma.fence.sync.aligned;\n\
             wgmma.mma_async.sync.aligned.m64n{n}k{step}.{}.{}.{} {{{}}}, {a_operand}, %rd5, {scales}{majors};\n\
             wgmma.commit_group.sync.aligned;\n",
            case.acc,
            a.ty.name(),
            b.ty.name(),
            acc.join(", ")
        );
        body += &std::mem::take(&mut mma);
    }
    body += "wgmma.wait_group.sync.aligned 0;\n";
    body += &format!("mul.wide.u32 %rd7, %r3, {}; add.u64 %rd7, %rd7, %rd3;\n", n_acc * 4);
    for (i, reg) in acc.iter().enumerate() {
        body += &format!("st.global.{} [%rd7+{}], {reg};\n", if kind == "%f" { "f32" } else { "u32" }, 4 * i);
    }
    body += "ret;";
    let params = ".param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128], .param .u64 plain, .param .u64 out";
    text(params, 0, "", &body).replace("%r<128>", "%r<512>").replace("%f<256>", "%f<512>")
}

/// The matrix as it lies in memory: rows of K, or of M and N.
fn upload(memory: &mut Memory, name: &str, o: &Operand, values: &[i32]) -> Param {
    let (inner, outer) = if o.mn_major { (o.mn, o.k) } else { (o.k, o.mn) };
    let size = o.ty.size();
    let pitch = (inner * size).next_multiple_of(16);
    let mut data = vec![0; pitch * outer];
    for (i, x) in values.iter().enumerate() {
        let (mn, k) = (i / o.k, i % o.k);
        let (x_at, y_at) = if o.mn_major { (mn, k) } else { (k, mn) };
        data[y_at * pitch + x_at * size..][..size].copy_from_slice(&o.ty.encode(*x));
    }
    let ptr = memory.upload(name, &data);
    let map =
        TensorMap::tiled(o.ty.element(), ptr.address(), &[inner as u64, outer as u64], &[pitch as u64], &o.boxes().0);
    bytes(&TensorMap { swizzle: o.swizzle, ..map })
}

fn check(case: &Case, seed: usize) {
    let mut rng = Rng::new(seed as u64);
    let mut values = |o: &Operand| -> Vec<i32> {
        let low = if o.ty.signed() { -3 } else { 0 };
        (0..o.mn * o.k).map(|_| (rng.next_u64() % 7) as i32 + low).collect()
    };
    let (a, b) = (values(&case.a), values(&case.b));
    let mut memory = Memory::new();
    let maps = [upload(&mut memory, "a", &case.a, &a), upload(&mut memory, "b", &case.b, &b)];
    let plain: Vec<u8> = a.iter().flat_map(|x| case.a.ty.encode(*x)).collect();
    let plain = memory.upload("plain", &plain);
    let (n, k) = (case.b.mn, case.a.k);
    let n_acc = if case.acc == "f16" { n / 4 } else { n / 2 };
    let out = memory.alloc_named("out", 128 * n_acc * 4);
    let params = [&maps[..], &[Param::Ptr(plain), Param::Ptr(out)]].concat();
    let shared = case.a.bytes().next_multiple_of(1024) + case.b.bytes();
    let shape = Shape { blocks: 1, cluster: 1, threads: 128, shared: shared as u32 };
    let what = format!(
        "{}x{} n{n} a {} {:?} {} b {} {:?} {}",
        case.acc,
        case.a.k,
        case.a.ty.name(),
        case.a.swizzle,
        case.a.mn_major,
        case.b.ty.name(),
        case.b.swizzle,
        case.b.mn_major
    );
    run(&kernel(case), shape, &params, &mut memory, &orders()[seed % 4]).unwrap_or_else(|e| panic!("{what}: {e}"));
    let got = memory.read(out, 128 * n_acc * 4).unwrap();
    let sign = if case.negate[0] == case.negate[1] { 1 } else { -1 };
    for (m, col) in (0..64).flat_map(|m| (0..n).map(move |col| (m, col))) {
        let dot: i32 = sign * (0..k).map(|i| a[m * k + i] * b[col * k + i]).sum::<i32>();
        // Warp m / 16; lanes go by 4 along rows, by 2 along columns; rows 8 apart are in the next registers.
        let (row, thread) = (m % 16, m / 16 * 32 + m % 8 * 4 + col % 8 / 2);
        let (value, bits) = if case.acc == "f16" {
            let at = (thread * n_acc + col / 8 * 2 + row / 8) * 4 + col % 2 * 2;
            let bits = u16::from_le_bytes([got[at], got[at + 1]]);
            (num::f16_to_f64(bits), u32::from(bits))
        } else {
            let at = (thread * n_acc + col / 8 * 4 + row / 8 * 2 + col % 2) * 4;
            let bits = u32::from_le_bytes(got[at..at + 4].try_into().unwrap());
            let value = if case.acc == "s32" { f64::from(bits.cast_signed()) } else { f64::from(f32::from_bits(bits)) };
            (value, bits)
        };
        assert_eq!(value, f64::from(dot), "{what}: row {m}, column {col}, bits {bits:#x}");
    }
}

#[test]
fn all_layouts_of_halves() {
    let swizzles = [Swizzle::B128, Swizzle::B64, Swizzle::B32, Swizzle::None];
    let mut cases = Vec::new();
    for (ty, acc) in [(Ty::F16, "f32"), (Ty::Bf16, "f32"), (Ty::F16, "f16")] {
        for (a_swizzle, b_swizzle) in swizzles.into_iter().flat_map(|a| swizzles.map(|b| (a, b))) {
            for (a_mn, b_mn) in [(false, false), (true, false), (false, true), (true, true)] {
                let seed = cases.len() + 1;
                let n = [64, 128, 192, 256][seed % 4];
                let a = Operand { ty, mn: 64, k: 64, mn_major: a_mn, swizzle: a_swizzle };
                let b = Operand { ty, mn: n, k: 64, mn_major: b_mn, swizzle: b_swizzle };
                let negate = [seed % 3 == 0, seed % 5 == 0];
                cases.push((seed, Case { a, b, acc, a_in_registers: false, negate }));
            }
        }
    }
    let traits = |(_, case): &(usize, Case)| {
        let of = |name: &str, o: &Operand| format!("{name}: {:?}, {}", o.swizzle, o.mn_major);
        let types = format!("{:?}, {}, {}, {}", case.a.ty, case.acc, case.a.mn_major, case.b.mn_major);
        vec![of("a", &case.a), of("b", &case.b), types, format!("{:?} {}", case.negate, case.b.mn)]
    };
    for (seed, case) in test_depth::covering(cases, traits) {
        check(&case, seed);
    }
}

#[test]
fn all_numbers_of_columns() {
    for n in test_depth::sample_each((8..=256).step_by(8), 1, |n| (n % 16, n / 65)) {
        let of = |mn, ty| Operand { ty, mn, k: 64, mn_major: false, swizzle: Swizzle::B128 };
        let case = |a_in_registers| Case {
            a: of(64, Ty::Bf16),
            b: of(n, Ty::Bf16),
            acc: "f32",
            a_in_registers,
            negate: [false; 2],
        };
        check(&case(n % 16 == 0), n);
    }
}

#[test]
fn all_types() {
    let types = [
        (Ty::Tf32, Ty::Tf32, "f32"),
        (Ty::E4m3, Ty::E4m3, "f32"),
        (Ty::E4m3, Ty::E5m2, "f32"),
        (Ty::E5m2, Ty::E4m3, "f16"),
        (Ty::S8, Ty::S8, "s32"),
        (Ty::U8, Ty::S8, "s32"),
        (Ty::U8, Ty::U8, "s32"),
    ];
    let (mut seed, mut cases) = (500, Vec::new());
    for (a_ty, b_ty, acc) in types {
        for swizzle in [Swizzle::B128, Swizzle::B64, Swizzle::B32, Swizzle::None] {
            for a_in_registers in [false, true] {
                seed += 1;
                let k = 128 / a_ty.size();
                let a = Operand { ty: a_ty, mn: 64, k, mn_major: false, swizzle };
                let b = Operand { ty: b_ty, mn: [16, 96, 32][seed % 3], k, mn_major: false, swizzle };
                cases.push((seed, Case { a, b, acc, a_in_registers, negate: [false; 2] }));
            }
        }
    }
    let traits = |(_, Case { a, b, a_in_registers, .. }): &(usize, Case)| {
        vec![format!("{:?} {:?}, {a_in_registers}", a.ty, b.ty), format!("{:?}, {a_in_registers}", a.swizzle)]
    };
    for (seed, case) in test_depth::covering(cases, traits) {
        check(&case, seed);
    }
}
