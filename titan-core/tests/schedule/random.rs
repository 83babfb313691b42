//! Random numbers with fixed seeds, and random graphs.

use titan_core::schedule::graph::{Draft, DraftEdge, DraftOp, Graph, Kind};

/// A generator of random numbers: splitmix64.
pub struct Random(pub u64);

impl Random {
    /// A number below `end`, which is positive.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    /// An index into a list of this length.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number from a range.
    pub fn from(&mut self, range: std::ops::RangeInclusive<i64>) -> i64 {
        range.start() + self.below((range.end() - range.start() + 1) as u64) as i64
    }

    /// Whether something with this chance, in percent, happens.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A random valid graph with at most this many operations: edges of distance zero lead forwards, others anywhere.
pub fn graph(seed: u64, most: i64) -> Graph {
    let mut random = Random(seed.wrapping_mul(0x1234_5678_9ABC_DEF1));
    let n = random.from(2..=most) as usize;
    let units = random.from(1..=3) as usize;
    let (occupancy, latency) = (random.from(1..=4), random.from(1..=9));
    let mut draft = Draft { name: format!("random{seed}"), ..Draft::default() };
    draft.units = (0..units).map(|unit| format!("u{unit}")).collect();
    for op in 0..n {
        let unit = random.chance(80).then(|| (format!("u{}", random.index(units)), random.from(1..=occupancy)));
        let (latency, weight) = (random.from(0..=latency), random.from(0..=4));
        draft.ops.push(DraftOp { name: format!("o{op}"), unit, latency, weight });
    }
    for _ in 0..random.index(2 * n) + 1 {
        let (a, b) = (random.index(n), random.index(n));
        let is_forward = a < b && random.chance(75);
        let (kind, distance) = match (is_forward, random.below(4)) {
            (true, 0) => (Kind::Memory, 0),
            (true, _) => (Kind::Data, 0),
            (false, 0) => (Kind::Ring, random.from(1..=4)),
            (false, 1) => (Kind::Memory, random.from(1..=2)),
            (false, _) => (Kind::Carried, random.from(1..=3)),
        };
        let latency = random.chance(30).then(|| random.from(0..=latency));
        draft.edges.push(DraftEdge { kind, from: format!("o{a}"), to: format!("o{b}"), latency, distance });
    }
    draft.check().expect("random graphs are valid")
}
