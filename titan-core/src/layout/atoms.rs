//! Matrix instructions with their fragments, and the layouts of tiles that they compute.
//!
//! A fragment says which element of an operand each register of each lane of a warp holds, as the steps of the bits of both numbers along the
//! operand's axes: all matrix instructions are linear in these bits. Two families cover the machines so far:
//!
//! ```text
//! in quads     lanes 4 g + t: row g, and the words t of adjacent elements along K     (warps of 32 lanes)
//! in columns   lanes m q + i: row i, and the q-th run of adjacent elements along K    (warps of 64 lanes)
//! ```
//!
//! A fragment may be that of several instructions in a row along K ([`Atom::over`]), so that a lane reads all of its elements at once. An
//! instruction whose operands are exchanged computes the transpose of D ([`Atom::exchanged`]), so that a lane holds adjacent elements of a row.
//!
//! Deliberately absent: which machine has which of them; the back ends say so, with the manual's section.

use super::{Bit, Layout};
use crate::lane::MmaAtom;

const fn step(axis: u8, by: u32) -> Bit {
    Bit::Step { axis, by }
}

/// The bits with the steps `from, 2 from, …` below `to` along an axis.
fn steps(axis: u8, from: u32, to: u32) -> Vec<Bit> {
    let mut out = Vec::new();
    let mut by = from;
    while by < to {
        out.push(step(axis, by));
        by *= 2;
    }
    out
}

/// The distribution of an output tile over warps: the lowest bits of the warp number go along M, the next ones along N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WarpGrid {
    /// The number of warps along M, a power of two.
    pub m: u32,
    /// The number of warps along N, a power of two.
    pub n: u32,
    /// The number of all warps; those beyond `m · n` compute the same as others.
    pub all: u32,
}

impl WarpGrid {
    /// The remaining bits of the warp number, which hold copies.
    fn spare(self) -> Vec<Bit> {
        vec![Bit::Copy; (self.all / (self.m * self.n)).trailing_zeros() as usize]
    }
}

/// Which element of an operand is where in a warp: what the bits of the register's and of the lane's number add, the lowest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fragment {
    /// The bits of the register's number.
    pub registers: Vec<Bit>,
    /// The bits of the lane's number.
    pub lanes: Vec<Bit>,
}

impl Fragment {
    /// The layout of a tile whose warps are at these places.
    fn layout(&self, extents: &[u32], warps: Vec<Bit>) -> Layout {
        Layout::new(extents, self.registers.clone(), self.lanes.clone(), warps)
    }

    /// Checks that it holds each element of these extents once.
    fn check(&self, extents: [u32; 2], lanes: u32) -> Result<(), String> {
        if 1u64 << self.lanes.len() != u64::from(lanes) {
            return Err(format!("{} bits for {lanes} lanes", self.lanes.len()));
        }
        let layout = self.layout(&extents, Vec::new());
        if layout.repetitions()[..2] != [1, 1] || layout.atom()[..2] != extents {
            return Err(format!("the fragment is one of {:?}, not of {extents:?}", &layout.atom()[..2]));
        }
        super::check::layout(&layout)
    }
}

/// A matrix instruction with the fragments of its operands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Atom {
    /// The instruction.
    pub mma: MmaAtom,
    /// The rows of D that a warp computes: all, unless several warps execute the instruction together.
    pub rows: u32,
    /// The columns of D that the fragments cover; the instruction may repeat them.
    pub columns: u32,
    /// The elements along K that the fragments of A and B cover: those of one instruction, or of several that are executed one after the
    /// other. The first one takes the first registers of both fragments, and so on.
    pub k: u32,
    /// The fragment of A, `[rows, K]`.
    pub a: Fragment,
    /// The fragment of B, `[columns, K]`.
    pub b: Fragment,
    /// The fragment of C and D, `[rows, columns]`.
    pub acc: Fragment,
}

impl Atom {
    /// Fragments in quads: with the group `g = lane / 4` and `t = lane mod 4`, a lane holds words of 32 bits of adjacent elements along K, of
    /// rows `g`, `g + 8`, …, and of the parts of K that are `4` words long. Of D it holds two adjacent columns.
    #[must_use]
    pub fn in_quads(mma: MmaAtom, rows: u32, columns: u32) -> Atom {
        let operand = |bits: u32, rows: u32| {
            let word = (32 / bits).max(1);
            let registers = [steps(1, 1, word), steps(0, 8, rows), steps(1, word * 4, mma.k)].concat();
            Fragment { registers, lanes: [steps(1, word, word * 4), steps(0, 1, 8)].concat() }
        };
        let registers = [steps(1, 1, 2), steps(0, 8, rows)].concat();
        let acc = Fragment { registers, lanes: [steps(1, 2, 8), steps(0, 1, 8)].concat() };
        Atom { mma, rows, columns, k: mma.k, a: operand(mma.a.bits(), rows), b: operand(mma.b.bits(), 8), acc }
    }

    /// Fragments in columns: lane `m · q + i` holds row `i` of an operand and its `q`-th run of adjacent elements along K, which are as many
    /// as all lanes together hold of K. Of D, it holds column `i` and four adjacent rows of every `4 · 64 / n` rows, or one row of every
    /// `64 / n` if elements of D have 64 bits.
    #[must_use]
    pub fn in_columns(mma: MmaAtom) -> Atom {
        let operand = |rows: u32| {
            let run = (mma.k * rows / 64).max(1);
            Fragment { registers: steps(1, 1, run), lanes: [steps(0, 1, rows), steps(1, run, mma.k)].concat() }
        };
        let adjacent = if mma.acc.bits() == 64 { 1 } else { 4 };
        let together = adjacent * 64 / mma.n.max(1);
        let registers = [steps(0, 1, adjacent), steps(0, together, mma.m)].concat();
        let acc = Fragment { registers, lanes: [steps(1, 1, mma.n), steps(0, adjacent, together)].concat() };
        Atom { mma, rows: mma.m, columns: mma.n, k: mma.k, a: operand(mma.m), b: operand(mma.n), acc }
    }

    /// The same instruction with its operands exchanged: it is given B as its A and A as its B, and computes `Dᵀ = B · Aᵀ + Cᵀ`.
    ///
    /// **Example.** The 16×16×16 instruction in columns leaves rows `4 q … 4 q + 3` of column `i` of its D in lane `16 q + i`. With exchanged
    /// operands these are columns `4 q … 4 q + 3` of row `i`: 16 adjacent bytes of a row in memory; and just the elements that the lane
    /// holds of an operand A of 16 bits, so that an accumulator, once rounded, is the operand of the next instruction without an exchange.
    #[must_use]
    pub fn exchanged(self) -> Atom {
        let Atom { mma, rows, columns, k, a, b, acc } = self;
        let turned = |bits: &[Bit]| {
            let turn = |bit: &Bit| match *bit {
                Bit::Step { axis, by } => step(1 - axis.min(1), by),
                Bit::Copy => Bit::Copy,
            };
            bits.iter().map(turn).collect()
        };
        let acc = Fragment { registers: turned(&acc.registers), lanes: turned(&acc.lanes) };
        let mma = MmaAtom { m: mma.n, n: mma.m, k: mma.k, a: mma.b, b: mma.a, acc: mma.acc };
        Atom { mma, rows: columns, columns: rows, k, a: b, b: a, acc }
    }

    /// The fragments of so many instructions along K, a power of two. A lane holds adjacent elements of K: the first ones for the first
    /// instruction, and so on. Each instruction then sums over elements that are not adjacent, but the same ones of A and of B.
    ///
    /// **Example.** Two 16×16×16 instructions of 16-bit elements over K = 32: lane `16 q + i` holds elements `8 q … 8 q + 7` of row `i`, which
    /// are 16 adjacent bytes. The first instruction sums over elements 0–3, 8–11, 16–19 and 24–27, the second one over the others.
    #[must_use]
    pub fn over(self, instructions: u32) -> Atom {
        let wider = |fragment: &Fragment| {
            let run = 1 << fragment.registers.len();
            let spread = |bit: &Bit| match *bit {
                Bit::Step { axis: 1, by } => step(1, by * instructions),
                Bit::Step { .. } | Bit::Copy => *bit,
            };
            Fragment {
                registers: [fragment.registers.clone(), steps(1, run, run * instructions)].concat(),
                lanes: fragment.lanes.iter().map(spread).collect(),
            }
        };
        Atom { k: self.k * instructions, a: wider(&self.a), b: wider(&self.b), ..self }
    }

    /// Whether a lane holds of A what it holds of an accumulator, so that an accumulator can become A within registers.
    #[must_use]
    pub fn takes_accumulators(&self) -> bool {
        self.a.lanes == self.acc.lanes && self.acc.registers.starts_with(&self.a.registers)
    }

    /// Checks that the fragments hold each element of their operands once, in a warp of so many lanes.
    ///
    /// # Errors
    /// What is wrong with the first fragment that does not.
    pub fn check(&self, lanes: u32) -> Result<(), String> {
        let Atom { mma, rows, columns, k, .. } = self;
        if mma.k == 0 || !k.is_multiple_of(mma.k) {
            return Err(format!("the fragments cover {k} elements along K, of which an instruction takes {}", mma.k));
        }
        let all = [("A", &self.a, [*rows, *k]), ("B", &self.b, [*columns, *k]), ("D", &self.acc, [*rows, *columns])];
        all.into_iter().try_for_each(|(name, fragment, extents)| {
            fragment.check(extents, lanes).map_err(|why| format!("the fragment of {name}: {why}"))
        })
    }

    /// The layout of C and D, `[M, N]`.
    #[must_use]
    pub fn accumulator(&self, extents: &[u32], warps: WarpGrid) -> Layout {
        let mut at = steps(0, self.rows, self.rows * warps.m);
        at.extend(steps(1, self.columns, self.columns * warps.n));
        at.extend(warps.spare());
        self.acc.layout(extents, at)
    }

    /// The layout of C and D of MMAs of several warps together, `[M, N]`: the registers of one instruction are contiguous, and for each warp
    /// they are those of the fragment, repeated along N. With several groups of warps along N, each has a power of two of columns.
    #[must_use]
    pub fn group_accumulator(&self, extents: &[u32], warps: WarpGrid) -> Layout {
        let own = extents.get(1).copied().unwrap_or(self.columns) / warps.n;
        let mut registers = self.acc.registers.clone();
        if warps.n > 1 {
            registers.extend(steps(1, self.columns, own));
        }
        let mut at = steps(0, self.rows, self.rows * warps.m);
        at.extend(steps(1, own, own * warps.n));
        at.extend(warps.spare());
        Layout::new(extents, registers, self.acc.lanes.clone(), at)
    }

    /// The layout of A, `[M, K]`; warps along N hold copies.
    #[must_use]
    pub fn operand_a(&self, extents: &[u32], warps: WarpGrid) -> Layout {
        let mut at = steps(0, self.rows, self.rows * warps.m);
        at.extend(std::iter::repeat_n(Bit::Copy, warps.n.trailing_zeros() as usize));
        at.extend(warps.spare());
        self.a.layout(extents, at)
    }

    /// The layout of B as `[N, K]`; warps along M hold copies.
    #[must_use]
    pub fn operand_b(&self, extents: &[u32], warps: WarpGrid) -> Layout {
        let mut at = vec![Bit::Copy; warps.m.trailing_zeros() as usize];
        at.extend(steps(0, self.columns, self.columns * warps.n));
        at.extend(warps.spare());
        self.b.layout(extents, at)
    }
}
