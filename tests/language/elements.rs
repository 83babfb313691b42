//! Elementwise operations, literals, casts.

use super::{device, ramp, same};
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn math(#[shape(N)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>) {
    let v = x.load_tile::<16>([0]);
    let p = v.abs() + 0.5;
    y.store_tile([0, 0], v.floor().reshape::<1, 16>());
    y.store_tile([1, 0], v.ceil().reshape::<1, 16>());
    y.store_tile([2, 0], v.trunc().reshape::<1, 16>());
    y.store_tile([3, 0], v.round().reshape::<1, 16>());
    y.store_tile([4, 0], v.round_ties_even().reshape::<1, 16>());
    y.store_tile([5, 0], p.sqrt().reshape::<1, 16>());
    y.store_tile([6, 0], p.recip().reshape::<1, 16>());
    y.store_tile([7, 0], v.mul_add(p, 1.0).reshape::<1, 16>());
    y.store_tile([8, 0], v.clamp(-1.0, 1.0).reshape::<1, 16>());
    y.store_tile([9, 0], select(v > 0.0, v, -0.5).reshape::<1, 16>());
    y.store_tile([10, 0], v.map(|e| if e > 1.0 { e * 2.0 } else { e.max(-1.0) }).reshape::<1, 16>());
    y.store_tile([11, 0], (v / 0.0).is_nan().cast::<f32>().reshape::<1, 16>());
}

#[test]
fn exact_functions_are_exact() -> titan::Result<()> {
    let dev = device();
    let xs = ramp(16, -3.5, 0.5);
    let got = same!(math(dev; &dev.tensor(&xs, [16])?; f32, [12, 16]));
    for (i, v) in xs.iter().enumerate() {
        let p = v.abs() + 0.5;
        let want = [
            v.floor(),
            v.ceil(),
            v.trunc(),
            v.round(),
            v.round_ties_even(),
            p.sqrt(),
            p.recip(),
            v.mul_add(p, 1.0),
            v.clamp(-1.0, 1.0),
            if *v > 0.0 { *v } else { -0.5 },
            if *v > 1.0 { v * 2.0 } else { v.max(-1.0) },
            f32::from(*v == 0.0),
        ];
        for (row, w) in want.iter().enumerate() {
            assert_eq!(got[row * 16 + i], *w, "row {row} of {v}");
        }
    }
    Ok(())
}

#[titan::kernel(grid(1))]
fn literals(#[shape(8)] x: &Tensor<f16, 1>, y: &mut Tensor<f16, 1>, n: i32, s: f32) {
    let a = 2 * n + 1 - (n + 3) / 2 % 5; // i32, literals on both sides
    let b = 1.0 + s * 0.5; // f32
    let t = x.load_tile::<8>([a - a]);
    let u = 1.0 - t * 2.0 + t / 3.0; // half, with literals
    let v = (2.0 * t.cast::<f32>() + b).sqrt().max(0.0);
    let m = (iota::<8>() + 2 * a) % 3 == 0;
    let both = m & (v > 0.5) | !m;
    let w = select(both, v, -1.0) * ((3 + 4) as f32);
    let bits = (iota::<8>() << 2 | 1) & 0xFF ^ 3;
    y.store_tile([0], u + (w + bits.cast::<f32>()).cast::<f16>());
}

#[test]
fn literals_take_the_type_of_their_surroundings() -> titan::Result<()> {
    let dev = device();
    let xs: Vec<f16> = ramp(8, 0.0, 0.25).iter().map(|v| f16::from_f32(*v)).collect();
    let got = same!(literals(dev; &dev.tensor(&xs, [8])?; f16, [8]; 5, 0.75));
    for (i, t) in xs.iter().enumerate() {
        let half = |v: f32| f16::from_f32(v).to_f32();
        let t = t.to_f32();
        let u = half(half(1.0 - half(t * 2.0)) + half(t / 3.0));
        let v = (2.0 * t + 1.375).sqrt();
        let a = 2 * 5 + 1 - (5 + 3) / 2 % 5;
        let m = (i as i32 + 2 * a) % 3 == 0;
        let w = if (m & (v > 0.5)) | !m { v } else { -1.0 } * 7.0;
        let bits = ((i << 2 | 1) & 0xFF ^ 3) as f32;
        assert_eq!(got[i].to_f32(), half(u + half(w + bits)), "element {i}");
    }
    Ok(())
}

/// Scalars of 16 bits beside literals and `f32`: these are rounded first, as beside tiles.
#[titan::kernel(instances(T in [f16, bf16]), grid(1))]
fn half_scalars<T: Float>(#[shape(2)] x: &Tensor<T, 1>, y: &mut Tensor<T, 1>, s: f32) {
    let (a, b) = (x.get([0]), x.get([1]));
    y.set([0], a * 2.1 + s);
    y.set([1], if a > 0.1 { 1.5 - a } else { s / b });
    y.set([2], a.max(0.3).min(s));
    y.store_tile([1], Tile::<T, 3>::ones().map(|v| v / 3.0 + a));
}

/// Numbers of bits and upper halves, of tiles and of one number.
#[titan::kernel(instances(T in [i8, u8, i16, u16, i32, u32, i64, u64]), grid(1))]
fn bits<T: Int>(
    #[shape(N)] x: &Tensor<T, 1>,
    #[shape(N)] y: &Tensor<T, 1>,
    counts: &mut Tensor<u32, 2>,
    numbers: &mut Tensor<T, 2>,
) {
    let (v, w) = (x.load_tile::<16>([0]), y.load_tile::<16>([0]));
    counts.store_tile([0, 0], v.count_ones().reshape::<1, 16>());
    counts.store_tile([1, 0], v.leading_zeros().reshape::<1, 16>());
    counts.store_tile([2, 0], v.trailing_zeros().reshape::<1, 16>());
    numbers.store_tile([0, 0], v.mul_hi(w).reshape::<1, 16>());
    numbers.store_tile([1, 0], v.signum().reshape::<1, 16>());
    for i in 0..16 {
        let (one, other) = (x.get([i]), y.get([i]));
        counts.set([3, i], one.count_ones());
        counts.set([4, i], one.leading_zeros());
        counts.set([5, i], one.trailing_zeros());
        numbers.set([2, i], one.mul_hi(other));
        numbers.set([3, i], one.signum());
    }
}

macro_rules! bits {
    ($($t:ident $wide:ident)*) => {$(
        #[test]
        fn $t() -> titan::Result<()> {
            let dev = super::device();
            let mut xs: Vec<$t> = vec![0, 1, 2, 3, 5, 64, 100, 127, $t::MIN, $t::MAX, $t::MAX / 2, $t::MAX / 3 * 2, !0, !1, !7];
            xs.push($t::MIN / 4);
            let ys: Vec<$t> = xs.iter().rev().map(|x| x.wrapping_mul(37).wrapping_add(11)).collect();
            let (x, y) = (dev.tensor(&xs, [16])?, dev.tensor(&ys, [16])?);
            let (mut counts, mut numbers) = (dev.zeros([6, 16])?, dev.zeros([4, 16])?);
            let (mut counts_too, mut numbers_too) = (dev.zeros([6, 16])?, dev.zeros([4, 16])?);
            bits::<$t>(&x, &y, &mut counts, &mut numbers).sync()?;
            bits::reference::<$t>(&x, &y, &mut counts_too, &mut numbers_too)?;
            let (counts, numbers) = (counts.to_vec()?, numbers.to_vec()?);
            assert_eq!((&counts, &numbers), (&counts_too.to_vec()?, &numbers_too.to_vec()?), "device and reference");
            for (i, (x, y)) in xs.iter().zip(&ys).enumerate() {
                let want = [x.count_ones(), x.leading_zeros(), x.trailing_zeros()];
                let sign = if *x == 0 { 0 } else if *x > 0 { 1 } else { !0 };
                let of_numbers = [((*x as $wide * *y as $wide) >> $t::BITS) as $t, sign];
                for half in 0..2 {
                    assert_eq!([0, 1, 2].map(|row| counts[(3 * half + row) * 16 + i]), want, "{x}");
                    assert_eq!([0, 1].map(|row| numbers[(2 * half + row) * 16 + i]), of_numbers, "{x} and {y}");
                }
            }
            Ok(())
        }
    )*};
}

mod of_bits {
    use super::bits;
    bits! { i8 i32 u8 u32 i16 i32 u16 u32 i32 i64 u32 u64 i64 i128 u64 u128 }
}

/// Remainders, powers, signs and classes, of tiles and of one number.
#[titan::kernel(instances(T in [f64, f32, f16, bf16]), grid(1))]
fn of_floats<T: Float>(
    #[shape(N)] x: &Tensor<T, 1>,
    #[shape(N)] y: &Tensor<T, 1>,
    numbers: &mut Tensor<T, 2>,
    classes: &mut Tensor<bool, 2>,
) {
    let (v, w) = (x.load_tile::<32>([0]), y.load_tile::<32>([0]));
    let mut rest = v;
    rest %= w;
    numbers.store_tile([0, 0], rest.reshape::<1, 32>());
    numbers.store_tile([1, 0], v.powf(w).reshape::<1, 32>());
    numbers.store_tile([2, 0], v.signum().reshape::<1, 32>());
    classes.store_tile([0, 0], v.is_nan().reshape::<1, 32>());
    classes.store_tile([1, 0], v.is_infinite().reshape::<1, 32>());
    classes.store_tile([2, 0], v.is_finite().reshape::<1, 32>());
    for i in 0..32 {
        let (one, other) = (x.get([i]), y.get([i]));
        numbers.set([3, i], one % other);
        numbers.set([4, i], one.powf(other));
        numbers.set([5, i], one.signum());
        classes.set([3, i], one.is_nan());
        classes.set([4, i], one.is_infinite());
        classes.set([5, i], one.is_finite());
    }
}

macro_rules! of_floats {
    ($($t:ident $digits:expr;)*) => {$(
        #[test]
        fn $t() -> titan::Result<()> {
            let dev = super::device();
            let value = |x: f64| x.cast::<$t>();
            let some = [0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 7.0, 1e-3, 1e4, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.5, -0.3, 5.0, -1e-5];
            let xs: Vec<_> = [some, some].concat().into_iter().map(value).collect();
            let ys: Vec<_> = some.into_iter().rev().chain([2.0; 8]).chain([-3.0, 0.0, 0.7, 1.0, f64::NAN, 3.0, 100.0, -2.0]).map(value).collect();
            let (x, y) = (dev.tensor(&xs, [32])?, dev.tensor(&ys, [32])?);
            let (mut numbers, mut classes) = (dev.zeros([6, 32])?, dev.zeros([6, 32])?);
            let (mut numbers_too, mut classes_too) = (dev.zeros([6, 32])?, dev.zeros([6, 32])?);
            of_floats::<$t>(&x, &y, &mut numbers, &mut classes).sync()?;
            of_floats::reference::<$t>(&x, &y, &mut numbers_too, &mut classes_too)?;
            let classes = classes.to_vec()?;
            assert_eq!(classes, classes_too.to_vec()?, "device and reference");
            for (what, numbers) in [("device", numbers.to_vec()?), ("reference", numbers_too.to_vec()?)] {
                for (i, (x, y)) in xs.iter().zip(&ys).enumerate() {
                    let [a, b]: [f64; 2] = [x.cast(), y.cast()];
                    let near = |got: f64, want: f64, bound: f64| {
                        let want: f64 = value(want).cast();
                        let plain = want.is_finite() && want != 0.0;
                        got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan() || plain && (got - want).abs() <= bound * want.abs()
                    };
                    for half in 0..2 {
                        let [rest, power, sign]: [f64; 3] = [0, 1, 2].map(|row| numbers[(3 * half + row) * 32 + i].cast());
                        assert!(near(rest, a % b, 0.0), "{what}: {a} % {b} is {rest}");
                        assert!(near(power, a.powf(b), $digits), "{what}: {a} to the power of {b} is {power}, not {}", a.powf(b));
                        assert!(near(sign, a.signum(), 0.0), "{what}: the sign of {a} is {sign}");
                        assert_eq!([0, 1, 2].map(|row| classes[(3 * half + row) * 32 + i]), [a.is_nan(), a.is_infinite(), a.is_finite()], "{a}");
                    }
                }
            }
            Ok(())
        }
    )*};
}

mod of_float_classes {
    use super::of_floats;
    use titan::prelude::*;
    of_floats! { f64 1e-15; f32 1.2e-7; f16 1e-3; bf16 8e-3; }
}

macro_rules! half_scalars {
    ($($t:ident)*) => {$(
        #[test]
        fn $t() -> titan::Result<()> {
            let dev = super::device();
            let round = |v: f32| titan::lang::$t::from_f32(v).to_f32();
            for (a, b, s) in [(0.1, 3.0, 1.3), (0.7, -2.0, 0.2), (-1.1, 0.3, 100.7)] {
                let [a, b] = [round(a), round(b)];
                let x = dev.tensor(&[a, b].map(titan::lang::$t::from_f32), [2])?;
                let got = super::same!(half_scalars::<$t>(dev; &x; $t, [6]; s));
                let chosen = if a > round(0.1) { round(1.5 - a) } else { round(round(s) / b) };
                let of_tile = round(round(1.0 / 3.0) + a);
                let want = [round(round(a * round(2.1)) + round(s)), chosen, a.max(round(0.3)).min(round(s))];
                let want = [&want[..], &[of_tile; 3]].concat();
                assert_eq!(got.iter().map(|v| v.to_f32()).collect::<Vec<_>>(), want, "{a}, {b}, {s}");
            }
            Ok(())
        }
    )*};
}

mod of_half_scalars {
    use super::half_scalars;
    use titan::prelude::*;
    half_scalars! { f16 bf16 }
}

/// `select` by one `bool`, which takes one of two tiles, or of a tile and a scalar, or of two scalars.
#[titan::kernel(grid(1))]
fn chosen(#[shape(8)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>, n: i32) {
    let v = x.load_tile::<8>([0]);
    let (less, step) = (n < 3, select(n == 2, 10, n));
    y.store_tile([0, 0], select(less, v, -v).reshape::<1, 8>());
    y.store_tile([1, 0], select(less, 7.0, v).reshape::<1, 8>());
    y.store_tile([2, 0], (v * select(less, 0.5, 2.0) + step as f32).reshape::<1, 8>());
    let mask = select(less, v > 2.0, v < 2.0);
    y.store_tile([3, 0], select(mask, v, 0.0).reshape::<1, 8>());
    y.store_tile([4, 0], one_of(less, v.reshape::<1, 8>()));
    y.store_tile([5, 0], v.map(|e| select(e > 1.0, e, select(less, 1.0, -1.0))).reshape::<1, 8>());
    y.store_tile([6, 0], select(true, v, 0.0).reshape::<1, 8>());
}

/// The `bool` is computed from the elements between which it chooses.
#[titan::kernel(grid(1))]
fn chosen_by_a_sum(#[shape(8)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let v = x.load_tile::<8>([0]);
    y.store_tile([0], select(v.reduce_sum::<0>() > 3.0, v, -v));
}

#[test]
fn one_bool_of_a_reduction_chooses_a_whole_tile() -> titan::Result<()> {
    let dev = device();
    for (from, sign) in [(-1.0, -1.0), (2.0, 1.0)] {
        let xs = ramp(8, from, 0.25);
        let want: Vec<f32> = xs.iter().map(|v| v * sign).collect();
        assert_eq!(same!(chosen_by_a_sum(dev; &dev.tensor(&xs, [8])?; f32, [8])), want);
    }
    Ok(())
}

#[titan::device]
fn one_of<S: Shape>(first: bool, v: Tile<f32, S>) -> Tile<f32, S> {
    select(first, v + 1.0, 5.0)
}

#[test]
fn one_bool_chooses_between_tiles_and_scalars() -> titan::Result<()> {
    let dev = device();
    let xs = ramp(8, -1.0, 0.75);
    for n in 0..5 {
        let got = same!(chosen(dev; &dev.tensor(&xs, [8])?; f32, [7, 8]; n));
        let (less, step) = (n < 3, if n == 2 { 10.0 } else { n as f32 });
        for (i, v) in xs.iter().copied().enumerate() {
            let want = if less {
                [v, 7.0, v * 0.5 + step, if v > 2.0 { v } else { 0.0 }, v + 1.0, v.max(1.0), v]
            } else {
                let last = if v > 1.0 { v } else { -1.0 };
                [-v, v, v * 2.0 + step, if v < 2.0 { v } else { 0.0 }, 5.0, last, v]
            };
            for (row, w) in want.iter().enumerate() {
                assert_eq!(got[row * 8 + i], *w, "row {row} of {v}, {n}");
            }
        }
    }
    Ok(())
}

#[titan::kernel(instances(T in [i8, u8, i16, u16, i32, u32, i64, u64]), grid(1))]
fn integers<T: Int>(#[shape(N)] x: &Tensor<T, 1>, #[shape(N)] y: &Tensor<T, 1>, z: &mut Tensor<T, 2>) {
    let (a, b) = (x.load_tile::<8>([0]), y.load_tile::<8>([0]));
    z.store_tile([0, 0], (a + b).reshape::<1, 8>());
    z.store_tile([1, 0], (a - b).reshape::<1, 8>());
    z.store_tile([2, 0], (a * b).reshape::<1, 8>());
    z.store_tile([3, 0], (a / b).reshape::<1, 8>());
    z.store_tile([4, 0], (a % b).reshape::<1, 8>());
    z.store_tile([5, 0], (a << b).reshape::<1, 8>());
    z.store_tile([6, 0], (a >> b).reshape::<1, 8>());
    z.store_tile([7, 0], (a & b | a ^ b).reshape::<1, 8>());
    z.store_tile([8, 0], a.min(b).max(b - a).reshape::<1, 8>());
    z.store_tile([9, 0], (!a).reshape::<1, 8>());
}

macro_rules! integers {
    ($($t:ident)*) => {$(
        #[test]
        fn $t() -> titan::Result<()> {
            let dev = super::device();
            let a: [$t; 8] = [0, 1, 7, $t::MAX, $t::MIN, $t::MAX / 3, 5, $t::MIN];
            let b: [$t; 8] = [0, 0, 3, 2, $t::MAX, 100, 1, $t::MIN.wrapping_sub(1)];
            let (x, y) = (dev.tensor(&a, [8])?, dev.tensor(&b, [8])?);
            let got = super::same!(integers::<$t>(dev; &x, &y; $t, [10, 8]));
            for i in 0..8 {
                let (a, b) = (a[i], b[i]);
                let wide = u32::try_from(b).ok().filter(|s| *s < $t::BITS);
                #[allow(unused_comparisons, clippy::absurd_extreme_comparisons, reason = "one text for both signs")]
                let sign = if a < 0 { $t::MIN >> ($t::BITS - 1) } else { 0 };
                let want = [
                    a.wrapping_add(b),
                    a.wrapping_sub(b),
                    a.wrapping_mul(b),
                    if b == 0 { 0 } else { a.wrapping_div(b) },
                    if b == 0 { a } else { a.wrapping_rem(b) },
                    wide.map_or(0, |s| a << s),
                    wide.map_or(sign, |s| a >> s),
                    a & b | a ^ b,
                    a.min(b).max(b.wrapping_sub(a)),
                    !a,
                ];
                for (row, w) in want.iter().enumerate() {
                    assert_eq!(got[row * 8 + i], *w, "row {row}, {a} and {b}");
                }
            }
            Ok(())
        }
    )*};
}

mod wrapping {
    use super::integers;
    integers! { i8 u8 i16 u16 i32 u32 i64 u64 }
}

#[titan::kernel(grid(1))]
fn casts(#[shape(8)] x: &Tensor<f32, 1>, y: &mut Tensor<i64, 2>) {
    let v = x.load_tile::<8>([0]);
    y.store_tile([0, 0], v.cast::<i8>().cast::<i64>().reshape::<1, 8>());
    y.store_tile([1, 0], v.cast::<u8>().cast::<i64>().reshape::<1, 8>());
    y.store_tile([2, 0], v.cast::<i32>().cast::<i8>().cast::<i64>().reshape::<1, 8>());
    y.store_tile([3, 0], v.cast::<bool>().cast::<i64>().reshape::<1, 8>());
    y.store_tile([4, 0], v.bitcast::<u32>().cast::<i64>().reshape::<1, 8>());
    // The NaN that a conversion returns depends on the device.
    let rounded = v.cast::<tf32>().cast::<f32>();
    let bits = select(rounded.is_nan(), 0, rounded.bitcast::<i32>());
    y.store_tile([5, 0], bits.cast::<i64>().reshape::<1, 8>());
}

#[test]
fn casts_saturate_from_floats_and_wrap_between_integers() -> titan::Result<()> {
    let dev = device();
    let xs = [0.0, -1.9, 300.7, -300.7, f32::NAN, f32::INFINITY, 1.000_5, 129.0];
    let got = same!(casts(dev; &dev.tensor(&xs, [8])?; i64, [6, 8]));
    for (i, v) in xs.iter().enumerate() {
        assert_eq!(got[i], i64::from(*v as i8));
        assert_eq!(got[8 + i], i64::from(*v as u8));
        assert_eq!(got[16 + i], i64::from(*v as i32 as i8));
        assert_eq!(got[24 + i], i64::from(*v != 0.0));
        if !v.is_nan() {
            assert_eq!(got[32 + i], i64::from(v.to_bits()));
        }
    }
    assert_eq!(got[40 + 6], i64::from(1.000_976_6f32.to_bits()), "tf32 keeps ten bits");
    Ok(())
}

#[titan::kernel(grid(1))]
fn shares(#[shape(16, 64)] x: &Tensor<f32, 2>, #[shape(16)] y: &Tensor<f32, 1>, out: &mut Tensor<f32, 2>) {
    let (rows, sums) = (x.load_tile::<16, 64>([0, 0]), y.load_tile::<16>([0]));
    out.store_tile([0, 0], rows / sums.col());
    out.store_tile([1, 0], (rows.cast::<f16>() / sums.cast::<f16>().col()).cast());
    out.store_tile([2, 0], (rows.cast::<bf16>() / sums.cast::<bf16>().col()).cast());
}

/// GPUs compute one reciprocal a row, which must not be seen: zeros of both signs, infinities, NaN, subnormals, quotients that
/// overflow, that are subnormal and that are none of it, by divisors of all kinds.
#[test]
fn rows_divided_by_one_number_are_quotients() -> titan::Result<()> {
    let dev = device();
    let special =
        [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, -1e-40, 1e-30, 3e38, -3e38, 7.0, 1.0 / 3.0];
    let xs: Vec<f32> = (0..16 * 64)
        .map(|i: i32| {
            let usual = (i % 97 - 48) as f32 * 0.37;
            // Rows without special numbers, with one, and of nothing else.
            match (i / 64 % 3, i % 64) {
                (0, _) | (1, 1..) => usual,
                (_, column) => special[(column + i / 64) as usize % special.len()],
            }
        })
        .collect();
    let ys =
        [3.0, 7.0, 1.9999999, 0.0, -0.0, f32::INFINITY, 1e-40, 3e38, -5.0, 1e-7, 1e7, f32::NAN, 1.0, 0.3, 6e-5, 49.0];
    let got = same!(shares(dev; &dev.tensor(&xs, [16, 64])?, &dev.tensor(&ys, [16])?; f32, [48, 64]));
    for (i, x) in xs.iter().enumerate() {
        let want = x / ys[i / 64];
        assert!(got[i].to_bits() == want.to_bits() || (got[i].is_nan() && want.is_nan()), "{x} / {}", ys[i / 64]);
    }
    Ok(())
}
