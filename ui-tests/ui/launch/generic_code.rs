//! Code that is generic itself has no instance before it is compiled for its types.
use titan::prelude::*;

#[titan::kernel(instances(T in [f16, f32], BN in [64, 128]))]
fn copy<T: Float, const BN: i32>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]));
}

fn host<T: Float>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) -> titan::Result<()> {
    copy::<T, 64>(x, y).sync()
}

fn main() {}
