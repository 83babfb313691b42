//! MMAs: the registers that hold their elements, and their arithmetic.
//!
//! Source: ISA §7.1.4 "General input and output layout", §7.1.5 "Broadcasting values", §7.3 for what happens to subnormal
//! numbers. Products of floats of up to 32 bits are summed in `f64` and rounded once to `f32`; hardware rounds along the
//! way, so that results differ by at most about one unit in the last place of the largest partial sum for each step of k
//! (the manual states no bound). Those of `f64` are fused one after the other; those of integers wrap around, or saturate.

use super::lane::convert::{BF8, FP8};
use super::lane::{Mode, denormals};
use super::vectors::Lanes;
use crate::isa::Elem;
use titan_core::num;

/// The shape of an MMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    m: usize,
    n: usize,
    k: usize,
    blocks: usize,
    a: Elem,
    b: Elem,
    d: Elem,
}

/// The modifiers of an MMA.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Modifiers {
    pub(crate) cbsz: u32,
    pub(crate) abid: u32,
    pub(crate) blgp: u32,
}

impl Shape {
    /// The shape in a mnemonic: `v_mfma_f32_4x4x4_16b_f16`.
    pub(crate) fn of(name: &str, a: Elem, b: Elem, d: Elem) -> Option<Shape> {
        let rest = name.strip_prefix("v_mfma_")?;
        let mut parts = rest.split('_').skip(1);
        let dims: Vec<usize> = parts.next()?.split('x').map(|d| d.parse().ok()).collect::<Option<_>>()?;
        let [m, n, k] = dims[..] else { return None };
        let blocks = parts.next().and_then(|p| p.strip_suffix('b')).and_then(|b| b.parse().ok()).unwrap_or(1);
        Some(Shape { m, n, k, blocks, a, b, d })
    }

    /// The number of consecutive values of k in a lane.
    const fn per_lane(self, rows: usize) -> usize {
        self.k / (64 / (rows * self.blocks))
    }

    /// The lane and the index in it of an input's element.
    const fn input(self, rows: usize, block: usize, row: usize, k: usize) -> (usize, usize) {
        let kl = self.per_lane(rows);
        (row + rows * (block + self.blocks * (k / kl)), k % kl)
    }

    /// The lane and the index in it of an output's element.
    const fn output(self, block: usize, i: usize, j: usize) -> (usize, usize) {
        if self.d.bits() == 64 && self.blocks > 1 {
            // Rows are further apart than blocks, as in the inputs: AMD's matrix instruction calculator for CDNA3. The
            // manual's formula has it the other way round.
            return (j + self.n * (block + self.blocks * i), 0);
        }
        let h = if self.d.bits() == 64 { 1 } else { 4 };
        let bi = 64_usize.div_ceil(self.n * self.m / h);
        let mi = (64 / bi) / self.n;
        let g = self.m / (h * mi);
        let item = i % h + h * (i / (h * mi) + g * (block / bi));
        (j + self.n * ((i / h) % mi + mi * (block % bi)), item)
    }
}

fn lane_of_a(lane: usize, m: Modifiers) -> usize {
    let size = 64 >> m.cbsz;
    if m.cbsz == 0 { lane } else { lane % size + size * m.abid as usize }
}

const fn lane_of_b(lane: usize, m: Modifiers) -> usize {
    match m.blgp {
        0 => lane,
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % 64,
        n => lane % 16 + 16 * (n as usize - 4),
    }
}

/// An element of a lane's registers.
fn item(registers: &[Lanes], lane: usize, index: usize, bits: usize) -> u64 {
    if bits == 64 {
        return u64::from(registers[2 * index][lane]) | u64::from(registers[2 * index + 1][lane]) << 32;
    }
    let per = 32 / bits;
    let word = u64::from(registers[index / per][lane]);
    word >> (bits * (index % per)) & ((1_u64 << bits) - 1)
}

/// The value of an element's bits.
#[expect(clippy::cast_possible_truncation, reason = "the bits of an element")]
fn number(elem: Elem, bits: u64, mode: Mode) -> f64 {
    match elem {
        Elem::F(16) => num::f16_to_f64(bits as u16),
        Elem::Bf16 => num::bf16_to_f64(bits as u16),
        Elem::Fp8 => FP8.decode(bits as u8),
        Elem::Bf8 => BF8.decode(bits as u8),
        Elem::Xf32 => round_xf32(f32::from_bits(bits as u32)).into(),
        Elem::F(32) => {
            let x = f32::from_bits(bits as u32);
            if x.is_subnormal() && !denormals(mode, 32).inputs { 0.0 } else { x.into() }
        }
        Elem::F(_) => f64::from_bits(bits),
        Elem::I(n) => (((bits << (64 - n)).cast_signed()) >> (64 - n)) as f64,
        Elem::B(_) | Elem::U(_) => bits as f64,
    }
}

/// Rounds to an `f32` with ten bits of fraction, to nearest even.
fn round_xf32(x: f32) -> f32 {
    if !x.is_finite() {
        return x;
    }
    let bits = x.to_bits();
    let up = (1 << 12) - 1 + (bits >> 13 & 1);
    f32::from_bits(bits.wrapping_add(up) & !0x1FFF)
}

/// All values of an input, by block, row and k.
fn gather(
    s: Shape,
    rows: usize,
    elem: Elem,
    registers: &[Lanes],
    mode: Mode,
    lane: impl Fn(usize) -> usize,
) -> Vec<f64> {
    let mut all = Vec::with_capacity(s.blocks * rows * s.k);
    for block in 0..s.blocks {
        for row in 0..rows {
            for k in 0..s.k {
                let (l, i) = s.input(rows, block, row, k);
                all.push(number(elem, item(registers, lane(l), i, elem.bits() as usize), mode));
            }
        }
    }
    all
}

/// Computes the MMA: registers of D from those of A, B and C. `clamp` is the mode's flag for overflow.
#[expect(clippy::cast_possible_truncation, reason = "rounded to the result's format")]
pub(crate) fn multiply(s: Shape, a: &[Lanes], b: &[Lanes], c: &[Lanes], mods: Modifiers, mode: Mode) -> Vec<Lanes> {
    let double = s.d.bits() == 64;
    let (plain, negate) = if double { (Modifiers::default(), mods.blgp) } else { (mods, 0) };
    let sign = |bit: u32| if negate >> bit & 1 == 1 { -1.0 } else { 1.0 };
    let left = gather(s, s.m, s.a, a, mode, |l| lane_of_a(l, plain));
    let right = gather(s, s.n, s.b, b, mode, |l| lane_of_b(l, plain));
    let mut out = c.to_vec();
    for block in 0..s.blocks {
        for i in 0..s.m {
            let row = &left[(block * s.m + i) * s.k..][..s.k];
            for j in 0..s.n {
                let column = &right[(block * s.n + j) * s.k..][..s.k];
                let (lane, at) = s.output(block, i, j);
                let old = item(c, lane, at, s.d.bits() as usize);
                if double {
                    let start = f64::from_bits(old) * sign(2);
                    let pairs = row.iter().zip(column);
                    let sum = pairs.fold(start, |sum, (x, y)| num::fma(x * sign(0), y * sign(1), sum));
                    let bits = sum.to_bits();
                    out[2 * at][lane] = bits as u32;
                    out[2 * at + 1][lane] = (bits >> 32) as u32;
                    continue;
                }
                let products: f64 = row.iter().zip(column).map(|(x, y)| x * y).sum();
                out[at][lane] = match s.d {
                    // Sums of products of bytes are exact in f64.
                    Elem::I(_) => add_integer(old as u32, products as i64, mode.fp16_overflow),
                    _ => {
                        let sum = (products + f64::from(f32::from_bits(old as u32))) as f32;
                        let most = sum.is_infinite() && mode.fp16_overflow;
                        if most { f32::MAX.copysign(sum) } else { sum }.to_bits()
                    }
                };
            }
        }
    }
    out
}

/// The shadow of an MMA's result: an element is undefined if a bit of the elements is that it is computed from.
pub(crate) fn shadow(s: Shape, a: &[Lanes], b: &[Lanes], c: &[Lanes], mods: Modifiers) -> Vec<Lanes> {
    let plain = if s.d.bits() == 64 { Modifiers::default() } else { mods };
    let undefined = |elem: Elem, registers: &[Lanes], rows: usize, lane: &dyn Fn(usize) -> usize, at: [usize; 3]| {
        let [block, row, k] = at;
        let (l, i) = s.input(rows, block, row, k);
        item(registers, lane(l), i, elem.bits() as usize) != 0
    };
    let mut out = vec![[0; 64]; c.len()];
    for block in 0..s.blocks {
        let left: Vec<bool> = (0..s.m)
            .map(|i| (0..s.k).any(|k| undefined(s.a, a, s.m, &|l| lane_of_a(l, plain), [block, i, k])))
            .collect();
        let right: Vec<bool> = (0..s.n)
            .map(|j| (0..s.k).any(|k| undefined(s.b, b, s.n, &|l| lane_of_b(l, plain), [block, j, k])))
            .collect();
        for (i, j) in (0..s.m).flat_map(|i| (0..s.n).map(move |j| (i, j))) {
            let (lane, at) = s.output(block, i, j);
            let bits = s.d.bits() as usize;
            if left[i] || right[j] || item(c, lane, at, bits) != 0 {
                let words = bits / 32;
                out[words * at..words * (at + 1)].iter_mut().for_each(|w| w[lane] = u32::MAX);
            }
        }
    }
    out
}

#[expect(clippy::cast_possible_truncation, reason = "wraps around, or is clamped before")]
fn add_integer(old: u32, products: i64, saturates: bool) -> u32 {
    let sum = i64::from(old.cast_signed()) + products;
    let sum = if saturates { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
    (sum as i32).cast_unsigned()
}

/// Whether broadcasting is defined: ISA §7.1.5.1.
pub(crate) const fn defined(s: Shape, m: Modifiers) -> bool {
    s.d.bits() == 64 || (m.cbsz == 0 && m.abid == 0) || ((1 << m.cbsz) <= s.blocks && m.abid < 1 << m.cbsz)
}
