//! Lanes that leave a loop, end an iteration, or end the thread.
//!
//! If no lane of the loop waits, a branch of the wave does it. Otherwise the lanes are removed from the masks of all constructs that
//! they leave, and the wave continues where the next lanes are waiting. A `continue` removes them from the branches in the loop only: they wait for
//! the next iteration.

use super::control::Frame;
use super::{Select, Src};
use crate::codegen::error::{Done, Fault};
use crate::codegen::machine_ir::{Block, Part};
use crate::isa::Operand as Isa;
use titan_core::lane::Value;

impl Select<'_> {
    /// Where the innermost lanes are waiting, or the end of the wave.
    pub(super) fn landing(&self) -> Block {
        let found = self.frames.iter().rev().find_map(|frame| match frame {
            Frame::Arm { landing, .. } => Some(*landing),
            Frame::Loop(inner) => inner.masks.is_some().then_some(inner.next),
        });
        found.unwrap_or(self.end)
    }

    /// Removes the active lanes from a mask.
    fn remove(&mut self, mask: Part) -> Done {
        self.salu("s_andn2_b64", Some(mask.into()), &[Src::S(mask), Src::Isa(Isa::EXEC)])
    }

    /// Ends the thread for the active lanes.
    pub(super) fn finish(&mut self) -> Done {
        let masks = self.masks_from(0, true);
        for mask in masks {
            self.remove(mask)?;
        }
        let landing = self.landing();
        self.jump_away(landing)
    }

    /// Branches; what follows is not reached.
    fn jump_away(&mut self, to: Block) -> Done {
        self.jump(to)?;
        let behind = self.new_block();
        self.place(behind);
        Ok(())
    }

    /// The masks of the frames from a position on, which lanes leave; with `outer`, that position is left too.
    fn masks_from(&mut self, from: usize, outer: bool) -> Vec<Part> {
        let mut masks = Vec::new();
        for (at, frame) in self.frames.iter_mut().enumerate().skip(from) {
            match frame {
                Frame::Arm { saved, left, .. } => {
                    *left = true;
                    masks.push(*saved);
                }
                Frame::Loop(inner) => {
                    let leaves = at > from || outer;
                    if let (Some(both), true) = (inner.masks, leaves) {
                        inner.left = true;
                        masks.extend([both.active, both.entered]);
                    }
                }
            }
        }
        masks
    }

    /// Leaves the enclosing loop with a number (`out`), or ends its iteration.
    pub(super) fn leave(&mut self, n: u32, args: &[Value], out: bool) -> Done {
        let loops = self.frames.iter().enumerate().rev().filter(|(_, f)| matches!(f, Frame::Loop(_)));
        let at = loops.map(|(at, _)| at).nth(n as usize);
        let Some((at, Frame::Loop(target))) = at.and_then(|at| Some((at, self.frames.get(at)?.clone()))) else {
            return Err(Fault::Defect("no such loop".to_owned()));
        };
        self.copies(if out { &target.results } else { &target.carried }, args)?;
        let masks = self.masks_from(at, false);
        for mask in masks {
            self.remove(mask)?;
        }
        let Some(both) = target.masks else {
            // No lane of the loop waits: its frames have no arms, so the wave goes on where the target does.
            return self.jump_away(if out { target.exit } else { target.next });
        };
        if out {
            self.remove(both.active)?;
        }
        let landing = self.landing();
        self.jump_away(landing)
    }
}
