//! The bytes of global memory that a launch accessed, for checks of conflicts between launches.

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    Read,
    Write,
    /// An atomic operation, or a strong load or store: two of them to the same byte are allowed.
    Strong,
}

/// A set of address ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// The first byte, and the byte after the last, of each range. Sorted and disjoint once settled.
    all: Vec<(u64, u64)>,
    /// The number of ranges after the last time they were settled.
    settled: usize,
}

impl Ranges {
    /// The set of one range.
    #[must_use]
    pub fn one(start: u64, bytes: u64) -> Ranges {
        let mut ranges = Ranges::default();
        ranges.add(start, bytes);
        ranges
    }

    /// Adds a range.
    pub fn add(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        match self.all.last_mut() {
            _ if bytes == 0 => {}
            Some(last) if start >= last.0 && start <= last.1 => last.1 = last.1.max(end),
            _ => self.all.push((start, end)),
        }
        if self.all.len() > 2 * self.settled + (1 << 12) {
            self.settle();
        }
    }

    /// Sorts the ranges, and merges those that overlap or touch.
    pub fn settle(&mut self) {
        self.all.sort_unstable();
        self.all.dedup_by(|next, kept| {
            let joined = next.0 <= kept.1;
            kept.1 = if joined { kept.1.max(next.1) } else { kept.1 };
            joined
        });
        self.settled = self.all.len();
    }

    /// The ranges: first byte, and the byte after the last.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.all.iter().copied()
    }

    /// The first range of bytes that two settled sets share.
    #[must_use]
    pub fn overlap(&self, other: &Ranges) -> Option<(u64, u64)> {
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.all.get(i), other.all.get(j)) {
            let (start, end) = (a.0.max(b.0), a.1.min(b.1));
            if start < end {
                return Some((start, end));
            }
            if a.1 <= b.1 { i += 1 } else { j += 1 }
        }
        None
    }
}

/// The bytes that a launch accessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The bytes accessed by ordinary reads.
    pub reads: Ranges,
    /// The bytes accessed by ordinary writes.
    pub writes: Ranges,
    /// The bytes accessed by atomic operations and strong loads and stores.
    pub strong: Ranges,
}

impl Touched {
    pub(crate) fn note(&mut self, how: Touch, address: u64, bytes: u64) {
        match how {
            Touch::Read => self.reads.add(address, bytes),
            Touch::Write => self.writes.add(address, bytes),
            Touch::Strong => self.strong.add(address, bytes),
        }
    }

    /// Settles all sets.
    pub fn settle(&mut self) {
        self.reads.settle();
        self.writes.settle();
        self.strong.settle();
    }
}
