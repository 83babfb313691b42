//! The twin of `ui/syntax/let_else_of_a_macro.rs`, without the mistake.
use titan::prelude::*;

macro_rules! kernel {
    ($name:ident, $first:stmt, $e:expr) => {
        #[titan::kernel]
        fn $name(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
            $first;
            let p = program_id(0);
            y.store_tile([p], x.load_tile::<8>([p]) * $e);
        }
    };
}
kernel!(k, let s = 2.0, s);
