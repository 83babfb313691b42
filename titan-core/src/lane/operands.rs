//! Operands of MMAs of warpgroups in registers: until an MMA is waited for, no instruction may write the registers of its operand A (PTX ISA,
//! "wgmma.mma_async"). A value of lane IR is a register, which the operation that defines it writes, and the end of an iteration what a loop carries.
//!
//! ```text
//! for .. carry(%x = ..)
//!     %a = pack ..                 refused: the MMA of the iteration before may read %a
//!     %y = group_mma.. %a, %b, %x  reads %a
//!     group_commit
//!     group_wait 1                 completes the MMA of the iteration before, and not this one
//!     continue %y
//! ```
//!
//! The verifier of barrier programs has the same rule for tiles (`crate::verify::barriers`). Lowering may place operations elsewhere than the tiles were
//! computed; this is what the back end gets.
//!
//! Deliberately absent: accumulators (`super::flight`).

use super::family::{Family, Flow, Grouped};
use super::func::{Block, Func, Op, OpId, Value};
use super::nv::NvOp;
use super::op::OpKind;
use crate::collections::SortedMap;

/// The registers that MMAs in flight read, with the number of groups committed since the last of these; `None` if its group is open.
type Reads = SortedMap<Value, Option<u32>>;

/// Numbers of groups from this one on are not distinguished.
const OLDEST: u32 = 64;

/// A loop around the operation.
struct Around {
    args: Vec<Value>,
    /// What is written where the loop is left: its results; of a loop with a count these are the registers of what it carries.
    results: Vec<Value>,
    next: Vec<Reads>,
    exits: Vec<Reads>,
}

struct Run<'f> {
    func: &'f Func,
    loops: Vec<Around>,
    wrong: Option<(OpId, String)>,
}

/// The first operation that writes a register which an MMA in flight may read, with a message.
pub(super) fn check(func: &Func) -> Option<(OpId, String)> {
    let reads = |op: &Op| matches!(&op.kind, OpKind::Nv(NvOp::GroupMma(mma)) if mma.registers().0 > 0);
    if !func.ops.iter().any(reads) {
        return None;
    }
    let mut run = Run { func, loops: Vec::new(), wrong: None };
    run.block(func.body, Reads::new());
    run.wrong
}

/// What may be read where ways meet.
fn join(states: Vec<Reads>) -> Option<Reads> {
    states.into_iter().reduce(|mut all, other| {
        for (value, age) in other {
            all.entry(value).and_modify(|own| *own = (*own).min(age)).or_insert(age);
        }
        all
    })
}

impl Run<'_> {
    fn write(&mut self, id: OpId, values: &[Value], reads: &Reads) {
        if let Some(value) = values.iter().find(|value| reads.contains_key(value)) {
            self.wrong.get_or_insert((id, format!("{value} is written, and an MMA in flight may still read it")));
        }
    }

    /// Passes values to others; one that is passed to itself is not written.
    fn pass(&mut self, id: OpId, (from, to): (&[Value], &[Value]), reads: &Reads) {
        let written: Vec<Value> = from.iter().zip(to).filter(|(from, to)| from != to).map(|(_, to)| *to).collect();
        self.write(id, &written, reads);
    }

    fn block(&mut self, block: Block, mut reads: Reads) -> Option<Reads> {
        for id in self.func.block(block).ops.clone() {
            reads = self.op(id, reads)?;
        }
        Some(reads)
    }

    fn op(&mut self, id: OpId, mut reads: Reads) -> Option<Reads> {
        let op = self.func.op(id);
        match op.kind.family() {
            Family::Group(Grouped::Mma(mma)) => {
                self.write(id, &op.results, &reads);
                reads.extend(op.args.iter().take(mma.registers().0).map(|v| (*v, None)));
            }
            Family::Group(Grouped::Commit) => {
                reads.values_mut().for_each(|age| *age = Some(age.map_or(0, |n| (n + 1).min(OLDEST))));
            }
            // Its results are the registers of its operands.
            Family::Group(Grouped::Await(n)) => reads.retain(|_, age| age.is_none_or(|age| age < n)),
            Family::Flow(Flow::For | Flow::Loop) => return self.repeat(id, op, reads),
            Family::Flow(Flow::If | Flow::Roles(_)) => {
                self.write(id, &op.results, &reads);
                let mut ends = Vec::new();
                for arm in &op.regions {
                    if let Some(end) = self.block(*arm, reads.clone()) {
                        self.write(id, &op.results, &end);
                        ends.push(end);
                    }
                }
                return join(ends);
            }
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let at = self.loops.len().checked_sub(1 + n as usize)?;
                let leaves = matches!(op.kind, OpKind::Break(_));
                let to = if leaves { self.loops[at].results.clone() } else { self.loops[at].args.clone() };
                self.pass(id, (&op.args, &to), &reads);
                let around = &mut self.loops[at];
                if leaves {
                    around.exits.push(reads)
                } else {
                    around.next.push(reads)
                }
                return None;
            }
            Family::Flow(Flow::Return) => return None,
            // The branch around it writes its results.
            Family::Flow(Flow::Yield) => {}
            Family::Pure
            | Family::Warp
            | Family::Mark { .. }
            | Family::Access { .. }
            | Family::Matrix { .. }
            | Family::Copy(_)
            | Family::Protocol
            | Family::Order
            | Family::Group(Grouped::Plain)
            | Family::Barrier(_) => self.write(id, &op.results, &reads),
        }
        Some(reads)
    }

    fn repeat(&mut self, id: OpId, op: &Op, reads: Reads) -> Option<Reads> {
        let (func, counted) = (self.func, op.kind == OpKind::For);
        let body = *op.regions.first()?;
        let args = &func.block(body).args;
        let carried = args.get(usize::from(counted)..).unwrap_or_default().to_vec();
        let init = op.args.get(if counted { 3 } else { 0 }..).unwrap_or_default();
        self.write(id, args, &reads);
        self.pass(id, (init, &carried), &reads);
        self.write(id, &op.results, &reads);
        let results = if counted { carried.clone() } else { op.results.clone() };
        let mut head = reads;
        // This ends: numbers only fall and are bounded, and the registers are values of the function.
        loop {
            let around =
                Around { args: carried.clone(), results: results.clone(), next: Vec::new(), exits: Vec::new() };
            self.loops.push(around);
            self.block(body, head.clone());
            let Around { mut next, mut exits, .. } = self.loops.pop()?;
            next.push(head.clone());
            let all = join(next)?;
            if all == head {
                exits.extend(counted.then_some(head));
                return join(exits);
            }
            head = all;
        }
    }
}
