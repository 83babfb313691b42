//! What the race detector is told: the bytes of the local data share that an operation accesses.

#![deny(clippy::wildcard_enum_match_arm)]

use super::exec::transfer::{Action, Data, Piece, Transfer};
use super::exec::{Run, World};
use super::fail::Fail;
use super::group::Group;
use titan_sim::engine::{Access, AccessKind, Class, Event, Helper, Observer as _, OpId, Proxy, Strength};

impl Group<'_> {
    /// Reports to the observer which bytes of the local data share an operation accesses.
    pub(crate) fn tell(
        &mut self,
        wave: usize,
        (class, op): (Class, OpId),
        pieces: &[Piece],
        deed: &Deed,
        world: &mut World<'_>,
    ) -> Run<()> {
        if world.watch.is_off() {
            return Ok(());
        }
        let Some(kind) = deed.kind else { return Ok(()) };
        // The first byte, the byte after the last, and whether equal bytes are written.
        let mut ranges: Vec<(u64, u64, bool)> = match &deed.targets {
            Some(targets) => targets.iter().map(|t| (*t, t + 4, false)).collect(),
            None => (0..)
                .zip(pieces)
                .filter_map(|(i, p)| Some((p.at.lds()?, p.bytes, deed.same.get(i).is_some_and(|s| *s))))
                .map(|(a, bytes, same)| (a, a + u64::from(bytes), same))
                .collect(),
        };
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64, bool)> = Vec::new();
        for (start, end, same) in ranges {
            match merged.last_mut() {
                Some(last) if last.1 >= start && last.2 == same => last.1 = last.1.max(end),
                Some(_) | None => merged.push((start, end, same)),
            }
        }
        let (agent, place, space) = (self.agent(wave), self.place(wave), self.lds);
        let strong = match kind {
            AccessKind::Atomic => {
                if deed.compares {
                    self.held.release(wave, pieces);
                }
                true
            }
            AccessKind::Read => self.held.hold(wave, pieces, place),
            AccessKind::Write => false,
        };
        let strength = if strong { Strength::Strong } else { Strength::Weak };
        for (start, end, unchanged) in merged {
            let len = u32::try_from(end - start).unwrap_or(u32::MAX);
            let helper = Some(Helper { class, op });
            let proxy = Proxy::Generic;
            let access =
                Access { agent, place, space, address: start, len, kind, proxy, strength, unchanged, helper, tag: 0 };
            world.watch.event(&Event::Access(access)).map_err(Fail::from)?;
        }
        Ok(())
    }

    /// For each piece of a store to the local data share, whether it writes the bytes that are there already, or will be there when the
    /// operations in flight are complete. Waves that hold the same value may store it to the same address, which is not a race.
    pub(crate) fn repeated(&self, pieces: &[Piece], data: &Data) -> Vec<bool> {
        let mut earlier: Vec<&Transfer> = self.engine.pending().iter().map(|(_, op)| &op.payload).collect();
        earlier.retain(|t| t.writes_lds());
        earlier.sort_unstable_by_key(|t| t.serial);
        let mut start = 0;
        let same = pieces.iter().map(|piece| {
            let (bytes, shadows) = data.part(start, piece.bytes.into());
            start += usize::from(piece.bytes);
            let (Some(address), Some(space)) = (piece.at.lds(), self.engine.space(self.lds)) else { return false };
            let mut there = [0; 16];
            let there = &mut there[..bytes.len()];
            let mut known = [space.read_any(address, there) == Ok(true); 16];
            earlier.iter().for_each(|t| t.foresee(address, there, &mut known));
            known[..bytes.len()].iter().all(|k| *k) && shadows.iter().all(|s| *s == 0) && there == bytes
        });
        same.collect()
    }

    /// Reports the loads that a wave held back, before it meets others or ends.
    pub(crate) fn tell_held(&mut self, wave: usize, world: &mut World<'_>) -> Run<()> {
        let (agent, space) = (self.agent(wave), self.lds);
        for (address, len, place) in self.held.take(wave) {
            let (kind, proxy, strength) = (AccessKind::Read, Proxy::Generic, Strength::Weak);
            let access = Access {
                agent,
                place,
                space,
                address,
                len,
                kind,
                proxy,
                strength,
                unchanged: false,
                helper: None,
                tag: 0,
            };
            world.watch.event(&Event::Access(access)).map_err(Fail::from)?;
        }
        Ok(())
    }
}

/// The accesses of an operation to the local data share.
pub(crate) struct Deed {
    kind: Option<AccessKind>,
    targets: Option<Vec<u64>>,
    /// For stores, whether each piece writes equal bytes.
    pub(crate) same: Vec<bool>,
    /// Whether it is an atomic operation that compares and swaps.
    compares: bool,
}

pub(crate) fn deed(t: &Transfer) -> Deed {
    let kind = match &t.action {
        Action::Load { .. } => Some(AccessKind::Read),
        Action::Store { .. } => Some(AccessKind::Write),
        Action::Atomic { .. } => Some(AccessKind::Atomic),
        Action::ToLds { targets } => {
            return Deed {
                kind: Some(AccessKind::Write),
                targets: Some(targets.clone()),
                same: Vec::new(),
                compares: false,
            };
        }
        Action::Values { .. } | Action::Scalar { .. } | Action::Clock { .. } => None,
    };
    let compares = matches!(t.action, Action::Atomic { compares: true, .. });
    Deed { kind, targets: None, same: Vec::new(), compares }
}
