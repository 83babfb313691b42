//! A type parameter with the name of a type of the language.
use titan::prelude::*;

#[titan::kernel(instances(Tile in [f32, f16]))]
fn k<Tile: Float>(x: &Tensor<Tile, 1>, y: &mut Tensor<Tile, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
