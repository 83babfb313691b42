//! C = A · Bᵀ in half precision: a kernel, its launch, and a look at the result. Run it with `--release`.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use titan::prelude::*;

/// C[m, n] = Σ_k A[m, k] · B[n, k], one BM×BN tile of C per program.
#[titan::kernel(
    instances(T in [f16, bf16], (BM, BN, BK) in [(128, 256, 64), (64, 64, 32)]),
    grid(cdiv(M, BM), cdiv(N, BN)),
)]
pub fn gemm<T: Float, const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<T, 2>,
    #[shape(N, K)] b: &Tensor<T, 2>,
    #[shape(M, N)] c: &mut Tensor<T, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        let at = a.load_tile::<BM, BK>([m, k]);
        let bt = b.load_tile::<BN, BK>([n, k]);
        acc = mma(at, bt.t(), acc);
    }
    c.store_tile([m, n], acc.cast::<T>());
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    let (m, n, k) = (500, 700, 300);
    let a = dev.from_fn([m, k], |[i, j]| f16::from_f32(((i + 2 * j) % 7) as f32 - 3.0))?;
    let b = dev.from_fn([n, k], |[i, j]| f16::from_f32(((3 * i + j) % 5) as f32 - 2.0))?;
    let mut c = dev.zeros([m, n])?;

    gemm::<f16, 64, 64, 32>(&a, &b, &mut c).sync()?;

    // The same body as plain Rust, on the host: what every device is compared with.
    let mut expected = c.copy()?;
    gemm::reference::<f16, 64, 64, 32>(&a, &b, &mut expected)?;
    let same = c.to_vec()? == expected.to_vec()?;
    println!("{m}×{n}×{k} on {dev}: {}", if same { "equal to the reference" } else { "NOT equal to the reference" });
    assert!(same, "a device and the reference disagree");
    Ok(())
}
