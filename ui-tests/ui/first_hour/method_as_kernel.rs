//! A kernel with `self`, in an `impl`.
use titan::prelude::*;

struct Net;

impl Net {
    #[titan::kernel(instances(BN in [8, 16]))]
    pub fn k<const BN: i32>(&self, x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
        let p = program_id(0);
        y.store_tile([p], x.load_tile::<BN>([p]));
    }
}

fn main() {}
