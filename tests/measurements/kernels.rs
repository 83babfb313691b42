//! Kernels whose instances take different times, or have different results.

use titan::prelude::*;

/// y = x, after so many additions and subtractions of 1, which are exact for small integers.
#[titan::kernel(instances(REPEAT in [400, 1, 20]))]
pub(crate) fn busy<const REPEAT: i32>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut v = x.load_tile::<16>([p]);
    for _ in 0..REPEAT {
        v = v + 1.0;
        v = v - 1.0;
    }
    y.store_tile([p], v);
}

/// y = x + D, slowly for D = 0: each instance has a result of its own, and wrong ones are fast.
#[titan::kernel(instances(D in [0, 1, 2]))]
pub(crate) fn shifted<const D: i32>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut v = x.load_tile::<16>([p]);
    for _ in 0..400 * (1 - min_one(D)) {
        v = v + 1.0;
        v = v - 1.0;
    }
    let d = Tile::<i32, 16>::full(D).cast::<f32>();
    y.store_tile([p], v + d);
}

/// D, or 1 if it is more.
#[titan::device]
pub(crate) fn min_one(d: i32) -> i32 {
    if d > 1 { 1 } else { d }
}

/// y = x, for whole tiles of BN only; the instance of 32 traps.
#[titan::kernel(instances(BN in [16, 32, 64]), require(N % BN == 0))]
pub(crate) fn whole<const BN: i32>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    tassert!(BN != 32, "this one stops");
    y.store_tile([p], x.load_tile::<BN>([p]));
}

/// y += x, in place, and z = the number of the instance, which is another one in each.
#[titan::kernel(instances(BN in [16, 64]))]
pub(crate) fn added<const BN: i32>(
    #[shape(N)] x: &Tensor<i32, 1>,
    #[shape(N)] y: &mut Tensor<i32, 1>,
    #[shape(N)] z: &mut Tensor<i32, 1>,
) {
    let p = program_id(0);
    y.store_tile([p], y.load_tile::<BN>([p]) + x.load_tile::<BN>([p]));
    z.store_tile([p], Tile::<i32, BN>::full(7));
}
