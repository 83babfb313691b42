//! Device functions and constants: in modules, nested, generic, with early returns.

use super::{device, ramp, same};
use titan::prelude::*;

mod activations {
    use super::tools::*;
    use titan::prelude::*;

    /// max(x, 0) + slope · min(x, 0)
    #[titan::device]
    pub(super) fn leaky_relu<S: Shape>(x: Tile<f32, S>, slope: f32) -> Tile<f32, S> {
        x.max(0.0) + scaled(x.min(0.0), slope)
    }
}

mod tools {
    use titan::prelude::*;

    #[titan::device]
    pub(super) fn scaled<T: Float, S: Shape>(x: Tile<T, S>, by: T) -> Tile<T, S> {
        x * by
    }

    #[titan::constant]
    pub(super) const BLOCK: i32 = 4 * 2;

    #[titan::constant]
    pub(super) const SLOPE: f32 = 0.1 + 0.2;

    #[titan::constant]
    const LEAST: i32 = 3;

    /// Of constants of this module and another one, which a kernel elsewhere need not see.
    #[titan::constant]
    pub(super) const WIDE: i32 = if BLOCK > LEAST { 2 * BLOCK - LEAST } else { super::NARROW };

    #[titan::constant]
    pub(super) const GENTLE: f32 = SLOPE / super::NARROW as f32;
}

use activations::leaky_relu;
use tools::{BLOCK, GENTLE, SLOPE, WIDE};

#[titan::constant]
const NARROW: i32 = 4;

#[titan::kernel(instances(B in [BLOCK, 3]), grid(cdiv(N, B)))]
fn relu_all<const B: i32>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let at = [program_id(0)];
    y.store_tile(at, leaky_relu(x.load_tile::<B>(at), SLOPE));
}

#[titan::kernel(grid(cdiv(N, WIDE)))]
fn relu_wide(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let at = [program_id(0)];
    y.store_tile(at, leaky_relu(x.load_tile::<WIDE>(at), GENTLE));
}

#[test]
fn constants_use_constants() -> titan::Result<()> {
    assert_eq!((WIDE, GENTLE), (13, (0.1f32 + 0.2) / 4.0));
    let dev = device();
    let xs = ramp(30, -7.0, 0.5);
    let want: Vec<f32> = xs.iter().map(|v| v.max(0.0) + v.min(0.0) * GENTLE).collect();
    assert_eq!(same!(relu_wide(dev; &dev.tensor(&xs, [30])?; f32, [30])), want);
    Ok(())
}

/// Each sum is rounded: rounded once, this would be 2²⁴ + 2.
#[titan::constant]
const ROUNDED_TWICE: f32 = 16_777_216.0 + 1.0 + 1.0;

#[titan::kernel(grid(1))]
fn of_rounded(y: &mut Tensor<f32, 1>) {
    y.store_tile([0], Tile::<f32, 1>::full(ROUNDED_TWICE));
}

#[test]
fn every_operation_of_a_constant_is_rounded_to_its_type() -> titan::Result<()> {
    let dev = device();
    assert_eq!(ROUNDED_TWICE, 16_777_216.0);
    assert_eq!(same!(of_rounded(dev; ; f32, [1])), [ROUNDED_TWICE]);
    Ok(())
}

/// Functions with the names of the language's, which a path calls.
mod own {
    #[titan::device]
    pub(super) fn cdiv(a: i32, b: i32) -> i32 {
        a / b
    }
}

#[titan::kernel(grid(1))]
fn of_both(y: &mut Tensor<i32, 1>, n: i32) {
    y.store_tile([0], Tile::<i32, 1>::full(own::cdiv(n, 8) * 100 + cdiv(n, 8)));
}

#[test]
fn a_path_calls_the_functions_of_a_module() -> titan::Result<()> {
    let dev = device();
    assert_eq!(same!(of_both(dev; ; i32, [1]; 9)), [102]);
    Ok(())
}

#[test]
fn functions_reach_kernels_through_modules_and_each_other() -> titan::Result<()> {
    let dev = device();
    let xs = ramp(13, -3.0, 0.5);
    let x = dev.tensor(&xs, [13])?;
    let want: Vec<f32> = xs.iter().map(|v| v.max(0.0) + v.min(0.0) * (0.1 + 0.2)).collect();
    assert_eq!(same!(relu_all::<8>(dev; &x; f32, [13])), want);
    assert_eq!(same!(relu_all::<3>(dev; &x; f32, [13])), want);
    Ok(())
}

/// The number of steps of a Collatz sequence, at most `limit`.
#[titan::device]
fn collatz(mut n: i32, limit: i32) -> i32 {
    let mut steps = 0;
    while n != 1 {
        if steps == limit {
            return -1;
        }
        n = if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

#[titan::device]
fn min_max<const N: i32>(x: Tile<i32, N>) -> (i32, i32) {
    (x.reduce_min::<0>(), x.reduce_max::<0>())
}

#[titan::kernel(grid(1))]
fn calls(y: &mut Tensor<i32, 1>, n: i32) {
    let (lo, hi) = min_max(iota::<7>() * n);
    y.store_tile([0], Tile::<i32, 1>::full(collatz(n, 50)));
    y.store_tile([1], Tile::<i32, 1>::full(lo));
    y.store_tile([2], Tile::<i32, 1>::full(hi));
}

#[test]
fn functions_return_early_and_give_tuples() -> titan::Result<()> {
    for n in [1, 6, 7, 27] {
        let steps = match n {
            1 => 0,
            6 => 8,
            7 => 16,
            _ => -1,
        };
        assert_eq!(same!(calls(device(); ; i32, [3]; n)), [steps, 0, 6 * n]);
    }
    Ok(())
}

#[test]
fn a_kernel_may_stand_in_a_function() -> titan::Result<()> {
    #[titan::device]
    fn twice(x: f32) -> f32 {
        x + x
    }
    #[titan::kernel(grid(1))]
    fn inner(y: &mut Tensor<f32, 1>, v: f32) {
        y.store_tile([0], Tile::<f32, 2>::full(twice(v)));
    }
    assert_eq!(same!(inner(device(); ; f32, [2]; 1.5)), [3.0, 3.0]);
    Ok(())
}

#[titan::device]
fn normalised<T: Float, const M: i32, const N: i32>(x: &Tensor<T, 2>, row: i32) -> Tile<f32, M, N> {
    let v = x.load_tile::<M, N>([row, 0]).cast::<f32>();
    v / v.reduce_sum::<1>().col()
}

#[titan::kernel(instances(T in [f32, f16]), grid(cdiv(R, 2)))]
fn rows<T: Float>(#[shape(R, 4)] x: &Tensor<T, 2>, #[shape(R, 4)] y: &mut Tensor<f32, 2>) {
    let r = program_id(0);
    y.store_tile([r, 0], normalised::<T, 2, 4>(x, r));
}

#[test]
fn functions_take_tensors_and_generic_arguments() -> titan::Result<()> {
    let dev = device();
    let x = dev.tensor(&ramp(12, 1.0, 1.0), [3, 4])?;
    let got = same!(rows::<f32>(dev; &x; f32, [3, 4]));
    assert_eq!(got[0], 1.0 / 10.0);
    assert_eq!(got[11], 12.0 / 42.0);
    Ok(())
}

/// Documented, and only there on some day that never comes.
#[titan::kernel(grid(1))]
#[cfg(any())]
#[must_use]
pub fn absent(y: &mut Tensor<f32, 1>) {
    y.store_tile([0], Tile::<f32, 2>::zeros());
}

mod renamed {
    pub(super) use titan as tiles;

    /// The facade under another name.
    #[tiles::kernel(grid(1), crate = crate::functions::renamed::tiles)]
    pub(super) fn elsewhere(y: &mut tiles::Tensor<f32, 1>) {
        y.store_tile([0], tiles::prelude::Tile::<f32, 2>::full(tiles::prelude::cdiv(7, 2).cast()));
    }
}

#[test]
fn a_kernel_keeps_its_attributes_and_finds_the_crate() -> titan::Result<()> {
    use renamed::elsewhere;
    assert_eq!(same!(elsewhere(device(); ; f32, [2])), [4.0, 4.0]);
    Ok(())
}

mod generic_literals {
    use titan::prelude::*;

    /// Literals on both sides of operators, behind a minus, in parentheses, in comparisons and selections.
    #[titan::device]
    pub(super) fn bent<T: Float, S: Shape>(x: Tile<T, S>) -> Tile<T, S> {
        let bent = 0.5 * x * (1.0 + (x * x * 0.797_884_6 * (1.0 + 0.044_715 * (x * x))).sqrt()) - (-0.1);
        let mut y = select(x > 2.0, 2.5, bent.max(-0.125)).clamp(-1.0, 3.3);
        y *= 1.1;
        select(y == 0.0, y, -2.0 / (y + -0.7))
    }

    #[titan::device]
    pub(super) fn of_a_number<T: Float>(x: T) -> T {
        let mut y = (x + 0.1).max(0.3) * 2.0;
        y -= 0.7;
        1.0 / y
    }

    /// Beside a row, and beside numbers whose type is not generic.
    #[titan::device]
    pub(super) fn mixed<T: Float, const M: i32, const N: i32>(
        x: Tile<T, M, N>,
        v: Tile<T, N>,
        n: i32,
    ) -> Tile<T, M, N> {
        let scale = (n * 2 + 1) as f32 * 0.25;
        let rows = x * (1.5 - v.row() * 2.0);
        rows * scale.cast::<T>() + 0.3
    }

    #[titan::device]
    pub(super) fn bits<T: Int, S: Shape>(x: Tile<T, S>) -> Tile<T, S> {
        let low = (x >> 2 & 7) + 1;
        select(low > 4, 3 * low, low ^ 1) % 100
    }
}

#[titan::kernel(instances(T in [f64, f32, f16, bf16]), grid(1))]
fn with_literals<T: Float>(#[shape(2, 16)] x: &Tensor<T, 2>, y: &mut Tensor<T, 2>) {
    let v = x.load_tile::<2, 16>([0, 0]);
    y.store_at([0, 0], generic_literals::bent(v));
    y.store_at([2, 0], generic_literals::mixed(v, x.load_tile::<1, 16>([0, 0]).reshape::<16>(), 3));
    y.set([4, 0], generic_literals::of_a_number(x.get([0, 5])));
}

/// What the functions compute, with the literals in the type of the elements.
#[titan::kernel(instances(T in [f64, f32, f16, bf16]), grid(1))]
fn without_literals<T: Float>(#[shape(2, 16)] x: &Tensor<T, 2>, y: &mut Tensor<T, 2>, c: &Tensor<T, 1>) {
    let v = x.load_tile::<2, 16>([0, 0]);
    let (half, a, b) = (c.get([0]), c.get([1]), c.get([2]));
    let one = c.get([3]);
    let bent = half * v * (one + (v * v * a * (one + b * (v * v))).sqrt()) - c.get([4]);
    let mut w = select(v > c.get([5]), c.get([6]), bent.max(c.get([7]))).clamp(c.get([8]), c.get([9]));
    w *= c.get([10]);
    y.store_at([0, 0], select(w == c.get([11]), w, c.get([12]) / (w + c.get([13]))));
    let line = x.load_tile::<1, 16>([0, 0]).reshape::<16>();
    y.store_at([2, 0], v * (c.get([14]) - line.row() * c.get([5])) * c.get([15]) + c.get([16]));
    let n = x.get([0, 5]);
    let mut m = (n + c.get([17])).max(c.get([16])) * c.get([5]);
    m -= c.get([18]);
    y.set([4, 0], one / m);
}

macro_rules! generic_literals {
    ($($t:ident)*) => {$(
        #[test]
        fn $t() -> titan::Result<()> {
            let dev = super::device();
            let cast = |xs: &[f64]| xs.iter().map(|x| x.cast()).collect::<Vec<$t>>();
            let xs: Vec<f64> = (0..32).map(|i| f64::from(i) * 0.3 - 4.0).collect();
            let x = dev.tensor(&cast(&xs), [2, 16])?;
            let constants = [
                0.5, 0.797_884_6, 0.044_715, 1.0, -0.1, 2.0, 2.5, -0.125, -1.0, 3.3, 1.1, 0.0, -2.0, -0.7, 1.5, 1.75, 0.3, 0.1, 0.7,
            ];
            let c = dev.tensor(&cast(&constants), [19])?;
            let got = super::same!(with_literals::<$t>(dev; &x; $t, [5, 16]));
            let mut want = dev.zeros([5, 16])?;
            without_literals::<$t>(&x, &mut want, &c).sync()?;
            assert_eq!(got, want.to_vec()?);
            assert!(got.iter().filter(|x| **x != $t::default()).count() > 60);
            Ok(())
        }
    )*};
}

mod of_generic_literals {
    use super::{with_literals, without_literals};
    use titan::prelude::*;
    generic_literals! { f64 f32 f16 bf16 }
}

#[titan::kernel(instances(T in [i32, u8, i64]), grid(1))]
fn integer_literals<T: Int>(#[shape(64)] x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    y.store_tile([0], generic_literals::bits(x.load_tile::<64>([0])));
}

#[test]
fn literals_take_the_type_of_generic_integers() -> titan::Result<()> {
    let dev = device();
    let xs: Vec<i32> = (0..64).map(|i| i * 5 - 40).collect();
    let of = |x: i32| {
        let low = ((x >> 2) & 7) + 1;
        (if low > 4 { 3 * low } else { low ^ 1 }) % 100
    };
    let want: Vec<i32> = xs.iter().map(|x| of(*x)).collect();
    assert_eq!(same!(integer_literals::<i32>(dev; &dev.tensor(&xs, [64])?; i32, [64])), want);
    let wide: Vec<i64> = xs.iter().map(|x| i64::from(*x)).collect();
    let want: Vec<i64> = want.iter().map(|x| i64::from(*x)).collect();
    assert_eq!(same!(integer_literals::<i64>(dev; &dev.tensor(&wide, [64])?; i64, [64])), want);
    let narrow: Vec<u8> = (0..64).map(|i| i * 4).collect();
    let of = |x: u8| {
        let low = ((x >> 2) & 7) + 1;
        (if low > 4 { low * 3 } else { low ^ 1 }) % 100
    };
    let want: Vec<u8> = narrow.iter().map(|x| of(*x)).collect();
    assert_eq!(same!(integer_literals::<u8>(dev; &dev.tensor(&narrow, [64])?; u8, [64])), want);
    Ok(())
}

mod tables {
    /// The 4-bit numbers of a microscaled format, and where another table begins in it.
    #[titan::constant]
    pub(super) const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 1.0 / LAST];

    #[titan::constant]
    const LAST: f32 = 6.0;

    #[titan::constant]
    pub(super) const WIDTHS: [i32; 3] = [4, super::NARROW * 2, 16];
}

use tables::{E2M1, WIDTHS};

#[titan::device]
fn decoded<S: Shape>(code: Tile<i32, S>) -> Tile<f32, S> {
    let magnitude = E2M1[code & 7];
    select((code & 8) != 0, -magnitude, magnitude)
}

#[titan::kernel(grid(1))]
fn of_tables(#[shape(8, 2)] code: &Tensor<i32, 2>, y: &mut Tensor<f32, 2>, which: i32) {
    let codes = code.load_tile::<8, 2>([0, 0]);
    y.store_at([0, 0], decoded(codes).reshape::<1, 16>());
    // No such place is zero.
    y.store_at([1, 0], E2M1[codes].reshape::<1, 16>());
    y.store_at([2, 0], E2M1[codes - 3].reshape::<1, 16>());
    // One number, at a place of the launch, of a constant, and of a local array.
    let local = [1.5, -2.0, 8.0];
    y.set([3, 0], E2M1[which]);
    y.set([3, 1], E2M1[3] + E2M1[WIDTHS[0] + 2]);
    y.set([3, 2], local[which - 1]);
    y.set([3, 3], E2M1[which + 100]);
    // Tiles, chosen as a whole.
    let tiles = [decoded(codes), decoded(codes + 1), decoded(codes + 2)];
    y.store_at([4, 0], tiles[which].reshape::<1, 16>());
    y.store_at([5, 0], Tile::<f32, 1, { WIDTHS[1] }>::ones());
    y.store_at([6, 0], codes.map(|c| WIDTHS[c % 3]).cast::<f32>().reshape::<1, 16>());
}

#[test]
fn tables_are_indexed_by_numbers_and_tiles() -> titan::Result<()> {
    let dev = device();
    let codes: Vec<i32> = (0..16).collect();
    let table = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 1.0 / 6.0f32];
    let at = |i: i32| usize::try_from(i).ok().and_then(|i| table.get(i)).copied().unwrap_or(0.0);
    let decoded = |c: i32| if c & 8 != 0 { -at(c & 7) } else { at(c & 7) };
    for which in 0..3 {
        let got = same!(of_tables(dev; &dev.tensor(&codes, [8, 2])?; f32, [7, 16]; which));
        for c in 0..16 {
            let row = |row: usize| got[row * 16 + c as usize];
            assert_eq!([row(0), row(1), row(2)], [decoded(c), at(c), at(c - 3)], "{c}");
            assert_eq!(row(4), decoded(c + which), "{c}");
            assert_eq!(row(6), [4.0, 8.0, 16.0][c as usize % 3], "{c}");
        }
        let local = if which == 0 { 0.0 } else { [1.5, -2.0, 8.0][which as usize - 1] };
        assert_eq!(got[48..52], [at(which), 1.5 + 4.0, local, 0.0]);
        assert_eq!(got[80..96].iter().sum::<f32>(), 8.0);
    }
    Ok(())
}
