//! Kernels do not see what a type alias stands for.
use titan::prelude::*;

type Vector = Tile<f32, D1<8>>;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v: Vector = x.load_tile::<8>([p]);
    y.store_tile([p], v);
}

fn main() {}
