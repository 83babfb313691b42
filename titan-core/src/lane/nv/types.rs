//! The widths of the operands and results of NVIDIA's operations.

use super::{GroupMma, GroupOperand, NvOp};
use crate::lane::func::Func;
use crate::lane::op::{MmaAtom, Ty};
use crate::lane::types::{TypeError, check, expect, with_mask};
use crate::launch::abi::{MapParam, PartMap};

/// The maximum number of arrivals that an mbarrier counts in a phase.
const MAX_ARRIVALS: u32 = (1 << 20) - 1;

/// The number of axes of a tensor map of which there is a table.
fn table(func: &Func, map: u32) -> Result<usize, TypeError> {
    match func.maps.get(map as usize) {
        Some(MapParam { part: PartMap::Ending { .. }, extents, .. }) => Ok(extents.len()),
        Some(_) | None => Err(TypeError { message: format!("there is no table of tensor map {map}") }),
    }
}

/// The result types of an operation.
///
/// # Errors
/// Returns an error if operands of these types are invalid for the operation.
pub(in crate::lane) fn infer(func: &Func, kind: &NvOp, args: &[Ty]) -> Result<Vec<Ty>, TypeError> {
    use Ty::{B32, B64, Pred};
    let (want, give) = match kind {
        NvOp::TensorMap(map) => {
            check((*map as usize) < func.maps.len(), || format!("there is no tensor map {map}"))?;
            (vec![], vec![B64])
        }
        NvOp::MapEntry(map) => {
            table(func, *map)?;
            (vec![B32], vec![B64])
        }
        NvOp::MakeMap { map, axes } => {
            let rank = table(func, *map)?;
            check(axes.iter().all(|axis| usize::from(*axis) < rank), || format!("{kind:?}: the map has {rank} axes"))?;
            (vec![B32; axes.len() + 1], vec![])
        }
        NvOp::Elect => (vec![], vec![Pred]),
        NvOp::GroupMma(mma) => return group_mma(kind, mma, args),
        // The operands are in flight, the results are ordinary values with the same types.
        NvOp::GroupWait(_) => return Ok(args.to_vec()),
        NvOp::SetMaxRegisters { registers, .. } => {
            check(registers.is_multiple_of(8) && (24..=256).contains(registers), || {
                format!("{kind:?}: a multiple of 8 from 24 to 256")
            })?;
            (vec![], vec![])
        }
        NvOp::BulkCommit | NvOp::BulkWait { .. } => (vec![], vec![]),
        NvOp::StoreMatrix { n, .. } => {
            check(matches!(n, 1 | 2 | 4), || format!("{kind:?}: 1, 2 or 4 matrices"))?;
            (vec![B32; 1 + usize::from(*n)], vec![])
        }
        NvOp::MbarrierFence
        | NvOp::ClusterArrive
        | NvOp::ClusterWait
        | NvOp::ProxyFence { .. }
        | NvOp::GroupFence
        | NvOp::GroupCommit => (vec![], vec![]),
        NvOp::MapCluster => (vec![B32, B32], vec![B32]),
        NvOp::CopyAsync { masked, .. } => (with_mask(vec![B32, B64], *masked), vec![]),
        // The addresses of mbarriers and of sequence counters are in shared memory.
        NvOp::MbarrierInit { count, masked } | NvOp::MbarrierArrive { count, masked } => {
            check((1..=MAX_ARRIVALS).contains(count), || {
                format!("{kind:?}: an mbarrier counts 1 to {MAX_ARRIVALS} arrivals")
            })?;
            (with_mask(vec![B32], *masked), vec![])
        }
        NvOp::CopyArrive { masked }
        | NvOp::MbarrierInvalidate { masked }
        | NvOp::MbarrierArriveCluster { masked }
        | NvOp::MbarrierExpect { masked, .. } => (with_mask(vec![B32], *masked), vec![]),
        NvOp::BulkLoad { rank, masked, .. } => {
            check(matches!(rank, 1..=5), || format!("{kind:?}: tensors have 1 to 5 axes"))?;
            let mut want = vec![B64, B32, B32];
            want.extend(std::iter::repeat_n(B32, usize::from(*rank)));
            (with_mask(want, *masked), vec![])
        }
        NvOp::BulkStore { rank } => {
            check(matches!(rank, 1..=5), || format!("{kind:?}: tensors have 1 to 5 axes"))?;
            ([&[B64, B32][..], &vec![B32; usize::from(*rank)]].concat(), vec![])
        }
        NvOp::MbarrierWait => (vec![B32, B32], vec![]),
        NvOp::NamedBarrier { id, threads, .. } => {
            check(matches!(id, 1..=15), || format!("{kind:?}: named barriers are 1 to 15"))?;
            let whole = *threads > 0 && *threads <= func.threads && threads.is_multiple_of(func.lanes.max(1));
            let (all, lanes) = (func.threads, func.lanes);
            check(whole, || format!("{kind:?}: whole warps of {lanes}, at most {all} threads"))?;
            (vec![], vec![])
        }
        NvOp::CopyCommit | NvOp::CopyWait(_) => (vec![], vec![]),
        NvOp::LoadMatrix { n, .. } => (vec![B32], vec![B32; usize::from(*n)]),
    };
    expect(kind, args, &want)?;
    Ok(give)
}

/// Result types of an MMA of a warpgroup.
fn group_mma(kind: &NvOp, mma: &GroupMma, args: &[Ty]) -> Result<Vec<Ty>, TypeError> {
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
