//! Vectors: sums of two, and of one.

use crate::kernels::{REDUCTION, VECTOR_ADD, get, numbers, orders, put_f32};
use titan_amd::emu::{Arg, Memory};

#[test]
fn sums_of_two_vectors_of_every_length() {
    let module = VECTOR_ADD.module(VECTOR_ADD.text);
    for n in [1, 2, 63, 64, 255, 256, 257, 1000] {
        for options in orders() {
            let (x, y) = (numbers(n, 1), numbers(n, 2));
            let mut memory = Memory::new();
            let (a, b) = (put_f32(&mut memory, "x", &x), put_f32(&mut memory, "y", &y));
            let z = memory.alloc("z", 4 * n).unwrap();
            let args = [Arg::Ptr(a), Arg::Ptr(b), Arg::Ptr(z), Arg::U32(n as u32)];
            VECTOR_ADD.run(&module, [n.div_ceil(256) as u32, 1], &args, &mut memory, &options).unwrap();
            let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
            assert_eq!(get(&memory, z, n), want);
        }
    }
}

#[test]
fn the_sum_of_each_thousand() {
    let module = REDUCTION.module(REDUCTION.text);
    for n in [1, 100, 1024, 1025, 5000] {
        for options in orders() {
            let x = numbers(n, 3);
            let mut memory = Memory::new();
            let a = put_f32(&mut memory, "x", &x);
            let groups = n.div_ceil(1024);
            let y = memory.alloc("y", 4 * groups).unwrap();
            let args = [Arg::Ptr(a), Arg::Ptr(y), Arg::U32(n as u32)];
            REDUCTION.run(&module, [groups as u32, 1], &args, &mut memory, &options).unwrap();
            // Numbers of seven bits: sums are exact.
            let want: Vec<f32> = x.chunks(1024).map(|c| c.iter().map(|x| f64::from(*x)).sum::<f64>() as f32).collect();
            assert_eq!(get(&memory, y, groups), want, "{n}");
        }
    }
}
