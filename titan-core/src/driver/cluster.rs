//! The choice of clusters: programs that need the same tiles of their inputs copy each of them once, for all of them.
//!
//! The two programs of a cluster compute tiles that are adjacent along one axis, and share the input tiles that do not depend on this axis:
//! of an MMA of 128×256×64, programs along M share the tile of B, 32 KiB of a stage, and programs along N the tile of A, 16 KiB. The axis
//! with more shared bytes is chosen. Two programs save half of the copies of a shared tile; four would save a quarter more, but are harder
//! to schedule on a device.
//!
//! Extents are known only at launches. With one tile along the axis, half of the programs in clusters would have no tile. So there is also
//! a variant without clusters, and the variant with clusters assumes that there are more tiles ([`pays`]).
//!
//! Deliberately absent: odd numbers of tiles, for which one program of the last cluster has no tile.

use super::table::CLUSTER;
use crate::analysis::cluster::Differing;
use crate::ir::{Encoding, HostExpr, HostOp, Kernel, OpKind, Token, TtgOp, Ty};
use crate::lay_out;
use crate::pipeline::walk::{Cluster, NoWalk, Walk, extent};
use crate::target::Target;
use std::fmt;

/// The reason why a kernel has no cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoCluster {
    /// The machine has no clusters, or no fast copies to several programs.
    Machine,
    /// This is the variant for launches in which clusters do not pay off.
    DoesNotPay,
    /// This is the one variant for launches whose outputs are not aligned, which must also serve those in which clusters do not pay off.
    AnyOutputs,
    /// Its tiles cannot be distributed to clusters.
    NoWalk(NoWalk),
    /// Adjacent tiles share no input tile that is copied in bulk and can be divided.
    NothingShared,
}

impl fmt::Display for NoCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCluster::Machine => f.write_str("the target has no fast copies to several programs"),
            NoCluster::DoesNotPay => f.write_str("for launches with one tile along its axis"),
            NoCluster::AnyOutputs => f.write_str("there is one variant for outputs that are not aligned"),
            NoCluster::NoWalk(why) => why.fmt(f),
            NoCluster::NothingShared => f.write_str("neighbouring tiles share no tile that is copied in bulk in parts"),
        }
    }
}

/// Chooses the cluster for a laid-out kernel, unless there is a reason for one `without`.
///
/// # Errors
/// The reason why it has none.
pub(super) fn choose(laid_out: &Kernel, target: &Target, without: Option<NoCluster>) -> Result<Cluster, NoCluster> {
    if !target.clusters {
        return Err(NoCluster::Machine);
    }
    let clusters = [0, 1].map(|axis| Cluster { size: CLUSTER, axis });
    let dealt =
        clusters.map(|cluster| Walk { cluster: Some(cluster), ..Walk::default() }.to_clusters(laid_out.clone()));
    let [first, second] = dealt.each_ref().map(|kernel| kernel.as_ref().map_or(0, shared_bytes));
    match dealt {
        [Err(why), Err(_)] => Err(NoCluster::NoWalk(why)),
        [_, _] if first.max(second) == 0 => Err(NoCluster::NothingShared),
        // If both axes share as many bytes, the first is chosen: adjacent tiles along it need the same tiles of the second operand.
        [_, _] => without.map_or(Ok(clusters[usize::from(second > first)]), Err),
    }
}

/// The condition on a launch under which clusters pay off, so that no cluster has a program without a tile: there is more than one tile
/// along the cluster's axis.
pub(super) fn pays(laid_out: &Kernel, cluster: Cluster) -> Option<HostExpr> {
    let (along, tile) = extent(laid_out, cluster.axis)?;
    Some(HostExpr::binary(HostOp::Gt, along, HostExpr::Const(tile)))
}

/// The bytes of a stage that are copied for all programs of a cluster.
fn shared_bytes(kernel: &Kernel) -> u64 {
    let Some(laid) = kernel.laid_out.as_deref() else { return 0 };
    let differing = Differing::new(kernel);
    let mut bytes = 0;
    kernel.walk(&mut |_, op| {
        let OpKind::Ttg(TtgOp::AsyncProduce { skipped: None, .. }) = op.kind else { return };
        let Some(Ty::Token(Token::Slot, pipe)) = op.args.first().map(|v| kernel.ty(*v)) else { return };
        let encodings = laid.stages.get(pipe.index()).map_or(&[][..], Vec::as_slice);
        for (source, id) in op.args[1..].iter().zip(encodings) {
            let encoding: Option<&Encoding> = laid.encodings.get(id.index());
            bytes += encoding
                .filter(|e| lay_out::parts(kernel, &differing, *source, e) > 1)
                .map_or(0, |e| u64::from(e.bytes()));
        }
    });
    bytes
}
