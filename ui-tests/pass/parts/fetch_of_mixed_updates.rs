//! A sum of one tensor and an exchange of another.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<i32, 1>, y: &mut Tensor<i32, 1>, z: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let old = y.fetch_add([x.get([p])], 1);
    z.atomic_swap([0], old);
}
