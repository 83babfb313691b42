//! Of two stages that an MMA reads, none is released before its end.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    ring.acquire().zero().commit();
    let (one, two) = (ring.ready().wait(), ring.ready().wait());
    let product = mma_async(one.a(), two.b().t(), Tile::zeros());
    two.release();
    y.store_tile([0, 0], product.wait());
    one.release();
}

fn main() {}
