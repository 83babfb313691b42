//! A sum and an exchange of the same counters.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<i32, 1>, y: &mut Tensor<i32, 1>, #[shape(N)] z: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let old = y.fetch_add([x.get([p])], 1);
    z.set([p], y.atomic_swap([0], old));
}

fn main() {}
