//! A kernel that a macro makes: the error is at its own token, above the line in which it gets its name.
use titan::prelude::*;

macro_rules! copied {
    ($name:ident) => {
        #[titan::kernel(grid(cdiv(M, 16), cdiv(N, 16)))]
        fn $name(
            #[shape(M, N)] x: &Tensor<f32, 2>,
            #[shape(M, N)] y: &mut Tensor<f32, 2>,
            #[shape(M, N)] z: &mut Tensor<f32, 2>,
        ) {
            let (m, n) = (program_id(0), program_id(1));
            y.store_tile([m, n], x.load_tile::<16, 16>([m, n]));
            z.store_tile([m, 0], x.load_tile::<16, 16>([m, n]));
        }
    };
}

copied!(k);

fn main() {}
