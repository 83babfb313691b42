//! Reductions and scans of tuples of tiles by a function: the order is fixed, so that all devices agree bit for bit.

use super::device;
use titan::prelude::*;

/// Mean, sum of squared deviations and count of two samples together (B. P. Welford 1962; T. F. Chan et al. 1979).
#[titan::device]
fn welford(m: f32, s: f32, n: f32, m2: f32, s2: f32, n2: f32) -> (f32, f32, f32) {
    let all = n + n2;
    let delta = m2 - m;
    let part = n2 / all.max(1.0);
    (m + delta * part, s + s2 + delta * delta * n * part, all)
}

#[titan::kernel(instances(N in [1, 2, 3, 7, 64, 100]), grid(M))]
fn variance<const N: i32>(
    #[shape(M, N)] x: &Tensor<f32, 2>,
    #[shape(M)] mean: &mut Tensor<f32, 1>,
    #[shape(M)] squares: &mut Tensor<f32, 1>,
    #[shape(M)] count: &mut Tensor<f32, 1>,
) {
    let m = program_id(0);
    let v = x.load_tile::<1, N>([m, 0]);
    let (a, b, n) = (v, Tile::<f32, 1, N>::zeros(), Tile::<f32, 1, N>::ones())
        .reduce::<1>(|(m, s, n), (m2, s2, n2)| welford(m, s, n, m2, s2, n2));
    mean.store_tile([m], a);
    squares.store_tile([m], b);
    count.store_tile([m], n);
}

#[test]
fn welford_gives_the_variance() -> titan::Result<()> {
    macro_rules! of {
        ($($n:literal)*) => {$({
            let dev = device();
            let x: Vec<f32> = (0..3 * $n).map(|i| ((i * 37 % 101) as f32) * 0.25 + 1000.0).collect();
            let input = dev.tensor(&x, [3, $n])?;
            let mut outs = [[dev.zeros([3])?, dev.zeros([3])?, dev.zeros([3])?], [dev.zeros([3])?, dev.zeros([3])?, dev.zeros([3])?]];
            let [[m, s, n], [m2, s2, n2]] = &mut outs;
            variance::<$n>(&input, m, s, n).sync()?;
            variance::reference::<$n>(&input, m2, s2, n2)?;
            let bits = |t: &Tensor<f32, 1>| t.to_vec().map(|v| v.into_iter().map(f32::to_bits).collect::<Vec<_>>());
            for (device, reference) in outs[0].iter().zip(&outs[1]) {
                assert_eq!(bits(device)?, bits(reference)?, "{} elements", $n);
            }
            let [mean, squares, count] = [outs[0][0].to_vec()?, outs[0][1].to_vec()?, outs[0][2].to_vec()?];
            for row in 0..3 {
                let line: Vec<f64> = x[row * $n..(row + 1) * $n].iter().map(|v| f64::from(*v)).collect();
                let m = line.iter().sum::<f64>() / f64::from($n);
                let s = line.iter().map(|v| (v - m) * (v - m)).sum::<f64>();
                assert!((f64::from(mean[row]) - m).abs() < 1e-3, "mean {} of {m}", mean[row]);
                assert!((f64::from(squares[row]) - s).abs() <= 1e-4 * s.max(1.0), "squares {} of {s}", squares[row]);
                assert_eq!(count[row], $n as f32);
            }
        })*};
    }
    of! { 1 2 3 7 64 100 }
    Ok(())
}

/// h[t] = a[t] * h[t - 1] + b[t], along either axis.
#[titan::kernel(instances((A, B) in [(1, 1), (5, 4), (16, 3), (33, 2)], T in [f32, f64, f16, i32]), grid(1))]
fn recurrence<const A: i32, const B: i32, T: Num>(
    #[shape(A, B)] a: &Tensor<T, 2>,
    #[shape(A, B)] b: &Tensor<T, 2>,
    #[shape(A, B)] down: &mut Tensor<T, 2>,
    #[shape(A, B)] across: &mut Tensor<T, 2>,
    #[shape(B)] last: &mut Tensor<T, 1>,
) {
    let p = program_id(0);
    let (a, b) = (a.load_tile::<A, B>([p, 0]), b.load_tile::<A, B>([p, 0]));
    let (_, h) = (a, b).scan::<0>(|(a, b), (a2, b2)| (a * a2, b * a2 + b2));
    down.store_tile([p, 0], h);
    let (_, h) = (a, b).scan::<1>(|x, y| (x.0 * y.0, x.1 * y.0 + y.1));
    across.store_tile([p, 0], h);
    let (_, h) = (a, b).reduce::<0>(|(a, b), (a2, b2)| (a * a2, b * a2 + b2));
    last.store_tile([p], h);
}

trait Word: Copy {
    fn word(self) -> u64;
    fn of(i: i32) -> Self;
    fn f64(self) -> f64;
}
macro_rules! words {
    ($($t:ident $bits:expr, $of:expr, $f64:expr;)*) => {$(impl Word for $t {
        fn word(self) -> u64 { ($bits)(self) }
        fn of(i: i32) -> Self { ($of)(i) }
        fn f64(self) -> f64 { ($f64)(self) }
    })*};
}
words! {
    f32 |x: f32| u64::from(x.to_bits()), |i| i as f32 * 0.125, f64::from;
    f64 |x: f64| x.to_bits(), |i| f64::from(i) * 0.125, |x| x;
    f16 |x: f16| u64::from(x.to_bits()), |i| f16::from_f32(i as f32 * 0.125), f64::from;
    i32 |x: i32| x as u64, |i| i, f64::from;
}

#[test]
fn recurrences_agree_bit_for_bit() -> titan::Result<()> {
    macro_rules! of {
        ($($t:ident: $($a:literal $b:literal),*;)*) => {$($({
            let dev = device();
            let (rows, c): (usize, usize) = ($a, $b);
            let n = rows * c;
            let a: Vec<$t> = (0..n as i32).map(|i| <$t as Word>::of(i * 5 % 7 - 3)).collect();
            let b: Vec<$t> = (0..n as i32).map(|i| <$t as Word>::of(i * 3 % 11 - 5)).collect();
            let (ta, tb) = (dev.tensor(&a, [$a, $b])?, dev.tensor(&b, [$a, $b])?);
            let run = |device: bool| -> titan::Result<[Vec<$t>; 3]> {
                let (mut down, mut across, mut last) =
                    (dev.zeros::<$t, 2>([$a, $b])?, dev.zeros::<$t, 2>([$a, $b])?, dev.zeros::<$t, 1>([$b])?);
                if device {
                    recurrence::<$a, $b, $t>(&ta, &tb, &mut down, &mut across, &mut last).sync()?;
                } else {
                    recurrence::reference::<$a, $b, $t>(&ta, &tb, &mut down, &mut across, &mut last)?;
                }
                Ok([down.to_vec()?, across.to_vec()?, last.to_vec()?])
            };
            let (device, reference) = (run(true)?, run(false)?);
            for (device, reference) in device.iter().zip(&reference) {
                let bits = |v: &[$t]| v.iter().map(|x| x.word()).collect::<Vec<_>>();
                assert_eq!(bits(device), bits(reference), "{} {}x{}", stringify!($t), $a, $b);
            }
            // In sequence, in f64; sums of products of eighths are exact for short columns.
            for column in 0..c {
                let mut h = 0.0;
                for row in 0..rows {
                    let i = row * c + column;
                    h = a[i].f64() * h + b[i].f64();
                    if row < 5 {
                        let got = device[0][i].f64();
                        assert!((got - h).abs() <= 1e-3 * h.abs().max(1.0) * if stringify!($t) == "f16" { 4.0 } else { 1.0 });
                    }
                }
            }
            if $a <= 5 {
                for column in 0..c {
                    assert_eq!(device[2][column].f64(), device[0][(rows - 1) * c + column].f64());
                }
            }
        })*)*};
    }
    of! {
        f32: 1 1, 5 4, 16 3, 33 2;
        f64: 1 1, 5 4, 16 3, 33 2;
        f16: 1 1, 5 4, 16 3;
        i32: 1 1, 5 4, 33 2;
    }
    Ok(())
}

/// A function that is associative but not commutative, over four tiles of different elements: the first of each, the last, a count,
/// and whether all hold. With branches, which are selections.
#[titan::kernel(instances(N in [1, 6, 16]), grid(1))]
fn first_and_last<const N: i32>(
    #[shape(N)] x: &Tensor<i64, 1>,
    #[shape(2)] ends: &mut Tensor<i64, 1>,
    #[shape(2)] facts: &mut Tensor<i32, 1>,
    #[shape(N)] running: &mut Tensor<bool, 1>,
) {
    let p = program_id(0);
    let v = x.load_tile::<N>([p]);
    let seen = (v, v, Tile::<i32, N>::ones(), v != 3);
    let (first, last, n, all) = seen.reduce::<0>(|x, y| (x.0, y.1, x.2 + y.2, if x.3 { y.3 } else { false }));
    ends.set([p], first);
    ends.set([p + 1], last);
    facts.set([p], n);
    facts.set([p + 1], if all { 1 } else { 0 });
    let (_, _, _, holds) = seen.scan::<0>(|x, y| (x.0, y.1, x.2 + y.2, x.3 & y.3));
    running.store_tile([p], holds);
}

#[test]
fn the_order_of_elements_is_kept() -> titan::Result<()> {
    macro_rules! of {
        ($($n:literal $holds:literal;)*) => {$({
            let dev = device();
            let x: Vec<i64> = (0..$n).map(|i| (i + 1) << 40 >> if i == 2 && $n == 6 { 40 } else { 0 }).collect();
            let (mut ends, mut facts, mut running) = (dev.zeros([2])?, dev.zeros([2])?, dev.zeros([$n])?);
            first_and_last::<$n>(&dev.tensor(&x, [$n])?, &mut ends, &mut facts, &mut running).sync()?;
            assert_eq!(ends.to_vec()?, [x[0], x[x.len() - 1]]);
            assert_eq!(facts.to_vec()?, [$n, i32::from($holds)]);
            let holds: Vec<bool> = (0..x.len()).map(|i| x[..=i].iter().all(|v| *v != 3)).collect();
            assert_eq!(running.to_vec()?, holds);
        })*};
    }
    of! { 1 true; 6 false; 16 true; }
    Ok(())
}
