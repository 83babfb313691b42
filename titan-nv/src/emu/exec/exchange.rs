//! Shuffles, votes and similar exchanges within a warp.
//!
//! The threads that a member mask names must execute the instruction together, but for those that have ended: a thread that is elsewhere
//! and does not end is an error, though hardware would wait until it executes it. Reading from a thread that does not take part gives an
//! uninitialised value.

use super::{Fail, Run, Step, Who, misplaced};
use crate::emu::cluster::Cluster;
use crate::emu::error::ErrorCode;
use crate::emu::lane::{LaneFn, Mode, lo};
use crate::emu::mma::Lanes;
use crate::emu::op::{Dst, Op, PredSrc, Shuffle, Src, Vote};
use crate::emu::warp::lanes_of;

impl Cluster<'_> {
    /// The member mask; checks that all its threads that have not ended are here.
    fn members(&self, who: Who, mask: Src) -> Run<u32> {
        let mask = self.membership(who, mask)?;
        let missing = mask & self.warps[who.warp].live & !who.active;
        if missing != 0 {
            let message =
                format!("threads {missing:#010x} of the member mask {mask:#010x} do not execute this with the others");
            let fail = Fail::new(ErrorCode::Divergence, message).lane(missing.trailing_zeros() as usize);
            return Err(fail.absent(missing, true));
        }
        Ok(mask)
    }

    pub(super) fn exchange(&mut self, who: Who, op: &Op) -> Run<Step> {
        match op {
            Op::Shuffle { mode, dst, ok, src, by, clamp, mask } => {
                self.members(who, *mask)?;
                self.shuffle(who, *mode, (*dst, *ok), [*src, *by, *clamp])?;
            }
            Op::Vote { kind, dst, src, mask } => {
                self.members(who, *mask)?;
                self.vote(who, *kind, *dst, *src)?;
            }
            Op::Match { all, dst, ok, src, mask } => {
                self.members(who, *mask)?;
                let values = self.need(who, *src)?;
                let same = |lane: usize| {
                    lanes_of(who.active).filter(|o| values[*o] == values[lane]).fold(0_u32, |m, o| m | 1 << o)
                };
                let first = same(who.active.trailing_zeros() as usize & 31);
                let everybody = first == who.active;
                let out: Lanes = std::array::from_fn(|lane| match (*all, everybody) {
                    (true, true) => who.active.into(),
                    (true, false) => 0,
                    (false, _) => same(lane).into(),
                });
                self.warps[who.warp].set_reg(*dst, who.active, &out, u32::MAX);
                self.warps[who.warp].set_pred(*ok, who.active, if everybody { u32::MAX } else { 0 }, u32::MAX);
            }
            Op::Redux { f, dst, src, mask } => {
                self.members(who, *mask)?;
                self.redux(who, *f, *dst, *src)?;
            }
            Op::Active { dst } => {
                self.warps[who.warp].set_reg(*dst, who.active, &[who.active.into(); 32], u32::MAX);
            }
            Op::Elect { dst, ok, mask } => {
                self.members(who, *mask)?;
                let leader = who.active.trailing_zeros() & 31;
                self.warps[who.warp].set_reg(*dst, who.active, &[leader.into(); 32], u32::MAX);
                self.warps[who.warp].set_pred(*ok, who.active, 1 << leader, u32::MAX);
            }
            _ => return Err(misplaced()),
        }
        Ok(Step::Next)
    }

    /// PTX ISA, "shfl.sync", semantics.
    fn shuffle(&mut self, who: Who, mode: Shuffle, (dst, ok): (Dst, Dst), [src, by, clamp]: [Src; 3]) -> Run<()> {
        let (values, defined) = self.lanes(who.warp, src);
        self.strict(who, defined, &[src])?;
        let (by, clamp) = (self.need(who, by)?, self.need(who, clamp)?);
        let (mut out, mut inside, mut fine) = ([0; 32], 0_u32, 0_u32);
        for lane in lanes_of(who.active) {
            let (b, c) = (lo(by[lane]) & 31, lo(clamp[lane]));
            let (segment, bound) = (c >> 8 & 31, c & 31);
            let me = u32::try_from(lane).unwrap_or(0);
            let (least, most) = (me & segment, me & segment | bound & !segment);
            let (from, is_inside) = match mode {
                Shuffle::Up => (me.wrapping_sub(b), me >= b && me - b >= most),
                Shuffle::Down => (me + b, me + b <= most),
                Shuffle::Bfly => (me ^ b, me ^ b <= most),
                Shuffle::Idx => (least | b & !segment, (least | b & !segment) <= most),
            };
            let from = if is_inside { from } else { me } & 31;
            out[lane] = values[from as usize];
            inside |= u32::from(is_inside) << lane;
            fine |= (who.active & defined) >> from << lane & 1 << lane;
        }
        self.warps[who.warp].set_reg(dst, who.active, &out, fine);
        self.warps[who.warp].set_pred(ok, who.active, inside, u32::MAX);
        Ok(())
    }

    fn vote(&mut self, who: Who, kind: Vote, dst: Dst, src: PredSrc) -> Run<()> {
        let holds = self.need_pred(who, src)? & who.active;
        let w = &mut self.warps[who.warp];
        let all = |b: bool| if b { u32::MAX } else { 0 };
        match kind {
            Vote::All => w.set_pred(dst, who.active, all(holds == who.active), u32::MAX),
            Vote::Any => w.set_pred(dst, who.active, all(holds != 0), u32::MAX),
            Vote::Uni => w.set_pred(dst, who.active, all(holds == 0 || holds == who.active), u32::MAX),
            Vote::Ballot => w.set_reg(dst, who.active, &[holds.into(); 32], u32::MAX),
        }
        Ok(())
    }

    fn redux(&mut self, who: Who, f: LaneFn, dst: Dst, src: Src) -> Run<()> {
        let values = self.need(who, src)?;
        let all = lanes_of(who.active).map(|l| values[l]).reduce(|a, b| f(Mode::default(), a, b, 0));
        self.warps[who.warp].set_reg(dst, who.active, &[all.unwrap_or(0); 32], u32::MAX);
        Ok(())
    }
}
