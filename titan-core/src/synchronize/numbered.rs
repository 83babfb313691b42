//! The accesses of a kernel by number, so that states are sets of numbers, and each comparison and renaming is computed once.

use super::slots::Slot;
use super::state::{Bytes, Touch, Turn};
use crate::collections::SortedMap;
use crate::ir::OpId;

/// The number of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(usize);

/// A place in the code where slots get other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Passage {
    /// The entry of a loop.
    Entry(OpId),
    /// An edge of a loop: the loop, the terminator (`None`: the exit at the head of the loop), and whether it leaves the loop.
    Edge(OpId, Option<OpId>, bool),
    /// The end of a role, after which slots have no names.
    Role,
}

/// All accesses that a kernel makes, with every name that their slots have.
#[derive(Default)]
pub(super) struct Numbered {
    all: Vec<Touch>,
    numbers: SortedMap<Touch, Number>,
    renamed: SortedMap<(Passage, Number), Number>,
}

impl Numbered {
    /// The number of an access.
    pub(super) fn number(&mut self, touch: Touch) -> Number {
        *self.numbers.entry(touch).or_insert_with(|| {
            self.all.push(touch);
            Number(self.all.len() - 1)
        })
    }

    /// The access with a number.
    pub(super) fn touch(&self, number: Number) -> Touch {
        self.all[number.0]
    }

    pub(super) fn bytes(&self, number: Number) -> Bytes {
        self.touch(number).0
    }

    /// Whether an access writes.
    pub(super) fn writes(&self, number: Number) -> bool {
        self.touch(number).1
    }

    /// The region of shared memory that is accessed.
    pub(super) fn region(&self, number: Number) -> Option<usize> {
        match self.bytes(number) {
            Bytes::Shared { region, .. } => Some(region),
            Bytes::Tensor(..) | Bytes::OtherTiles(_) => None,
        }
    }

    /// Whether both may access the same bytes, and one of them writes.
    pub(super) fn conflict(&self, a: Number, b: Number) -> bool {
        (self.writes(a) || self.writes(b)) && self.bytes(a).overlaps(self.bytes(b))
    }

    /// The same access with the name that its slot has after a passage.
    pub(super) fn renamed(
        &mut self,
        number: Number,
        passage: Passage,
        rename: &dyn Fn(Slot) -> Option<Slot>,
        turn: Turn<'_>,
    ) -> Number {
        // A passage renames an access in the same way each time: names depend on the loop and its edge alone. So the
        // number of names is finite, and the states of `synchronize` with it.
        if let Some(known) = self.renamed.get(&(passage, number)) {
            return *known;
        }
        let (bytes, writes) = self.touch(number);
        let new = self.number((bytes.renamed(rename, turn), writes));
        self.renamed.insert((passage, number), new);
        new
    }
}
