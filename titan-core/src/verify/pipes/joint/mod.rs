//! Rules 39 to 42: all roles run together to their ends, whatever the loops count to.
//!
//! * 39. A ring is filled exactly as often as each of its readers reads it, and is empty at the end. T0609
//! * 40. Nobody waits forever: for a stage that comes only after it goes on itself (T0610), or for a slot that it holds (T0611).
//! * 41. Loops and branches of the roles correspond: what one counts the others count. T0612
//! * 42. A written time is the one that the clock of the ring shows. T0614 A staging slot is filled again only after its store
//!   has been waited for. T0618
//!
//! This is what `docs/protocol.md` proves deadlock freedom from. Times are never unrolled: `run` says how one iteration stands
//! for all.

mod linear;
mod run;
mod state;
mod step;
mod values;

use self::run::{Fault, Run, Wait};
use super::threads;
use crate::diag::Code;
use crate::ir::{Kernel, Loc, OpId, OpKind, Pipe, Ty};
use crate::verify::Error;

/// Breaks of rules 39 to 42: the first that is found.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    if kernel.pipes.is_empty() {
        return Vec::new();
    }
    match Run::new(kernel).all() {
        Ok(()) => Vec::new(),
        Err(fault) => vec![Report { kernel, roles: threads(kernel).into_iter().map(|(name, _)| name).collect() }.fault(fault)],
    }
}

struct Report<'k> {
    kernel: &'k Kernel,
    roles: Vec<String>,
}

impl Report<'_> {
    fn loc(&self, op: OpId) -> Loc {
        self.kernel.op(op).loc
    }

    fn ring(&self, pipe: Pipe) -> String {
        format!("`{}`", self.kernel.pipe_name(pipe))
    }

    fn fault(&self, fault: Fault) -> Error {
        match fault {
            Fault::Stuck { waits, ended, held, .. } => self.stuck(&waits, &ended, &held),
            Fault::Left { pipe, filled, read } => self.left(pipe, filled, read),
            Fault::Apart { loops } => self.apart(&loops),
            Fault::Endless { role, op } => {
                let title = format!("{} uses a ring in a loop without a count: how often cannot be compared", self.roles[role]);
                Error::new(Code::RolesDiverge, self.loc(op), title).help("`for t in ring.consume(0..n)`, with the same `n` on both sides")
            }
            Fault::Early { role, op } => {
                let title = format!("{} leaves a loop early in which a ring is used: the other side goes on", self.roles[role]);
                Error::new(Code::RolesDiverge, self.loc(op), title).help("compute the end before the loop, on both sides")
            }
            Fault::Staging { op, pipe } => {
                let title = format!("a slot of {} is taken again while its store may still read it", self.ring(pipe));
                Error::new(Code::StagingReused, self.loc(op), title).help("`.wait()` for the store first, or give the ring more slots")
            }
            Fault::Time { op, pipe } => {
                let title = format!("the time that is written is not the one that the clock of {} shows here", self.ring(pipe));
                Error::new(Code::WrongTime, self.loc(op), title).help("leave the time out, or count every `acquire` or `ready` of the ring")
            }
            Fault::Turn(_) | Fault::Lost => {
                let loc = self.kernel.pipes.first().map_or(Loc::default(), |p| p.loc);
                Error::new(Code::RolesDiverge, loc, "it cannot be shown that the roles fit together: there are too many cases")
                    .help("make loops and branches of the roles alike")
            }
        }
    }

    /// Who waits for what, in words.
    fn waits(&self, wait: &Wait) -> String {
        let what = if wait.filled { "a stage" } else { "a free slot" };
        format!("{} waits for {what} of {}", self.roles[wait.role], self.ring(wait.pipe))
    }

    fn stuck(&self, waits: &[Wait], ended: &[bool], held: &[(usize, Pipe, usize)]) -> Error {
        let Some(first) = waits.first() else { return self.apart(&[]) };
        // What nobody will do any more is the clearest.
        for wait in waits {
            let others = (0..ended.len()).filter(|r| *r != wait.role);
            let alone = others.clone().all(|r| ended[r]) && ended.len() > 1;
            let slots = self.kernel.pipe(wait.pipe).map_or(0, |p| p.slots as usize);
            let holds = held.iter().find(|(r, p, _)| (*r, *p) == (wait.role, wait.pipe)).map_or(0, |(_, _, n)| *n);
            if alone && wait.filled {
                let title = format!("{} that nobody fills: it is read more often than it is filled", self.waits(wait));
                return self.error(Code::Unbalanced, wait, title).help("let both sides count to the same end, also if that is zero");
            }
            if alone && holds < slots {
                let title = format!("{} that nobody gives back: it is filled more often than it is read", self.waits(wait));
                return self.error(Code::Unbalanced, wait, title).help("let both sides count to the same end, also if that is zero");
            }
            if holds >= slots.max(1) {
                let title = format!("{} while it holds {}", self.waits(wait), if slots == 1 { "the only one".to_owned() } else { format!("all {slots}") });
                let help = "give a stage back before the next one is needed, or give the ring more slots";
                return self.error(Code::TooManyHeld, wait, title).help(help);
            }
        }
        let mut error = self.error(Code::WaitCycle, first, format!("{}, and nobody can go on", self.waits(first)));
        for other in &waits[1..] {
            error = error.related(self.loc(other.op), self.waits(other));
        }
        for (role, ended) in ended.iter().enumerate().filter(|(_, ended)| **ended) {
            debug_assert!(ended);
            error = error.help(format!("{} has ended by then", self.roles[role]));
        }
        error.help("fill and read rings in one order in all roles, or give them more slots")
    }

    fn error(&self, code: Code, wait: &Wait, title: String) -> Error {
        let made = self.kernel.pipe(wait.pipe).map_or(Loc::default(), |p| p.loc);
        Error::new(code, self.loc(wait.op), title).related(made, "the ring")
    }

    fn left(&self, pipe: Pipe, filled: i64, read: i64) -> Error {
        let ring = self.ring(pipe);
        let more = filled - read;
        let title = match more {
            1 => format!("{ring} is filled once more than it is read"),
            2.. => format!("{ring} is filled {more} times more than it is read"),
            _ => format!("{ring} is not empty at the end"),
        };
        let mut error = Error::new(Code::Unbalanced, self.last(pipe, true), title);
        if let Some(decl) = self.kernel.pipe(pipe) {
            error = error.related(decl.loc, "the ring").related(self.last(pipe, false), "it is read here");
        }
        error.help("let both sides count to the same end")
    }

    /// The last place at which a ring is filled or read.
    fn last(&self, pipe: Pipe, fills: bool) -> Loc {
        let mut loc = Loc::default();
        self.kernel.walk(&mut |_, op| {
            let own = op.results.first().map(|v| self.kernel.ty(*v));
            let OpKind::Ttg(ttg) = &op.kind else { return };
            let side = match ttg {
                crate::ir::TtgOp::Acquire(_) => fills,
                crate::ir::TtgOp::Ready(_) => !fills,
                _ => false,
            };
            if side && matches!(own, Some(Ty::Token(_, p)) if p == pipe) {
                loc = op.loc;
            }
        });
        loc
    }

    fn apart(&self, loops: &[(usize, OpId)]) -> Error {
        let Some(((role, op), rest)) = loops.split_first() else {
            return Error::new(Code::RolesDiverge, Loc::default(), "it cannot be shown that the roles fit together");
        };
        let title = match rest.first() {
            Some((other, _)) if self.roles[*other] != self.roles[*role] => {
                format!("it cannot be shown that the loop of {} runs as often as that of {}", self.roles[*role], self.roles[*other])
            }
            Some(_) | None => format!("each iteration of this loop of {} leaves a ring in another state", self.roles[*role]),
        };
        let mut error = Error::new(Code::RolesDiverge, self.loc(*op), title);
        for (other, op) in rest {
            error = error.related(self.loc(*op), format!("the loop of {}", self.roles[*other]));
        }
        error.help("let the roles loop over the same ranges, computed before they part")
    }
}
