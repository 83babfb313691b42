//! Instructions that each thread computes by itself, and branches.

use super::{Run, Step, Who, misplaced};
use crate::emu::cluster::Cluster;
use crate::emu::lane::{LaneFn, Mode};
use crate::emu::memory::{from_generic, to_generic};
use crate::emu::mma::Lanes;
use crate::emu::op::{BoolOp, Meet, Op, PredSrc, Src};
use crate::emu::ty::Space;
use crate::emu::warp::lanes_of;

fn mask_of(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Applies a function of three operands in the active threads.
fn map(f: LaneFn, mode: Mode, active: u32, [a, b, c]: [&Lanes; 3]) -> Lanes {
    let mut out = [0; 32];
    if active == u32::MAX {
        for (i, out) in out.iter_mut().enumerate() {
            *out = f(mode, a[i], b[i], c[i]);
        }
    } else {
        lanes_of(active).for_each(|i| out[i] = f(mode, a[i], b[i], c[i]));
    }
    out
}

impl Cluster<'_> {
    pub(super) fn scalar(&mut self, who: Who, op: &Op) -> Run<Step> {
        match op {
            Op::Lane { f, mode, all, dst, src } => {
                let ((a, da), (b, db), (c, dc)) =
                    (self.lanes(who.warp, src[0]), self.lanes(who.warp, src[1]), self.lanes(who.warp, src[2]));
                let ok = da & db & dc;
                self.strict(who, ok, src)?;
                let out = match all {
                    Some(all) if who.active == u32::MAX => all([&a, &b, &c]),
                    Some(_) | None => map(*f, *mode, who.active, [&a, &b, &c]),
                };
                self.warps[who.warp].set_reg(*dst, who.active, &out, ok);
            }
            Op::Setp { .. } => self.setp(who, op)?,
            Op::Set { f, mode, src, dst, combine, truth } => {
                let (holds, ok) = self.compare(who, *f, *mode, *src)?;
                let holds = self.combined(who, holds, *combine)?;
                let out: Lanes = std::array::from_fn(|i| if holds >> i & 1 == 1 { *truth } else { 0 });
                self.warps[who.warp].set_reg(*dst, who.active, &out, ok);
            }
            Op::Select { dst, src, by } => {
                let ((a, da), (b, db)) = (self.lanes(who.warp, src[0]), self.lanes(who.warp, src[1]));
                let p = self.need_pred(who, *by)?;
                let ok = p & da | !p & db;
                // The operand that is not selected is not read, so it may be undefined.
                self.select_strict(who, p, ok, *src)?;
                let out: Lanes = std::array::from_fn(|i| if p >> i & 1 == 1 { a[i] } else { b[i] });
                self.warps[who.warp].set_reg(*dst, who.active, &out, ok);
            }
            Op::Test { f, src, dst } => {
                let (holds, ok) = self.compare(who, *f, Mode::default(), [*src, Src::Imm(0)])?;
                self.warps[who.warp].set_pred(*dst, who.active, holds, ok);
            }
            Op::Logic { op, dst, a, b } => {
                let ((x, dx), (y, dy)) = (self.pred_lanes(who, *a), self.pred_lanes(who, *b));
                if self.env.options.strict() {
                    self.need_pred(who, *a)?;
                    self.need_pred(who, *b)?;
                }
                self.warps[who.warp].set_pred(*dst, who.active, op.apply(x, y), dx & dy);
            }
            Op::Carry { .. } => self.carry(who, op)?,
            _ => self.rearrange(who, op)?,
        }
        Ok(Step::Next)
    }

    /// Executes instructions that pack and unpack bits, and that convert addresses.
    fn rearrange(&mut self, who: Who, op: &Op) -> Run<()> {
        match op {
            Op::Insert { f, dst, src, at, len } => {
                let ((a, da), (b, db)) = (self.lanes(who.warp, src[0]), self.lanes(who.warp, src[1]));
                let ((p, dp), (n, dn)) = (self.lanes(who.warp, *at), self.lanes(who.warp, *len));
                let ok = da & db & dp & dn;
                self.strict(who, ok, &[src[0], src[1], *at, *len])?;
                let place: Lanes = std::array::from_fn(|i| p[i] & 0xFF | (n[i] & 0xFF) << 8);
                let out = map(*f, Mode::default(), who.active, [&a, &b, &place]);
                self.warps[who.warp].set_reg(*dst, who.active, &out, ok);
            }
            Op::Pack { dst, parts, bits } => {
                let (mut out, mut ok) = ([0; 32], u32::MAX);
                for (i, part) in parts.iter().enumerate() {
                    let (values, defined) = self.lanes(who.warp, *part);
                    ok &= defined;
                    let shift = *bits * u32::try_from(i).unwrap_or(0);
                    out.iter_mut().zip(&values).for_each(|(o, v)| *o |= (v & mask_of(*bits)) << shift);
                }
                self.strict(who, ok, parts)?;
                self.warps[who.warp].set_reg(*dst, who.active, &out, ok);
            }
            Op::Unpack { parts, src, bits } => {
                let (values, ok) = self.lanes(who.warp, *src);
                self.strict(who, ok, &[*src])?;
                for (i, dst) in parts.iter().enumerate() {
                    let shift = *bits * u32::try_from(i).unwrap_or(0);
                    let out = values.map(|v| v >> shift & mask_of(*bits));
                    self.warps[who.warp].set_reg(*dst, who.active, &out, ok);
                }
            }
            Op::Convert { dst, src, space, to_space } => {
                let (values, ok) = self.lanes(who.warp, *src);
                self.strict(who, ok, &[*src])?;
                let out = values.map(|v| if *to_space { from_generic(v).1 } else { to_generic(*space, v) });
                self.warps[who.warp].set_reg(*dst, who.active, &out, ok);
            }
            Op::IsSpace { dst, src, space } => {
                let (values, ok) = self.lanes(who.warp, *src);
                self.strict(who, ok, &[*src])?;
                let is = |v: u64| from_generic(v).0 == if *space == Space::Const { Space::Global } else { *space };
                let holds = (0..32).filter(|i| is(values[*i])).fold(0, |m, i| m | 1 << i);
                self.warps[who.warp].set_pred(*dst, who.active, holds, ok);
            }
            _ => return Err(misplaced()),
        }
        Ok(())
    }

    fn select_strict(&self, who: Who, p: u32, ok: u32, src: [Src; 2]) -> Run<()> {
        if who.active & !ok == 0 || !self.env.options.strict() {
            return Ok(());
        }
        for (src, chosen) in [(src[0], p), (src[1], !p)] {
            let (_, defined) = self.lanes(who.warp, src);
            self.require(Who { active: who.active & chosen, ..who }, defined, src)?;
        }
        Ok(())
    }

    /// The threads in which a predicate holds, and those in which it is defined.
    fn pred_lanes(&self, who: Who, src: PredSrc) -> (u32, u32) {
        match src {
            PredSrc::Const(b) => (if b { u32::MAX } else { 0 }, u32::MAX),
            PredSrc::Reg(p, negated) => {
                let (values, defined) = self.warps[who.warp].pred(p);
                (if negated { !values } else { values }, defined)
            }
        }
    }

    /// The threads in which a comparison holds, and those in which it is defined.
    fn compare(&self, who: Who, f: LaneFn, mode: Mode, src: [Src; 2]) -> Run<(u32, u32)> {
        let ((a, da), (b, db)) = (self.lanes(who.warp, src[0]), self.lanes(who.warp, src[1]));
        self.strict(who, da & db, &src)?;
        let holds = |i: &usize| f(mode, a[*i], b[*i], 0) != 0;
        Ok((lanes_of(who.active).filter(holds).fold(0, |m, i| m | 1 << i), da & db))
    }

    fn combined(&self, who: Who, holds: u32, combine: Option<(BoolOp, PredSrc)>) -> Run<u32> {
        combine.map_or(Ok(holds), |(op, p)| Ok(op.apply(holds, self.need_pred(who, p)?)))
    }

    fn setp(&mut self, who: Who, op: &Op) -> Run<()> {
        let Op::Setp { f, mode, src, dst, second, combine, packed } = op else { return Err(misplaced()) };
        let (holds, ok, other) = if *packed {
            let (low, ok) = self.compare_half(who, *f, *mode, *src, 0)?;
            let (high, _) = self.compare_half(who, *f, *mode, *src, 16)?;
            (low, ok, high)
        } else {
            let (holds, ok) = self.compare(who, *f, *mode, *src)?;
            (holds, ok, !holds)
        };
        let (first, other) = (self.combined(who, holds, *combine)?, self.combined(who, other, *combine)?);
        self.warps[who.warp].set_pred(*dst, who.active, first, ok);
        self.warps[who.warp].set_pred(*second, who.active, other, ok);
        Ok(())
    }

    /// As [`compare`](Self::compare), for one half of packed operands.
    fn compare_half(&self, who: Who, f: LaneFn, mode: Mode, src: [Src; 2], shift: u32) -> Run<(u32, u32)> {
        let ((a, da), (b, db)) = (self.lanes(who.warp, src[0]), self.lanes(who.warp, src[1]));
        self.strict(who, da & db, &src)?;
        let half = |x: u64| x >> shift & 0xFFFF;
        let holds = |i: &usize| f(mode, half(a[*i]), half(b[*i]), 0) != 0;
        Ok((lanes_of(who.active).filter(holds).fold(0, |m, i| m | 1 << i), da & db))
    }

    fn carry(&mut self, who: Who, op: &Op) -> Run<()> {
        let Op::Carry { dst, src, product, bits, subtract, uses, sets } = op else { return Err(misplaced()) };
        let ((mut a, da), (mut b, db), (c, dc)) =
            (self.lanes(who.warp, src[0]), self.lanes(who.warp, src[1]), self.lanes(who.warp, src[2]));
        let ok = da & db & dc;
        self.strict(who, ok, src)?;
        if let Some((f, mode)) = product {
            // First the product, then the addition of `c` with the carry flag.
            let zero = [0; 32];
            a = map(*f, *mode, who.active, [&a, &b, &zero]);
            b = c;
        }
        let (mut out, mut flags) = ([0; 32], self.warps[who.warp].carry);
        for i in lanes_of(who.active) {
            let flag = *uses && flags >> i & 1 == 1;
            let wide = |x: u64| u128::from(x);
            // The carry flag of a subtraction is its borrow.
            let sum = if *subtract {
                wide(a[i]).wrapping_sub(wide(b[i])).wrapping_sub(u128::from(flag))
            } else {
                wide(a[i]) + wide(b[i]) + u128::from(flag)
            };
            out[i] = u64::try_from(sum & u128::from(mask_of(*bits))).unwrap_or(0);
            if *sets {
                let carried = sum >> bits & 1 == 1;
                flags = flags & !(1 << i) | u32::from(carried) << i;
            }
        }
        let w = &mut self.warps[who.warp];
        w.carry = flags;
        w.set_reg(*dst, who.active, &out, ok);
        Ok(())
    }

    pub(super) fn branch(&mut self, who: Who, mask: u32, target: u32, meet: Option<Meet>) -> Step {
        let stay = mask & !who.active;
        if stay == 0 {
            return Step::Jump(target);
        }
        self.warps[who.warp].split(who.fragment, meet, &[(target, who.active), (who.pc + 1, stay)]);
        Step::Changed
    }

    pub(super) fn branch_indexed(
        &mut self,
        who: Who,
        mask: u32,
        index: Src,
        targets: &[u32],
        meet: Option<Meet>,
    ) -> Run<Step> {
        let values = self.need(who, index)?;
        let mut ways: Vec<(u32, u32)> = Vec::new();
        let stay = mask & !who.active;
        if stay != 0 {
            ways.push((who.pc + 1, stay));
        }
        for i in lanes_of(who.active) {
            let Some(target) = usize::try_from(values[i]).ok().and_then(|v| targets.get(v)) else {
                let message = format!("index {} of a branch with {} targets", values[i], targets.len());
                return Err(super::Fail::new(crate::emu::error::ErrorCode::OutOfBounds, message).lane(i));
            };
            match ways.iter_mut().find(|(t, _)| t == target) {
                Some((_, lanes)) => *lanes |= 1 << i,
                None => ways.push((*target, 1 << i)),
            }
        }
        if let [(target, _)] = ways[..] {
            return Ok(Step::Jump(target));
        }
        self.warps[who.warp].split(who.fragment, meet, &ways);
        Ok(Step::Changed)
    }
}
