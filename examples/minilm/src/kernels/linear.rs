//! Linear maps, with gelu behind the one that widens.

use titan::prelude::*;

/// `x / 2 * (1 + erf(x / sqrt 2))`: the exact form.
#[titan::device]
pub fn gelu<S: Shape>(x: Tile<f32, S>) -> Tile<f32, S> {
    0.5 * x * (1.0 + (x * std::f32::consts::FRAC_1_SQRT_2).erf())
}

/// `y = x · weightᵀ + bias`, through gelu if `GELU`: `[T, I]` to `[T, O]`; a program makes a `BM × BN` tile of `y`.
#[titan::kernel(
    instances((BM, BN, BK) in [(64, 64, 64), (8, 16, 8)], GELU in [false, true]),
    grid(cdiv(T, BM), cdiv(O, BN)),
)]
pub fn linear<const BM: i32, const BN: i32, const BK: i32, const GELU: bool>(
    #[shape(T, I)] x: &Tensor<f32, 2>,
    #[shape(O, I)] weight: &Tensor<f32, 2>,
    #[shape(O)] bias: &Tensor<f32, 1>,
    #[shape(T, O)] y: &mut Tensor<f32, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = bias.load_tile::<BN>([n]).broadcast::<0, BM>();
    for k in pipelined(0..cdiv(I, BK)) {
        acc = mma(x.load_tile::<BM, BK>([m, k]), weight.load_tile::<BN, BK>([n, k]).t(), acc);
    }
    if GELU {
        acc = gelu(acc);
    }
    y.store_tile([m, n], acc);
}
