//! Products of a batch whose output is divided into tiles of one matrix each, with the matrices on both sides or on one.

use crate::{Random, close, product};
use titan::prelude::*;

/// C[g, m, n] = Σ_k A[g, m, k] · B[g, n, k]
#[titan::kernel]
fn of_both(
    #[shape(G, M, K)] a: &Tensor<f16, 3>,
    #[shape(G, N, K)] b: &Tensor<f16, 3>,
    #[shape(G, M, N)] c: &mut Tensor<f16, 3>,
) {
    for out in c.tiles::<1, 64, 64>() {
        let [g, m, n] = out.index();
        let (a, b) = (a.index::<0>(g), b.index::<0>(g));
        let mut acc = Tile::<f32, 64, 64>::zeros();
        for k in pipelined(0..cdiv(K, 32)) {
            acc = mma(a.load_tile::<64, 32>([m, k]), b.load_tile::<64, 32>([n, k]).t(), acc);
        }
        out.store(acc.cast::<f16>().reshape::<1, 64, 64>());
    }
}

/// C[g, m, n] = Σ_k A[g, m, k] · B[n, k], in groups of rows.
#[titan::kernel]
fn of_one(
    #[shape(G, M, K)] a: &Tensor<f16, 3>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(G, M, N)] c: &mut Tensor<f16, 3>,
) {
    for out in c.tiles_grouped::<1, 64, 64, 4>() {
        let [g, m, n] = out.index();
        let a = a.index::<0>(g);
        let mut acc = Tile::<f32, 64, 64>::zeros();
        for k in pipelined(0..cdiv(K, 32)) {
            acc = mma(a.load_tile::<64, 32>([m, k]), b.load_tile::<64, 32>([n, k]).t(), acc);
        }
        out.store(acc.cast::<f16>().reshape::<1, 64, 64>());
    }
}

fn agree(dev: &Device, batch: usize, [m, n, k]: [usize; 3]) {
    let mut random = Random(11);
    let (ah, bh): (Vec<f16>, Vec<f16>) = (random.many(batch * m * k), random.many(batch * n * k));
    let matrix = |of: &[f16], at: usize, rows: usize| of[at * rows * k..(at + 1) * rows * k].to_vec();
    let of = |b: &dyn Fn(usize) -> usize| {
        let products = (0..batch).map(|g| product(&matrix(&ah, g, m), &matrix(&bh, b(g), n), [m, n, k]));
        products.flatten().collect::<Vec<f64>>()
    };
    let (a, b) = (dev.tensor(&ah, [batch, m, k]).unwrap(), dev.tensor(&bh, [batch, n, k]).unwrap());
    let mut c = dev.full([batch, m, n], f16::NAN).unwrap();
    of_both(&a, &b, &mut c).sync().unwrap();
    close(&c.to_vec().unwrap(), &of(&|g| g), 2e-3);
    let b = dev.tensor(&bh[..n * k], [n, k]).unwrap();
    let mut c = dev.full([batch, m, n], f16::NAN).unwrap();
    of_one(&a, &b, &mut c).sync().unwrap();
    close(&c.to_vec().unwrap(), &of(&|_| 0), 2e-3);
}

#[test]
fn products_of_a_batch_are_stored_tile_by_tile() {
    for sizes in [[64, 64, 32], [72, 136, 40]] {
        agree(&Device::cpu(), 3, sizes);
        #[cfg(feature = "emulator")]
        for target in ["sm_80", "sm_90a"] {
            agree(&Device::emulator(target).unwrap(), 3, sizes);
        }
    }
}

/// Each matrix of the output is a tile along its axis, of which the compiler knows that their number fits in 31 bits.
#[test]
fn products_of_a_batch_keep_their_copies_by_one_role() {
    let kernels = titan::kernels().unwrap();
    for name in ["of_both", "of_one"] {
        let kernel = kernels.iter().find(|k| k.name == name).unwrap();
        let hopper = kernel.variants.iter().find(|v| v.target == "sm_90a").unwrap();
        let notes = &hopper.notes;
        assert!(notes.iter().any(|note| note.contains("role producer")), "{name}: {notes:?}");
        assert!(notes.iter().all(|note| !note.contains("simpler schedule")), "{name}: {notes:?}");
    }
}
