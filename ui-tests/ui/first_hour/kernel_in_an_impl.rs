//! Kernels are free functions.
use titan::prelude::*;

struct Net;

impl Net {
    #[titan::kernel]
    fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
        let p = program_id(0);
        y.store_tile([p], x.load_tile::<8>([p]));
    }
}

fn main() {}
