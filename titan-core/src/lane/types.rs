//! Type inference: the widths of the operands and results of each operation.
//!
//! Operations with regions and terminators (`for`, `loop`, `if`, roles) are checked by [`super::verify`], which knows the regions.

use super::func::Func;
use super::op::{FloatUn, IntBin, OpKind, Shuffle, Ty};
use std::fmt;

/// The error for operands that are invalid for an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// A description of the error.
    pub message: String,
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

pub(super) fn expect(kind: &dyn fmt::Debug, args: &[Ty], want: &[Ty]) -> Result<(), TypeError> {
    if args == want {
        return Ok(());
    }
    let list = |tys: &[Ty]| tys.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ");
    Err(TypeError { message: format!("{kind:?} takes ({}), not ({})", list(want), list(args)) })
}

fn wrong(kind: &OpKind, args: &[Ty]) -> TypeError {
    TypeError { message: format!("{kind:?} does not take {args:?}") }
}

pub(super) fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), TypeError> {
    if holds { Ok(()) } else { Err(TypeError { message: otherwise() }) }
}

/// The type of one element of a load or store.
pub(super) fn memory_ty(kind: &OpKind, bytes: u8, n: u8) -> Result<Ty, TypeError> {
    let ty = match bytes {
        1 | 4 => Ty::B32,
        2 => Ty::B16,
        8 => Ty::B64,
        _ => return Err(TypeError { message: format!("{kind:?}: an element of {bytes} bytes") }),
    };
    if matches!(n, 1 | 2 | 4) && bytes * n <= 16 {
        return Ok(ty);
    }
    Err(TypeError { message: format!("{kind:?}: {n} elements of {bytes} bytes") })
}

/// Operands, and after them the condition of a masked operation.
pub(super) fn with_mask(mut want: Vec<Ty>, masked: bool) -> Vec<Ty> {
    want.extend(masked.then_some(Ty::Pred));
    want
}

fn address(space: super::Space) -> Ty {
    match space {
        super::Space::Global => Ty::B64,
        super::Space::Shared => Ty::B32,
    }
}

/// The result types of an operation without regions.
///
/// # Errors
/// Returns an error if operands of these types are invalid for the operation.
#[expect(clippy::too_many_lines, reason = "a table: one row for each operation")]
pub(super) fn infer(func: &Func, kind: &OpKind, args: &[Ty]) -> Result<Vec<Ty>, TypeError> {
    use Ty::{B16, B32, B64, Pred};
    let (want, give) = match kind {
        OpKind::Const(ty, _) => (vec![], vec![*ty]),
        OpKind::Slot(slot) => {
            let Some(slot) = func.slots.get(*slot as usize) else {
                return Err(TypeError { message: format!("there is no parameter word {slot}") });
            };
            (vec![], vec![if slot.bytes() == 8 { B64 } else { B32 }])
        }
        OpKind::ThreadId
        | OpKind::LaneId
        | OpKind::WarpId
        | OpKind::ProgramId(_)
        | OpKind::NumPrograms(_)
        | OpKind::SharedBase
        | OpKind::Buffer(_) => (vec![], vec![B32]),
        OpKind::Int(op) => return int(kind, *op, args),
        OpKind::IntUn(_) => (vec![B32], vec![B32]),
        OpKind::MulWide { .. } => (vec![B32, B32], vec![B64]),
        OpKind::IntCmp { .. } => match args {
            [a, b] if a == b && *a != B16 => return Ok(vec![Pred]),
            _ => return Err(wrong(kind, args)),
        },
        OpKind::Extend { from, to, .. } => match (args, from, to) {
            ([B16], 8 | 16, B32 | B64) | ([B32], 8 | 16, B32 | B64) | ([B32], 32, B64) => return Ok(vec![*to]),
            _ => return Err(wrong(kind, args)),
        },
        OpKind::Truncate(to) => match (args, to) {
            ([B64], B32) | ([B32], B16) => return Ok(vec![*to]),
            _ => return Err(wrong(kind, args)),
        },
        OpKind::Pack => match args {
            [B16, B16] | [B32, B32, B32, B32] => return Ok(vec![B32]),
            [B32, B32] => return Ok(vec![B64]),
            _ => return Err(wrong(kind, args)),
        },
        OpKind::Unpack => match args {
            [B32] => return Ok(vec![B16, B16]),
            [B64] => return Ok(vec![B32, B32]),
            _ => return Err(wrong(kind, args)),
        },
        OpKind::FromPred => (vec![Pred], vec![B32]),
        OpKind::Float(_, ty) => (vec![ty.ty(); 2], vec![ty.ty()]),
        OpKind::FloatUn(op, ty) => {
            if !float_un_exists(*op, ty.ty(), *ty == super::FloatTy::F32) {
                return Err(wrong(kind, args));
            }
            (vec![ty.ty()], vec![ty.ty()])
        }
        OpKind::Fma(ty) => (vec![ty.ty(); 3], vec![ty.ty()]),
        OpKind::FloatCmp(_, ty) => (vec![ty.ty(); 2], vec![Pred]),
        OpKind::Convert { from, to } => {
            let n = args.len();
            let fp8 = |num: &super::Num| matches!(num, super::Num::E4m3 | super::Num::E5m2);
            if n == 0 || n > 2 || (n == 2 && !fp8(from) && !fp8(to)) {
                return Err(wrong(kind, args));
            }
            (vec![from.ty(); n], vec![to.ty(); n])
        }
        OpKind::Select => match args {
            [Pred, a, b] if a == b => return Ok(vec![*a]),
            _ => return Err(wrong(kind, args)),
        },
        OpKind::UnpackBytes { .. } => (vec![B32], vec![B32; 4]),
        OpKind::Load { space, bytes, n, masked, .. } => {
            let (ty, n) = (memory_ty(kind, *bytes, *n)?, usize::from(*n));
            let mut want = vec![address(*space)];
            want.extend(std::iter::repeat_n(ty, if *masked { n } else { 0 }));
            (with_mask(want, *masked), vec![ty; n])
        }
        OpKind::Store { space, bytes, n, masked, .. } => {
            let ty = memory_ty(kind, *bytes, *n)?;
            let mut want = vec![address(*space)];
            want.extend(std::iter::repeat_n(ty, usize::from(*n)));
            (with_mask(want, *masked), vec![])
        }
        OpKind::Atomic { space, masked, .. } => {
            let Some(ty @ (B32 | B64)) = args.get(1).copied() else { return Err(wrong(kind, args)) };
            (with_mask(vec![address(*space), ty], *masked), vec![ty])
        }
        OpKind::CompareSwap(space) => {
            let Some(ty @ (B16 | B32 | B64)) = args.get(1).copied() else { return Err(wrong(kind, args)) };
            (vec![address(*space), ty, ty], vec![ty])
        }
        OpKind::StoreRelease { masked } => (with_mask(vec![B32, B32], *masked), vec![]),
        OpKind::SequenceWait => (vec![B32, B32], vec![]),
        OpKind::LoadAcquire => (vec![B32], vec![B32]),
        OpKind::Access { .. } | OpKind::Barrier | OpKind::WarpBarrier => (vec![], vec![]),
        OpKind::Shuffle(Shuffle::Index) => (vec![B32, B32], vec![B32]),
        OpKind::Shuffle(_) => (vec![B32], vec![B32]),
        OpKind::Vote(_) => (vec![Pred], vec![Pred]),
        OpKind::Mma(atom) => {
            let regs = atom.registers(func.lanes);
            let mut want = vec![regs.operand; regs.a + regs.b];
            want.extend(std::iter::repeat_n(regs.acc, regs.c));
            (want, vec![regs.acc; regs.c])
        }
        OpKind::For
        | OpKind::Loop
        | OpKind::If
        | OpKind::Roles(_)
        | OpKind::Yield
        | OpKind::Break(_)
        | OpKind::Continue(_)
        | OpKind::Return => return Ok(vec![]),
        OpKind::Nv(op) => return super::nv::types::infer(func, op, args),
        OpKind::Amd(op) => return op.infer(args),
    };
    expect(kind, args, &want)?;
    Ok(give)
}

fn int(kind: &OpKind, op: IntBin, args: &[Ty]) -> Result<Vec<Ty>, TypeError> {
    match (op, args) {
        (IntBin::And | IntBin::Or | IntBin::Xor, [a, b]) if a == b => Ok(vec![*a]),
        (IntBin::Shl | IntBin::ShrS | IntBin::ShrU, [a @ (Ty::B32 | Ty::B64), Ty::B32]) => Ok(vec![*a]),
        (IntBin::Shl | IntBin::ShrS | IntBin::ShrU, _) => Err(wrong(kind, args)),
        (_, [a @ (Ty::B32 | Ty::B64), b]) if a == b => Ok(vec![*a]),
        _ => Err(wrong(kind, args)),
    }
}

const fn float_un_exists(op: FloatUn, ty: Ty, single: bool) -> bool {
    match op {
        FloatUn::Neg | FloatUn::Abs => true,
        FloatUn::Sqrt | FloatUn::Floor | FloatUn::Ceil | FloatUn::Trunc | FloatUn::RoundEven => {
            matches!(ty, Ty::B32 | Ty::B64)
        }
        FloatUn::Ex2Approx | FloatUn::Lg2Approx | FloatUn::RcpApprox | FloatUn::RsqrtApprox => single,
    }
}
