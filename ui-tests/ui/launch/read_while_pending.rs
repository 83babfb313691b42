//! An output is out of reach until its launch is on a stream.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn host(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) -> titan::Result<Vec<f32>> {
    let op = k(x, y);
    let v = y.to_vec()?;
    op.sync()?;
    Ok(v)
}

fn main() {}
