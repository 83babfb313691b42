//! Messages about barriers and memory.

#![expect(clippy::wildcard_enum_match_arm, reason = "only these dialects are named")]

use super::super::pipes::joint::run::{Fault, On, Run, Wait};
use super::super::pipes::joint::state::State;
use super::machine::{Pending, Record, What};
use crate::diag::Code;
use crate::ir::traffic::{On as Touches, traffic};
use crate::ir::{AmdOp, Class, NvOp, OpId, OpKind, RegionOp};
use crate::verify::Error;
use crate::verify::pipes::threads;

/// Whether an operation brings something from device memory.
pub(super) fn is_copy(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Nv(NvOp::BulkLoad { .. } | NvOp::CpAsync { .. }) | OpKind::Amd(AmdOp::BufferLoadLds { .. }))
}

/// How many bytes an operation touches, if it says.
pub(super) fn bytes_of(kind: &OpKind) -> Option<u64> {
    match kind {
        OpKind::Nv(NvOp::BulkLoad { bytes, .. } | NvOp::BulkStore { bytes, .. } | NvOp::CpAsync { bytes })
        | OpKind::Amd(AmdOp::BufferLoadLds { bytes, .. }) => Some(u64::from(*bytes)),
        _ => None,
    }
}

/// What an access does.
pub(super) fn does(kind: &OpKind) -> &'static str {
    match kind {
        OpKind::Nv(NvOp::BulkLoad { .. } | NvOp::CpAsync { .. }) | OpKind::Amd(AmdOp::BufferLoadLds { .. }) => {
            "is copied to"
        }
        OpKind::Nv(NvOp::BulkStore { .. }) => "is stored from",
        OpKind::Nv(NvOp::Wgmma) => "is read by a product",
        OpKind::Region(RegionOp::Call(_)) => "is touched by a call",
        OpKind::Region(RegionOp::Write)
        | OpKind::Amd(AmdOp::DsWrite { .. })
        | OpKind::Nv(NvOp::MbarrierInit { .. } | NvOp::MbarrierInval) => "is written",
        _ => "is read",
    }
}

/// What may still be the case; the role if it is another one.
fn may(kind: &OpKind, role: Option<&str>) -> String {
    let of = role.map_or(String::new(), |r| format!(" of {r}"));
    match (does(kind), role) {
        ("is copied to", _) => format!("a copy{of} into it may still be under way"),
        ("is stored from", _) => format!("a store{of} may still read it"),
        ("is read by a product", _) => format!("a product{of} may still read it"),
        ("is touched by a call", _) => format!("a call{of} may still touch it"),
        ("is written", Some(role)) => format!("{role} may still write it"),
        ("is written", None) => "it may still be written".to_owned(),
        (_, Some(role)) => format!("{role} may still read it"),
        (_, None) => "it may still be read".to_owned(),
    }
}

/// An access, named.
pub(super) fn access(kind: &OpKind, name: &str) -> String {
    match does(kind) {
        "is copied to" => format!("a copy into {name}"),
        "is stored from" => format!("a store from {name}"),
        "is read by a product" => format!("a product that reads {name}"),
        "is touched by a call" => format!("a call that touches {name}"),
        "is written" => format!("a write to {name}"),
        _ => format!("a read of {name}"),
    }
}

/// How the mnemonics of a class begin, and what they name a count.
const fn wait_of(class: Class) -> &'static str {
    match class {
        Class::CpAsync => "ttg.nv.cp_async.wait_group {n = ",
        Class::Wgmma => "ttg.nv.wgmma.wait_group {n = ",
        Class::BulkStore => "ttg.nv.bulk_group.wait {n = ",
        Class::Vmcnt => "ttg.amd.s_waitcnt {vmcnt = ",
        Class::Lgkmcnt => "ttg.amd.s_waitcnt {lgkmcnt = ",
    }
}

/// What an access does to a tensor.
pub(super) fn does_outside(kind: &OpKind) -> &'static str {
    let own = traffic(kind).accesses.into_iter().flatten().find(|a| a.on == Touches::Tensor);
    match (kind, own.map(|a| (a.reads, a.writes))) {
        (OpKind::Nv(NvOp::BulkStore { .. }), _) => "is stored to",
        (OpKind::Nv(NvOp::BulkLoad { .. } | NvOp::CpAsync { .. }) | OpKind::Amd(AmdOp::BufferLoadLds { .. }), _) => {
            "is copied from"
        }
        (_, Some((true, true))) => "is updated",
        (_, Some((_, true))) => "is written",
        (_, _) => "is read",
    }
}

/// An access to a tensor, named.
pub(super) fn access_outside(kind: &OpKind, name: &str) -> String {
    match does_outside(kind) {
        "is stored to" => format!("a store to {name}"),
        "is copied from" => format!("a copy from {name}"),
        "is updated" => format!("an update of {name}"),
        "is written" => format!("a write to {name}"),
        _ => format!("a read of {name}"),
    }
}

impl Run<'_> {
    pub(super) fn role_name(&self, role: usize) -> String {
        threads(self.kernel).get(role).map_or_else(|| "the kernel".to_owned(), |(name, _)| name.clone())
    }

    /// Memory is touched while something may still touch it.
    pub(super) fn in_flight(&self, state: &State, (role, id): (usize, OpId), name: &str, other: &Record) -> Error {
        let (op, before) = (self.kernel.op(id), self.kernel.op(other.op));
        let What::Access { pending, copy, .. } = other.what else { return Error::new(Code::InFlight, op.loc, "") };
        let whose = Some(self.role_name(other.role)).filter(|_| other.role != role);
        let title = format!("{name} {} while {}", does(&op.kind), may(&before.kind, whose.as_deref()));
        let (code, title, help) = match pending {
            Pending::Group(class, None) if other.role == role => (
                Code::GroupOpen,
                format!("{title}: its group is not closed, so no wait ends it"),
                format!("close the group of `{class}`, and wait for it"),
            ),
            Pending::Group(class, Some(n)) if other.role == role => {
                let younger = state.machine.issued(role, class) - n;
                (Code::InFlight, title, format!("`{}{younger}}}` waits for it here", wait_of(class)))
            }
            Pending::Group(class, _) => {
                let who = self.role_name(other.role);
                (
                    Code::InFlight,
                    title,
                    format!(
                        "let {who} wait for its group of `{class}` before it arrives at a barrier, and wait for that"
                    ),
                )
            }
            Pending::Phase(barrier, _) => {
                (Code::InFlight, title, format!("wait for {} first", self.objects.barriers[barrier].name))
            }
            Pending::Done => match other.carriers().next() {
                Some(barrier) if copy => {
                    (Code::InFlight, title, format!("wait for {} first", self.objects.barriers[barrier].name))
                }
                Some(barrier) => {
                    let barrier = &self.objects.barriers[barrier].name;
                    (
                        Code::InFlight,
                        title,
                        format!(
                            "wait for the phase of {barrier} at which {} arrives after it",
                            self.role_name(other.role)
                        ),
                    )
                }
                None => {
                    let who = self.role_name(other.role);
                    (Code::InFlight, title, format!("let {who} arrive at a barrier after it, and wait for that"))
                }
            },
        };
        Error::new(code, op.loc, title).related(before.loc, access(&before.kind, name)).help(help)
    }

    /// What is to be said of a wait that does not end.
    pub(in crate::verify) fn incomplete(&self, state: &State, wait: &Wait) -> Option<Error> {
        let On::Phase(barrier, time) = wait.on else { return None };
        let (own, loc) = (&self.objects.barriers[barrier], self.kernel.op(wait.op).loc);
        let (name, role) = (&own.name, self.role_name(wait.role));
        let phase = state.machine.phase(barrier, time);
        let made = self.kernel.op(own.op).loc;
        let error = |code: Code, title: String| Error::new(code, loc, title);
        if phase.arrived >= own.count && phase.expected > phase.copied {
            let title = format!(
                "{name} is told of {} bytes, but copies bring {}: {role} waits forever",
                phase.expected, phase.copied
            );
            return Some(error(Code::TxBytes, title).help("announce the bytes of the copies of a phase, no more"));
        }
        if phase.arrived > 0 {
            let comes = if phase.arrived == 1 { "1 comes".to_owned() } else { format!("{} come", phase.arrived) };
            let title = format!("{name} counts {} arrivals a phase, but {comes}: {role} waits forever", own.count);
            let last = phase.last.map(|op| self.kernel.op(op).loc);
            let error = error(Code::BarrierCount, title).related(made, "the barrier");
            return Some(last.map_or(error.clone(), |at| error.related(at, "the last arrival")));
        }
        let serves = |r: usize| {
            !state.roles[r].frames.is_empty()
                && threads(self.kernel).get(r).is_some_and(|(_, b)| self.objects.serves(self.kernel, *b, barrier))
        };
        if !(0..state.roles.len()).any(serves) {
            let title = format!("{role} waits for a phase of {name}, and nobody arrives there any more");
            return Some(error(Code::NeverCompletes, title).related(made, "the barrier"));
        }
        let first = state.machine.last(barrier, time.rem_euclid(own.n), own.n) < 0;
        let title = format!("{role} waits for a phase of {name}, and nobody can go on");
        let help = if first {
            "the phase before the first counts as complete: whoever waits for a slot that was never used starts with parity 1"
        } else {
            "let everybody wait for what the others do before, not after"
        };
        Some(error(Code::NeverCompletes, title).related(made, "the barrier").help(help))
    }

    /// At the end nothing is under way.
    pub(in crate::verify) fn ended(&self, state: &State) -> Result<(), Fault> {
        for record in &state.machine.records {
            let What::Access { memory, copy, pending, .. } = record.what else { continue };
            let (op, name) = (self.kernel.op(record.op), &self.objects.memories[memory].name);
            let (what, role) = (access(&op.kind, name), self.role_name(record.role));
            let error = match pending {
                Pending::Group(class, None) if class != Class::Vmcnt && class != Class::Lgkmcnt => {
                    let title = format!("{what} is in a group of `{class}` that is never closed: no wait ends it");
                    Error::new(Code::GroupOpen, op.loc, title)
                        .help(format!("commit the group, and `{}0}}` before the end of {role}", wait_of(class)))
                }
                Pending::Group(class, _) => {
                    let title = format!("{what} may be under way when {role} ends");
                    Error::new(Code::UnderWay, op.loc, title).help(format!("`{}0}}` before the end", wait_of(class)))
                }
                Pending::Phase(barrier, _) => {
                    let barrier = &self.objects.barriers[barrier].name;
                    let title = format!(
                        "{what} may be under way at the end: the phase of {barrier} that it belongs to does not complete"
                    );
                    Error::new(Code::UnderWay, op.loc, title)
                }
                Pending::Done if copy && record.known == 0 => {
                    let title = format!("{what} may be under way at the end: nobody waits for it");
                    Error::new(Code::UnderWay, op.loc, title).help("wait for every copy that is started")
                }
                Pending::Done => continue,
            };
            return Err(Fault::Barrier(Box::new(error)));
        }
        Ok(())
    }
}
