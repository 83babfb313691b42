//! MMAs of a warp: the elements that each thread holds, and the results.
//!
//! With `g = lane / 4`, `t = lane % 4`, and `p` elements packed in a 32-bit register (1 for tf32 and f64, 2 for halves, 4
//! for bytes, 8 for nibbles), element `s` of register `r` is
//!
//! | operand | row | column |
//! |---|---|---|
//! | A, M×K | `g + 8·(r mod 2)`, or `g` if M is 8 | `4p·(r div 2) + p·t + s`, or `p·t + s` if M is 8 |
//! | B, K×N | `4p·r + p·t + s` | `g` |
//! | C and D, M×N, one element a register | `g + 8·(r div 2)` | `2t + r mod 2` |
//! | C and D of f16, two a register | `g + 8·r` | `2t + s` |
//!
//! This is the pattern behind the figures of the PTX ISA manual, section "Warp-level matrix multiply-accumulate
//! instructions", "Matrix Fragments for mma.m8n8k4 (f64), .m8n8k16, .m8n8k32, .m16n8k4, .m16n8k8, .m16n8k16, .m16n8k32,
//! .m16n8k64"; `tests` spell some of them out.
//!
//! **Rounding.** Products are exact, their sum with C is taken in f64 and rounded once to the accumulator. Hardware also
//! takes products exactly, but aligns and truncates the sum to a few bits more than f32 (Fasi, Higham, Mikaitis, Pranesh,
//! "Numerical behavior of NVIDIA tensor cores", PeerJ CS 2021), and for fp8 on sm_90 to fewer; the manual promises only
//! "at least single precision". So results agree within the error of an f32 sum, not bit by bit. f64 products are chains
//! of fused multiply-adds in the order of k; integer sums are exact, then wrapped or clamped.

use super::lane::format::{E4M3, E5M2, F16};
use super::lane::{Rnd, lo};
use super::op::MmaOp;
use super::ty::Ty;

/// The extents of an MMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MmaShape {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

/// The values of a register in all 32 lanes.
pub(crate) type Lanes = [u64; 32];

impl MmaShape {
    /// Parses an MMA shape such as `m16n8k16`.
    pub(crate) fn named(name: &str) -> Option<MmaShape> {
        let (m, rest) = name.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(MmaShape { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    }

    /// The number of registers of A, of B, and of C and D.
    pub(crate) fn registers(self, operand: Ty, acc: Ty) -> [usize; 3] {
        let per = per_register(operand);
        let c = self.m * self.n / 32;
        [self.m * self.k / 32 / per, self.k * self.n / 32 / per, if acc == Ty::F16 { c / 2 } else { c }]
    }
}

/// The number of elements in a register.
pub(crate) const fn per_register(ty: Ty) -> usize {
    match ty.bits() {
        64 => 1,
        bits => 32 / bits as usize,
    }
}

/// Whether this instruction exists. PTX ISA, "mma", table of types and shapes; those of sm_80 to sm_90.
pub(crate) fn exists(shape: MmaShape, a: Ty, b: Ty, acc: Ty, out: Ty) -> bool {
    let MmaShape { m, n, k } = shape;
    let fp8 = |t| matches!(t, Ty::E4m3 | Ty::E5m2);
    let byte = |t| matches!(t, Ty::S8 | Ty::U8);
    let nibble = |t| matches!(t, Ty::S4 | Ty::U4);
    let shaped = match (m, n) {
        (16, 8) => match a {
            Ty::F16 => k == 8 || k == 16,
            Ty::Bf16 => k == 8 || k == 16,
            Ty::Tf32 => k == 4 || k == 8,
            Ty::F64 => k == 4 || k == 8 || k == 16,
            t if fp8(t) => k == 16 || k == 32,
            t if byte(t) => k == 16 || k == 32,
            t if nibble(t) => k == 32 || k == 64,
            _ => false,
        },
        (8, 8) => match a {
            Ty::F64 => k == 4,
            t if byte(t) => k == 16,
            t if nibble(t) => k == 32,
            _ => false,
        },
        _ => false,
    };
    let typed = match a {
        Ty::F16 => b == a && matches!(acc, Ty::F16 | Ty::F32),
        Ty::Bf16 | Ty::Tf32 => b == a && acc == Ty::F32,
        Ty::F64 => b == a && acc == Ty::F64,
        t if fp8(t) => fp8(b) && matches!(acc, Ty::F16 | Ty::F32),
        t if byte(t) => byte(b) && acc == Ty::S32,
        t if nibble(t) => nibble(b) && acc == Ty::S32,
        _ => false,
    };
    shaped && typed && acc == out
}

/// The row and column of an element of A.
pub fn at_a(m: usize, per: usize, lane: usize, r: usize, s: usize) -> (usize, usize) {
    let (g, t) = (lane / 4, lane % 4);
    if m == 8 { (g, 4 * per * r + per * t + s) } else { (g + 8 * (r % 2), 4 * per * (r / 2) + per * t + s) }
}

/// The row and column of an element of B.
pub fn at_b(per: usize, lane: usize, r: usize, s: usize) -> (usize, usize) {
    (4 * per * r + per * (lane % 4) + s, lane / 4)
}

/// The row and column of an element of C or D.
pub fn at_c(packed: bool, lane: usize, r: usize, s: usize) -> (usize, usize) {
    let (g, t) = (lane / 4, lane % 4);
    if packed { (g + 8 * r, 2 * t + s) } else { (g + 8 * (r / 2), 2 * t + r % 2) }
}

/// The value of element `s` of a register.
pub(crate) fn element(ty: Ty, bits: u64, s: usize) -> f64 {
    let part = |width: usize| bits >> (width * s) & ((1 << width) - 1);
    let int = |width: usize, signed: bool| {
        let x = part(width);
        let negative = signed && x >> (width - 1) & 1 == 1;
        x as f64 - if negative { (1_u64 << width) as f64 } else { 0.0 }
    };
    match ty {
        Ty::F16 => half(part(16)),
        Ty::Bf16 => f32::from_bits(lo(part(16)) << 16).into(),
        // The lower 13 bits of a tf32 operand are ignored.
        Ty::Tf32 => f32::from_bits(lo(bits) & 0xFFFF_E000).into(),
        Ty::F32 => f32::from_bits(lo(bits)).into(),
        Ty::F64 => f64::from_bits(bits),
        Ty::E4m3 => E4M3.value(part(8)),
        Ty::E5m2 => E5M2.value(part(8)),
        Ty::S8 => int(8, true),
        Ty::U8 => int(8, false),
        Ty::S4 => int(4, true),
        Ty::U4 => int(4, false),
        _ => f64::from(lo(bits).cast_signed()),
    }
}

/// Converts an f16 to f64 by shifting its fields into those of an f32 and correcting the exponent.
pub fn half(bits: u64) -> f64 {
    let magnitude = lo(bits & 0x7FFF) << 13;
    let scaled = f32::from_bits(magnitude) * f32::from_bits(0x7780_0000);
    let value = if bits & 0x7C00 == 0x7C00 { f32::from_bits(magnitude | 0x7F80_0000) } else { scaled };
    f64::from(if bits & 0x8000 != 0 { -value } else { value })
}

/// The bits of an element of D, whose type is that of the accumulator.
#[expect(clippy::cast_possible_truncation, reason = "rounded to the accumulator's type")]
pub(crate) fn rounded(ty: Ty, saturate: bool, x: f64) -> u64 {
    match ty {
        Ty::F16 => F16.code(x, Rnd::Near, false),
        Ty::F32 if x.is_nan() => 0x7FFF_FFFF,
        Ty::F32 => (x as f32).to_bits().into(),
        Ty::F64 => x.to_bits(),
        _ if saturate => (x as i32).cast_unsigned().into(),
        _ => (x as i64).cast_unsigned() & 0xFFFF_FFFF,
    }
}

/// Computes D from the registers of A, B and C.
pub(crate) fn multiply(op: &MmaOp, a: &[Lanes], b: &[Lanes], c: &[Lanes]) -> Vec<Lanes> {
    let MmaShape { m, n, k } = op.shape;
    let (per_a, per_b) = (per_register(op.a), per_register(op.b));
    let packed = op.acc == Ty::F16;
    let per_c = if packed { 2 } else { 1 };
    let (mut am, mut bm, mut cm) = ([0.0; 16 * 64], [0.0; 64 * 8], [0.0; 16 * 8]);
    for lane in 0..32 {
        for (r, s) in (0..a.len()).flat_map(|r| (0..per_a).map(move |s| (r, s))) {
            let (row, col) = at_a(m, per_a, lane, r, s);
            am[row * k + col] = element(op.a, a[r][lane], s);
        }
        for (r, s) in (0..b.len()).flat_map(|r| (0..per_b).map(move |s| (r, s))) {
            let (row, col) = at_b(per_b, lane, r, s);
            bm[row * n + col] = element(op.b, b[r][lane], s);
        }
        for (r, s) in (0..c.len()).flat_map(|r| (0..per_c).map(move |s| (r, s))) {
            let (row, col) = at_c(packed, lane, r, s);
            cm[row * n + col] = element(op.acc, c[r][lane], s);
        }
    }
    let fused = op.a == Ty::F64;
    for (row, sums) in am.chunks_exact(k).zip(cm.chunks_exact_mut(n)).take(m) {
        for (x, others) in row.iter().zip(bm.chunks_exact(n)) {
            for (sum, y) in sums.iter_mut().zip(others) {
                *sum = if fused { titan_core::num::fma(*x, *y, *sum) } else { *sum + x * y };
            }
        }
    }
    let mut d = vec![[0; 32]; c.len()];
    for (r, s) in (0..c.len()).flat_map(|r| (0..per_c).map(move |s| (r, s))) {
        for (lane, bits) in d[r].iter_mut().enumerate() {
            let (row, col) = at_c(packed, lane, r, s);
            *bits |= rounded(op.out, op.saturate, cm[row * n + col]) << (16 * s);
        }
    }
    d
}

/// The row and column of the element of an 8×8 matrix of 16-bit elements that half `s` of a lane's register holds.
pub(crate) const fn at_8x8(lane: usize, s: usize, transposed: bool) -> (usize, usize) {
    let (row, col) = (lane / 4, 2 * (lane % 4) + s);
    if transposed { (col, row) } else { (row, col) }
}
