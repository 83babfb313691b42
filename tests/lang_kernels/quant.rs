//! Matrix products with 4-bit weights.

use titan::lang::{Shared, Tensor, Tile, ops, run};
use titan::prelude::*;

use crate::{Random, close, f64s, matmul, memory, tensor};

#[expect(non_upper_case_globals, reason = "the names that the macro gives to the expressions")]
fn w4a16<const BM: i32, const BN: i32, const BK: i32, const G: i32, const BK_div_2: i32, const BK_div_G: i32>(
    a: &Tensor<f16, 2>,
    w: &Tensor<u8, 2>,
    scale: &Tensor<f16, 2>,
    c: &mut Tensor<f16, 2>,
) {
    let k_extent = a.dim(1);
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, D2<BM, BN>>::zeros();
    for k in pipelined(0..cdiv(k_extent, BK)) {
        let packed = w.load_tile::<BN, BK_div_2>([n, k]);
        let q = ops::sub(ops::and(packed, 0xF).interleave::<D2<BN, BK>>(ops::shr(packed, 4)).cast::<f16>(), 8.0);
        let s = scale.load_tile::<BN, BK_div_G>([n, k]).broadcast::<2, G>().reshape::<D2<BN, BK>>();
        acc = mma(a.load_tile::<BM, BK>([m, k]), ops::mul(q, s).t(), acc);
    }
    c.store_tile([m, n], acc.cast());
}

fn w4a16_native<const BM: i32, const BN: i32, const BK: i32>(
    a: &Tensor<f16, 2>,
    w: &Tensor<i4, 2>,
    scale: &Tensor<f16, 2>,
    c: &mut Tensor<f16, 2>,
) {
    let k_extent = a.dim(1);
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, D2<BM, BN>>::zeros();
    for k in pipelined(0..cdiv(k_extent, BK)) {
        let s = scale.load_tile::<BN, 1>([n, k]).reshape::<D1<BN>>();
        let wt = ops::mul(w.load_tile::<BN, BK>([n, k]).cast::<f16>(), s.col());
        acc = mma(a.load_tile::<BM, BK>([m, k]), wt.t(), acc);
    }
    c.store_tile([m, n], acc.cast());
}

#[test]
fn four_bit_weights_unpack_and_scale_by_group() {
    let mut random = Random(17);
    let (m, n, k, group) = (9_usize, 13_usize, 24_usize, 8_usize);
    let (activations, scales): (Vec<f16>, Vec<f16>) = (random.many(m * k), random.many(n * k / group));
    let weights: Vec<i4> = random.within(n * k, -8, 8);
    let unsigned: Vec<u4> = weights.iter().map(|w| u4::from_u8((w.to_i8() + 8).cast_unsigned())).collect();

    let dequantized: Vec<f64> =
        (0..n * k).map(|i| f64::from(weights[i].to_i8()) * scales[i / group].to_f64()).collect();
    let want = matmul(&f64s(&activations), &dequantized, [m, n, k]);

    let (a, scale) = (tensor(&activations, [9, 24]), tensor(&scales, [13, 3]));
    let out = Shared::new(vec![f16::NAN; m * n]);
    let mut c = memory(out.clone(), [9, 13]);
    let packed = tensor(&u4::pack(&unsigned), [13, 12]);
    run([2, 2, 1], || w4a16::<8, 8, 16, 8, 8, 2>(&a, &packed, &scale, &mut c)).unwrap();
    close(&out, &want, 8e-3);

    let out = Shared::new(vec![f16::NAN; m * n]);
    let mut c = memory(out.clone(), [9, 13]);
    let native = tensor(&i4::unpack(&i4::pack(&weights), n * k), [13, 24]);
    run([2, 2, 1], || w4a16_native::<8, 8, 8>(&a, &native, &scale, &mut c)).unwrap();
    close(&out, &want, 8e-3);
}
