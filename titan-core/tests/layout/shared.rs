//! Encodings of shared memory against the swizzle of tensor maps, written down bit by bit.

use crate::random::Random;
use titan_core::layout::{Encoding, Swizzle, check};

/// Bits 4, 5, 6 of the address, as many as the mode has, are XORed with bits 7, 8, 9 (CUDA driver API, tensor maps).
fn exchanged(address: u32, bits: u32) -> u32 {
    let mut out = address;
    for i in 0..bits {
        let upper = (address >> (7 + i)) & 1;
        if upper == 1 {
            out ^= 1 << (4 + i);
        }
    }
    out
}

/// Where an element lies: boxes of `row` elements of the fastest axis, each with all rows, one box after the other.
fn place(e: &Encoding, at: [u32; 4]) -> u32 {
    let (fast, slow) = e.order.split_last().expect("an axis");
    let mut row = 0;
    for axis in slow {
        row = row * e.extents[*axis] + at[*axis];
    }
    let rows: u32 = slow.iter().map(|a| e.extents[*a]).product();
    let (bytes, mut column, mut skipped) = (e.bits / 8, at[*fast], 0);
    while column >= e.row {
        column -= e.row;
        skipped += rows * e.pitch;
    }
    let linear = skipped + row * e.pitch + column * bytes;
    let bits = match e.swizzle {
        Swizzle::None => 0,
        Swizzle::B32 => 1,
        Swizzle::B64 => 2,
        Swizzle::B128 => 3,
    };
    exchanged(linear, bits)
}

fn elements(extents: &[u32]) -> Vec<[u32; 4]> {
    let mut all = vec![[0; 4]];
    for (axis, n) in extents.iter().enumerate() {
        all = all
            .iter()
            .flat_map(|at| {
                (0..*n).map(move |i| {
                    let mut at = *at;
                    at[axis] = i;
                    at
                })
            })
            .collect();
    }
    all
}

/// Encodings of every kind, at random.
fn encodings(seed: u64, count: usize) -> Vec<Encoding> {
    let mut random = Random::new(seed);
    let mut all = Vec::new();
    for _ in 0..count {
        let rank = 1 + random.below(4) as usize;
        let (shape, bits, order) = (random.shape(rank, 1 << 12), random.of(&[8, 16, 32, 64]), random.permutation(rank));
        all.push(Encoding::swizzled(&shape, bits, &order));
        all.push(Encoding::padded(&shape, bits, &order, random.of(&[0, 4, 16])));
        let mut chunks = shape.clone();
        chunks[order[rank - 1]] = (1 + random.below(5)) * 128 / bits;
        all.push(Encoding::core_matrices(&chunks, bits, &order));
    }
    all
}

#[test]
fn no_two_elements_overlap() {
    for e in encodings(6, 200) {
        check::encoding(&e).unwrap_or_else(|m| panic!("{e:?}: {m}"));
    }
}

#[test]
fn elements_lie_where_tensor_maps_put_them() {
    for e in encodings(7, 200) {
        for at in elements(&e.extents) {
            assert_eq!(e.offset(at), place(&e, at), "{e:?} at {at:?}");
        }
    }
}

#[test]
fn the_widest_swizzle_is_taken_that_rows_have() {
    for (columns, bits, wanted) in [
        (64, 16, Swizzle::B128),
        (32, 16, Swizzle::B64),
        (96, 16, Swizzle::B64),
        (48, 16, Swizzle::B32),
        (16, 16, Swizzle::B32),
        (60, 16, Swizzle::None),
        (8, 16, Swizzle::None),
        (128, 8, Swizzle::B128),
        (32, 32, Swizzle::B128),
        (192, 16, Swizzle::B128),
        (176, 16, Swizzle::B32),
        (112, 32, Swizzle::B64),
    ] {
        let e = Encoding::swizzled(&[16, columns], bits, &[0, 1]);
        assert_eq!(e.swizzle, wanted, "{columns} of {bits} bits");
        let turned = Encoding::swizzled(&[columns, 16], bits, &[1, 0]);
        assert_eq!(turned, e.permuted(&[1, 0]));
        assert!(e.pitch.is_multiple_of(16) && e.align().is_multiple_of(16));
        let period = match e.swizzle {
            Swizzle::None if columns * bits == 128 => 128,
            Swizzle::None => 16,
            Swizzle::B32 => 256,
            Swizzle::B64 => 512,
            Swizzle::B128 => 1024,
        };
        assert_eq!(e.align(), period, "{e:?}: what the exchange takes of the address repeats");
    }
}

/// Neighbours that are accessed at once are neighbours in memory, on a multiple of their bytes.
#[test]
fn vectors_are_whole() {
    for e in encodings(8, 200) {
        let (fast, wide) = (e.fast_axis(), e.vector());
        assert!(wide.is_power_of_two() && wide * e.bits <= 128 && wide <= e.row, "{e:?}: {wide}");
        let more = 2 * wide <= e.row && 2 * wide * e.bits <= 128;
        assert!(!more || !e.pitch.is_multiple_of(2 * wide * e.bits / 8), "{e:?}: more than {wide}");
        for at in elements(&e.extents) {
            let first = at[fast] / wide * wide;
            if !at[fast].is_multiple_of(wide) || first + wide > e.extents[fast] {
                continue;
            }
            let start = e.offset(at);
            assert!(start.is_multiple_of(wide * e.bits / 8), "{e:?}: {wide} from {at:?}");
            for i in 1..wide {
                let mut next = at;
                next[fast] += i;
                assert_eq!(e.offset(next), start + i * e.bits / 8, "{e:?}: {wide} from {at:?}");
            }
        }
    }
}

#[test]
fn a_transposed_encoding_has_the_same_bytes() {
    let mut random = Random::new(9);
    for e in encodings(10, 60) {
        let rank = e.extents.len();
        let perm: Vec<u8> = random.permutation(rank).iter().map(|p| *p as u8).collect();
        let turned = e.permuted(&perm);
        for at in elements(&turned.extents) {
            let mut back = [0; 4];
            (0..rank).for_each(|i| back[usize::from(perm[i])] = at[i]);
            assert_eq!(turned.offset(at), e.offset(back), "{e:?} by {perm:?}");
        }
    }
}

#[test]
fn the_check_finds_what_is_wrong() {
    let good = Encoding::swizzled(&[8, 64], 16, &[0, 1]);
    let says = |e: Encoding| check::encoding(&e).expect_err("it is wrong");
    assert!(says(Encoding { pitch: 64, ..good.clone() }).contains("both lie"));
    assert!(says(Encoding { row: 128, pitch: 96, ..good.clone() }).contains("both lie"));
    assert!(says(Encoding { pitch: 129, ..good }).contains("not a multiple"));
    let beyond =
        Encoding { extents: vec![3, 8], bits: 16, order: vec![0, 1], row: 8, pitch: 16, swizzle: Swizzle::B128 };
    assert_eq!(check::encoding(&beyond), Ok(()), "three rows of one line stay in it");
}
