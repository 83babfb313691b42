//! The twin of `ui/first_hour/parameter_named_as_a_type.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(T in [f32, f16]))]
fn k<T: Float>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}
