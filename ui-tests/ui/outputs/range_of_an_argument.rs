//! Heads of a group, by a number that is an argument and may be anything.
use titan::prelude::*;

#[titan::kernel(grid(G))]
fn k(#[shape(G, 64)] x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, heads: i32) {
    let g = program_id(0);
    for h in g * heads..g * heads + heads {
        y.store_tile([h, 0], x.load_tile::<1, 64>([g, 0]));
    }
}

fn main() {}
