//! Roles of which one thread executes most operations: those that only start bulk copies.
//!
//! One thread starts a bulk copy, and arrives with the bytes that its barrier expects; the other threads of the role do neither. If they
//! waited for slots too, nothing would keep them within one phase of the barrier, and a thread that is two phases late waits for a parity
//! that does not come. So in a role that does nothing else, one thread executes everything except the first operations, and the other
//! threads skip it ([`first`]).

use crate::ir::{Block, Family, Flow, Kernel, NvOp, OpId, OpKind, RegionOp, TtgOp};

/// The first operations of a role, which all its threads execute: constants, and operations of whole warpgroups.
#[must_use]
pub fn first(kernel: &Kernel, role: Block) -> &[OpId] {
    let ops = &kernel.block(role).ops;
    let whole = |id: &&OpId| matches!(kernel.op(**id).kind, OpKind::Nv(NvOp::SetMaxNReg { .. }) | OpKind::Const(_));
    &ops[..ops.iter().take_while(whole).count()]
}

/// Whether one thread executes a role: besides its first operations it consists of bulk copies, waits for mbarriers and counters,
/// computations of scalars, and control flow. In a kernel whose rings are not lowered, `fills` says that all its copies to rings become bulk copies.
#[must_use]
pub fn executes(kernel: &Kernel, role: Block, fills: bool) -> bool {
    let (mut only, mut copies) = (true, false);
    let first = first(kernel, role);
    kernel.walk_block(role, &mut |id, op| {
        if first.contains(&id) {
            return;
        }
        copies |= matches!(op.kind, OpKind::Nv(NvOp::BulkLoad { .. }) | OpKind::Ttg(TtgOp::AsyncProduce { .. }));
        only &= match op.kind.family() {
            Family::Nv(nv) => {
                matches!(
                    nv,
                    NvOp::BulkLoad { .. }
                        | NvOp::ArriveExpectTx { .. }
                        | NvOp::WaitParity
                        | NvOp::SequenceWait
                        | NvOp::MbarrierAt
                        | NvOp::ClusterRank
                )
            }
            Family::Region(region) => matches!(region, RegionOp::At | RegionOp::Tile { .. }),
            Family::Ttg(TtgOp::Acquire(_) | TtgOp::AsyncProduce { .. }) => fills,
            Family::Ttg(ttg) => matches!(ttg, TtgOp::Source(..) | TtgOp::Claim(..) | TtgOp::Finalize),
            Family::Data(_) => computes_numbers(&op.kind),
            Family::Flow(flow) => flow != Flow::Return,
            // Tiles are distributed over all threads, and operations of AMD GPUs are executed by whole waves.
            Family::Local(_) | Family::Amd(_) => false,
        };
    });
    only && copies
}

/// Whether an operation only computes scalars, or the bounds of a view, that any thread can compute; if it traps, one thread reports it.
/// All threads execute operations that are not listed here.
fn computes_numbers(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Const(_)
            | OpKind::ProgramId(_)
            | OpKind::NumPrograms(_)
            | OpKind::Dim(_)
            | OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Cmp(_)
            | OpKind::Select
            | OpKind::Cast(_)
            | OpKind::Index(_)
            | OpKind::Slice(_)
            | OpKind::Segment
            | OpKind::RaggedCount { .. }
            | OpKind::RaggedTile { .. }
            | OpKind::Get
            | OpKind::Unflatten
            | OpKind::UnflattenGrouped(_)
    )
}
