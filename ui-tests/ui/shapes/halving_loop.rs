//! The shape of a tile is the same in all iterations.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let (mut v, mut n) = (x.load_tile::<64>([p]), 32);
    while n > 8 {
        let (even, odd) = v.split::<n>();
        v = even + odd;
        n /= 2;
    }
    y.store_tile([p], v);
}

fn main() {}
