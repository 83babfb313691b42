//! Rotary position embedding, in place; positions index the tables of cosines and sines.
//!
//! Run with `cargo run --release --example rope`.
mod common;

use titan::prelude::*;

/// Half-split (NeoX) rotation of `q[tok, h, ..]` by the angle of `pos[tok]`.
#[titan::kernel(instances((BT, D) in [(4, 16), (32, 128)]), grid(cdiv(TOK, BT), H))]
pub fn rope<const BT: i32, const D: i32>(
    #[shape(TOK, H, D)] q: &mut Tensor<f16, 3>,
    #[shape(TOK)] pos: &Tensor<i32, 1>,
    #[shape(_, D / 2)] cos: &Tensor<f32, 2>,
    #[shape(_, D / 2)] sin: &Tensor<f32, 2>,
) {
    let (t, h) = (program_id(0), program_id(1));
    let p = pos.load_tile::<BT>([t]);
    let c = cos.gather_rows::<BT, { D / 2 }>(p, 0);
    let s = sin.gather_rows::<BT, { D / 2 }>(p, 0);
    let mut q = q.index_mut::<1>(h);
    let lo = q.load_tile::<BT, { D / 2 }>([t, 0]).cast::<f32>();
    let hi = q.load_tile::<BT, { D / 2 }>([t, 1]).cast::<f32>();
    q.store_tile([t, 0], (lo * c - hi * s).cast());
    q.store_tile([t, 1], (hi * c + lo * s).cast());
}

/// The greatest error on `t` tokens of `h` heads.
pub(crate) fn check(dev: &Device, t: usize, h: usize) -> titan::Result<f64> {
    const D: usize = 16;
    const POSITIONS: usize = 11;
    let mut rng = common::Rng::new(6);
    let qh = rng.fill::<f16>(t * h * D);
    let pos = rng.ints(t, 0..POSITIONS as i32);
    let (ch, sh) = (rng.fill::<f32>(POSITIONS * D / 2), rng.fill::<f32>(POSITIONS * D / 2));
    let (p, shape) = (dev.tensor(&pos, [t])?, [POSITIONS, D / 2]);
    let (c, s) = (dev.tensor(&ch, shape)?, dev.tensor(&sh, shape)?);
    let want: Vec<f64> = (0..qh.len())
        .map(|i| {
            let (j, row) = (i % D, i / D * D);
            let at = pos[i / (h * D)] as usize * D / 2 + j % (D / 2);
            let (c, s, v) = (f64::from(ch[at]), f64::from(sh[at]), |k: usize| qh[row + k].to_f64());
            if j < D / 2 { v(j) * c - v(j + D / 2) * s } else { v(j) * c + v(j - D / 2) * s }
        })
        .collect();
    let (mut q, mut again) = (dev.tensor(&qh, [t, h, D])?, dev.tensor(&qh, [t, h, D])?);
    rope::<4, 16>(&mut q, &p, &c, &s).sync()?;
    rope::reference::<4, 16>(&mut again, &p, &c, &s)?;
    Ok(common::max_error(&q.to_vec()?, &want).max(common::max_error(&again.to_vec()?, &want)))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("RoPE of 101 tokens, 7 heads", &dev, check(&dev, 101, 7)?, 2e-3);
    Ok(())
}
