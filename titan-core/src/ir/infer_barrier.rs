//! Result types of the operations on regions, mbarriers, groups and counters.

use super::amd::AmdOp;
use super::infer::{TypeError, all_i32, infer, operands};
use super::nv::NvOp;
use super::region::{BarrierTy, Class, RegionOp};
use super::tcgen05::Tcgen05Op;
use super::{NvGroup, OpKind, Ty};
use crate::diag::Code;

type Types = Result<Vec<Ty>, TypeError>;

const REGION: Ty = Ty::Barrier(BarrierTy::Region);
const MBARRIER: Ty = Ty::Barrier(BarrierTy::Mbarrier);
const TMEM: Ty = Ty::Barrier(BarrierTy::TensorMemory);

fn exactly(args: &[Ty], wanted: &[Ty], words: &str, results: Vec<Ty>) -> Types {
    if args == wanted { Ok(results) } else { Err(operands(words, args)) }
}

fn at_least_one(n: u32, what: &str) -> Result<(), TypeError> {
    if n > 0 {
        return Ok(());
    }
    Err(TypeError { code: Code::Operands, message: format!("{what} is 0, but starts at 1"), help: None })
}

/// Result types of operations on regions.
pub(super) fn region(op: &RegionOp, args: &[Ty]) -> Types {
    match op {
        RegionOp::Place { bytes, parts, .. } => {
            at_least_one(*bytes, "`bytes`")?;
            at_least_one(*parts, "`parts`")?;
            exactly(args, &[], "nothing", vec![REGION])
        }
        RegionOp::At => exactly(args, &[REGION, Ty::I32], "a region and which of its parts", vec![REGION]),
        RegionOp::Tile { elem, shape, .. } => exactly(args, &[REGION], "a region", vec![Ty::Smem(*elem, *shape)]),
        RegionOp::Read | RegionOp::Write => exactly(args, &[REGION], "a region", vec![]),
        RegionOp::Call(call) => {
            if args.is_empty() || args.iter().any(|ty| *ty != REGION) {
                return Err(operands("one region or more", args));
            }
            match &call.access {
                Some(access) if access.len() != args.len() => {
                    let message = format!("`access` speaks of {} regions, but {} are named", access.len(), args.len());
                    let help = Some("`access = \"r, w, rw\"`: one word for each region".to_owned());
                    Err(TypeError { code: Code::Operands, message, help })
                }
                Some(_) | None => Ok(vec![]),
            }
        }
        RegionOp::Wait => match args {
            [Ty::Barrier(BarrierTy::Vtok(..))] => Ok(vec![]),
            _ => Err(operands("the token of a group", args)),
        },
    }
}

/// Result types of operations of NVIDIA GPUs.
pub(super) fn nv(op: &NvOp, args: &[Ty]) -> Types {
    match op {
        NvOp::MbarrierAlloc { n, .. } => {
            at_least_one(*n, "`n`")?;
            exactly(args, &[REGION], "the region of the barriers' words", vec![MBARRIER])
        }
        NvOp::MbarrierAt => exactly(args, &[MBARRIER, Ty::I32], "barriers and which of them", vec![MBARRIER]),
        NvOp::MbarrierInit { .. } | NvOp::MbarrierInval => exactly(args, &[MBARRIER], "barriers", vec![]),
        NvOp::ExpectTx { .. } | NvOp::CpAsyncArrive { .. } | NvOp::ArriveCluster { .. } => {
            exactly(args, &[MBARRIER], "a barrier", vec![])
        }
        NvOp::ClusterRank => exactly(args, &[], "nothing", vec![Ty::I32]),
        NvOp::Arrive { .. } | NvOp::ArriveExpectTx { .. } => {
            exactly(args, &[MBARRIER], "a barrier", vec![Ty::Barrier(BarrierTy::State)])
        }
        NvOp::MbarrierWait => {
            exactly(args, &[MBARRIER, Ty::Barrier(BarrierTy::State)], "a barrier and the state of an arrival", vec![])
        }
        NvOp::WaitParity => exactly(args, &[MBARRIER, Ty::I32], "a barrier and a parity", vec![]),
        NvOp::TryWait | NvOp::TestWait => exactly(args, &[MBARRIER, Ty::I32], "a barrier and a parity", vec![Ty::BOOL]),
        NvOp::BulkLoad { tensor, .. } => match args {
            [Ty::Source(e, s), Ty::Smem(f, t), MBARRIER] if *tensor && e == f && s == t => Ok(vec![]),
            [Ty::Source(..), ..] if *tensor => {
                Err(operands("a tile of a tensor, a tile of its type in shared memory and a barrier", args))
            }
            _ => copy(args, &[REGION, MBARRIER], "a tensor, its coordinates, a region and a barrier"),
        },
        NvOp::BulkStore { tensor, .. } => match args {
            [Ty::Source(e, s), Ty::Smem(f, t)] if *tensor && e == f && s == t => Ok(vec![]),
            _ => copy(args, &[REGION], "a tensor, its coordinates and a region"),
        },
        NvOp::CpAsync { .. } => copy(args, &[REGION], "a tensor, its coordinates and a region"),
        NvOp::Wgmma => match args {
            [REGION] | [REGION, REGION] => Ok(vec![]),
            [Ty::Tile(..) | Ty::Smem(..), Ty::Smem(..), Ty::Tile(e, s) | Ty::Compute(e, s)] => {
                infer(&OpKind::Mma, &in_registers(args)).map(|_| vec![Ty::Compute(*e, *s)])
            }
            _ => Err(operands(
                "one or two regions; or two operands, the second in shared memory, and an accumulator",
                args,
            )),
        },
        NvOp::Commit { group, n } => {
            exactly(args, &[], "nothing", vec![Ty::Barrier(BarrierTy::Vtok(group.class(), *n))])
        }
        NvOp::WaitGroup { group: NvGroup::Wgmma, .. } if args.iter().all(|ty| matches!(ty, Ty::Compute(..))) => {
            Ok(in_registers(args))
        }
        NvOp::WaitGroup { group: NvGroup::Wgmma, .. } => Err(operands("nothing, or MMAs in flight", args)),
        NvOp::FenceMbarrierInit
        | NvOp::WgmmaFence
        | NvOp::WaitGroup { group: NvGroup::CpAsync | NvGroup::BulkStore, .. }
        | NvOp::BarrierSync { .. }
        | NvOp::BarrierArrive { .. }
        | NvOp::ClusterArrive
        | NvOp::ClusterWait
        | NvOp::WarpSync
        | NvOp::SetMaxNReg { .. } => exactly(args, &[], "nothing", vec![]),
        NvOp::Tcgen05(op) => tensor_memory(op, args),
        NvOp::SequenceInit => exactly(args, &[REGION], "the region of the counters", vec![]),
        NvOp::SequenceStore | NvOp::SequenceWait => {
            exactly(args, &[REGION, Ty::I32], "a counter and its value", vec![])
        }
    }
}

/// Result types of operations on tensor memory.
fn tensor_memory(op: &Tcgen05Op, args: &[Ty]) -> Types {
    match op {
        Tcgen05Op::Alloc { .. } => exactly(args, &[], "nothing", vec![TMEM]),
        Tcgen05Op::Dealloc { .. } | Tcgen05Op::Load { .. } | Tcgen05Op::Store { .. } | Tcgen05Op::Shift { .. } => {
            exactly(args, &[TMEM], "columns of tensor memory", vec![])
        }
        Tcgen05Op::Copy { .. } => exactly(args, &[TMEM, REGION], "columns of tensor memory and a region", vec![]),
        Tcgen05Op::Commit { .. } => exactly(args, &[MBARRIER], "a barrier", vec![]),
        Tcgen05Op::Mma(mma) => match args {
            [TMEM, TMEM | REGION, REGION] if !mma.kind.is_scaled() => Ok(vec![]),
            [TMEM, TMEM | REGION, REGION, TMEM, TMEM] if mma.kind.is_scaled() => Ok(vec![]),
            _ if mma.kind.is_scaled() => {
                Err(operands("columns of the result, A, a region of B, and columns of the scales of A and of B", args))
            }
            _ => Err(operands("columns of the result, columns or a region of A, and a region of B", args)),
        },
        Tcgen05Op::Relinquish { .. }
        | Tcgen05Op::WaitLoad
        | Tcgen05Op::WaitStore
        | Tcgen05Op::FenceBefore
        | Tcgen05Op::FenceAfter => exactly(args, &[], "nothing", vec![]),
    }
}

/// Result types of operations of AMD GPUs.
pub(super) fn amd(op: &AmdOp, args: &[Ty]) -> Types {
    match op {
        AmdOp::BufferLoadLds { n, .. } => copy(args, &[REGION], "a tensor, its coordinates and a region")
            .map(|_| vec![Ty::Barrier(BarrierTy::Vtok(Class::Vmcnt, *n))]),
        AmdOp::DsRead { n } | AmdOp::DsWrite { n } => {
            exactly(args, &[REGION], "a region", vec![Ty::Barrier(BarrierTy::Vtok(Class::Lgkmcnt, *n))])
        }
        AmdOp::Mfma => infer(&OpKind::Mma, args),
        AmdOp::Waitcnt { .. } | AmdOp::Barrier | AmdOp::SetPrio { .. } => exactly(args, &[], "nothing", vec![]),
    }
}

/// The same types, with every tile as a complete tile in registers.
fn in_registers(args: &[Ty]) -> Vec<Ty> {
    args.iter().map(|ty| ty.tile_shape().map_or(*ty, |shape| Ty::Tile(ty.elem(), shape))).collect()
}

/// Checks that the operands are a tensor, an index for each of its axes, and operands of the types `rest`.
fn copy(args: &[Ty], rest: &[Ty], words: &str) -> Types {
    match args {
        [Ty::Tensor(_, rank), more @ ..] if more.get(usize::from(*rank)..) == Some(rest) => {
            all_i32(&more[..usize::from(*rank)])?;
            Ok(vec![])
        }
        _ => Err(operands(words, args)),
    }
}
