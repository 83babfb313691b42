//! The twin of `ui/names/own_generic_intrinsic.rs`, without the mistake.
use titan::prelude::*;

fn select<T>(first: bool, a: T, b: T) -> T {
    if first { a } else { b }
}

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let v = x.load_tile::<8>([program_id(0)]);
    y.store_tile([program_id(0)], titan::select(v > 0.0, v, 0.0));
}

#[test]
fn it_is_called() {
    assert_eq!(select(true, 1, 2), 1);
}
