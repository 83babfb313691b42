//! A launch with arguments that were not declared.
use titan::prelude::*;

#[titan::kernel(instances(T in [f16, bf16], BN in [64, 128]))]
fn copy<T: Float, const BN: i32>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]));
}

fn host(x: &Tensor<f16, 1>, y: &mut Tensor<f16, 1>) -> titan::Result<()> {
    copy::<f16, 256>(x, y).sync()
}

fn main() {}
