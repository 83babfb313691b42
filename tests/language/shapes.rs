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
