//! Rule 61: accesses through the async proxy are fenced from earlier generic accesses to the same bytes. [`crate::analysis::proxy`] finds
//! the hazards; this module creates the errors.

use crate::analysis::proxy::{Hazard, Overlay, find};
use crate::diag::Code;
use crate::ir::traffic::{Order, traffic};
use crate::ir::{BarrierTy, FenceSpace, Kernel, OpId, OpKind, RegionOp, Scope, Ty, Value};
use crate::verify::Error;
use crate::verify::coexecution::barriers::messages::{access, access_outside, does, does_outside};
use crate::verify::roles::threads;

/// Violations of rule 61.
pub(in crate::verify) fn check(kernel: &Kernel) -> Vec<Error> {
    find(kernel, &Overlay::default()).hazards.iter().map(|h| error(kernel, h)).collect()
}

/// The user's name for the memory that an operation accesses.
fn name(kernel: &Kernel, id: OpId, space: FenceSpace) -> String {
    let op = kernel.op(id);
    let of = |v: Value| match kernel.def_op(v) {
        Some(o) if o.kind == OpKind::Region(RegionOp::At) => o.args.first().map_or(v, |r| *r),
        Some(_) | None => v,
    };
    let wanted = |v: &&Value| match space {
        FenceSpace::Global => matches!(kernel.ty(**v), Ty::Tensor(..) | Ty::Source(..)),
        FenceSpace::Shared | FenceSpace::All => {
            matches!(kernel.ty(**v), Ty::Barrier(BarrierTy::Region | BarrierTy::Mbarrier) | Ty::Smem(..))
        }
    };
    op.args.iter().find(wanted).map_or_else(|| "memory".to_owned(), |v| format!("`{}`", kernel.display_name(of(*v))))
}

fn error(kernel: &Kernel, hazard: &Hazard) -> Error {
    let landing = hazard.landing.first();
    let Some(pair) = hazard.pairs.first().or(landing).copied() else {
        return Error::new(Code::Unfenced, kernel.op(hazard.at).loc, "");
    };
    let (generic, user) = (kernel.op(pair.generic), kernel.op(pair.user));
    let (before, after) = (name(kernel, pair.generic, pair.space), name(kernel, pair.user, pair.space));
    let role = threads(kernel).get(hazard.role).map_or_else(|| "the kernel".to_owned(), |(name, _)| name.clone());
    let (of, verb): (fn(&OpKind, &str) -> String, _) = if pair.space == FenceSpace::Global {
        (access_outside, does_outside(&user.kind))
    } else {
        (access, does(&user.kind))
    };
    let (first, second) = (of(&generic.kind, &before), of(&user.kind, &after));
    let title = if hazard.at == pair.user {
        format!("{after} {verb} through the async proxy, which may not see {first}: no fence comes between")
    } else if traffic(&kernel.op(hazard.at).kind).order == Order::Specializes {
        format!("the roles start after {first}, from which {second} is not fenced")
    } else {
        format!("{role} arrives after {first}, from which {second} through the async proxy is not fenced")
    };
    let mut error = Error::new(Code::Unfenced, kernel.op(hazard.at).loc, title).related(generic.loc, first);
    if hazard.at != pair.user {
        error = error.related(user.loc, second);
    }
    match hazard.fence() {
        Some(fence) => error
            .help(format!("{} before it", written(fence)))
            .help("`titan opt FILE.tir --passes fence` places what is missing"),
        None => error.help("the copy may not be complete: wait for its group, and fence after that"),
    }
}

fn written((scope, space): (Scope, FenceSpace)) -> String {
    format!("`ttg.fence.proxy {{from = generic, to = async, scope = {scope}, space = {space}}}`")
}
