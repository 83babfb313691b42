//! An MMA that is never waited for reads its stage until it is dropped.
use titan::lang::{D2, Ring, Smem, Tile, f16, mma_async};

fn k(ring: &Ring<(Smem<f16, D2<8, 16>>, Smem<f16, D2<16, 8>>), 2>) {
    let stage = ring.ready().wait();
    let _product = mma_async(stage.a(), stage.b(), Tile::<f32, D2<8, 8>>::zeros());
    stage.release();
}

fn main() {}
