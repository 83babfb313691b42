//! Instructions prepared for execution: the operation, by tables of the emulator's own, and the locations of operands.

use super::absent::{self, Absent, computed};
use super::error::ErrorCode;
use super::fail::Fail;
use super::lane::{self, CompareFn, LaneFn, convert, divide};
use super::matrix::Shape;
use super::scalar::{self, MaskFn, ScalarFn, ScalarTest};
use super::shadow::compare::CompareShadow;
use super::shadow::scalar::ScalarShadow;
use super::shadow::{self, ShadowFn};
use crate::isa::ty::F16;
use crate::isa::{Access, Arg, Class, Elem, Field, Format, Inline, Inst, Operand, Special, Ty, Unit};

/// An instruction at its address.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) inst: Inst,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) kind: Kind,
    /// The sources, in the order in which functions take them.
    pub(crate) sources: Vec<Source>,
    /// The destinations, in the order of the text.
    pub(crate) results: Vec<Place>,
    pub(crate) unit: Unit,
    /// Whether the last source is the destination's old value.
    pub(crate) accumulates: bool,
    /// The shape, for an MMA.
    pub(crate) matrix: Option<Shape>,
    /// Whether it is vector arithmetic that rounds in the direction of `MODE`.
    pub(crate) rounds: bool,
}

/// The reason why an instruction cannot be executed.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    code: ErrorCode,
    message: String,
}

impl Refused {
    pub(crate) const fn unknown(message: String) -> Refused {
        Refused { code: ErrorCode::Unknown, message }
    }

    /// A feature that the emulator does not have, with the instruction or the operand that uses it.
    pub(crate) fn absent(feature: Absent, what: impl std::fmt::Display) -> Refused {
        Refused { code: ErrorCode::Unsupported, message: absent::refusal(feature, what) }
    }
}

impl std::convert::From<Refused> for Fail {
    fn from(refused: Refused) -> Fail {
        Fail::new(refused.code, refused.message)
    }
}

/// A source with its type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) from: From,
    pub(crate) ty: Ty,
}

/// The location of a source's bits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    Scalar(u8, u8),
    Vector(File, u8, u8),
    Constant(u64),
    Special(Special),
    /// No source: `off`.
    Nothing,
}

/// Registers that are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) to: To,
    pub(crate) ty: Ty,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum To {
    Scalar(u8, u8),
    Vector(File, u8, u8),
}

/// A file of vector registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum File {
    V,
    A,
}

impl File {
    /// The file, the first register and their number, if an operand is in vector registers.
    pub(crate) const fn of(operand: Operand) -> Option<(File, u8, u8)> {
        match operand {
            Operand::V(first, n) => Some((File::V, first, n)),
            Operand::A(first, n) => Some((File::A, first, n)),
            Operand::S(..)
            | Operand::Inline(_)
            | Operand::Literal(_)
            | Operand::Special(_)
            | Operand::Imm(_)
            | Operand::Off => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            File::V => "v",
            File::A => "a",
        }
    }
}

/// The operation of an instruction.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A function of scalar sources; which bits of its result are undefined, if it has a rule of its own.
    Scalar(ScalarFn, Option<ScalarShadow>),
    ScalarCompare(ScalarTest, Option<CompareShadow>),
    ExecMask(MaskFn, bool),
    GetPc,
    SetPc,
    SwapPc,
    Call,
    Branch(Condition),
    End,
    Nothing,
    Barrier,
    Wait,
    Trap,
    Sleep,
    GetReg,
    SetReg,
    /// A move whose source, or else its destination, `m0` selects.
    MoveRelative(bool),
    Index(IndexKind),
    /// A function of each lane's own sources.
    Lane(LaneFn, Option<ShadowFn>),
    /// A function of the two halves of packed 32-bit operands, or of the halves of packed `f16`.
    Packed(LaneFn),
    /// A function of whole packed registers.
    PackedInt(LaneFn, Option<ShadowFn>),
    Compare(CompareFn, Option<CompareShadow>),
    Select,
    Carry(CarryKind),
    Mad64 {
        signed: bool,
    },
    DivScale,
    DivFmas,
    ToSmall,
    Mix(MixKind),
    PackedMove,
    Mbcnt {
        high: bool,
    },
    ReadLane,
    ReadFirstLane,
    WriteLane,
    Swap,
    Matrix,
    ScalarMemory,
    Memory,
    Cache,
    Lds,
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kind")
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    Always,
    Scc(bool),
    Vcc(bool),
    Exec(bool),
}

/// What an instruction sets of the indexing of vector registers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IndexKind {
    On,
    Off,
    Mode,
    Index,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum CarryKind {
    Add,
    Sub,
    SubRev,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum MixKind {
    F32,
    Low,
    High,
}

/// Prepares an instruction for execution.
///
/// # Errors
/// What the emulator does not have.
pub(crate) fn resolve(inst: Inst, address: u64, size: u64) -> Result<Op, Refused> {
    let kind = kind(&inst)?;
    let (mut sources, mut results) = (Vec::new(), Vec::new());
    // Mixed precision: a constant has the format in which its source is read; a half is in the lower bits.
    let mut halves = if inst.row().is_mix() { inst.get(Field::OpSelHi) | inst.get(Field::OpSelHi2) << 2 } else { 0 };
    for (mut arg, operand) in inst.args() {
        if arg.access == Access::Read {
            if halves & 1 == 1 {
                arg.ty = F16;
            }
            halves >>= 1;
        }
        if arg.access != Access::Read {
            results.extend(place(arg, operand));
        }
        if arg.access != Access::Write && arg.class != Class::Waitcnt {
            sources.push(source(arg, operand));
        }
    }
    // Instructions that accumulate into their destination read it as the last source.
    let accumulates = inst.args().next().is_some_and(|(a, _)| a.access == Access::ReadWrite);
    let memory = matches!(kind, Kind::Memory | Kind::Lds | Kind::Swap);
    if accumulates && !memory {
        sources.rotate_left(1);
    }
    let unit = inst.row().unit;
    let matrix = match (kind, &sources[..]) {
        (Kind::Matrix, [a, b, c]) => Shape::of(inst.row().name, a.ty.elem, b.ty.elem, c.ty.elem),
        _ => None,
    };
    let rounds = computed::rounds(&inst);
    Ok(Op { inst, address, size, kind, sources, results, unit, accumulates: accumulates && !memory, matrix, rounds })
}

fn place(arg: Arg, operand: Operand) -> Option<Place> {
    let to = match operand {
        Operand::S(code, n) => To::Scalar(code, n),
        Operand::V(first, n) => To::Vector(File::V, first, n),
        Operand::A(first, n) => To::Vector(File::A, first, n),
        Operand::Inline(_) | Operand::Literal(_) | Operand::Special(_) | Operand::Imm(_) | Operand::Off => return None,
    };
    Some(Place { to, ty: arg.ty })
}

fn source(arg: Arg, operand: Operand) -> Source {
    let from = match operand {
        Operand::S(code, n) => From::Scalar(code, n),
        Operand::V(first, n) => From::Vector(File::V, first, n),
        Operand::A(first, n) => From::Vector(File::A, first, n),
        Operand::Inline(inline) => From::Constant(constant(inline, arg.ty)),
        Operand::Literal(value) => From::Constant(literal(value, arg.ty)),
        Operand::Special(special) => From::Special(special),
        Operand::Imm(value) => From::Constant(u64::from(value.cast_unsigned())),
        Operand::Off => From::Nothing,
    };
    Source { from, ty: arg.ty }
}

/// The bits of an inline constant: ISA §6.2, table 23. Floats have the operand's width; packed operands have the constant
/// in their lowest element.
fn constant(inline: Inline, ty: Ty) -> u64 {
    let bits = if ty.count > 1 { ty.elem.bits().min(32) } else { ty.bits() };
    match inline {
        Inline::Int(v) => {
            let wide = i64::from(v).cast_unsigned();
            if ty.bits() == 64 && ty.count == 1 { wide } else { wide & 0xFFFF_FFFF }
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the constants are exact in f32, but for one that is rounded"
        )]
        Inline::Float(v) => match (ty.elem, bits) {
            (Elem::F(_) | Elem::U(_) | Elem::I(_) | Elem::B(_), 16) => titan_core::num::f16_from_f64(v.value()).into(),
            (_, 64) => v.value().to_bits(),
            _ => (v.value() as f32).to_bits().into(),
        },
    }
}

/// A literal, expanded to 64 bits: ISA §6.2.1.1. Bits are extended like unsigned integers: LLVM moves numbers of up to 32 bits to pairs of
/// registers by `s_mov_b64` (`SIInstrInfo::expandPostRAPseudo`, `S_MOV_B64_IMM_PSEUDO`).
const fn literal(value: u32, ty: Ty) -> u64 {
    match ty.elem {
        Elem::F(64) => (value as u64) << 32,
        Elem::I(64) => (value.cast_signed() as i64).cast_unsigned(),
        _ => value as u64,
    }
}

fn kind(inst: &Inst) -> Result<Kind, Refused> {
    let name = inst.row().name;
    if let Some(feature) = computed::refused(inst) {
        return Err(Refused::absent(feature, format_args!("`{inst}`")));
    }
    // Titan-amd's tests show that no row of the tables comes here.
    let unknown = || Refused::unknown(format!("the emulator has no rule for `{name}`"));
    match inst.row().unit {
        Unit::Salu | Unit::Branch | Unit::Control => control(name).ok_or_else(unknown),
        Unit::Smem if name.starts_with("s_dcache") => Ok(Kind::Cache),
        Unit::Smem => Ok(Kind::ScalarMemory),
        Unit::Valu | Unit::Trans | Unit::Dot => vector(inst).ok_or_else(unknown),
        Unit::Xdl | Unit::Sgemm | Unit::Dgemm if name.starts_with("v_mfma") => Ok(Kind::Matrix),
        Unit::Xdl | Unit::Sgemm | Unit::Dgemm => Err(unknown()),
        Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds => Ok(Kind::Memory),
        Unit::Cache => Ok(Kind::Cache),
        Unit::Lds => Ok(Kind::Lds),
    }
}

fn control(name: &str) -> Option<Kind> {
    let condition = |c| Some(Kind::Branch(c));
    match name {
        "s_getpc_b64" => Some(Kind::GetPc),
        "s_setpc_b64" => Some(Kind::SetPc),
        "s_swappc_b64" => Some(Kind::SwapPc),
        "s_call_b64" => Some(Kind::Call),
        "s_branch" => condition(Condition::Always),
        "s_cbranch_scc0" => condition(Condition::Scc(false)),
        "s_cbranch_scc1" => condition(Condition::Scc(true)),
        "s_cbranch_vccz" => condition(Condition::Vcc(false)),
        "s_cbranch_vccnz" => condition(Condition::Vcc(true)),
        "s_cbranch_execz" => condition(Condition::Exec(false)),
        "s_cbranch_execnz" => condition(Condition::Exec(true)),
        "s_endpgm" => Some(Kind::End),
        "s_barrier" => Some(Kind::Barrier),
        "s_waitcnt" => Some(Kind::Wait),
        "s_trap" => Some(Kind::Trap),
        "s_getreg_b32" => Some(Kind::GetReg),
        "s_setreg_b32" | "s_setreg_imm32_b32" => Some(Kind::SetReg),
        // Instructions without effect on results.
        "s_nop" | "s_setprio" | "s_icache_inv" | "s_wakeup" | "s_incperflevel" | "s_decperflevel" => {
            Some(Kind::Nothing)
        }
        // Others have their turn.
        "s_sleep" => Some(Kind::Sleep),
        "s_movrels_b32" | "s_movrels_b64" => Some(Kind::MoveRelative(true)),
        "s_movreld_b32" | "s_movreld_b64" => Some(Kind::MoveRelative(false)),
        "s_set_gpr_idx_on" => Some(Kind::Index(IndexKind::On)),
        "s_set_gpr_idx_off" => Some(Kind::Index(IndexKind::Off)),
        "s_set_gpr_idx_mode" => Some(Kind::Index(IndexKind::Mode)),
        "s_set_gpr_idx_idx" => Some(Kind::Index(IndexKind::Index)),
        _ => {
            let mask = || scalar::exec_mask(name).map(|(f, new)| Kind::ExecMask(f, new));
            let compare = || scalar::compare(name).map(|f| Kind::ScalarCompare(f, shadow::compare::scalar(name)));
            let function = scalar::function(name).map(|f| Kind::Scalar(f, shadow::scalar::function(name)));
            function.or_else(compare).or_else(mask)
        }
    }
}

fn vector(inst: &Inst) -> Option<Kind> {
    let row = inst.row();
    let name = row.name;
    if row.format == Format::Vopc {
        return compare(name).map(|f| Kind::Compare(f, shadow::compare::vector(name)));
    }
    let special = match name {
        "v_nop" => Kind::Nothing,
        "v_cndmask_b32" => Kind::Select,
        "v_add_co_u32" | "v_addc_co_u32" => Kind::Carry(CarryKind::Add),
        "v_sub_co_u32" | "v_subb_co_u32" => Kind::Carry(CarryKind::Sub),
        "v_subrev_co_u32" | "v_subbrev_co_u32" => Kind::Carry(CarryKind::SubRev),
        "v_mad_u64_u32" => Kind::Mad64 { signed: false },
        "v_mad_i64_i32" => Kind::Mad64 { signed: true },
        "v_fma_mix_f32" => Kind::Mix(MixKind::F32),
        "v_fma_mixlo_f16" => Kind::Mix(MixKind::Low),
        "v_fma_mixhi_f16" => Kind::Mix(MixKind::High),
        "v_pk_mov_b32" => Kind::PackedMove,
        "v_mbcnt_lo_u32_b32" => Kind::Mbcnt { high: false },
        "v_mbcnt_hi_u32_b32" => Kind::Mbcnt { high: true },
        "v_readlane_b32" => Kind::ReadLane,
        "v_readfirstlane_b32" => Kind::ReadFirstLane,
        "v_writelane_b32" => Kind::WriteLane,
        "v_swap_b32" => Kind::Swap,
        _ if divide::div_scale(name, [0; 3]).is_some() => Kind::DivScale,
        _ if divide::div_fmas(name, MODE, [0; 3], false).is_some() => Kind::DivFmas,
        _ if convert::to_small(name, MODE, [0; 3]).is_some() => Kind::ToSmall,
        _ => return arithmetic(inst),
    };
    Some(special)
}

fn arithmetic(inst: &Inst) -> Option<Kind> {
    let row = inst.row();
    let saturates = inst.get(Field::Clamp) != 0 && row.args().first().is_some_and(|a| !a.ty.elem.is_float());
    let function = if saturates { lane::int::saturating(row.name)? } else { lane::function(row.name)? };
    // The rule is about sums that wrap around.
    let rule = if saturates { None } else { shadow::function(row.name) };
    let packed = row.format == Format::Vop3p || row.name == "v_pk_fmac_f16";
    let float = row.args().first().is_some_and(|a| a.ty.elem.is_float() && a.ty.count == 2);
    Some(match (packed, float) {
        (true, true) => Kind::Packed(function),
        (true, false) => Kind::PackedInt(function, rule),
        (false, _) => Kind::Lane(function, rule),
    })
}

/// The function of a comparison such as `v_cmp_lt_f32` or `v_cmpx_class_f16`.
fn compare(name: &str) -> Option<CompareFn> {
    let rest = name.strip_prefix("v_cmpx_").or_else(|| name.strip_prefix("v_cmp_"))?;
    let (test, ty) = rest.split_once('_')?;
    let float = ty.strip_prefix('f').and_then(|b| b.parse().ok());
    match (test, float) {
        ("class", Some(bits)) => Some(lane::float::class(bits)),
        (_, Some(bits)) => lane::float::compare(test, bits),
        (_, None) => lane::int::compare(test, ty),
    }
}

/// A mode that is used only to determine the names that a function accepts.
const MODE: lane::Mode = lane::Mode {
    round_32: 0,
    round_16_64: 0,
    denorm_32: 3,
    denorm_16_64: 3,
    dx10_clamp: true,
    ieee: true,
    fp16_overflow: false,
};
