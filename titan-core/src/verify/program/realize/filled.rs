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
//! Deliberately absent: whether the slots are held by this role, which the co-execution checks; the counts of barriers (`counts`).

use super::{At, Check};
use crate::ir::traffic::{Access, On, traffic};
use crate::ir::{Family, LocalOp, NvGroup, NvOp, OpId, OpKind, Pipe, Proxy, Strided, Ty, Value};
use crate::verify::coexecution::rings::find::{Arrival, Claims, FilledBy, bytes_in_part, picked, region_of};
use crate::verify::program::wrong;

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
                let announced = self.filled_in_bulk(at, behind)?;
                let tiles = self.copied_since(at, announced);
                self.ring(at).tiles.insert(tiles);
            }
            FilledBy { threads: Some(threads), bulk }
        };
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
        if arrivals != self.warps(at.role)?.checked_mul(self.lanes()?)? {
            return None;
        }
        let full = self.picked(*op.args.first()?, at)?;
        self.explain(first);
        self.ring(at).full.insert(full);
        Some((threads, n))
    }

    /// Bulk copies to the slot, the nearest first, after the arrival that expects their bytes, which is returned.
    fn filled_in_bulk(&mut self, at: &At<'_>, before: &[OpId]) -> Option<OpId> {
        let kernel = self.kernel;
        let mut copied = 0u32;
        for id in before {
            let op = kernel.op(*id);
            let full = self.picked(*op.args.last()?, at)?;
            self.ring(at).full.insert(full);
            self.explain(*id);
            match op.kind.family() {
                Family::Nv(NvOp::BulkLoad { tensor: true, bytes, multicast, strided: Strided::NONE }) => {
                    let [_, tile, _] = op.args[..] else { return None };
                    let (_, slot) = picked(kernel, tile)?;
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
                Family::Nv(NvOp::ArriveExpectTx { bytes }) if bytes == copied => return Some(*id),
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

    /// The ranges of bytes of the slot that are copied between an operation and the claim, in order.
    fn copied_since(&self, at: &At<'_>, since: OpId) -> Vec<Bytes> {
        let kernel = self.kernel;
        let copies =
            at.ops.iter().rev().take_while(|id| **id != since).map(|id| kernel.op(*id)).filter(|op| {
                matches!(op.kind, OpKind::Nv(NvOp::BulkLoad { .. }) | OpKind::Local(LocalOp::Copy { .. }))
            });
        let tiles = copies.flat_map(|op| op.args.iter().filter(|v| matches!(kernel.ty(**v), Ty::Smem(..))));
        let mut bytes: Vec<Bytes> = tiles.map(|tile| bytes_in_part(kernel, *tile)).collect();
        bytes.sort_unstable();
        bytes
    }

    /// In a program with bulk copies to rings: checks that threads and bulk copies write different bytes of the slots of a ring, and
    /// together all bytes that are read.
    pub(in crate::verify::program) fn written_apart(&mut self, pipe: Pipe, claims: &Claims) {
        let kernel = self.kernel;
        if !self.rings.values().any(|ring| ring.fills.iter().any(|by| by.bulk)) {
            return;
        }
        if self.rings.get(&pipe).is_some_and(|ring| ring.tiles.len() > 1) {
            let (name, loc) = (kernel.pipe_name(pipe), kernel.pipe(pipe).map(|p| p.loc).unwrap_or_default());
            self.errors.push(wrong(loc, format!("not every tile of `{name}` is filled each time")));
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
            if by_threads && boxes.iter().any(|other| bytes.0 < other.1 && other.0 < bytes.1) {
                self.error(*id, "threads write bytes of a stage here that bulk copies write too");
            }
            if access.reads && !all.iter().any(|other| other.0 <= bytes.0 && bytes.1 <= other.1) {
                self.error(*id, "nothing fills the bytes of a stage that are read here");
            }
        }
    }
}
