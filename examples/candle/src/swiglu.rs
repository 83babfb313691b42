//! The gated activation of Llama's feed-forward network.

use titan::dispatch;
use titan::prelude::*;

/// `y = silu(gate) · up`; the first half of a row of `x` is the gate.
#[titan::kernel(instances(T in [f16, bf16, f32], W in [128, 1024]), grid(M, B, A))]
fn kernel<T: Float, const W: i32>(#[shape(A, B, M, 2, F)] x: &Tensor<T, 5>, #[shape(A, B, M, F)] y: &mut Tensor<T, 4>) {
    let (m, b, a) = (program_id(0), program_id(1), program_id(2));
    let row = x.index::<0>(a).index::<0>(b).index::<0>(m);
    let mut y = y.index_mut::<0>(a);
    let mut y = y.index_mut::<0>(b);
    for i in 0..cdiv(F, W) {
        let gate = row.load_tile::<1, W>([0, i]).cast::<f32>();
        let up = row.load_tile::<1, W>([1, i]).cast::<f32>();
        y.store_tile([m, i], (gate * gate.sigmoid() * up).cast());
    }
}

/// `silu(gate) · up` of a tensor whose last axis has the gate first.
///
/// # Errors
/// If the tensor has no axes, or the last one is odd.
pub fn swiglu(x: &candle_core::Tensor) -> candle_core::Result<candle_core::Tensor> {
    let mut shape = x.dims().to_vec();
    let Some(last) = shape.last_mut().filter(|n| **n % 2 == 0) else { candle_core::bail!("swiglu: {:?}", x.shape()) };
    *last /= 2;
    let (features, width) = (*last, if *last <= 128 { 128 } else { 1024 });
    titan_candle::apply("swiglu", [x], (shape, x.dtype()), |on, [x], mut y| {
        let x = x.with_rank(4)?;
        let halves = [&x.shape()[..3], &[2, features]].concat();
        on.run(dispatch!(kernel::<_, width>(&x.reshape(&halves)?, &mut y.with_rank_mut(4)?)))
    })
}
