//! The operations that read each value, and the region that defines it.

use titan_core::lane::{Block as Region, Func, Op, OpId, Value};

/// The uses of all values of a function.
pub(super) struct Uses {
    users: Vec<Vec<OpId>>,
    home: Vec<Option<Region>>,
}

impl Uses {
    pub(super) fn of(func: &Func) -> Uses {
        let n = func.values.len();
        let mut uses = Uses { users: vec![Vec::new(); n], home: vec![None; n] };
        uses.add(func, func.body);
        uses
    }

    fn add(&mut self, func: &Func, region: Region) {
        let data = func.block(region);
        for value in &data.args {
            self.home[value.index()] = Some(region);
        }
        for id in &data.ops {
            let op = func.op(*id);
            for arg in &op.args {
                self.users[arg.index()].push(*id);
            }
            for value in &op.results {
                self.home[value.index()] = Some(region);
            }
            for inner in &op.regions {
                self.add(func, *inner);
            }
        }
    }

    /// The operations that read a value, one for each operand.
    pub(super) fn of_value<'a>(&'a self, func: &'a Func, value: Value) -> impl Iterator<Item = &'a Op> + 'a {
        self.users[value.index()].iter().map(|id| func.op(*id))
    }

    /// The one operation that reads a value, if there is one and it reads the value once.
    pub(super) fn only<'a>(&self, func: &'a Func, value: Value) -> Option<&'a Op> {
        match self.users[value.index()].as_slice() {
            [one] => Some(func.op(*one)),
            [] | [_, _, ..] => None,
        }
    }

    /// The region that defines a value.
    pub(super) fn home(&self, value: Value) -> Option<Region> {
        self.home[value.index()]
    }
}
