//! The names of NVIDIA's operations in the text form.

use super::{GroupMma, GroupOperand, NvOp};
use crate::lane::op::MmaAtom;

/// The name of an operation with its attributes.
pub(in crate::lane) fn mnemonic(kind: &NvOp) -> String {
    let mask = |masked: &bool| if *masked { ".masked" } else { "" };
    match kind {
        NvOp::CopyAsync { bytes, offset, masked } => format!("copy_async.{bytes}{}{offset:+}", mask(masked)),
        NvOp::CopyCommit => "copy_commit".into(),
        NvOp::CopyWait(n) => format!("copy_wait {n}"),
        NvOp::CopyArrive { masked } => format!("copy_arrive{}", mask(masked)),
        NvOp::MbarrierInit { count, masked } => format!("mbarrier_init{} {count}", mask(masked)),
        NvOp::MbarrierInvalidate { masked } => format!("mbarrier_invalidate{}", mask(masked)),
        NvOp::MbarrierArrive { count, masked } => format!("mbarrier_arrive{} {count}", mask(masked)),
        NvOp::MbarrierWait => "mbarrier_wait".into(),
        NvOp::MbarrierExpect { bytes, masked } => format!("mbarrier_expect{} {bytes}", mask(masked)),
        NvOp::MbarrierFence => "mbarrier_fence".into(),
        NvOp::TensorMap(map) => format!("tensor_map {map}"),
        NvOp::MapEntry(map) => format!("map_entry {map}"),
        NvOp::MakeMap { map, axes } => format!("make_map {map} {axes:?}"),
        NvOp::MapCluster => "map_cluster".into(),
        NvOp::MbarrierArriveCluster { masked } => format!("mbarrier_arrive_cluster{}", mask(masked)),
        NvOp::ClusterArrive => "cluster_arrive".into(),
        NvOp::ClusterWait => "cluster_wait".into(),
        NvOp::BulkLoad { rank, multicast: 0, masked } => format!("bulk_load.{rank}d{}", mask(masked)),
        NvOp::BulkLoad { rank, multicast, masked } => {
            format!("bulk_load.{rank}d.multicast{} {multicast:#b}", mask(masked))
        }
        NvOp::BulkStore { rank } => format!("bulk_store.{rank}d"),
        NvOp::BulkCommit => "bulk_commit".into(),
        NvOp::BulkWait { n, read } => format!("bulk_wait{} {n}", if *read { ".read" } else { "" }),
        NvOp::ProxyFence { cluster } => format!("proxy_fence{}", if *cluster { " cluster" } else { "" }),
        NvOp::Elect => "elect".into(),
        NvOp::GroupFence => "group_fence".into(),
        NvOp::GroupMma(mma) => group_mma(mma),
        NvOp::GroupCommit => "group_commit".into(),
        NvOp::GroupWait(n) => format!("group_wait {n}"),
        NvOp::SetMaxRegisters { registers, more } => {
            format!("set_max_registers.{} {registers}", if *more { "inc" } else { "dec" })
        }
        NvOp::NamedBarrier { id, threads, wait } => {
            format!("named_barrier.{} {id} of {threads}", if *wait { "sync" } else { "arrive" })
        }
        NvOp::LoadMatrix { n, transposed, offset } => {
            format!("load_matrix.x{n}{}{offset:+}", if *transposed { ".t" } else { "" })
        }
        NvOp::StoreMatrix { n, transposed, offset } => {
            format!("store_matrix.x{n}{}{offset:+}", if *transposed { ".t" } else { "" })
        }
    }
}

fn group_mma(mma: &GroupMma) -> String {
    let MmaAtom { m, n, k, a, b, acc } = mma.atom;
    let turned = |transposed: bool| if transposed { ".t" } else { "" };
    let from = match mma.a {
        GroupOperand::Registers => ".registers",
        GroupOperand::Shared { transposed } => turned(transposed),
    };
    let fresh = if mma.fresh { ".fresh" } else { "" };
    format!("group_mma.m{m}n{n}k{k}.{a}{from}.{b}{}.{acc}{fresh}", turned(mma.b_transposed))
}
