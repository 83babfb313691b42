//! The twin of `ui/elements/bits_of_floats.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<i32, 1>, y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    y.store_tile([p], v & v);
}
