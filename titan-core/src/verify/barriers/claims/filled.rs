//! Rule 65 for the claim that a stage is filled: the arrivals at the barrier of its slot.
//!
//! | filled by | immediately before the claim, in this order |
//! |---|---|
//! | bulk copies alone | one thread arrives and expects their bytes; the bulk copies to the slot |
//! | threads alone | each thread arrives, on completion of its copies or after a wait for them |
//! | both | one thread arrives and expects the bytes of the bulk copies; these; copies by threads; each thread arrives |
//!
//! Where both fill a slot, its barrier counts the threads and the one that announces the bytes: the phase is complete when all of them have
//! arrived and the announced bytes as well. The announcement is an arrival of its own, so that the phase cannot complete before it; and
//! every thread arrives in every phase, so that no thread waits for a phase of the slot that is more than one behind.
//!
//! Threads never write bytes of the ring that bulk copies write, in any round: in the same round, nothing would order the two kinds of
//! writes, and in different rounds, nothing would determine which fences they need. Together, they write all bytes that readers access.
//!
//! A ring may be filled at several places of a role. Each of them writes the same bytes of a slot, and sends the same boxes to the same programs
//! of a cluster, so that it does not matter for a reader which place has filled the slot.
//!
//! Deliberately absent: whether the slots are held by this role, which the co-execution checks; the counts of barriers (`counts`).

use super::{At, Check, wrong};
use crate::ir::traffic::{Access, On, traffic};
use crate::ir::{Claim, Family, NvGroup, NvOp, Op, OpId, OpKind, Pipe, Proxy, Strided, TtgOp, Ty, Value};
use crate::verify::coexecution::rings::find::{Arrival, Claims, FilledBy, bytes_in_part, picked, region_of};

/// A range of bytes in a part of a region: the first byte and the end.
pub(super) type Bytes = (u64, u64);

impl Check<'_> {
    /// Checks that a stage is filled by bulk copies, by threads, or by both.
    pub(super) fn filled(&mut self, at: &At<'_>) -> Option<()> {
        let by = if matches!(self.kernel.op(*at.before.first()?).kind, OpKind::Nv(NvOp::BulkLoad { .. })) {
            self.filled_in_bulk(at, &at.before)?;
            FilledBy { threads: None, bulk: true }
        } else {
            let (threads, of_threads) = self.arrival(at)?;
            let behind = at.behind_copies.get(of_threads..)?;
            let bulk =
                behind.first().is_some_and(|id| matches!(self.kernel.op(*id).kind, OpKind::Nv(NvOp::BulkLoad { .. })));
            if bulk {
                self.filled_in_bulk(at, behind)?;
            }
            FilledBy { threads: Some(threads), bulk }
        };
        self.written_since_acquired(at);
        self.filled_by.insert(at.id, by);
        self.ring(at).fills.insert(by);
        Some(())
    }

    /// The arrival of each thread of the role, and the number of operations of which it consists.
    fn arrival(&mut self, at: &At<'_>) -> Option<(Arrival, usize)> {
        let first = *at.before.first()?;
        let op = self.kernel.op(first);
        let (arrivals, threads, n) = if let OpKind::Nv(NvOp::CpAsyncArrive { noinc: true, arrivals }) = op.kind {
            (arrivals, Arrival::Copies, 1)
        } else if let OpKind::Nv(NvOp::Arrive { arrivals }) = op.kind {
            let kinds: Vec<&OpKind> = at.before[1..].iter().map(|id| &self.kernel.op(*id).kind).collect();
            // A commit and a wait for all groups just before the arrival: then the thread's copies are complete when it
            // arrives, like its stores.
            let drained = matches!(
                kinds[..],
                [
                    OpKind::Nv(NvOp::WaitGroup { group: NvGroup::CpAsync, n: 0, .. }),
                    OpKind::Nv(NvOp::Commit { group: NvGroup::CpAsync, .. }),
                    ..
                ]
            );
            if drained { (arrivals, Arrival::All, 3) } else { (arrivals, Arrival::Stores, 1) }
        } else {
            return None;
        };
        // Every thread must arrive: each has copies or stores of its own, which only its own arrival covers.
        if arrivals != self.warps(at.role)?.checked_mul(self.lanes()?)? {
            return None;
        }
        let full = self.picked(*op.args.first()?, at)?;
        self.explain(first);
        self.ring(at).full.insert(full);
        Some((threads, n))
    }

    /// Bulk copies to the slot, the nearest first, after the arrival that expects their bytes.
    fn filled_in_bulk(&mut self, at: &At<'_>, before: &[OpId]) -> Option<()> {
        let kernel = self.kernel;
        let mut copied = 0u32;
        // From the claim backwards: copies, and then the arrival that expects exactly the sum of their bytes. With
        // fewer expected, the phase would end before the last copy has; with more, it would never end (theorem 13).
        for id in before {
            let op = kernel.op(*id);
            let full = self.picked(*op.args.last()?, at)?;
            self.ring(at).full.insert(full);
            self.explain(*id);
            match op.kind.family() {
                Family::Nv(NvOp::BulkLoad { tensor: true, bytes, multicast, strided: Strided::NONE }) => {
                    let [_, tile, _] = op.args[..] else { return None };
                    let (_, slot) = picked(kernel, tile)?;
                    // A box is transferred as a whole, also where it is outside of the tensor, so that the number of
                    // its bytes is that of the tile.
                    let whole = kernel.encoding(tile).is_some_and(|e| e.bytes() == bytes);
                    if Some(&slot) != at.op.args.get(1) || !whole {
                        return None;
                    }
                    if multicast != 0 {
                        let wrong = self.not_for_all(op, multicast);
                        wrong.into_iter().for_each(|why| self.error(*id, why));
                        self.ring(at).shared = Some(*id);
                    }
                    copied = copied.checked_add(bytes)?;
                }
                Family::Nv(NvOp::ArriveExpectTx { bytes }) if bytes == copied => return Some(()),
                // No other operation fills a slot, so that the claim is not implemented.
                Family::Nv(_)
                | Family::Data(_)
                | Family::Flow(_)
                | Family::Ttg(_)
                | Family::Local(_)
                | Family::Region(_)
                | Family::Amd(_) => return None,
            }
        }
        None
    }

    /// Records the bytes of the slot that are written between the claim that it is acquired and the claim that it is filled.
    fn written_since_acquired(&mut self, at: &At<'_>) {
        let kernel = self.kernel;
        let acquires = |id: &OpId| kernel.op(*id).kind == OpKind::Ttg(TtgOp::Claim(Claim::Acquired, at.pipe));
        let slot = at.op.args.first().copied();
        let (mut written, mut boxes) = (Vec::new(), Vec::new());
        let mut visit = |op: &Op| {
            let accesses = traffic(&op.kind).accesses;
            if !accesses.into_iter().flatten().any(|a| a.on == On::Local && a.writes) {
                return;
            }
            for tile in op.args.iter().filter(|v| matches!(kernel.ty(**v), Ty::Smem(..))) {
                if region_of(kernel, *tile) == slot {
                    let bytes = bytes_in_part(kernel, *tile);
                    written.push(bytes);
                    if let OpKind::Nv(NvOp::BulkLoad { multicast, .. }) = op.kind {
                        boxes.push((bytes, multicast));
                    }
                }
            }
        };
        // What fills a stage lies between its acquisition and this claim. Copies in branches count as if they were
        // executed: that each path has written what is read, the co-execution shows.
        for id in at.ops.iter().rev().take_while(|id| !acquires(id)) {
            let op = kernel.op(*id);
            visit(op);
            op.regions.iter().for_each(|region| kernel.walk_block(*region, &mut |_, op| visit(op)));
        }
        boxes.sort_unstable();
        self.ring(at).written.insert(joined(written));
        self.ring(at).boxes.insert(boxes);
    }

    /// Checks that each claim that a slot of a ring is filled is for the same bytes, and for the same programs.
    pub(super) fn filled_alike(&mut self, pipe: Pipe) {
        let Some(ring) = self.rings.get(&pipe) else { return };
        let name = self.kernel.pipe_name(pipe);
        // A reader does not know which place has filled the stage. If all places write the same bytes, it need not.
        let message = if ring.written.len() > 1 {
            format!("not every tile of `{name}` is filled each time")
        } else if ring.boxes.len() > 1 {
            format!(
                "a tile of `{name}` is copied to all programs of the cluster at one place and to one program at another"
            )
        } else {
            return;
        };
        let loc = self.kernel.pipe(pipe).map(|p| p.loc).unwrap_or_default();
        self.errors.push(wrong(loc, message));
    }

    /// In a program with bulk copies to rings: checks that threads and bulk copies write different bytes of the slots of a ring, and
    /// together all bytes that are read.
    pub(super) fn written_apart(&mut self, pipe: Pipe, claims: &Claims) {
        let kernel = self.kernel;
        if !self.rings.values().any(|ring| ring.fills.iter().any(|by| by.bulk)) {
            return;
        }
        let mut touched: Vec<(OpId, Access, Bytes)> = Vec::new();
        kernel.walk(&mut |id, op| {
            let Some(access) = traffic(&op.kind).accesses.into_iter().flatten().find(|a| a.on == On::Local) else {
                return;
            };
            let tiles = op.args.iter().filter(|v| matches!(kernel.ty(**v), Ty::Smem(..)));
            let of_ring = |v: &&Value| region_of(kernel, **v).and_then(|r| claims.ring_of.get(&r)) == Some(&pipe);
            touched.extend(tiles.filter(of_ring).map(|tile| (id, access, bytes_in_part(kernel, *tile))));
        });
        let written = |proxies: &[Proxy]| -> Vec<Bytes> {
            let all = touched.iter().filter(|(_, access, _)| access.writes && proxies.contains(&access.proxy));
            all.map(|(_, _, bytes)| *bytes).collect()
        };
        let (boxes, all) = (written(&[Proxy::Async]), written(&[Proxy::Async, Proxy::Generic]));
        for (id, access, bytes) in &touched {
            let by_threads = access.writes && access.proxy == Proxy::Generic;
            // In any round: bytes of a slot that both proxies write would need a fence between rounds, from the reads
            // and writes of one to those of the other.
            if by_threads && boxes.iter().any(|other| bytes.0 < other.1 && other.0 < bytes.1) {
                self.error(*id, "threads write bytes of a stage here that bulk copies write too");
            }
            // One write must have all the bytes of a read. Two that have them together are refused, which is safe.
            if access.reads && !all.iter().any(|other| other.0 <= bytes.0 && bytes.1 <= other.1) {
                self.error(*id, "nothing fills the bytes of a stage that are read here");
            }
        }
    }
}

/// The same bytes as the fewest ranges, in ascending order.
fn joined(mut ranges: Vec<Bytes>) -> Vec<Bytes> {
    ranges.sort_unstable();
    let mut all: Vec<Bytes> = Vec::new();
    for (first, end) in ranges {
        // Sorted by first bytes, so that a range can only continue the last one.
        match all.last_mut().filter(|last| first <= last.1) {
            Some(last) => last.1 = last.1.max(end),
            None => all.push((first, end)),
        }
    }
    all
}
