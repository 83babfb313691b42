//! Messages about barriers and memory.

use super::super::run::{Fault, On, Run, Wait};
use super::super::state::State;
use super::event::At;
use super::lives::MAX_COUNT;
use super::machine::{By, Pending, Record, What, Wrong};
use super::objects::Place;
use super::tensor::Words;
use crate::diag::Code;
use crate::ir::traffic::{On as Touches, traffic};
use crate::ir::{AmdOp, Class, LocalOp, NvOp, OpId, OpKind, RegionOp, Stated, Tcgen05Op};
use crate::verify::Error;
use crate::verify::roles::threads;

/// A number of arrivals, in words.
pub(in crate::verify) fn arrivals(n: u32) -> String {
    if n == 1 { "1 arrival".to_owned() } else { format!("{n} arrivals") }
}

/// Whether an operation copies from device memory to shared memory.
pub(in crate::verify) fn is_copy(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Nv(NvOp::BulkLoad { .. } | NvOp::CpAsync { .. }) | OpKind::Amd(AmdOp::BufferLoadLds { .. }))
}

/// The number of bytes that an operation accesses, if it states it.
pub(in crate::verify) fn bytes_of(kind: &OpKind) -> Option<u64> {
    if let Stated::Copies { bytes, .. } = kind.stated() { Some(u64::from(bytes)) } else { None }
}

/// The verb of an access to shared memory.
pub(in crate::verify) fn does(kind: &OpKind) -> &'static str {
    let writes = traffic(kind).accesses.into_iter().flatten().any(|a| a.on != Touches::Tensor && a.writes);
    if is_copy(kind) || matches!(kind, OpKind::Local(LocalOp::Copy { .. })) {
        "is copied to"
    } else if matches!(kind, OpKind::Nv(NvOp::BulkStore { .. })) {
        "is stored from"
    } else if matches!(kind, OpKind::Nv(NvOp::Wgmma | NvOp::Tcgen05(Tcgen05Op::Mma(_)))) {
        "is read by an MMA"
    } else if matches!(kind, OpKind::Region(RegionOp::Call(_))) {
        "is accessed by a call"
    } else if writes {
        "is written"
    } else {
        "is read"
    }
}

/// The earlier access that may not be complete, in words; with its role if that is another one.
fn may(kind: &OpKind, role: Option<&str>) -> String {
    let of = role.map_or(String::new(), |r| format!(" of {r}"));
    match (does(kind), role) {
        ("is copied to", _) => format!("a copy{of} into it may still be in flight"),
        ("is stored from", _) => format!("a store{of} may still read it"),
        ("is read by an MMA", _) => format!("an MMA{of} may still read it"),
        ("is accessed by a call", _) => format!("a call{of} may still access it"),
        ("is written", Some(role)) => format!("{role} may still write it"),
        ("is written", None) => "it may still be written".to_owned(),
        (_, Some(role)) => format!("{role} may still read it"),
        (_, None) => "it may still be read".to_owned(),
    }
}

/// An access to shared memory as a noun.
pub(in crate::verify) fn access(kind: &OpKind, name: &str) -> String {
    match does(kind) {
        "is copied to" => format!("a copy into {name}"),
        "is stored from" => format!("a store from {name}"),
        "is read by an MMA" => format!("an MMA that reads {name}"),
        "is accessed by a call" => format!("a call that accesses {name}"),
        "is written" => format!("a write to {name}"),
        _ => format!("a read of {name}"),
    }
}

/// The wait of a class for all but `n` groups.
fn wait_of(class: Class, n: impl std::fmt::Display) -> String {
    match class {
        Class::CpAsync => format!("`ttg.nv.cp_async.wait_group {{n = {n}}}`"),
        Class::Wgmma => format!("`ttg.nv.wgmma.wait_group {{n = {n}}}`"),
        Class::BulkStore => format!("`ttg.nv.bulk_group.wait {{n = {n}}}`"),
        Class::Tcgen05 => "wait for the barrier of its `ttg.nv.tcgen05.commit`".to_owned(),
        Class::Vmcnt => format!("`ttg.amd.s_waitcnt {{vmcnt = {n}}}`"),
        Class::Lgkmcnt => format!("`ttg.amd.s_waitcnt {{lgkmcnt = {n}}}`"),
    }
}

/// The help for work of a class that is not committed.
fn committed(class: Class) -> String {
    if class == Class::Tcgen05 {
        "`ttg.nv.tcgen05.commit` after it, wait for the barrier of that, and then `fence_after_thread_sync`".to_owned()
    } else {
        format!("commit the group of `{class}`, and wait for it")
    }
}

/// The wait for the loads or stores of tensor memory.
const fn wait_of_moves(pending: Pending) -> &'static str {
    if matches!(pending, Pending::Loads) { "`ttg.nv.tcgen05.wait_ld`" } else { "`ttg.nv.tcgen05.wait_st`" }
}

/// The verb of an access to a tensor.
pub(in crate::verify) fn does_outside(kind: &OpKind) -> &'static str {
    let own = traffic(kind).accesses.into_iter().flatten().find(|a| a.on == Touches::Tensor);
    match (kind, own.map(|a| (a.reads, a.writes))) {
        (OpKind::Nv(NvOp::BulkStore { .. }), _) => "is stored to",
        (
            OpKind::Nv(NvOp::BulkLoad { .. } | NvOp::CpAsync { .. })
            | OpKind::Local(LocalOp::Copy { .. })
            | OpKind::Amd(AmdOp::BufferLoadLds { .. }),
            _,
        ) => "is copied from",
        (_, Some((true, true))) => "is updated",
        (_, Some((_, true))) => "is written",
        (_, _) => "is read",
    }
}

/// An access to a tensor as a noun.
pub(in crate::verify) fn access_outside(kind: &OpKind, name: &str) -> String {
    match does_outside(kind) {
        "is stored to" => format!("a store to {name}"),
        "is copied from" => format!("a copy from {name}"),
        "is updated" => format!("an update of {name}"),
        "is written" => format!("a write to {name}"),
        _ => format!("a read of {name}"),
    }
}

/// The earlier access to an output that may not be complete, in words; with its role if that is another one.
fn may_outside(kind: &OpKind, role: Option<&str>) -> String {
    let who = role.unwrap_or("the role itself");
    let of = role.map_or(String::new(), |r| format!(" of {r}"));
    match does_outside(kind) {
        "is stored to" => format!("a bulk store{of} to it may still be in flight"),
        "is read" | "is copied from" => format!("{who} may still read it"),
        _ => format!("{who} may still write it"),
    }
}

/// Turns an error of an arbitrary iteration into the statement of a possibility, because no arguments are known for which it occurs.
pub(in crate::verify) fn unproven(mut error: Error) -> Fault {
    const PREFIX: &str = "it could not be ruled out that ";
    let hedged = ["could not be", " may "].iter().any(|word| error.title.contains(word));
    if error.code != Code::NotShown && !hedged {
        error.title = format!("{PREFIX}{}", error.title);
    }
    Fault::Barrier(Box::new(error))
}

impl Run<'_> {
    pub(super) fn role_name(&self, role: usize) -> String {
        threads(self.kernel).get(role).map_or_else(|| "the kernel".to_owned(), |(name, _)| name.clone())
    }

    /// The error for an access that conflicts with one that may still be in flight.
    pub(super) fn in_flight(&self, state: &State, (role, id): (usize, OpId), access: &What, other: &Record) -> Error {
        let (op, before) = (self.kernel.op(id), self.kernel.op(other.op));
        let (What::Access { memory, write, .. }, What::Access { memory: theirs, write: wrote, pending, by, .. }) =
            (access, other.what)
        else {
            return Error::new(Code::InFlight, op.loc, "");
        };
        let own = &self.objects.memories[*memory];
        let whose = Some(self.role_name(other.role)).filter(|_| other.role != role);
        let whose = whose.as_deref();
        let (verb, may, first) = match own.place {
            Place::Output => {
                (does_outside(&op.kind), may_outside(&before.kind, whose), access_outside(&before.kind, &own.name))
            }
            Place::Tensor => {
                let earlier = Words::of(&before.kind, wrote);
                (Words::of(&op.kind, *write).does, earlier.may(whose), earlier.access(&own.name))
            }
            Place::Shared(..) => {
                let first = self::access(&before.kind, &self.objects.memories[theirs].name);
                (does(&op.kind), may(&before.kind, whose), first)
            }
        };
        let title = format!("{} {verb} while {may}", own.name);
        if let Some((missing, help)) = self.missing_fence(role, other) {
            let error = Error::new(Code::TensorUnfenced, op.loc, format!("{title}: {missing}"));
            return error.related(before.loc, first).help(help);
        }
        let (code, title, help) = match pending {
            Pending::Group(class, None) if other.role == role => (
                Code::GroupOpen,
                format!(
                    "{title}: {} is not committed, so no wait covers it",
                    if class == Class::Tcgen05 { "that" } else { "its group" }
                ),
                committed(class),
            ),
            Pending::Group(class, Some(n)) if other.role == role => {
                let younger = state.machine.issued(role, class) - n;
                let written = if by == By::BulkStore { ", read = false" } else { "" };
                let wait = wait_of(class, format_args!("{younger}{written}"));
                (Code::InFlight, title, format!("{wait} waits for it here"))
            }
            Pending::Group(class, _) => {
                let who = self.role_name(other.role);
                let help = if class == Class::Tcgen05 {
                    format!(
                        "`ttg.nv.tcgen05.commit` in {who} after it, wait for the barrier of that, and then `fence_after_thread_sync`"
                    )
                } else {
                    format!(
                        "let {who} wait for its group of `{class}` before it arrives at a barrier, and wait for that"
                    )
                };
                (Code::InFlight, title, help)
            }
            Pending::Phase(barrier, _) => {
                (Code::InFlight, title, format!("wait for {} first", self.objects.barriers[barrier].name))
            }
            Pending::Loads | Pending::Stores => {
                let wait = wait_of_moves(pending);
                let help = if other.role == role {
                    format!("{wait} before this")
                } else {
                    let who = self.role_name(other.role);
                    format!("{wait} in {who} before it arrives at a barrier, and wait for that")
                };
                (Code::InFlight, title, help)
            }
            Pending::Done if other.fences.held => {
                let who = self.role_name(other.role);
                let help = format!(
                    "let {who} wait for it and execute `ttg.nv.tcgen05.fence_before_thread_sync` before it arrives at a barrier, and wait for that"
                );
                (Code::InFlight, title, help)
            }
            Pending::Done => (Code::InFlight, title, self.ordered_by(other, by == By::Copy)),
        };
        Error::new(code, op.loc, title).related(before.loc, first).help(help)
    }

    /// The suggestion how to order an access after another one.
    fn ordered_by(&self, other: &Record, copy: bool) -> String {
        let who = self.role_name(other.role);
        match other.carriers().next().map(|barrier| &self.objects.barriers[barrier].name) {
            Some(barrier) if copy => format!("wait for {barrier} first"),
            Some(barrier) => format!("wait for the phase of {barrier} at which {who} arrives after it"),
            None => format!("let {who} arrive at a barrier after it, and wait for that"),
        }
    }

    /// The error for an arrival, or a copy, whose role has not observed the completion of the previous phase.
    pub(super) fn unordered(&self, at: At<'_>, name: &str, copies: bool) -> Error {
        if copies {
            let title = format!("the bytes of this copy may be counted in the wrong phase of {name}");
            return Error::new(Code::TxBytes, at.op.loc, title).help(
                "expect (`expect_tx`) the bytes of all copies of a phase, and issue the copies after the previous phase is complete",
            );
        }
        let role = self.role_name(at.role);
        let title =
            format!("{role} may arrive at {name} before its previous phase completes, and be counted in that phase");
        Error::new(Code::PhaseMixed, at.op.loc, title)
            .help("wait for that phase first, or for an event that comes after it")
    }

    /// The error for a faulty phase.
    pub(super) fn wrong(&self, at: At<'_>, barrier: usize, wrong: &Wrong) -> Error {
        let (own, loc) = (&self.objects.barriers[barrier], at.op.loc);
        let (name, made) = (&own.name, self.kernel.op(own.op).loc);
        match wrong {
            Wrong::TooMany { arrived } => {
                let title = format!("{name} counts {} per phase, but there are {arrived}", arrivals(own.count));
                Error::new(Code::BarrierCount, loc, title).related(made, "the barrier")
            }
            Wrong::MoreBytes { expected, copied } => {
                let title = format!(
                    "{name} expects {expected} bytes (expect_tx), but its copies transfer {copied}: its phase completes before all of them have landed"
                );
                Error::new(Code::TxBytes, loc, title).help("expect (`expect_tx`) the bytes of all copies of a phase")
            }
            Wrong::Lapped { waiting } => {
                let role = self.role_name(waiting.role);
                let title = format!(
                    "{name} may complete its next phase while {role} still waits for the previous one: that wait would then pass only after yet another phase"
                );
                Error::new(Code::PhaseMixed, loc, title).related(self.kernel.op(waiting.op).loc, "the wait").help(
                    format!("let {role} arrive at a barrier after its wait, and wait for that before this arrival"),
                )
            }
            Wrong::Bare { announced } => {
                let (role, op) = (self.role_name(announced.role), self.kernel.op(announced.op));
                let copies = matches!(op.kind, OpKind::Nv(NvOp::CpAsyncArrive { .. }));
                let does = if copies { "raises the count of" } else { "adds bytes (expect_tx) to" };
                let title = format!(
                    "{role} {does} {name}, but no arrival of that phase is ordered after it: the phase may complete first"
                );
                let error = Error::new(Code::PhaseMixed, loc, title);
                let error = if op.loc == loc {
                    error
                } else {
                    error.related(op.loc, "the `expect_tx` or the arrival of copies")
                };
                error.help("use `ttg.nv.mbarrier.arrive_expect_tx`, or order an arrival after this")
            }
        }
    }

    /// The error for copies that raise the arrival count of a barrier beyond its maximum.
    pub(super) fn raised_too_far(&self, at: At<'_>, barrier: usize, counted: u32) -> Error {
        let own = &self.objects.barriers[barrier];
        let title = format!(
            "copies raise the arrival count of {} to {counted}: an mbarrier counts at most {MAX_COUNT}",
            own.name
        );
        Error::new(Code::BarrierCount, at.op.loc, title)
            .related(self.kernel.op(own.op).loc, "the barrier")
            .help("count their arrivals in `init` and write `noinc = true`, or wait for a phase in between")
    }

    /// The error for expected bytes of one phase that exceed the maximum transaction count.
    pub(super) fn too_many_bytes(&self, at: At<'_>, barrier: usize, expected: u64) -> Error {
        let own = &self.objects.barriers[barrier];
        let title = format!(
            "one phase of {} expects {expected} bytes (expect_tx): the transaction count of an mbarrier is at most {MAX_COUNT}",
            own.name
        );
        Error::new(Code::TxBytes, at.op.loc, title).related(self.kernel.op(own.op).loc, "the barrier")
    }

    /// The error for a wait that does not terminate. `certain` says that this happens for some arguments.
    pub(in crate::verify) fn incomplete(&self, state: &State, wait: &Wait, certain: bool) -> Option<Error> {
        let On::Phase(barrier, time) = wait.on else { return None };
        let (own, loc) = (&self.objects.barriers[barrier], self.kernel.op(wait.op).loc);
        let (name, role) = (&own.name, self.role_name(wait.role));
        let phase = state.machine.phase(barrier, time);
        let made = self.kernel.op(own.op).loc;
        let error = |code: Code, title: String| Error::new(code, loc, title).related(made, "the barrier");
        if !certain {
            let title = format!("this wait of {role} for a phase of {name} could not be shown to terminate");
            return Some(error(Code::NeverCompletes, title).help(
                "the roles are compared loop by loop: give their loops the same structure and the same bounds, computed in the same way",
            ));
        }
        if phase.arrived >= own.count && phase.expected > phase.copied {
            let title = format!(
                "{name} expects {} bytes (expect_tx), but its copies transfer {}: {role} waits forever",
                phase.expected, phase.copied
            );
            return Some(
                Error::new(Code::TxBytes, loc, title)
                    .help("expect exactly the bytes that the copies of a phase transfer"),
            );
        }
        if phase.arrived > 0 {
            let are = if phase.arrived == 1 { "is" } else { "are" };
            let title = format!(
                "{name} counts {} per phase, but there {are} {}: {role} waits forever",
                arrivals(own.count),
                phase.arrived
            );
            let error = error(Code::BarrierCount, title);
            return Some(match phase.last {
                Some(op) => error.related(self.kernel.op(op).loc, "the last arrival"),
                None => error,
            });
        }
        let title = format!("deadlock: {role} waits for a phase of {name}");
        let serves = |r: usize| {
            !state.roles[r].frames.is_empty()
                && threads(self.kernel).get(r).is_some_and(|(_, b)| self.objects.serves(self.kernel, *b, barrier))
        };
        if !(0..state.roles.len()).any(serves) {
            return Some(error(Code::NeverCompletes, format!("{title}, at which no role arrives any more")));
        }
        let first = state.machine.last(barrier, time.rem_euclid(own.n), own.n) < 0;
        let help = if first {
            "the phase before the first counts as complete: the first wait for a free slot has parity 1"
        } else {
            "order the roles so that no role waits for an arrival that comes only after its own progress"
        };
        Some(error(Code::NeverCompletes, title).help(help))
    }

    /// Checks that no asynchronous operation is in flight at the end.
    pub(in crate::verify) fn ended(&self, state: &State) -> Result<(), Fault> {
        for record in &state.machine.records {
            let What::Access { memory, write, by, pending, .. } = record.what else { continue };
            // A program ends only after its stores have written, if their regions exist until they have been read.
            let (op, name) = (self.kernel.op(record.op), &self.objects.memories[memory].name);
            let what = match self.objects.memories[memory].place {
                Place::Output => continue,
                Place::Tensor => Words::of(&op.kind, write).access(name),
                Place::Shared(..) => access(&op.kind, name),
            };
            let role = self.role_name(record.role);
            let error = match pending {
                Pending::Group(class, None) if class != Class::Vmcnt && class != Class::Lgkmcnt => {
                    let title = format!("{what} is in a group of `{class}` that is never committed: no wait covers it");
                    Error::new(Code::GroupOpen, op.loc, title)
                        .help(format!("commit the group, and {} before the end of {role}", wait_of(class, 0)))
                }
                Pending::Group(class, _) => {
                    let title = format!("{what} may still be in flight when {role} ends");
                    Error::new(Code::InFlightAtEnd, op.loc, title).help(format!("{} before the end", wait_of(class, 0)))
                }
                Pending::Phase(barrier, _) => {
                    let barrier = &self.objects.barriers[barrier].name;
                    let title = format!(
                        "{what} may still be in flight at the end: the phase of {barrier} that it belongs to does not complete"
                    );
                    Error::new(Code::InFlightAtEnd, op.loc, title)
                }
                Pending::Loads | Pending::Stores => {
                    let title = format!("{what} may still be in flight when {role} ends");
                    Error::new(Code::InFlightAtEnd, op.loc, title)
                        .help(format!("{} before the end", wait_of_moves(pending)))
                }
                Pending::Done if by == By::Copy && record.known == 0 => {
                    let title = format!("{what} may still be in flight at the end: no role waits for it");
                    Error::new(Code::InFlightAtEnd, op.loc, title).help("wait for every copy")
                }
                Pending::Done => continue,
            };
            return Err(Fault::Barrier(Box::new(error)));
        }
        Ok(())
    }
}
