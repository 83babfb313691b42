//! The twin of `ui/launch/dispatch_usize.rs`, without the mistake.
use titan::dispatch;
use titan::prelude::*;

#[titan::kernel(instances(T in [f16, f32], BN in [64, 128]))]
fn copy<T: Float, const BN: i32>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]));
}

fn host(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, width: i32) -> titan::Result<()> {
    dispatch!(copy::<_, width>(x, y)).sync()
}
