//! Operands that are worth trying: the corners of every type, and random ones.

use titan_core::lane::{Num, Ty};

/// The same numbers in every run.
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Random {
        Random(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    /// xorshift64* (Vigna, 2016).
    pub(super) const fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Bits of all sizes: about as many small numbers as large ones.
    fn sized(&mut self) -> u64 {
        let bits = self.next();
        bits >> (self.next() % 64)
    }
}

/// Corners of integers and of bit patterns.
pub(super) fn integers(ty: Ty) -> Vec<u64> {
    let width = match ty {
        Ty::Pred => return vec![0, 1],
        Ty::B16 => 16,
        Ty::B32 => 32,
        Ty::B64 => 64,
    };
    let mask = super::mask(ty);
    let top = 1u64 << (width - 1);
    let small = [0, 1, 2, 3, 5, 7, 8, 10, 31, 63, 100, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff];
    let mut all: Vec<u64> = small.into_iter().flat_map(|x: u64| [x, x.wrapping_neg() & mask]).collect();
    all.extend([top, top - 1, top + 1, top >> 1, mask / 3, mask / 5 * 4, 0x1234_5678_9abc_def0 & mask]);
    all
}

/// Corners of floats: zeros, subnormals, ones, ties, the greatest, infinities, NaNs; by exponent and fraction bits.
fn floats(exponent: u32, fraction: u32) -> Vec<u64> {
    let one = ((1u64 << (exponent - 1)) - 1) << fraction;
    let infinity = ((1u64 << exponent) - 1) << fraction;
    let unit = 1u64 << fraction;
    let mut all = vec![
        0,
        1,
        2,
        3,
        unit / 2,
        unit - 1,
        unit,
        unit + 1,
        one,
        one + 1,
        one - 1,
        one + unit,
        one + unit / 2,
        one - unit,
        one + 3 * unit / 4,
        one + unit + unit / 2,
        one + 3 * unit,
        one + 5 * unit + unit / 4,
        infinity - 1,
        infinity - unit,
        infinity,
        infinity + unit / 2,
        infinity + 1,
        infinity + unit - 1,
    ];
    // Around the limits of integers.
    for power in [7, 8, 15, 16, 31, 32, 63, 64] {
        let at = one + power * unit;
        if at + 1 < infinity {
            all.extend([at - 1, at, at + 1]);
        }
    }
    let sign = 1u64 << (exponent + fraction);
    all.iter().flat_map(|x| [*x, x | sign]).collect()
}

/// Corners of a format.
pub(super) fn corners(num: Num) -> Vec<u64> {
    match num {
        Num::F16 => floats(5, 10),
        Num::Bf16 => floats(8, 7),
        Num::F32 | Num::Tf32 => floats(8, 23),
        Num::F64 => floats(11, 52),
        Num::E4m3 | Num::E5m2 => (0..256).collect(),
        Num::S32 | Num::U32 => integers(Ty::B32),
        Num::S64 | Num::U64 => integers(Ty::B64),
    }
}

/// Numbers that stand at or beside the middle of two neighbours in formats of fewer bits: fractions of `fraction` bits.
fn ties(fraction: u32, exponent: u64, random: &mut Random) -> u64 {
    // Fraction bits of the smaller formats.
    let kept = [2, 3, 7, 10, 23][random.next() as usize % 5].min(fraction - 1);
    let middle = 1u64 << (fraction - kept - 1);
    let high = random.next() % (1u64 << kept);
    let near = middle.wrapping_add((random.next() % 3).wrapping_sub(1));
    exponent << fraction | ((high << (fraction - kept)) + near)
}

/// One value of a format: any bits, or a number near a tie.
pub(super) fn any(num: Num, random: &mut Random) -> u64 {
    let sign = random.next() & 1;
    match num {
        Num::E4m3 | Num::E5m2 => random.next() & 0xff,
        Num::F16 | Num::Bf16 => random.next() & 0xffff,
        Num::F32 | Num::Tf32 if random.next() & 1 == 0 => {
            let exponent = 127 - 30 + random.next() % 60;
            sign << 31 | ties(23, exponent, random)
        }
        Num::F64 if random.next() & 1 == 0 => {
            let exponent = 1023 - 160 + random.next() % 320;
            sign << 63 | ties(52, exponent, random)
        }
        Num::F32 | Num::Tf32 => random.next() >> 32,
        Num::F64 => random.next(),
        Num::S32 | Num::U32 => random.sized() & 0xffff_ffff,
        Num::S64 | Num::U64 if random.next() & 1 == 0 => {
            let exponent = random.next() % 12;
            ties(52, 1, random).wrapping_shl(exponent as u32).wrapping_mul(if sign == 0 { 1 } else { u64::MAX })
        }
        Num::S64 | Num::U64 => random.sized(),
    }
}

/// A format whose corners are good operands of this width, when nothing more is known.
pub(super) fn plain(ty: Ty, random: &mut Random) -> u64 {
    random.sized() & super::mask(ty)
}

/// All tuples of the corners if they are few, else some, then `extra` tuples of `one`.
pub(super) fn tuples(corners: &[Vec<u64>], extra: usize, mut one: impl FnMut(usize) -> u64) -> Vec<Vec<u64>> {
    let most = test_depth::cases(4096, 512);
    let total = corners.iter().map(Vec::len).product::<usize>();
    let step = total.div_ceil(most) | 1;
    let mut all = Vec::new();
    for mut i in (0..total).step_by(step) {
        all.push(
            corners
                .iter()
                .map(|c| {
                    let value = c[i % c.len()];
                    i /= c.len();
                    value
                })
                .collect(),
        );
    }
    all.extend((0..extra).map(|_| (0..corners.len()).map(&mut one).collect()));
    all
}
