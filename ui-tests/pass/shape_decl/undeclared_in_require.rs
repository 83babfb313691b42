//! The twin of `ui/shape_decl/undeclared_in_require.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(require(N % 8 == 0))]
fn k(x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}
