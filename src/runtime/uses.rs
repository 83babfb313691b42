//! The table of the work that uses a buffer, which determines for which work new work must wait.
//!
//! **The invariant of the runtime: when memory may be accessed and freed.**
//!
//! 1. *Work* is a launch, a copy by the host, or the use of lent memory by a foreign stream. Each has an
//!    [`Event`], its end, and is entered, in one step, in the tables of all buffers that it uses.
//! 2. Work accesses memory only after all earlier work in those tables has ended that accesses the same bytes, if one of the two
//!    writes them: its device waits for that, or its thread does.
//! 3. Therefore the end of work implies the end of the work for which it had to wait, and an entry may *replace* earlier ones of
//!    which it covers every byte: a wait for it is a wait for them. Work that accesses no byte waits for no other work, and no work
//!    waits for it, so it replaces nothing and is not replaced: the allocation of memory without elements is such an entry, and must
//!    have ended before the memory is freed.
//! 4. This holds for work that runs. A device may still reject a launch that has been entered, and a launch whose input has failed
//!    does not run at all; neither waits for anything. So such an entry is *open* until the work is enqueued on the device, and
//!    replaces nothing until then. If the device rejects the launch, it counts as never made: its caller gets the error, and later
//!    work finds the earlier entries, as before.
//! 5. An entry leaves the table when its work has ended and there is nothing to report, or when a later entry replaces it.
//! 6. A launch that a host thread runs owns handles to its memory until it has run. A launch that a device runs asynchronously owns
//!    none: the table of a dropped buffer has the last work on it, and the device frees the memory after that. A launch that is being
//!    enqueued keeps its buffers alive, so their tables are complete by then.

use super::buffer::Access;
use super::event::{Event, Standing};
use super::footprint::Footprint;
use crate::error::Error;

/// The work that uses a buffer, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Uses(Vec<Use>);

#[derive(Debug)]
struct Use {
    footprint: Footprint,
    write: bool,
    event: Event,
    /// Whether the work is not known to run, so that the entry replaces no earlier ones.
    open: bool,
}

/// Earlier work for which new work must wait.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) event: Event,
    /// Whether data that it writes is used, so that its failure matters.
    pub(crate) carries: bool,
}

/// The first of this work that failed to write data that is used, reported or not.
pub(crate) fn first_failure(waits: &[Dependency]) -> Option<(&Event, Error)> {
    waits.iter().filter(|d| d.carries).find_map(|d| d.event.error().map(|error| (&d.event, error)))
}

impl Uses {
    /// The table of a new buffer of this many bytes, which may be used after `ready`.
    pub(crate) fn new(bytes: usize, ready: Option<Event>) -> Uses {
        let first = ready.map(|event| Use { footprint: Footprint::whole(bytes), write: true, event, open: false });
        Uses(first.into_iter().collect())
    }

    /// The ends of the work in the table.
    #[cfg(any(feature = "cpu", feature = "_remote"))]
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.0.iter().map(|used| &used.event)
    }

    /// The number of entries.
    #[cfg(feature = "_remote")]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the work for which new work with this access must wait. If `whole`, every byte counts as accessed.
    pub(crate) fn conflicts(&self, access: &Access, whole: bool, waits: &mut Vec<Dependency>) {
        for earlier in self.0.iter().filter(|u| u.write || access.write) {
            let meets = earlier.footprint.overlaps(&access.footprint);
            if whole || meets {
                waits.push(Dependency { event: earlier.event.clone(), carries: earlier.write && meets });
            }
        }
    }

    /// Enters work that waits for all its conflicts.
    pub(crate) fn enter(&mut self, access: &Access, event: &Event) {
        let entry = Use { footprint: access.footprint, write: access.write, event: event.clone(), open: true };
        self.0.push(entry);
        self.close(self.0.len() - 1);
    }

    /// Removes entries that are no longer needed.
    pub(crate) fn tidy(&mut self) {
        let mut at = 0;
        while at < self.0.len() {
            at = if self.0[at].open { self.close(at) } else { at } + 1;
        }
        self.0.retain(|u| !u.event.is_forgettable());
    }

    /// Lets an open entry replace earlier ones, as far as it may now. Returns its new index.
    fn close(&mut self, at: usize) -> usize {
        let standing = self.0[at].event.standing();
        let replaceable = |earlier: &Use| match standing {
            Standing::Open | Standing::Refused => false,
            Standing::Runs => true,
            // Skipped work waits for nothing, so it may replace only work that has ended.
            Standing::Skipped => earlier.event.has_ended(),
        };
        if !self.0[..at].iter().any(|earlier| replaceable(earlier) && self.0[at].replaces(earlier)) {
            self.0[at].open = standing != Standing::Runs;
            return at;
        }
        let mut rest = self.0.split_off(at);
        self.0.retain(|earlier| !(replaceable(earlier) && rest[0].replaces(earlier)));
        rest[0].open = standing != Standing::Runs;
        let at = self.0.len();
        self.0.append(&mut rest);
        at
    }
}

impl Use {
    /// Whether a wait for this work, which runs, is also a wait for the earlier one.
    fn replaces(&self, earlier: &Use) -> bool {
        let waits = self.write || (!earlier.write && self.event.follows_in_queue(&earlier.event));
        waits && !earlier.footprint.is_empty() && self.footprint.covers(&earlier.footprint)
    }
}
