//! Rules 41 to 45: all roles run together to their ends, whatever the loops count to.
//!
//! * 41. A ring is filled exactly as often as each of its readers reads it, and is empty at the end. T0609
//! * 42. Nobody waits forever: for a stage that comes only after it goes on itself (T0610), or for a slot that it holds (T0611).
//! * 43. Loops and branches of the roles correspond: what one counts the others count. T0612
//! * 44. A written time is the one that the clock of the ring shows. T0614
//! * 45. A staging slot is filled again only after its store has been waited for. T0618
//!
//! This is what `docs/protocol.md` proves deadlock freedom from. Times are never unrolled: `run` says how one iteration stands
//! for all.

#![expect(clippy::wildcard_enum_match_arm, reason = "only what concerns rings is named")]

mod clock;
pub(in crate::verify) mod cyclic;
pub(in crate::verify) mod linear;
pub(in crate::verify) mod run;
pub(in crate::verify) mod state;
mod step;
pub(in crate::verify) mod values;
mod waits;

use self::run::{Fault, On, Run, Stuck, Wait};
use super::threads;
use crate::diag::Code;
use crate::ir::{Kernel, Loc, OpId, OpKind, Pipe, Ty};
use crate::verify::Error;

/// Breaks of rules 41 to 45: the first that is found.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    if kernel.pipes.is_empty() && !crate::verify::barriers::objects::any(kernel) {
        return Vec::new();
    }
    let mut run = Run::new(kernel);
    match run.all() {
        Ok(()) => Vec::new(),
        Err(fault) => {
            let report = Report { kernel, roles: threads(kernel).into_iter().map(|(name, _)| name).collect() };
            vec![run.explain(report.fault(fault))]
        }
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
            Fault::Stuck { waits, ended } => self.stuck(&waits, &ended),
            Fault::Left { pipe, filled, read } => self.left(pipe, filled, read),
            Fault::Apart { loops } => self.apart(&loops),
            Fault::Endless { role, op } if self.kernel.pipes.is_empty() => {
                let title = format!(
                    "it cannot be shown how often {} goes around this loop, in which barriers, groups or regions are used",
                    self.roles[role]
                );
                Error::new(Code::NotShown, self.loc(op), title).help("count with `for`; a loop that polls one barrier until it says so, and does nothing else, is a wait")
            }
            Fault::Early { role, op } if self.kernel.pipes.is_empty() => {
                let title = format!(
                    "it cannot be shown when {} leaves this loop early, in which barriers, groups or regions are used",
                    self.roles[role]
                );
                Error::new(Code::NotShown, self.loc(op), title).help("compute the end before the loop")
            }
            Fault::Endless { role, op } => {
                let title =
                    format!("{} uses a ring in a loop without a count: how often cannot be compared", self.roles[role]);
                Error::new(Code::RolesDiverge, self.loc(op), title)
                    .help("`for t in ring.consume(0..n)`, with the same `n` on both sides")
            }
            Fault::Early { role, op } => {
                let title =
                    format!("{} leaves a loop early in which a ring is used: the other side goes on", self.roles[role]);
                Error::new(Code::RolesDiverge, self.loc(op), title)
                    .help("compute the end before the loop, on both sides")
            }
            Fault::Staging { op, pipe } => {
                let title = format!("a slot of {} is taken again while its store may still read it", self.ring(pipe));
                Error::new(Code::StagingReused, self.loc(op), title)
                    .help("`.wait()` for the store first, or give the ring more slots")
            }
            Fault::Time { op, pipe } => {
                let title =
                    format!("the time that is written is not the one that the clock of {} shows here", self.ring(pipe));
                Error::new(Code::WrongTime, self.loc(op), title)
                    .help("leave the time out, or count every `acquire` or `ready` of the ring")
            }
            Fault::Barrier(error) | Fault::Suspect(error) => *error,
            Fault::Turn(_) | Fault::Lost => {
                let loc = self.kernel.pipes.first().map_or(Loc::default(), |p| p.loc);
                Error::new(
                    Code::RolesDiverge,
                    loc,
                    "it cannot be shown that the roles fit together: there are too many cases",
                )
                .help("make loops and branches of the roles alike")
            }
        }
    }

    /// Who waits for what, in words.
    fn waits(&self, wait: &Wait) -> String {
        let what = match wait.on {
            On::Filled(pipe) => format!("a stage of {}", self.ring(pipe)),
            On::Free(pipe) => format!("a free slot of {}", self.ring(pipe)),
            On::Phase(..) => "a barrier".to_owned(),
        };
        format!("{} waits for {what}", self.roles[wait.role])
    }

    fn stuck(&self, waits: &[Stuck], ended: &[bool]) -> Error {
        let Some(first) = waits.first() else { return self.apart(&[]) };
        // What is certainly wrong is said before who waits for whom.
        if let Some(told) = waits.iter().filter_map(|stuck| stuck.told.clone()).min_by_key(|e| e.code) {
            let others = waits.iter().filter(|s| told.code == Code::NeverCompletes && self.loc(s.wait.op) != told.site);
            return others.fold(told.clone(), |e, other| {
                let also = other.told.as_ref().map_or_else(|| self.waits(&other.wait), |t| t.title.clone());
                e.related(self.loc(other.wait.op), also)
            });
        }
        waits.iter().find_map(|stuck| self.alone(stuck, ended)).unwrap_or_else(|| {
            let mut error =
                self.error(Code::WaitCycle, &first.wait, format!("{}, and nobody can go on", self.waits(&first.wait)));
            for other in &waits[1..] {
                error = error.related(self.loc(other.wait.op), self.waits(&other.wait));
            }
            if let (Some((op, _)), Some(role)) = (first.behind, first.provider) {
                let what = if matches!(first.wait.on, On::Filled(_)) {
                    "fills it only after this loop"
                } else {
                    "frees it only after this loop"
                };
                error = error.related(self.loc(op), format!("{} {what}", self.roles[role]));
            }
            error.help("fill and read rings in one order in all roles, or give them more slots")
        })
    }

    /// A wait that is wrong by itself, whatever the others do.
    fn alone(&self, stuck: &Stuck, ended: &[bool]) -> Option<Error> {
        let wait = &stuck.wait;
        let (filled, pipe) = match wait.on {
            On::Filled(pipe) => (true, pipe),
            On::Free(pipe) => (false, pipe),
            On::Phase(..) => return None,
        };
        let slots = self.kernel.pipe(pipe).map_or(0, |p| p.slots as usize);
        let what = self.waits(wait);
        let same_end = "let both sides count to the same end, also if that is zero";
        if stuck.holds >= slots.max(1) {
            let all = if slots == 1 { "the only one".to_owned() } else { format!("all {slots}") };
            let help = "give a stage back before the next one is needed, or give the ring more slots";
            return Some(self.error(Code::TooManyHeld, wait, format!("{what} while it holds {all}")).help(help));
        }
        if stuck.provider == Some(wait.role) {
            let (code, title, help) = if filled {
                (Code::WaitCycle, format!("{what} that it fills only later itself"), "fill a stage before it is read")
            } else {
                let title = format!("{what} that it frees only later itself: {slots} are filled and not read");
                (Code::TooManyHeld, title, "read a stage first, or give the ring more slots")
            };
            return Some(self.error(code, wait, title).help(help));
        }
        let provider = stuck.provider?;
        let verbs = if filled { ["fills", "read", "filled"] } else { ["gives back", "filled", "read"] };
        if ended[provider] {
            let title =
                format!("{what} that nobody {}: it is {} more often than it is {}", verbs[0], verbs[1], verbs[2]);
            return Some(self.error(Code::Unbalanced, wait, title).help(same_end));
        }
        match stuck.behind {
            Some((op, true)) => {
                let title = format!(
                    "{what} that nobody {} in this iteration: it is {} more often than it is {}",
                    verbs[0], verbs[1], verbs[2]
                );
                let error = self.error(Code::Unbalanced, wait, title);
                Some(error.related(self.loc(op), format!("the loop of {}", self.roles[provider])).help(same_end))
            }
            Some((_, false)) | None => None,
        }
    }

    fn error(&self, code: Code, wait: &Wait, title: String) -> Error {
        let error = Error::new(code, self.loc(wait.op), title);
        match wait.on {
            On::Filled(pipe) | On::Free(pipe) => {
                error.related(self.kernel.pipe(pipe).map_or(Loc::default(), |p| p.loc), "the ring")
            }
            On::Phase(..) => error,
        }
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
            error = error.related(decl.loc, "the ring");
            let read = self.last(pipe, false);
            if read != Loc::default() {
                error = error.related(read, "it is read here");
            }
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
                format!(
                    "it cannot be shown that the loop of {} runs as often as that of {}",
                    self.roles[*role], self.roles[*other]
                )
            }
            Some(_) | None => {
                let what = if self.kernel.pipes.is_empty() { "a barrier or its memory" } else { "a ring" };
                format!("each iteration of this loop of {} leaves {what} in another state", self.roles[*role])
            }
        };
        let mut error = Error::new(Code::RolesDiverge, self.loc(*op), title);
        for (other, op) in rest {
            error = error.related(self.loc(*op), format!("the loop of {}", self.roles[*other]));
        }
        error.help("let the roles loop over the same ranges, computed before they part")
    }
}
