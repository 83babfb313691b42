//! `titan::order`: sorted rows and the first elements of each, against a stable sort in plain Rust.

use super::device;
use titan::order::{bottom_k, sort, top_k};
use titan::prelude::*;

#[titan::kernel(
    instances(T in [f32, f16, i32, u8, i64], (M, N, K) in [(1, 1, 1), (2, 8, 3), (3, 13, 13), (1, 32, 5)]),
    grid(unchecked cdiv(ROWS, M)),
)]
fn orders<T: Num, const M: i32, const N: i32, const K: i32>(
    #[shape(ROWS, N)] x: &Tensor<T, 2>,
    #[shape(3, ROWS, N)] values: &mut Tensor<T, 3>,
    #[shape(3, ROWS, N)] indices: &mut Tensor<i32, 3>,
) {
    let p = program_id(0);
    let v = x.load_tile::<M, N>([p, 0]);
    let (sorted, places) = sort::<T, M, N>(v);
    values.index_mut::<0>(0).store_tile([p, 0], sorted);
    indices.index_mut::<0>(0).store_tile([p, 0], places);
    let (greatest, places) = top_k::<T, M, N, K>(v);
    values.index_mut::<0>(1).store_at([p * M, 0], greatest);
    indices.index_mut::<0>(1).store_at([p * M, 0], places);
    let (least, places) = bottom_k::<T, M, N, K>(v);
    values.index_mut::<0>(2).store_at([p * M, 0], least);
    indices.index_mut::<0>(2).store_at([p * M, 0], places);
}

/// Rows with many equal elements, zeros of both signs, infinities and NaN, and rows of one of these.
fn rows(n: usize) -> Vec<f64> {
    let some = [0.0, -0.0, 1.0, 1.0, -1.0, 7.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.0, 100.0, 5.0];
    let mut word = 0x9e37_79b9_u64;
    let mut all: Vec<f64> = (0..9 * n)
        .map(|_| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            some[(word >> 40) as usize % some.len()]
        })
        .collect();
    all.extend(vec![f64::NAN; n]);
    all.extend(vec![f64::NEG_INFINITY; n]);
    all.extend((0..n).map(|i| if i % 2 == 0 { f64::NAN } else { f64::NEG_INFINITY }));
    all
}

/// The places of a row in order, stable, NaN last.
fn in_order(row: &[f64], descending: bool) -> Vec<usize> {
    let mut places: Vec<usize> = (0..row.len()).collect();
    places.sort_by(|i, j| {
        let (a, b) = (row[*i], row[*j]);
        let numbers = if descending { b.partial_cmp(&a) } else { a.partial_cmp(&b) };
        numbers.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    });
    places
}

macro_rules! elements {
    ($($t:ident)*) => {$(
        #[test]
        fn $t() -> titan::Result<()> {
            of_shape::<1, 1, 1>()?;
            of_shape::<2, 8, 3>()?;
            of_shape::<3, 13, 13>()?;
            return of_shape::<1, 32, 5>();

            fn of_shape<const M: i32, const N: i32, const K: i32>() -> titan::Result<()> {
                let dev = super::device();
                let n = N as usize;
                let xs: Vec<$t> = super::rows(n).into_iter().map(|x| x.cast()).collect();
                let rows = xs.len() / n;
                let x = dev.tensor(&xs, [rows, n])?;
                let (mut values, mut indices) = (dev.zeros([3, rows, n])?, dev.zeros([3, rows, n])?);
                orders::generic::<$t, M, N, K>(&x, &mut values, &mut indices).sync()?;
                let (values, indices) = (values.to_vec()?, indices.to_vec()?);
                let bits = |x: $t| {
                    let x: f64 = x.cast();
                    if x.is_nan() { u64::MAX } else { x.to_bits() }
                };
                for r in 0..rows {
                    let row: Vec<f64> = xs[r * n..][..n].iter().map(|x| x.cast()).collect();
                    for (which, descending, count) in [(0, false, n), (1, true, K as usize), (2, false, K as usize)] {
                        let at = (which * rows + r) * n;
                        for (k, place) in super::in_order(&row, descending).into_iter().take(count).enumerate() {
                            assert_eq!(indices[at + k], place as i32, "{which}: place {k} of {row:?}");
                            assert_eq!(bits(values[at + k]), bits(xs[r * n + place]), "{which}: place {k} of {row:?}");
                        }
                    }
                }
                Ok(())
            }
        }
    )*};
}

mod of {
    use super::orders;
    use titan::prelude::*;
    elements! { f32 f16 i32 u8 i64 }
}

#[test]
fn the_plain_body_is_the_same() -> titan::Result<()> {
    let dev = device();
    let x: Vec<f32> = rows(13).into_iter().map(|x| x as f32).collect();
    let x = dev.tensor(&x, [12, 13])?;
    let (mut values, mut indices) = (dev.zeros([3, 12, 13])?, dev.zeros([3, 12, 13])?);
    let (mut of_body, mut places) = (dev.zeros([3, 12, 13])?, dev.zeros([3, 12, 13])?);
    orders::<f32, 3, 13, 13>(&x, &mut values, &mut indices).sync()?;
    orders::reference::<f32, 3, 13, 13>(&x, &mut of_body, &mut places)?;
    assert_eq!(format!("{:?}", values.to_vec()?), format!("{:?}", of_body.to_vec()?));
    assert_eq!(indices.to_vec()?, places.to_vec()?);
    Ok(())
}
