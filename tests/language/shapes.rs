//! Shape operations, broadcasting, reductions, scans, products.

use super::{device, ramp, same};
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn layouts(#[shape(4, 6)] x: &Tensor<i32, 2>, y: &mut Tensor<i32, 2>) {
    let t = x.load_tile::<4, 6>([0, 0]);
    y.store_tile([0, 0], t.t().reshape::<4, 6>());
    let (even, odd) = t.split::<4, 3>();
    y.store_tile([1, 0], odd.interleave::<4, 6>(even));
    let cube = t.reshape::<2, 2, 6>().permute::<1, 2, 0>();
    y.store_tile([2, 0], cube.reshape::<4, 6>());
    y.store_tile([3, 0], t.reshape::<2, 2, 6>().t().reshape::<4, 6>());
    let row = t.reduce_max::<0>();
    let col = t.reduce_min::<1>();
    y.store_tile([4, 0], t * row.row() - col.col());
    y.store_tile([5, 0], (col * 100).col() + row.row());
    y.store_tile([6, 0], (row * 100).row() - col.col());
    y.store_tile([7, 0], col.broadcast::<1, 6>() + row.broadcast::<0, 4>());
}

#[test]
fn shapes_change_and_lines_broadcast() -> titan::Result<()> {
    let dev = device();
    let xs: Vec<i32> = (0..24).collect();
    let got = same!(layouts(dev; &dev.tensor(&xs, [4, 6])?; i32, [32, 6]));
    for i in 0..24 {
        let (r, c) = (i / 6, i % 6);
        let v = (r * 6 + c) as i32;
        let (row, col) = ((18 + c) as i32, (r * 6) as i32);
        assert_eq!(got[i], (i % 4 * 6 + i / 4) as i32, "t");
        assert_eq!(got[24 + i], if c % 2 == 0 { v + 1 } else { v - 1 }, "split, interleave");
        let (p, q, s) = (i / 12, i / 2 % 6, i % 2);
        assert_eq!(got[48 + i], (s * 12 + p * 6 + q) as i32, "permute");
        let (p, q, s) = (i / 12, i / 2 % 6, i % 2);
        assert_eq!(got[72 + i], (p * 12 + s * 6 + q) as i32, "t of rank 3");
        assert_eq!(got[96 + i], v * row - col);
        assert_eq!(got[120 + i], col * 100 + row);
        assert_eq!(got[144 + i], row * 100 - col);
        assert_eq!(got[168 + i], col + row);
    }
    Ok(())
}

/// Operators of rows and columns with scalars and with each other, of one element type.
#[titan::kernel(instances(T in [f32, f16, i32]), grid(1))]
fn lines<T: Num>(
    #[shape(4, 6)] x: &Tensor<T, 2>,
    #[shape(6)] along: &Tensor<T, 1>,
    #[shape(4)] down: &Tensor<T, 1>,
    #[shape(1)] s: &Tensor<T, 1>,
    #[shape(28, 6)] y: &mut Tensor<T, 2>,
) {
    let s = s.get([0]);
    let t = x.load_tile::<4, 6>([0, 0]);
    let (row, col) = (along.load_tile::<6>([0]).row(), down.load_tile::<4>([0]).col());
    y.store_tile([0, 0], t + row * s);
    y.store_tile([1, 0], (s - col) * t);
    y.store_tile([2, 0], t + (row + row) - -col);
    let mut carried = row;
    for _ in 0..3 {
        carried = carried * s - row;
    }
    carried += s;
    y.store_tile([3, 0], carried + col);
    let (wide, tall) = ((row > s) & !(row == row), (s <= col) | (col != col));
    y.store_tile([4, 0], select(wide | tall, t, s));
    let (a, b) = (row, col * s);
    let chosen = if s > s - s { a } else { a + a };
    y.store_tile([5, 0], chosen / s + b);
    y.store_tile([6, 0], row * (col * col));
}

/// The CPU or what the environment names, the emulated GPU, the simulator.
fn devices() -> Vec<Device> {
    let mut all = vec![device()];
    #[cfg(feature = "emulator")]
    all.push(Device::emulator("sm_80").expect("sm_80 is emulated"));
    #[cfg(feature = "simulator")]
    all.push(Device::simulator(titan::sim::Options::default()));
    all
}

#[test]
fn lines_have_operators() -> titan::Result<()> {
    for dev in devices() {
        let (xs, row, col) = ([3, -1, 4, 1, -5, 9].repeat(4), [2, 7, -1, 8, 2, -8], [3, 1, -4, 5]);
        let got = same!(lines::<i32>(dev; &dev.tensor(&xs, [4, 6])?, &dev.tensor(&row, [6])?, &dev.tensor(&col, [4])?,
            &dev.tensor(&[3], [1])?; i32, [28, 6]));
        for i in 0..24 {
            let (t, r, c, s) = (xs[i], row[i % 6], col[i / 6], 3);
            assert_eq!(got[i], t + r * s);
            assert_eq!(got[24 + i], (s - c) * t);
            assert_eq!(got[48 + i], t + 2 * r + c);
            assert_eq!(got[72 + i], ((r * s - r) * s - r) * s - r + s + c);
            assert_eq!(got[96 + i], if s <= c { t } else { s });
            assert_eq!(got[120 + i], r / s + c * s);
            assert_eq!(got[144 + i], r * c * c);
        }
        let float = |v: &[i32]| v.iter().map(|x| *x as f32 / 4.0).collect::<Vec<_>>();
        let (xs, row, col) = (float(&xs), float(&row), float(&col));
        let half = |v: &[f32]| v.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>();
        same!(lines::<f16>(dev; &dev.tensor(&half(&xs), [4, 6])?, &dev.tensor(&half(&row), [6])?,
            &dev.tensor(&half(&col), [4])?, &dev.tensor(&half(&[0.75]), [1])?; f16, [28, 6]));
        same!(lines::<f32>(dev; &dev.tensor(&xs, [4, 6])?, &dev.tensor(&row, [6])?, &dev.tensor(&col, [4])?,
            &dev.tensor(&[0.75], [1])?; f32, [28, 6]));
    }
    Ok(())
}

/// A half line beside an `f32`, which is rounded first; elements that follow from elsewhere.
#[titan::kernel(grid(1))]
fn inferred(#[shape(16, 16)] x: &Tensor<f16, 2>, #[shape(16, 16)] y: &mut Tensor<f32, 2>, s: f32) {
    let t = x.load_tile::<16, 16>([0, 0]);
    let row = t.reduce_max::<0>().row() * s;
    let product = mma(t, t + row, Tile::zeros()) * s;
    let mut sum = Tile::zeros();
    sum += (product * 0.125).exp();
    y.store_tile([0, 0], t.cast() * s + sum);
}

#[test]
fn elements_follow_from_afar() -> titan::Result<()> {
    for dev in devices() {
        let xs: Vec<f16> = (0..256).map(|i| f16::from_f32((i % 7) as f32 / 16.0)).collect();
        let x = dev.tensor(&xs, [16, 16])?;
        let (mut y, mut again) = (dev.zeros([16, 16])?, dev.zeros([16, 16])?);
        inferred(&x, &mut y, 0.3).sync()?;
        inferred::reference(&x, &mut again, 0.3)?;
        for (a, b) in y.to_vec()?.iter().zip(again.to_vec()?) {
            assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{a} {b} on {dev}");
        }
    }
    Ok(())
}

#[titan::kernel(grid(1))]
fn reductions(#[shape(3, 5)] x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let t = x.load_tile::<3, 5>([0, 0]);
    y.store_tile([0, 0], t.reduce_sum::<0>().reshape::<1, 5>());
    y.store_tile([1, 0], t.reduce_prod::<0>().reshape::<1, 5>());
    let (best, at) = t.argmax::<0>();
    y.store_tile([2, 0], best.reshape::<1, 5>());
    y.store_tile([3, 0], at.cast::<f32>().reshape::<1, 5>());
    let (_, least) = t.argmin::<1>();
    let total = t.reduce_sum::<1>().reduce_sum::<0>();
    y.store_at([4, 0], least.cast::<f32>().broadcast::<1, 5>() * 0.0 + total);
    y.store_tile([7, 0], t.reduce::<0>(0.0, |a, b| if a > b { a } else { b }).reshape::<1, 5>());
    y.store_tile([8, 0], t.scan_sum::<1>().reduce_max::<0>().reshape::<1, 5>());
    y.store_tile([9, 0], t.scan::<0>(1.0, |a, b| a * b).reduce_sum::<0>().reshape::<1, 5>());
    let any = (t > 13.0).any::<0>().cast::<f32>();
    let all = (t > 3.0).all::<0>().cast::<f32>();
    y.store_tile([10, 0], (any * 10.0 + all).reshape::<1, 5>());
}

#[test]
fn reductions_drop_an_axis_and_scans_keep_it() -> titan::Result<()> {
    let dev = device();
    let xs = ramp(15, 1.0, 1.0);
    let got = same!(reductions(dev; &dev.tensor(&xs, [3, 5])?; f32, [11, 5]));
    for c in 0..5 {
        let col = [xs[c], xs[5 + c], xs[10 + c]];
        assert_eq!(got[c], col.iter().sum::<f32>());
        assert_eq!(got[5 + c], col.iter().product::<f32>());
        assert_eq!((got[10 + c], got[15 + c]), (col[2], 2.0));
        assert_eq!(got[20 + c], 120.0);
        assert_eq!(got[35 + c], col[2]);
        assert_eq!(got[40 + c], xs[10..=10 + c].iter().sum::<f32>());
        assert_eq!(got[45 + c], col[0] + col[0] * col[1] + col[0] * col[1] * col[2]);
        assert_eq!(got[50 + c], f32::from(col[2] > 13.0) * 10.0 + f32::from(col[0] > 3.0));
    }
    Ok(())
}

#[titan::kernel(grid(1))]
fn scans(#[shape(2, 4)] x: &Tensor<i32, 2>, y: &mut Tensor<i32, 3>) {
    let t = x.load_tile::<2, 4>([0, 0]);
    y.index_mut::<0>(0).store_tile([0, 0], t.scan_sum::<1>());
    y.index_mut::<0>(1).store_tile([0, 0], t.scan_prod::<1>());
    y.index_mut::<0>(2).store_tile([0, 0], t.scan_max::<1>());
    y.index_mut::<0>(3).store_tile([0, 0], t.scan_min::<1>());
}

#[test]
fn scans_combine_every_prefix() -> titan::Result<()> {
    let dev = device();
    let got = same!(scans(dev; &dev.tensor(&[3, 1, 4, 2, -5, 6, -7, 8], [2, 4])?; i32, [4, 2, 4]));
    assert_eq!(got[..8], [3, 4, 8, 10, -5, 1, -6, 2]);
    assert_eq!(got[8..16], [3, 3, 12, 24, -5, -30, 210, 1680]);
    assert_eq!(got[16..24], [3, 3, 4, 4, -5, 6, 6, 8]);
    assert_eq!(got[24..], [3, 1, 1, 1, -5, -5, -7, -7]);
    Ok(())
}

#[titan::kernel(grid(1))]
fn products(
    #[shape(2, 3, 4)] a: &Tensor<f32, 3>,
    #[shape(2, 4, 5)] b: &Tensor<f32, 3>,
    #[shape(2, 3, 5)] c: &mut Tensor<f32, 3>,
) {
    let (at, bt) = (a.load_tile::<2, 3, 4>([0, 0, 0]), b.load_tile::<2, 4, 5>([0, 0, 0]));
    c.store_tile([0, 0, 0], mma(at, bt, Tile::ones()));
}

#[titan::kernel(grid(1))]
fn doubles(
    #[shape(3, 4)] a: &Tensor<f64, 2>,
    #[shape(5, 4)] b: &Tensor<f64, 2>,
    #[shape(3, 5)] c: &mut Tensor<f64, 2>,
) {
    c.store_tile([0, 0], mma(a.load_tile::<3, 4>([0, 0]), b.load_tile::<5, 4>([0, 0]).t(), Tile::zeros()));
}

#[test]
fn products_are_batched_and_infer_their_accumulator() -> titan::Result<()> {
    let dev = device();
    let (av, bv) = (ramp(24, 0.0, 1.0), ramp(40, -10.0, 1.0));
    let got = same!(products(dev; &dev.tensor(&av, [2, 3, 4])?, &dev.tensor(&bv, [2, 4, 5])?; f32, [2, 3, 5]));
    for (i, v) in got.iter().enumerate() {
        let (l, m, n) = (i / 15, i / 5 % 3, i % 5);
        let sum: f32 = (0..4).map(|k| av[(l * 3 + m) * 4 + k] * bv[(l * 4 + k) * 5 + n]).sum();
        assert_eq!(*v, sum + 1.0);
    }
    let (ad, bd): (Vec<f64>, Vec<f64>) = ((0..12).map(f64::from).collect(), (0..20).map(f64::from).collect());
    let got = same!(doubles(dev; &dev.tensor(&ad, [3, 4])?, &dev.tensor(&bd, [5, 4])?; f64, [3, 5]));
    for (i, v) in got.iter().enumerate() {
        assert_eq!(*v, (0..4).map(|k| ad[i / 5 * 4 + k] * bd[i % 5 * 4 + k]).sum::<f64>());
    }
    Ok(())
}

#[titan::kernel(instances((A, B) in [(48, 60), (7, 1), (1, 112)]), grid(1))]
fn any_extent<const A: i32, const B: i32>(#[shape(A, B)] x: &Tensor<f32, 2>, #[shape(A, B)] y: &mut Tensor<f32, 2>) {
    let t = x.load_tile::<A, B>([0, 0]);
    y.store_tile([0, 0], t + t.reduce_sum::<1>().col());
}

#[test]
fn extents_need_not_be_powers_of_two() -> titan::Result<()> {
    let dev = device();
    let x = dev.tensor(&vec![1.0; 48 * 60], [48, 60])?;
    assert_eq!(same!(any_extent::<48, 60>(dev; &x; f32, [48, 60])), vec![61.0; 48 * 60]);
    let x = dev.tensor(&[1.0; 7], [7, 1])?;
    assert_eq!(same!(any_extent::<7, 1>(dev; &x; f32, [7, 1])), [2.0; 7]);
    let x = dev.tensor(&[1.0; 112], [1, 112])?;
    assert_eq!(same!(any_extent::<1, 112>(dev; &x; f32, [1, 112])), [113.0; 112]);
    Ok(())
}

/// Extents whose operators have no names of their own.
#[titan::kernel(instances(B in [6]), grid(cdiv(N, B)))]
fn extents_of_bits<const B: i32>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let four = Tile::<f32, { B ^ 2 }>::ones().reduce_sum::<0>();
    let six = Tile::<f32, { B | 2 }>::ones().reduce_sum::<0>();
    let two = Tile::<f32, { B & 2 }>::ones().reduce_sum::<0>();
    y.store_tile([p], x.load_tile::<B>([p]) + four * 100.0 + six * 10.0 + two);
}

#[test]
fn extents_with_different_operators_are_different() -> titan::Result<()> {
    let dev = device();
    let x = dev.tensor(&ramp(7, 0.0, 1000.0), [7])?;
    assert_eq!(same!(extents_of_bits::<6>(dev; &x; f32, [7])), ramp(7, 462.0, 1000.0));
    Ok(())
}
