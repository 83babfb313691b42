//! Register layouts.

use crate::ir::TileShape;
use std::fmt;

/// The coordinates of an element, one for each axis; unused entries are 0.
pub type Coords = [u32; 4];

/// The contribution of a bit of a register, lane or warp number to the coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bit {
    /// None: the element is replicated.
    Copy,
    /// A power of two along an axis.
    Step {
        /// The axis along which it moves.
        axis: u8,
        /// The distance in elements, a power of two.
        by: u32,
    },
}

impl Bit {
    fn add_to(self, at: &mut Coords) {
        if let Bit::Step { axis, by } = self {
            at[usize::from(axis)] += by;
        }
    }

    const fn steps_along(self, axis: usize) -> bool {
        self.step_along(axis).is_some()
    }

    const fn step_along(self, axis: usize) -> Option<u32> {
        match self {
            Bit::Step { axis: own, by } if own as usize == axis => Some(by),
            Bit::Step { .. } | Bit::Copy => None,
        }
    }

    /// The bit with axis `from` renamed to `to(from)`; `None` drops the axis.
    fn rename(self, to: &dyn Fn(u8) -> Option<u8>) -> Bit {
        match self {
            Bit::Step { axis, by } => to(axis).map_or(Bit::Copy, |axis| Bit::Step { axis, by }),
            Bit::Copy => Bit::Copy,
        }
    }
}

/// A register layout: which element of a tile each thread holds in each register.
///
/// The bits of the register, lane and warp number each contribute to the coordinates; together they cover an *atom*, which repeats until
/// the tile is covered. Register `r` is `repetition · 2^regs + bits`, with repetitions counted row-major. The coordinates of its element
/// are the sum of the contributions of the bits of register, lane and warp, plus the repetition times the extents of the atom.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layout {
    extents: Vec<u32>,
    regs: Vec<Bit>,
    lanes: Vec<Bit>,
    warps: Vec<Bit>,
    reps: Coords,
}

impl Layout {
    /// The layout of a tile by an atom, repeated until the tile is covered.
    ///
    /// The steps of an atom along each axis must be 1, 2, 4, … each once; see [`Layout::check`].
    #[must_use]
    pub fn new(shape: &[u32], regs: Vec<Bit>, lanes: Vec<Bit>, warps: Vec<Bit>) -> Self {
        let mut layout = Layout { extents: shape.to_vec(), regs, lanes, warps, reps: [1; 4] };
        let atom = layout.atom();
        for (axis, extent) in shape.iter().enumerate() {
            layout.reps[axis] = extent.div_ceil(atom[axis]);
        }
        layout
    }

    /// A blocked layout: each thread holds `per_thread` adjacent elements; these blocks are distributed over lanes and warps, and repeated
    /// for larger tiles. `order` lists the axes, the fastest first; each entry is a power of two.
    #[must_use]
    pub fn blocked(shape: &[u32], per_thread: &[u32], lanes: &[u32], warps: &[u32], order: &[usize]) -> Self {
        let mut at = [0u32; 4];
        let mut bits = |counts: &[u32]| {
            let mut out = Vec::new();
            for axis in order {
                for _ in 0..counts[*axis].trailing_zeros() {
                    out.push(Bit::Step { axis: u8::try_from(*axis).unwrap_or(0), by: 1 << at[*axis] });
                    at[*axis] += 1;
                }
            }
            out
        };
        let regs = bits(per_thread);
        let lanes = bits(lanes);
        let warps = bits(warps);
        Layout::new(shape, regs, lanes, warps).with_copies(shape)
    }

    /// Replaces lane and warp bits that lie wholly beyond the tile's extent: their threads hold copies of elements instead of padding.
    fn with_copies(mut self, shape: &[u32]) -> Self {
        let fits = |bit: &Bit| match bit {
            Bit::Step { axis, by } => *by < shape[usize::from(*axis)],
            Bit::Copy => true,
        };
        self.regs.retain(|b| fits(b));
        for bit in self.lanes.iter_mut().chain(&mut self.warps) {
            if !fits(bit) {
                *bit = Bit::Copy;
            }
        }
        Layout::new(shape, self.regs, self.lanes, self.warps)
    }

    /// Checks that along each axis the bits step by 1, 2, 4, … each once, and that no register of a thread holds a copy.
    ///
    /// # Errors
    /// A description of the inconsistency.
    pub fn check(&self) -> Result<(), String> {
        if self.regs.contains(&Bit::Copy) {
            return Err("registers hold no copies".to_owned());
        }
        if self.regs.len() + self.lanes.len() + self.warps.len() > 30 {
            return Err("more than 30 bits".to_owned());
        }
        for axis in 0..4 {
            let all = self.regs.iter().chain(&self.lanes).chain(&self.warps);
            let mut steps: Vec<u32> = all.filter_map(|bit| bit.step_along(axis)).collect();
            steps.sort_unstable();
            if steps.iter().enumerate().any(|(i, by)| *by != 1 << i) || (axis >= self.rank() && !steps.is_empty()) {
                return Err(format!("the bits along axis {axis} are not the steps 1, 2, 4, … each once: {steps:?}"));
            }
        }
        Ok(())
    }

    /// The extents of the tile.
    #[must_use]
    pub fn extents(&self) -> &[u32] {
        &self.extents
    }

    /// The number of axes.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.extents.len()
    }

    /// The contributions of the bits of the register number within an atom.
    #[must_use]
    pub fn register_bits(&self) -> &[Bit] {
        &self.regs
    }

    /// The contributions of the bits of the lane number, the lowest first.
    #[must_use]
    pub fn lane_bits(&self) -> &[Bit] {
        &self.lanes
    }

    /// The contributions of the bits of the warp number, the lowest first.
    #[must_use]
    pub fn warp_bits(&self) -> &[Bit] {
        &self.warps
    }

    /// The number of repetitions of the atom along each axis.
    #[must_use]
    pub fn repetitions(&self) -> Coords {
        self.reps
    }

    /// The extents of the atom.
    #[must_use]
    pub fn atom(&self) -> Coords {
        let mut atom = [1; 4];
        for bit in self.regs.iter().chain(&self.lanes).chain(&self.warps) {
            if let Bit::Step { axis, .. } = bit {
                atom[usize::from(*axis)] *= 2;
            }
        }
        atom
    }

    /// The number of elements that a thread holds, including padding and copies.
    #[must_use]
    pub fn registers(&self) -> usize {
        (self.reps.iter().product::<u32>() as usize) << self.regs.len()
    }

    /// The number of threads that the layout distributes over.
    #[must_use]
    pub fn threads(&self) -> usize {
        1 << (self.lanes.len() + self.warps.len())
    }

    /// The contribution of a register number to the coordinates.
    #[must_use]
    pub fn register_coords(&self, register: usize) -> Coords {
        let atom = self.atom();
        let mut at = [0; 4];
        let mut rep = u32::try_from(register >> self.regs.len()).unwrap_or(0);
        for axis in (0..4).rev() {
            at[axis] = (rep % self.reps[axis]) * atom[axis];
            rep /= self.reps[axis];
        }
        for (i, bit) in self.regs.iter().enumerate() {
            if register >> i & 1 == 1 {
                bit.add_to(&mut at);
            }
        }
        at
    }

    /// The coordinates of the element in a register of a lane of a warp. An element beyond the extents is padding.
    #[must_use]
    pub fn coords(&self, register: usize, lane: usize, warp: usize) -> Coords {
        let mut at = self.register_coords(register);
        for (number, bits) in [(lane, &self.lanes), (warp, &self.warps)] {
            for (i, bit) in bits.iter().enumerate() {
                if number >> i & 1 == 1 {
                    bit.add_to(&mut at);
                }
            }
        }
        at
    }

    /// Whether some register of some thread is padding along an axis.
    #[must_use]
    pub fn is_padded(&self, axis: usize) -> bool {
        self.extents.get(axis).is_some_and(|n| self.reps[axis] * self.atom()[axis] != *n)
    }

    /// The overhead of padding, in percent of the tile's elements: 33 for a tile of 48 in an atom of 64.
    #[must_use]
    pub fn waste(&self) -> u32 {
        let atom = self.atom();
        let held: u64 = (0..self.rank()).map(|a| u64::from(self.reps[a] * atom[a])).product();
        let real: u64 = self.extents.iter().map(|n| u64::from(*n)).product();
        u32::try_from((held - real) * 100 / real.max(1)).unwrap_or(u32::MAX)
    }

    /// The layout of the result of a reduction along an axis: every thread that held elements of a line holds its result.
    #[must_use]
    pub fn without(&self, axis: usize) -> Layout {
        let shift = |a: u8| match usize::from(a) {
            own if own == axis => None,
            own if own > axis => Some(a - 1),
            _ => Some(a),
        };
        let mut extents = self.extents.clone();
        extents.remove(axis);
        self.renamed(&extents, &shift)
    }

    /// The layout of the transposed tile: axis `i` of the result is axis `perm[i]` of this one.
    #[must_use]
    pub fn permuted(&self, perm: &[u8]) -> Layout {
        let extents: Vec<u32> = perm.iter().map(|p| self.extents[usize::from(*p)]).collect();
        let place = |a: u8| perm.iter().position(|p| *p == a).and_then(|i| u8::try_from(i).ok());
        let mut out = self.renamed(&extents, &place);
        for (i, p) in perm.iter().enumerate() {
            out.reps[i] = self.reps[usize::from(*p)];
        }
        out
    }

    fn renamed(&self, extents: &[u32], to: &dyn Fn(u8) -> Option<u8>) -> Layout {
        let rename = |bits: &[Bit]| bits.iter().map(|b| b.rename(to)).collect::<Vec<_>>();
        let regs = rename(&self.regs).into_iter().filter(|b| *b != Bit::Copy).collect();
        Layout::new(extents, regs, rename(&self.lanes), rename(&self.warps))
    }

    /// The layout of `n` such tiles stacked along a new first axis, which lies entirely in registers.
    #[must_use]
    pub fn batched(&self, n: u32) -> Layout {
        let mut extents = vec![n];
        extents.extend(&self.extents);
        self.renamed(&extents, &|a| Some(a + 1))
    }

    /// The layout of a tile with one more axis, the last one, which lies entirely in registers.
    #[must_use]
    pub fn with_axis_in_registers(&self, extents: &[u32]) -> Layout {
        Layout::new(extents, self.regs.clone(), self.lanes.clone(), self.warps.clone())
    }

    /// The layout of a tile with other extents, by the same atom repeated as often as needed.
    #[must_use]
    pub fn with_extents(&self, extents: &[u32]) -> Layout {
        Layout::new(extents, self.regs.clone(), self.lanes.clone(), self.warps.clone())
    }

    /// The layout in which each thread holds so many adjacent elements along an axis, a power of two, in consecutive registers. All of the axis was in
    /// registers before.
    #[must_use]
    pub fn with_adjacent(&self, axis: u8, elements: u32) -> Layout {
        let adjacent = (0..elements.trailing_zeros()).map(|bit| Bit::Step { axis, by: 1 << bit });
        Layout::new(
            &self.extents,
            adjacent.chain(self.regs.iter().copied()).collect(),
            self.lanes.clone(),
            self.warps.clone(),
        )
    }

    /// The same layout for `lanes` times as many lanes and `warps` times as many warps (powers of two); the additional threads hold copies.
    #[must_use]
    pub fn with_spare_copies(mut self, lanes: u32, warps: u32) -> Layout {
        self.lanes.extend(std::iter::repeat_n(Bit::Copy, lanes.trailing_zeros() as usize));
        self.warps.extend(std::iter::repeat_n(Bit::Copy, warps.trailing_zeros() as usize));
        self
    }

    /// The layout of a tile with one element, which all threads hold.
    #[must_use]
    pub fn by_all(lanes: u32, warps: u32) -> Layout {
        Layout::new(&[1], Vec::new(), Vec::new(), Vec::new())
            .with_spare_copies(lanes.next_power_of_two(), warps.next_power_of_two())
    }

    /// The number of adjacent elements along an axis that a thread holds in consecutive registers: the width of its vector accesses.
    #[must_use]
    pub fn vector(&self, axis: usize) -> u32 {
        let run = self.regs.iter().enumerate().take_while(
            |(i, bit)| matches!(bit, Bit::Step { axis: own, by } if usize::from(*own) == axis && *by == 1 << i),
        );
        1 << run.count()
    }

    /// The lane bits that contribute to an axis, as masks: those of the shuffles of a reduction along the axis.
    #[must_use]
    pub fn lanes_along(&self, axis: usize) -> Vec<u32> {
        along(&self.lanes, axis)
    }

    /// The warp bits that contribute to an axis, as masks.
    #[must_use]
    pub fn warps_along(&self, axis: usize) -> Vec<u32> {
        along(&self.warps, axis)
    }
}

fn along(bits: &[Bit], axis: usize) -> Vec<u32> {
    bits.iter().enumerate().filter(|(_, b)| b.steps_along(axis)).map(|(i, _)| 1 << i).collect()
}

/// The extents of a tile as unsigned numbers.
impl From<TileShape> for Vec<u32> {
    fn from(shape: TileShape) -> Self {
        shape.iter().map(|n| u32::try_from(*n).unwrap_or(0)).collect()
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = |bits: &[Bit]| {
            let one = |b: &Bit| match b {
                Bit::Copy => "-".to_owned(),
                Bit::Step { axis, by } => {
                    format!("{}{by}", ["i", "j", "k", "l"].get(usize::from(*axis)).unwrap_or(&"?"))
                }
            };
            bits.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        let extents = self.extents.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
        write!(f, "{extents} reg[{}] lane[{}] warp[{}]", bits(&self.regs), bits(&self.lanes), bits(&self.warps))?;
        if self.reps.iter().any(|r| *r > 1) {
            write!(f, " rep{:?}", &self.reps[..self.rank()])?;
        }
        Ok(())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
