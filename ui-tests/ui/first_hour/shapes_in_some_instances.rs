//! Extents that fit in one instance, and not in the other.
use titan::prelude::*;

#[titan::kernel(instances(T in [f32, f16], BN in [8]))]
fn k<T: Float, const BN: i32>(x: &Tensor<T, 2>, y: &mut Tensor<T, 2>) {
    let p = program_id(0);
    let v = x.load_tile::<8, 16>([p, 0]);
    y.store_tile([p, 0], v - v.reduce_max::<1>());
}

fn main() {}
