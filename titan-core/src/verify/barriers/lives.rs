//! Rule 48: barriers are initialised once, before any other use, and fenced. Their invalidation is checked in the co-execution of the
//! roles (`crate::verify::coexecution`).

use super::place::error;
use crate::collections::SortedMap;
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{Kernel, Loc, NvOp, Op, OpId, OpKind, Stated, Value};
use crate::verify::Error;
use crate::verify::coexecution::barriers::lives::MAX_COUNT;
use crate::verify::roles::beginning;

/// Checks rule 48: barriers are initialised once, before any other use, and fenced.
pub(super) fn lives(kernel: &Kernel, errors: &mut Vec<Error>) {
    let begin = beginning(kernel);
    let mut inits: SortedMap<Value, Vec<(OpId, Loc)>> = SortedMap::new();
    kernel.walk(&mut |id, op| {
        counts(kernel, op, errors);
        if let (OpKind::Nv(NvOp::MbarrierInit { count }), [alloc]) = (&op.kind, &op.args[..]) {
            if !(1..=MAX_COUNT).contains(count) {
                let name = kernel.display_name(*alloc);
                error(
                    errors,
                    Code::BarrierCount,
                    op.loc,
                    format!("`{name}` is initialised with a count of {count}: it must be 1 to {MAX_COUNT}"),
                );
            }
            inits.entry(*alloc).or_default().push((id, op.loc));
        }
    });
    kernel.walk(&mut |id, op| {
        if let (OpKind::Nv(NvOp::MbarrierAlloc { .. }), [alloc]) = (&op.kind, &op.results[..]) {
            one_life(kernel, (id, *alloc), inits.get(alloc).map_or(&[], Vec::as_slice), begin, errors);
        }
    });
}

/// Checks the counts of arrivals and bytes of an operation; and records the barriers that it initialises or invalidates.
fn counts(kernel: &Kernel, op: &Op, errors: &mut Vec<Error>) {
    let picked = |v: &Value| kernel.def_op(*v).is_some_and(|o| o.kind == OpKind::Nv(NvOp::MbarrierAt));
    let name = op.args.first().map(|v| kernel.display_name(*v)).unwrap_or_default();
    if let OpKind::Nv(NvOp::MbarrierInit { .. } | NvOp::MbarrierInval) = op.kind
        && op.args.first().is_some_and(picked)
    {
        let title =
            format!("`{}` takes all barriers of an `alloc`, but `{name}` is one of several", mnemonic(&op.kind));
        errors.push(Error::new(Code::BarrierLife, op.loc, title).help("name the `alloc` itself"));
    }
    match op.kind.stated() {
        Stated::Arrivals(arrivals) if !(1..=MAX_COUNT).contains(&arrivals) => {
            let title = format!("{arrivals} arrivals at `{name}`: the number must be 1 to {MAX_COUNT}");
            error(errors, Code::BarrierCount, op.loc, title);
        }
        Stated::Expects(bytes) if bytes > MAX_COUNT => {
            let title = format!(
                "`{name}` cannot expect {bytes} bytes: the transaction count of an mbarrier is at most {MAX_COUNT}"
            );
            error(errors, Code::TxBytes, op.loc, title);
        }
        Stated::Arrivals(_) | Stated::Expects(_) => {}
        // `lives` checks the counts of barriers, `numbers` the numbers of threads, `place` the bytes of copies.
        Stated::Count(_)
        | Stated::CopyArrivals(_)
        | Stated::Named { .. }
        | Stated::Registers(_)
        | Stated::Priority(_)
        | Stated::Copies { .. }
        | Stated::Nothing => {}
    }
}

fn one_life(
    kernel: &Kernel,
    (made, alloc): (OpId, Value),
    inits: &[(OpId, Loc)],
    begin: &[OpId],
    errors: &mut Vec<Error>,
) {
    let name = kernel.display_name(alloc);
    let loc = kernel.op(made).loc;
    let Some((init, at)) = inits.first() else {
        let title = format!("`{name}` is never initialised");
        errors.push(Error::new(Code::BarrierLife, loc, title).help("`ttg.nv.mbarrier.init` before `ttg.roles`"));
        return;
    };
    if let Some((_, again)) = inits.get(1) {
        let over = kernel.ops.iter().any(|o| o.kind == OpKind::Nv(NvOp::MbarrierInval) && o.args[..] == [alloc]);
        let title = if over {
            format!("`{name}` is initialised again, and it could not be shown that it is invalidated before")
        } else {
            format!("`{name}` is initialised a second time")
        };
        let error = Error::new(Code::BarrierLife, *again, title).related(*at, "it is initialised here first");
        errors.push(if over { error.help("use another barrier with a word of its own") } else { error });
    }
    let Some(begins) = begin.iter().position(|o| o == init) else {
        let title = format!("`{name}` is initialised where other roles may already use it");
        errors.push(
            Error::new(Code::BarrierLife, *at, title)
                .help("initialise barriers before `ttg.roles`, outside of loops and branches"),
        );
        return;
    };
    let mine = Uses { kernel, alloc };
    if let Some(early) = begin[..begins].iter().find_map(|o| mine.first_in(*o)) {
        errors.push(
            Error::new(Code::BarrierLife, early, format!("`{name}` is used before it is initialised"))
                .related(*at, "it is initialised here"),
        );
        return;
    }
    let fence = begin[begins..].iter().position(|o| matches!(kernel.op(*o).kind, OpKind::Nv(NvOp::FenceMbarrierInit)));
    let used = begin[begins + 1..].iter().position(|o| mine.first_in(*o).is_some());
    let late = fence.is_none_or(|f| used.is_some_and(|u| u + 1 < f));
    if let Some(user) = mine.asynchronous().filter(|_| late) {
        let title = format!("`{name}` is not fenced (`ttg.nv.fence.mbarrier_init`) before asynchronous or cluster use");
        let error = Error::new(Code::BarrierLife, *at, title).related(user, "it is used here");
        errors.push(error.help("`ttg.nv.fence.mbarrier_init` after this, before the barrier is used"));
    }
}

/// The uses of the barriers of an `alloc`, for rule 48.
struct Uses<'k> {
    kernel: &'k Kernel,
    alloc: Value,
}

impl Uses<'_> {
    fn is_use(&self, op: &Op) -> bool {
        let own = |v: &Value| {
            *v == self.alloc
                || self
                    .kernel
                    .def_op(*v)
                    .is_some_and(|o| o.kind == OpKind::Nv(NvOp::MbarrierAt) && o.args[0] == self.alloc)
        };
        let names = matches!(op.kind, OpKind::Nv(NvOp::MbarrierAt | NvOp::MbarrierInit { .. }));
        !names && op.args.iter().any(own)
    }

    /// The location of the first use in an operation or in its regions.
    fn first_in(&self, id: OpId) -> Option<Loc> {
        let op = self.kernel.op(id);
        if self.is_use(op) {
            return Some(op.loc);
        }
        let mut found = None;
        for region in &op.regions {
            self.kernel.walk_block(*region, &mut |_, inner| {
                if found.is_none() && self.is_use(inner) {
                    found = Some(inner.loc);
                }
            });
        }
        found
    }

    /// The location of a use because of which others than the program's own threads may arrive: bulk copies, or other programs of a
    /// cluster.
    fn asynchronous(&self) -> Option<Loc> {
        let mut found = None;
        let mut cluster = false;
        self.kernel.walk(&mut |_, op| {
            let bulk = matches!(op.kind, OpKind::Nv(NvOp::BulkLoad { .. }));
            cluster |= matches!(op.kind, OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait));
            if found.is_none() && bulk && self.is_use(op) {
                found = Some(op.loc);
            }
        });
        found.or_else(|| self.kernel.def_op(self.alloc).filter(|_| cluster).map(|o| o.loc))
    }
}
