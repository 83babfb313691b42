//! What a role updates atomically, no other role reads.
use titan::prelude::*;

#[titan::kernel(roles(first: 1 warp, second: 1 warp), grid(1))]
fn k(y: &mut Tensor<f32, 1>, z: &mut Tensor<f32, 1>) {
    match role() {
        Role::First => {
            unsafe { y.shared() }.atomic_add([iota::<16>()], Tile::<f32, 16>::ones());
        }
        Role::Second => {
            z.set([0], unsafe { y.shared() }.get([0]));
        }
    }
}

fn main() {}
