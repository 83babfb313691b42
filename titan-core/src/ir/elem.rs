//! Element types of tensors and tiles, and their capabilities.
//!
//! The meaning of the operations is in `docs/semantics.md`; conversions of values are in [`crate::num`].

use std::fmt;

/// An element type. The order is the order in which tables list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Elem {
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// A binary32 whose significand is rounded to 10 fraction bits; only for operands of `mma`.
    Tf32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    Bf16,
    /// OCP 8-bit float, 4 exponent and 3 fraction bits, no infinity.
    E4m3,
    /// OCP 8-bit float, 5 exponent and 2 fraction bits.
    E5m2,
    /// Two's complement, 64 bits.
    I64,
    /// Two's complement, 32 bits; the only type of indices.
    I32,
    /// Two's complement, 16 bits.
    I16,
    /// Two's complement, 8 bits.
    I8,
    /// Two's complement, 4 bits, two per byte; for storage only.
    I4,
    /// Unsigned, 64 bits.
    U64,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 4 bits, two per byte; for storage only.
    U4,
    /// A byte that is 0 or 1.
    Bool,
}

impl Elem {
    /// Every element type, in declaration order.
    pub const ALL: [Elem; 18] = [
        Elem::F64,
        Elem::F32,
        Elem::Tf32,
        Elem::F16,
        Elem::Bf16,
        Elem::E4m3,
        Elem::E5m2,
        Elem::I64,
        Elem::I32,
        Elem::I16,
        Elem::I8,
        Elem::I4,
        Elem::U64,
        Elem::U32,
        Elem::U16,
        Elem::U8,
        Elem::U4,
        Elem::Bool,
    ];

    /// The name in Rust kernels and in the text form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Elem::F64 => "f64",
            Elem::F32 => "f32",
            Elem::Tf32 => "tf32",
            Elem::F16 => "f16",
            Elem::Bf16 => "bf16",
            Elem::E4m3 => "e4m3",
            Elem::E5m2 => "e5m2",
            Elem::I64 => "i64",
            Elem::I32 => "i32",
            Elem::I16 => "i16",
            Elem::I8 => "i8",
            Elem::I4 => "i4",
            Elem::U64 => "u64",
            Elem::U32 => "u32",
            Elem::U16 => "u16",
            Elem::U8 => "u8",
            Elem::U4 => "u4",
            Elem::Bool => "bool",
        }
    }

    /// The element type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Elem> {
        Elem::ALL.into_iter().find(|e| e.name() == name)
    }

    /// Bits of storage in a tensor. `bool` takes a byte.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Elem::F64 | Elem::I64 | Elem::U64 => 64,
            Elem::F32 | Elem::Tf32 | Elem::I32 | Elem::U32 => 32,
            Elem::F16 | Elem::Bf16 | Elem::I16 | Elem::U16 => 16,
            Elem::E4m3 | Elem::E5m2 | Elem::I8 | Elem::U8 | Elem::Bool => 8,
            Elem::I4 | Elem::U4 => 4,
        }
    }

    /// The number of bytes that `n` contiguous elements occupy; `n` is even for the 4-bit types.
    #[must_use]
    pub const fn bytes_for(self, n: usize) -> usize {
        if self.bits() == 4 { n.div_ceil(2) } else { n * (self.bits() as usize / 8) }
    }

    /// Whether it is a floating-point type, including those for storage only.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Elem::F64 | Elem::F32 | Elem::Tf32 | Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2)
    }

    /// Whether it is an integer type, including the 4-bit types and without `bool`.
    #[must_use]
    pub const fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, Elem::Bool)
    }

    /// Whether it is a signed integer type.
    #[must_use]
    pub const fn is_signed_int(self) -> bool {
        matches!(self, Elem::I64 | Elem::I32 | Elem::I16 | Elem::I8 | Elem::I4)
    }

    /// Whether it is a float with arithmetic: `f64`, `f32`, `f16`, `bf16`.
    #[must_use]
    pub const fn is_arith_float(self) -> bool {
        matches!(self, Elem::F64 | Elem::F32 | Elem::F16 | Elem::Bf16)
    }

    /// Whether it has `+ - * /`: the arithmetic floats, and integers of at least 8 bits.
    #[must_use]
    pub const fn is_arith(self) -> bool {
        self.is_arith_float() || self.is_arith_int()
    }

    /// Whether it is an integer with arithmetic, of at least 8 bits.
    #[must_use]
    pub const fn is_arith_int(self) -> bool {
        self.is_int() && self.bits() >= 8
    }

    /// The accumulator type of sums and products of this type.
    #[must_use]
    pub const fn accumulator(self) -> Elem {
        match self {
            Elem::F16 | Elem::Bf16 => Elem::F32,
            Elem::F64
            | Elem::F32
            | Elem::Tf32
            | Elem::E4m3
            | Elem::E5m2
            | Elem::I64
            | Elem::I32
            | Elem::I16
            | Elem::I8
            | Elem::I4
            | Elem::U64
            | Elem::U32
            | Elem::U16
            | Elem::U8
            | Elem::U4
            | Elem::Bool => self,
        }
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The element types `(a, b, accumulator)` that `mma` supports.
pub const MMA_TRIPLES: &[(Elem, Elem, Elem)] = &[
    (Elem::F16, Elem::F16, Elem::F32),
    (Elem::Bf16, Elem::Bf16, Elem::F32),
    (Elem::Tf32, Elem::Tf32, Elem::F32),
    (Elem::F32, Elem::F32, Elem::F32),
    (Elem::E4m3, Elem::E4m3, Elem::F32),
    (Elem::E4m3, Elem::E5m2, Elem::F32),
    (Elem::E5m2, Elem::E4m3, Elem::F32),
    (Elem::E5m2, Elem::E5m2, Elem::F32),
    (Elem::I8, Elem::I8, Elem::I32),
    (Elem::F64, Elem::F64, Elem::F64),
];

/// Whether `mma` supports these element types.
#[must_use]
pub fn mma_is_legal(a: Elem, b: Elem, acc: Elem) -> bool {
    MMA_TRIPLES.contains(&(a, b, acc))
}

/// The element types that [`mma_is_legal`] accepts, for messages.
pub const MMA_LEGAL: &str = "(f16, f16, f32), (bf16, bf16, f32), (tf32, tf32, f32), (f32, f32, f32), \
    (e4m3|e5m2, e4m3|e5m2, f32), (i8, i8, i32), (f64, f64, f64)";
