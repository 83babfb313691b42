//! tidy: table
//! The fragments of matrix instructions of a warp of 32 lanes, as layouts of their operands.
//!
//! Source: PTX ISA, "Warp-level matrix fragment layouts" of `mma.m16n8k16` and the following sections. With the group `g = lane / 4` and
//! `t = lane mod 4`, all of them follow one pattern: a lane holds 32 bits of adjacent elements along K, groups are distributed along M or
//! N, and the halves of M and K are in different registers:
//!
//! * A, `m16 × k`: registers are the adjacent elements in 32 bits, then row `i + 8`, then the upper half of K.
//! * B, `n8 × k`: registers are the adjacent elements in 32 bits, then the upper half of K.
//! * C and D, `m16 × n8`: registers are two adjacent elements along N, then row `i + 8`.
//!
//! `f64` has `m8n8k4`: A is row `g`, column `t`; B column `g`, row `t`; C row `g`, columns `2 t` and `2 t + 1`.

use super::{Bit, Layout};
use crate::lane::MmaAtom;

const fn step(axis: u8, by: u32) -> Bit {
    Bit::Step { axis, by }
}

/// The bits with the steps `from, 2 from, …` below `to` along an axis.
fn steps(axis: u8, from: u32, to: u32) -> Vec<Bit> {
    let mut out = Vec::new();
    let mut by = from;
    while by < to {
        out.push(step(axis, by));
        by *= 2;
    }
    out
}

/// The distribution of an output tile over warps: the lowest bits of the warp number go along M, the next ones along N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarpGrid {
    /// The number of warps along M, a power of two.
    pub m: u32,
    /// The number of warps along N, a power of two.
    pub n: u32,
    /// The number of all warps; those beyond `m · n` compute the same as others.
    pub all: u32,
}

impl WarpGrid {
    /// The remaining bits of the warp number, which hold copies.
    fn spare(self) -> Vec<Bit> {
        vec![Bit::Copy; (self.all / (self.m * self.n)).trailing_zeros() as usize]
    }
}

/// The layout of C and D, `[M, N]`.
#[must_use]
pub fn accumulator(atom: &MmaAtom, extents: &[u32], warps: WarpGrid) -> Layout {
    let mut regs = steps(1, 1, 2);
    regs.extend(steps(0, 8, atom.m));
    let mut lanes = steps(1, 2, 8);
    lanes.extend(steps(0, 1, 8));
    let mut at = steps(0, atom.m, atom.m * warps.m);
    at.extend(steps(1, atom.n, atom.n * warps.n));
    at.extend(warps.spare());
    Layout::new(extents, regs, lanes, at)
}

/// The layout of C and D of MMAs of warpgroups, `[M, N]`: the registers of one instruction are contiguous, and for each warp they are those
/// of C and D of `m16n8`. The columns of a warpgroup are contiguous; with several warpgroups along N, each has a power of two of columns.
/// Source: PTX ISA, "Register fragments for `wgmma.mma_async.m64nNk16`".
#[must_use]
pub fn group_accumulator(extents: &[u32], warps: WarpGrid) -> Layout {
    let own = extents.get(1).copied().unwrap_or(8) / warps.n;
    let mut regs = steps(1, 1, 2);
    regs.extend(steps(0, 8, 16));
    if warps.n > 1 {
        regs.extend(steps(1, 8, own));
    }
    let mut lanes = steps(1, 2, 8);
    lanes.extend(steps(0, 1, 8));
    let mut at = steps(0, 16, 16 * warps.m);
    at.extend(steps(1, own, own * warps.n));
    at.extend(warps.spare());
    Layout::new(extents, regs, lanes, at)
}

/// The layout of A, `[M, K]`; warps along N hold copies.
#[must_use]
pub fn operand_a(atom: &MmaAtom, extents: &[u32], warps: WarpGrid) -> Layout {
    let mut at = steps(0, atom.m, atom.m * warps.m);
    at.extend(std::iter::repeat_n(Bit::Copy, warps.n.trailing_zeros() as usize));
    at.extend(warps.spare());
    operand(atom.k, atom.a.bits(), &steps(0, 8, atom.m), extents, at)
}

/// The layout of B as `[N, K]`; warps along M hold copies.
#[must_use]
pub fn operand_b(atom: &MmaAtom, extents: &[u32], warps: WarpGrid) -> Layout {
    let mut at = vec![Bit::Copy; warps.m.trailing_zeros() as usize];
    at.extend(steps(0, atom.n, atom.n * warps.n));
    at.extend(warps.spare());
    operand(atom.k, atom.b.bits(), &[], extents, at)
}

fn operand(k: u32, bits: u32, rows: &[Bit], extents: &[u32], warps: Vec<Bit>) -> Layout {
    let word = (32 / bits).max(1);
    let mut regs = steps(1, 1, word);
    regs.extend_from_slice(rows);
    regs.extend(steps(1, word * 4, k));
    let mut lanes = steps(1, word, word * 4);
    lanes.extend(steps(0, 1, 8));
    Layout::new(extents, regs, lanes, warps)
}
