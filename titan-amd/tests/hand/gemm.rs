//! Products of matrices, of whole tiles and of parts.

use crate::kernels::{DIRECT, Hand, STAGED, get, numbers, orders, put_bf16};
use crate::support::depth;
use std::time::{Duration, Instant};
use titan_amd::emu::{Arg, EmuError, Memory, Module, Options, Stats};

/// Rows, columns, depth.
pub(crate) type Size = [usize; 3];

/// The product by the kernel.
pub(crate) fn product(
    hand: &Hand,
    module: &Module,
    [m, n, k]: Size,
    (x, y): (&[f32], &[f32]),
    options: &Options,
) -> Result<(Vec<f32>, Stats), EmuError> {
    let mut memory = Memory::new();
    let (a, b) = (put_bf16(&mut memory, "A", x), put_bf16(&mut memory, "B", y));
    let c = memory.alloc("C", 4 * m * n)?;
    let [rows, columns, depth] = [m, n, k].map(|d| Arg::U32(d as u32));
    let args = [Arg::Ptr(a), Arg::Ptr(b), Arg::Ptr(c), rows, columns, depth];
    let grid = [n.div_ceil(256) as u32, m.div_ceil(256) as u32];
    let stats = hand.run(module, grid, &args, &mut memory, options)?;
    Ok((get(&memory, c, m * n), stats))
}

/// The product in `f64`. Numbers have seven bits, so that every sum is exact in `f32` too.
pub(crate) fn reference([m, n, k]: Size, (x, y): (&[f32], &[f32])) -> Vec<f32> {
    let (x, y): (Vec<f64>, Vec<f64>) =
        (x.iter().map(|x| f64::from(*x)).collect(), y.iter().map(|y| f64::from(*y)).collect());
    let dot = |i: usize, j: usize| x[i * k..][..k].iter().zip(&y[j * k..][..k]).map(|(x, y)| x * y).sum::<f64>();
    (0..m * n).map(|e| dot(e / n, e % n) as f32).collect()
}

/// In the quick depth, a size has one of the orders, in turn.
fn check(hand: &Hand, size: Size) {
    let module = hand.module(hand.text);
    let (x, y) = (numbers(size[0] * size[2], 7), numbers(size[1] * size[2], 8));
    let want = reference(size, (&x, &y));
    let turn = (size[0] + size[2] / 32) % 3;
    for (_, options) in orders().into_iter().enumerate().filter(|(nth, _)| depth::full() || *nth == turn) {
        let (got, _) = product(hand, &module, size, (&x, &y), &options).unwrap_or_else(|e| panic!("{size:?}: {e}"));
        let wrong = (0..want.len()).find(|i| got[*i] != want[*i]);
        assert_eq!(wrong.map(|i| (i / size[1], i % size[1], got[i], want[i])), None, "{} {size:?}", hand.name);
    }
}

#[test]
fn products_of_one_tile_and_of_several() {
    for hand in [STAGED, DIRECT] {
        check(&hand, [256, 256, 64]);
        check(&hand, [256, 256, 128]);
        check(&hand, [512, 512, 192]);
    }
    check(&DIRECT, [256, 256, 32]);
    check(&DIRECT, [256, 256, 96]);
}

#[test]
fn products_whose_sides_are_no_multiples_of_a_tile() {
    for hand in [STAGED, DIRECT] {
        check(&hand, [1, 1, 64]);
        check(&hand, [300, 130, 64]);
        check(&hand, [97, 257, 128]);
    }
}

#[test]
fn a_product_of_256_takes_less_than_ten_seconds() {
    let size = [256, 256, 256];
    let (x, y) = (numbers(65536, 1), numbers(65536, 2));
    for hand in [STAGED, DIRECT] {
        let module = hand.module(hand.text);
        let start = Instant::now();
        let (got, stats) = product(&hand, &module, size, (&x, &y), &Options::default()).unwrap();
        let took = start.elapsed();
        assert_eq!(got, reference(size, (&x, &y)));
        assert!(took < Duration::from_secs(10), "{}: {took:?} for {} instructions", hand.name, stats.instructions);
    }
}
