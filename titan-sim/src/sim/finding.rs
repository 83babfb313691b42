//! The findings of a run, in the kernel's own names, and the schedules that reproduce them.

use crate::engine::OpId as Pending;
use std::fmt;
use titan_core::ir::Loc;

/// A choice that a schedule makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    /// An agent executes this number of operations.
    Run {
        /// The agent: `cta · (1 + roles)` is the program's own thread, followed by its roles.
        agent: u32,
        /// The number of operations of the IR.
        ops: u32,
    },
    /// An asynchronous operation completes; they are numbered in the order of their issue.
    Complete(Pending),
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Run { agent, ops } => write!(f, "{agent}:{ops}"),
            Choice::Complete(op) => write!(f, "c{}", op.index()),
        }
    }
}

/// All choices of a run of one cluster of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The index of the cluster in the grid, axis 0 first. The clusters before it run in turn.
    pub cluster: u32,
    /// The choices, in order. After the last one agents run in turn, and operations complete as late as possible.
    pub choices: Vec<Choice>,
}

impl fmt::Display for Schedule {
    /// `cluster/choice,choice,…`, which [`Schedule::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.cluster)?;
        for (i, choice) in self.choices.iter().enumerate() {
            write!(f, "{}{choice}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Schedule {
    /// Parses the form that `Display` writes; `None` if the text does not have it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Schedule> {
        let (cluster, rest) = text.split_once('/')?;
        let one = |c: &str| match c.strip_prefix('c') {
            Some(op) => op.parse::<u32>().ok().map(|op| Choice::Complete(Pending::new(op as usize))),
            None => {
                let (agent, ops) = c.split_once(':')?;
                Some(Choice::Run { agent: agent.parse().ok()?, ops: ops.parse().ok()? })
            }
        };
        let choices = rest.split(',').filter(|c| !c.is_empty()).map(one).collect::<Option<_>>()?;
        Some(Schedule { cluster: cluster.parse().ok()?, choices })
    }

    /// Records that an agent executed operations, merged with the choice before if it is the same agent's.
    pub(super) fn ran(&mut self, agent: usize, ops: u32) {
        let agent = u32::try_from(agent).unwrap_or(u32::MAX);
        if let Some(Choice::Run { agent: last, ops: n }) = self.choices.last_mut()
            && *last == agent
        {
            *n = n.saturating_add(ops);
            return;
        }
        self.choices.push(Choice::Run { agent, ops });
    }
}

/// The kind of a finding. Its code words are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A deadlock: no agent can make progress.
    Deadlock,
    /// Two accesses that nothing orders, one of them a write.
    Race,
    /// A read of bytes that were never written.
    Undefined,
    /// A read of a stage that was released, or whose slot holds another ring time.
    Stale,
    /// An invalid use of a barrier.
    Barrier,
    /// A wrong number of participants of a named or cluster barrier, or of registers.
    Participants,
    /// Columns of tensor memory that cannot be allocated, or are used or left wrongly; an MMA that does not exist.
    TensorMemory,
    /// An access to bytes, parts or barriers out of bounds.
    Bounds,
    /// The kernel traps: in `assert`, `get`, `set`, `segment` or `ragged`.
    Trap,
    /// A role ends with asynchronous work in flight.
    InFlight,
    /// A ring is not empty at the end of its program.
    Unbalanced,
    /// A token is used twice, or is not valid at this time.
    Token,
    /// A stated ring time differs from the clock of the ring.
    Time,
    /// The expected bytes (`expect_tx`) differ from those that the copies transfer.
    Bytes,
    /// Accesses through two proxies without a fence between them.
    Fence,
    /// An invalid declaration of rings, roles or regions.
    Declaration,
    /// The limit on steps was reached.
    Steps,
    /// The kernel uses something that the simulator does not model.
    NotModelled,
}

impl Kind {
    /// The code word, for tools and tests.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Kind::Deadlock => "deadlock",
            Kind::Race => "race",
            Kind::Undefined => "undefined",
            Kind::Stale => "stale",
            Kind::Barrier => "barrier",
            Kind::Participants => "participants",
            Kind::TensorMemory => "tensor-memory",
            Kind::Bounds => "bounds",
            Kind::Trap => "trap",
            Kind::InFlight => "in-flight",
            Kind::Unbalanced => "unbalanced",
            Kind::Token => "token",
            Kind::Time => "time",
            Kind::Bytes => "bytes",
            Kind::Fence => "fence",
            Kind::Declaration => "declaration",
            Kind::Steps => "steps",
            Kind::NotModelled => "not-modelled",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A participant of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Side {
    /// The object that it accesses or waits for: a ring, a region, a barrier, a tensor; empty if there is none.
    pub what: String,
    /// The slot of a ring, or the part of a region.
    pub stage: Option<u64>,
    /// The ring time of the stage.
    pub time: Option<u64>,
    /// The role, with its program if there are several.
    pub role: String,
    /// The mnemonic of the operation.
    pub op: &'static str,
    /// Whether this is an asynchronous operation in flight, not the role itself.
    pub helper: bool,
    /// The source location of the operation.
    pub loc: Loc,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {}", self.op, self.role)?;
        if self.helper {
            f.write_str(", in flight")?;
        }
        if !self.what.is_empty() {
            write!(f, ", on `{}`", self.what)?;
        }
        if let Some(stage) = self.stage {
            write!(f, " slot {stage}")?;
        }
        if let Some(time) = self.time {
            write!(f, " at time {time}")?;
        }
        if self.loc.line > 0 {
            write!(f, " ({}:{})", self.loc.line, self.loc.column)?;
        }
        Ok(())
    }
}

/// An error that was found by a run or by the model checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of the error.
    pub kind: Kind,
    /// The message of the error.
    pub message: String,
    /// The participants: for a race the later access first, for a deadlock every waiting agent.
    pub sides: Vec<Side>,
    /// The schedule that reproduces it.
    pub schedule: Schedule,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)?;
        for side in &self.sides {
            write!(f, "\n  {side}")?;
        }
        Ok(())
    }
}

/// A finding before its schedule is added.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) kind: Kind,
    pub(super) message: String,
    pub(super) sides: Vec<Side>,
}

impl Found {
    pub(super) fn new(kind: Kind, message: impl Into<String>) -> Box<Found> {
        Box::new(Found { kind, message: message.into(), sides: Vec::new() })
    }

    pub(super) fn not_modelled(what: impl fmt::Display) -> Box<Found> {
        Found::new(Kind::NotModelled, format!("not modelled: {what}"))
    }

    #[expect(clippy::unnecessary_box_returns, reason = "errors are boxed where they are made")]
    pub(super) fn side(mut self: Box<Self>, side: Side) -> Box<Found> {
        self.sides.push(side);
        self
    }

    pub(super) fn with(self, schedule: Schedule) -> Finding {
        Finding { kind: self.kind, message: self.message, sides: self.sides, schedule }
    }
}
