//! Constructors of rows: a function for each shape of operands.

mod memory;

pub(super) use memory::*;

use crate::isa::format::{Field, Format};
use crate::isa::row::{Access, Arg, Args, Class, Implicit, Mods, Row, Unit};
use crate::isa::ty::*;

use Access::{Read, ReadWrite, Write};

impl Row {
    const fn new(format: Format, op: u16, name: &'static str, unit: Unit) -> Row {
        Row {
            name,
            format,
            op,
            args: Args::NONE,
            fixed: &[],
            reads: Implicit::NONE,
            writes: Implicit::NONE,
            unit,
            mods: Mods::NONE,
            passes: 0,
        }
    }

    const fn arg(mut self, access: Access, field: Field, class: Class, ty: Ty) -> Row {
        self.args = self.args.with(Arg { access, field, class, ty });
        self
    }

    pub(super) const fn reads(mut self, what: Implicit) -> Row {
        self.reads = self.reads.and(what);
        self
    }

    pub(super) const fn writes(mut self, what: Implicit) -> Row {
        self.writes = self.writes.and(what);
        self
    }

    pub(super) const fn unit(mut self, unit: Unit) -> Row {
        self.unit = unit;
        self
    }

    pub(super) const fn mods(mut self, mods: Mods) -> Row {
        self.mods = self.mods.and(mods);
        self
    }

    pub(super) const fn without(mut self, mods: Mods) -> Row {
        self.mods = self.mods.without(mods);
        self
    }

    const fn fixed(mut self, fixed: &'static [(Field, u32)]) -> Row {
        self.fixed = fixed;
        self
    }

    /// The first operand is read too, or only a part of it is written.
    pub(super) const fn updates(mut self) -> Row {
        let (mut args, mut i) = (Args::NONE, 0);
        while i < self.args().len() {
            let mut arg = self.args()[i];
            if i == 0 {
                arg.access = ReadWrite;
            }
            args = args.with(arg);
            i += 1;
        }
        self.args = args;
        self
    }

    pub(super) const fn no_sdwa(self) -> Row {
        self.without(Mods::SDWA)
    }

    pub(super) const fn no_dpp(self) -> Row {
        self.without(Mods::DPP.and(Mods::DPP64))
    }

    /// The halves of packed floats can be negated.
    pub(super) const fn negates(self) -> Row {
        self.mods(Mods::NEG_LO.and(Mods::NEG_HI))
    }

    /// `vcc` chooses between the sources.
    pub(super) const fn selects(self) -> Row {
        self.arg(Read, Field::Op, Class::Vcc, B64)
    }

    pub(super) const fn reads_vcc(self) -> Row {
        self.reads(Implicit::VCC)
    }

    pub(super) const fn imm(self, class: Class) -> Row {
        self.arg(Read, Field::Simm16, class, B16)
    }

    pub(super) const fn sdata(self, ty: Ty) -> Row {
        self.arg(Write, Field::Sdata, Class::Smem, ty)
    }
}

// Scalar.

const fn salu(format: Format, op: u16, name: &'static str) -> Row {
    Row::new(format, op, name, Unit::Salu)
}

pub(super) const fn s2(op: u16, name: &'static str, d: Ty, a: Ty, b: Ty) -> Row {
    salu(Format::Sop2, op, name).arg(Write, Field::Sdst, Class::Sdst, d).arg(Read, Field::Ssrc0, Class::Ssrc, a).arg(
        Read,
        Field::Ssrc1,
        Class::Ssrc,
        b,
    )
}

pub(super) const fn k(op: u16, name: &'static str, access: Access, class: Class, ty: Ty) -> Row {
    salu(Format::Sopk, op, name).arg(access, Field::Sdst, Class::Sdst, ty).imm(class)
}

pub(super) const fn setreg(op: u16, name: &'static str) -> Row {
    salu(Format::Sopk, op, name).imm(Class::Hwreg).arg(Read, Field::Sdst, Class::Sdst, B32)
}

/// An instruction with a literal, and so two words.
pub(super) const fn setreg_imm(op: u16, name: &'static str) -> Row {
    salu(Format::Sopk, op, name).fixed(&[(Field::Sdst, 0)]).imm(Class::Hwreg).arg(Read, Field::Op, Class::Literal, B32)
}

pub(super) const fn s1_dst(op: u16, name: &'static str, d: Ty) -> Row {
    salu(Format::Sop1, op, name).arg(Write, Field::Sdst, Class::Sdst, d)
}

/// An instruction with an address in registers, which constants cannot be.
pub(super) const fn s1_src(op: u16, name: &'static str, a: Ty) -> Row {
    salu(Format::Sop1, op, name).arg(Read, Field::Ssrc0, Class::Sdst, a)
}

/// A move of a register whose number, or that of the destination, `m0` increases.
pub(super) const fn movrel(op: u16, name: &'static str, ty: Ty, source: Class) -> Row {
    s1_dst(op, name, ty).arg(Read, Field::Ssrc0, source, ty).reads(Implicit::M0)
}

/// An instruction that sets which vector registers are indexed.
pub(super) const fn index(format: Format, op: u16, name: &'static str) -> Row {
    salu(format, op, name).writes(Implicit::M0)
}

pub(super) const fn index_on(op: u16, name: &'static str) -> Row {
    let row = index(Format::Sopc, op, name).writes(Implicit::MODE);
    row.arg(Read, Field::Ssrc0, Class::Ssrc, B32).arg(Read, Field::Ssrc1, Class::IndexMode, B32)
}

pub(super) const fn index_by(op: u16, name: &'static str) -> Row {
    index(Format::Sop1, op, name).fixed(&[(Field::Sdst, 0)]).arg(Read, Field::Ssrc0, Class::Ssrc, B32)
}

pub(super) const fn swappc(op: u16, name: &'static str) -> Row {
    s1_dst(op, name, B64).arg(Read, Field::Ssrc0, Class::Sdst, B64)
}

pub(super) const fn s1(op: u16, name: &'static str, d: Ty, a: Ty) -> Row {
    s1_dst(op, name, d).arg(Read, Field::Ssrc0, Class::Ssrc, a)
}

pub(super) const fn sc(op: u16, name: &'static str, a: Ty, b: Ty) -> Row {
    salu(Format::Sopc, op, name).arg(Read, Field::Ssrc0, Class::Ssrc, a).arg(Read, Field::Ssrc1, Class::Ssrc, b)
}

pub(super) const fn op(op: u16, name: &'static str) -> Row {
    Row::new(Format::Sopp, op, name, Unit::Control)
}

pub(super) const fn plain(op: u16, name: &'static str) -> Row {
    Row::new(Format::Smem, op, name, Unit::Smem)
}

pub(super) const fn load(op: u16, name: &'static str, data: Ty, base: Ty) -> Row {
    plain(op, name)
        .sdata(data)
        .arg(Read, Field::Sbase, Class::Sbase, base)
        .arg(Read, Field::SmemOffset, Class::SmemOffset, B32)
        .mods(Mods::GLC.and(Mods::OFFSET))
}

// Vector arithmetic.

/// Properties that follow from the type of the result: floats round and flush as `MODE` states, and have output modifiers.
const fn valu(format: Format, op: u16, name: &'static str, d: Ty) -> Row {
    let row = Row::new(format, op, name, Unit::Valu).reads(Implicit::EXEC);
    if d.elem.is_float() && d.count == 1 { row.mods(Mods::CLAMP.and(Mods::OMOD)).reads(Implicit::MODE) } else { row }
}

/// Further encodings that follow from the types of operands: ISA §12.16.
const fn short(row: Row, tys: &[Ty]) -> Row {
    let (mut wide, mut i) = (false, 0);
    while i < tys.len() {
        wide |= tys[i].dwords() > 1;
        i += 1;
    }
    if wide { row.mods(Mods::DPP.and(Mods::DPP64)) } else { row.mods(Mods::DPP.and(Mods::SDWA)) }
}

pub(super) const fn v1(op: u16, name: &'static str, d: Ty, a: Ty) -> Row {
    let row =
        valu(Format::Vop1, op, name, d).arg(Write, Field::Vdst, Class::V, d).arg(Read, Field::Src0, Class::Src, a);
    let row = if a.is_scalar_float() { row.reads(Implicit::MODE) } else { row };
    short(row, &[d, a])
}

pub(super) const fn v_nop() -> Row {
    Row::new(Format::Vop1, 0, "v_nop", Unit::Valu).mods(Mods::NO_E64)
}

pub(super) const fn readfirstlane(op: u16, name: &'static str) -> Row {
    Row::new(Format::Vop1, op, name, Unit::Valu)
        .arg(Write, Field::Vdst, Class::Sdst, B32)
        .arg(Read, Field::Src0, Class::SrcV, B32)
        .reads(Implicit::EXEC)
        .mods(Mods::NO_E64)
}

pub(super) const fn swap(op: u16, name: &'static str) -> Row {
    Row::new(Format::Vop1, op, name, Unit::Valu)
        .arg(ReadWrite, Field::Vdst, Class::V, B32)
        .arg(ReadWrite, Field::Src0, Class::SrcV, B32)
        .reads(Implicit::EXEC)
        .mods(Mods::NO_E64)
}

pub(super) const fn accvgpr_mov(op: u16, name: &'static str) -> Row {
    Row::new(Format::Vop1, op, name, Unit::Valu)
        .arg(Write, Field::Vdst, Class::A, B32)
        .arg(Read, Field::Src0, Class::SrcA, B32)
        .reads(Implicit::EXEC)
        .mods(Mods::NO_E64)
}

pub(super) const fn v2(op: u16, name: &'static str, d: Ty, a: Ty, b: Ty) -> Row {
    let row = valu(Format::Vop2, op, name, d)
        .arg(Write, Field::Vdst, Class::V, d)
        .arg(Read, Field::Src0, Class::Src, a)
        .arg(Read, Field::Vsrc1, Class::V, b);
    short(row, &[d, a, b])
}

/// `v_fmamk`, `v_fmaak`: the literal is a factor, or the addend.
pub(super) const fn mk(op: u16, name: &'static str, ty: Ty, middle: bool) -> Row {
    let row =
        valu(Format::Vop2, op, name, ty).arg(Write, Field::Vdst, Class::V, ty).arg(Read, Field::Src0, Class::Src, ty);
    let row = if middle {
        row.arg(Read, Field::Op, Class::Literal, ty).arg(Read, Field::Vsrc1, Class::V, ty)
    } else {
        row.arg(Read, Field::Vsrc1, Class::V, ty).arg(Read, Field::Op, Class::Literal, ty)
    };
    row.mods(Mods::NO_E64)
}

/// Additions and subtractions with a carry.
pub(super) const fn carry(op: u16, name: &'static str, carry_in: bool) -> Row {
    let row = valu(Format::Vop2, op, name, U32)
        .arg(Write, Field::Vdst, Class::V, U32)
        .arg(Write, Field::Op, Class::Vcc, B64)
        .arg(Read, Field::Src0, Class::Src, U32)
        .arg(Read, Field::Vsrc1, Class::V, U32);
    let row = if carry_in { row.selects() } else { row };
    short(row, &[U32]).mods(Mods::CLAMP)
}

/// A comparison; `v_cmpx` writes `exec` too.
pub(super) const fn vc(op: u16, name: &'static str, a: Ty, b: Ty) -> Row {
    let row = Row::new(Format::Vopc, op, name, Unit::Valu)
        .arg(Write, Field::Op, Class::Vcc, B64)
        .arg(Read, Field::Src0, Class::Src, a)
        .arg(Read, Field::Vsrc1, Class::V, b)
        .reads(Implicit::EXEC);
    let row = if name.as_bytes()[5] == b'x' { row.writes(Implicit::EXEC) } else { row };
    // Tests of float classes, whose second operand is a mask, have no output modifier.
    let row = if a.is_scalar_float() { row.reads(Implicit::MODE) } else { row };
    let row = if b.is_scalar_float() { row.mods(Mods::CLAMP) } else { row };
    if a.dwords() > 1 { row } else { row.mods(Mods::SDWA) }
}

const fn sources(mut row: Row, class: Class, types: &[Ty]) -> Row {
    let mut i = 0;
    while i < types.len() {
        row = row.arg(Read, [Field::Src0, Field::Src1, Field::Src2][i], class, types[i]);
        i += 1;
    }
    row
}

pub(super) const fn v3(op: u16, name: &'static str, d: Ty, types: &[Ty]) -> Row {
    sources(valu(Format::Vop3a, op, name, d).arg(Write, Field::Vdst, Class::V, d), Class::SrcInline, types)
}

pub(super) const fn v3b(op: u16, name: &'static str, d: Ty, types: [Ty; 3]) -> Row {
    let row = valu(Format::Vop3b, op, name, d).arg(Write, Field::Vdst, Class::V, d).arg(
        Write,
        Field::VopSdst,
        Class::Sdst,
        B64,
    );
    sources(row, Class::SrcInline, &types)
}

pub(super) const fn readlane(op: u16, name: &'static str) -> Row {
    Row::new(Format::Vop3a, op, name, Unit::Valu)
        .arg(Write, Field::Vdst, Class::Sdst, B32)
        .arg(Read, Field::Src0, Class::SrcV, B32)
        .arg(Read, Field::Src1, Class::SrcS, U32)
}

pub(super) const fn writelane(op: u16, name: &'static str) -> Row {
    Row::new(Format::Vop3a, op, name, Unit::Valu)
        .arg(ReadWrite, Field::Vdst, Class::V, B32)
        .arg(Read, Field::Src0, Class::SrcS, B32)
        .arg(Read, Field::Src1, Class::SrcS, U32)
}

// Packed and matrix arithmetic.

pub(super) const fn pk(op: u16, name: &'static str, d: Ty, types: &[Ty]) -> Row {
    let row = valu(Format::Vop3p, op, name, d).without(Mods::OMOD.and(Mods::CLAMP));
    let row = if d.elem.is_float() { row.reads(Implicit::MODE) } else { row };
    sources(row.arg(Write, Field::Vdst, Class::V, d), Class::SrcInline, types).mods(Mods::OP_SEL_HI)
}

/// A dot product: its halves cannot be selected.
pub(super) const fn dot(op: u16, name: &'static str, d: Ty, a: Ty) -> Row {
    pk(op, name, d, &[a, a, d]).without(Mods::OP_SEL_HI).fixed(HALVES).unit(Unit::Dot).mods(Mods::CLAMP)
}

/// `v_fma_mix`: each source is an `f32`, or a half of a register as an `f16`.
pub(super) const fn mix(op: u16, name: &'static str, d: Ty) -> Row {
    let row = valu(Format::Vop3p, op, name, d).without(Mods::OMOD);
    let row = row.arg(if d.bits() == 32 { Write } else { ReadWrite }, Field::Vdst, Class::V, d);
    sources(row, Class::SrcInline, &[F32, F32, F32]).mods(Mods::OP_SEL_HI.and(Mods::NEG_LO).and(Mods::NEG_HI))
}

/// The bits that select halves, which LLVM sets in these moves too.
const HALVES: &[(Field, u32)] = &[(Field::OpSelHi, 3), (Field::OpSelHi2, 1)];

pub(super) const fn accvgpr_read(op: u16, name: &'static str) -> Row {
    valu(Format::Vop3p, op, name, B32)
        .arg(Write, Field::Vdst, Class::V, B32)
        .arg(Read, Field::Src0, Class::SrcA, B32)
        .fixed(HALVES)
}

pub(super) const fn accvgpr_write(op: u16, name: &'static str) -> Row {
    valu(Format::Vop3p, op, name, B32)
        .arg(Write, Field::Vdst, Class::A, B32)
        .arg(Read, Field::Src0, Class::SrcInline, B32)
        .fixed(HALVES)
}

/// A dense MMA; it ignores `exec` and `MODE` (ISA §7.1.2).
pub(super) const fn mfma(op: u16, name: &'static str, d: Ty, a: Ty, b: Ty, passes: u8) -> Row {
    let mut row = Row::new(Format::Mai, op, name, Unit::Xdl)
        .arg(Write, Field::Vdst, Class::MatrixD, d)
        .arg(Read, Field::Src0, Class::MatrixAb, a)
        .arg(Read, Field::Src1, Class::MatrixAb, b)
        .arg(Read, Field::Src2, Class::MatrixC, d);
    row.passes = passes;
    row
}

/// An MMA with a sparse matrix, whose indices are the last operand; it adds to its destination.
pub(super) const fn smfmac(op: u16, name: &'static str, d: Ty, a: Ty, b: Ty, passes: u8) -> Row {
    let mut row = Row::new(Format::Mai, op, name, Unit::Xdl)
        .arg(ReadWrite, Field::Vdst, Class::MatrixD, d)
        .arg(Read, Field::Src0, Class::MatrixAb, a)
        .arg(Read, Field::Src1, Class::MatrixAb, b)
        .arg(Read, Field::Src2, Class::SrcV, B32)
        .mods(Mods::BROADCAST);
    row.passes = passes;
    row
}
