//! Mixture of experts: the router and the grouped matrix product.

use titan::lang::{Shared, Tensor, Tile, ops, run};
use titan::prelude::*;

use crate::{Random, close, f64s, memory, tensor};

fn route<const BT: i32, const E: i32, const K: i32>(
    logits: &Tensor<f32, 2>,
    weight: &mut Tensor<f32, 2>,
    expert: &mut Tensor<i32, 2>,
) {
    let t = program_id(0);
    let x = logits.load_tile_or::<BT, E>([t, 0], f32::NEG_INFINITY);
    let mut p = ops::sub(x, x.reduce_max::<1>().col()).exp();
    let mut sum = Tile::<f32, D1<BT>>::zeros();
    for j in 0..K {
        let (best, at) = p.argmax::<1>();
        ops::add_assign(&mut sum, best);
        weight.store_tile([t, j], best.reshape::<D2<BT, 1>>());
        expert.store_tile([t, j], at.reshape::<D2<BT, 1>>());
        p = select(ops::eq(iota::<E>().row(), at.col()), -1.0, p);
    }
    let w = weight.load_tile::<BT, K>([t, 0]);
    weight.store_tile([t, 0], ops::div(w, sum.col()));
}

#[test]
fn the_router_takes_the_best_experts_of_any_number() {
    let (tokens, experts, k) = (7_usize, 60, 4);
    let xs: Vec<f32> = Random(3).many(tokens * experts);
    let (weight, expert) = (Shared::new(vec![0.0_f32; tokens * k]), Shared::new(vec![0; tokens * k]));
    let (mut w, mut e) = (memory(weight.clone(), [7, 4]), memory(expert.clone(), [7, 4]));
    let logits = tensor(&xs, [7, 60]);
    run([2, 1, 1], || route::<4, 64, 4>(&logits, &mut w, &mut e)).unwrap();

    let (mut weights, mut ids) = (Vec::new(), Vec::new());
    for row in f64s(&xs).chunks(experts) {
        let mut order: Vec<usize> = (0..experts).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        let sum: f64 = order[..k].iter().map(|i| row[*i].exp()).sum();
        weights.extend(order[..k].iter().map(|i| row[*i].exp() / sum));
        ids.extend(order[..k].iter().map(|i| i32::try_from(*i).unwrap()));
    }
    assert_eq!(expert.to_vec(), ids);
    close(&weight, &weights, 1e-6);
}

fn grouped_gemm<const BM: i32, const BN: i32, const BK: i32>(
    x: &Tensor<bf16, 2>,
    row: &Tensor<i32, 1>,
    w: &Tensor<bf16, 3>,
    off: &Tensor<i32, 1>,
    y: &mut Tensor<bf16, 2>,
) {
    let k_extent = x.dim(1);
    for out in y.ragged::<BM, BN>(off) {
        let (e, [m, n]) = (out.group(), out.index());
        let token = row.segment(off, e).load_tile_or::<BM>([m], -1);
        let w = w.index::<0>(e);
        let mut acc = Tile::<f32, D2<BM, BN>>::zeros();
        for k in pipelined(0..cdiv(k_extent, BK)) {
            let x = x.gather_rows::<BM, BK>(token, ops::mul(k, BK));
            acc = mma(x, w.load_tile::<BN, BK>([n, k]).t(), acc);
        }
        out.store(acc.cast());
    }
}

#[test]
fn grouped_gemm_deals_the_tiles_of_uneven_experts_to_the_grid() {
    let mut random = Random(5);
    let (tokens, k, n, experts) = (9_usize, 10_usize, 11_usize, 4_usize);
    let (xs, ws): (Vec<bf16>, Vec<bf16>) = (random.many(tokens * k), random.many(experts * n * k));
    let off = [0, 5, 5, 6, 14];
    let rows: Vec<i32> = (0..14).map(|i| i * 5 % 9).collect();
    let (x, row) = (tensor(&xs, [9, 10]), tensor(&rows, [14]));
    let (w, offsets) = (tensor(&ws, [4, 11, 10]), tensor(&off, [5]));
    for grid in [1, 3, 100] {
        let out = Shared::new(vec![bf16::NAN; 14 * n]);
        let mut y = memory(out.clone(), [14, 11]);
        run([grid, 1, 1], || grouped_gemm::<4, 8, 4>(&x, &row, &w, &offsets, &mut y)).unwrap();

        let expert = |r: usize| off.iter().rposition(|o| usize::try_from(*o).unwrap() <= r).unwrap();
        let want = |i: usize| {
            let (r, col) = (i / n, i % n);
            let (a, b) = (rows[r].unsigned_abs() as usize * k, (expert(r) * n + col) * k);
            (0..k).map(|l| xs[a + l].to_f64() * ws[b + l].to_f64()).sum()
        };
        close(&out, &(0..14 * n).map(want).collect::<Vec<f64>>(), 8e-3);
    }
}
