//! Parts of tiles, tiles that are put together, and picked elements, on every element type.

use super::{device, same};
use titan::prelude::*;

#[titan::kernel(
    instances(T in [f64, f32, f16, bf16, e4m3, e5m2, i64, i32, i16, i8, u64, u32, u16, u8, bool]),
    grid(1),
)]
fn every_element<T: Elem>(
    #[shape(6, 10)] x: &Tensor<T, 2>,
    y: &mut Tensor<T, 3>,
    #[shape(8)] picked: &mut Tensor<T, 1>,
    i: i32,
    j: i32,
) {
    let v = x.load_tile::<6, 10>([0, 0]);
    // An inner part, one row, one column, one element, the whole.
    let inner = v.slice::<3, 4>([2, 5]);
    let row = v.slice::<1, 10>([4, 0]);
    let column = v.slice::<6, 1>([0, 9]);
    let one = v.slice::<1, 1>([5, 3]);
    y.index_mut::<0>(0).store_tile([0, 0], inner);
    y.index_mut::<0>(1).store_tile([0, 0], row);
    y.index_mut::<0>(2).store_tile([0, 0], column);
    y.index_mut::<0>(3).store_tile([0, 0], one);
    y.index_mut::<0>(4).store_tile([0, 0], v.slice::<6, 10>([0, 0]));
    // Rows in another order, and columns of two widths.
    let turned = v.slice::<2, 10>([4, 0]).concat::<6, 10>(v.slice::<4, 10>([0, 0]));
    y.index_mut::<0>(5).store_tile([0, 0], turned);
    y.index_mut::<0>(6).store_tile([0, 0], column.concat::<6, 4>(v.slice::<6, 3>([0, 4])));
    picked.set([0], v.at([0, 0]));
    picked.set([1], v.at([5, 9]));
    picked.set([2], v.at([i, j]));
    picked.set([3], v.at([j, i]));
    picked.set([4], v.at([i - 100, j]));
    picked.set([5], one.at([0, 0]));
    picked.set([6], row.at([0, j]));
    picked.set([7], inner.at([i - 1, 0]));
}

macro_rules! of_every_element {
    ($($t:ident $value:expr;)*) => {$({
        let dev = device();
        let value: fn(i32) -> $t = $value;
        let x: Vec<$t> = (0..60).map(value).collect();
        let run = |device: bool| -> titan::Result<[String; 2]> {
            let (mut y, mut picked) = (dev.zeros::<$t, 3>([7, 6, 10])?, dev.zeros::<$t, 1>([8])?);
            let input = dev.tensor(&x, [6, 10])?;
            if device {
                every_element::<$t>(&input, &mut y, &mut picked, 3, 7).sync()?;
            } else {
                every_element::reference::<$t>(&input, &mut y, &mut picked, 3, 7)?;
            }
            Ok([format!("{:?}", y.to_vec()?), format!("{:?}", picked.to_vec()?)])
        };
        let got = run(true)?;
        assert_eq!(got, run(false)?, "of {}", stringify!($t));
        // By hand: where each element comes from.
        let at = |r: usize, c: usize| x[r * 10 + c];
        let zero = value(0);
        let picked = [at(0, 0), at(5, 9), at(3, 7), zero, zero, at(5, 3), at(4, 7), at(4, 5)];
        assert_eq!(got[1], format!("{picked:?}"), "of {}", stringify!($t));
        let mut planes = vec![zero; 7 * 60];
        let mut put = |plane: usize, rows: usize, columns: usize, from: &dyn Fn(usize, usize) -> $t| {
            for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                planes[plane * 60 + r * 10 + c] = from(r, c);
            }
        };
        put(0, 3, 4, &|r, c| at(r + 2, c + 5));
        put(1, 1, 10, &|_, c| at(4, c));
        put(2, 6, 1, &|r, _| at(r, 9));
        put(3, 1, 1, &|_, _| at(5, 3));
        put(4, 6, 10, &|r, c| at(r, c));
        put(5, 6, 10, &|r, c| at((r + 4) % 6, c));
        put(6, 6, 4, &|r, c| if c == 0 { at(r, 9) } else { at(r, c + 3) });
        assert_eq!(got[0], format!("{planes:?}"), "of {}", stringify!($t));
    })*};
}

#[test]
fn parts_and_elements_are_what_they_were() -> titan::Result<()> {
    of_every_element! {
        f64 |i| if i == 37 { -0.0 } else { f64::from(i) * 1e-310 };
        f32 |i| match i { 37 => -0.0, 53 => f32::INFINITY, _ => i as f32 * 1e-40 };
        f16 |i| if i == 37 { f16::NEG_ZERO } else { f16::from_f32(i as f32 / 7.0) };
        bf16 |i| if i == 37 { bf16::NEG_ZERO } else { bf16::from_f32(i as f32 / 7.0) };
        e4m3 |i| e4m3::from_bits(if i == 37 { 0x80 } else { i as u8 });
        e5m2 |i| e5m2::from_bits(if i == 37 { 0x80 } else { i as u8 });
        i64 |i| -i64::from(i) << 33;
        i32 |i| -i << 20;
        i16 |i| -(i as i16) << 7;
        i8 |i| -(i as i8) * 2;
        u64 |i| (i as u64) << 58;
        u32 |i| (i as u32) << 26;
        u16 |i| (i as u16) << 10;
        u8 |i| (i as u8) << 2;
        bool |i| i % 3 == 1;
    }
    Ok(())
}

/// Four bits: the parts are put together again in another order.
#[titan::kernel(instances(T in [i4, u4]), grid(1))]
fn halves<T: Elem>(
    #[shape(2, 32)] x: &Tensor<T, 2>,
    #[shape(2, 32)] y: &mut Tensor<T, 2>,
    #[shape(2)] picked: &mut Tensor<i32, 1>,
) {
    let p = program_id(0);
    let v = x.load_tile::<2, 32>([0, p]);
    y.store_tile([0, p], v.slice::<2, 21>([0, 11]).concat::<2, 32>(v.slice::<2, 11>([0, 0])));
    picked.set([0], v.at([1, 5]).cast());
    picked.set([1], v.at([p, 13]).cast());
}

#[test]
fn parts_of_packed_elements() -> titan::Result<()> {
    let dev = device();
    let x: Vec<i4> = (0..64).map(|i| i4::from_i8((i * 5 % 16 - 8) as i8)).collect();
    let (mut y, mut picked) = (dev.zeros::<i4, 2>([2, 32])?, dev.zeros([2])?);
    halves::<i4>(&dev.tensor(&x, [2, 32])?, &mut y, &mut picked).sync()?;
    let want: Vec<i8> = (0..64).map(|i| x[i / 32 * 32 + (i % 32 + 11) % 32].to_i8()).collect();
    assert_eq!(y.to_vec()?.iter().map(|x| x.to_i8()).collect::<Vec<_>>(), want);
    assert_eq!(picked.to_vec()?, [37, 13].map(|i: usize| i32::from(x[i].to_i8())));
    let x: Vec<u4> = (0..64).map(|i| u4::from_u8((i * 5 % 16) as u8)).collect();
    let (mut y, mut picked) = (dev.zeros::<u4, 2>([2, 32])?, dev.zeros([2])?);
    halves::<u4>(&dev.tensor(&x, [2, 32])?, &mut y, &mut picked).sync()?;
    let want: Vec<u8> = (0..64).map(|i| x[i / 32 * 32 + (i % 32 + 11) % 32].to_u8()).collect();
    assert_eq!(y.to_vec()?.iter().map(|x| x.to_u8()).collect::<Vec<_>>(), want);
    assert_eq!(picked.to_vec()?, [37, 13].map(|i: usize| i32::from(x[i].to_u8())));
    Ok(())
}

/// Ranks 1, 3 and 4, and tiles that are functions of coordinates only.
#[titan::kernel(grid(1))]
fn other_ranks(#[shape(N)] x: &Tensor<i32, 1>, #[shape(40)] y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<48>([p]);
    let cube = v.reshape::<2, 4, 6>();
    let part = cube.slice::<2, 2, 3>([0, 1, 3]);
    let four = v.reshape::<2, 2, 3, 4>().slice::<1, 2, 2, 3>([1, 0, 1, 1]);
    let ramp = iota::<20>().slice::<7>([9]).concat::<8>(Tile::<i32, 1>::full(-1));
    y.store_at([p], part.reshape::<12>());
    y.store_at([12 + p], four.reshape::<12>());
    y.store_at([24 + p], ramp);
    y.store_at([32 + p], v.slice::<1>([47]).concat::<8>(v.slice::<7>([0])) + cube.at([1, 3, 5]));
}

#[test]
fn parts_of_every_rank() -> titan::Result<()> {
    let dev = device();
    let x: Vec<i32> = (100..148).collect();
    let got = same!(other_ranks(dev; &dev.tensor(&x, [48])?; i32, [40]));
    let mut want: Vec<i32> = Vec::new();
    for (i, j, k) in (0..2).flat_map(|i| (0..2).flat_map(move |j| (0..3).map(move |k| (i, j, k)))) {
        want.push(100 + i * 24 + (j + 1) * 6 + k + 3);
    }
    for (j, k, l) in (0..2).flat_map(|j| (0..2).flat_map(move |k| (0..3).map(move |l| (j, k, l)))) {
        want.push(100 + 24 + j * 12 + (k + 1) * 4 + l + 1);
    }
    want.extend((9..16).chain([-1]));
    want.extend([147, 100, 101, 102, 103, 104, 105, 106].map(|v| v + 147));
    assert_eq!(got, want);
    Ok(())
}

/// An array of tiles, of which a loop with constant bounds takes each, and an index that is known at run time.
#[titan::kernel(instances(N in [1, 4]), grid(1))]
fn arrays_of_tiles<const N: i32>(#[shape(4, 8)] x: &Tensor<f32, 2>, #[shape(3, 8)] y: &mut Tensor<f32, 2>, which: i32) {
    let p = program_id(0);
    let v = x.load_tile::<4, 8>([p, 0]);
    let rows = [v.slice::<1, 8>([0, 0]), v.slice::<1, 8>([1, 0]), v.slice::<1, 8>([2, 0]), v.slice::<1, 8>([3, 0])];
    let mut sum = Tile::<f32, 1, 8>::zeros();
    for i in 0..N {
        sum += rows[i] * (i + 1).cast::<f32>();
    }
    y.store_tile([p, 0], sum);
    y.store_tile([p + 1, 0], rows[which]);
    y.store_tile([p + 2, 0], rows[1].concat::<2, 8>(rows[3]).slice::<1, 8>([1, 0]));
}

#[test]
fn an_array_of_tiles_is_indexed_in_a_loop() -> titan::Result<()> {
    let dev = device();
    let x: Vec<f32> = (0..32).map(|i| i as f32).collect();
    let x = dev.tensor(&x, [4, 8])?;
    let row = |i: usize| (0..8).map(move |c| (i * 8 + c) as f32);
    for which in [0, 2, 3] {
        let got = same!(arrays_of_tiles::<4>(dev; &x; f32, [3, 8]; which));
        let weighted = |c: usize| (0..4).map(|r| (r + 1) as f32 * (r * 8 + c) as f32).sum::<f32>();
        let want: Vec<f32> = (0..8).map(weighted).chain(row(which as usize)).chain(row(3)).collect();
        assert_eq!(got, want);
    }
    let got = same!(arrays_of_tiles::<1>(dev; &x; f32, [3, 8]; 1));
    assert_eq!(got, row(0).chain(row(1)).chain(row(3)).collect::<Vec<f32>>());
    Ok(())
}

/// In a loop whose loads run ahead: the two halves of each row change places before the product.
#[titan::kernel(grid(1))]
fn in_a_pipeline(
    #[shape(32, K)] a: &Tensor<f16, 2>,
    #[shape(K, 32)] b: &Tensor<f16, 2>,
    #[shape(32, 32)] c: &mut Tensor<f32, 2>,
) {
    let mut acc = Tile::<f32, 32, 32>::zeros();
    for k in pipelined(0..cdiv(K, 32)) {
        let v = a.load_tile::<32, 32>([0, k]);
        let turned = v.slice::<32, 16>([0, 16]).concat::<32, 32>(v.slice::<32, 16>([0, 0]));
        acc = mma(turned, b.load_tile::<32, 32>([k, 0]), acc);
    }
    c.store_tile([program_id(0), 0], acc);
}

#[test]
fn parts_inside_of_a_pipelined_loop() -> titan::Result<()> {
    let dev = device();
    let number = |i: usize| f16::from_f32((i * 7 % 5) as f32 - 2.0);
    let a = dev.tensor(&(0..32 * 96).map(number).collect::<Vec<_>>(), [32, 96])?;
    let b = dev.tensor(&(0..96 * 32).map(|i| number(i + i / 32)).collect::<Vec<_>>(), [96, 32])?;
    same!(in_a_pipeline(dev; &a, &b; f32, [32, 32]));
    Ok(())
}

/// In roles: one copies, the other takes stages apart.
#[titan::kernel(roles(load: 1 warp, work: 1 warpgroup))]
fn in_roles(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<Smem<f32, 32, 64>, 2>::new();
    let tiles = y.work::<32, 64>();
    match role() {
        Role::Load => {
            for at in tiles.indices() {
                ring.acquire().copy(x.tile(at)).commit();
            }
        }
        Role::Work => {
            for out in tiles.tiles() {
                let stage = ring.ready().wait();
                let v = stage.get().load();
                stage.release();
                out.store(v.slice::<32, 24>([0, 40]).concat::<32, 64>(v.slice::<32, 40>([0, 0])) + v.at([31, 63]));
            }
        }
    }
}

#[test]
fn parts_inside_of_roles() -> titan::Result<()> {
    let dev = device();
    let x: Vec<f32> = (0..64 * 128).map(|i| i as f32).collect();
    let x = dev.tensor(&x, [64, 128])?;
    let got = same!(in_roles(dev; &x; f32, [64, 128]));
    assert_eq!(got[0], 40.0 + (31 * 128 + 63) as f32);
    Ok(())
}
