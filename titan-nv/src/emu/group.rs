//! The instructions that the warps of a warpgroup execute together.
//!
//! `wgmma` and `setmaxnreg` are instructions of a warpgroup: its four warps must execute the same ones, with the same
//! operands, in the same order. Each warp runs by itself here, so the first warp records what it executes, and the others
//! are compared with that.

use std::collections::VecDeque;

/// The code position of an instruction, and its operands that all warps share.
pub(crate) type Step = (u32, [u64; 2]);

/// The number of warps of a warpgroup.
const WARPS: usize = 4;

/// The steps that one warpgroup has executed.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The steps that not all warps have executed yet.
    steps: VecDeque<Step>,
    /// The number of steps before those.
    passed: usize,
    /// The number of steps that each warp has executed.
    at: [usize; WARPS],
}

impl Group {
    /// Records a step of a warp, given by its index in the group.
    ///
    /// # Errors
    /// The different step that another warp has executed.
    pub fn step(&mut self, warp: usize, step: Step) -> Result<(), Step> {
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

    /// The number of steps that some warps have executed, and others have not.
    #[must_use]
    pub fn open(&self) -> usize {
        self.steps.len()
    }

    /// The next step that others of the group have executed and this warp has not: the warp must not end.
    pub fn missed(&self, warp: usize) -> Option<Step> {
        self.steps.get(self.at[warp % WARPS] - self.passed).copied()
    }
}
