//! Quotients by one divisor are those of division: halves over all of their numbers, `f32` over all exponents, close to ties, and
//! with every reciprocal that machines may have.

use crate::eval::{self, Evaluator, Margin};
use crate::harness::{Random, singles, target};
use titan_core::ir::Elem;
use titan_core::lane::{FloatBin, FloatTy, Func, OpKind, Ty, Value, verify};
use titan_core::lower::scalar::{quotients, register};

/// As many numerators as are worth a reciprocal, and twice that.
const NUMERATORS: usize = 8;
const MARGINS: [Margin; 3] = [Margin::None, Margin::High, Margin::Low];

/// The quotients of several numerators, the first operands, by the last operand.
struct Row {
    func: Func,
    results: Vec<Value>,
}

impl Row {
    fn new(elem: Elem) -> Row {
        let (mut b, words) = eval::builder(&[false; NUMERATORS + 1]);
        let operand = |b: &mut titan_core::lane::Builder, word: Value| match register(elem) {
            Ty::B16 => b.one(OpKind::Truncate(Ty::B16), &[word]),
            Ty::B32 => word,
            Ty::Pred | Ty::B64 => panic!("{elem} is tested elsewhere"),
        };
        let values: Vec<Value> = words.iter().map(|w| operand(&mut b, *w)).collect();
        let results = quotients(&mut b, &target(false), elem, &values[..NUMERATORS], values[NUMERATORS]);
        b.terminate(OpKind::Return, &[]);
        let func = b.finish().expect("operands have the widths that operations take");
        verify(&func).expect("the function is right");
        Row { func, results }
    }

    fn at(&self, margin: Margin) -> impl FnMut(&[u64; NUMERATORS], u64) -> Vec<u64> {
        let mut run = Evaluator::new(&self.func, margin);
        move |numerators, divisor| {
            let operands: Vec<u64> = numerators.iter().copied().chain([divisor]).collect();
            run.run(&operands).expect("the operations keep their contracts");
            self.results.iter().map(|r| run.get(*r)).collect()
        }
    }

    fn branches(&self) -> usize {
        let mut n = 0;
        self.func.walk(&mut |_, op| n += usize::from(op.kind == OpKind::If));
        n
    }

    fn divisions(&self) -> usize {
        let mut n = 0;
        self.func.walk(&mut |_, op| {
            n += usize::from(
                op.kind == OpKind::Float(FloatBin::Div, FloatTy::F32)
                    || op.kind == OpKind::Float(FloatBin::Div, FloatTy::F64),
            )
        });
        n
    }
}

fn value(elem: Elem, code: u16) -> f64 {
    if elem == Elem::F16 { half::f16::from_bits(code).to_f64() } else { half::bf16::from_bits(code).to_f64() }
}

/// The quotient of two halves, rounded twice: `tests/scalar/floats.rs` shows that this is the quotient rounded once.
fn half_quotient(elem: Elem, x: u16, y: u16) -> u16 {
    let quotient = value(elem, x) as f32 / value(elem, y) as f32;
    if elem == Elem::F16 {
        half::f16::from_f32_const(quotient).to_bits()
    } else {
        half::bf16::from_f32_const(quotient).to_bits()
    }
}

fn same_single(got: u64, want: f32) -> bool {
    let got = f32::from_bits(got as u32);
    got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan())
}

/// All significands and signs of the numerator with many divisors, zeros and infinities among them. In the quick depth every fifth row of
/// numerators, and those with zero, infinity, or a power of two of `bf16`.
#[test]
fn quotients_of_halves_are_rounded_once() {
    let is_meant = |first: &u16| test_depth::is_full() || (first / 8).is_multiple_of(5) || (first + 7) % 128 < 8;
    for elem in [Elem::F16, Elem::Bf16] {
        let row = Row::new(elem);
        let mut random = Random(0x51ab_77e1);
        for (i, margin) in MARGINS.into_iter().enumerate() {
            let mut call = row.at(margin);
            for round in 0..24u16 {
                let special = [0, 0x8000, 0x7c00, 0xfc00, 0x7f80, 0xff80, 0x7fff, 1, 0x8003, 0x3c00, 0x4200, 0x7bff];
                let y = special.get(usize::from(round)).copied().unwrap_or(random.word() as u16);
                for first in (i as u16..=u16::MAX - 7).step_by(NUMERATORS).filter(is_meant) {
                    let numerators: [u16; NUMERATORS] = std::array::from_fn(|k| first + k as u16);
                    let got = call(&numerators.map(u64::from), y.into());
                    for (x, got) in numerators.into_iter().zip(got) {
                        let want = half_quotient(elem, x, y);
                        let (got, nan) = (got as u16, value(elem, want).is_nan());
                        assert!(
                            got == want || (nan && value(elem, got).is_nan()),
                            "{elem} {x:#x} / {y:#x}: {got:#x}, not {want:#x}, {margin:?}"
                        );
                    }
                }
            }
        }
    }
}

/// A numerator whose quotient by an odd significand of 24 bits is as close to a tie as possible: for the `m` of 25 bits with
/// m · y = x · 2²⁵ ± 1, x / y is m / 2²⁵ but for 1 / (2²⁵ y).
fn close_to_tie(y: u32, above: bool) -> f32 {
    // Newton's iteration modulo 2⁶⁴: each step doubles the right bits.
    let (odd, one) = (u64::from(y | 1), 1u64);
    let inverse = (0..6).fold(one, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse))));
    let modulus = 1u64 << 25;
    let inverse = inverse % modulus;
    // Of m and its opposite, one has 25 bits.
    let (m, rest) = if inverse >= modulus / 2 { (inverse, one) } else { (modulus - inverse, modulus - 1) };
    let product = m * odd;
    assert_eq!(product % modulus, rest);
    // The neighbours of the tie are the numerators below and above.
    let x = product / modulus + u64::from(rest != 1);
    (x as f32) * if above { 2f32.powi(-22) } else { 2f32.powi(-23) }
}

/// Numerators that are all usual, so that no branch corrects them, and divisors of all significands that matter: those just
/// below powers of two, where reciprocals are hardest to round. Of odd ones, half of the quotients are close to a tie.
#[test]
fn quotients_of_usual_singles_are_rounded_once() {
    let row = Row::new(Elem::F32);
    let mut random = Random(0x9876_5432_1234_5679);
    for margin in MARGINS {
        let mut call = row.at(margin);
        for round in 0..test_depth::cases(60_000u32, 8_000) {
            let word = random.word();
            let significand = match round % 4 {
                0 => 0x7f_ffbf - (round / 4) % 256,
                1 => (round / 4) % 256,
                _ => word as u32 & 0x7f_ffff,
            };
            let y = f32::from_bits((127 - 20 + (word >> 40) as u32 % 40) << 23 | significand);
            let numerators: [u64; NUMERATORS] = std::array::from_fn(|i| {
                let word = random.word();
                let scale = 2f32.powi((word >> 33) as i32 % 58);
                let quotient = f32::from_bits(127 << 23 | word as u32 & 0x7f_ffff);
                let near = close_to_tie(y.to_bits() & 0x7f_ffff | 0x80_0000, word >> 60 & 1 == 0);
                let x = if i % 2 == 0 { near * scale } else { quotient * scale };
                (if word & 1 << 40 == 0 { x } else { -x }).to_bits().into()
            });
            for (x, got) in numerators.iter().zip(call(&numerators, y.to_bits().into())) {
                let x = f32::from_bits(*x as u32);
                assert!(same_single(got, x / y), "{x:e} / {y:e}: {:e}, {margin:?}", f32::from_bits(got as u32));
            }
        }
    }
}

/// Numbers of all exponents, zeros, infinities, NaN and subnormals: in rows that are all unusual, and alone among usual ones.
#[test]
fn quotients_of_all_singles_are_rounded_once() {
    let row = Row::new(Elem::F32);
    let all = singles(3000);
    let step = test_depth::cases(1, 7);
    let mut random = Random(0x2222_3333_4444_5555);
    for margin in MARGINS {
        let mut call = row.at(margin);
        for x in all.iter().step_by(step) {
            for kind in 0..6 {
                let pick = |random: &mut Random| all[random.word() as usize % all.len()];
                let usual =
                    |random: &mut Random| (100 + random.word() as u32 % 40) << 23 | random.word() as u32 & 0x7f_ffff;
                let y = if kind % 2 == 0 { pick(&mut random) } else { usual(&mut random).min(2f32.powi(20).to_bits()) };
                let zero = u32::from(kind == 5) << 31;
                let mut numerators: [u32; NUMERATORS] = std::array::from_fn(|i| match (kind, i % 3) {
                    (0 | 1, _) => pick(&mut random),
                    (4 | 5, 0) => zero,
                    _ => usual(&mut random) ^ (random.word() as u32 & 1) << 31,
                });
                numerators[random.word() as usize % NUMERATORS] = *x;
                let got = call(&numerators.map(u64::from), y.into());
                for (x, got) in numerators.into_iter().zip(got) {
                    let (x, y) = (f32::from_bits(x), f32::from_bits(y));
                    assert!(same_single(got, x / y), "{x:e} / {y:e}: {:e}, {margin:?}", f32::from_bits(got as u32));
                }
            }
        }
    }
}

/// What the proof of the corrected quotients takes from the reciprocal, for all significands of the divisor and all
/// approximations within the machine's bound: y · |1 − y · reciprocal| · (1 + 2⁻¹⁹) < 2⁻²³.
#[test]
fn reciprocals_are_close_enough_for_every_divisor() {
    let mut closest = 0.0f64;
    for significand in 0..0x7f_ffc0u32 {
        let y = f32::from_bits(127 << 23 | significand);
        let exact = 1.0 / f64::from(y);
        for ulps in [-1.0, 0.0, 1.0] {
            let near = (exact + ulps * 2f64.powi(-24)) as f32;
            let nearest = near.mul_add((-y).mul_add(near, 1.0), near);
            // 48 bits, exact in `f64`.
            let rest = (1.0 - f64::from(y) * f64::from(nearest)).abs();
            let bound = f64::from(y) * rest * (1.0 + 2f64.powi(-19));
            assert!(bound < 2f64.powi(-23), "{y:e}: {bound:e}");
            closest = closest.max(bound);
        }
    }
    assert!(closest > 2f64.powi(-23) * 0.999, "the excluded divisors would be no closer");
}

/// One division at most, in the branch for unusual operands; `f16` has neither.
#[test]
fn only_unusual_operands_are_divided() {
    for (elem, branches, divisions) in [(Elem::F16, 0, 0), (Elem::Bf16, 1, 1), (Elem::F32, 1, 1)] {
        let row = Row::new(elem);
        assert_eq!((row.branches(), row.divisions()), (branches, divisions), "{elem}");
    }
}
