//! Functions that kernels call have no roles.
use titan::prelude::*;

#[titan::device]
fn part(x: Tile<f32, 8>) -> Tile<f32, 8> {
    match role() {
        Role::One => tprint!("one"),
    }
    x
}

fn main() {}
