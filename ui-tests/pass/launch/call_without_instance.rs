//! The twin of `ui/launch/call_without_instance.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(BN in [16]))]
fn k<const BN: i32>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]));
}

#[expect(dead_code, reason = "a call is what the case is about")]
fn run(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) -> titan::Result<()> {
    k(x, y).sync()
}
