//! From tokens to sentences.

use titan::prelude::*;

/// `y[b]` is the mean of the rows of sentence `b`, over its length: `[T, H]` to `[B, H]`; one program a sentence.
///
/// Sentence `b` is rows `off[b]..off[b + 1]`. A mean shorter than 1e-12 is divided by 1e-12.
#[titan::kernel(instances((BT, W) in [(8, 384), (8, 32)]), grid(B), require(H <= W, OFFS == B + 1))]
pub fn pool<const BT: i32, const W: i32>(
    #[shape(T, H)] x: &Tensor<f32, 2>,
    #[shape(OFFS)] off: &Tensor<i32, 1>,
    #[shape(B, H)] y: &mut Tensor<f32, 2>,
) {
    let b = program_id(0);
    let x = x.segment(off, b);
    let mut sum = Tile::<f32, W>::zeros();
    for t in pipelined(0..cdiv(x.dim(0), BT)) {
        sum += x.load_tile::<BT, W>([t, 0]).reduce_sum::<0>();
    }
    let mean = sum / x.dim(0) as f32;
    let length = (mean * mean).reduce_sum::<0>().sqrt().max(1e-12);
    y.store_tile([b, 0], (mean / length).reshape::<1, W>());
}
