//! Rule 72: programs of a cluster.
//!
//! The programs of a cluster execute the same code. If copies to a ring are for all of them, each program copies its part of the tile to
//! the same slot of all, and the slot is free when the readers of all programs have released it. This is the protocol of one program if
//!
//! * all programs of the cluster execute the same claims in the same order: no loop or branch around a claim depends on a value in which
//!   they may differ ([`crate::analysis::cluster`]);
//! * a copy for all programs is started by all of them, for the same tile: it depends on no such value; and its bytes, those of the whole
//!   tile, are what each program's barrier expects;
//! * no program copies to, or arrives at, the shared memory of a program that has not initialised its barriers, or that has ended: the
//!   cluster barrier is immediately before the roles and immediately after them, and nowhere else;
//! * all roles of all programs agree about the tile of each program, so that what is copied for all and what a program copies for itself
//!   are parts of the same computation (`tiles`);
//! * readers release the slots of such a ring in all programs (`super`).
//!
//! The bytes of round `r` from other programs can arrive before this program expects them, but not before its phase `r − 1` of `full` is
//! complete: the copies were started after the readers of all programs had released round `r − 1`, for which they had waited.
//!
//! Threads may read a slot to which other programs copy. Their reads are fenced from these copies at cluster scope: rule 68 asks for it,
//! since a copy for all programs is one of this program too.
//!
//! Deliberately absent: programs of a cluster that run different code.

use super::{Check, wrong};
use crate::ir::{BinOp, Block, Effect, Kernel, NvOp, Op, OpId, OpKind, TtgOp, Value};
use crate::verify::roles::threads;

impl Check<'_> {
    /// The number of programs of a cluster.
    pub(super) fn cluster(&self) -> u32 {
        self.kernel.laid_out.as_deref().map_or(1, |laid| laid.cluster)
    }

    /// Why a copy of a tile with a mask of programs is not one for all programs of the cluster, each of which copies an equal part; `None`
    /// if it is.
    pub(super) fn not_for_all(&self, op: &Op, multicast: u16) -> Option<String> {
        let kernel = self.kernel;
        let cluster = self.cluster();
        let all = (1u32 << cluster.min(16)) - 1;
        if cluster == 1 {
            return Some("a copy with `multicast` in a program without a cluster".to_owned());
        }
        if u32::from(multicast) != all {
            let title = format!(
                "a copy with `multicast = {multicast}`, but the cluster has {cluster} programs: a copy is for all of them (`multicast = {all}`), or for its own program"
            );
            return Some(title);
        }
        let [source, tile, _] = op.args[..] else { return Some(NO_TILE.to_owned()) };
        let Some(coordinates) = kernel.def_op(source).map(|source| &source.args) else {
            return Some(NO_TILE.to_owned());
        };
        // All programs copy their parts into the same slot, so that the parts must be those of one tile (theorem 11,
        // b).
        if let Some(other) = coordinates.iter().find(|at| self.differing.of(**at)) {
            let (source, other) = (kernel.display_name(source), kernel.display_name(*other));
            let title = format!(
                "a copy of `{source}` for all programs of the cluster, but `{other}` may differ between them: they would copy parts of different tiles"
            );
            return Some(title);
        }
        // Each part must begin where the swizzle repeats, which is every eight rows.
        // A part begins at row i · rows / C. The pattern of a swizzle is that of the address, so that the part has the
        // layout of these rows of the tile only if it begins at a multiple of eight rows.
        let tall = kernel.encoding(tile).filter(|encoding| encoding.extents.len() > 1);
        let rows = tall.and_then(|encoding| encoding.extents.first());
        if rows.is_some_and(|rows| rows.is_multiple_of(8 * cluster)) {
            return None;
        }
        let (tile, least) = (kernel.display_name(tile), 8 * cluster);
        Some(format!(
            "`{tile}` cannot be copied in equal parts by {cluster} programs: its rows are not a multiple of {least}"
        ))
    }

    /// Checks the cluster barriers, and that all programs execute the same claims.
    pub(super) fn clusters(&mut self) {
        let kernel = self.kernel;
        if self.cluster() == 1 {
            return;
        }
        self.rendezvous();
        for (_, block) in threads(kernel) {
            self.same_claims(block);
        }
        self.same_tiles();
        self.apart_outputs();
    }

    /// Checks that each write to a tensor is at a coordinate that distinguishes the programs: the rank plus a multiple of the cluster's
    /// size.
    fn apart_outputs(&mut self) {
        let kernel = self.kernel;
        let size = i64::from(self.cluster());
        let mut wrong = Vec::new();
        kernel.walk(&mut |id, op| {
            let in_bulk = matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. }));
            let args = match op.kind.effect() {
                Effect::Write if in_bulk => {
                    op.args.first().and_then(|source| kernel.def_op(*source)).map(|source| &source.args)
                }
                Effect::Write => Some(&op.args),
                Effect::Atomic | Effect::Print => None,
                Effect::Pure | Effect::Read | Effect::Trap | Effect::Control | Effect::Pipeline => return,
            };
            if !args.is_some_and(|args| args.iter().any(|at| is_of_rank(kernel, *at, size))) {
                wrong.push(id);
            }
        });
        for id in wrong {
            self.error(id, "the programs of a cluster may write the same elements here");
        }
    }

    fn rendezvous(&mut self) {
        let kernel = self.kernel;
        let ops = &kernel.block(kernel.body).ops;
        let nv = |id: &OpId| if let OpKind::Nv(nv) = kernel.op(*id).kind { Some(nv) } else { None };
        let Some(roles) = ops.iter().position(|id| kernel.op(*id).kind == OpKind::Ttg(TtgOp::Roles)) else {
            let first = ops.first().copied();
            first.into_iter().for_each(|id| self.error(id, "only programs with roles have clusters"));
            return;
        };
        // Only the barrier of the program may be between the cluster barrier and the roles.
        let whole = |id: &&OpId| !matches!(nv(id), Some(NvOp::BarrierSync { id: 0, .. }));
        // `arrive` and `wait`, next to the roles: nothing of the roles comes before all programs have initialised their
        // barriers, and no program ends while another one still copies to it (theorem 11, d).
        let last: Vec<OpId> = ops[..roles].iter().rev().filter(whole).take(2).copied().collect();
        let next: Vec<OpId> = ops[roles + 1..].iter().take(2).copied().collect();
        let is = |at: Option<&OpId>, kind: NvOp| at.and_then(nv) == Some(kind);
        let before = is(last.get(1), NvOp::ClusterArrive) && is(last.first(), NvOp::ClusterWait);
        let behind = is(next.first(), NvOp::ClusterArrive) && is(next.get(1), NvOp::ClusterWait);
        for (there, place, title) in [(before, &last, NOT_BEGUN), (behind, &next, ENDED)] {
            if there {
                place.iter().for_each(|id| self.explain(*id));
            } else {
                self.errors.push(wrong(kernel.op(ops[roles]).loc, title).help(RENDEZVOUS));
            }
        }
    }

    /// Checks that no claim depends on a value that may differ between the programs.
    fn same_claims(&mut self, block: Block) {
        let kernel = self.kernel;
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            // Theorem 11, a: the t-th fill of one program belongs to the t-th fill of all others.
            if !op.regions.is_empty() && self.differing.control(op) && op.regions.iter().any(|r| claims(kernel, *r)) {
                self.error(*id, "the programs of a cluster may execute different operations on a ring here");
            }
            for region in &op.regions {
                self.same_claims(*region);
            }
        }
    }
}

const NO_TILE: &str = "a copy with `multicast` that is not of a tile";
const NOT_BEGUN: &str = "the programs of a cluster do not wait for each other immediately before the roles: one may copy to another or arrive there before that has initialised its barriers";
const ENDED: &str = "the programs of a cluster do not wait for each other immediately after the roles: one may end while others still copy to it or arrive there";
const RENDEZVOUS: &str = "`ttg.nv.cluster.arrive` and `ttg.nv.cluster.wait` there";

/// Whether a coordinate is `x · size + rank`, or `(x · size + rank) · k + c` with constants `0 ≤ c < k`.
fn is_of_rank(kernel: &Kernel, at: Value, size: i64) -> bool {
    let two = |value: Value, kind: BinOp| {
        let op = kernel.def_op(value).filter(|op| op.kind == OpKind::Binary(kind))?;
        if let [a, b] = op.args[..] { Some((a, b)) } else { None }
    };
    let place = |value: Value| {
        two(value, BinOp::Add).is_some_and(|(first, rank)| {
            let whole = two(first, BinOp::Mul).is_some_and(|(_, by)| kernel.int_constant(by) == Some(size));
            whole && kernel.def_op(rank).is_some_and(|op| op.kind == OpKind::Nv(NvOp::ClusterRank))
        })
    };
    let parts = |value: Value, plus: i64| {
        two(value, BinOp::Mul)
            .and_then(|(x, by)| Some((x, kernel.int_constant(by)?)))
            .is_some_and(|(x, by)| (0..by).contains(&plus) && place(x))
    };
    let slice = two(at, BinOp::Add).and_then(|(x, plus)| Some((x, kernel.int_constant(plus)?)));
    place(at) || parts(at, 0) || slice.is_some_and(|(x, plus)| parts(x, plus))
}

fn claims(kernel: &Kernel, block: Block) -> bool {
    let mut found = false;
    kernel.walk_block(block, &mut |_, op| found |= matches!(op.kind, OpKind::Ttg(TtgOp::Claim(..))));
    found
}
