//! Products of 8-bit floats, plain and with scales of blocks, beside PyTorch's plain product (`torch._scaled_mm`, which is cuBLASLt).

use crate::Plan;
use crate::cases::{Case, Side, Work, ours, values};
use crate::fp8_gemm::fp8_gemm_scaled;
use crate::torch;
use titan::prelude::*;
use titan::{Launch, Result};

/// C[m, n] = Σ_k A[m, k] · B[n, k]
#[titan::kernel(instances((BM, BN, BK) in [(128, 256, 128), (128, 128, 128)]), grid(cdiv(M, BM), cdiv(N, BN)), allow(no_code))]
fn plain<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<e4m3, 2>,
    #[shape(N, K)] b: &Tensor<e4m3, 2>,
    #[shape(M, N)] c: &mut Tensor<bf16, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        acc = mma(a.load_tile::<BM, BK>([m, k]), b.load_tile::<BN, BK>([n, k]).t(), acc);
    }
    c.store_tile([m, n], acc.cast());
}

/// The extent of blocks with one scale.
const BLOCK: usize = 128;

/// The kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    Wide,
    Narrow,
    Scaled,
}

/// The arguments of the kernels; the plain ones have no scales.
struct Args {
    a: Tensor<e4m3, 2>,
    b: Tensor<e4m3, 2>,
    scales: [Tensor<f32, 2>; 2],
    c: Tensor<bf16, 2>,
}

impl Args {
    fn launch(&mut self, kernel: Kernel) -> Launch<'_> {
        let Args { a, b, scales: [of_a, of_b], c } = self;
        match kernel {
            Kernel::Wide => plain::<128, 256, 128>(a, b, c),
            Kernel::Narrow => plain::<128, 128, 128>(a, b, c),
            Kernel::Scaled => fp8_gemm_scaled::<128, 128, 128>(a, of_a, b, of_b, c),
        }
    }
}

/// A product of square matrices.
pub(crate) fn product(dev: &Device, plan: Plan, kernel: Kernel, n: usize) -> Result<Case> {
    let n = if plan.small { 160 } else { n };
    let blocks = n.div_ceil(BLOCK);
    let [a, b] = [0, 3].map(|seed| values(n * n, seed).into_iter().map(e4m3::from_f32).collect::<Vec<e4m3>>());
    let scales = [(blocks * n, 5), (blocks * blocks, 7)].map(|(n, seed)| values(n, seed));
    let mut args = Args {
        a: dev.tensor(&a, [n, n])?,
        b: dev.tensor(&b, [n, n])?,
        scales: [dev.tensor(&scales[0], [blocks, n])?, dev.tensor(&scales[1], [blocks, blocks])?],
        c: dev.zeros([n, n])?,
    };
    args.launch(kernel).sync()?;
    let has_scales = matches!(kernel, Kernel::Scaled);
    check(&args.c.to_vec()?, [&a, &b], &scales.map(|all| has_scales.then_some(all)), n);
    let mut sides = vec![ours(dev.stream()?, move |stream| args.launch(kernel).launch(stream))];
    if !plan.small {
        sides.extend(torch::product(n).into_iter().map(|(name, run)| Side { name, run }));
    }
    let tiles = if matches!(kernel, Kernel::Wide) { "128x256x128" } else { "128x128x128" };
    let what = if has_scales { ", scaled blocks" } else { "" };
    Ok(Case { name: format!("gemm e4m3 {n}³, {tiles}{what}"), work: Work::Flops(2 * (n as u64).pow(3)), sides })
}

/// Panics unless some elements are right.
fn check(found: &[bf16], [a, b]: [&[e4m3]; 2], [of_a, of_b]: &[Option<Vec<f32>>; 2], n: usize) {
    let blocks = n.div_ceil(BLOCK);
    let scale = |all: &Option<Vec<f32>>, at: usize| all.as_ref().map_or(1.0, |all| f64::from(all[at]));
    for (row, column) in [(0, 0), (0, n - 1), (n / 2, n / 3), (n - 1, 1), (n - 1, n - 1)] {
        let term = |k: usize| {
            let block = k / BLOCK;
            let scales = scale(of_a, block * n + row) * scale(of_b, column / BLOCK * blocks + block);
            scales * f64::from(a[row * n + k].to_f32()) * f64::from(b[column * n + k].to_f32())
        };
        let (want, got) = ((0..n).map(term).sum::<f64>(), f64::from(found[row * n + column].to_f32()));
        // Tensor cores keep 14 bits of the sums of 8-bit floats.
        let allowed = 0.01 * (n as f64).sqrt() + 0.01 * want.abs();
        assert!((got - want).abs() <= allowed, "element {row}, {column} of a product: {got} for {want}");
    }
}
