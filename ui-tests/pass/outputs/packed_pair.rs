//! The twin of `ui/outputs/packed_pair.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<i8, 1>, y: &mut Tensor<i4, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<6>([p]).cast());
}
