//! The modulo reservation table: which operations hold which units in the cycles of an interval.
//!
//! Reservations are kept as intervals instead of single cycles, so that costs depend on the number of operations and not on the
//! length of the interval. Deliberately absent: units that serve several operations at a time; they are several units.

use super::graph::Op;
use super::swing::{Exhausted, Steps};

/// A reservation: the operation, its first cycle within the interval, and the number of cycles.
#[derive(Clone, Copy, Debug)]
struct Held {
    op: usize,
    start: i64,
    cycles: i64,
}

/// The reservations of all units.
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

    pub(super) fn reserve(&mut self, index: usize, op: &Op, cycle: i64) {
        if let Some(unit) = op.unit {
            self.held[unit].push(Held { op: index, start: cycle.rem_euclid(self.ii), cycles: op.occupancy });
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
        ahead < cycles || ahead + held.cycles > self.ii
    }

    /// The operations whose reservations overlap one of `op` in `cycle`.
    pub(super) fn overlapping(&self, op: &Op, cycle: i64) -> Vec<usize> {
        let Some(unit) = op.unit else { return Vec::new() };
        let all = self.held[unit].iter().filter(|held| self.overlaps(**held, cycle, op.occupancy));
        all.map(|held| held.op).collect()
    }

    /// The first free cycle for `op` from `low` to `high`, in the direction of the search.
    ///
    /// If a reservation is in the way, every cycle up to its end is occupied by it as well, or overlaps it from the other side: nothing
    /// is skipped by going on at its end. After II cycles, everything repeats.
    pub(super) fn free(
        &self,
        op: &Op,
        low: i64,
        high: i64,
        search: Search,
        steps: &mut Steps,
    ) -> Result<Option<i64>, Exhausted> {
        let mut cycle = match search {
            Search::Up => low,
            Search::Down => high,
        };
        let Some(unit) = op.unit else { return Ok(Some(cycle)) };
        let (low, high) = match search {
            Search::Up => (low, high.min(low + self.ii - 1)),
            Search::Down => (low.max(high - self.ii + 1), high),
        };
        while (low..=high).contains(&cycle) {
            steps.take(self.held[unit].len())?;
            let Some(held) = self.held[unit].iter().find(|held| self.overlaps(**held, cycle, op.occupancy)) else {
                return Ok(Some(cycle));
            };
            // A distance of zero means that both together are longer than an interval.
            let past = match search {
                Search::Up => (held.start + held.cycles - cycle).rem_euclid(self.ii),
                Search::Down => (cycle + op.occupancy - held.start).rem_euclid(self.ii),
            };
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
        let Some(unit) = op.unit else { return Ok(Some(wanted.clamp(low, high))) };
        let all = &self.held[unit];
        let mut best: Option<(usize, i64, i64)> = None;
        let clamped = wanted.clamp(low, high);
        let up = self.free(op, clamped, high, Search::Up, steps)?;
        let down = self.free(op, low, clamped, Search::Down, steps)?;
        let beside = all.iter().flat_map(|held| [held.start + held.cycles, held.start - op.occupancy]);
        // Of equal cycles modulo II, the first one in the window and the one before and after the wanted one.
        let moved = beside.flat_map(|cycle| {
            let near = clamped + (cycle - clamped).rem_euclid(self.ii);
            [near, near - self.ii]
        });
        for cycle in up.into_iter().chain(down).chain(moved).filter(|cycle| (low..=high).contains(cycle)) {
            steps.take(all.len())?;
            if all.iter().any(|held| self.overlaps(*held, cycle, op.occupancy)) {
                continue;
            }
            let touches = |at: i64, other: i64| (at - other).rem_euclid(self.ii) == 0;
            let after = all.iter().any(|held| touches(held.start + held.cycles, cycle));
            let before = all.iter().any(|held| touches(cycle + op.occupancy, held.start));
            let loose = usize::from(!after) + usize::from(!before);
            let offer = (loose, (cycle - clamped).abs(), cycle);
            best = best.filter(|best| *best <= offer).or(Some(offer));
        }
        Ok(best.map(|(_, _, cycle)| cycle))
    }
}
