//! Bounds of a kernel stand with the parameter.
use titan::prelude::*;

#[titan::kernel(instances(T in [f32, f16]))]
fn k<T>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>)
where
    T: Float,
{
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
