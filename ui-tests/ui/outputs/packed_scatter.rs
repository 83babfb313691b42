//! Rows that are scattered to are whole bytes.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<i4, 2>, y: &mut Tensor<i4, 2>) {
    let rows = iota::<4>() + program_id(0);
    y.scatter_rows(rows, 0, x.load_tile::<4, 7>([0, 0]));
}

fn main() {}
