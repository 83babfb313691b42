//! The twin of `ui/attribute/cfg_of_a_statement.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(DEBUG in [true, false]))]
fn k<const DEBUG: bool>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    if DEBUG {
        tassert!(x.get([p]) > 0.0);
    }
    y.store_tile([p], x.load_tile::<8>([p]));
}
