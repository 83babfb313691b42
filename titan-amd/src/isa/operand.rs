//! Operands: registers in tuples, constants, immediates; and the codes of scalar operands.
//!
//! Source: ISA §5.2 "Scalar ALU Operands", §6.2 "Operands", whose table numbers registers and constants.
//!
//! Deliberately absent: which operand an instruction allows (`row`), and where its code lies (`format`).

use std::fmt;

/// The first scalar register that has a name.
pub const FLAT_SCRATCH: u8 = 102;
/// `xnack_mask`.
pub const XNACK_MASK: u8 = 104;
/// `vcc`.
pub const VCC: u8 = 106;
/// The first of sixteen registers of the trap handler.
pub const TTMP: u8 = 108;
/// `m0`.
pub const M0: u8 = 124;
/// `exec`.
pub const EXEC: u8 = 126;
/// The number of general scalar registers.
pub const SGPRS: u8 = 102;

/// A constant with a source code of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inline {
    /// An integer, −16 to 64.
    Int(i8),
    /// A floating-point constant, in the operand's format.
    Float(InlineFloat),
}

/// The floating-point constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "their values")]
pub enum InlineFloat {
    Half,
    MinusHalf,
    One,
    MinusOne,
    Two,
    MinusTwo,
    Four,
    MinusFour,
    /// 1/(2π).
    InvTwoPi,
}

impl InlineFloat {
    const ALL: [(InlineFloat, f64, &'static str); 9] = [
        (InlineFloat::Half, 0.5, "0.5"),
        (InlineFloat::MinusHalf, -0.5, "-0.5"),
        (InlineFloat::One, 1.0, "1.0"),
        (InlineFloat::MinusOne, -1.0, "-1.0"),
        (InlineFloat::Two, 2.0, "2.0"),
        (InlineFloat::MinusTwo, -2.0, "-2.0"),
        (InlineFloat::Four, 4.0, "4.0"),
        (InlineFloat::MinusFour, -4.0, "-4.0"),
        (InlineFloat::InvTwoPi, 0.159_154_943_091_895_32, "0.15915494"),
    ];

    /// The source code of the constant.
    #[must_use]
    pub fn code(self) -> u32 {
        (240..).zip(Self::ALL).find(|(_, (f, ..))| *f == self).map_or(0, |(code, _)| code)
    }

    /// The constant of a source code.
    #[must_use]
    pub fn from_code(code: u32) -> Option<InlineFloat> {
        code.checked_sub(240).and_then(|i| Self::ALL.get(i as usize)).map(|(f, ..)| *f)
    }

    /// The value in `f64`; 1/(2π) is rounded to the operand's format by the hardware.
    #[must_use]
    pub fn value(self) -> f64 {
        Self::ALL.iter().find(|(f, ..)| *f == self).map_or(0.0, |(_, v, _)| *v)
    }

    /// The constant with this spelling.
    #[must_use]
    pub fn from_text(text: &str) -> Option<InlineFloat> {
        let known = |t: &str| Self::ALL.iter().find(|(.., name)| *name == t).map(|(f, ..)| *f);
        known(text).or_else(|| (text == "0.15915494309189532").then_some(InlineFloat::InvTwoPi))
    }

    /// The spelling of the constant for an operand of this number of bits.
    #[must_use]
    pub fn text(self, bits: u32) -> &'static str {
        if self == InlineFloat::InvTwoPi && bits == 64 {
            return "0.15915494309189532";
        }
        Self::ALL.iter().find(|(f, ..)| *f == self).map_or("?", |(.., name)| name)
    }
}

/// A hardware value that scalar and vector instructions can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the manual's names")]
pub enum Special {
    SharedBase,
    SharedLimit,
    PrivateBase,
    PrivateLimit,
    Vccz,
    Execz,
    Scc,
}

impl Special {
    const ALL: [(Special, u32, &'static str); 7] = [
        (Special::SharedBase, 235, "src_shared_base"),
        (Special::SharedLimit, 236, "src_shared_limit"),
        (Special::PrivateBase, 237, "src_private_base"),
        (Special::PrivateLimit, 238, "src_private_limit"),
        (Special::Vccz, 251, "src_vccz"),
        (Special::Execz, 252, "src_execz"),
        (Special::Scc, 253, "src_scc"),
    ];

    /// The source code of the value.
    #[must_use]
    pub fn code(self) -> u32 {
        Self::ALL.iter().find(|(s, ..)| *s == self).map_or(0, |(_, code, _)| *code)
    }

    /// The value of a source code.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Special> {
        Self::ALL.iter().find(|(_, c, _)| *c == code).map(|(s, ..)| *s)
    }

    /// The value with this name.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Special> {
        Self::ALL.iter().find(|(.., name)| *name == text).map(|(s, ..)| *s)
    }

    /// The name of the value.
    #[must_use]
    pub fn text(self) -> &'static str {
        Self::ALL.iter().find(|(s, ..)| *s == self).map_or("?", |(.., name)| name)
    }
}

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// Scalar registers: the code of the first, and their number.
    S(u8, u8),
    /// Vector registers: the first, and their number.
    V(u8, u8),
    /// Accumulation registers: the first, and their number.
    A(u8, u8),
    /// A constant.
    Inline(Inline),
    /// A literal of 32 bits.
    Literal(u32),
    /// A hardware value.
    Special(Special),
    /// An immediate that is part of the instruction; signed ones are sign-extended.
    Imm(i32),
    /// No register, where one is optional.
    Off,
}

impl Operand {
    /// The integer constant, if it is an inline constant.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "in range")]
    pub const fn int(value: i32) -> Option<Operand> {
        if value >= -16 && value <= 64 { Some(Operand::Inline(Inline::Int(value as i8))) } else { None }
    }

    /// `vcc`.
    pub const VCC: Operand = Operand::S(VCC, 2);
    /// `exec`.
    pub const EXEC: Operand = Operand::S(EXEC, 2);
    /// `m0`.
    pub const M0: Operand = Operand::S(M0, 1);

    /// The number of registers of the operand.
    #[must_use]
    pub const fn registers(self) -> u8 {
        match self {
            Operand::S(_, n) | Operand::V(_, n) | Operand::A(_, n) => n,
            Operand::Inline(_) | Operand::Literal(_) | Operand::Special(_) | Operand::Imm(_) | Operand::Off => 0,
        }
    }
}

/// The name of scalar registers, by the first and their number.
pub(crate) struct ScalarName(pub(crate) u8, pub(crate) u8);

impl fmt::Display for ScalarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScalarName(code, n) = *self;
        let part = |f: &mut fmt::Formatter<'_>, name: &str, first: u8| match (n, code - first) {
            (2, 0) => write!(f, "{name}"),
            (_, 0) => write!(f, "{name}_lo"),
            (..) => write!(f, "{name}_hi"),
        };
        match code {
            FLAT_SCRATCH..XNACK_MASK => part(f, "flat_scratch", FLAT_SCRATCH),
            XNACK_MASK..VCC => part(f, "xnack_mask", XNACK_MASK),
            VCC..TTMP => part(f, "vcc", VCC),
            M0 => write!(f, "m0"),
            EXEC..128 => part(f, "exec", EXEC),
            TTMP..M0 => tuple(f, "ttmp", code - TTMP, n),
            _ => tuple(f, "s", code, n),
        }
    }
}

/// Prints a register tuple: `v4`, `v[4:7]`.
pub(crate) fn tuple(f: &mut fmt::Formatter<'_>, file: &str, first: u8, n: u8) -> fmt::Result {
    if n == 1 {
        write!(f, "{file}{first}")
    } else {
        write!(f, "{file}[{first}:{}]", u32::from(first) + u32::from(n) - 1)
    }
}
