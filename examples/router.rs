//! The router of a mixture of experts: softmax, then the best `K` experts with renormalized weights.
//!
//! Run with `cargo run --release --example router`.
mod common;

use titan::prelude::*;

/// Any number of experts up to `E`, a block of `BT` tokens per program.
#[titan::kernel(instances((BT, E, K) in [(4, 16, 2), (4, 60, 4)]), grid(cdiv(TOK, BT)), require(NE <= E))]
pub fn route<const BT: i32, const E: i32, const K: i32>(
    #[shape(TOK, NE)] logits: &Tensor<f32, 2>,
    #[shape(TOK, K)] weight: &mut Tensor<f32, 2>,
    #[shape(TOK, K)] expert: &mut Tensor<i32, 2>,
) {
    let t = program_id(0);
    let x = logits.load_tile_or::<BT, E>([t, 0], f32::NEG_INFINITY);
    let mut p = (x - x.reduce_max::<1>().col()).exp();
    let mut sum = Tile::<f32, BT>::zeros();
    for j in 0..K {
        let (best, at) = p.argmax::<1>();
        sum += best;
        weight.store_tile([t, j], best.reshape::<BT, 1>());
        expert.store_tile([t, j], at.reshape::<BT, 1>());
        p = select(iota::<E>().row() == at.col(), -1.0, p);
    }
    let w = weight.load_tile::<BT, K>([t, 0]);
    weight.store_tile([t, 0], w / sum.col());
}

/// The greatest error of weights and experts for `t` tokens and `ne` experts, up to 60.
pub(crate) fn check(dev: &Device, t: usize, ne: usize) -> titan::Result<f64> {
    let xh = common::Rng::new(11).fill::<f32>(t * ne);
    let x = dev.tensor(&xh, [t, ne])?;
    let (mut weights, mut experts) = (Vec::new(), Vec::new());
    for row in xh.chunks(ne) {
        let mut order: Vec<usize> = (0..ne).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        let best: Vec<f64> = order[..4].iter().map(|j| f64::from(row[*j]).exp()).collect();
        weights.extend(best.iter().map(|v| v / best.iter().sum::<f64>()));
        experts.extend(order[..4].iter().map(|j| *j as f64));
    }
    let mut error = 0.0f64;
    for reference in [false, true] {
        let (mut w, mut e) = (dev.zeros([t, 4])?, dev.zeros([t, 4])?);
        if reference {
            route::reference::<4, 60, 4>(&x, &mut w, &mut e)?;
        } else {
            route::<4, 60, 4>(&x, &mut w, &mut e).sync()?;
        }
        error = error.max(common::max_error(&w.to_vec()?, &weights)).max(common::max_error(&e.to_vec()?, &experts));
    }
    Ok(error)
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("router, 4 of 57 experts for 30 tokens", &dev, check(&dev, 30, 57)?, 1e-6);
    Ok(())
}
