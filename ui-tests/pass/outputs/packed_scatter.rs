//! The twin of `ui/outputs/packed_scatter.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<i4, 2>, y: &mut Tensor<i4, 2>) {
    let rows = iota::<4>() + program_id(0);
    y.scatter_rows(rows, 0, x.load_tile::<4, 8>([0, 0]));
}
