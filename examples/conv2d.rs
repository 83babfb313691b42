//! int8 convolution in NHWC as an implicit GEMM, requantized to int8. Pixels outside the image are read as zero.
//!
//! Run with `cargo run --release --example conv2d`.
mod common;

use titan::prelude::*;

/// `BM` output pixels by `BN` output channels per program.
#[titan::kernel(instances((BM, BN, BC) in [(8, 8, 4)]), grid(cdiv(PIX, BM), cdiv(OC, BN)), require(PIX == B * h_out * w_out))]
pub fn conv2d<const BM: i32, const BN: i32, const BC: i32>(
    #[shape(B, H, W, C)] x: &Tensor<i8, 4>,
    #[shape(OC, KH, KW, C)] w: &Tensor<i8, 4>,
    #[shape(OC)] scale: &Tensor<f32, 1>,
    #[shape(PIX, OC)] y: &mut Tensor<i8, 2>, // [B · h_out · w_out, OC]
    h_out: i32,
    w_out: i32,
    stride: i32,
    pad: i32,
) {
    let (m, n) = (program_id(0), program_id(1));
    let pix = iota::<BM>() + m * BM;
    let (b, oh, ow) = (pix / (h_out * w_out), pix / w_out % h_out, pix % w_out);
    let mut acc = Tile::<i32, BM, BN>::zeros();
    for t in 0..KH * KW {
        let [kh, kw] = unflatten(t, [KH, KW]);
        let (ih, iw) = (oh * stride + kh - pad, ow * stride + kw - pad); // outside the image: reads zero
        let w = w.index::<1>(kh).index::<1>(kw);
        for c in pipelined(0..cdiv(C, BC)) {
            let xt = x.gather_rows::<BM, BC>((b, ih, iw), c * BC);
            acc = mma(xt, w.load_tile::<BN, BC>([n, c]).t(), acc);
        }
    }
    let q = (acc.cast::<f32>() * scale.load_tile::<BN>([n]).row()).round_ties_even().clamp(-128.0, 127.0);
    y.store_tile([m, n], q.cast());
}

/// The greatest error of a 3 × 3 convolution with stride 2 on two images of 5 × 6.
pub(crate) fn check(dev: &Device) -> titan::Result<f64> {
    let (b, h, w, c, oc, (kh, kw), (oh, ow), stride, pad) = (2, 5, 6, 7, 9, (3, 3), (3, 3), 2, 1);
    let mut rng = common::Rng::new(14);
    let xh: Vec<i8> = rng.ints(b * h * w * c, -20..20).iter().map(|v| *v as i8).collect();
    let wh: Vec<i8> = rng.ints(oc * kh * kw * c, -20..20).iter().map(|v| *v as i8).collect();
    let sh: Vec<f32> = rng.fill::<f32>(oc).iter().map(|v| 0.01 + v.abs() * 0.02).collect();
    let (x, wt, s) = (dev.tensor(&xh, [b, h, w, c])?, dev.tensor(&wh, [oc, kh, kw, c])?, dev.tensor(&sh, [oc])?);
    let pixel = |i: usize| {
        let (p, o) = (i / oc, i % oc);
        let (n, y0, x0) = (p / (oh * ow), p / ow % oh * stride, p % ow * stride);
        let mut sum = 0;
        for (dy, dx) in (0..kh).flat_map(|y| (0..kw).map(move |x| (y, x))) {
            let (Some(y), Some(x)) = ((y0 + dy).checked_sub(pad), (x0 + dx).checked_sub(pad)) else { continue };
            if y < h && x < w {
                let (x, w) = (((n * h + y) * w + x) * c, ((o * kh + dy) * kw + dx) * c);
                sum += (0..c).map(|l| i32::from(xh[x + l]) * i32::from(wh[w + l])).sum::<i32>();
            }
        }
        f64::from((sum as f32 * sh[o]).round_ties_even().clamp(-128.0, 127.0))
    };
    let pixels = b * oh * ow;
    let want: Vec<f64> = (0..pixels * oc).map(pixel).collect();
    let (mut y, mut again) = (dev.zeros([pixels, oc])?, dev.zeros([pixels, oc])?);
    let (ho, wo, st, pd) = (oh as i32, ow as i32, stride as i32, pad as i32);
    conv2d(&x, &wt, &s, &mut y, ho, wo, st, pd).sync()?;
    conv2d::reference::<8, 8, 4>(&x, &wt, &s, &mut again, ho, wo, st, pd)?;
    Ok(common::max_error(&y.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("int8 conv2d 3 × 3, stride 2", &dev, check(&dev)?, 0.0);
    Ok(())
}
