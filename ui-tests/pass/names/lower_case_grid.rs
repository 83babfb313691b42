//! The twin of `ui/names/lower_case_grid.rs`, without the mistake.
use titan::prelude::*;

#[titan::constant]
#[allow(non_upper_case_globals, reason = "it is the subject")]
const width: i32 = 8;

#[titan::kernel(grid(cdiv(N, self::width)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}
