//! Loads from buffers: `buffer_load`, whose range check gives zeros to lanes that are outside, so that no lane is masked.
//!
//! | word of the descriptor | contents (ISA §9.1.8 "Memory Buffer Resource") |
//! |---|---|
//! | 0, and the low half of 1 | the address; stride 0, so that it is a raw buffer |
//! | 2 | its bytes: offsets of lanes from there on are out of range (ISA §9.1.5.1); the scalar offset is 0 if there are fewer than 2³¹ |
//! | 3 | data format 32 and all else 0, as LLVM has it for gfx9 |

use super::memory::Access;
use super::{Select, Spot, Src};
use crate::codegen::error::{Done, Fault, two};
use crate::codegen::machine_ir::{File, Operand, Part};
use crate::isa::{Field, Form};
use titan_core::lane::{Op, Space};

/// The last word of the descriptor of a raw buffer.
const RAW: u64 = 0x0002_7000;

impl Select<'_> {
    /// The descriptor of a buffer in four scalar registers.
    pub(super) fn buffer(&mut self, op: &Op) -> Done {
        let [address, bytes] = two(&op.args)?;
        let (src, bytes) = (self.src(address)?, self.src(bytes)?);
        let at = match src {
            Src::V(part) => Src::S(self.first_lane(part)?),
            Src::S(_) | Src::Bits(_) | Src::Isa(_) => src,
        };
        let out = self.pieces(File::S, 4);
        self.move_scalar(out.word(0), at.word(0))?;
        self.salu("s_and_b32", Some(out.word(1).into()), &[at.word(1), Src::Bits(0xffff)])?;
        let bytes = match bytes {
            Src::V(part) => Src::S(self.first_lane(part)?),
            Src::S(_) | Src::Bits(_) | Src::Isa(_) => bytes,
        };
        self.move_scalar(out.word(2), bytes)?;
        self.move_scalar(out.word(3), Src::Bits(RAW))?;
        for (n, value) in (0..4).zip(&op.results) {
            self.set(*value, Spot::S(out.word(n)));
        }
        Ok(())
    }

    pub(super) fn buffer_load(&mut self, (bytes, n, offset): (u8, u8, u16), op: &Op) -> Done {
        let [words @ .., at, step] = &op.args[..] else {
            return Err(Fault::Defect("a load from no buffer".to_owned()));
        };
        let words = words.iter().map(|value| self.src(*value)).collect::<Result<Vec<Src>, Fault>>()?;
        let buffer = self.descriptor(&words)?;
        let at = self.src(*at)?;
        let at = self.in_vector(at, 1)?;
        let step: Operand = match self.src(*step)? {
            Src::Bits(0) => crate::isa::Operand::Inline(crate::isa::Inline::Int(0)).into(),
            src @ (Src::S(_) | Src::V(_) | Src::Bits(_) | Src::Isa(_)) => self.in_scalar(src, 1)?.into(),
        };
        let access = Access { space: Space::Global, bytes, n, offset: offset.into(), masked: false };
        let out = self.fresh(File::V, access.words());
        let name = match access.words() {
            1 => "buffer_load_dword",
            2 => "buffer_load_dwordx2",
            4 => "buffer_load_dwordx4",
            words => return Err(Fault::Defect(format!("a load of {words} words"))),
        };
        let mods = [(Field::Offen, 1), (Field::Offset, u32::from(offset))];
        self.full(name, Form::Base, &[out.into(), at.into(), buffer.into(), step], &mods)?;
        self.elements(access, out, op)
    }

    /// The four words of a descriptor as one register.
    fn descriptor(&mut self, words: &[Src]) -> Result<Part, Fault> {
        if let [Src::S(first), rest @ ..] = words {
            let follows = |(n, word): (u8, &Src)| *word == Src::S(Part { first: first.first + n, ..*first });
            if rest.len() == 3 && first.first == 0 && (1..).zip(rest).all(follows) {
                return Ok(Part { words: 4, ..*first });
            }
        }
        let out = self.pieces(File::S, 4);
        for (n, word) in (0..4).zip(words) {
            let word = self.in_scalar(*word, 1)?;
            self.move_scalar(out.word(n), Src::S(word))?;
        }
        Ok(out)
    }
}
