//! The twin of `ui/outputs/made_by_macro.rs`, without the mistake.
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
            z.store_tile([m, n], x.load_tile::<16, 16>([m, n]));
        }
    };
}

copied!(k);
