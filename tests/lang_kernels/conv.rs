//! An 8-bit convolution as a matrix product whose rows are gathered.

use titan::lang::{Shared, Tensor, Tile, ops, run, unflatten};
use titan::prelude::*;

use crate::{Random, memory, tensor};

#[derive(Clone, Copy)]
struct Geometry {
    h_out: i32,
    w_out: i32,
    stride: i32,
    pad: i32,
}

fn conv2d<const BM: i32, const BN: i32, const BC: i32>(
    x: &Tensor<i8, 4>,
    w: &Tensor<i8, 4>,
    scale: &Tensor<f32, 1>,
    y: &mut Tensor<i8, 2>,
    Geometry { h_out, w_out, stride, pad }: Geometry,
) {
    let (kh_extent, kw_extent, channels) = (w.dim(1), w.dim(2), w.dim(3));
    let (m, n) = (program_id(0), program_id(1));
    let pix = ops::add(iota::<BM>(), ops::mul(m, BM));
    let b = ops::div(pix, ops::mul(h_out, w_out));
    let (oh, ow) = (ops::rem(ops::div(pix, w_out), h_out), ops::rem(pix, w_out));
    let mut acc = Tile::<i32, D2<BM, BN>>::zeros();
    for t in 0..ops::mul(kh_extent, kw_extent) {
        let [kh, kw] = unflatten(t, [kh_extent, kw_extent]);
        let ih = ops::sub(ops::add(ops::mul(oh, stride), kh), pad);
        let iw = ops::sub(ops::add(ops::mul(ow, stride), kw), pad);
        let w = w.index::<1>(kh).index::<1>(kw);
        for c in pipelined(0..cdiv(channels, BC)) {
            let xt = x.gather_rows::<BM, BC>((b, ih, iw), ops::mul(c, BC));
            acc = mma(xt, w.load_tile::<BN, BC>([n, c]).t(), acc);
        }
    }
    let q = ops::mul(acc.cast::<f32>(), scale.load_tile::<BN>([n]).row()).round().clamp(-128.0, 127.0);
    y.store_tile([m, n], q.cast());
}

#[test]
fn convolution_reads_zero_around_the_image() {
    let mut random = Random(29);
    let (batch, h, w, c, oc, kernel) = (2_usize, 7_usize, 6_usize, 5_usize, 9_usize, 3_usize);
    let g = Geometry { h_out: 4, w_out: 3, stride: 2, pad: 1 };
    let (h_out, w_out) = (4, 3);
    let xs: Vec<i8> = random.within(batch * h * w * c, -128, 128);
    let ws: Vec<i8> = random.within(oc * kernel * kernel * c, -128, 128);
    let scales: Vec<f32> = random.many::<f32>(oc).iter().map(|s| s * 0.005).collect();
    let (x, wt) = (tensor(&xs, [2, 7, 6, 5]), tensor(&ws, [9, 3, 3, 5]));
    let (scale, out) = (tensor(&scales, [9]), Shared::new(vec![1_i8; batch * h_out * w_out * oc]));
    let mut y = memory(out.clone(), [24, 9]);
    run([3, 2, 1], || conv2d::<8, 8, 4>(&x, &wt, &scale, &mut y, g)).unwrap();

    let at = |b: usize, i: usize, j: usize, ch: usize| {
        let (i, j) = (i.checked_sub(1)?, j.checked_sub(1)?);
        (i < h && j < w).then(|| i32::from(xs[((b * h + i) * w + j) * c + ch]))
    };
    let mut want = Vec::new();
    for pixel in 0..batch * h_out * w_out {
        let (b, oh, ow) = (pixel / (h_out * w_out), pixel / w_out % h_out, pixel % w_out);
        for (o, scale) in scales.iter().enumerate() {
            let mut sum = 0;
            for tap in 0..kernel * kernel * c {
                let (kh, kw, ch) = (tap / (kernel * c), tap / c % kernel, tap % c);
                let weight = i32::from(ws[o * kernel * kernel * c + tap]);
                sum += at(b, oh * 2 + kh, ow * 2 + kw, ch).unwrap_or(0) * weight;
            }
            want.push((sum as f32 * scale).round().cast::<i8>());
        }
    }
    assert_eq!(out.to_vec(), want);
    assert!(want.contains(&127) && want.contains(&-128), "the test data reach the bounds");
}
