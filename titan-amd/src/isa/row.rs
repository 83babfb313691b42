//! Rows of the instruction tables: the complete description of one instruction.
//!
//! A row describes how an instruction is encoded and printed, its operands and their types, and the state that it reads and
//! writes in addition. VOP1, VOP2 and VOPC instructions have further encodings (VOP3, SDWA, DPP) that follow from the one
//! in the row; [`Row::args_in`] has the operands of each.
//!
//! Deliberately absent: the results of instructions (the emulator has its own tables), and latencies other than
//! the passes of matrix instructions, which the manual states.

use super::format::{Field, Format};
use super::ty::Ty;

/// The access of an instruction to an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The operand is read.
    Read,
    /// The operand is written.
    Write,
    /// The operand is read and written, or only a part of it is written.
    ReadWrite,
}

/// The kind of operands that are allowed in a position, and their syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A scalar register that can be written: a general one, `vcc`, `m0`, `exec` and the like.
    Sdst,
    /// Any scalar operand: register, constant, literal.
    Ssrc,
    /// A scalar operand without literals.
    SsrcInline,
    /// Scalar registers of a memory operation: general ones, `vcc`, trap temporaries.
    Smem,
    /// Scalar registers in even pairs (base of a scalar load) or fours (descriptor), numbered by two.
    Sbase,
    /// Four scalar registers of a descriptor, numbered by four.
    Srsrc,
    /// An offset of a scalar load: immediate, register, or both.
    SmemOffset,
    /// A vector register.
    V,
    /// An accumulation register.
    A,
    /// A vector or accumulation register, selected by the instruction's `ACC` bit.
    Va,
    /// Any source of a vector instruction.
    Src,
    /// Any source except a literal.
    SrcInline,
    /// A source that is a vector register.
    SrcV,
    /// A source that is an accumulation register.
    SrcA,
    /// A scalar source of a vector instruction: register or constant.
    SrcS,
    /// A matrix operand: vector or accumulation registers, selected by a bit of its own.
    MatrixAb,
    /// The accumulator of a matrix instruction: registers, or a constant where it is read.
    MatrixC,
    /// The result of a matrix instruction.
    MatrixD,
    /// `vcc`, which is printed but not encoded.
    Vcc,
    /// A literal that is always present.
    Literal,
    /// A signed immediate, printed in decimal.
    Simm,
    /// An immediate, printed in hexadecimal.
    Hex,
    /// An unsigned immediate, printed in decimal.
    Uimm,
    /// A distance in words from the next instruction.
    Branch,
    /// Counters to wait for.
    Waitcnt,
    /// A hardware register, with an offset and a width in bits.
    Hwreg,
    /// A message.
    Message,
    /// The operands whose vector registers are indexed.
    IndexMode,
    /// The address of a buffer operation, which depends on `OFFEN` and `IDXEN`.
    BufferAddr,
    /// An offset of a buffer operation: a scalar register or constant.
    Soffset,
    /// The address of a global operation: 64 bits, or 32 bits with a scalar base.
    GlobalAddr,
    /// The scalar base of a global operation, or `off`.
    GlobalBase,
    /// The address of a scratch operation, or `off`.
    ScratchAddr,
    /// The scalar offset of a scratch operation, or `off`.
    ScratchBase,
}

/// An operand of an instruction, in the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// The access to the operand.
    pub access: Access,
    /// The field that contains its code.
    pub field: Field,
    /// The kind of operands that are allowed.
    pub class: Class,
    /// The type of the operand.
    pub ty: Ty,
}

/// Implicit state that an instruction reads or writes, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Implicit(u16);

impl Implicit {
    /// The empty set.
    pub const NONE: Implicit = Implicit(0);
    /// The scalar condition code.
    pub const SCC: Implicit = Implicit(1);
    /// The vector condition code, where it is not an operand.
    pub const VCC: Implicit = Implicit(1 << 1);
    /// The mask of active lanes.
    pub const EXEC: Implicit = Implicit(1 << 2);
    /// The memory descriptor register.
    pub const M0: Implicit = Implicit(1 << 3);
    /// The mode: rounding, denormals, clamping.
    pub const MODE: Implicit = Implicit(1 << 4);
    /// The program counter.
    pub const PC: Implicit = Implicit(1 << 5);
    /// The base of private memory.
    pub const FLAT_SCRATCH: Implicit = Implicit(1 << 6);

    /// The union of two sets.
    #[must_use]
    pub const fn and(self, other: Implicit) -> Implicit {
        Implicit(self.0 | other.0)
    }

    /// Whether the set contains all of `other`.
    #[must_use]
    pub const fn has(self, other: Implicit) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set without the elements of `other`.
    #[must_use]
    pub const fn without(self, other: Implicit) -> Implicit {
        Implicit(self.0 & !other.0)
    }
}

/// The part of a compute unit that executes an instruction; hazards and counters depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Scalar arithmetic.
    Salu,
    /// Scalar memory: `lgkmcnt`, out of order.
    Smem,
    /// Vector arithmetic.
    Valu,
    /// Vector arithmetic at a quarter of the rate: ISA table 12 "Trans Ops".
    Trans,
    /// Dot products with an accumulator: ISA §7.5 "DLops".
    Dot,
    /// MMAs of 8, 16 and 19 bits: ISA §7.5 "XDL".
    Xdl,
    /// MMAs of `f32`.
    Sgemm,
    /// MMAs of `f64`.
    Dgemm,
    /// Loads of vector memory: `vmcnt`.
    Load,
    /// Stores to vector memory: `vmcnt`.
    Store,
    /// Atomics on vector memory: `vmcnt`.
    Atomic,
    /// Loads from vector memory into the local data share: `vmcnt`.
    LoadLds,
    /// Cache control of vector memory.
    Cache,
    /// The local data share: `lgkmcnt`, in order.
    Lds,
    /// Branches, and the end of the program.
    Branch,
    /// Operations of the sequencer: waits, barriers, idle states, priorities.
    Control,
}

/// The modifiers that an instruction supports, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mods(u32);

impl Mods {
    /// No modifiers.
    pub const NONE: Mods = Mods(0);
    /// Results can be clamped.
    pub const CLAMP: Mods = Mods(1);
    /// Results can be multiplied by 2, 4 or 1/2.
    pub const OMOD: Mods = Mods(1 << 1);
    /// Halves of 16-bit operands can be chosen.
    pub const OP_SEL: Mods = Mods(1 << 2);
    /// Halves of packed operands can be chosen, for both results.
    pub const OP_SEL_HI: Mods = Mods(1 << 3);
    /// The lower halves of packed operands can be negated.
    pub const NEG_LO: Mods = Mods(1 << 4);
    /// The higher halves of packed operands can be negated; for `v_fma_mix`, the absolute value is taken.
    pub const NEG_HI: Mods = Mods(1 << 5);
    /// There is an encoding with an SDWA word.
    pub const SDWA: Mods = Mods(1 << 6);
    /// There is an encoding with a DPP word.
    pub const DPP: Mods = Mods(1 << 7);
    /// The DPP word supports only `row_newbcast`.
    pub const DPP64: Mods = Mods(1 << 8);
    /// Blocks of a matrix operand can be broadcast.
    pub const BROADCAST: Mods = Mods(1 << 9);
    /// Lanes of the second matrix operand can be permuted.
    pub const BLGP: Mods = Mods(1 << 10);
    /// Matrix operands can be negated.
    pub const MATRIX_NEG: Mods = Mods(1 << 11);
    /// One byte offset.
    pub const OFFSET: Mods = Mods(1 << 12);
    /// Two offsets, in elements.
    pub const OFFSET2: Mods = Mods(1 << 13);
    /// Temporal hint and scopes.
    pub const CACHE: Mods = Mods(1 << 14);
    /// Scopes without a temporal hint.
    pub const SCOPES: Mods = Mods(1 << 26);
    /// Returning atomics set `SC0`, so only the others are hints.
    pub const CACHE_ATOMIC: Mods = Mods(1 << 15);
    /// The descriptor's offsets and indices.
    pub const BUFFER: Mods = Mods(1 << 16);
    /// Sources have no `-x` and `|x|`, though they are floats.
    pub const NO_NEG: Mods = Mods(1 << 17);
    /// Sources support `-x` and `|x|`, though the row declares them as bits.
    pub const BITS_NEG: Mods = Mods(1 << 18);
    /// Scalar memory: miss and evict.
    pub const GLC: Mods = Mods(1 << 19);
    /// There is no VOP3 encoding.
    pub const NO_E64: Mods = Mods(1 << 20);
    /// A pattern of `ds_swizzle`.
    pub const SWIZZLE: Mods = Mods(1 << 21);
    /// The selection of halves has no bit for the destination.
    pub const OP_SEL_NO_DST: Mods = Mods(1 << 22);
    /// Only the first source may be negated, or made absolute.
    pub const FIRST_NEG_ONLY: Mods = Mods(1 << 23);
    /// The SDWA word selects only a part of the source.
    pub const SDWA_SOURCE: Mods = Mods(1 << 24);
    /// The mnemonic has the suffix of its encoding, though there is no other encoding.
    pub const SUFFIX: Mods = Mods(1 << 25);

    /// The union of two sets.
    #[must_use]
    pub const fn and(self, other: Mods) -> Mods {
        Mods(self.0 | other.0)
    }

    /// Whether the set contains all of `other`.
    #[must_use]
    pub const fn has(self, other: Mods) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set without the elements of `other`.
    #[must_use]
    pub const fn without(self, other: Mods) -> Mods {
        Mods(self.0 & !other.0)
    }
}

/// The encoding of an instruction, where there is a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// The encoding of the row.
    Base,
    /// VOP1, VOP2 or VOPC as VOP3.
    E64,
    /// An encoding with an additional word that selects parts of registers.
    Sdwa,
    /// An encoding with an additional word that moves data across lanes.
    Dpp,
}

/// The largest number of operands of an instruction.
pub const MAX_ARGS: usize = 6;

/// The operands of a row, in the order of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Args {
    list: [Arg; MAX_ARGS],
    len: u8,
}

impl Args {
    pub(crate) const NONE: Args = Args {
        list: [Arg { access: Access::Read, field: Field::Op, class: Class::Simm, ty: super::ty::B32 }; MAX_ARGS],
        len: 0,
    };

    pub(crate) const fn with(mut self, arg: Arg) -> Args {
        self.list[self.len as usize] = arg;
        self.len += 1;
        self
    }

    /// The operands as a slice.
    #[must_use]
    pub const fn as_slice(&self) -> &[Arg] {
        self.list.split_at(self.len as usize).0
    }
}

/// The description of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The mnemonic, without the suffix of an encoding.
    pub name: &'static str,
    /// The format of its encoding.
    pub format: Format,
    /// The opcode in the format.
    pub op: u16,
    /// The operands.
    pub args: Args,
    /// Fields with a fixed value, which distinguish it from others with its opcode.
    pub fixed: &'static [(Field, u32)],
    /// The implicit state that it reads.
    pub reads: Implicit,
    /// The implicit state that it writes.
    pub writes: Implicit,
    /// The unit that executes it.
    pub unit: Unit,
    /// The modifiers that it supports.
    pub mods: Mods,
    /// The number of passes of four clocks of a matrix instruction (ISA §7.1.2, §7.5); 0 for all others.
    pub passes: u8,
}

/// Rows compare by identity: each row is in the tables once.
impl Row {
    /// The operands, in the order of the text.
    #[must_use]
    pub const fn args(&self) -> &[Arg] {
        self.args.as_slice()
    }

    /// The encodings of the instruction.
    #[must_use]
    pub fn forms(&self) -> Vec<Form> {
        let all = [Form::Base, Form::E64, Form::Sdwa, Form::Dpp];
        all.into_iter().filter(|f| self.has_form(*f)).collect()
    }

    /// Whether the instruction has an encoding.
    #[must_use]
    pub const fn has_form(&self, form: Form) -> bool {
        let short = matches!(self.format, Format::Vop1 | Format::Vop2 | Format::Vopc);
        match form {
            Form::Base => true,
            Form::E64 => short && !self.mods.has(Mods::NO_E64),
            Form::Sdwa => self.mods.has(Mods::SDWA),
            Form::Dpp => self.mods.has(Mods::DPP),
        }
    }

    /// The format of an encoding.
    #[must_use]
    pub fn format_in(&self, form: Form) -> Format {
        match form {
            Form::Base | Form::Sdwa | Form::Dpp => self.format,
            Form::E64 if self.carries() => Format::Vop3b,
            Form::E64 => Format::Vop3a,
        }
    }

    /// The opcode of an encoding: ISA §13.3.4, VOP3 has the opcodes of VOPC from 0, of VOP2 from 256, of VOP1 from 320.
    #[must_use]
    pub const fn op_in(&self, form: Form) -> u16 {
        match (form, self.format) {
            (Form::E64, Format::Vop2) => self.op + 0x100,
            (Form::E64, Format::Vop1) => self.op + 0x140,
            _ => self.op,
        }
    }

    /// Whether the instruction writes a carry to `vcc`.
    fn carries(&self) -> bool {
        self.format == Format::Vop2 && self.args().iter().any(|a| a.class == Class::Vcc && a.access == Access::Write)
    }

    /// The operands in an encoding.
    #[must_use]
    pub fn args_in(&self, form: Form) -> Args {
        let mut args = self.args;
        // This is asked very often, and mostly for the encoding of the row.
        if form != Form::Base {
            for arg in args.list.iter_mut().take(args.len.into()) {
                *arg = self.arg_in(*arg, form);
            }
        }
        args
    }

    fn arg_in(&self, arg: Arg, form: Form) -> Arg {
        let Arg { access, field, class, ty } = arg;
        match form {
            Form::Base => arg,
            Form::E64 => match (class, access) {
                (Class::Vcc, Access::Write) if self.format == Format::Vopc => {
                    Arg { field: Field::Vdst, class: Class::Sdst, ..arg }
                }
                (Class::Vcc, Access::Write) => Arg { field: Field::VopSdst, class: Class::Sdst, ..arg },
                (Class::Vcc, _) => Arg { field: Field::Src2, class: Class::SrcS, ..arg },
                _ if field == Field::Vsrc1 => Arg { field: Field::Src1, class: Class::SrcInline, access, ty },
                _ if class == Class::Src => Arg { class: Class::SrcInline, ..arg },
                _ => arg,
            },
            Form::Sdwa => match (class, access) {
                (Class::Vcc, Access::Write) if self.format == Format::Vopc => {
                    Arg { field: Field::SdwaSdst, class: Class::Sdst, ..arg }
                }
                _ if field == Field::Src0 => Arg { field: Field::SdwaSrc0, class: Class::SrcInline, access, ty },
                _ if field == Field::Vsrc1 => Arg { class: Class::SrcInline, ..arg },
                _ => arg,
            },
            Form::Dpp if field == Field::Src0 => Arg { field: Field::DppSrc0, class: Class::V, access, ty },
            Form::Dpp => arg,
        }
    }
}
