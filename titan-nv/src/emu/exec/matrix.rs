//! `ldmatrix`, `stmatrix`, `movmatrix`, `mma.sync`: instructions that the whole warp executes together.
//!
//! A row of a matrix counts as accessed by the thread that gives its address.

use super::events::How;
use super::{Run, Step, Who, World, misplaced};
use crate::emu::cluster::Cluster;
use crate::emu::mma::{self, Lanes};
use crate::emu::op::{Addr, Dst, MmaOp, Op, Src};
use crate::emu::ty::Space;
use titan_sim::engine::{AccessKind, Strength};

/// The number of bytes of a row of an 8×8 matrix of 16-bit elements.
const ROW: u32 = 16;

impl Cluster<'_> {
    pub(super) fn matrix(&mut self, who: Who, op: &Op, world: &mut World<'_>) -> Run<Step> {
        if who.active != u32::MAX {
            let whole = self.warps[who.warp].live == u32::MAX;
            self.together(who, "a matrix instruction")?;
            let why =
                if whole { "a matrix instruction under a guard" } else { "a matrix instruction needs 32 threads" };
            return Err(super::Fail::new(crate::emu::error::ErrorCode::Divergence, why));
        }
        match op {
            Op::Ldmatrix { dsts, addr, transposed } => self.load_matrix(who, dsts, addr, *transposed, world)?,
            Op::Stmatrix { srcs, addr, transposed } => self.store_matrix(who, srcs, addr, *transposed, world)?,
            Op::Movmatrix { dst, src } => {
                let values = self.need(who, *src)?;
                let mut matrix = [[0_u16; 8]; 8];
                each_half(|lane, half| {
                    let (row, col) = mma::at_8x8(lane, half, false);
                    matrix[row][col] = crate::emu::lane::lo16(values[lane] >> (16 * half));
                });
                self.warps[who.warp].set_reg(*dst, u32::MAX, &gather(&matrix, true), u32::MAX);
            }
            Op::Mma(op) => self.multiply(who, op)?,
            _ => return Err(misplaced()),
        }
        Ok(Step::Next)
    }

    fn load_matrix(&mut self, who: Who, dsts: &[Dst], addr: &Addr, transposed: bool, world: &mut World<'_>) -> Run<()> {
        let n = dsts.len() * 8;
        let addresses = self.row_addresses(who, addr, n)?;
        for (i, dst) in dsts.iter().enumerate() {
            let (mut matrix, mut fine) = ([[0_u16; 8]; 8], true);
            for (row, elements) in matrix.iter_mut().enumerate() {
                let lane = i * 8 + row;
                let at = self.at(who, lane, addr, addresses[lane], ROW)?;
                let mut bytes = [0; ROW as usize];
                if at.space == Space::Shared {
                    self.tell(who, at, ROW, How::own(AccessKind::Read, Strength::Weak), world)?;
                }
                fine &= self.read(who, at, &mut bytes, world)?;
                for (e, pair) in elements.iter_mut().zip(bytes.chunks_exact(2)) {
                    *e = u16::from_le_bytes([pair[0], pair[1]]);
                }
            }
            let ok = if fine { u32::MAX } else { 0 };
            self.warps[who.warp].set_reg(*dst, u32::MAX, &gather(&matrix, transposed), ok);
        }
        Ok(())
    }

    /// The addresses of rows, which the first `n` threads give; the registers of the other threads are ignored.
    fn row_addresses(&self, who: Who, addr: &Addr, n: usize) -> Run<Lanes> {
        let givers = if n >= 32 { u32::MAX } else { (1 << n) - 1 };
        self.addresses(Who { active: givers, ..who }, addr)
    }

    fn store_matrix(
        &mut self,
        who: Who,
        srcs: &[Src],
        addr: &Addr,
        transposed: bool,
        world: &mut World<'_>,
    ) -> Run<()> {
        let addresses = self.row_addresses(who, addr, srcs.len() * 8)?;
        for (i, src) in srcs.iter().enumerate() {
            let values = self.need(who, *src)?;
            let mut matrix = [[0_u16; 8]; 8];
            each_half(|lane, half| {
                let (row, col) = mma::at_8x8(lane, half, transposed);
                matrix[row][col] = crate::emu::lane::lo16(values[lane] >> (16 * half));
            });
            for (row, elements) in matrix.iter().enumerate() {
                let lane = i * 8 + row;
                let at = self.at(who, lane, addr, addresses[lane], ROW)?;
                let mut bytes = [0; ROW as usize];
                bytes.chunks_exact_mut(2).zip(elements).for_each(|(b, e)| b.copy_from_slice(&e.to_le_bytes()));
                if at.space == Space::Shared {
                    self.tell_write(who, at, &bytes, Strength::Weak, world)?;
                }
                self.write(who, at, &bytes, true, world)?;
            }
        }
        Ok(())
    }

    fn multiply(&mut self, who: Who, op: &MmaOp) -> Run<()> {
        let read = |regs: &[Src]| regs.iter().map(|r| self.need(who, *r)).collect::<Run<Vec<Lanes>>>();
        let (a, b, c) = (read(&op.a_regs)?, read(&op.b_regs)?, read(&op.c_regs)?);
        let d = mma::multiply(op, &a, &b, &c);
        for (dst, values) in op.d_regs.iter().zip(&d) {
            self.warps[who.warp].set_reg(*dst, u32::MAX, values, u32::MAX);
        }
        Ok(())
    }
}

fn each_half(mut f: impl FnMut(usize, usize)) {
    for lane in 0..32 {
        f(lane, 0);
        f(lane, 1);
    }
}

/// The value of each thread's register for a matrix.
fn gather(matrix: &[[u16; 8]; 8], transposed: bool) -> Lanes {
    std::array::from_fn(|lane| {
        let at = |half| {
            let (row, col) = mma::at_8x8(lane, half, transposed);
            u64::from(matrix[row][col])
        };
        at(0) | at(1) << 16
    })
}
