//! Operations of a whole warp. The verifier has checked that all lanes execute them, so every mask is full.

use super::error::{Fault, first, two};
use super::{Arg, Done, Lower, form_of};
use crate::ptx::Reg;
use crate::ptx::isa::warp::{LOAD_MATRIX, MMA, SHUFFLE_LANE, SHUFFLE_UP, SHUFFLE_XOR, STORE_MATRIX, VOTE};
use titan_core::lane::{MmaAtom, Op, Shuffle, Vote};

/// All lanes of the warp.
pub(super) const MEMBERS: u64 = 0xffff_ffff;
/// The clamp of a shuffle in a segment of the whole warp: lanes up to 31, or from 0.
const UP_TO_31: u64 = 31;
const FROM_0: u64 = 0;

impl Lower<'_> {
    /// The value of lane 0, in all lanes.
    pub(super) fn first_lane(&mut self, out: Reg, value: Reg) -> Done {
        self.inst(
            &SHUFFLE_LANE,
            &[Arg::Reg(out), Arg::Reg(value), Arg::Bits(0), Arg::Bits(UP_TO_31), Arg::Bits(MEMBERS)],
        )
    }

    pub(super) fn vote(&mut self, vote: Vote, op: &Op) -> Done {
        let outs = self.outs(op);
        let cond = Arg::Value(first(&op.args)?);
        self.inst(form_of(VOTE, &vote)?, &[Arg::Reg(first(&outs)?), cond, Arg::Bits(MEMBERS)])
    }

    pub(super) fn load_matrix(&mut self, key: (u8, bool), offset: i32, op: &Op) -> Done {
        let outs = self.outs(op);
        let address = self.address(first(&op.args)?, offset)?;
        self.inst(form_of(LOAD_MATRIX, &key)?, &[Arg::Regs(outs), Arg::Address(address)])
    }

    pub(super) fn store_matrix(&mut self, key: (u8, bool), offset: i32, op: &Op) -> Done {
        let (at, words) = op.args.split_first().ok_or(Fault::Defect("a store without an address".to_owned()))?;
        let address = self.address(*at, offset)?;
        let words = Arg::Values(words.to_vec());
        self.inst(form_of(STORE_MATRIX, &key)?, &[Arg::Address(address), words])
    }

    pub(super) fn shuffle(&mut self, shuffle: Shuffle, op: &Op) -> Done {
        let out = Arg::Reg(self.out(first(&op.results)?));
        let value = Arg::Value(first(&op.args)?);
        let (form, lane, clamp) = match shuffle {
            Shuffle::Xor(n @ 0..32) => (&SHUFFLE_XOR, Arg::Bits(u64::from(n)), UP_TO_31),
            Shuffle::Up(n @ 0..32) => (&SHUFFLE_UP, Arg::Bits(u64::from(n)), FROM_0),
            Shuffle::Lane(n @ 0..32) => (&SHUFFLE_LANE, Arg::Bits(u64::from(n)), UP_TO_31),
            Shuffle::Index => (&SHUFFLE_LANE, Arg::Value(two(&op.args)?[1]), UP_TO_31),
            Shuffle::Xor(_) | Shuffle::Up(_) | Shuffle::Lane(_) => {
                return Err(Fault::Refused("a warp has 32 lanes".to_owned()));
            }
        };
        self.inst(form, &[out, value, lane, Arg::Bits(clamp), Arg::Bits(MEMBERS)])
    }

    pub(super) fn mma(&mut self, atom: &MmaAtom, op: &Op) -> Done {
        let outs = self.outs(op);
        let form = form_of(MMA, atom)?;
        let regs = atom.registers(self.func.lanes);
        let (a, rest) = op.args.split_at(regs.a.min(op.args.len()));
        let (b, c) = rest.split_at(regs.b.min(rest.len()));
        let fragments = [a, b, c].map(|values| Arg::Values(values.to_vec()));
        let mut all = vec![Arg::Regs(outs)];
        all.extend(fragments);
        self.inst(form, &all)
    }
}
