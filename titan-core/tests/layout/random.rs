//! Random shapes and layouts, the same in every run.

use titan_core::layout::Layout;

/// xorshift64*, S. Vigna.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % u64::from(n)) as u32
    }

    pub(crate) fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    /// An extent of 1 to 200, often one that kernels have.
    fn extent(&mut self) -> u32 {
        if self.below(2) == 0 {
            self.of(&[1, 2, 8, 16, 32, 48, 60, 64, 112, 128, 176, 192])
        } else {
            1 + self.below(200)
        }
    }

    /// Extents of a tile of at most `most` elements.
    pub(crate) fn shape(&mut self, rank: usize, most: u32) -> Vec<u32> {
        loop {
            let shape: Vec<u32> = (0..rank).map(|_| self.extent()).collect();
            if shape.iter().map(|n| u64::from(*n)).product::<u64>() <= u64::from(most) {
                return shape;
            }
        }
    }

    pub(crate) fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            all.swap(i, self.below(i as u32 + 1) as usize);
        }
        all
    }

    /// A power of two as a product over the axes.
    fn split(&mut self, power: u32, rank: usize) -> Vec<u32> {
        let mut parts = vec![1; rank];
        for _ in 0..power.trailing_zeros() {
            parts[self.below(rank as u32) as usize] *= 2;
        }
        parts
    }

    /// A blocked layout of a shape for so many lanes and warps.
    pub(crate) fn blocked(&mut self, shape: &[u32], lanes: u32, warps: u32) -> Layout {
        let rank = shape.len();
        let (regs, order) = (1 << self.below(5), self.permutation(rank));
        let parts = [regs, lanes, warps].map(|power| self.split(power, rank));
        Layout::blocked(shape, &parts[0], &parts[1], &parts[2], &order)
    }
}

/// The elements that a thread holds, with copies, without padding.
pub(crate) fn held(layout: &Layout, lane: usize, warp: usize) -> Vec<[u32; 4]> {
    let inside = |at: &[u32; 4]| at.iter().zip(layout.extents()).all(|(x, n)| x < n);
    (0..layout.registers()).map(|r| layout.coords(r, lane, warp)).filter(inside).collect()
}
