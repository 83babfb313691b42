//! Rows are named by one index for every axis but the last.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 3>, row: &Tensor<i32, 1>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    let r = row.load_tile::<8>([p]);
    y.store_tile([p, 0], x.gather_rows::<8, 4>(r, 0));
}

fn main() {}
