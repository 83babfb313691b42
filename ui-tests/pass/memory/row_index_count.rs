//! The twin of `ui/memory/row_index_count.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 3>, row: &Tensor<i32, 1>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    let r = row.load_tile::<8>([p]);
    y.store_tile([p, 0], x.gather_rows::<8, 4>((0, r), 0));
}
