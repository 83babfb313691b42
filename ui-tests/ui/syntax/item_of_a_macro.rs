//! An item inside a kernel, which the caller of a macro passes as a statement.
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
kernel!(k, fn s() -> f32 { 2.0 }, s);

fn main() {}
