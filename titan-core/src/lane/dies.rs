//! The numbers of programs on devices of several dies, each with a second-level cache of its own.
//!
//! Such a device deals programs to its dies in turn: with 8 dies, those with the indices 0, 8, 16, .. run on the first one. Programs with adjacent
//! indices, which read the same tiles where they are numbered in groups of rows, would then run on different dies, and each die would load all of
//! these tiles. So a program gets another number, such that the programs of a die have adjacent ones:
//!
//! ```text
//! die ← index mod dies,  turn ← index div dies
//! share ← programs div dies,  rest ← programs mod dies
//! number ← die · share + min(die, rest) + turn
//! ```
//!
//! **Why it is a permutation.** Die *d* has the indices *d*, *d* + dies, .. below the number of programs: share + 1 of them if *d* < rest, else share. The dies
//! before it have *d* · share + min(*d*, rest) together, which is the first number of die *d*, and its turns count from there. So each die has the
//! numbers behind those of the one before, and all of them together have each number once.
//!
//! **Example.** 11 programs on 4 dies: share 2, rest 3. The first numbers of the dies are 0, 3, 6 and 9; the programs 0 to 10 have the numbers
//! 0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8.
//!
//! No product exceeds the number of programs, so that nothing overflows.

use super::build::Builder;
use super::func::Value;
use super::op::{IntBin, OpKind};

impl Builder {
    /// The number of the program among those along axis 0, such that the programs of a die have adjacent numbers.
    pub fn number_on_dies(&mut self, dies: u32) -> Value {
        let index = self.one(OpKind::ProgramId(0), &[]);
        let Some(by) = i32::try_from(dies).ok().filter(|by| *by > 1) else { return index };
        let programs = self.one(OpKind::NumPrograms(0), &[]);
        let by = self.i32(by);
        let [turn, share] = [index, programs].map(|x| self.quotient(x, by, dies));
        let [die, rest] = [(index, turn), (programs, share)].map(|(x, quotient)| {
            let whole = self.mul(quotient, by);
            self.int(IntBin::Sub, x, whole)
        });
        let before = self.mul(die, share);
        let more = self.int(IntBin::MinU, die, rest);
        let first = self.add(before, more);
        self.add(first, turn)
    }

    /// An unsigned quotient.
    fn quotient(&mut self, x: Value, by: Value, number: u32) -> Value {
        if number.is_power_of_two() {
            let shift = self.i32(number.trailing_zeros().cast_signed());
            return self.int(IntBin::ShrU, x, shift);
        }
        self.int(IntBin::DivU, x, by)
    }
}
