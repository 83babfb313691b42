//! Normalizations and the rotary embedding.

use titan::lang::{Shared, Tensor, Tile, ops, run};
use titan::prelude::*;

use crate::{Random, close, f64s, memory, tensor};

fn add_rms_norm<T: Float, const BN: i32>(
    x: &Tensor<T, 2>,
    res: &mut Tensor<T, 2>,
    w: &Tensor<T, 1>,
    out: &mut Tensor<T, 2>,
    eps: f32,
) {
    let n = x.dim(1);
    let r = program_id(0);
    let at = [r, 0];
    let h = ops::add(x.load_tile::<1, BN>(at).cast::<f32>(), res.load_tile::<1, BN>(at).cast());
    res.store_tile(at, h.cast::<T>());
    let rstd = ops::add(ops::div(ops::mul(h, h).reduce_sum::<1>(), n as f32), eps).rsqrt();
    let y = ops::mul(ops::mul(h, rstd.col()), w.load_tile::<BN>([0]).cast::<f32>().row());
    out.store_tile(at, y.cast());
}

fn check_norm<T: Float, const BN: i32>(tolerance: f64) {
    let mut random = Random(0x5EED);
    let (m, n) = (5, 37);
    let (xs, rs, ws): (Vec<T>, Vec<T>, Vec<T>) = (random.many(m * n), random.many(m * n), random.many(n));
    let (res, out) = (Shared::new(rs.clone()), Shared::new(vec![T::default(); m * n]));
    let (x, w) = (tensor(&xs, [5, 37]), tensor(&ws, [37]));
    let (mut rt, mut ot) = (memory(res.clone(), [5, 37]), memory(out.clone(), [5, 37]));
    run([5, 1, 1], || add_rms_norm::<T, BN>(&x, &mut rt, &w, &mut ot, 1e-5)).expect("no trap");

    let h: Vec<f64> = f64s(&xs).iter().zip(f64s(&rs)).map(|(a, b)| a + b).collect();
    let w = f64s(&ws);
    let rms = |row: &[f64]| (row.iter().map(|x| x * x).sum::<f64>() / n as f64 + 1e-5).sqrt();
    let want: Vec<f64> = (0..m * n).map(|i| h[i] / rms(&h[i / n * n..][..n]) * w[i % n]).collect();
    close(&res, &h, tolerance);
    close(&out, &want, tolerance);
}

#[test]
fn rms_norm_adds_the_residual_in_place() {
    check_norm::<f16, 64>(1e-3);
    check_norm::<bf16, 37>(8e-3);
    check_norm::<f32, 40>(1e-6);
}

fn softmax<const BN: i32>(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let at = [program_id(0), 0];
    let v = x.load_tile_or::<1, BN>(at, f32::NEG_INFINITY);
    let e = ops::sub(v, v.reduce_max::<1>().col()).exp();
    y.store_tile(at, ops::div(e, e.reduce_sum::<1>().col()));
}

#[test]
fn softmax_of_a_ragged_width_pads_with_minus_infinity() {
    let xs: Vec<f32> = Random(7).many(4 * 13);
    let (x, out) = (tensor(&xs, [4, 13]), Shared::new(vec![0.0_f32; 52]));
    let mut y = memory(out.clone(), [4, 13]);
    run([4, 1, 1], || softmax::<16>(&x, &mut y)).unwrap();

    let xs = f64s(&xs);
    let sum = |row: &[f64]| row.iter().map(|x| x.exp()).sum::<f64>();
    let want: Vec<f64> = (0..52).map(|i| xs[i].exp() / sum(&xs[i / 13 * 13..][..13])).collect();
    close(&out, &want, 1e-6);
}

#[expect(non_upper_case_globals, reason = "the name that the macro gives to the expression")]
fn rope<const BT: i32, const D_div_2: i32>(
    q: &mut Tensor<f16, 3>,
    pos: &Tensor<i32, 1>,
    cos: &Tensor<f32, 2>,
    sin: &Tensor<f32, 2>,
) {
    let (t, h) = (program_id(0), program_id(1));
    let p = pos.load_tile::<BT>([t]);
    let c = cos.gather_rows::<BT, D_div_2>(p, 0);
    let s = sin.gather_rows::<BT, D_div_2>(p, 0);
    let mut q = q.index_mut::<1>(h);
    let lo = q.load_tile::<BT, D_div_2>([t, 0]).cast::<f32>();
    let hi = q.load_tile::<BT, D_div_2>([t, 1]).cast::<f32>();
    q.store_tile([t, 0], ops::sub(ops::mul(lo, c), ops::mul(hi, s)).cast());
    q.store_tile([t, 1], ops::add(ops::mul(hi, c), ops::mul(lo, s)).cast());
}

#[test]
fn rope_rotates_in_place() {
    let mut random = Random(11);
    let (t, h, d) = (6, 3, 16);
    let qs: Vec<f16> = random.many(t * h * d);
    let (cs, ss): (Vec<f32>, Vec<f32>) = (random.many(11 * d / 2), random.many(11 * d / 2));
    let positions: Vec<i32> = (0..6).map(|i| i * 7 % 11).collect();
    let q = Shared::new(qs.clone());
    let mut qt = memory(q.clone(), [6, 3, 16]);
    let (pos, cos, sin) = (tensor(&positions, [6]), tensor(&cs, [11, 8]), tensor(&ss, [11, 8]));
    run([2, 3, 1], || rope::<4, 8>(&mut qt, &pos, &cos, &sin)).unwrap();

    let want = |i: usize| {
        let (j, row) = (i % d, i / d * d);
        let place = positions[i / (h * d)].unsigned_abs() as usize * d / 2 + j % (d / 2);
        let (c, s) = (f64::from(cs[place]), f64::from(ss[place]));
        let q = |k: usize| qs[row + k].to_f64();
        if j < d / 2 { q(j) * c - q(j + d / 2) * s } else { q(j) * c + q(j - d / 2) * s }
    };
    close(&q, &(0..t * h * d).map(want).collect::<Vec<_>>(), 1e-3);
}

fn silu<T: Float, S: Shape>(x: Tile<T, S>) -> Tile<T, S> {
    ops::mul(x, x.sigmoid())
}

#[test]
fn device_functions_may_be_generic_in_elements_and_shapes() {
    run([1, 1, 1], || {
        let x = silu(Tile::<f32, D2<2, 3>>::ones());
        assert_eq!(x.reduce_max::<0>().to_vec(), [0.731_058_6; 3]);
        assert_eq!(silu(Tile::<f64, D1<1>>::zeros()).to_vec(), [0.0]);
    })
    .unwrap();
}
