//! Values that are the same constant wherever they are computed, although loops carry them: the number of the slot of a ring with one slot is 0
//! in every iteration.
//!
//! Every value is supposed to be undefined at first, and what operations make of that is followed until nothing changes: a value becomes a
//! constant, and a value of which two constants are found varies. Values only change in this order, so that this ends. What is a constant then is
//! one in every run: by induction over its operations, each of which has computed what was supposed of it.
//!
//! Deliberately absent: values of 64 bits, branches that are never taken.

use titan_core::ir::Pred;
use titan_core::lane::family::{Family, Flow};
use titan_core::lane::{Block as Region, Func, IntBin, Op, OpKind, Ty, Value};

/// What is supposed of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Nothing,
    Bits(u64),
    Varies,
}

/// The constants of a function, by the number of the value.
pub(super) fn constants(func: &Func) -> Vec<Option<u64>> {
    let mut run = Run { func, known: vec![Known::Nothing; func.values.len()], open: Vec::new(), changed: true };
    while std::mem::take(&mut run.changed) {
        run.region(func.body, &[]);
    }
    let bits = |known: &Known| match known {
        Known::Bits(bits) => Some(*bits),
        Known::Nothing | Known::Varies => None,
    };
    run.known.iter().map(bits).collect()
}

struct Run<'f> {
    func: &'f Func,
    known: Vec<Known>,
    /// The carried arguments and the results of the loops around the current operation, and whether they are counted.
    open: Vec<(Vec<Value>, Vec<Value>, bool)>,
    changed: bool,
}

impl Run<'_> {
    fn of(&self, value: Value) -> Known {
        match self.func.constant(value) {
            Some(bits) => Known::Bits(bits),
            None => self.known[value.index()],
        }
    }

    /// Adds what a value may be.
    fn add(&mut self, value: Value, more: Known) {
        let known = &mut self.known[value.index()];
        let joined = match (*known, more) {
            (Known::Nothing, other) | (other, Known::Nothing) => other,
            (Known::Bits(a), Known::Bits(b)) if a == b => *known,
            (_, _) => Known::Varies,
        };
        self.changed |= joined != *known;
        *known = joined;
    }

    fn pass(&mut self, to: &[Value], from: &[Value]) {
        for (to, from) in to.iter().zip(from) {
            let more = self.of(*from);
            self.add(*to, more);
        }
    }

    /// The operations of a region, whose `yield` gives these results.
    fn region(&mut self, region: Region, results: &[Value]) {
        let func = self.func;
        for id in &func.block(region).ops {
            let op = func.op(*id);
            match op.kind.family() {
                Family::Pure => {
                    let made = self.made(op);
                    op.results.iter().for_each(|value| self.add(*value, made));
                }
                Family::Flow(flow) => self.flow(flow, op, results),
                Family::Warp
                | Family::Mark { .. }
                | Family::Access { .. }
                | Family::Matrix { .. }
                | Family::Copy(_)
                | Family::Protocol
                | Family::Order
                | Family::Group(_)
                | Family::Barrier(_) => op.results.iter().for_each(|value| self.add(*value, Known::Varies)),
            }
        }
    }

    fn flow(&mut self, flow: Flow<'_>, op: &Op, results: &[Value]) {
        match flow {
            Flow::For | Flow::Loop => {
                let counted = flow == Flow::For;
                let init = op.args.get(if counted { 3 } else { 0 }..).unwrap_or_default();
                for body in &op.regions {
                    let args = &self.func.block(*body).args;
                    let (index, carried) = args.split_at(args.len().min(usize::from(counted)));
                    index.iter().for_each(|value| self.add(*value, Known::Varies));
                    self.pass(carried, init);
                    if counted {
                        // Without iterations.
                        self.pass(&op.results, init);
                    }
                    self.open.push((carried.to_vec(), op.results.clone(), counted));
                    self.region(*body, &[]);
                    self.open.pop();
                }
            }
            Flow::If => op.regions.iter().for_each(|arm| self.region(*arm, &op.results)),
            Flow::Yield => self.pass(results, &op.args),
            Flow::Break(n) | Flow::Continue(n) => {
                let at = self.open.len().checked_sub(n as usize + 1);
                let Some((carried, after, counted)) = at.and_then(|at| self.open.get(at)).cloned() else { return };
                let again = matches!(flow, Flow::Continue(_));
                if again {
                    self.pass(&carried, &op.args);
                }
                if !again || counted {
                    self.pass(&after, &op.args);
                }
            }
            Flow::Roles(_) => {
                op.results.iter().for_each(|value| self.add(*value, Known::Varies));
                op.regions.iter().for_each(|role| self.region(*role, &[]));
            }
            Flow::Return => {}
        }
    }

    /// What an operation makes of what is supposed of its operands.
    fn made(&self, op: &Op) -> Known {
        let args: Vec<Known> = op.args.iter().map(|value| self.of(*value)).collect();
        let is_word = |value: &Value| matches!(self.func.ty(*value), Ty::B32 | Ty::Pred);
        let words = op.args.iter().chain(&op.results).all(is_word);
        if let (OpKind::Select, [Known::Bits(cond), yes, no], true) = (&op.kind, &args[..], words) {
            return if *cond == 0 { *no } else { *yes };
        }
        if !words || args.contains(&Known::Varies) {
            return Known::Varies;
        }
        let [Known::Bits(a), Known::Bits(b)] = args[..] else {
            // Constants are not computed again; all else of one or three operands varies.
            let waits = args.contains(&Known::Nothing)
                && matches!(op.kind, OpKind::Int(_) | OpKind::IntCmp { .. } | OpKind::Select);
            return if waits { Known::Nothing } else { Known::Varies };
        };
        let (a, b) = (low(a), low(b));
        let numbers = op.args.iter().all(|value| self.func.ty(*value) == Ty::B32);
        if !numbers {
            return Known::Varies;
        }
        if let OpKind::Int(bin) = op.kind {
            return computed(bin, a, b).map_or(Known::Varies, |bits| Known::Bits(bits.into()));
        }
        if let OpKind::IntCmp { pred, signed } = op.kind {
            return Known::Bits(compared(pred, signed, a, b).into());
        }
        Known::Varies
    }
}

/// Whether a comparison of words holds.
fn compared(pred: Pred, signed: bool, a: u32, b: u32) -> bool {
    let order = if signed { a.cast_signed().cmp(&b.cast_signed()) } else { a.cmp(&b) };
    match pred {
        Pred::Eq => order.is_eq(),
        Pred::Ne => order.is_ne(),
        Pred::Lt => order.is_lt(),
        Pred::Le => order.is_le(),
        Pred::Gt => order.is_gt(),
        Pred::Ge => order.is_ge(),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low word is what is meant")]
const fn low(bits: u64) -> u32 {
    bits as u32
}

/// The result of an operation on words; nothing of those that numbers of slots are not computed by.
const fn computed(bin: IntBin, a: u32, b: u32) -> Option<u32> {
    match bin {
        IntBin::Add => Some(a.wrapping_add(b)),
        IntBin::Sub => Some(a.wrapping_sub(b)),
        IntBin::Mul => Some(a.wrapping_mul(b)),
        IntBin::And => Some(a & b),
        IntBin::Or => Some(a | b),
        IntBin::Xor => Some(a ^ b),
        IntBin::Shl if b < 32 => Some(a << b),
        IntBin::Shl
        | IntBin::MulHi
        | IntBin::DivS
        | IntBin::DivU
        | IntBin::RemS
        | IntBin::RemU
        | IntBin::ShrS
        | IntBin::ShrU
        | IntBin::MinS
        | IntBin::MinU
        | IntBin::MaxS
        | IntBin::MaxU => None,
    }
}
