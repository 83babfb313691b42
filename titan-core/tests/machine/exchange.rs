//! What lanes of a warp do together.

use super::memory::SHARED_BASE;
use super::{Machine, Mask};
use titan_core::ir::Elem;
use titan_core::lane::{MmaAtom, NvOp, Op, OpKind, Shuffle, Space, Vote};
use titan_core::num;

impl Machine<'_> {
    pub(super) fn exchange(&mut self, op: &Op, mask: &Mask) {
        let lanes = self.func.lanes as usize;
        for first in (0..self.threads).step_by(lanes) {
            if !(first..first + lanes).any(|t| mask[t]) {
                continue;
            }
            let outcome = match &op.kind {
                OpKind::Shuffle(how) => self.shuffle(op, *how, first),
                OpKind::Vote(vote) => {
                    let mut all = (first..first + lanes).map(|t| self.get(op.args[0], t) != 0);
                    let holds = if *vote == Vote::Any { all.any(|p| p) } else { all.all(|p| p) };
                    Ok(vec![vec![u64::from(holds)]; lanes])
                }
                OpKind::Nv(NvOp::LoadMatrix { n, transposed, offset }) => {
                    self.load_matrix(op, (*n, *transposed, *offset), first)
                }
                OpKind::Mma(atom) => Ok(self.mma(op, atom, first)),
                _ => Err("is no exchange".to_owned()),
            };
            match outcome {
                Ok(bits) => {
                    for (lane, bits) in bits.iter().enumerate().filter(|(l, _)| mask[first + l]) {
                        op.results.iter().zip(bits).for_each(|(r, b)| self.set(*r, first + lane, *b));
                    }
                }
                Err(what) => self.say(format!("line {}: {}: {what}", op.loc.line, super::name(op))),
            }
        }
    }

    fn shuffle(&self, op: &Op, how: Shuffle, first: usize) -> Result<Vec<Vec<u64>>, String> {
        let lanes = self.func.lanes as usize;
        (0..lanes)
            .map(|lane| {
                let from = match how {
                    Shuffle::Xor(bits) => lane ^ bits as usize,
                    Shuffle::Up(n) => lane.checked_sub(n as usize).unwrap_or(lane),
                    Shuffle::Lane(n) => n as usize,
                    Shuffle::Index => self.get(op.args[1], first + lane) as usize,
                };
                if from >= lanes { Err(format!("lane {from}")) } else { Ok(vec![self.get(op.args[0], first + from)]) }
            })
            .collect()
    }

    /// Lane `8 i + r` names row `r` of matrix `i`.
    fn load_matrix(
        &mut self,
        op: &Op,
        (n, transposed, offset): (u8, bool, i32),
        first: usize,
    ) -> Result<Vec<Vec<u64>>, String> {
        let mut rows = Vec::new();
        for lane in 0..8 * usize::from(n) {
            let at = self.get(op.args[0], first + lane);
            let start = self.range(Space::Shared, op.args[0], at, offset, 16)?;
            assert!(start >= u64::from(SHARED_BASE));
            rows.push(self.memory.read(Space::Shared, start, 2, 8, first + lane)?);
        }
        let element = |matrix: usize, row: usize, column: usize| {
            if transposed { rows[8 * matrix + column][row] } else { rows[8 * matrix + row][column] }
        };
        Ok((0..self.func.lanes as usize)
            .map(|l| {
                (0..usize::from(n))
                    .map(|i| element(i, l / 4, 2 * (l % 4)) | element(i, l / 4, 2 * (l % 4) + 1) << 16)
                    .collect()
            })
            .collect())
    }

    /// Products of integers, by the fragments of the manual; others give 0.
    fn mma(&self, op: &Op, atom: &MmaAtom, first: usize) -> Vec<Vec<u64>> {
        let lanes = self.func.lanes as usize;
        let count = atom.registers(self.func.lanes);
        if lanes == 64 {
            return self.mma_of_waves(op, atom, first);
        }
        if atom.acc != Elem::I32 {
            return vec![vec![0; count.c]; lanes];
        }
        let byte = |arg: usize, lane: usize, i: usize, elem: Elem| {
            let b = (self.get(op.args[arg + i / 4], first + lane) >> (8 * (i % 4))) as u8;
            if elem == Elem::I8 { i32::from(b.cast_signed()) } else { i32::from(b) }
        };
        let (mut a, mut b) = ([[0; 32]; 16], [[0; 8]; 32]);
        for lane in 0..lanes {
            let (g, t) = (lane / 4, lane % 4);
            for i in 0..16 {
                let row = if i < 4 || (8..12).contains(&i) { g } else { g + 8 };
                a[row][t * 4 + (i & 3) + if i >= 8 { 16 } else { 0 }] = byte(0, lane, i, atom.a);
            }
            for i in 0..8 {
                b[t * 4 + (i & 3) + if i >= 4 { 16 } else { 0 }][g] = byte(count.a, lane, i, atom.b);
            }
        }
        (0..lanes)
            .map(|lane| {
                (0..4)
                    .map(|i| {
                        let (row, column) = (if i < 2 { lane / 4 } else { lane / 4 + 8 }, (lane % 4) * 2 + (i & 1));
                        let c = self.get(op.args[count.a + count.b + i], first + lane) as u32;
                        let sum = (0..32).fold(c.cast_signed(), |s, k| s.wrapping_add(a[row][k] * b[k][column]));
                        u64::from(sum.cast_unsigned())
                    })
                    .collect()
            })
            .collect()
    }

    /// Products by a wave of 64 lanes, by the manual of MI300, section 7.1.4, with A and B exchanged: of A and B, lane `m q + i` has the `q`-th
    /// run of row `i`; of D, four adjacent columns of row `i` of every `256 / m`, or one of every `64 / m` of 64 bits. A sum is rounded once.
    fn mma_of_waves(&self, op: &Op, atom: &MmaAtom, first: usize) -> Vec<Vec<u64>> {
        let count = atom.registers(64);
        let (m, k) = (atom.m as usize, atom.k as usize);
        let run = k * m / 64;
        let bits = atom.a.bits() as usize;
        let register = |arg: usize, lane: usize| self.get(op.args[arg], first + lane);
        let raw = |arg: usize, row: usize, at: usize| {
            let (lane, item) = (row + m * (at / run), at % run);
            let word = register(arg + item * bits / bits.max(32), lane);
            if bits < 32 { word >> (item * bits % 32) & ((1 << bits) - 1) } else { word }
        };
        let mut out = vec![vec![0; count.c]; 64];
        for (lane, out) in out.iter_mut().enumerate() {
            for (item, out) in out.iter_mut().enumerate() {
                let (row, q) = (lane % m, lane / m);
                let column =
                    if atom.acc.bits() == 64 { 64 / m * item + q } else { item / 4 * (256 / m) + 4 * q + item % 4 };
                let pairs = (0..k).map(|at| (raw(0, row, at), raw(count.a, column, at)));
                *out = sum(atom, pairs, register(count.a + count.b + item, lane));
            }
        }
        out
    }
}

/// The sum of the products of elements and of `c`, all by their bits.
fn sum(atom: &MmaAtom, pairs: impl Iterator<Item = (u64, u64)>, c: u64) -> u64 {
    let number = |bits: u64| match atom.a {
        Elem::F16 => num::f16_to_f64(bits as u16),
        Elem::Bf16 => num::bf16_to_f64(bits as u16),
        Elem::F64 => f64::from_bits(bits),
        _ => f32::from_bits(bits as u32).into(),
    };
    match atom.acc {
        Elem::I32 => {
            let product = |(x, y): (u64, u64)| i32::from((x as u8).cast_signed()) * i32::from((y as u8).cast_signed());
            let sum = pairs.map(product).fold((c as u32).cast_signed(), i32::wrapping_add);
            sum.cast_unsigned().into()
        }
        Elem::F64 => pairs.fold(f64::from_bits(c), |sum, (x, y)| number(x).mul_add(number(y), sum)).to_bits(),
        _ => {
            let products: f64 = pairs.map(|(x, y)| number(x) * number(y)).sum();
            ((products + f64::from(f32::from_bits(c as u32))) as f32).to_bits().into()
        }
    }
}
