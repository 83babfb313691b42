//! The type of an operand: an element type and the number of elements, which determine the number of registers.
//!
//! The manual spells both in the mnemonic (`v_pk_add_f16`, `ds_write_b128`); rows state them in a form that the encoder,
//! the printer and a register allocator can use. Deliberately absent: the results of instructions.

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    /// Untyped bits, this many.
    B(u8),
    /// An unsigned integer of this many bits.
    U(u8),
    /// A signed integer of this many bits.
    I(u8),
    /// An IEEE 754 number of this many bits.
    F(u8),
    /// bfloat16.
    Bf16,
    /// An 8-bit float with three bits of fraction; its exact format is a property of the machine.
    Fp8,
    /// An 8-bit float with two bits of fraction.
    Bf8,
    /// An `f32` of which a matrix instruction uses ten bits of fraction.
    Xf32,
}

impl Elem {
    /// The size in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Elem::B(n) | Elem::U(n) | Elem::I(n) | Elem::F(n) => n as u32,
            Elem::Bf16 => 16,
            Elem::Fp8 | Elem::Bf8 => 8,
            Elem::Xf32 => 32,
        }
    }

    /// Whether source modifiers (`-x`, `|x|`) and floating-point constants apply to it.
    #[must_use]
    pub const fn is_float(self) -> bool {
        match self {
            Elem::F(_) | Elem::Bf16 | Elem::Fp8 | Elem::Bf8 | Elem::Xf32 => true,
            Elem::B(_) | Elem::U(_) | Elem::I(_) => false,
        }
    }
}

/// The type of an operand in each lane, or, for a scalar operand, of the whole wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ty {
    /// The type of an element.
    pub elem: Elem,
    /// The number of elements, from the lowest bits upwards.
    pub count: u8,
}

impl Ty {
    /// The type of one element.
    #[must_use]
    pub const fn one(elem: Elem) -> Ty {
        Ty { elem, count: 1 }
    }

    /// The type of several elements.
    #[must_use]
    pub const fn many(elem: Elem, count: u8) -> Ty {
        Ty { elem, count }
    }

    /// The size in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.elem.bits() * self.count as u32
    }

    /// The number of 32-bit registers.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "at most 32 registers, by the table's tests")]
    pub const fn dwords(self) -> u8 {
        self.bits().div_ceil(32) as u8
    }

    /// Whether it is one floating-point number.
    #[must_use]
    pub const fn is_scalar_float(self) -> bool {
        self.elem.is_float() && self.count == 1
    }
}

macro_rules! types {
    ($($name:ident = $elem:expr, $count:literal;)*) => {
        $(pub(crate) const $name: Ty = Ty::many($elem, $count);)*
    };
}

types! {
    B8 = Elem::B(8), 1;
    U8 = Elem::U(8), 1;
    I8 = Elem::I(8), 1;
    B16 = Elem::B(16), 1;
    U16 = Elem::U(16), 1;
    I16 = Elem::I(16), 1;
    F16 = Elem::F(16), 1;
    B32 = Elem::B(32), 1;
    U32 = Elem::U(32), 1;
    I32 = Elem::I(32), 1;
    F32 = Elem::F(32), 1;
    B64 = Elem::B(64), 1;
    U64 = Elem::U(64), 1;
    I64 = Elem::I(64), 1;
    F64 = Elem::F(64), 1;
    B96 = Elem::B(32), 3;
    B128 = Elem::B(32), 4;
    B256 = Elem::B(32), 8;
    B512 = Elem::B(32), 16;
    U16X2 = Elem::U(16), 2;
    I16X2 = Elem::I(16), 2;
    F16X2 = Elem::F(16), 2;
    BF16X2 = Elem::Bf16, 2;
    F32X2 = Elem::F(32), 2;
    B32X2 = Elem::B(32), 2;
    U8X4 = Elem::U(8), 4;
    I8X4 = Elem::I(8), 4;
    U8X8 = Elem::U(8), 8;
    I8X8 = Elem::I(8), 8;
    I8X16 = Elem::I(8), 16;
    U4X8 = Elem::U(4), 8;
    I4X8 = Elem::I(4), 8;
    U16X4 = Elem::U(16), 4;
    F16X4 = Elem::F(16), 4;
    F16X8 = Elem::F(16), 8;
    BF16X4 = Elem::Bf16, 4;
    BF16X8 = Elem::Bf16, 8;
    FP8X4 = Elem::Fp8, 4;
    BF8X4 = Elem::Bf8, 4;
    FP8X8 = Elem::Fp8, 8;
    BF8X8 = Elem::Bf8, 8;
    FP8X16 = Elem::Fp8, 16;
    BF8X16 = Elem::Bf8, 16;
    XF32X2 = Elem::Xf32, 2;
    U32X4 = Elem::U(32), 4;
    F32X4 = Elem::F(32), 4;
    F32X16 = Elem::F(32), 16;
    F32X32 = Elem::F(32), 32;
    I32X4 = Elem::I(32), 4;
    I32X16 = Elem::I(32), 16;
    I32X32 = Elem::I(32), 32;
    F64X4 = Elem::F(64), 4;
}
