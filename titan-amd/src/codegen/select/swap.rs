//! Compare-and-swap of 16 bits, by that of the word around them.
//!
//! ```text
//! word ← the word, read by an atomic update that changes nothing
//! head: result ← the half of word
//!       the lanes whose result is not the expected half are done
//!       seen ← compare-and-swap of word by word with the new half
//!       the lanes with seen = word are done
//!       word ← seen, branch to head if there are lanes
//! ```
//!
//! A lane is done when its half differs, or when its swap took place: then the result is what was there. Otherwise another lane has changed
//! the word since, so that of all lanes and waves one made progress; each lane swaps once, so that the loop ends.

use super::{Select, Src};
use crate::codegen::error::Fault;
use crate::codegen::machine_ir::{File, Operand, Part};
use crate::isa::{Form, Operand as Isa};
use titan_core::lane::{Space, Value};

impl Select<'_> {
    /// Compares and swaps the half at an address that is a multiple of 2; returns what was there before.
    pub(super) fn swap_half(&mut self, space: Space, address: Value, old: Src, new: Src) -> Result<Part, Fault> {
        let words = self.words(address);
        let at = self.src(address)?;
        let at = Src::V(self.in_vector(at, words)?);
        let below = self.valu_new("v_and_b32", 1, &[Src::Bits(2), at.word(0)])?;
        let shift = Src::V(self.valu_new("v_lshlrev_b32", 1, &[Src::Bits(3), Src::V(below)])?);
        let start = self.valu_new("v_and_b32", 1, &[Src::Bits(0xffff_fffc), at.word(0)])?;
        let at = match space {
            Space::Global => self.pair(Src::V(start), at.word(1))?,
            Space::Shared => start,
        };
        let half = Src::V(self.in_vector(Src::Bits(0xffff), 1)?);
        let mask = self.valu_new("v_lshlrev_b32", 1, &[shift, half])?;
        let others = Src::V(self.valu_new("v_not_b32", 1, &[Src::V(mask)])?);
        let old = Src::V(self.valu_new("v_and_b32", 1, &[Src::Bits(0xffff), old])?);
        let new = self.valu_new("v_and_b32", 1, &[Src::Bits(0xffff), new])?;
        let new = Src::V(self.valu_new("v_lshlrev_b32", 1, &[shift, Src::V(new)])?);
        let (word, result) = (self.pieces(File::V, 1), self.pieces(File::V, 1));
        self.read_word(space, at, word)?;
        let saved = self.salu_new("s_mov_b64", 2, &[Src::Isa(Isa::EXEC)])?;
        let (head, exit, rest) = (self.new_block(), self.new_block(), self.new_block());
        self.depth += 1;
        self.place(head);
        self.valu("v_bfe_u32", &[result.into()], &[Src::V(word), shift, Src::Bits(16)], &[])?;
        let same = self.compare_new("v_cmp_eq_u32", [Src::V(result), old])?;
        self.keep(same)?;
        self.row("s_cbranch_execz", &[Operand::To(exit)])?;
        self.place(rest);
        let kept = self.valu_new("v_and_b32", 1, &[others, Src::V(word)])?;
        let wanted = self.valu_new("v_or_b32", 1, &[Src::V(kept), new])?;
        let mut operands = self.place_of(space, at);
        let seen = self.swap_words(space, &mut operands, 0, word, wanted)?;
        let changed = self.compare_new("v_cmp_ne_u32", [Src::V(seen), Src::V(word)])?;
        self.move_word(word, Src::V(seen))?;
        self.keep(changed)?;
        self.row("s_cbranch_execnz", &[Operand::To(head)])?;
        self.depth -= 1;
        self.place(exit);
        self.salu("s_mov_b64", Some(Self::EXEC), &[Src::S(saved)])?;
        Ok(result)
    }

    /// Of the active lanes, keeps those of a mask active.
    fn keep(&mut self, mask: Part) -> Result<(), Fault> {
        self.salu("s_and_b64", Some(Self::EXEC), &[Src::Isa(Isa::EXEC), Src::S(mask)])
    }

    fn place_of(&self, space: Space, at: Part) -> Vec<Operand> {
        match space {
            Space::Global => vec![at.into(), Isa::Off.into()],
            Space::Shared => vec![at.into()],
        }
    }

    /// Reads a word by an update that changes nothing, so that it is the one in memory and not one in a cache.
    fn read_word(&mut self, space: Space, at: Part, to: Part) -> Result<(), Fault> {
        let zero = self.in_vector(Src::Bits(0), 1)?;
        let mut operands = self.place_of(space, at);
        operands.insert(0, to.into());
        operands.insert(2, zero.into());
        let name = match space {
            Space::Global => "global_atomic_or",
            Space::Shared => "ds_or_rtn_b32",
        };
        self.full(name, Form::Base, &operands, &[])
    }
}
