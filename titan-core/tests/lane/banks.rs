//! Bank conflicts: patterns whose degree is known, and random ones against counting cycles.

use crate::machine::Rng;
use titan_core::lane::{Builder, Func, IntBin, NvOp, OpKind, Space, Value, banks};
use titan_core::launch::abi::Slot;
use titan_core::target::Banks;

fn func(make: impl FnOnce(&mut Builder, Value) -> Value, access: OpKind) -> Func {
    let mut b = Builder::new("k", vec![Slot::Address(0), Slot::Scalar { param: 1, wide: false }], 64, 32);
    let lane = b.one(OpKind::LaneId, &[]);
    let address = make(&mut b, lane);
    let mut args = vec![address];
    if let OpKind::Store { n, .. } = access {
        args.extend(vec![lane; usize::from(n)]);
    }
    if let OpKind::Nv(NvOp::CopyAsync { .. }) = access {
        args.push(b.one(OpKind::Slot(0), &[]));
    }
    b.op(access, &args);
    b.terminate(OpKind::Return, &[]);
    b.finish().expect("operands fit")
}

fn load(bytes: u8, n: u8) -> OpKind {
    OpKind::Load { space: Space::Shared, bytes, n, offset: 0, masked: false }
}

/// How many times longer the one access takes.
fn degree(func: &Func) -> u32 {
    banks::conflicts(func, &Banks::default()).first().map_or(1, |c| c.degree)
}

/// `base + lane · stride`
fn strided(stride: i32) -> impl FnOnce(&mut Builder, Value) -> Value {
    move |b, lane| {
        let (base, stride) = (b.one(OpKind::SharedBase, &[]), b.i32(stride));
        let skip = b.mul(lane, stride);
        b.add(base, skip)
    }
}

#[test]
fn known_patterns_have_their_degree() {
    // A column of a matrix of 32 words: all lanes in one bank. One word of padding spreads them.
    assert_eq!(degree(&func(strided(128), load(4, 1))), 32);
    assert_eq!(degree(&func(strided(132), load(4, 1))), 1);
    assert_eq!(degree(&func(strided(4), load(4, 1))), 1);
    assert_eq!(degree(&func(strided(8), load(4, 1))), 2);
    assert_eq!(degree(&func(strided(0), load(4, 1))), 1, "one word is read once for all");
    assert_eq!(degree(&func(strided(1), load(1, 1))), 1, "so are its bytes");
    assert_eq!(degree(&func(strided(64), load(2, 1))), 16);
    // Wide accesses are served in parts.
    assert_eq!(degree(&func(strided(8), load(4, 2))), 1);
    assert_eq!(degree(&func(strided(16), load(4, 4))), 1);
    assert_eq!(degree(&func(strided(128), load(4, 4))), 8);
    assert_eq!(degree(&func(strided(144), load(4, 4))), 1);
    let store = OpKind::Store { space: Space::Shared, bytes: 4, n: 4, offset: 0, masked: false };
    assert_eq!(degree(&func(strided(128), store)), 8);
    assert_eq!(degree(&func(strided(128), OpKind::Nv(NvOp::CopyAsync { bytes: 16, offset: 0, masked: false }))), 8);
    assert_eq!(degree(&func(strided(16), OpKind::Nv(NvOp::CopyAsync { bytes: 16, offset: 0, masked: false }))), 1);
}

/// A role whose threads begin at 32 counts them from 0: taken in warp 0, its addresses lie below 0.
#[test]
fn addresses_that_wrap_are_in_banks_too() {
    let below = |stride: i32, back: i32| {
        move |b: &mut Builder, lane: Value| {
            let back = b.i32(back);
            let thread = b.one(OpKind::Int(IntBin::Sub), &[lane, back]);
            strided(stride)(b, thread)
        }
    };
    for (stride, n, degree_of) in [(4, 1, 1), (16, 4, 1), (128, 4, 8), (128, 1, 32), (144, 4, 1)] {
        for back in [0, 1, 8, 32] {
            assert_eq!(degree(&func(below(stride, back), load(4, n))), degree_of, "{stride} {n} {back}");
        }
    }
}

#[test]
fn swizzled_rows_are_read_as_matrices_without_conflict() {
    let matrix = |n| OpKind::Nv(NvOp::LoadMatrix { n, transposed: false, offset: 0 });
    // Rows of 128 bytes, one below the other.
    assert_eq!(degree(&func(strided(128), matrix(4))), 8);
    let swizzled = |mask: i32| {
        move |b: &mut Builder, lane: Value| {
            let row = strided(128)(b, lane);
            let three = b.i32(3);
            let (lines, mask) = (b.int(IntBin::ShrU, row, three), b.i32(mask << 4));
            let exchange = b.and(lines, mask);
            b.int(IntBin::Xor, row, exchange)
        }
    };
    assert_eq!(degree(&func(swizzled(7), matrix(4))), 1);
    assert_eq!(degree(&func(swizzled(3), matrix(4))), 2);
    assert_eq!(degree(&func(swizzled(1), matrix(1))), 4);
}

#[test]
fn what_is_the_same_in_a_warp_changes_nothing_and_data_is_not_known() {
    let of_warp = |b: &mut Builder, lane: Value| {
        let (warp, rows, n) = (b.one(OpKind::WarpId, &[]), b.i32(4096), b.one(OpKind::Slot(1), &[]));
        let (skip, own) = (b.mul(warp, rows), strided(128)(b, lane));
        let at = b.add(own, skip);
        b.add(at, n)
    };
    assert_eq!(degree(&func(of_warp, load(4, 1))), 32);
    let of_data = |b: &mut Builder, lane: Value| {
        let base = b.one(OpKind::SharedBase, &[]);
        let cond = b.cmp_u(titan_core::ir::Pred::Lt, lane, base);
        let other = strided(128)(b, lane);
        b.select(cond, other, base)
    };
    assert_eq!(banks::conflicts(&func(of_data, load(4, 1)), &Banks::default()), [], "nothing is claimed");
}

/// Words that a phase asks of a bank, counted in a table of 32.
fn counted(addresses: &[u32], width: u32) -> u32 {
    let lanes = (128 / width.max(4)) as usize;
    let phase = |part: &[u32]| {
        let mut words: Vec<u32> = part.iter().flat_map(|a| (0..width).map(move |i| (a + i) / 4)).collect();
        words.sort_unstable();
        words.dedup();
        let mut load = [0; 32];
        words.iter().for_each(|w| load[(w % 32) as usize] += 1);
        load.into_iter().max().expect("32 banks")
    };
    addresses.chunks(lanes).map(phase).max().expect("a phase")
}

#[test]
fn random_addresses_have_the_degree_that_counting_gives() {
    let mut rng = Rng::new(20);
    let mut above = 0;
    for _ in 0..300 {
        let (bytes, n) = rng.of(&[(1u8, 1u8), (2, 1), (4, 1), (4, 2), (4, 4), (8, 1), (8, 2)]);
        let width = u32::from(bytes) * u32::from(n);
        let steps: Vec<u32> = (0..5).map(|_| rng.below(1 << 9) * width).collect();
        let xor = rng.below(2) == 0;
        let join = |x: u32, y: u32| if xor { x ^ y } else { x + y };
        let addresses: Vec<u32> =
            (0..32).map(|lane| (0..5).filter(|i| lane >> i & 1 == 1).fold(0, |a, i| join(a, steps[i]))).collect();
        let make = |b: &mut Builder, lane: Value| {
            let mut address = b.one(OpKind::SharedBase, &[]);
            for (i, step) in (0..).zip(&steps) {
                let (shift, one, step) = (b.i32(i), b.i32(1), b.i32(step.cast_signed()));
                let digit = b.int(IntBin::ShrU, lane, shift);
                let digit = b.and(digit, one);
                let part = b.mul(digit, step);
                address = b.int(if xor { IntBin::Xor } else { IntBin::Add }, address, part);
            }
            address
        };
        let wanted = counted(&addresses, width);
        assert_eq!(degree(&func(make, load(bytes, n))), wanted, "{steps:?} of {width} bytes");
        above += u32::from(wanted > 1);
    }
    assert!(above > 100, "only {above} have conflicts");
}

#[test]
fn banks_of_other_machines_serve_other_lanes_together() {
    // Rows of 64 bytes: with 32 banks of 4 bytes, every second row begins in the same bank; with 64 banks, every fourth one.
    let rows: Vec<u32> = (0..8).map(|lane| 64 * lane).collect();
    assert_eq!(Banks::default().degree(&rows, 16), 4);
    let wider = Banks { count: 64, ..Banks::default() };
    assert_eq!((wider.bytes(), wider.degree(&rows, 16)), (256, 2));
    // Sixteen lanes of 16 bytes are two phases. Lanes 0 and 8 are in one bank: that is a conflict only if one phase has both.
    let twice: Vec<u32> = (0..16).map(|lane| 16 * (lane % 8) + 128 * (lane / 8)).collect();
    assert_eq!(Banks::default().degree(&twice, 16), 1);
    let order = (0..8).flat_map(|lane| [lane, lane + 8]).collect();
    let alternating = Banks { orders: vec![(16, order)], ..Banks::default() };
    assert_eq!(alternating.degree(&twice, 16), 2);
    assert_eq!(alternating.degree(&twice, 8), Banks::default().degree(&twice, 8), "the order is that of one width");
}
