//! A `match` in a block that the caller of a macro passes.
use titan::prelude::*;

macro_rules! kernel {
    ($name:ident, $p:ident $x:ident $y:ident, $b:block) => {
        #[titan::kernel]
        fn $name($x: &Tensor<f32, 1>, $y: &mut Tensor<f32, 1>) {
            let $p = program_id(0);
            for _ in 0..2 $b
        }
    };
}
kernel!(k, p x y, {
    let v = x.get([p]);
    y.set([p], match p { 0 => v, _ => v + 1.0 });
});

fn main() {}
