//! State lanes: the bytes of a space, cut where accesses begin and end.
//!
//! Two accesses conflict exactly if they have a byte in common, so state is kept for the largest ranges in which
//! all bytes had the same accesses. An access cuts the ranges at its ends; neighbours that become equal, as those of
//! a row that a warp writes, become one again. Buffers that overlap need no table of aliases: they share lanes.
//!
//! Source: Triton's sanitizer keeps a state for each region of a buffer analysis, and takes all of them when it does not
//! know. Here addresses are known, and so the lanes are exact.

use super::effect::{Effect, State};
use super::known::{Known, KnownId, Records};
use super::mask::Mask;
use super::report::Side;
use crate::engine::SpaceId;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Lane {
    end: u64,
    state: State,
}

/// The lanes of one space, by their first byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    lanes: BTreeMap<u64, Lane>,
}

impl Lanes {
    /// Cuts the lane that contains `at` in its interior, so that a lane begins there.
    fn cut(&mut self, at: u64) {
        let Some((_, lane)) = self.lanes.range_mut(..at).next_back() else { return };
        if lane.end > at {
            let right = Lane { end: lane.end, state: lane.state.clone() };
            lane.end = at;
            self.lanes.insert(at, right);
        }
    }

    /// Creates and cuts lanes so that they cover exactly this range; returns their first bytes.
    fn cover(&mut self, start: u64, end: u64) -> Vec<u64> {
        self.cut(start);
        self.cut(end);
        let (mut at, mut firsts, mut gaps) = (start, Vec::new(), Vec::new());
        for (first, lane) in self.lanes.range(start..end) {
            if *first > at {
                gaps.push((at, *first));
                firsts.push(at);
            }
            firsts.push(*first);
            at = lane.end;
        }
        if at < end {
            gaps.push((at, end));
            firsts.push(at);
        }
        for (from, to) in gaps {
            self.lanes.insert(from, Lane { end: to, state: State::default() });
        }
        firsts
    }

    /// Calls `f` with each lane of a range: its first byte, the byte after its last, its state.
    fn each_of(&mut self, start: u64, end: u64, records: &Records, mut f: impl FnMut(u64, u64, &mut State)) {
        if start >= end {
            return;
        }
        // Most accesses have the same range as an earlier one.
        if let Some(lane) = self.lanes.get_mut(&start).filter(|l| l.end == end) {
            f(start, end, &mut lane.state);
            self.merge(start, records);
            self.merge(end, records);
            return;
        }
        let firsts = self.cover(start, end);
        for first in &firsts {
            if let Some(lane) = self.lanes.get_mut(first) {
                f(*first, lane.end, &mut lane.state);
            }
        }
        for first in firsts.into_iter().chain([end]) {
            self.merge(first, records);
        }
    }

    /// Merges the lanes that end and begin at `at`, if their states are equal.
    fn merge(&mut self, at: u64, records: &Records) {
        let Some((first, left)) = self.lanes.range(..at).next_back() else { return };
        let Some(right) = self.lanes.get(&at) else { return };
        if left.end != at || !left.state.is_like(&right.state, records) {
            return;
        }
        let (first, end) = (*first, right.end);
        self.lanes.remove(&at);
        if let Some(left) = self.lanes.get_mut(&first) {
            left.end = end;
        }
    }

    /// Calls `f` with the state of the bytes of a range, without cutting lanes at its ends.
    fn touch(&mut self, start: u64, end: u64, mut f: impl FnMut(&mut Effect)) {
        let from = self.lanes.range(..=start).next_back().map_or(start, |(first, _)| *first);
        for (_, lane) in self.lanes.range_mut(from..end) {
            if lane.end > start {
                lane.state.effects().for_each(&mut f);
            }
        }
    }
}

/// The lanes of all spaces, and what is known of their effects.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    spaces: BTreeMap<SpaceId, Lanes>,
    records: Records,
    /// The memories whose operations run out of order.
    out_of_order: BTreeSet<SpaceId>,
}

/// A range of bytes: the space, the first byte, the byte after the last.
pub(super) type Span = (SpaceId, u64, u64);

impl Memory {
    pub(super) fn new(out_of_order: BTreeSet<SpaceId>) -> Memory {
        Memory { out_of_order, ..Memory::default() }
    }

    pub(super) const fn records(&self) -> &Records {
        &self.records
    }

    /// The record of a new access, which these threads see.
    pub(super) fn made(&mut self, space: SpaceId, side: &Side, seen: Mask) -> KnownId {
        self.tidy();
        self.records.made((space, self.out_of_order.contains(&space)), side, seen)
    }

    /// Calls `f` with each lane of a range: its first byte, the byte after its last, its state.
    pub(super) fn each_of(&mut self, span: Span, mut f: impl FnMut(u64, u64, &mut State, &Records)) {
        let (space, start, end) = span;
        let records = &self.records;
        let lanes = self.spaces.entry(space).or_default();
        lanes.each_of(start, end, records, |first, last, state| f(first, last, state, records));
    }

    /// Forgets all accesses to a range.
    pub(super) fn forget(&mut self, (space, start, end): Span) {
        let Some(lanes) = self.spaces.get_mut(&space) else { return };
        lanes.cut(start);
        lanes.cut(end);
        lanes.lanes.retain(|first, _| !(start..end).contains(first));
    }

    /// Calls `f` with what is known of all effects.
    pub(super) fn each(&mut self, f: impl FnMut(&mut Known)) {
        self.records.all_mut().iter_mut().for_each(f);
    }

    /// Changes what is known of those effects in these bytes that are `meant`.
    pub(super) fn each_in(
        &mut self,
        spans: &[Span],
        mut meant: impl FnMut(&Effect) -> bool,
        mut change: impl FnMut(&mut Known),
    ) {
        let records = &mut self.records;
        // The records that effects here had, and those that they have after the change.
        let mut moved: Vec<(KnownId, KnownId)> = Vec::new();
        for (space, start, end) in spans {
            let Some(lanes) = self.spaces.get_mut(space) else { continue };
            lanes.touch(*start, *end, |e| {
                if !meant(e) {
                    return;
                }
                let to = moved.iter().rev().find(|(from, _)| *from == e.known).map(|(_, to)| *to);
                e.known = to.unwrap_or_else(|| {
                    let before = records.of(e);
                    let mut after = before.clone();
                    change(&mut after);
                    let to = if after == *before { e.known } else { records.with(after) };
                    moved.push((e.known, to));
                    to
                });
            });
        }
        self.tidy();
    }

    /// Changes what is known of all effects that are `meant`, wherever they are.
    pub(super) fn each_effect(&mut self, meant: impl FnMut(&Effect) -> bool, change: impl FnMut(&mut Known)) {
        let all: Vec<Span> = self.spaces.keys().map(|space| (*space, 0, u64::MAX)).collect();
        self.each_in(&all, meant, change);
    }

    /// Removes records that are not needed, if there are many.
    fn tidy(&mut self) {
        if self.records.are_many() {
            let states = self.spaces.values_mut().flat_map(|lanes| lanes.lanes.values_mut());
            self.records.compact(states.flat_map(|lane| lane.state.effects()).map(|e| &mut e.known));
        }
    }

    /// All effects with their places: space, first byte, byte after the last.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Span, &Effect)> {
        self.spaces.iter().flat_map(|(space, lanes)| {
            lanes.lanes.iter().flat_map(|(first, lane)| {
                let span = (*space, *first, lane.end);
                lane.state.iter().map(move |e| (span, e))
            })
        })
    }

    /// The number of lanes.
    pub(super) fn len(&self) -> usize {
        self.spaces.values().map(|l| l.lanes.len()).sum()
    }
}
