//! The choice of clusters: programs that share tiles of their inputs copy each of them once, for all.
//!
//! Two programs of a cluster take tiles that are neighbours along one axis, and share what does not depend on it: of an MMA of 128×256×64,
//! those along M share the tile of B, 32 KiB of a stage, and those along N the tile of A, 16 KiB. The axis with which more bytes are
//! shared is taken. Two programs save half of a shared tile; four save a quarter more, but are harder to place on a device.
//!
//! Extents are known at launches only. With one tile along the axis, half of the programs of such clusters would have none, so there is a
//! variant without clusters besides, and the one with clusters assumes that there are more ([`pays`]).
//!
//! Deliberately absent: odd numbers of tiles, of which one program of the last cluster has none.

use super::schedule::Cluster;
use super::table::CLUSTER;
use crate::analysis::cluster::Differing;
use crate::ir::{Encoding, HostExpr, HostOp, Kernel, OpKind, Token, TtgOp, Ty};
use crate::lay_out;
use crate::pipeline::cluster::{NoDeal, deal, extent};
use crate::plan::Target;
use std::fmt;

/// Why a kernel has no cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoCluster {
    /// The machine has none.
    Machine,
    /// This is the variant for launches in which a cluster does not pay.
    DoesNotPay,
    /// Its tiles cannot be dealt to clusters.
    NoDeal(NoDeal),
    /// Neighbours have no tile in common that is copied in bulk, or not one that can be divided.
    NothingShared,
}

impl fmt::Display for NoCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCluster::Machine => f.write_str("the target has none"),
            NoCluster::DoesNotPay => f.write_str("for launches with one tile along its axis"),
            NoCluster::NoDeal(why) => why.fmt(f),
            NoCluster::NothingShared => {
                f.write_str("neighbouring tiles share no tile that is copied in bulk and can be copied in parts")
            }
        }
    }
}

/// The cluster for a laid-out kernel.
///
/// # Errors
/// Why it has none.
pub(super) fn choose(laid_out: &Kernel, target: &Target, wanted: bool) -> Result<Cluster, NoCluster> {
    if !target.clusters {
        return Err(NoCluster::Machine);
    }
    if !wanted {
        return Err(NoCluster::DoesNotPay);
    }
    let dealt = [0, 1].map(|axis| deal(laid_out, CLUSTER, axis));
    let [first, second] = dealt.each_ref().map(|kernel| kernel.as_ref().map_or(0, shared_bytes));
    match dealt {
        [Err(why), Err(_)] => Err(NoCluster::NoDeal(why)),
        [_, _] if first.max(second) == 0 => Err(NoCluster::NothingShared),
        // Of equal ones the first axis: neighbours along it are those whose tiles of the second operand are the same.
        [_, _] => Ok(Cluster { size: CLUSTER, axis: usize::from(second > first) }),
    }
}

/// When a cluster leaves no program of all clusters without a tile: there is more than one tile along its axis.
pub(super) fn pays(laid_out: &Kernel, cluster: Cluster) -> Option<HostExpr> {
    let (along, tile) = extent(laid_out, cluster.axis)?;
    Some(HostExpr::binary(HostOp::Gt, along, HostExpr::Const(tile)))
}

/// The laid-out kernel with the cluster of a schedule; `None` if it cannot have that.
pub(super) fn apply(laid_out: Kernel, cluster: Option<Cluster>) -> Option<Kernel> {
    match cluster {
        None => Some(laid_out),
        Some(Cluster { size, axis }) => deal(&laid_out, size, axis).ok(),
    }
}

/// The bytes that a stage gets by copies for all programs of a cluster.
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
