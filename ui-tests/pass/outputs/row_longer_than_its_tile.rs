//! The twin of `ui/outputs/row_longer_than_its_tile.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(BN in [256, 1024]), require(N <= BN))]
fn k<const BN: i32>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let m = program_id(0);
    let v = x.load_tile::<1, BN>([m, 0]);
    y.store_tile([m, 0], v - v.reduce_max::<1>().col());
}

/// All tiles of a row.
#[titan::kernel(instances(BN in [256, 1024]))]
fn looped<const BN: i32>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let m = program_id(0);
    for i in 0..cdiv(N, BN) {
        y.store_tile([m, i], x.load_tile::<1, BN>([m, i]) * 2.0);
    }
}

/// The rest is meant to stay, and the grid is inferred.
#[titan::kernel(instances(BN in [256, 1024]), grid(unchecked))]
fn unchecked<const BN: i32>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let m = program_id(0);
    y.store_tile([m, 0], x.load_tile::<1, BN>([m, 0]));
}

/// The same in a grid that the device determines: every other element stays.
#[titan::kernel(grid(unchecked))]
fn distributed(#[shape(N)] y: &mut Tensor<f32, 1>, marks: &mut Tensor<bool, 1>) {
    for out in y.tiles::<64>() {
        let [n] = out.index();
        marks.set([2 * n], true);
        out.store(Tile::<f32, 64>::ones());
    }
}

/// A slice says itself which part is written.
#[titan::kernel]
fn sliced(#[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let m = program_id(0);
    y.slice_mut::<1>(0..64).store_tile([m, 0], Tile::<f32, 1, 64>::ones());
}
