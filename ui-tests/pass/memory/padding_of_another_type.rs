//! The twin of `ui/memory/padding_of_another_type.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<i32, 1>, y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile_or::<8>([p], -1));
}
