//! A kernel whose names are compared by their text alone: its names are others for rustc than for TITAN.
use titan::prelude::*;

macro_rules! scaled {
    ($name:ident, $x:ident => $body:expr) => {
        titan::__private::step! { kernel { (::titan) () (
            fn $name(#[shape(N)] src: &Tensor<f32, 1>, #[shape(N)] dst: &mut Tensor<f32, 1>) {
                let p = program_id(0);
                let $x = src.load_tile::<16>([p]);
                let s = Tile::<f32, 16>::full(3.0);
                dst.store_tile([p], $body * s);
            }
        ) () } [] [] }
    };
}

scaled!(k, s => s + 1.0);

fn main() {}
