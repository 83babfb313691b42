//! The errors of co-execution. A fault that occurs for concrete arguments is reported as certain, with these arguments; all other faults
//! are reported as properties that could not be proved.

use super::example::Example;
use super::fault::{Fault, On, Stuck, Wait};
use super::linear::Linear;
use super::run::Run;
use crate::diag::Code;
use crate::ir::{Kernel, Loc, OpId, OpKind, Pipe, TtgOp, Ty};
use crate::verify::roles::threads;
use crate::verify::{Error, defect};

pub(super) struct Report<'r, 'k> {
    run: &'r Run<'k>,
    kernel: &'k Kernel,
    roles: Vec<String>,
    /// Arguments for which the fault occurs.
    example: Option<Example>,
}

/// Help for loops that differ.
const SAME_COUNT: &str = "let both loops execute the same number of iterations, also if that is zero";

impl<'r, 'k> Report<'r, 'k> {
    pub(super) fn new(run: &'r Run<'k>, example: Option<Example>) -> Self {
        let roles = threads(run.kernel).into_iter().map(|(name, _)| name).collect();
        Report { run, kernel: run.kernel, roles, example }
    }

    fn loc(&self, op: OpId) -> Loc {
        self.kernel.op(op).loc
    }

    fn ring(&self, pipe: Pipe) -> String {
        format!("`{}`", self.kernel.pipe_name(pipe))
    }

    /// A title, with the arguments for which the fault occurs.
    fn when(&self, title: &str) -> String {
        match self.example.as_ref().map(|e| e.words(self.kernel)).filter(|words| !words.is_empty()) {
            Some(words) => format!("{title}, for example when {words}"),
            None => title.to_owned(),
        }
    }

    pub(super) fn fault(&self, fault: Fault) -> Error {
        let barriers = self.kernel.pipes.is_empty();
        match fault {
            Fault::Stuck { waits, ended } => self.stuck(&waits, &ended),
            Fault::Left { pipe, filled, read } => self.left(pipe, filled, read),
            Fault::Apart { loops } => self.apart(&loops),
            Fault::Endless { role, op } if barriers => {
                let title = format!(
                    "it could not be shown how many iterations {} executes of this loop, which uses barriers, groups or regions",
                    self.roles[role]
                );
                Error::new(Code::NotShown, self.loc(op), title)
                    .help("use a counted `for`; a loop that only polls one barrier until its phase completes is a wait")
            }
            Fault::Early { role, op } => {
                let title = format!(
                    "it could not be shown when {} leaves this loop early, which uses barriers, groups or regions",
                    self.roles[role]
                );
                Error::new(Code::NotShown, self.loc(op), title).help("compute the end before the loop")
            }
            Fault::Endless { role, op } => {
                let title = format!(
                    "{} uses a ring in a loop without an iteration count, so it could not be shown how often",
                    self.roles[role]
                );
                Error::new(Code::RolesDiverge, self.loc(op), title).help(self.counted(op))
            }
            Fault::Claim { op, what } => Error::new(Code::NotShown, self.loc(op), what),
            Fault::Staging { op, pipe } => {
                let ring = self.ring(pipe);
                let title = if self.example.is_some() {
                    self.when(&format!("a slot of {ring} is acquired again before the store from it was waited for"))
                } else {
                    format!(
                        "it could not be shown that the store from a slot of {ring} was waited for before the slot is acquired again"
                    )
                };
                Error::new(Code::StagingReused, self.loc(op), title)
                    .help("`.wait()` for the store first, or give the ring more slots")
            }
            Fault::Time { op, pipe, wrong } => {
                let ring = self.ring(pipe);
                let title = if wrong {
                    self.when(&format!("the stated time is not the time of {ring} at this point"))
                } else {
                    format!("it could not be shown that the stated time is the time of {ring} at this point")
                };
                Error::new(Code::WrongTime, self.loc(op), title).help(
                    "leave the time out, or count every `acquire` or `ready` of the ring from the start of the kernel: the time of a ring never restarts",
                )
            }
            Fault::Barrier(error) => *error,
            Fault::Defect { op, what } => defect(self.loc(op), what),
            Fault::Lost => {
                let loc = self.kernel.pipes.first().map_or(Loc::default(), |p| p.loc);
                Error::new(
                    Code::RolesDiverge,
                    loc,
                    "it could not be shown that the roles fill and read the rings equally often: there are too many cases",
                )
                .help("give the roles the same loops and branches, on the same conditions")
            }
        }
    }

    /// What to write instead of a loop without an iteration count.
    fn counted(&self, looped: OpId) -> String {
        let (mut filled, mut read) = (None, None);
        for region in &self.kernel.op(looped).regions {
            self.kernel.walk_block(*region, &mut |_, op| {
                if let OpKind::Ttg(TtgOp::Acquire(pipe)) = op.kind {
                    filled = filled.or(Some(pipe));
                }
                if let OpKind::Ttg(TtgOp::Ready(pipe)) = op.kind {
                    read = read.or(Some(pipe));
                }
            });
        }
        let (pipe, side) = match (filled, read) {
            (Some(pipe), None) => (pipe, "produce"),
            (None, Some(pipe)) => (pipe, "consume"),
            (Some(_), Some(_)) | (None, None) => {
                return "`for t in 0..n`, with an `n` that is known before the loop".to_owned();
            }
        };
        format!("`for t in {}.{side}(0..n)`, with the same `n` on both sides", self.kernel.pipe_name(pipe))
    }

    /// The event for which a role waits, in words.
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
        // A certain error takes precedence over the description of a deadlock.
        if let Some(told) = waits.iter().filter_map(|stuck| stuck.told.clone()).min_by_key(|e| e.code) {
            let others = waits.iter().filter(|s| told.code == Code::NeverCompletes && self.loc(s.wait.op) != told.site);
            let first = if self.example.is_some() {
                Error { title: self.when(&told.title), ..told.clone() }
            } else {
                told.clone()
            };
            return others.fold(first, |e, other| {
                let told = other.told.as_ref().map(|t| t.title.trim_start_matches("deadlock: ").to_owned());
                let also = told.unwrap_or_else(|| self.waits(&other.wait));
                e.related(self.loc(other.wait.op), also)
            });
        }
        if self.example.is_none() {
            return self.open(waits, ended);
        }
        waits.iter().find_map(|stuck| self.alone(stuck, ended)).unwrap_or_else(|| {
            let title = self.when(&format!("deadlock: {}", self.waits(&first.wait)));
            self.behind(self.error(Code::WaitCycle, &first.wait, title), waits)
                .help("fill and read rings in the same order in all roles, or give them more slots")
        })
    }

    /// Adds the other waiting roles, and the loops after which the operations are for which they wait.
    fn behind(&self, error: Error, waits: &[Stuck]) -> Error {
        let Some((first, others)) = waits.split_first() else { return error };
        let waiting = |stuck: &Stuck| match self.full(stuck) {
            Some((_, held)) => format!("{}, and may hold {held}", self.waits(&stuck.wait)),
            None => self.waits(&stuck.wait),
        };
        let error = others.iter().fold(error, |e, other| e.related(self.loc(other.wait.op), waiting(other)));
        let (Some((op, _)), Some(role)) = (first.behind, first.provider) else { return error };
        let verb = if matches!(first.wait.on, On::Filled(_)) { "fills" } else { "releases" };
        error.related(self.loc(op), format!("{} {verb} it only after this loop", self.roles[role]))
    }

    /// The error for a wait that could not be shown to terminate.
    fn open(&self, waits: &[Stuck], ended: &[bool]) -> Error {
        let Some(stuck) = waits.first() else { return self.apart(&[]) };
        let wait = &stuck.wait;
        let (Some(provider), On::Filled(pipe) | On::Free(pipe)) = (stuck.provider, wait.on) else {
            let title = format!("this wait of {} could not be shown to terminate", self.roles[wait.role]);
            return self.behind(Error::new(Code::NotShown, self.loc(wait.op), title), waits);
        };
        let (filled, ring) = (matches!(wait.on, On::Filled(_)), self.ring(pipe));
        let (own, other) = if filled { ("reads", "fills") } else { ("fills", "reads") };
        let title = if provider != wait.role && (ended[provider] || matches!(stuck.behind, Some((_, true)))) {
            format!(
                "it could not be shown that {} {own} {ring} as often as {} {other} it",
                self.roles[wait.role], self.roles[provider]
            )
        } else {
            format!(
                "the wait of {} for {} could not be shown to terminate",
                self.roles[wait.role],
                if filled { format!("a stage of {ring}") } else { format!("a free slot of {ring}") }
            )
        };
        let error = self.behind(self.error(Code::RolesDiverge, wait, title), waits);
        match waits.iter().find_map(|stuck| Some((stuck, self.full(stuck)?))) {
            Some((stuck, (pipe, held))) => {
                let error = if stuck.wait == *wait {
                    error.related(self.loc(wait.op), format!("{} may hold {held}", self.roles[wait.role]))
                } else {
                    error
                };
                error.help(self.more_slots(pipe, stuck))
            }
            None => error.help(
                "give both roles the same loops and branches, with the same bounds and conditions, computed before the roles are split",
            ),
        }
    }

    /// The ring of which a waiting role holds all slots, with these in words. In a case that was tried for a proof, which may be impossible
    /// for every launch, a role only may hold them.
    fn full(&self, stuck: &Stuck) -> Option<(Pipe, String)> {
        let (On::Filled(pipe) | On::Free(pipe)) = stuck.wait.on else { return None };
        let slots = self.kernel.pipe(pipe).map_or(0, |p| p.slots as usize).max(1);
        let held = if slots == 1 { "its only slot".to_owned() } else { format!("all {slots} of its slots") };
        (stuck.holds >= slots).then_some((pipe, held))
    }

    /// The error for a wait that can never terminate, whatever the other roles do.
    fn alone(&self, stuck: &Stuck, ended: &[bool]) -> Option<Error> {
        let wait = &stuck.wait;
        let (filled, pipe) = match wait.on {
            On::Filled(pipe) => (true, pipe),
            On::Free(pipe) => (false, pipe),
            On::Phase(..) => return None,
        };
        let slots = self.kernel.pipe(pipe).map_or(0, |p| p.slots as usize);
        let what = self.waits(wait);
        if stuck.holds >= slots.max(1) {
            let all = if slots == 1 { "the only one".to_owned() } else { format!("all {slots}") };
            let title = self.when(&format!("{what} while it holds {all}"));
            return Some(self.error(Code::TooManyHeld, wait, title).help(self.more_slots(pipe, stuck)));
        }
        if stuck.provider == Some(wait.role) {
            let (code, title, help) = if filled {
                (Code::WaitCycle, format!("{what} that it fills only later itself"), "fill a stage before it is read")
            } else {
                let all = if slots == 1 { "the only one is".to_owned() } else { format!("all {slots} are") };
                let title = format!("{what} that it releases only later itself: {all} filled and not read");
                (Code::TooManyHeld, title, "read a stage first, or give the ring more slots")
            };
            return Some(self.error(code, wait, self.when(&title)).help(help));
        }
        let provider = stuck.provider?;
        let verbs = if filled { ["fills", "read", "filled"] } else { ["releases", "filled", "read"] };
        let often = format!(
            "{what} that {} never {}: it is {} more often than it is {}",
            self.roles[provider], verbs[0], verbs[1], verbs[2]
        );
        if ended[provider] {
            return Some(self.error(Code::Unbalanced, wait, self.when(&often)).help(SAME_COUNT));
        }
        match stuck.behind {
            Some((op, true)) => {
                let error = self.error(Code::Unbalanced, wait, self.when(&often));
                Some(error.related(self.loc(op), format!("the loop of {}", self.roles[provider])).help(SAME_COUNT))
            }
            Some((_, false)) | None => None,
        }
    }

    /// The help for a role that waits while it holds all slots of a ring. It needs one slot more than it holds at once.
    fn more_slots(&self, pipe: Pipe, stuck: &Stuck) -> String {
        let (ring, least) = (self.ring(pipe), stuck.holds + stuck.may_hold.unwrap_or(0) + 1);
        match stuck.may_hold {
            Some(_) => format!(
                "give {ring} at least {least} slots: an accumulator `Acc<.., KEEP>` holds the stages of up to KEEP MMAs while the next stage is waited for"
            ),
            None => format!("release a stage before the next one is needed, or give {ring} at least {least} slots"),
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
        let (code, title) = match filled - read {
            _ if self.example.is_none() => {
                (Code::RolesDiverge, format!("it could not be shown that {ring} is read as often as it is filled"))
            }
            1 => (Code::Unbalanced, self.when(&format!("{ring} is filled once more than it is read"))),
            more @ 2.. => (Code::Unbalanced, self.when(&format!("{ring} is filled {more} times more than it is read"))),
            _ => (Code::Unbalanced, self.when(&format!("{ring} is not empty at the end"))),
        };
        let mut error = Error::new(code, self.last(pipe, true), title);
        if let Some(decl) = self.kernel.pipe(pipe) {
            error = error.related(decl.loc, "the ring");
            let read = self.last(pipe, false);
            if read != Loc::default() {
                error = error.related(read, "it is read here");
            }
        }
        let (fills, reads) = (self.ops(pipe, true), self.ops(pipe, false));
        let in_one_block = |ops: &[(OpId, Loc)]| {
            self.kernel.blocks.iter().any(|block| ops.iter().all(|(id, _)| block.ops.contains(id)))
        };
        error.help(if fills.len() != reads.len() && in_one_block(&fills) && in_one_block(&reads) {
            format!("fill {ring} as often as it is read: equally often in each iteration, and in the same number of iterations")
        } else {
            SAME_COUNT.to_owned()
        })
    }

    /// The last operation that fills or reads a ring.
    fn last(&self, pipe: Pipe, fills: bool) -> Loc {
        self.ops(pipe, fills).last().map_or_else(Loc::default, |(_, loc)| *loc)
    }

    /// The operations that fill or read a ring, in order.
    fn ops(&self, pipe: Pipe, fills: bool) -> Vec<(OpId, Loc)> {
        let mut found = Vec::new();
        self.kernel.walk(&mut |id, op| {
            let fills_it = matches!(op.kind, OpKind::Ttg(TtgOp::Acquire(_)));
            let side = fills_it == fills && (fills_it || matches!(op.kind, OpKind::Ttg(TtgOp::Ready(_))));
            let own = op.results.first().map(|v| self.kernel.ty(*v));
            if side && matches!(own, Some(Ty::Token(_, p)) if p == pipe) {
                found.push((id, op.loc));
            }
        });
        found
    }

    /// The error for loops for which the induction failed.
    fn apart(&self, loops: &[(usize, OpId, Linear)]) -> Error {
        let Some(((role, op, left), rest)) = loops.split_first() else {
            let title = "it could not be shown that the roles fill and read the rings equally often";
            return Error::new(Code::RolesDiverge, Loc::default(), title);
        };
        let differs = rest.iter().find(|(_, _, other)| other != left);
        let title = match differs {
            Some((other, _, times)) => {
                let counts = self.number(left).zip(self.number(times));
                let counts = counts.map(|(a, b)| format!(": `{a}` and `{b}` times")).unwrap_or_default();
                format!(
                    "it could not be shown that this loop of {} executes as many iterations as that of {}{counts}",
                    self.roles[*role], self.roles[*other]
                )
            }
            None => {
                let what = if self.kernel.pipes.is_empty() { "a barrier or its memory" } else { "the rings" };
                format!(
                    "it could not be shown that each iteration of this loop of {} leaves {what} in the state in which it found {}",
                    self.roles[*role],
                    if self.kernel.pipes.is_empty() { "it" } else { "them" }
                )
            }
        };
        let mut error = Error::new(Code::RolesDiverge, self.loc(*op), title);
        for (other, op, _) in rest {
            error = error.related(self.loc(*op), format!("the loop of {}", self.roles[*other]));
        }
        error.help("let the roles loop over the same ranges, computed before the roles are split")
    }

    /// A number with the user's names, if it is a function of arguments.
    fn number(&self, l: &Linear) -> Option<String> {
        let mut text = String::new();
        self.run.symbols.expression(l)?.write(&mut text, &self.kernel.sig).ok()?;
        Some(text)
    }
}
