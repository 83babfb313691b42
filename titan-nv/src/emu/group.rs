//! What the warps of a warpgroup execute together.
//!
//! `wgmma` and `setmaxnreg` are instructions of a warpgroup: its four warps must execute the same ones, with the same
//! operands, in the same order. Each warp runs by itself here, so the first to come notes what it executes, and the others
//! are compared with that.

use std::collections::VecDeque;

/// An instruction, and its operands that all warps share.
pub(crate) type Step = (u32, [u64; 2]);

/// Warps of a warpgroup.
const WARPS: usize = 4;

/// What one warpgroup has executed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Group {
    /// Steps that not all warps have executed.
    steps: VecDeque<Step>,
    /// How many steps came before those.
    passed: usize,
    /// How many each warp has executed.
    at: [usize; WARPS],
}

impl Group {
    /// A warp, by its place in the group, executes a step; the step that another one has executed instead.
    pub(crate) fn step(&mut self, warp: usize, step: Step) -> Result<(), Step> {
        let at = &mut self.at[warp % WARPS];
        let index = *at - self.passed;
        *at += 1;
        match self.steps.get(index) {
            None => self.steps.push_back(step),
            Some(other) if *other == step => {}
            Some(other) => return Err(*other),
        }
        while !self.steps.is_empty() && self.at.iter().all(|n| *n > self.passed) {
            self.steps.pop_front();
            self.passed += 1;
        }
        Ok(())
    }

    /// A step that others of the group have executed and this warp has not: it must not end.
    pub(crate) fn missed(&self, warp: usize) -> Option<Step> {
        self.steps.get(self.at[warp % WARPS] - self.passed).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_are_compared_with_the_first() {
        let mut g = Group::default();
        assert_eq!(g.step(2, (7, [1, 0])), Ok(()));
        assert_eq!(g.step(2, (8, [1, 0])), Ok(()));
        assert_eq!(g.step(0, (7, [1, 0])), Ok(()));
        assert_eq!(g.step(1, (7, [2, 0])), Err((7, [1, 0])));
        assert_eq!(g.missed(0), Some((8, [1, 0])));
        assert_eq!(g.missed(2), None);
    }

    #[test]
    fn what_all_have_executed_is_forgotten() {
        let mut g = Group::default();
        for round in 0..3 {
            for warp in [1, 0, 3, 2] {
                assert_eq!(g.step(warp, (round, [0; 2])), Ok(()));
            }
            assert!(g.steps.is_empty() && g.passed > 0);
        }
    }
}
