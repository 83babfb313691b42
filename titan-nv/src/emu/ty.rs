//! Types and state spaces of PTX, by their spelling.

/// A fundamental or packed type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ty {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
    Tf32,
    E4m3,
    E5m2,
    E4m3x2,
    E5m2x2,
    S4,
    U4,
    U16x2,
    S16x2,
}

/// The kind of a type, for the rules of which operand fits which instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pred,
    Bits,
    Int,
    Float,
}

const NAMES: &[(&str, Ty)] = &[
    ("pred", Ty::Pred),
    ("b8", Ty::B8),
    ("b16", Ty::B16),
    ("b32", Ty::B32),
    ("b64", Ty::B64),
    ("b128", Ty::B128),
    ("u8", Ty::U8),
    ("u16", Ty::U16),
    ("u32", Ty::U32),
    ("u64", Ty::U64),
    ("s8", Ty::S8),
    ("s16", Ty::S16),
    ("s32", Ty::S32),
    ("s64", Ty::S64),
    ("f16", Ty::F16),
    ("f16x2", Ty::F16x2),
    ("bf16", Ty::Bf16),
    ("bf16x2", Ty::Bf16x2),
    ("f32", Ty::F32),
    ("f64", Ty::F64),
    ("tf32", Ty::Tf32),
    ("e4m3", Ty::E4m3),
    ("e5m2", Ty::E5m2),
    ("e4m3x2", Ty::E4m3x2),
    ("e5m2x2", Ty::E5m2x2),
    ("s4", Ty::S4),
    ("u4", Ty::U4),
    ("u16x2", Ty::U16x2),
    ("s16x2", Ty::S16x2),
];

impl Ty {
    /// The type with this name, without its dot.
    pub(crate) fn named(name: &str) -> Option<Ty> {
        NAMES.iter().find(|(n, _)| *n == name).map(|(_, t)| *t)
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, t)| *t == self).map_or("?", |(n, _)| n)
    }

    pub(crate) const fn bits(self) -> u32 {
        match self {
            Ty::Pred => 1,
            Ty::S4 | Ty::U4 => 4,
            Ty::B8 | Ty::U8 | Ty::S8 | Ty::E4m3 | Ty::E5m2 => 8,
            Ty::B16 | Ty::U16 | Ty::S16 | Ty::F16 | Ty::Bf16 | Ty::E4m3x2 | Ty::E5m2x2 => 16,
            Ty::B32 | Ty::U32 | Ty::S32 | Ty::F32 | Ty::Tf32 => 32,
            Ty::F16x2 | Ty::Bf16x2 | Ty::U16x2 | Ty::S16x2 => 32,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 => 64,
            Ty::B128 => 128,
        }
    }

    pub(crate) const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    pub(crate) const fn kind(self) -> Kind {
        match self {
            Ty::Pred => Kind::Pred,
            Ty::B8 | Ty::B16 | Ty::B32 | Ty::B64 | Ty::B128 => Kind::Bits,
            Ty::U8 | Ty::U16 | Ty::U32 | Ty::U64 | Ty::U4 | Ty::U16x2 => Kind::Int,
            Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64 | Ty::S4 | Ty::S16x2 => Kind::Int,
            Ty::F16 | Ty::F16x2 | Ty::Bf16 | Ty::Bf16x2 | Ty::F32 | Ty::F64 | Ty::Tf32 => Kind::Float,
            Ty::E4m3 | Ty::E5m2 | Ty::E4m3x2 | Ty::E5m2x2 => Kind::Float,
        }
    }

    pub(crate) const fn is_signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64 | Ty::S4 | Ty::S16x2)
    }

    pub(crate) const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Whether a register declared as `self` may be an operand of an instruction of type `want`.
    ///
    /// PTX ISA, "Instruction Operands: Type checking rules": equal sizes; bits fit everything, signed fits unsigned.
    pub(crate) fn fits(self, want: Ty) -> bool {
        let (a, b) = (self.kind(), want.kind());
        // Alternative formats (bf16, tf32, fp8, packed halves) live in registers of bits.
        let alternative = !matches!(want, Ty::F16 | Ty::F16x2 | Ty::F32 | Ty::F64) && b == Kind::Float;
        let same = a == b || a == Kind::Bits || b == Kind::Bits || (alternative && a == Kind::Int);
        self.bits() == want.bits() && same && (a == Kind::Pred) == (b == Kind::Pred)
    }
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Space {
    Generic,
    Global,
    /// Shared memory of the thread's own block.
    Shared,
    /// Shared memory of any block of the cluster.
    Cluster,
    Local,
    Const,
    Param,
}

impl Space {
    pub(crate) fn named(name: &str) -> Option<Space> {
        Some(match name {
            "global" => Space::Global,
            "shared" | "shared::cta" => Space::Shared,
            "shared::cluster" => Space::Cluster,
            "local" => Space::Local,
            "const" => Space::Const,
            "param" | "param::entry" => Space::Param,
            _ => return None,
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Space::Generic => "generic",
            Space::Global => "global",
            Space::Shared | Space::Cluster => "shared",
            Space::Local => "local",
            Space::Const => "constant",
            Space::Param => "parameter",
        }
    }
}
