//! Atomic updates and compare-and-swap.
//!
//! They are relaxed, at the scope of the device: LLVM, "Memory Model gfx942", has no scope bits for an atomic of the scope of the agent, and
//! one that returns what was there before sets `SC0`, which the row does.

use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault, first, three, two};
use crate::codegen::machine_ir::{File, Operand, Part};
use crate::isa::Form;
use titan_core::lane::{AtomicFn, Op, Space, Ty};

const fn update(function: AtomicFn, space: Space, wide: bool) -> Option<&'static str> {
    Some(match (space, function, wide) {
        (Space::Global, AtomicFn::Add, false) => "global_atomic_add",
        (Space::Global, AtomicFn::MinS, false) => "global_atomic_smin",
        (Space::Global, AtomicFn::MinU, false) => "global_atomic_umin",
        (Space::Global, AtomicFn::MaxS, false) => "global_atomic_smax",
        (Space::Global, AtomicFn::MaxU, false) => "global_atomic_umax",
        (Space::Global, AtomicFn::And, false) => "global_atomic_and",
        (Space::Global, AtomicFn::Or, false) => "global_atomic_or",
        (Space::Global, AtomicFn::AddF32, false) => "global_atomic_add_f32",
        (Space::Global, AtomicFn::AddF16x2, false) => "global_atomic_pk_add_f16",
        (Space::Global, AtomicFn::Exchange, false) => "global_atomic_swap",
        (Space::Global, AtomicFn::Add, true) => "global_atomic_add_x2",
        (Space::Global, AtomicFn::MinS, true) => "global_atomic_smin_x2",
        (Space::Global, AtomicFn::MinU, true) => "global_atomic_umin_x2",
        (Space::Global, AtomicFn::MaxS, true) => "global_atomic_smax_x2",
        (Space::Global, AtomicFn::MaxU, true) => "global_atomic_umax_x2",
        (Space::Global, AtomicFn::And, true) => "global_atomic_and_x2",
        (Space::Global, AtomicFn::Or, true) => "global_atomic_or_x2",
        (Space::Global, AtomicFn::AddF64, true) => "global_atomic_add_f64",
        (Space::Global, AtomicFn::Exchange, true) => "global_atomic_swap_x2",
        (Space::Shared, AtomicFn::Add, false) => "ds_add_rtn_u32",
        (Space::Shared, AtomicFn::MinS, false) => "ds_min_rtn_i32",
        (Space::Shared, AtomicFn::MinU, false) => "ds_min_rtn_u32",
        (Space::Shared, AtomicFn::MaxS, false) => "ds_max_rtn_i32",
        (Space::Shared, AtomicFn::MaxU, false) => "ds_max_rtn_u32",
        (Space::Shared, AtomicFn::And, false) => "ds_and_rtn_b32",
        (Space::Shared, AtomicFn::Or, false) => "ds_or_rtn_b32",
        (Space::Shared, AtomicFn::AddF32, false) => "ds_add_rtn_f32",
        (Space::Shared, AtomicFn::AddF16x2, false) => "ds_pk_add_rtn_f16",
        (Space::Shared, AtomicFn::Exchange, false) => "ds_wrxchg_rtn_b32",
        (Space::Shared, AtomicFn::Add, true) => "ds_add_rtn_u64",
        (Space::Shared, AtomicFn::MinS, true) => "ds_min_rtn_i64",
        (Space::Shared, AtomicFn::MinU, true) => "ds_min_rtn_u64",
        (Space::Shared, AtomicFn::MaxS, true) => "ds_max_rtn_i64",
        (Space::Shared, AtomicFn::MaxU, true) => "ds_max_rtn_u64",
        (Space::Shared, AtomicFn::And, true) => "ds_and_rtn_b64",
        (Space::Shared, AtomicFn::Or, true) => "ds_or_rtn_b64",
        (Space::Shared, AtomicFn::AddF64, true) => "ds_add_rtn_f64",
        (Space::Shared, AtomicFn::Exchange, true) => "ds_wrxchg_rtn_b64",
        (_, AtomicFn::AddF32 | AtomicFn::AddF16x2, true) | (_, AtomicFn::AddF64, false) => return None,
    })
}

impl Select<'_> {
    pub(super) fn atomic(&mut self, function: AtomicFn, space: Space, masked: bool, op: &Op) -> Done {
        let (mask, args) = self.mask(masked, &op.args)?;
        let [address, by] = two(args)?;
        let (value, words) = (first(&op.results)?, self.words(by));
        let at = self.address(space, address, 0)?;
        let by = self.src(by)?;
        let data = self.in_vector(by, words)?;
        let name = update(function, space, words == 2)
            .ok_or_else(|| Fault::Refused(format!("no update {function} of {words} words")))?;
        let out = if mask.is_some() { self.pieces(File::V, words) } else { self.fresh(File::V, words) };
        if mask.is_some() {
            for n in 0..words {
                self.move_word(out.word(n), Src::Bits(0))?;
            }
        }
        let masked = self.only(mask)?;
        let mut operands = vec![out.into()];
        operands.extend(at.operands);
        operands.insert(2, data.into());
        self.full(name, Form::Base, &operands, &Self::offset_field(space, at.offset))?;
        self.unmask(&masked)?;
        self.set(value, Spot::V(out));
        Ok(())
    }

    pub(super) fn compare_swap(&mut self, space: Space, op: &Op) -> Done {
        let [address, old, new] = three(&op.args)?;
        let value = first(&op.results)?;
        let [old_src, new_src] = self.srcs([old, new])?;
        if self.func.ty(old) == Ty::B16 {
            let out = self.swap_half(space, address, old_src, new_src)?;
            self.set(value, Spot::V(out));
            return Ok(());
        }
        let words = self.words(old);
        let at = self.address(space, address, 0)?;
        let old = self.in_vector(old_src, words)?;
        let new = self.in_vector(new_src, words)?;
        let (mut operands, offset) = (at.operands, at.offset);
        let out = self.swap_words(space, &mut operands, offset, old, new)?;
        self.set(value, Spot::V(out));
        Ok(())
    }

    /// Compares and swaps one or two words; returns what was there before.
    ///
    /// ISA §10.2, `GLOBAL_ATOMIC_CMPSWAP`: the data are the new value, then the one that is compared. ISA §12.12, `DS_CMPST_RTN_B32`: the
    /// first datum is compared.
    pub(super) fn swap_words(
        &mut self,
        space: Space,
        address: &mut Vec<Operand>,
        offset: u32,
        old: Part,
        new: Part,
    ) -> Result<Part, Fault> {
        let words = old.words;
        let out = self.fresh(File::V, words);
        let mods = Self::offset_field(space, offset);
        address.insert(0, out.into());
        let name = match (space, words) {
            (Space::Global, 1) => "global_atomic_cmpswap",
            (Space::Global, _) => "global_atomic_cmpswap_x2",
            (Space::Shared, 1) => "ds_cmpst_rtn_b32",
            (Space::Shared, _) => "ds_cmpst_rtn_b64",
        };
        match space {
            Space::Global => {
                let data = self.pieces(File::V, 2 * words);
                for n in 0..words {
                    self.move_word(data.word(n), Src::V(new.word(n)))?;
                    self.move_word(data.word(words + n), Src::V(old.word(n)))?;
                }
                address.insert(2, data.into());
            }
            Space::Shared => address.extend([Operand::from(old), Operand::from(new)]),
        }
        self.full(name, Form::Base, address, &mods)?;
        Ok(out)
    }
}
