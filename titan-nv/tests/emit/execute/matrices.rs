//! Matrix instructions of every type, on small integers, so that every order of sums gives the same.
//!
//! The fragments, written down from the manual: a register holds `e` neighbours along k. Register `r` of A in lane `l` holds row
//! `l / 4 + 8 (r mod 2)` and k from `(l mod 4) e + 4 e (r / 2)`; of B column `l / 4` and k from `(l mod 4) e + 4 e r`; C and D
//! hold row `l / 4 + 8 (r / 2)` and column `2 (l mod 4) + r mod 2`.

use super::values::Random;
use super::{cells, machine};
use crate::cases;
use titan_core::ir::Elem;
use titan_core::lane::{MmaAtom, OpKind};

/// A small integer as an element.
fn encode(elem: Elem, x: i64) -> u64 {
    use titan_core::num::Format;
    match elem {
        Elem::F64 => (x as f64).to_bits(),
        Elem::F32 | Elem::Tf32 => (x as f32).to_bits().into(),
        Elem::F16 => Format::F16.from_f64(x as f64).into(),
        Elem::Bf16 => Format::BF16.from_f64(x as f64).into(),
        Elem::E4m3 => Format::E4M3.from_f64(x as f64).into(),
        Elem::E5m2 => Format::E5M2.from_f64(x as f64).into(),
        Elem::I8 | Elem::U8 => x as u64 & 0xff,
        Elem::I32 => x as u64 & 0xffff_ffff,
        other => unreachable!("{other} is no operand"),
    }
}

struct Operands {
    a: Vec<i64>,
    b: Vec<i64>,
    c: Vec<i64>,
}

fn operands(atom: &MmaAtom, random: &mut Random) -> Operands {
    let mut some = |elem: Elem, n: u32| -> Vec<i64> {
        let least = if elem == Elem::U8 { 0 } else { -4 };
        (0..n).map(|_| least + (random.next() % 9) as i64).collect()
    };
    Operands { a: some(atom.a, atom.m * atom.k), b: some(atom.b, atom.n * atom.k), c: some(atom.acc, atom.m * atom.n) }
}

/// A register of `elements` from a row along k.
fn register(elem: Elem, row: &[i64], k: usize) -> u64 {
    let elements = if elem.bits() < 32 { 32 / elem.bits() } else { 1 } as usize;
    (0..elements).fold(0, |word, j| word | encode(elem, row[k + j]) << (j as u32 * elem.bits()))
}

fn lane(atom: &MmaAtom, operands: &Operands, lane: usize) -> Vec<u64> {
    let regs = atom.registers(32);
    let elements = |elem: Elem| if elem.bits() < 32 { 32 / elem.bits() as usize } else { 1 };
    let k = atom.k as usize;
    let mut cells = Vec::new();
    for r in 0..regs.a {
        let (e, row) = (elements(atom.a), lane / 4 + 8 * (r % 2));
        cells.push(register(atom.a, &operands.a[row * k..][..k], lane % 4 * e + 4 * e * (r / 2)));
    }
    for r in 0..regs.b {
        let (e, column) = (elements(atom.b), lane / 4);
        cells.push(register(atom.b, &operands.b[column * k..][..k], lane % 4 * e + 4 * e * r));
    }
    for r in 0..regs.c {
        cells.push(encode(atom.acc, operands.c[place(atom, lane, r)]));
    }
    cells
}

/// The element of C that a register holds.
fn place(atom: &MmaAtom, lane: usize, r: usize) -> usize {
    (lane / 4 + 8 * (r / 2)) * atom.n as usize + 2 * (lane % 4) + r % 2
}

#[test]
fn products_are_products() {
    let mut ran = 0;
    for case in cases::registers() {
        let OpKind::Mma(atom) = case.kind else { continue };
        let mut random = Random::new(11);
        let warps = [operands(&atom, &mut random), operands(&atom, &mut random)];
        let inputs: Vec<Vec<u64>> = (0..64).map(|t| lane(&atom, &warps[t / 32], t % 32)).collect();
        let n = atom.registers(32).c;
        let found = cells(&case.func, machine("sm_90a"), &inputs, n);
        for (thread, found) in found.iter().enumerate() {
            let Operands { a, b, c } = &warps[thread / 32];
            for (r, found) in found.iter().enumerate() {
                let at = place(&atom, thread % 32, r);
                let (row, column, k) = (at / atom.n as usize, at % atom.n as usize, atom.k as usize);
                let sum: i64 = (0..k).map(|i| a[row * k + i] * b[column * k + i]).sum::<i64>() + c[at];
                let mask = super::mask(atom.registers(32).acc);
                assert_eq!(found & mask, encode(atom.acc, sum), "{}: element {row}, {column}", case.func.name);
            }
        }
        ran += 1;
    }
    assert_eq!(ran, cases::atoms().len());
}
