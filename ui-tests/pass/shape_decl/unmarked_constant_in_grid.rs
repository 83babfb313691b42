//! The twin of `ui/shape_decl/unmarked_constant_in_grid.rs`, without the mistake.
use titan::prelude::*;

#[titan::constant]
const BLOCK: i32 = 8;

#[titan::kernel(grid(cdiv(N, BLOCK)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

/// Alone in a shape it stands in braces: a name without them is that of an extent.
#[titan::kernel(require(N % BLOCK == 0 && N > { BLOCK }))]
fn in_a_shape(#[shape(N, { BLOCK })] x: &Tensor<f32, 2>, #[shape(N, BLOCK / 2)] y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    y.store_tile([p, 0], x.load_tile::<8, 4>([p, 0]));
}

fn constants_of_a_function() {
    #[titan::constant]
    const WIDTH: i32 = 16;

    #[titan::kernel(grid(cdiv(N, WIDTH)))]
    fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
        let p = program_id(0);
        y.store_tile([p], x.load_tile::<WIDTH>([p]));
    }
}
