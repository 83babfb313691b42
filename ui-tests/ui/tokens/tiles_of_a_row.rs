//! Each program loops over the tiles of a row of its own, of which it gets only a part.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let m = program_id(0);
    let mut row = y.index_mut::<0>(m);
    for out in row.tiles::<8>() {
        let [j] = out.index();
        out.store(x.load_tile::<1, 8>([m, j]).reshape::<8>());
    }
}

fn main() {}
