//! Loads, stores, atomics, asynchronous copies, and matrices out of shared memory.

use super::values::{self, Random};
use super::{cells, machine, mask};
use crate::cases::{self, THREADS};
use titan_core::lane::{AtomicFn, FloatBin, FloatTy, NvOp, OpKind, Ty};

fn random_cells(n: usize, programs: usize) -> Vec<Vec<u64>> {
    let mut random = Random::new(n as u64);
    (0..programs * THREADS as usize).map(|_| (0..n).map(|_| random.next()).collect()).collect()
}

fn to_bytes(cells: &[u64]) -> Vec<u8> {
    cells.iter().flat_map(|c| c.to_le_bytes()).collect()
}

#[test]
fn every_width_goes_through_memory_as_it_is() {
    for case in cases::accesses() {
        let OpKind::Load { bytes, n, masked, .. } = case.kind else { unreachable!("accesses are loads") };
        let mut inputs = random_cells(4, 2);
        inputs.iter_mut().for_each(|c| c[2] &= 1);
        let found = cells(&case.func, machine("sm_80"), &inputs, 2);
        for (input, found) in inputs.iter().zip(&found) {
            let size = usize::from(bytes * n);
            let written = if masked && input[2] == 0 { 0 } else { size };
            let mut want = to_bytes(&input[..2]);
            // What was not written reads as ones.
            want[written..].fill(0xff);
            assert_eq!(to_bytes(found), want, "{}", case.func.name);
        }
    }
}

/// Where the mask is false, a load returns the other values; here they are stored too.
#[test]
fn masked_loads_give_the_other_values() {
    use titan_core::lane::Space;
    for (bytes, ty) in [(1, Ty::B32), (2, Ty::B16), (4, Ty::B32), (8, Ty::B64)] {
        for n in [1u8, 2, 4].into_iter().filter(|n| n * bytes <= 16) {
            let (mut b, from, to) = cases::begin("masked", 4, 2);
            let mask = cases::load(&mut b, Ty::Pred, from, 2);
            let mut args = vec![from];
            args.extend((0..n).map(|i| b.one(OpKind::Const(ty, 40 + u64::from(i)), &[])));
            args.push(mask);
            let loaded = b.op(OpKind::Load { space: Space::Global, bytes, n, offset: 0, masked: true }, &args);
            let mut args = vec![to];
            args.extend(loaded);
            b.op(OpKind::Store { space: Space::Global, bytes, n, offset: 0, masked: false }, &args);
            b.terminate(OpKind::Return, &[]);
            let mut inputs = random_cells(4, 1);
            inputs.iter_mut().for_each(|c| c[2] &= 1);
            let found = cells(&b.finish().unwrap(), machine("sm_80"), &inputs, 2);
            for (input, found) in inputs.iter().zip(&found) {
                let width = usize::from(bytes);
                let other = (0..n).flat_map(|i| (40 + u64::from(i)).to_le_bytes()[..width].to_vec()).collect();
                let want = if input[2] == 1 { to_bytes(&input[..2]) } else { other };
                assert_eq!(to_bytes(found)[..width * usize::from(n)], want[..width * usize::from(n)]);
            }
        }
    }
}

fn updated(op: AtomicFn, ty: Ty, old: u64, by: u64) -> u64 {
    let signed = |x: u64| if ty == Ty::B32 { i64::from(x as i32) } else { x as i64 };
    let add = |ty, a, b| super::numbers::binary(FloatBin::Add, ty, a, b);
    let new = match op {
        AtomicFn::Add => old.wrapping_add(by),
        AtomicFn::MinS => signed(old).min(signed(by)) as u64,
        AtomicFn::MinU => old.min(by),
        AtomicFn::MaxS => signed(old).max(signed(by)) as u64,
        AtomicFn::MaxU => old.max(by),
        AtomicFn::And => old & by,
        AtomicFn::Or => old | by,
        AtomicFn::AddF32 => add(FloatTy::F32, old, by),
        AtomicFn::AddF64 => add(FloatTy::F64, old, by),
        AtomicFn::AddF16x2 => {
            let half = |shift: u32| add(FloatTy::F16, old >> shift & 0xffff, by >> shift & 0xffff);
            half(0) | half(16) << 16
        }
        AtomicFn::Exchange => by,
    };
    new & mask(ty)
}

/// Operands that are no NaN: their bits are not defined.
fn operand(op: &OpKind, ty: Ty, random: &mut Random) -> u64 {
    let one = |random: &mut Random| 0x3c00 + random.next() % 0x1000;
    match op {
        OpKind::Atomic { op: AtomicFn::AddF16x2, .. } => one(random) | one(random) << 16,
        OpKind::Atomic { op: AtomicFn::AddF32, .. } => 0x3f80_0000 + random.next() % 0x0100_0000,
        OpKind::Atomic { op: AtomicFn::AddF64, .. } => 0x3ff0_0000_0000_0000 + random.next() % (1 << 55),
        _ => values::plain(ty, random),
    }
}

#[test]
fn atomics_update_and_give_what_was_there() {
    let mut ran = 0;
    for case in cases::atomics() {
        let Ok(_) = titan_nv::emit(&case.func, machine("sm_80"), None) else { continue };
        let ty = case.args[0];
        let mut random = Random::new(7);
        let inputs: Vec<Vec<u64>> = (0..THREADS)
            .map(|i| {
                let mut cells: Vec<u64> = (0..3).map(|_| operand(&case.kind, ty, &mut random)).collect();
                // Half of the comparisons succeed.
                if matches!(case.kind, OpKind::CompareSwap(_)) && i % 2 == 0 {
                    cells[2] = cells[0];
                }
                cells.push(random.next() & 1);
                cells
            })
            .collect();
        let found = cells(&case.func, machine("sm_80"), &inputs, 2);
        for (input, found) in inputs.iter().zip(&found) {
            let old = input[2];
            let (after, given) = match &case.kind {
                OpKind::Atomic { masked: true, .. } if input[3] == 0 => (old, 0),
                OpKind::Atomic { op, .. } => (updated(*op, ty, old, input[0]), old),
                OpKind::CompareSwap(_) => (if old == input[0] { input[1] } else { old }, old),
                other => unreachable!("{other:?} is not atomic"),
            };
            let found: Vec<u64> = found.iter().map(|f| f & mask(ty)).collect();
            assert_eq!(found, [after, given], "{} of {input:x?}", case.func.name);
        }
        ran += 1;
    }
    assert!(ran > 40, "{ran}");
}

#[test]
fn copies_arrive_in_shared_memory() {
    for case in cases::copies() {
        let OpKind::Nv(NvOp::CopyAsync { bytes, masked, .. }) = case.kind else { unreachable!("copies are copies") };
        let mut inputs = random_cells(4, 2);
        inputs.iter_mut().for_each(|c| c[2] &= 1);
        let found = cells(&case.func, machine("sm_80"), &inputs, 2);
        let size = usize::from(bytes);
        for (thread, found) in found.iter().enumerate() {
            let program = thread / THREADS as usize * THREADS as usize;
            let neighbour = &inputs[program + (thread + 1) % THREADS as usize];
            let source = to_bytes(&neighbour[..2]);
            let want = if masked && neighbour[2] == 0 { vec![0; size] } else { source[..size].to_vec() };
            assert_eq!(to_bytes(found)[..size], want, "{}", case.func.name);
        }
    }
}

#[test]
fn matrices_are_fragments() {
    for case in cases::matrices() {
        let OpKind::Nv(NvOp::LoadMatrix { n, transposed, .. }) = case.kind else {
            unreachable!("matrices are matrices")
        };
        let inputs = random_cells(2, 1);
        let found = cells(&case.func, machine("sm_80"), &inputs, 2);
        for (thread, found) in found.iter().enumerate() {
            let (warp, lane) = (thread / 32 * 32, thread % 32);
            let element = |matrix: usize, row: usize, column: usize| {
                let bytes = to_bytes(&inputs[warp + 8 * matrix + row]);
                u16::from_le_bytes(bytes[2 * column..][..2].try_into().unwrap())
            };
            let words = super::words(&to_bytes(found));
            for matrix in 0..usize::from(n) {
                let (row, column) = (lane / 4, 2 * (lane % 4));
                let pair = [0, 1].map(|i| {
                    if transposed { element(matrix, column + i, row) } else { element(matrix, row, column + i) }
                });
                assert_eq!(words[matrix], u32::from(pair[0]) | u32::from(pair[1]) << 16, "{}", case.func.name);
            }
        }
    }
}
