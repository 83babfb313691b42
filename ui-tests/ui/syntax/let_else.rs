//! `let … else` asks for patterns that kernels do not have.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 8)))]
fn k(bias: Option<&Tensor<f32, 1>>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let Some(b) = bias else { return };
    y.store_tile([p], b.load_tile::<8>([p]));
}

fn main() {}
