//! A lane's own indices, the words of the parameter block, selection, and packing and unpacking of words.

use super::{KERNARG, Select, Spot, Src};
use crate::codegen::error::{Done, Fault, first, three};
use crate::codegen::machine_ir::{File, Part};
use crate::isa::Operand as Isa;
use titan_core::lane::{Op, OpKind, Ty, Value};

/// The bits of a work item's number along axis 0: LLVM, "Initial Kernel Execution State", packed work-item IDs.
const ITEM_BITS: u64 = 0x3ff;

impl Select<'_> {
    /// A word of the parameter block, which the address of the arguments points to.
    pub(super) fn slot(&mut self, slot: u32, op: &Op) -> Done {
        let out = self.out_s(first(&op.results)?);
        let offset = self.offsets.get(slot as usize).copied();
        let offset = offset.ok_or_else(|| Fault::Defect(format!("there is no parameter word {slot}")))?;
        self.argument(out, offset)
    }

    fn argument(&mut self, out: Part, offset: usize) -> Done {
        let Ok(offset @ 0..=0xf_ffff) = i32::try_from(offset) else {
            return Err(Fault::Refused("the arguments of a kernel have at most 1 MiB".to_owned()));
        };
        let name = if out.words == 2 { "s_load_dwordx2" } else { "s_load_dword" };
        self.row(name, &[out.into(), KERNARG.into(), Isa::Imm(offset).into()])
    }

    fn item(&mut self) -> Result<Part, Fault> {
        self.valu_new("v_and_b32", 1, &[Src::Bits(ITEM_BITS), Src::Isa(Isa::V(0, 1))])
    }

    pub(super) fn thread_id(&mut self, op: &Op) -> Done {
        let item = self.item()?;
        self.set(first(&op.results)?, Spot::V(item));
        Ok(())
    }

    /// The waves of a workgroup have consecutive work items, 64 each.
    pub(super) fn lane_id(&mut self, op: &Op) -> Done {
        let out = self.out_v(first(&op.results)?);
        self.valu("v_and_b32", &[out.into()], &[Src::Bits(63), Src::Isa(Isa::V(0, 1))], &[])
    }

    pub(super) fn warp_id(&mut self, op: &Op) -> Done {
        let item = self.item()?;
        let wave = self.valu_new("v_lshrrev_b32", 1, &[Src::Bits(6), Src::V(item)])?;
        let wave = self.first_lane(wave)?;
        self.set(first(&op.results)?, Spot::S(wave));
        Ok(())
    }

    pub(super) fn program_id(&mut self, axis: u8, op: &Op) -> Done {
        let out = self.out_s(first(&op.results)?);
        self.move_scalar(out, Src::Isa(Isa::S(2 + grid_axis(axis)?, 1)))
    }

    /// The extent of the grid, which the runtime writes after the parameter block: LLVM, "Code Object V5 Metadata",
    /// `hidden_block_count_x` and those of the other axes.
    pub(super) fn num_programs(&mut self, axis: u8, op: &Op) -> Done {
        let out = self.out_s(first(&op.results)?);
        self.reads_grid = true;
        self.argument(out, self.grid_at + 4 * usize::from(grid_axis(axis)?))
    }

    /// The shared memory of a program begins at 0: the addresses of the local data share are relative to the workgroup's part.
    pub(super) fn shared_base(&mut self, op: &Op) -> Done {
        self.set(first(&op.results)?, Spot::Bits(0));
        Ok(())
    }

    pub(super) fn truncate(&mut self, to: Ty, op: &Op) -> Done {
        let (out, src) = (first(&op.results)?, self.src(first(&op.args)?)?);
        let src = match (src, to) {
            (Src::Bits(bits), Ty::B16) => Src::Bits(bits & 0xffff),
            (_, _) => src.word(0),
        };
        self.set_src(out, src)
    }

    pub(super) fn pred_to_int(&mut self, op: &Op) -> Done {
        let (value, cond) = (first(&op.results)?, self.src(first(&op.args)?)?);
        if self.is_scalar(op)? {
            let out = self.out_s(value);
            self.test(cond)?;
            return self.salu("s_cselect_b32", Some(out.into()), &[Src::Bits(1), Src::Bits(0)]);
        }
        let (out, mask) = (self.out_v(value), self.in_scalar(cond, 2)?);
        self.valu("v_cndmask_b32", &[out.into()], &[Src::Bits(0), Src::Bits(1), Src::S(mask)], &[])
    }

    /// Sets the condition code to whether a condition holds in an active lane.
    pub(super) fn test(&mut self, cond: Src) -> Done {
        self.salu_new("s_and_b64", 2, &[cond, Src::Isa(Isa::EXEC)]).map(drop)
    }

    pub(super) fn select(&mut self, op: &Op) -> Done {
        let value = first(&op.results)?;
        let [cond, yes, no] = self.srcs(three(&op.args)?)?;
        if self.func.ty(value) == Ty::Pred {
            // `(c ∧ a) ∨ (¬c ∧ b)`.
            let a = self.salu_new("s_and_b64", 2, &[yes, cond])?;
            let b = self.salu_new("s_andn2_b64", 2, &[no, cond])?;
            let out = self.out_mask(value);
            return self.salu("s_or_b64", Some(out.into()), &[Src::S(a), Src::S(b)]);
        }
        let words = self.words(value);
        if self.is_scalar(op)? {
            let out = self.out_s(value);
            let (yes, no) = (self.legal_scalar(yes, words)?, self.legal_scalar(no, words)?);
            self.test(cond)?;
            let name = if words == 2 { "s_cselect_b64" } else { "s_cselect_b32" };
            return self.salu(name, Some(out.into()), &[yes, no]);
        }
        // A condition that is a constant has no register yet, and the instruction takes no other operand as its mask.
        let mask = Src::S(self.in_scalar(cond, 2)?);
        if words == 1 {
            let out = self.out_v(value);
            return self.valu("v_cndmask_b32", &[out.into()], &[no, yes, mask], &[]);
        }
        let out = self.out_pieces(value, File::V);
        for n in 0..words {
            self.valu("v_cndmask_b32", &[out.word(n).into()], &[no.word(n), yes.word(n), mask], &[])?;
        }
        Ok(())
    }

    /// A scalar source that needs no instruction any more.
    fn legal_scalar(&mut self, src: Src, words: u8) -> Result<Src, Fault> {
        match src {
            Src::Bits(bits) if super::emit::is_inline(bits) => Ok(src),
            Src::S(_) | Src::V(_) | Src::Bits(_) | Src::Isa(_) => self.in_scalar(src, words).map(Src::S),
        }
    }

    pub(super) fn pack(&mut self, op: &Op) -> Done {
        let value = first(&op.results)?;
        let mut parts = Vec::new();
        for arg in &op.args {
            parts.push(self.src(*arg)?);
        }
        match (parts.as_slice(), self.func.ty(value)) {
            ([Src::Bits(low), Src::Bits(high)], Ty::B16 | Ty::B32 | Ty::Pred) => {
                self.set(value, Spot::Bits(low & 0xffff | (high & 0xffff) << 16));
                Ok(())
            }
            ([Src::Bits(a), Src::Bits(b), Src::Bits(c), Src::Bits(d)], _) => {
                let bytes = [a, b, c, d].into_iter().rev().fold(0, |all, byte| all << 8 | byte & 0xff);
                self.set(value, Spot::Bits(bytes));
                Ok(())
            }
            ([low, high], Ty::B64) => self.pack_words([*low, *high], op),
            ([low, high], Ty::B16 | Ty::B32 | Ty::Pred) => {
                let of_words = match op.args.as_slice() {
                    [a, b] => self.half_of(*a)?.zip(self.half_of(*b)?),
                    _ => None,
                };
                let packed = match of_words {
                    Some((a, b)) => self.two_halves(a, b)?,
                    None => self.halves(*low, *high)?,
                };
                self.set(value, Spot::V(packed));
                Ok(())
            }
            ([a, b, c, d], _) => {
                let packed = self.bytes([*a, *b, *c, *d])?;
                self.set(value, Spot::V(packed));
                Ok(())
            }
            (_, _) => Err(Fault::Defect("no such number of operands".to_owned())),
        }
    }

    fn pack_words(&mut self, [low, high]: [Src; 2], op: &Op) -> Done {
        let value = first(&op.results)?;
        if let (Src::Bits(low), Src::Bits(high)) = (low, high) {
            self.set(value, Spot::Bits(low & 0xffff_ffff | high << 32));
            return Ok(());
        }
        let scalar = self.is_scalar(op)?;
        let out = self.out_pieces(value, if scalar { File::S } else { File::V });
        for (n, src) in (0..2).zip([low, high]) {
            if scalar { self.move_scalar(out.word(n), src)? } else { self.move_word(out.word(n), src)? }
        }
        Ok(())
    }

    /// Two halves as one word.
    pub(super) fn halves(&mut self, low: Src, high: Src) -> Result<Part, Fault> {
        match (low, high) {
            (Src::Bits(low), Src::Bits(high)) => {
                return self.in_vector(Src::Bits(low & 0xffff | (high & 0xffff) << 16), 1);
            }
            (Src::Bits(0), _) => return self.valu_new("v_lshlrev_b32", 1, &[Src::Bits(16), high]),
            (_, Src::Bits(0)) => return self.valu_new("v_and_b32", 1, &[Src::Bits(0xffff), low]),
            (Src::V(low), Src::V(high)) => return self.two_halves((low, false), (high, false)),
            (_, _) => {}
        }
        let low = self.valu_new("v_and_b32", 1, &[Src::Bits(0xffff), low])?;
        self.valu_new("v_lshl_or_b32", 1, &[high, Src::Bits(16), Src::V(low)])
    }

    /// The word in a vector register of which a value is a half, and which one.
    fn half_of(&self, value: Value) -> Result<Option<(Part, bool)>, Fault> {
        if let Some(part) = self.uppers.get(&value) {
            return Ok(Some((*part, true)));
        }
        let Some(op) = self.func.def_op(value).filter(|op| op.kind == OpKind::Unpack) else { return Ok(None) };
        let ([word], [low, high]) = (op.args.as_slice(), op.results.as_slice()) else { return Ok(None) };
        let is_word = self.func.ty(*word) == Ty::B32 && (value == *low || value == *high);
        Ok(match self.src(*word)? {
            Src::V(part) if is_word => Some((part, value == *high)),
            Src::V(_) | Src::S(_) | Src::Bits(_) | Src::Isa(_) => None,
        })
    }

    /// Halves of two words as one word. `v_perm_b32` selects four of the eight bytes of both, of which the second word has those from 0 on:
    /// ISA §12.11.
    fn two_halves(&mut self, (low, of_high): (Part, bool), (high, to_high): (Part, bool)) -> Result<Part, Fault> {
        let bytes = |second: u64, upper: bool| second + if upper { 2 } else { 0 };
        let (low_at, high_at) = (bytes(0, of_high), bytes(4, to_high));
        let select = low_at | (low_at + 1) << 8 | high_at << 16 | (high_at + 1) << 24;
        let select = self.kept_constant(select)?;
        self.valu_new("v_perm_b32", 1, &[Src::V(high), Src::V(low), Src::S(select)])
    }

    /// A constant in a scalar register that all instructions of the region share.
    pub(super) fn kept_constant(&mut self, bits: u64) -> Result<Part, Fault> {
        let known = self.kept.iter().find(|(region, known, _)| *region == self.region && *known == bits);
        if let Some((_, _, part)) = known {
            return Ok(*part);
        }
        let part = self.scalar_constant(bits, 1)?;
        self.kept.push((self.region, bits, part));
        Ok(part)
    }

    /// The low bytes of four words as one word, the first one lowest.
    pub(super) fn bytes(&mut self, [a, b, c, d]: [Src; 4]) -> Result<Part, Fault> {
        let mut out = self.valu_new("v_and_b32", 1, &[Src::Bits(0xff), a])?;
        for (at, byte) in [(8, b), (16, c)] {
            let byte = self.valu_new("v_and_b32", 1, &[Src::Bits(0xff), byte])?;
            out = self.valu_new("v_lshl_or_b32", 1, &[Src::V(byte), Src::Bits(at), Src::V(out)])?;
        }
        self.valu_new("v_lshl_or_b32", 1, &[d, Src::Bits(24), Src::V(out)])
    }

    pub(super) fn unpack(&mut self, op: &Op) -> Done {
        let arg = first(&op.args)?;
        let (src, [low, high]) = (self.src(arg)?, super::super::error::two(&op.results)?);
        if self.func.ty(arg) == Ty::B64 {
            self.set_src(low, src.word(0))?;
            return self.set_src(high, src.word(1));
        }
        if let Src::Bits(bits) = src {
            self.set(low, Spot::Bits(bits & 0xffff));
            self.set(high, Spot::Bits(bits >> 16 & 0xffff));
            return Ok(());
        }
        self.set_src(low, src)?;
        if self.is_scalar(op)? {
            let out = self.out_s(high);
            return self.salu("s_lshr_b32", Some(out.into()), &[src, Src::Bits(16)]);
        }
        let out = self.out_v(high);
        self.valu("v_lshrrev_b32", &[out.into()], &[Src::Bits(16), src], &[])
    }

    pub(super) fn unpack_bytes(&mut self, signed: bool, op: &Op) -> Done {
        let src = self.src(first(&op.args)?)?;
        let name = if signed { "v_bfe_i32" } else { "v_bfe_u32" };
        for (byte, value) in (0u64..).zip(&op.results) {
            let out = self.out_v(*value);
            self.valu(name, &[out.into()], &[src, Src::Bits(8 * byte), Src::Bits(8)], &[])?;
        }
        Ok(())
    }
}

/// The axis of the grid, if it has that axis.
fn grid_axis(axis: u8) -> Result<u8, Fault> {
    if axis < 3 { Ok(axis) } else { Err(Fault::Refused("grids have three axes, 0 to 2".to_owned())) }
}
