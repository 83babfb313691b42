//! The kernels of these tests: several element types, constants and flags, in modules and in macros, with companions and optional tensors.

use titan::prelude::*;

/// The device that `TITAN_DEVICE` names, so that these tests run on others too.
pub(crate) fn device() -> Device {
    Device::best().unwrap()
}

/// y = x · by
#[titan::kernel(instances(T in [f16, bf16, f32], BN in [64, 256]))]
pub(crate) fn scale<T: Float, const BN: i32>(#[shape(N)] x: &Tensor<T, 1>, #[shape(N)] y: &mut Tensor<T, 1>, by: f32) {
    let p = program_id(0);
    y.store_tile([p], (x.load_tile::<BN>([p]).cast::<f32>() * by).cast());
}

/// The same elements as another type; only some pairs are declared.
#[titan::kernel(instances((T, U) in [(f32, f16), (f16, f32), (f32, bf16)], BN in [128]))]
pub(crate) fn convert<T: Float, U: Float, const BN: i32>(
    #[shape(N)] x: &Tensor<T, 1>,
    #[shape(N)] y: &mut Tensor<U, 1>,
) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BN>([p]).cast::<U>());
}

#[titan::device]
fn shifted<const N: i32>(x: Tile<f32, N>, by: f32) -> Tile<f32, N> {
    x + by
}

#[titan::constant]
pub(crate) const WIDE: i32 = 32 * 4;

/// One sum for each row, of squares if `SQUARED`; `bias` is added. It has companions, so that it is expanded in steps.
#[titan::kernel(
    instances(T in [f16, f32], BN in [32, WIDE], SQUARED in [false, true]),
    grid(M),
    require(N <= BN),
)]
pub(crate) fn row_sum<T: Float, const BN: i32, const SQUARED: bool>(
    #[shape(M, N)] x: &Tensor<T, 2>,
    #[shape(N)] bias: Option<&Tensor<f32, 1>>,
    #[shape(M)] y: &mut Tensor<f32, 1>,
) {
    let m = program_id(0);
    let mut v = shifted(x.load_tile::<1, BN>([m, 0]).reshape::<BN>().cast::<f32>(), 0.0);
    if let Some(b) = bias {
        v += b.load_tile::<BN>([0]);
    }
    if SQUARED {
        v = v * v;
    }
    y.set([m], v.reduce_sum::<0>());
}

/// A kernel that a macro makes, in a module, visible there and above.
pub(crate) mod made {
    use titan::prelude::*;

    macro_rules! plus {
        ($name:ident, $bound:ident, [$($elem:ident),*], $by:expr) => {
            #[titan::kernel(instances(T in [$($elem),*], BN in [64]))]
            pub(in super::super) fn $name<T: $bound, const BN: i32>(#[shape(N)] x: &mut Tensor<T, 1>) {
                let p = program_id(0);
                x.store_tile([p], x.load_tile::<BN>([p]) + $by);
            }
        };
    }
    plus!(plus_three, Int, [i32, u8], 3);
    plus!(plus_half, Float, [f32, f64], 0.5);
}

/// Without generic parameters.
#[titan::kernel]
pub(crate) fn negate(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], -x.load_tile::<64>([p]));
}

/// Twenty instances: more than a message lists.
#[titan::kernel(instances(A in [1, 2, 4, 8, 16], B in [1, 2, 4, 8]))]
pub(crate) fn many<const A: i32, const B: i32>(#[shape(M, N)] y: &mut Tensor<i32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], Tile::<i32, A, B>::full(A * 100 + B));
}

/// The accumulator's type belongs to no tensor.
#[titan::kernel(instances(ACC in [f32, f64], BN in [64]), grid(1), require(N <= BN))]
pub(crate) fn total<ACC: Float, const BN: i32>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(1)] y: &mut Tensor<f32, 1>) {
    let sum = x.load_tile::<BN>([program_id(0)]).cast::<ACC>().reduce_sum::<0>();
    y.set([0], sum.cast::<f32>());
}

/// The parameters have names that the functions behind `dispatch!` use themselves.
#[titan::kernel(instances(T in [f32, i32], N in [16]), grid(1), require(len == 16))]
pub(crate) fn named<T: Num, const N: i32>(
    #[shape(len)] values: &Tensor<T, 1>,
    instance: Option<&Tensor<T, 1>>,
    #[shape(len)] args: &mut Tensor<T, 1>,
    nth: i32,
) {
    let mut v = values.load_tile::<N>([program_id(0)]) + Tile::<T, N>::full(nth.cast::<T>());
    if let Some(more) = instance {
        v += more.load_tile::<N>([0]);
    }
    args.store_tile([program_id(0)], v);
}

/// Every scalar, as bits that a tensor can hold.
#[titan::kernel(instances(TWICE in [false, true]), grid(1))]
pub(crate) fn scalars<const TWICE: bool>(
    a: u64,
    b: i64,
    c: u8,
    d: bool,
    e: f64,
    f: f16,
    #[shape(4)] integers: &mut Tensor<u64, 1>,
    #[shape(2)] floats: &mut Tensor<f64, 1>,
) {
    let p = program_id(0);
    integers.set([p], a);
    integers.set([p + 1], b.cast::<u64>());
    integers.set([p + 2], c.cast::<u64>());
    integers.set([p + 3], if d { 1u64 } else { 0u64 });
    floats.set([p], e);
    floats.set([p + 1], if TWICE { f.cast::<f64>() * 2.0 } else { f.cast::<f64>() });
}

/// Two elements of `T` to a byte.
#[titan::kernel(instances(T in [i4, u4], BN in [8]), grid(M))]
pub(crate) fn widened<T: Elem, const BN: i32>(
    #[shape(M, BN)] x: &Tensor<T, 2>,
    #[shape(M, BN)] y: &mut Tensor<i32, 2>,
) {
    let at = [program_id(0), 0];
    y.store_tile(at, x.load_tile::<1, BN>(at).cast::<i32>());
}
