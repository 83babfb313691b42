//! The twin of `ui/parts/tuple_of_shapes.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let v = x.load_tile::<64>([0]);
    let (m, n) = (v, Tile::<f32, 64>::ones()).reduce::<0>(|(a, n), (b, o)| (a + b, n + o));
    y.set([program_id(0)], m / n);
}
