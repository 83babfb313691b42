//! Two 4-bit elements share a byte: a store has an even width.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<i8, 1>, y: &mut Tensor<i4, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<5>([p]).cast());
}

fn main() {}
