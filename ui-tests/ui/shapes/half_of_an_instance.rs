//! Two expressions that agree in one instance only by chance.
use titan::prelude::*;

#[titan::kernel(instances((BM, D) in [(64, 2)]))]
fn k<const BM: i32, const D: i32>(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let m = program_id(0);
    let v = x.load_tile::<BM, { D / 2 }>([m, 0]) + x.load_tile::<BM, { D - 1 }>([m, 1]);
    y.store_tile([m, 0], v);
}

fn main() {}
