//! The accesses of operations, and whether they are ordered.
//!
//! The accesses of an operation are kept until all pending operations, and the host, are ordered after it. A later operation with a
//! conflicting access must have it in its clock.

use super::queue::Queue;
use crate::clock::{Clock, OpId};
use titan_nv::emu::{Ranges, Touched};

/// The accesses of an operation.
#[derive(Debug)]
struct Mark {
    op: OpId,
    stream: u64,
    context: u64,
    label: String,
    touched: Touched,
}

/// The accesses of all recorded operations.
#[derive(Debug)]
pub(crate) struct Trace {
    marks: Vec<Mark>,
}

/// An operation as the trace identifies it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who<'a> {
    pub(crate) op: OpId,
    pub(crate) stream: u64,
    pub(crate) context: u64,
    pub(crate) label: &'a str,
    pub(crate) clock: &'a Clock,
}

/// Two conflicting accesses that are not ordered.
#[derive(Debug)]
pub(crate) struct Conflict {
    pub(crate) text: String,
    /// The first byte that both access.
    pub(crate) address: u64,
}

impl Trace {
    pub(super) const fn new() -> Trace {
        Trace { marks: Vec::new() }
    }

    /// Whether no recorded access can conflict with later ones.
    pub(super) const fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Removes accesses that are ordered before everything pending and all later operations.
    pub(super) fn forget(&mut self, host: &Clock, queue: &Queue) {
        self.marks.retain(|m| !(host.knows(m.stream, m.op) && queue.clocks().all(|c| c.knows(m.stream, m.op))));
    }

    /// Adds all operations of a context to a clock.
    pub(super) fn teach(&self, context: u64, clock: &mut Clock) {
        self.marks.iter().filter(|m| m.context == context).for_each(|m| clock.learn(m.stream, m.op));
    }

    /// The first conflict of new accesses with recorded ones.
    pub(super) fn conflict(&self, label: &str, clock: &Clock, touched: &Touched) -> Option<Conflict> {
        self.marks.iter().filter(|m| !clock.knows(m.stream, m.op)).find_map(|m| {
            let (now, before, (start, end)) = clash(touched, &m.touched)?;
            let bytes = end - start;
            let text = format!(
                "unordered accesses to {bytes} bytes at {start:#x}:\n  {label} {now},\n  {} {before}, and \
                 nothing orders the two: no event that is waited for, no synchronisation, no stream in common",
                m.label
            );
            Some(Conflict { text, address: start })
        })
    }

    /// Records accesses.
    pub(super) fn note(&mut self, who: Who<'_>, touched: Touched) {
        let nothing = |r: &Ranges| r.iter().next().is_none();
        if !(nothing(&touched.reads) && nothing(&touched.writes) && nothing(&touched.strong)) {
            let Who { op, stream, context, label, .. } = who;
            self.marks.push(Mark { op, stream, context, label: label.to_owned(), touched });
        }
    }
}

/// The kinds of two accesses that conflict, and the bytes; `None` if they do not.
fn clash(now: &Touched, before: &Touched) -> Option<(&'static str, &'static str, (u64, u64))> {
    const READS: &str = "reads them";
    const WRITES: &str = "writes them";
    const STRONG: &str = "changes them by atomic operations";
    let pairs = [
        (&now.writes, WRITES, &before.writes, WRITES),
        (&now.writes, WRITES, &before.reads, READS),
        (&now.reads, READS, &before.writes, WRITES),
        (&now.strong, STRONG, &before.writes, WRITES),
        (&now.strong, STRONG, &before.reads, READS),
        (&now.writes, WRITES, &before.strong, STRONG),
        (&now.reads, READS, &before.strong, STRONG),
    ];
    pairs.into_iter().find_map(|(a, what, b, other)| a.overlap(b).map(|both| (what, other, both)))
}

/// An access that reads these bytes.
pub(crate) fn reading(address: u64, bytes: u64) -> Touched {
    Touched { reads: Ranges::one(address, bytes), ..Touched::default() }
}

/// An access that writes these bytes.
pub(crate) fn writing(address: u64, bytes: u64) -> Touched {
    Touched { writes: Ranges::one(address, bytes), ..Touched::default() }
}
