//! When data of the local data share arrive, as the model of issue says ([`crate::model::issue`]): a wait for some of them is one for all that have
//! arrived by then, so that what reads them later needs no other wait.
//!
//! ```text
//! ds_read_b128 v[0:3]            arrives at  96
//! ds_read_b128 v[4:7]                       128
//! ds_read_b128 v[8:11]                      160
//! …                              until clock 140
//! s_waitcnt for v[0:3]           lgkmcnt(1), not (2): v[4:7] are there
//! ```
//!
//! It only decides between waits of which the stronger one is right as well. A block starts with nothing in flight: what was issued before it is not counted,
//! and waited for as is needed.

use super::machine_ir::{Inst, Kind};
use crate::isa::Unit;
use crate::model::issue::{ISSUE, LOCAL_LATENCY, Sharing};
use crate::model::units::{Engine, occupied};

/// A wave in a block, between two instructions.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    sharing: Sharing,
    now: u64,
    /// When the matrix unit and the local data share are free.
    matrix: u64,
    local: u64,
    /// When each operation of the block that counts in `lgkmcnt` is complete, in order.
    all: Vec<u64>,
}

impl Arrivals {
    pub(crate) const fn new(sharing: Sharing) -> Arrivals {
        Arrivals { sharing, now: 0, matrix: 0, local: 0, all: Vec::new() }
    }

    /// When no more than so many operations are in flight.
    fn until(&self, count: u32) -> u64 {
        let last = self.all.len().checked_sub(count as usize + 1).and_then(|last| self.all.get(last));
        last.copied().unwrap_or(0).max(self.now)
    }

    /// The number of operations that are still in flight before an instruction that needs no more than so many in flight: those or fewer.
    pub(crate) fn left(&self, count: u32, inst: &Inst) -> u32 {
        // What waits for the matrix unit may as well wait for data.
        let multiplies =
            matches!(inst.kind, Kind::Row { row, .. } if matches!(row.unit, Unit::Xdl | Unit::Sgemm | Unit::Dgemm));
        let until = self.until(count).max(if multiplies { self.matrix } else { 0 });
        let left = self.all.iter().rev().take_while(|arrives| **arrives > until).count();
        u32::try_from(left).map_or(count, |left| left.min(count))
    }

    /// The effect of a wait for all but so many operations.
    pub(crate) fn wait(&mut self, count: u32) {
        self.now = self.until(count) + ISSUE;
    }

    /// The effect of an instruction.
    pub(crate) fn step(&mut self, inst: &Inst) {
        let Kind::Row { row, form, .. } = &inst.kind else { return };
        match occupied(row, *form) {
            Some((Engine::Matrix, clocks)) => {
                self.now = self.now.max(self.matrix);
                self.matrix = self.now + self.sharing.in_turn(Engine::Matrix, clocks);
            }
            Some((Engine::Local, clocks)) => {
                self.local = self.local.max(self.now) + self.sharing.in_turn(Engine::Local, clocks);
                self.all.push(self.local + LOCAL_LATENCY);
            }
            Some((Engine::Scalar, _)) if row.unit == Unit::Smem => self.all.push(self.now + LOCAL_LATENCY),
            Some((Engine::Vector, clocks)) => self.now += clocks - ISSUE.min(clocks),
            Some((Engine::Scalar | Engine::Memory, _)) | None => {}
        }
        self.now += ISSUE;
    }
}
