//! Extents are `i32` in device functions too.
use titan::prelude::*;

#[titan::device]
fn raised<const B: i64>(v: Tile<f32, B>) -> Tile<f32, B> {
    v + Tile::<f32, B>::ones()
}

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], raised(x.load_tile::<8>([p])));
}

fn main() {}
