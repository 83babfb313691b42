//! Rule 65 for the barriers and counters of a ring: one array of each kind, with counts that match the arriving threads; and the counters set
//! to 0 once, before the roles. Rule 48 says the same of the initialisation of barriers, and asks for its fence. Deliberately absent: where they arrive, which `super` checks for each claim.

use super::{Check, Ring, wrong};
use crate::analysis::one_thread;
use crate::collections::SortedSet;
use crate::ir::{Kernel, Loc, NvOp, Op, OpId, OpKind, Pipe, Value};
use crate::verify::roles::beginning;
use crate::verify::roles::threads;

impl Check<'_> {
    /// Checks that a ring has its own barriers and counters, one array of each kind, with matching counts.
    pub(super) fn counts(&mut self, pipe: Pipe) {
        let kernel = self.kernel;
        let name = kernel.pipe_name(pipe);
        let loc = kernel.pipe(pipe).map(|p| p.loc).unwrap_or_default();
        let Some(ring) = self.rings.remove(&pipe) else { return };
        let for_all = ring.shared.is_some() || ring.released[1].is_some();
        let programs = if for_all { self.cluster() } else { 1 };
        self.released_where_copied(&name, loc, &ring);
        let mut say = |title: String| self.errors.push(wrong(loc, title));
        let others: SortedSet<Value> = self.rings.values().flat_map(Ring::objects).collect();
        let used: Vec<Value> = ring.objects().collect();
        let distinct: SortedSet<Value> = used.iter().copied().collect();
        // A barrier with two purposes counts arrivals of both, and neither phase means what its claim says.
        if distinct.len() != used.len() || used.iter().any(|v| others.contains(v)) {
            say(format!("a barrier or counter of `{name}` is also used for something else"));
        }
        let lanes = kernel.laid_out.as_deref().map_or(1, |l| l.lanes);
        let of = |roles: &SortedSet<usize>| -> u32 {
            roles.iter().filter_map(|r| kernel.roles.get(*r)).map(|r| r.warps).sum()
        };
        let bulk = ring.fills.iter().any(|by| by.bulk);
        let alone = ring.fills.iter().any(|by| by.bulk && by.threads.is_none());
        // Bulk copies alone: one thread arrives, with the bytes. Otherwise every thread of the role, and one more for
        // the bytes if there are any.
        let by_threads = if alone { 0 } else { of(&ring.fill) * lanes };
        let arrivals = by_threads + u32::from(bulk);
        if ring.fills.iter().any(|by| by.bulk != bulk || by.threads.is_none() != alone) {
            say(format!("some slots of `{name}` are filled by bulk copies or by threads, and others are not"));
        }
        let by_one =
            |role: &usize| threads(kernel).get(*role).is_some_and(|(_, b)| one_thread::executes(kernel, *b, false));
        if alone && !ring.fill.iter().all(by_one) {
            say(format!(
                "the role that fills `{name}` by bulk copies alone must do nothing else: only one of its threads would wait for the slots in time"
            ));
        }
        if ring.parities[0] && ring.is_counted() {
            say(format!("the number of a round of `{name}` is waited for as a parity"));
        }
        if ring.fill.len() != 1 || ring.full.len() != 1 {
            say(format!("`{name}` is not filled by one role with one array of barriers"));
        }
        let mut expected: Vec<(Value, u32)> = ring.full.iter().map(|full| (*full, arrivals)).collect();
        // One arrival of each warp that reads, of all programs if copies come from all (theorem 11): only then has
        // everybody read the slot.
        expected.extend(ring.empty.iter().map(|empty| (*empty, of(&ring.read) * programs)));
        for (alloc, count) in expected {
            // Rule 48 has checked that it is initialised once, before the roles.
            let other = |kind: &&OpKind| **kind != OpKind::Nv(NvOp::MbarrierInit { count });
            if made(kernel, alloc).iter().any(other) {
                let each = count / programs;
                let by_all = programs > 1 && ring.empty.contains(&alloc);
                let of = if by_all { format!(" ({each} of each of {programs} programs)") } else { String::new() };
                say(format!("a barrier of `{name}` must count {count} arrivals{of}"));
            }
        }
        let counters: SortedSet<Value> = ring.counters.values().flatten().copied().collect();
        let one_each = ring.counters.values().all(|own| own.len() == 1) && ring.counters.len() == ring.read.len();
        if counters.iter().any(|counter| made(kernel, *counter) != [&OpKind::Nv(NvOp::SequenceInit)]) {
            say(format!("a counter of `{name}` must be set to 0 once, before the roles"));
        }
        // Each acquisition waits for the counter of each reader, or for the one barrier at which all of them arrive.
        let by_counters = ring.empty.is_empty() && one_each && ring.awaited.iter().all(|(_, all)| *all == counters);
        let by_barriers = ring.empty.len() == 1 && counters.is_empty() && ring.awaited.is_empty();
        if !by_counters && !by_barriers {
            say(format!("the slots of `{name}` are not released by all of its readers"));
        }
        self.rings.insert(pipe, ring);
    }

    /// Checks that the slots of a ring are released in all programs of the cluster if copies to them are for all, and only then.
    fn released_where_copied(&mut self, name: &str, loc: Loc, ring: &Ring) {
        let kernel = self.kernel;
        let at = |id: OpId| kernel.op(id).loc;
        let copy = |id: OpId| kernel.op(id).args.first().map(|source| kernel.display_name(*source)).unwrap_or_default();
        match (ring.shared, ring.released) {
            (Some(shared), [Some(own), _]) => {
                let title = format!(
                    "a slot of `{name}` is released in this program alone, but the copy of `{}` overwrites it in all programs of the cluster, whose readers may not be done",
                    copy(shared)
                );
                let help = "let the readers arrive in all programs: `ttg.nv.mbarrier.arrive_cluster`";
                self.errors.push(wrong(at(own), title).related(at(shared), "the copy").help(help));
            }
            (Some(shared), [None, None]) => {
                let title = format!(
                    "the copy of `{}` is for all programs of the cluster, but no arrival releases the slots of `{name}` in all of them",
                    copy(shared)
                );
                let help = "let the readers arrive in all programs: `ttg.nv.mbarrier.arrive_cluster`";
                self.errors.push(wrong(at(shared), title).related(loc, "the ring").help(help));
            }
            (None, [_, Some(all)]) => {
                let title = format!(
                    "a slot of `{name}` is released in all programs of the cluster, but no copy to it is for all of them"
                );
                let help = "`multicast` in the copy of a tile that all programs read, or `ttg.nv.mbarrier.arrive` here";
                self.errors.push(wrong(at(all), title).help(help));
            }
            (Some(_), [None, Some(_)]) | (None, [_, None]) => {}
        }
    }
}

/// The operations that initialise a barrier or counter; empty if they are not all before the roles.
fn made(kernel: &Kernel, word: Value) -> Vec<&OpKind> {
    let makes = |op: &Op| {
        op.args.first() == Some(&word) && matches!(op.kind, OpKind::Nv(NvOp::MbarrierInit { .. } | NvOp::SequenceInit))
    };
    let all = kernel.ops.iter().filter(|op| makes(op)).count();
    let first = beginning(kernel).iter().map(|id| kernel.op(*id)).filter(|op| makes(op));
    let first: Vec<&OpKind> = first.map(|op| &op.kind).collect();
    if first.len() == all { first } else { Vec::new() }
}
