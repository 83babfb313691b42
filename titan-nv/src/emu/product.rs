//! `wgmma`: operands in shared memory by descriptor, and the MMA of one warp's rows.
//!
//! A warpgroup multiplies 64 rows of A with N columns of B; warp `w` of the four has rows `16w..16w + 16`. The position of an element
//! follows from the descriptor: with `s` the start, LBO and SBO its two offsets, W the bytes of the swizzle, and `b` the
//! bytes of an element, element (row, k) of a K-major operand and (mn, k) of an MN-major one lie at
//!
//! | major | swizzle | byte |
//! |---|---|---|
//! | K | W | `s + row/8·SBO + row%8·W + k·b` |
//! | K | none | `s + row/8·SBO + row%8·16 + k·b/16·LBO + k·b%16` |
//! | MN | W | `s + mn·b/W·LBO + k/8·SBO + k%8·W + mn·b%W` |
//! | MN | none | `s + mn·b/16·SBO + k/8·LBO + k%8·16 + mn·b%16` |
//!
//! and the swizzle is then applied to the whole address, as the copy engine does. Source: PTX ISA, "Asynchronous Warpgroup
//! Level Matrix Operations", "Matrix Descriptor Format", "Canonical layouts".
//!
//! Worked example: bf16, K-major, 128-byte swizzle, start 1024, SBO 1024: element (9, 8) is at
//! 1024 + 1·1024 + 1·128 + 16 = 2192; its bits 7 to 9 are 1, so unit 1 of the row becomes unit 0, and the byte is 2176.

use super::async_op::{GroupA, GroupMma};
use super::error::ErrorCode;
use super::exec::Fail;
use super::job::Ground;
use super::mma::{self, Lanes};
use super::op::Op;
use super::proxy::View;
use super::ty::Ty;
use crate::tma::Swizzle;
use titan_sim::engine::Space;

/// The number of rows of A of one warp.
pub(crate) const ROWS: usize = 16;

/// The MMA of one warp, as it was issued.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Product {
    /// The code position of the instruction.
    pub(crate) pc: u32,
    pub(crate) warp: usize,
    /// The rank of the warp's block, in the upper bits, see [`super::cluster::in_block`].
    pub(crate) base: u64,
    pub(crate) a: Option<Descriptor>,
    pub(crate) b: Descriptor,
    pub(crate) adds: bool,
}

/// The fields of a matrix descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Descriptor {
    start: u64,
    leading: u64,
    stride: u64,
    swizzle: Swizzle,
}

impl Descriptor {
    /// Decodes the 64 bits of a descriptor.
    pub(crate) fn new(bits: u64) -> Result<Descriptor, Fail> {
        let field = |at: u32| (bits >> at & 0x3FFF) << 4;
        if bits >> 49 & 7 != 0 {
            return Err(Fail::new(ErrorCode::Unknown, "a matrix descriptor with a base offset is not emulated"));
        }
        let swizzle = match bits >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::B128,
            2 => Swizzle::B64,
            _ => Swizzle::B32,
        };
        Ok(Descriptor { start: field(0), leading: field(16), stride: field(32), swizzle })
    }

    /// The address of the 16-byte unit that contains byte `byte` along the contiguous dimension, at `line` of the other.
    /// `mn` says whether the contiguous dimension is M or N.
    pub(crate) fn unit(&self, mn: bool, line: u64, byte: u64) -> u64 {
        let Descriptor { start, leading, stride, swizzle } = *self;
        let plain = match (mn, swizzle.span()) {
            (false, Some(w)) => start + line / 8 * stride + line % 8 * u64::from(w) + byte,
            (false, None) => start + line / 8 * stride + line % 8 * 16 + byte / 16 * leading,
            (true, Some(w)) => {
                let w = u64::from(w);
                start + byte / w * leading + line / 8 * stride + line % 8 * w + byte % w
            }
            (true, None) => start + byte / 16 * stride + line / 8 * leading + line % 8 * 16,
        };
        swizzle.apply(plain)
    }

    /// The addresses of the 16-byte units of a part of an operand: rows (or columns) `mn` of all `k`.
    pub(crate) fn units(&self, mn_major: bool, rows: std::ops::Range<usize>, k: usize, ty: Ty) -> Vec<u64> {
        let size = u64::from(ty.bytes());
        let (lines, bytes) = if mn_major {
            (0..k as u64, rows.start as u64 * size..rows.end as u64 * size)
        } else {
            (rows.start as u64..rows.end as u64, 0..k as u64 * size)
        };
        lines.flat_map(|line| bytes.clone().step_by(16).map(move |byte| self.unit(mn_major, line, byte))).collect()
    }
}

impl Product {
    /// Computes the MMA, and sets the accumulator's registers.
    pub(crate) fn complete(&self, ground: &mut Ground<'_>, spaces: &[Space], view: &View) -> Result<(), Fail> {
        let Some(Op::Multiply(op)) = ground.program.code.get(self.pc as usize).map(|i| &i.op) else {
            return Err(Fail::new(ErrorCode::Unknown, "the emulator has no rule for this instruction"));
        };
        let (n, k) = (op.shape.n, op.shape.k);
        let first = self.warp_row(ground);
        let a = match (&op.a_from, self.a) {
            (GroupA::Registers(regs), _) => self.a_registers(ground, op, regs),
            (GroupA::Descriptor(_), Some(d)) => {
                self.matrix((spaces, view), d, op.mn_major[0], (first..first + ROWS, k), op.a)?
            }
            (GroupA::Descriptor(_), None) => return Err(Fail::new(ErrorCode::Unknown, "a product without operands")),
        };
        let b = self.matrix((spaces, view), self.b, op.mn_major[1], (0..n, k), op.b)?;
        let (sign_a, sign_b) = (if op.negate[0] { -1.0 } else { 1.0 }, if op.negate[1] { -1.0 } else { 1.0 });
        let sign = sign_a * sign_b;
        let mut sums = self.accumulator(ground, op);
        for (row, sums) in a.chunks_exact(k).zip(sums.chunks_exact_mut(n)) {
            for (col, sum) in b.chunks_exact(k).zip(sums) {
                let dot: f64 = row.iter().zip(col).map(|(x, y)| x * y).sum();
                *sum += sign * dot;
            }
        }
        self.deliver(ground, op, &sums);
        Ok(())
    }

    /// The first row of A that belongs to the warp.
    fn warp_row(&self, ground: &Ground<'_>) -> usize {
        ground.warps[self.warp].first as usize / 32 % 4 * ROWS
    }

    /// Rows of an operand in shared memory, each with all its `k`.
    fn matrix(
        &self,
        (spaces, view): (&[Space], &View),
        d: Descriptor,
        mn_major: bool,
        (rows, k): (std::ops::Range<usize>, usize),
        ty: Ty,
    ) -> Result<Vec<f64>, Fail> {
        let (size, n) = (ty.bytes() as usize, rows.len());
        let mut out = vec![0.0; n * k];
        for (i, unit) in d.units(mn_major, rows, k, ty).into_iter().enumerate() {
            let (bytes, written) = Ground::shared(spaces, self.base | unit, 16, view)?;
            if written.contains(&false) {
                let message = "a matrix operand in shared memory that was never written, or not fenced for `wgmma`";
                return Err(Fail::new(ErrorCode::Uninitialised, message));
            }
            let per = 16 / size;
            for (e, part) in bytes.chunks_exact(size).enumerate() {
                let mut word = [0; 8];
                word[..size].copy_from_slice(part);
                let value = mma::element(ty, u64::from_le_bytes(word), 0);
                let at = if mn_major {
                    let units = n / per;
                    (i % units * per + e) * k + i / units
                } else {
                    i * per + e
                };
                out[at] = value;
            }
        }
        Ok(out)
    }

    /// The warp's rows of A, held in registers.
    fn a_registers(&self, ground: &Ground<'_>, op: &GroupMma, regs: &[u32]) -> Vec<f64> {
        let (k, per) = (op.shape.k, mma::per_register(op.a));
        let mut out = vec![0.0; ROWS * k];
        for (r, reg) in regs.iter().enumerate() {
            let (values, _) = ground.warps[self.warp].reg(*reg);
            for (lane, bits) in values.iter().enumerate() {
                for s in 0..per {
                    let (row, col) = mma::at_a(ROWS, per, lane, r, s);
                    out[row * k + col] = mma::element(op.a, *bits, s);
                }
            }
        }
        out
    }

    fn accumulator(&self, ground: &Ground<'_>, op: &GroupMma) -> Vec<f64> {
        let n = op.shape.n;
        let mut out = vec![0.0; ROWS * n];
        if !self.adds {
            return out;
        }
        for_each_sum(op, |reg, lane, s, row, col| {
            let (values, _) = ground.warps[self.warp].reg(op.d_regs[reg]);
            out[row * n + col] = mma::element(op.acc, values[lane], s);
        });
        out
    }

    fn deliver(&self, ground: &mut Ground<'_>, op: &GroupMma, sums: &[f64]) {
        let n = op.shape.n;
        let mut out: Vec<Lanes> = vec![[0; 32]; op.d_regs.len()];
        for_each_sum(op, |reg, lane, s, row, col| {
            out[reg][lane] |= mma::rounded(op.acc, op.saturate, sums[row * n + col]) << (16 * s);
        });
        for (reg, values) in op.d_regs.iter().zip(&out) {
            ground.warps[self.warp].deliver(*reg, values);
        }
    }
}

/// Calls `f` for each element of a warp's part of the accumulator: register, lane, part of the register, row, column.
fn for_each_sum(op: &GroupMma, mut f: impl FnMut(usize, usize, usize, usize, usize)) {
    let packed = op.acc == Ty::F16;
    // Each block of 8 columns is laid out as the accumulator fragment of `mma`.
    let (per_block, parts) = if packed { (2, 2) } else { (4, 1) };
    for reg in 0..op.d_regs.len() {
        for lane in 0..32 {
            for s in 0..parts {
                let (row, col) = mma::at_c(packed, lane, reg % per_block, s);
                f(reg, lane, s, row, reg / per_block * 8 + col);
            }
        }
    }
}
