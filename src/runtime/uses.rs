//! Which work uses a buffer, and what new work must wait for.
//!
//! **The invariant of the runtime: who may touch and free what, when.**
//!
//! 1. *Work* is a launch, a copy by the host, or what somebody else's stream does with memory that was lent. Each has an
//!    [`Event`], its end, and is entered, in one step, in the tables of all buffers that it uses.
//! 2. Work touches memory only after all earlier work in those tables has ended that touches the same bytes, one of the two
//!    writing them: its device waits for that, or its thread does.
//! 3. Therefore the end of work implies the end of what it had to wait for, and an entry may *replace* earlier ones of which
//!    it covers every byte: who waits for it waits for them. What touches no byte waits for nothing and nothing waits for it,
//!    so it replaces nothing and is not replaced: of memory without elements, the allocation is such an entry, and must have
//!    ended before the memory is freed.
//! 4. That holds for work that runs. A device may still refuse a launch that has been entered, and one whose input has failed
//!    does not run at all; neither waits for anything. So such an entry is *open* until the device has the work, and replaces
//!    nothing until then. If the device refuses the launch, it is as if it had never been made: its caller is told, and later
//!    work sees the earlier entries, as before.
//! 5. An entry leaves the table when its work has ended and there is nothing to report, or when a later entry replaces it.
//! 6. A launch that a thread of the host runs owns handles to its memory until it has run. A launch that a device runs by
//!    itself owns none: the table of a buffer that is dropped names the last work on it, and the device frees the memory
//!    after that. A launch on its way to the device keeps its buffers, so their tables are complete by then.

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
    /// Whether it is not known to run, and replaces nothing.
    open: bool,
}

/// Earlier work to wait for.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) event: Event,
    /// Whether what it wrote is used, so that its failure matters.
    pub(crate) carries: bool,
}

/// The first of this work that failed to write what is used, whether or not that was reported.
pub(crate) fn first_failure(waits: &[Dependency]) -> Option<(&Event, Error)> {
    waits.iter().filter(|d| d.carries).find_map(|d| d.event.error().map(|error| (&d.event, error)))
}

impl Uses {
    /// Of a new buffer of so many bytes, which may be used after `ready`.
    pub(crate) fn new(bytes: usize, ready: Option<Event>) -> Uses {
        let first = ready.map(|event| Use { footprint: Footprint::whole(bytes), write: true, event, open: false });
        Uses(first.into_iter().collect())
    }

    /// The ends of the work.
    #[cfg(feature = "_remote")]
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.0.iter().map(|used| &used.event)
    }

    /// How many entries there are.
    #[cfg(feature = "_remote")]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// What new work with this access must wait for. If `whole`, every byte counts as touched.
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

    /// Removes entries that say nothing any more.
    pub(crate) fn tidy(&mut self) {
        let mut at = 0;
        while at < self.0.len() {
            at = if self.0[at].open { self.close(at) } else { at } + 1;
        }
        self.0.retain(|u| !u.event.is_forgettable());
    }

    /// Lets an open entry replace earlier ones, as far as it may by now. Gives its new index.
    fn close(&mut self, at: usize) -> usize {
        let standing = self.0[at].event.standing();
        let replaceable = |earlier: &Use| match standing {
            Standing::Open | Standing::Refused => false,
            Standing::Runs => true,
            // It waits for nothing; but what has ended, has.
            Standing::Skipped => earlier.event.has_ended(),
        };
        let mut rest = self.0.split_off(at);
        self.0.retain(|earlier| !(replaceable(earlier) && rest[0].replaces(earlier)));
        rest[0].open = standing != Standing::Runs;
        let at = self.0.len();
        self.0.append(&mut rest);
        at
    }
}

impl Use {
    /// Whether who waits for this work, which runs, waits for the earlier one as well.
    fn replaces(&self, earlier: &Use) -> bool {
        let waits = self.write || (!earlier.write && self.event.follows_in_queue(&earlier.event));
        waits && !earlier.footprint.is_empty() && self.footprint.covers(&earlier.footprint)
    }
}
