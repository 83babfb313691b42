//! Half-precision activations times 4-bit weights: packed by hand with scales per group, and with a 4-bit storage type.
//!
//! Run with `cargo run --release --example w4a16`.
mod common;

use titan::prelude::*;

/// `c = a · dequant(w)ᵀ`: two weights per byte along K, one scale per `G` of K, zero point 8.
#[titan::kernel(
    instances((BM, BN, BK, G) in [(8, 8, 16, 4), (64, 64, 64, 32)]),
    grid(cdiv(M, BM), cdiv(N, BN)),
    require(K % G == 0),
)]
pub fn w4a16<const BM: i32, const BN: i32, const BK: i32, const G: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K / 2)] w: &Tensor<u8, 2>,
    #[shape(N, K / G)] scale: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        let packed = w.load_tile::<BN, { BK / 2 }>([n, k]);
        let q = (packed & 0xF).interleave::<BN, BK>(packed >> 4).cast::<f16>() - 8.0;
        let s = scale.load_tile::<BN, { BK / G }>([n, k]).broadcast::<2, G>().reshape::<BN, BK>();
        acc = mma(a.load_tile::<BM, BK>([m, k]), (q * s).t(), acc);
    }
    c.store_tile([m, n], acc.cast());
}

/// The same with a storage type for the weights, which needs no unpacking.
#[titan::kernel(instances((BM, BN, BK) in [(8, 8, 8)]), grid(cdiv(M, BM), cdiv(N, BN)))]
pub fn w4a16_native<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] w: &Tensor<i4, 2>,
    #[shape(N, K / BK)] scale: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        let s = scale.load_tile::<BN, 1>([n, k]).reshape::<BN>();
        let wt = w.load_tile::<BN, BK>([n, k]).cast::<f16>() * s.col();
        acc = mma(a.load_tile::<BM, BK>([m, k]), wt.t(), acc);
    }
    c.store_tile([m, n], acc.cast());
}

/// The greatest error of both kernels; `k` is a multiple of 8.
pub(crate) fn check(dev: &Device, [m, n, k]: [usize; 3]) -> titan::Result<f64> {
    let mut rng = common::Rng::new(9);
    let (ah, q) = (rng.fill::<f16>(m * k), rng.ints(n * k, 0..16));
    let packed: Vec<u8> = q.chunks(2).map(|c| (c[0] | c[1] << 4) as u8).collect();
    let native: Vec<i4> = q.iter().map(|v| (v - 8).cast()).collect();
    let (s4, s8) = (rng.fill::<f16>(n * k / 4), rng.fill::<f16>(n * k / 8));
    let a = dev.tensor(&ah, [m, k])?;
    let weights = |scales: &[f16], g: usize| -> Vec<f64> {
        (0..n * k).map(|i| f64::from(q[i] - 8) * scales[i / g].to_f64()).collect()
    };
    let mut error = 0.0f64;
    for reference in [false, true] {
        let (mut c, mut d) = (dev.zeros([m, n])?, dev.zeros([m, n])?);
        let (w, s) = (dev.tensor(&packed, [n, k / 2])?, dev.tensor(&s4, [n, k / 4])?);
        let (wn, sn) = (dev.tensor(&native, [n, k])?, dev.tensor(&s8, [n, k / 8])?);
        if reference {
            w4a16::reference::<8, 8, 16, 4>(&a, &w, &s, &mut c)?;
            w4a16_native::reference::<8, 8, 8>(&a, &wn, &sn, &mut d)?;
        } else {
            w4a16::<8, 8, 16, 4>(&a, &w, &s, &mut c).sync()?;
            w4a16_native(&a, &wn, &sn, &mut d).sync()?;
        }
        for (got, w) in [(c, weights(&s4, 4)), (d, weights(&s8, 8))] {
            error = error.max(common::max_error(&got.to_vec()?, &common::matmul_nt(&common::f64s(&ah), &w, m, n, k)));
        }
    }
    Ok(error)
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("w4a16 9 × 11 × 40", &dev, check(&dev, [9, 11, 40])?, 1e-2);
    Ok(())
}
