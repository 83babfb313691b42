//! tidy: table
//! The microcode formats: their fixed bits, and the bits of each field, in the manual's notation.
//!
//! Source: "AMD Instinct MI300" Instruction Set Architecture (CDNA3), cited as ISA, §13 "Microcode Formats". Bits of the
//! second word count from 32. A literal, and the words that SDWA and DPP append, follow the 32 bits of their format.
//!
//! Deliberately absent: MTBUF, EXP and the formats of images: no instruction of the tables is in one.

/// A field of a format, by the manual's name; where two formats use one name for different things, the format is prefixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the manual's names")]
pub enum Field {
    Op,
    Sdst,
    Ssrc0,
    Ssrc1,
    Simm16,
    // SMEM
    Sbase,
    Sdata,
    SmemOffset,
    SmemSoffset,
    Glc,
    Imm,
    Soe,
    // VOP
    Vdst,
    Vsrc1,
    Src0,
    Src1,
    Src2,
    VopSdst,
    Clamp,
    Omod,
    OpSel,
    OpSelHi,
    OpSelHi2,
    Abs,
    Neg,
    NegHi,
    // MAI
    Cbsz,
    Abid,
    Blgp,
    AccCd,
    AccA,
    AccB,
    // SDWA
    SdwaSrc0,
    DstSel,
    DstUnused,
    SdwaSdst,
    SdwaSd,
    Src0Sel,
    Src0Sext,
    Src0Neg,
    Src0Abs,
    S0,
    Src1Sel,
    Src1Sext,
    Src1Neg,
    Src1Abs,
    S1,
    // DPP
    DppSrc0,
    DppCtrl,
    BoundCtrl,
    DppSrc0Neg,
    DppSrc0Abs,
    DppSrc1Neg,
    DppSrc1Abs,
    BankMask,
    RowMask,
    // Memory
    Acc,
    Offset0,
    Offset1,
    Offset,
    Gds,
    Addr,
    Data0,
    Data1,
    Data,
    Seg,
    Lve,
    Nt,
    Sc0,
    Sc1,
    Saddr,
    Lds,
    Offen,
    Idxen,
    Vaddr,
    Vdata,
    Srsrc,
    Soffset,
}

/// A range of bits, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The highest bit.
    pub hi: u8,
    /// The lowest bit.
    pub lo: u8,
}

impl Bits {
    /// The number of bits.
    #[must_use]
    pub const fn len(self) -> u32 {
        (self.hi - self.lo + 1) as u32
    }

    /// Whether there are no bits, which is never the case.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        false
    }

    /// Extracts the bits from a word.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "fields have at most 32 bits")]
    pub const fn get(self, word: u64) -> u32 {
        (word >> self.lo & ((1 << self.len()) - 1)) as u32
    }

    /// Moves a value to the position of the bits, if it fits.
    #[must_use]
    pub const fn put(self, value: u32) -> Option<u64> {
        if value as u64 >> self.len() == 0 { Some((value as u64) << self.lo) } else { None }
    }
}

/// A microcode format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the manual's names")]
pub enum Format {
    Sop1,
    Sopc,
    Sopp,
    Sopk,
    Sop2,
    Smem,
    Vop1,
    Vopc,
    Vop2,
    Vop3p,
    /// VOP3P with the fields of matrix instructions.
    Mai,
    /// VOP3 without a scalar destination.
    Vop3a,
    /// VOP3 with a scalar destination.
    Vop3b,
    Ds,
    Flat,
    Scratch,
    Global,
    Mubuf,
}

/// The specification of a format.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The name of the format in the manual.
    pub name: &'static str,
    /// The number of 32-bit words, without a literal.
    pub words: u8,
    /// Bits by which the format is recognised.
    pub fixed: (Bits, u32),
    /// The fields of the format.
    pub fields: &'static [(Field, Bits)],
}

const fn at(hi: u8, lo: u8) -> Bits {
    Bits { hi, lo }
}

use Field as F;

/// The first word of VOP3P and MAI; the fields that differ come behind.
const VOP3P_FIELDS: &[(Field, Bits)] = &[
    (F::Op, at(22, 16)),
    (F::Clamp, at(15, 15)),
    (F::OpSelHi2, at(14, 14)),
    (F::OpSel, at(13, 11)),
    (F::NegHi, at(10, 8)),
    (F::Vdst, at(7, 0)),
    (F::Neg, at(63, 61)),
    (F::OpSelHi, at(60, 59)),
    (F::Src2, at(58, 50)),
    (F::Src1, at(49, 41)),
    (F::Src0, at(40, 32)),
];

const MAI_FIELDS: &[(Field, Bits)] = &[
    (F::Op, at(22, 16)),
    (F::AccCd, at(15, 15)),
    (F::Abid, at(14, 11)),
    (F::Cbsz, at(10, 8)),
    (F::Vdst, at(7, 0)),
    (F::Blgp, at(63, 61)),
    (F::AccB, at(60, 60)),
    (F::AccA, at(59, 59)),
    (F::Src2, at(58, 50)),
    (F::Src1, at(49, 41)),
    (F::Src0, at(40, 32)),
];

const VOP3A_FIELDS: &[(Field, Bits)] = &[
    (F::Op, at(25, 16)),
    (F::Clamp, at(15, 15)),
    (F::OpSel, at(14, 11)),
    (F::Abs, at(10, 8)),
    (F::Vdst, at(7, 0)),
    (F::Neg, at(63, 61)),
    (F::Omod, at(60, 59)),
    (F::Src2, at(58, 50)),
    (F::Src1, at(49, 41)),
    (F::Src0, at(40, 32)),
];

const VOP3B_FIELDS: &[(Field, Bits)] = &[
    (F::Op, at(25, 16)),
    (F::Clamp, at(15, 15)),
    (F::VopSdst, at(14, 8)),
    (F::Vdst, at(7, 0)),
    (F::Neg, at(63, 61)),
    (F::Omod, at(60, 59)),
    (F::Src2, at(58, 50)),
    (F::Src1, at(49, 41)),
    (F::Src0, at(40, 32)),
];

/// Flat, global and scratch: the segment field distinguishes them.
const FLAT_FIELDS: &[(Field, Bits)] = &[
    (F::Sc1, at(25, 25)),
    (F::Op, at(24, 18)),
    (F::Nt, at(17, 17)),
    (F::Sc0, at(16, 16)),
    (F::Seg, at(15, 14)),
    (F::Lve, at(13, 13)),
    (F::Offset, at(12, 0)),
    (F::Vdst, at(63, 56)),
    (F::Acc, at(55, 55)),
    (F::Saddr, at(54, 48)),
    (F::Data, at(47, 40)),
    (F::Addr, at(39, 32)),
];

/// ISA §13.1 "Scalar ALU and Control Formats".
const SOP2: Spec = Spec {
    name: "SOP2",
    words: 1,
    fixed: (at(31, 30), 0b10),
    fields: &[(F::Op, at(29, 23)), (F::Sdst, at(22, 16)), (F::Ssrc1, at(15, 8)), (F::Ssrc0, at(7, 0))],
};

const SOPK: Spec = Spec {
    name: "SOPK",
    words: 1,
    fixed: (at(31, 28), 0b1011),
    fields: &[(F::Op, at(27, 23)), (F::Sdst, at(22, 16)), (F::Simm16, at(15, 0))],
};

const SOP1: Spec = Spec {
    name: "SOP1",
    words: 1,
    fixed: (at(31, 23), 0b1_0111_1101),
    fields: &[(F::Sdst, at(22, 16)), (F::Op, at(15, 8)), (F::Ssrc0, at(7, 0))],
};

const SOPC: Spec = Spec {
    name: "SOPC",
    words: 1,
    fixed: (at(31, 23), 0b1_0111_1110),
    fields: &[(F::Op, at(22, 16)), (F::Ssrc1, at(15, 8)), (F::Ssrc0, at(7, 0))],
};

const SOPP: Spec = Spec {
    name: "SOPP",
    words: 1,
    fixed: (at(31, 23), 0b1_0111_1111),
    fields: &[(F::Op, at(22, 16)), (F::Simm16, at(15, 0))],
};

/// ISA §13.2 "Scalar Memory Format".
const SMEM: Spec = Spec {
    name: "SMEM",
    words: 2,
    fixed: (at(31, 26), 0b11_0000),
    fields: &[
        (F::Op, at(25, 18)),
        (F::Imm, at(17, 17)),
        (F::Glc, at(16, 16)),
        (F::Soe, at(14, 14)),
        (F::Sdata, at(12, 6)),
        (F::Sbase, at(5, 0)),
        (F::SmemSoffset, at(63, 57)),
        (F::SmemOffset, at(52, 32)),
    ],
};

/// ISA §13.3 "Vector ALU Formats".
const VOP2: Spec = Spec {
    name: "VOP2",
    words: 1,
    fixed: (at(31, 31), 0),
    fields: &[(F::Op, at(30, 25)), (F::Vdst, at(24, 17)), (F::Vsrc1, at(16, 9)), (F::Src0, at(8, 0))],
};

const VOP1: Spec = Spec {
    name: "VOP1",
    words: 1,
    fixed: (at(31, 25), 0b011_1111),
    fields: &[(F::Vdst, at(24, 17)), (F::Op, at(16, 9)), (F::Src0, at(8, 0))],
};

const VOPC: Spec = Spec {
    name: "VOPC",
    words: 1,
    fixed: (at(31, 25), 0b011_1110),
    fields: &[(F::Op, at(24, 17)), (F::Vsrc1, at(16, 9)), (F::Src0, at(8, 0))],
};

const VOP3A: Spec = Spec { name: "VOP3A", words: 2, fixed: (at(31, 26), 0b11_0100), fields: VOP3A_FIELDS };
const VOP3B: Spec = Spec { name: "VOP3B", words: 2, fixed: (at(31, 26), 0b11_0100), fields: VOP3B_FIELDS };
const VOP3P: Spec = Spec { name: "VOP3P", words: 2, fixed: (at(31, 23), 0b1_1010_0111), fields: VOP3P_FIELDS };
const MAI: Spec = Spec { name: "VOP3P-MAI", words: 2, fixed: (at(31, 23), 0b1_1010_0111), fields: MAI_FIELDS };

/// ISA §13.4 "LDS and GWS format".
const DS: Spec = Spec {
    name: "DS",
    words: 2,
    fixed: (at(31, 26), 0b11_0110),
    fields: &[
        (F::Acc, at(25, 25)),
        (F::Op, at(24, 17)),
        (F::Gds, at(16, 16)),
        (F::Offset1, at(15, 8)),
        (F::Offset0, at(7, 0)),
        (F::Vdst, at(63, 56)),
        (F::Data1, at(55, 48)),
        (F::Data0, at(47, 40)),
        (F::Addr, at(39, 32)),
    ],
};

/// ISA §13.5 "Vector Memory Buffer Formats".
const MUBUF: Spec = Spec {
    name: "MUBUF",
    words: 2,
    fixed: (at(31, 26), 0b11_1000),
    fields: &[
        (F::Op, at(24, 18)),
        (F::Nt, at(17, 17)),
        (F::Lds, at(16, 16)),
        (F::Sc1, at(15, 15)),
        (F::Sc0, at(14, 14)),
        (F::Idxen, at(13, 13)),
        (F::Offen, at(12, 12)),
        (F::Offset, at(11, 0)),
        (F::Soffset, at(63, 56)),
        (F::Acc, at(55, 55)),
        (F::Srsrc, at(52, 48)),
        (F::Vdata, at(47, 40)),
        (F::Vaddr, at(39, 32)),
    ],
};

/// ISA §13.6 "Flat Formats".
const FLAT: Spec = Spec { name: "FLAT", words: 2, fixed: (at(31, 26), 0b11_0111), fields: FLAT_FIELDS };
const GLOBAL: Spec = Spec { name: "GLOBAL", words: 2, fixed: (at(31, 26), 0b11_0111), fields: FLAT_FIELDS };
const SCRATCH: Spec = Spec { name: "SCRATCH", words: 2, fixed: (at(31, 26), 0b11_0111), fields: FLAT_FIELDS };

impl Format {
    /// All formats, those that are recognised by more bits first.
    pub const ALL: [Format; 18] = [
        Format::Sop1,
        Format::Sopc,
        Format::Sopp,
        Format::Sopk,
        Format::Sop2,
        Format::Smem,
        Format::Vop1,
        Format::Vopc,
        Format::Vop2,
        Format::Vop3p,
        Format::Mai,
        Format::Vop3a,
        Format::Vop3b,
        Format::Ds,
        Format::Flat,
        Format::Scratch,
        Format::Global,
        Format::Mubuf,
    ];

    /// The specification of the format.
    #[must_use]
    pub const fn spec(self) -> Spec {
        match self {
            Format::Sop1 => SOP1,
            Format::Sopc => SOPC,
            Format::Sopp => SOPP,
            Format::Sopk => SOPK,
            Format::Sop2 => SOP2,
            Format::Smem => SMEM,
            Format::Vop1 => VOP1,
            Format::Vopc => VOPC,
            Format::Vop2 => VOP2,
            Format::Vop3p => VOP3P,
            Format::Mai => MAI,
            Format::Vop3a => VOP3A,
            Format::Vop3b => VOP3B,
            Format::Ds => DS,
            Format::Flat => FLAT,
            Format::Scratch => SCRATCH,
            Format::Global => GLOBAL,
            Format::Mubuf => MUBUF,
        }
    }

    /// The bits of a field.
    #[must_use]
    pub fn bits(self, field: Field) -> Option<Bits> {
        self.spec().fields.iter().find(|(f, _)| *f == field).map(|(_, b)| *b)
    }
}

/// The fields of the word after VOP1 or VOP2 whose `SRC0` is [`SDWA`].
pub const SDWA_FIELDS: &[(Field, Bits)] = &[
    (F::SdwaSrc0, at(39, 32)),
    (F::DstSel, at(42, 40)),
    (F::DstUnused, at(44, 43)),
    (F::Clamp, at(45, 45)),
    (F::Omod, at(47, 46)),
    (F::Src0Sel, at(50, 48)),
    (F::Src0Sext, at(51, 51)),
    (F::Src0Neg, at(52, 52)),
    (F::Src0Abs, at(53, 53)),
    (F::S0, at(55, 55)),
    (F::Src1Sel, at(58, 56)),
    (F::Src1Sext, at(59, 59)),
    (F::Src1Neg, at(60, 60)),
    (F::Src1Abs, at(61, 61)),
    (F::S1, at(63, 63)),
];

/// The fields of the word after VOPC whose `SRC0` is [`SDWA`].
pub const SDWAB_FIELDS: &[(Field, Bits)] = &[
    (F::SdwaSrc0, at(39, 32)),
    (F::SdwaSdst, at(46, 40)),
    (F::SdwaSd, at(47, 47)),
    (F::Src0Sel, at(50, 48)),
    (F::Src0Sext, at(51, 51)),
    (F::Src0Neg, at(52, 52)),
    (F::Src0Abs, at(53, 53)),
    (F::S0, at(55, 55)),
    (F::Src1Sel, at(58, 56)),
    (F::Src1Sext, at(59, 59)),
    (F::Src1Neg, at(60, 60)),
    (F::Src1Abs, at(61, 61)),
    (F::S1, at(63, 63)),
];

/// The fields of the word after VOP1 or VOP2 whose `SRC0` is [`DPP`].
pub const DPP_FIELDS: &[(Field, Bits)] = &[
    (F::DppSrc0, at(39, 32)),
    (F::DppCtrl, at(48, 40)),
    (F::BoundCtrl, at(51, 51)),
    (F::DppSrc0Neg, at(52, 52)),
    (F::DppSrc0Abs, at(53, 53)),
    (F::DppSrc1Neg, at(54, 54)),
    (F::DppSrc1Abs, at(55, 55)),
    (F::BankMask, at(59, 56)),
    (F::RowMask, at(63, 60)),
];

/// `SRC0` of an instruction with an SDWA word.
pub const SDWA: u32 = 249;
/// `SRC0` of an instruction with a DPP word.
pub const DPP: u32 = 250;
/// A source code that a literal of 32 bits follows.
pub const LITERAL: u32 = 255;
