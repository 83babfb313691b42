//! The modulo reservation table: which operations hold which units in the cycles of an interval.
//!
//! Reservations are kept as intervals instead of single cycles, so that costs depend on the number of operations and not on the
//! length of the interval. Deliberately absent: units that serve several operations at a time; they are several units.

use super::graph::Op;
use super::steps::{Exhausted, Steps};

/// A reservation: the operation, its first cycle within the interval, and the number of cycles.
#[derive(Clone, Copy, Debug)]
struct Held {
    op: usize,
    start: i64,
    cycles: i64,
}

/// The reservations of all units. Those of a unit do not overlap, and are sorted by their first cycles.
#[derive(Debug)]
pub(super) struct Table {
    ii: i64,
    held: Vec<Vec<Held>>,
}

/// The direction in which a free cycle is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// From the earliest cycle to the latest.
    Up,
    /// From the latest cycle to the earliest.
    Down,
}

impl Table {
    pub(super) fn new(ii: i64, units: usize) -> Table {
        Table { ii, held: vec![Vec::new(); units] }
    }

    /// Reserves the unit of an operation, which must be free.
    pub(super) fn reserve(&mut self, index: usize, op: &Op, cycle: i64) {
        if let Some(unit) = op.unit {
            let held = Held { op: index, start: cycle.rem_euclid(self.ii), cycles: op.occupancy };
            let all = &mut self.held[unit];
            // Sorted by first cycles, which `blocking` relies on.
            all.insert(all.partition_point(|other| other.start < held.start), held);
        }
    }

    pub(super) fn release(&mut self, index: usize, op: &Op) {
        op.unit.into_iter().for_each(|unit| self.held[unit].retain(|held| held.op != index));
    }

    /// Whether a reservation overlaps one that begins in `cycle` and takes `cycles`.
    ///
    /// Let x be the number of cycles from `cycle` to the next beginning of the reservation. They are disjoint exactly if the new one
    /// has ended by then, and the reservation has ended when the new one begins again, II − x cycles later.
    fn overlaps(&self, held: Held, cycle: i64, cycles: i64) -> bool {
        let ahead = (held.start - cycle).rem_euclid(self.ii);
        // Example: II = 10, held from 8 for 4 cycles, thus 8, 9, 0, 1. For a new one from 1 for 2 cycles: 7 cycles
        // ahead, which is not below 2; but 7 + 4 > 10: the reservation reaches around the end of the interval into it.
        // From 2 it is 6 ahead, and 6 + 4 = 10: disjoint.
        ahead < cycles || ahead + held.cycles > self.ii
    }

    /// The operations whose reservations overlap one of `op` in `cycle`.
    pub(super) fn overlapping(&self, op: &Op, cycle: i64) -> Vec<usize> {
        let Some(unit) = op.unit else { return Vec::new() };
        let all = self.held[unit].iter().filter(|held| self.overlaps(**held, cycle, op.occupancy));
        all.map(|held| held.op).collect()
    }

    /// A reservation in the way of one that begins in `cycle`.
    ///
    /// Reservations do not overlap each other, so it is enough to look at the last one that begins before the cycle or in it, and at
    /// the next one, both around the end of the interval: one that begins earlier has ended before the first of them begins, and one
    /// that begins later is overlapped only if the second one is.
    fn blocking(&self, unit: usize, cycle: i64, cycles: i64, steps: &mut Steps) -> Result<Option<Held>, Exhausted> {
        steps.take(1)?;
        let all = &self.held[unit];
        let start = cycle.rem_euclid(self.ii);
        let next = all.partition_point(|held| held.start <= start);
        let last = next.checked_sub(1).or(all.len().checked_sub(1));
        let pair = [last, Some(if next == all.len() { 0 } else { next })];
        let mut near = pair.into_iter().flatten().filter_map(|i| all.get(i));
        Ok(near.find(|held| self.overlaps(**held, cycle, cycles)).copied())
    }

    /// The first free cycle for `op` from `low` to `high`, in the direction of the search.
    ///
    /// If a reservation is in the way, every cycle up to its end is occupied by it as well, or overlaps it from the other side: nothing
    /// is skipped by going on at its end. After II cycles, everything repeats.
    pub(super) fn free(
        &self,
        op: &Op,
        (low, high): (i64, i64),
        search: Search,
        steps: &mut Steps,
    ) -> Result<Option<i64>, Exhausted> {
        let mut cycle = match search {
            Search::Up => low,
            Search::Down => high,
        };
        let Some(unit) = op.unit else { return Ok(Some(cycle)) };
        let (low, high) = match search {
            // More than II cycles are the same cycles of the interval again, so the range has at most II.
            Search::Up => (low, high.min(low + self.ii - 1)),
            Search::Down => (low.max(high - self.ii + 1), high),
        };
        while (low..=high).contains(&cycle) {
            let Some(held) = self.blocking(unit, cycle, op.occupancy, steps)? else { return Ok(Some(cycle)) };
            // A distance of zero means that both together are longer than an interval.
            let past = match search {
                Search::Up => (held.start + held.cycles - cycle).rem_euclid(self.ii),
                Search::Down => (cycle + op.occupancy - held.start).rem_euclid(self.ii),
            };
            // At least one cycle further in each round, so this ends; with II, it leaves the range at once.
            let past = if past == 0 { self.ii } else { past };
            cycle += match search {
                Search::Up => past,
                Search::Down => -past,
            };
        }
        Ok(None)
    }

    /// The free cycle for `op` from `low` to `high` that leaves the remaining free cycles in the fewest pieces; among those, the one
    /// nearest to `wanted`.
    ///
    /// Only cycles in which the operation begins where a reservation ends, or ends where one begins, can do better than any other.
    pub(super) fn snug(
        &self,
        op: &Op,
        (low, high): (i64, i64),
        wanted: i64,
        steps: &mut Steps,
    ) -> Result<Option<i64>, Exhausted> {
        let wanted = wanted.clamp(low, high);
        let Some(unit) = op.unit else { return Ok(Some(wanted)) };
        let all = &self.held[unit];
        let up = self.free(op, (wanted, high), Search::Up, steps)?;
        let down = self.free(op, (low, wanted), Search::Down, steps)?;
        // For each reservation, the one before it around the end of the interval; both may be the same one.
        let before = all.iter().skip(all.len().saturating_sub(1)).chain(all);
        let mut best: Option<(usize, i64, i64)> = None;
        let mut offer = |loose: usize, cycle: i64| {
            // Of equal cycles modulo II, the ones on both sides of the wanted one.
            let near = wanted + (cycle - wanted).rem_euclid(self.ii);
            for cycle in [near, near - self.ii].into_iter().filter(|cycle| (low..=high).contains(cycle)) {
                let offer = (loose, (cycle - wanted).abs(), cycle);
                best = best.filter(|best| *best <= offer).or(Some(offer));
            }
        };
        up.into_iter().chain(down).for_each(|cycle| offer(2, cycle));
        for (held, next) in before.zip(all) {
            steps.take(1)?;
            // Between two reservations, an operation that begins or ends at one of them leaves one piece of free
            // cycles, or none if it fits exactly. Anywhere else it leaves two.
            let end = held.start + held.cycles;
            // The free cycles between the two; a single reservation is followed by itself.
            let gap = if all.len() == 1 { self.ii - held.cycles } else { (next.start - end).rem_euclid(self.ii) };
            if gap >= op.occupancy {
                let loose = usize::from(gap != op.occupancy);
                offer(loose, end);
                offer(loose, next.start - op.occupancy);
            }
        }
        Ok(best.map(|(_, _, cycle)| cycle))
    }
}
