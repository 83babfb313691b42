//! Two stores that divide the output differently.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 16)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<16>([p]);
    y.store_tile([p], v);
    let (even, _) = v.split::<8>();
    y.store_tile([p], even);
}

fn main() {}
