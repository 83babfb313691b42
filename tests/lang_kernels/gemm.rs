//! Matrix products: plain, split along K, batched with strides, persistent with an optional bias.

use titan::lang::{Shared, Tensor, Tile, ops, run};
use titan::prelude::*;

use crate::{Random, close, f64s, matmul, memory, tensor};

fn gemm_split_k<const BM: i32, const BN: i32, const BK: i32>(
    a: &Tensor<f16, 2>,
    b: &Tensor<f16, 2>,
    part: &mut Tensor<f32, 3>,
) {
    let (splits, k_extent) = (part.dim(0), a.dim(1));
    let (m, n, s) = (program_id(0), program_id(1), program_id(2));
    let steps = cdiv(k_extent, BK);
    let each = cdiv(steps, splits);
    let mut acc = Tile::<f32, D2<BM, BN>>::zeros();
    for k in pipelined(ops::mul(s, each)..steps.min(ops::mul(ops::add(s, 1), each))) {
        acc = mma(a.load_tile::<BM, BK>([m, k]), b.load_tile::<BN, BK>([n, k]).t(), acc);
    }
    part.index_mut::<0>(s).store_tile([m, n], acc);
}

fn sum_splits<const BM: i32, const BN: i32>(part: &Tensor<f32, 3>, c: &mut Tensor<f16, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, D2<BM, BN>>::zeros();
    for s in 0..part.dim(0) {
        ops::add_assign(&mut acc, part.index::<0>(s).load_tile::<BM, BN>([m, n]));
    }
    c.store_tile([m, n], acc.cast());
}

#[test]
fn split_k_sums_planes() {
    let mut random = Random(31);
    let (a, b): (Vec<f16>, Vec<f16>) = (random.many(33 * 19), random.many(45 * 19));
    let (at, bt) = (tensor(&a, [33, 19]), tensor(&b, [45, 19]));
    let (part, out) = (Shared::new(vec![0.0_f32; 3 * 33 * 45]), Shared::new(vec![f16::NAN; 33 * 45]));
    let mut pt = memory(part, [3, 33, 45]);
    run([5, 6, 3], || gemm_split_k::<8, 8, 4>(&at, &bt, &mut pt)).unwrap();
    let mut ct = memory(out.clone(), [33, 45]);
    run([5, 6, 1], || sum_splits::<8, 8>(&pt, &mut ct)).unwrap();
    close(&out, &matmul(&f64s(&a), &f64s(&b), [33, 45, 19]), 1e-3);
}

fn bmm<const BZ: i32, const BM: i32, const BN: i32, const BK: i32>(
    a: &Tensor<f16, 3>,
    b: &Tensor<f16, 3>,
    c: &mut Tensor<f16, 3>,
) {
    let (m, n, z) = (program_id(0), program_id(1), program_id(2));
    let mut acc = Tile::<f32, D3<BZ, BM, BN>>::zeros();
    for k in pipelined(0..cdiv(a.dim(2), BK)) {
        acc = mma(a.load_tile::<BZ, BM, BK>([z, m, k]), b.load_tile::<BZ, BN, BK>([z, n, k]).t(), acc);
    }
    c.store_tile([z, m, n], acc.cast());
}

#[test]
fn batched_products_follow_strides_of_zero() {
    let mut random = Random(37);
    let (batch, m, n, k) = (3, 9, 11, 7);
    let (a, b): (Vec<f16>, Vec<f16>) = (random.many(batch * m * k), random.many(n * k));
    let at = tensor(&a, [3, 9, 7]);
    let bt = Tensor::from_host(Shared::new(b.clone()), 0, [3, 11, 7], [0, 7, 1]);
    let out = Shared::new(vec![f16::NAN; batch * m * n]);
    let mut ct = memory(out.clone(), [3, 9, 11]);
    run([2, 2, 2], || bmm::<2, 8, 8, 4>(&at, &bt, &mut ct)).unwrap();
    let want: Vec<f64> = a.chunks(m * k).flat_map(|plane| matmul(&f64s(plane), &f64s(&b), [m, n, k])).collect();
    close(&out, &want, 1e-3);
}

fn gelu<S: Shape>(x: Tile<f32, S>) -> Tile<f32, S> {
    ops::mul(ops::mul(0.5, x), ops::add(1.0, ops::mul(x, 0.707_106_77).erf()))
}

fn linear_gelu<const BM: i32, const BN: i32, const BK: i32>(
    a: &Tensor<bf16, 2>,
    w: &Tensor<bf16, 2>,
    bias: Option<&Tensor<bf16, 1>>,
    c: &mut Tensor<bf16, 2>,
) {
    for out in c.tiles::<BM, BN>() {
        let [m, n] = out.index();
        let mut acc = Tile::<f32, D2<BM, BN>>::zeros();
        for k in pipelined(0..cdiv(a.dim(1), BK)) {
            acc = mma(a.load_tile::<BM, BK>([m, k]), w.load_tile::<BN, BK>([n, k]).t(), acc);
        }
        if let Some(b) = bias {
            ops::add_assign(&mut acc, b.load_tile::<BN>([n]).cast::<f32>().row());
        }
        out.store(gelu(acc).cast());
    }
}

#[test]
fn a_persistent_kernel_stores_every_tile_with_and_without_bias() {
    let mut random = Random(41);
    let (m, n, k) = (21, 37, 10);
    let (a, w): (Vec<bf16>, Vec<bf16>) = (random.many(m * k), random.many(n * k));
    let b: Vec<bf16> = random.many(n);
    let (at, wt, bt) = (tensor(&a, [21, 10]), tensor(&w, [37, 10]), tensor(&b, [37]));
    for with in [true, false] {
        let out = Shared::new(vec![bf16::NAN; m * n]);
        let mut ct = memory(out.clone(), [21, 37]);
        run([4, 1, 1], || linear_gelu::<8, 16, 4>(&at, &wt, with.then_some(&bt), &mut ct)).unwrap();
        let mut want = matmul(&f64s(&a), &f64s(&w), [m, n, k]);
        for (i, x) in want.iter_mut().enumerate() {
            *x += if with { b[i % n].to_f64() } else { 0.0 };
            *x *= 0.5 * (1.0 + libm::erf(*x / 2_f64.sqrt()));
        }
        close(&out, &want, 8e-3);
    }
}
