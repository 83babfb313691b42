//! The random numbers of `titan::random`: the published words, the same on every device, and the distributions that the documentation states.

use super::device;
use titan::prelude::*;
use titan::random::{normal, philox, philox4x32, uniform};

#[titan::kernel(grid(1))]
fn words(c: &Tensor<u32, 2>, y: &mut Tensor<u32, 2>, key0: u32, key1: u32) {
    let (c0, c1) = (c.load_tile::<1, 4>([0, 0]), c.load_tile::<1, 4>([1, 0]));
    let (c2, c3) = (c.load_tile::<1, 4>([2, 0]), c.load_tile::<1, 4>([3, 0]));
    let (a, b, c, d) = philox4x32(c0, c1, c2, c3, key0, key1);
    y.store_tile([0, 0], a);
    y.store_tile([1, 0], b);
    y.store_tile([2, 0], c);
    y.store_tile([3, 0], d);
}

#[titan::kernel]
fn draw(
    #[shape(N)] u: &mut Tensor<f32, 1>,
    #[shape(N)] g: &mut Tensor<f32, 1>,
    #[shape(N)] h: &mut Tensor<f32, 1>,
    seed: u64,
) {
    let n = program_id(0);
    let (a, b, c, _) = philox((iota::<256>() + n * 256).cast::<u32>(), seed);
    u.store_tile([n], uniform(a));
    let (first, second) = normal(b, c);
    g.store_tile([n], first);
    h.store_tile([n], second);
}

/// Philox in plain Rust, for one counter.
fn expected(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    let product = |a: u32, b: u32| {
        let wide = u64::from(a) * u64::from(b);
        ((wide >> 32) as u32, wide as u32)
    };
    for _ in 0..10 {
        let ((h0, l0), (h1, l1)) = (product(c[0], 0xD251_1F53), product(c[2], 0xCD9E_8D57));
        c = [h1 ^ c[1] ^ k[0], l1, h0 ^ c[3] ^ k[1], l0];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// The known answers of Random123 (`kat_vectors`, philox4x32 with 10 rounds).
#[test]
fn the_words_are_the_published_ones() {
    let known = [
        ([0; 4], [0; 2], [0x6627_E8D5, 0xE169_C58D, 0xBC57_AC4C, 0x9B00_DBD8]),
        ([u32::MAX; 4], [u32::MAX; 2], [0x408F_276D, 0x41C8_3B0E, 0xA20B_C7C6, 0x6D54_51FD]),
        (
            [0x243F_6A88, 0x85A3_08D3, 0x1319_8A2E, 0x0370_7344],
            [0xA409_3822, 0x299F_31D0],
            [0xD16C_FE09, 0x94FD_CCEB, 0x5001_E420, 0x2412_6EA1],
        ),
    ];
    let dev = device();
    for (counter, key, answer) in known {
        assert_eq!(expected(counter, key), answer);
        // The published counter in the first column, and others beside it.
        let all: Vec<[u32; 4]> = (0..4).map(|i| counter.map(|word: u32| word.wrapping_mul(1 + 2 * i))).collect();
        let flat = |of: &[[u32; 4]]| (0..4).flat_map(|word| of.iter().map(move |one| one[word])).collect::<Vec<u32>>();
        let (c, mut y) = (dev.tensor(&flat(&all), [4, 4]).unwrap(), dev.zeros([4, 4]).unwrap());
        words(&c, &mut y, key[0], key[1]).sync().unwrap();
        let right: Vec<[u32; 4]> = all.iter().map(|c| expected(*c, key)).collect();
        assert_eq!(y.to_vec().unwrap(), flat(&right));
    }
}

#[test]
fn numbers_are_distributed_as_documented() {
    const N: usize = 20_000;
    let (dev, seed) = (device(), 0x0123_4567_89AB_CDEF);
    let [mut u, mut g, mut h] = [0; 3].map(|_| dev.zeros([N]).unwrap());
    draw(&mut u, &mut g, &mut h, seed).sync().unwrap();
    let (u, g, h): (Vec<f32>, Vec<f32>, Vec<f32>) = (u.to_vec().unwrap(), g.to_vec().unwrap(), h.to_vec().unwrap());
    // Exact, also on the host.
    for (i, u) in u.iter().enumerate() {
        let [word, ..] = expected([i as u32, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
        assert_eq!(*u, (word >> 8) as f32 / 16_777_216.0);
    }
    let of = |all: &[f32], f: &dyn Fn(f64) -> f64| all.iter().map(|x| f(f64::from(*x))).sum::<f64>() / N as f64;
    // Six standard deviations of each mean.
    let near = |found: f64, right: f64, deviation: f64| {
        assert!((found - right).abs() < 6.0 * deviation / (N as f64).sqrt(), "{found} instead of {right}");
    };
    near(of(&u, &|x| x), 0.5, 12f64.sqrt().recip());
    for all in [&g, &h] {
        assert!(all.iter().all(|x| x.abs() <= 5.8));
        near(of(all, &|x| x), 0.0, 1.0);
        near(of(all, &|x| x * x), 1.0, 2f64.sqrt());
        near(of(all, &|x| x.powi(4)), 3.0, 96f64.sqrt());
    }
    let products: Vec<f32> = g.iter().zip(&h).map(|(g, h)| g * h).collect();
    near(of(&products, &|x| x), 0.0, 1.0);
}
