//! Type inference: the widths of the operands and results of each operation.
//!
//! Operations with regions and terminators (`for`, `loop`, `if`, roles) are checked by [`super::verify`], which knows the regions.

use super::func::Func;
use super::op::{FloatUn, GroupMma, GroupOperand, IntBin, MmaAtom, OpKind, Shuffle, Ty};
use crate::launch::abi::{MapParam, PartMap};
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

fn expect(kind: &OpKind, args: &[Ty], want: &[Ty]) -> Result<(), TypeError> {
    if args == want {
        return Ok(());
    }
    let list = |tys: &[Ty]| tys.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ");
    Err(TypeError { message: format!("{kind:?} takes ({}), not ({})", list(want), list(args)) })
}

fn wrong(kind: &OpKind, args: &[Ty]) -> TypeError {
    TypeError { message: format!("{kind:?} does not take {args:?}") }
}

fn check(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), TypeError> {
    if holds { Ok(()) } else { Err(TypeError { message: otherwise() }) }
}

/// The maximum number of arrivals that an mbarrier counts in a phase.
const MAX_ARRIVALS: u32 = (1 << 20) - 1;

/// The type of one element of a load or store.
fn memory_ty(kind: &OpKind, bytes: u8, n: u8) -> Result<Ty, TypeError> {
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
fn with_mask(mut want: Vec<Ty>, masked: bool) -> Vec<Ty> {
    want.extend(masked.then_some(Ty::Pred));
    want
}

fn address(space: super::Space) -> Ty {
    match space {
        super::Space::Global => Ty::B64,
        super::Space::Shared => Ty::B32,
    }
}

/// The number of axes of a tensor map of which there is a table.
fn table(func: &Func, map: u32) -> Result<usize, TypeError> {
    match func.maps.get(map as usize) {
        Some(MapParam { part: PartMap::Ending { .. }, extents, .. }) => Ok(extents.len()),
        Some(_) | None => Err(TypeError { message: format!("there is no table of tensor map {map}") }),
    }
}

/// The result types of an operation without regions.
///
/// # Errors
/// Returns an error if operands of these types are invalid for the operation.
#[expect(clippy::too_many_lines, clippy::cognitive_complexity, reason = "a table: one row for each operation")]
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
        OpKind::TensorMap(map) => {
            check((*map as usize) < func.maps.len(), || format!("there is no tensor map {map}"))?;
            (vec![], vec![B64])
        }
        OpKind::MapEntry(map) => {
            table(func, *map)?;
            (vec![B32], vec![B64])
        }
        OpKind::MakeMap { map, axes } => {
            let rank = table(func, *map)?;
            check(axes.iter().all(|axis| usize::from(*axis) < rank), || format!("{kind:?}: the map has {rank} axes"))?;
            (vec![B32; axes.len() + 1], vec![])
        }
        OpKind::Elect => (vec![], vec![Pred]),
        OpKind::GroupMma(mma) => return group_mma(kind, mma, args),
        // The operands are in flight, the results are ordinary values with the same types.
        OpKind::GroupWait(_) => return Ok(args.to_vec()),
        OpKind::SetMaxRegisters { registers, .. } => {
            check(registers.is_multiple_of(8) && (24..=256).contains(registers), || {
                format!("{kind:?}: a multiple of 8 from 24 to 256")
            })?;
            (vec![], vec![])
        }
        OpKind::BulkCommit | OpKind::BulkWait { .. } => (vec![], vec![]),
        OpKind::StoreMatrix { n, .. } => {
            check(matches!(n, 1 | 2 | 4), || format!("{kind:?}: 1, 2 or 4 matrices"))?;
            (vec![B32; 1 + usize::from(*n)], vec![])
        }
        OpKind::MbarrierFence
        | OpKind::ClusterArrive
        | OpKind::ClusterWait
        | OpKind::ProxyFence { .. }
        | OpKind::GroupFence
        | OpKind::GroupCommit => (vec![], vec![]),
        OpKind::MapCluster => (vec![B32, B32], vec![B32]),
        OpKind::Int(op) => return int(kind, *op, args),
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
        OpKind::CopyAsync { masked, .. } => (with_mask(vec![B32, B64], *masked), vec![]),
        // The addresses of mbarriers and of sequence counters are in shared memory.
        OpKind::MbarrierInit { count, masked } | OpKind::MbarrierArrive { count, masked } => {
            check((1..=MAX_ARRIVALS).contains(count), || {
                format!("{kind:?}: an mbarrier counts 1 to {MAX_ARRIVALS} arrivals")
            })?;
            (with_mask(vec![B32], *masked), vec![])
        }
        OpKind::CopyArrive { masked }
        | OpKind::MbarrierInvalidate { masked }
        | OpKind::MbarrierArriveCluster { masked }
        | OpKind::MbarrierExpect { masked, .. } => (with_mask(vec![B32], *masked), vec![]),
        OpKind::BulkLoad { rank, masked, .. } => {
            check(matches!(rank, 1..=5), || format!("{kind:?}: tensors have 1 to 5 axes"))?;
            let mut want = vec![B64, B32, B32];
            want.extend(std::iter::repeat_n(B32, usize::from(*rank)));
            (with_mask(want, *masked), vec![])
        }
        OpKind::BulkStore { rank } => {
            check(matches!(rank, 1..=5), || format!("{kind:?}: tensors have 1 to 5 axes"))?;
            ([&[B64, B32][..], &vec![B32; usize::from(*rank)]].concat(), vec![])
        }
        OpKind::StoreRelease { masked } => (with_mask(vec![B32, B32], *masked), vec![]),
        OpKind::MbarrierWait | OpKind::SequenceWait => (vec![B32, B32], vec![]),
        OpKind::LoadAcquire => (vec![B32], vec![B32]),
        OpKind::NamedBarrier { id, threads, .. } => {
            check(matches!(id, 1..=15), || format!("{kind:?}: named barriers are 1 to 15"))?;
            let whole = *threads > 0 && *threads <= func.threads && threads.is_multiple_of(func.lanes.max(1));
            let (all, lanes) = (func.threads, func.lanes);
            check(whole, || format!("{kind:?}: whole warps of {lanes}, at most {all} threads"))?;
            (vec![], vec![])
        }
        OpKind::Access { .. } | OpKind::CopyCommit | OpKind::CopyWait(_) | OpKind::Barrier | OpKind::WarpBarrier => {
            (vec![], vec![])
        }
        OpKind::Shuffle(Shuffle::Index) => (vec![B32, B32], vec![B32]),
        OpKind::Shuffle(_) => (vec![B32], vec![B32]),
        OpKind::Vote(_) => (vec![Pred], vec![Pred]),
        OpKind::LoadMatrix { n, .. } => (vec![B32], vec![B32; usize::from(*n)]),
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
    };
    expect(kind, args, &want)?;
    Ok(give)
}

/// Result types of an MMA of a warpgroup.
fn group_mma(kind: &OpKind, mma: &GroupMma, args: &[Ty]) -> Result<Vec<Ty>, TypeError> {
    let MmaAtom { m, n, k, a, b, acc } = mma.atom;
    let transposed = mma.b_transposed || mma.a == GroupOperand::Shared { transposed: true };
    check(m == GroupMma::M && n.is_multiple_of(8) && (8..=256).contains(&n), || {
        format!("{kind:?}: M is 64, N a multiple of 8 up to 256")
    })?;
    check(k * a.bits() == 256 && a.bits() == b.bits() && acc.bits() == 32, || {
        format!("{kind:?}: K is 32 bytes, accumulators have 32 bits")
    })?;
    check(!transposed || a.bits() == 16, || format!("{kind:?}: only elements of 16 bits are transposed"))?;
    let (from, to) = mma.registers();
    let mut want = if from > 0 { vec![Ty::B32; from] } else { vec![Ty::B64] };
    want.push(Ty::B64);
    want.extend(std::iter::repeat_n(Ty::B32, if mma.fresh { 0 } else { to }));
    expect(kind, args, &want)?;
    Ok(vec![Ty::B32; to])
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
