//! Which columns of tensor memory hold a value.
//!
//! A column holds one after a store, a copy or an MMA has written it, until it is freed. Loads, shifts, and MMAs that read A, scales or an
//! accumulator that they scale, must find values.
//!
//! Deliberately absent: the values themselves. Regions have no contents, and loads no results, so nobody could see them.

use crate::sim::finding::{Found, Kind};
use crate::sim::store::{Spaces, Store};
use crate::sim::work::Res;

/// What an operation on tensor memory accesses when it completes, each in a program of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::sim) struct Accessed {
    /// The mnemonic of the operation.
    pub(super) op: &'static str,
    /// Bytes of shared memory that it reads.
    pub(super) regions: Vec<(usize, u64, u64)>,
    /// Columns whose values it needs.
    pub(super) reads: Vec<(usize, u32, u32)>,
    /// Columns that it writes.
    pub(super) writes: Vec<(usize, u32, u32)>,
}

impl Store {
    /// The effect of an operation that completes.
    pub(in crate::sim) fn access_columns(&mut self, spaces: &(impl Spaces + ?Sized), accessed: &Accessed) -> Res<()> {
        for (cta, lo, hi) in &accessed.regions {
            self.read_shared(spaces, *cta, *lo, hi - lo)?;
        }
        for (cta, lo, hi) in &accessed.reads {
            if !self.columns.get(*cta).is_some_and(|c| c.holds(u64::from(*lo), u64::from(*hi))) {
                let message = format!("`{}` reads columns of tensor memory that were never written", accessed.op);
                return Err(Found::new(Kind::Undefined, message));
            }
        }
        for (cta, lo, hi) in &accessed.writes {
            if let Some(columns) = self.columns.get_mut(*cta) {
                columns.add(u64::from(*lo), u64::from(*hi));
            }
        }
        Ok(())
    }
}
