//! Operations of a whole wave: shuffles, votes, barriers. The verifier of the lane IR has checked that all lanes execute them.
//!
//! | shuffle | instruction |
//! |---|---|
//! | `xor` with 1, 2, 3 | a move with a permutation of each four lanes (ISA §6.4, DPP `quad_perm`) |
//! | `xor` with 4 to 31 | `ds_swizzle_b32`, which exchanges within 32 lanes (ISA §12.12) |
//! | `xor` with 32 to 63, `up`, `index` | `ds_bpermute_b32`, by four times the number of the lane |
//! | one lane | `v_readlane_b32`, whose result is scalar |
//!
//! A value in scalar registers is the same in all lanes, and so is what any shuffle of it gives.

use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault, first};
use crate::codegen::machine_ir::Part;
use crate::isa::{Field, Form, Operand as Isa};
use std::collections::BTreeSet;
use titan_core::lane::{Op, OpKind, Shuffle, Vote};

impl Select<'_> {
    pub(super) fn shuffle(&mut self, shuffle: Shuffle, op: &Op) -> Done {
        let value = first(&op.results)?;
        let src = self.src(first(&op.args)?)?;
        if !matches!(src, Src::V(_)) {
            return self.set_src(value, src);
        }
        let out = match shuffle {
            Shuffle::Lane(lane @ 0..64) => {
                let out = self.out_s(value);
                return self.valu("v_readlane_b32", &[out.into()], &[src, Src::Bits(lane.into())], &[]);
            }
            Shuffle::Xor(0) | Shuffle::Up(0) => return self.set_src(value, src),
            Shuffle::Xor(n @ 1..4) => self.within_four(src, n)?,
            Shuffle::Xor(n @ 4..32) => self.within_half(src, n)?,
            Shuffle::Xor(n @ 32..64) => {
                let known = self.partners.iter().find(|(of, _)| *of == n);
                let Some((_, at)) = known.copied() else {
                    return Err(Fault::Defect("a shuffle without the number of the other lane".to_owned()));
                };
                self.at_address(src, at)?
            }
            Shuffle::Up(n @ 1..64) => {
                let lane = self.lane_number()?;
                let below = self.valu_new("v_sub_u32", 1, &[lane, Src::Bits(n.into())])?;
                let has = self.compare_new("v_cmp_le_u32", [Src::Bits(n.into()), lane])?;
                let from = self.choose(has, Src::V(below), lane)?;
                self.of_lane(src, Src::V(from))?
            }
            Shuffle::Index => {
                let index = op.args.get(1).copied().ok_or(Fault::Defect("a shuffle without an index".to_owned()))?;
                let index = self.src(index)?;
                self.of_lane(src, index)?
            }
            Shuffle::Xor(_) | Shuffle::Up(_) | Shuffle::Lane(_) => {
                return Err(Fault::Refused("a wave has 64 lanes".to_owned()));
            }
        };
        self.set(value, Spot::V(out));
        Ok(())
    }

    /// Computes, at the start of the kernel, four times the number of the other lane for each shuffle that exchanges across 32 lanes.
    pub(super) fn partners(&mut self) -> Done {
        let mut all: BTreeSet<u32> = BTreeSet::new();
        self.func.walk(&mut |_, op| {
            if let OpKind::Shuffle(Shuffle::Xor(n @ 32..64)) = op.kind {
                all.insert(n);
            }
        });
        for n in all {
            let lane = self.lane_number()?;
            let from = self.valu_new("v_xor_b32", 1, &[Src::Bits(n.into()), lane])?;
            let at = self.valu_new("v_lshlrev_b32", 1, &[Src::Bits(2), Src::V(from)])?;
            self.partners.push((n, at));
        }
        Ok(())
    }

    fn lane_number(&mut self) -> Result<Src, Fault> {
        self.valu_new("v_and_b32", 1, &[Src::Bits(63), Src::Isa(Isa::V(0, 1))]).map(Src::V)
    }

    fn within_four(&mut self, src: Src, n: u32) -> Result<Part, Fault> {
        let src = self.in_vector(src, 1)?;
        let out = self.fresh(crate::codegen::machine_ir::File::V, 1);
        let lanes = (0..4).fold(0, |all, lane| all | (lane ^ n) << (2 * lane));
        self.full("v_mov_b32", Form::Dpp, &[out.into(), src.into()], &[(Field::DppCtrl, lanes)])?;
        Ok(out)
    }

    /// The bits of the number of the lane are kept, and those of `n` inverted.
    fn within_half(&mut self, src: Src, n: u32) -> Result<Part, Fault> {
        let src = self.in_vector(src, 1)?;
        let out = self.fresh(crate::codegen::machine_ir::File::V, 1);
        let pattern = n << 10 | 0x1f;
        let mods = [(Field::Offset0, pattern & 0xff), (Field::Offset1, pattern >> 8)];
        self.full("ds_swizzle_b32", Form::Base, &[out.into(), src.into()], &mods)?;
        Ok(out)
    }

    fn of_lane(&mut self, src: Src, lane: Src) -> Result<Part, Fault> {
        let at = self.valu_new("v_lshlrev_b32", 1, &[Src::Bits(2), lane])?;
        self.at_address(src, at)
    }

    /// What the lane has of which an address is four times the number.
    fn at_address(&mut self, src: Src, at: Part) -> Result<Part, Fault> {
        let src = self.in_vector(src, 1)?;
        let out = self.fresh(crate::codegen::machine_ir::File::V, 1);
        self.row("ds_bpermute_b32", &[out.into(), at.into(), src.into()])?;
        Ok(out)
    }

    pub(super) fn vote(&mut self, vote: Vote, op: &Op) -> Done {
        let cond = self.src(first(&op.args)?)?;
        let (yes, no) = (Src::Bits(u64::MAX), Src::Bits(0));
        let (name, srcs, results) = match vote {
            Vote::Any => ("s_and_b64", [cond, Src::Isa(Isa::EXEC)], [yes, no]),
            // Whether there is an active lane in which it does not hold.
            Vote::All => ("s_andn2_b64", [Src::Isa(Isa::EXEC), cond], [no, yes]),
        };
        self.salu_new(name, 2, &srcs)?;
        let out = self.out_mask(first(&op.results)?);
        self.salu("s_cselect_b64", Some(out.into()), &results)
    }

    /// The waits before it are inserted later: see `waits`.
    pub(super) fn barrier(&mut self) -> Done {
        self.row("s_barrier", &[])
    }

    /// The lanes of a wave execute an instruction together: only what is in flight has to arrive.
    pub(super) fn wave_barrier(&mut self) -> Done {
        self.row("s_waitcnt", &[Isa::Imm(0).into()])
    }
}
