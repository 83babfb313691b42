//! An addition in place, as residual connections need it.

use titan::dispatch;
use titan::prelude::*;

/// `x += y`, one row per program.
#[titan::kernel(instances(T in [f16, bf16, f32], W in [1024]), grid(cdiv(N, W), M, A))]
fn kernel<T: Float, const W: i32>(#[shape(A, M, N)] x: &mut Tensor<T, 3>, #[shape(A, M, N)] y: &Tensor<T, 3>) {
    let (i, m, a) = (program_id(0), program_id(1), program_id(2));
    let (mut x, y) = (x.index_mut::<0>(a), y.index::<0>(a));
    let sum = x.load_tile::<1, W>([m, i]) + y.load_tile::<1, W>([m, i]);
    x.store_tile([m, i], sum);
}

/// `x += y`, where `x` is stored.
///
/// # Errors
/// If shapes or element types differ, or the tensors share their storage.
pub fn add_assign(x: &candle_core::Tensor, y: &candle_core::Tensor) -> candle_core::Result<()> {
    titan_candle::apply_inplace("add-assign", x, [y], |on, mut x, [y]| {
        on.run(dispatch!(kernel::<_, 1024>(&mut x.with_rank_mut(3)?, &y.with_rank(3)?)))
    })
}
