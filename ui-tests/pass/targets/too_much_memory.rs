//! The twin of `ui/targets/too_much_memory.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(N, M)] y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let v = x.load_tile::<64, 64>([n, m]);
    y.store_tile([m, n], v.t());
}

/// The CPU has no such limit.
#[titan::kernel(targets(cpu))]
fn on_the_cpu(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(N, M)] y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let v = x.load_tile::<512, 256>([n, m]);
    y.store_tile([m, n], v.t());
}
