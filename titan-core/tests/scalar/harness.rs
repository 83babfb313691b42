//! A lane function of one operation, called like a function; sources of operands; rounding by its definition.

use crate::eval::{self, Evaluator, Margin};
use titan_core::ir::Elem;
use titan_core::lane::{Builder, Func, OpKind, Ty, Value, verify};
use titan_core::lower::scalar::register;
use titan_core::target::{Native, Target};

/// A machine with everything, or with nothing that may be missing.
pub(crate) fn target(native: bool) -> Target {
    let native = Native {
        arithmetic: if native { vec![Elem::Bf16] } else { Vec::new() },
        conversions: if native { vec![Elem::E4m3, Elem::E5m2] } else { Vec::new() },
    };
    Target { native, ..Target::plain("test", 32) }
}

/// An operation on elements.
pub(crate) struct Lane {
    func: Func,
    result: Value,
}

impl Lane {
    pub(crate) fn new(operands: &[Elem], emit: impl FnOnce(&mut Builder, &[Value]) -> Value) -> Lane {
        let wide: Vec<bool> = operands.iter().map(|e| register(*e) == Ty::B64).collect();
        let (mut b, words) = eval::builder(&wide);
        let values: Vec<Value> = operands
            .iter()
            .zip(words)
            .map(|(e, word)| match register(*e) {
                Ty::Pred => {
                    let zero = b.i32(0);
                    b.cmp_u(titan_core::ir::Pred::Ne, word, zero)
                }
                Ty::B16 => b.one(OpKind::Truncate(Ty::B16), &[word]),
                Ty::B32 | Ty::B64 => word,
            })
            .collect();
        let result = emit(&mut b, &values);
        b.terminate(OpKind::Return, &[]);
        let func = b.finish().expect("operands have the widths that operations take");
        verify(&func).expect("the function is right");
        Lane { func, result }
    }

    pub(crate) fn at(&self, margin: Margin) -> impl FnMut(&[u64]) -> u64 {
        let mut run = Evaluator::new(&self.func, margin);
        move |operands| {
            run.run(operands).expect("the operations keep their contracts");
            run.get(self.result)
        }
    }

    /// How many branches the function has.
    pub(crate) fn branches(&self) -> usize {
        let mut n = 0;
        self.func.walk(&mut |_, op| n += usize::from(op.kind == OpKind::If));
        n
    }

    pub(crate) fn call(&self) -> impl FnMut(&[u64]) -> u64 {
        self.at(Margin::None)
    }
}

/// Random words: xorshift64*, S. Vigna.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

/// All numbers of 16 bits. In the quick depth every seventh, of which some have any exponent and any lowest digits, and those around the
/// powers of two of `bf16`, among which are those of `f16` and the ends of integers.
pub(crate) fn codes() -> impl Iterator<Item = u16> {
    let is_edge = |code: u16| matches!(code & 0x7f, 0 | 1 | 0x7f);
    (0..=u16::MAX).filter(move |code| test_depth::is_full() || code % 7 == 0 || is_edge(*code))
}

/// The non-negative finite numbers of a format in order, and how it rounds.
pub(crate) struct Format {
    pub(crate) numbers: Vec<f64>,
    pub(crate) ties_away: bool,
    /// What is beyond: infinity, or the greatest number again.
    pub(crate) saturates: bool,
}

impl Format {
    pub(crate) fn f16() -> Format {
        let numbers = (0..0x7c00).map(|code| half::f16::from_bits(code).to_f64()).collect();
        Format { numbers, ties_away: false, saturates: false }
    }

    pub(crate) fn bf16() -> Format {
        let numbers = (0..0x7f80).map(|code| half::bf16::from_bits(code).to_f64()).collect();
        Format { numbers, ties_away: false, saturates: false }
    }

    pub(crate) fn tf32() -> Format {
        let numbers = (0..0x7f80_0000u32 >> 13).map(|code| f64::from(f32::from_bits(code << 13))).collect();
        Format { numbers, ties_away: true, saturates: false }
    }

    /// By the specification: bias 7 and 3 fraction bits, or bias 15 and 2.
    pub(crate) fn fp8(fraction: u32, bias: i32, greatest: u32) -> Format {
        let numbers = (0..=greatest).map(|code| {
            let (e, m) =
                ((code >> fraction) as i32, f64::from(code & ((1 << fraction) - 1)) / f64::from(1 << fraction));
            if e == 0 { m * 2f64.powi(1 - bias) } else { (1.0 + m) * 2f64.powi(e - bias) }
        });
        Format { numbers: numbers.collect(), ties_away: false, saturates: true }
    }

    pub(crate) fn of(elem: Elem) -> Format {
        match elem {
            Elem::F16 => Format::f16(),
            Elem::Bf16 => Format::bf16(),
            Elem::Tf32 => Format::tf32(),
            Elem::E4m3 => Format::fp8(3, 7, 0x7e),
            Elem::E5m2 => Format::fp8(2, 15, 0x7b),
            _ => panic!("{elem} is not narrow"),
        }
    }

    /// Which number is nearest to a magnitude that compares with an `f64` so; an index beyond the last is infinity.
    pub(crate) fn nearest(&self, compare: impl Fn(f64) -> std::cmp::Ordering) -> usize {
        let n = self.numbers.len();
        // The first number above.
        let above = self.numbers.partition_point(|x| compare(*x).is_ge());
        if above == 0 {
            return 0;
        }
        let below = above - 1;
        let next = if above < n { self.numbers[above] } else { 2.0 * self.numbers[n - 1] - self.numbers[n - 2] };
        let up = match compare(f64::midpoint(self.numbers[below], next)) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => self.ties_away || below % 2 == 1,
        };
        let code = below + usize::from(up);
        if self.saturates { code.min(n - 1) } else { code }
    }

    pub(crate) fn nearest_to(&self, magnitude: f64) -> usize {
        self.nearest(|x| magnitude.partial_cmp(&x).expect("not NaN"))
    }
}

/// `f32` bits of every exponent, around every power of two, and the edges of conversions.
pub(crate) fn singles(count: usize) -> Vec<u32> {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut all: Vec<u32> =
        vec![0, 1, 2, 0x007f_ffff, 0x0080_0000, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000, 0x7fff_ffff, 0x7f80_0001];
    for exponent in 0..255u32 {
        for low in [
            0, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0x7f_ffff, 0x40_0000, 0x3f_ffff, 0x10_0000, 0x30_0001,
        ] {
            all.push(exponent << 23 | low);
        }
    }
    let numbers =
        [0.5, 127.5, 128.5, 255.5, 32767.5, 65504.0, 65519.9, 65520.0, 448.0, 464.0, 57344.0, 61440.0, 1048576.0];
    all.extend(numbers.map(f32::to_bits));
    all.extend([2147483647f32, 4294967295.0, 9.223372e18, 1.8446744e19, 8.5, 7.5, 15.5, 16.0].map(f32::to_bits));
    all.extend((0..count).map(|_| random.word() as u32));
    let negative: Vec<u32> = all.iter().map(|x| x ^ 0x8000_0000).collect();
    all.extend(negative);
    all
}

/// `f64` of every exponent and around what narrower formats can tell apart.
pub(crate) fn doubles(count: usize) -> Vec<f64> {
    let mut random = Random(0xfeed_beef_1234_5679);
    let mut all: Vec<f64> = vec![0.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::INFINITY, f64::NAN, 1.0];
    for x in singles(count / 8) {
        let x = f64::from(f32::from_bits(x));
        all.extend([x, x.next_up(), x.next_down()]);
        // A tie of a shorter format, and a hair beside it.
        let short = f64::from_bits(x.to_bits() & !0xf_ffff_ffff | 0x8_0000_0000);
        all.extend([short, short.next_up(), short.next_down()]);
    }
    all.extend((0..count).map(|_| f64::from_bits(random.word())));
    let negative: Vec<f64> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all
}

/// Integers of every length, as 64 bits.
pub(crate) fn integers(count: usize) -> Vec<i64> {
    let mut random = Random(0x0dd0_aced_0dd0_aceb);
    let mut all = vec![0, 1, -1, i64::MAX, i64::MIN];
    for bit in 0..64u32 {
        let power = 1u64 << bit;
        for other in [
            0,
            bit.saturating_sub(8),
            bit.saturating_sub(9),
            bit.saturating_sub(11),
            bit.saturating_sub(24),
            bit.saturating_sub(25),
        ] {
            for x in [power | 1 << other, (power | 1 << other).wrapping_sub(1), power | 1 << other | 1] {
                all.extend([x as i64, (x as i64).wrapping_neg()]);
            }
        }
    }
    all.extend((0..count).map(|i| random.word() as i64 >> (i % 64)));
    all
}
