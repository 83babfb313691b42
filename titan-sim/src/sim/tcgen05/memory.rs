//! The columns of tensor memory and the bytes of shared memory that an operation accesses.
//!
//! An operation begins with the first column of its operand, and accesses as many as its attributes say (`titan_core::ir`,
//! `tensor_layout`); copies and shifts, which state no extents, access all columns that were allocated together.
//!
//! Deliberately absent: lanes. Two operations on the same columns are taken to access the same lanes.

use super::allocate::Columns;
use super::effect::Accessed;
use crate::sim::access::shared;
use crate::sim::finding::{Found, Kind};
use crate::sim::machine::Machine;
use crate::sim::value::Val;
use crate::sim::work::{Res, Span, Touch};
use titan_core::ir::op_table::mnemonic;
use titan_core::ir::{BarrierTy, Op, TENSOR_LANES, Tcgen05Op, Ty};

/// The bytes of a column, over all lanes: observers see tensor memory column by column.
pub(in crate::sim) const COLUMN: u64 = 4 * TENSOR_LANES as u64;

/// An access to columns.
pub(super) const fn touch(cta: usize, lo: u32, hi: u32, write: bool) -> Touch {
    Touch { span: Span::Columns { cta, lo, hi }, write, strong: false }
}

impl Machine<'_> {
    /// Columns that an operand names, which must be allocated.
    pub(super) fn columns(&self, agent: usize, op: &Op, i: usize) -> Res<Columns> {
        let Val::Columns(columns) = self.arg(agent, op, i) else {
            return Err(Found::not_modelled("columns of tensor memory that are not known"));
        };
        let live = self.ctas.get(self.cta(agent)).is_some_and(|c| c.tensor.is_live(columns));
        let name = || op.args.get(i).map(|v| self.kernel().display_name(*v)).unwrap_or_default();
        if live {
            return Ok(columns);
        }
        let message = format!("`{}` uses the columns `{}`, which were freed", mnemonic(&op.kind), name());
        Err(Found::new(Kind::TensorMemory, message))
    }

    /// The accesses of an asynchronous operation, first reads and then writes.
    pub(super) fn tensor_accesses(&self, agent: usize, op: &Op, what: &Tcgen05Op) -> Res<(Vec<Touch>, Accessed)> {
        let mut programs = vec![self.cta(agent)];
        if what.cta_group() == Some(2) {
            programs.push(self.peer(agent)?);
        }
        let mut accessed = Accessed { op: mnemonic(&op.kind), ..Accessed::default() };
        for (i, operand) in op.args.iter().enumerate() {
            let ty = self.kernel().ty(*operand);
            if ty == Ty::Barrier(BarrierTy::TensorMemory) {
                let columns = self.columns(agent, op, i)?;
                let n = what.columns(i).unwrap_or(columns.n);
                self.check_extent((u64::from(n), u64::from(columns.n)), op, i, "columns")?;
                let all = programs.iter().map(|cta| (*cta, columns.first, columns.first + n));
                let (reads, writes) = access(what, i);
                accessed.reads.extend(all.clone().filter(|_| reads));
                accessed.writes.extend(all.filter(|_| writes));
            } else if ty == Ty::Barrier(BarrierTy::Region) {
                let (lo, hi) = self.bytes(agent, op, i)?;
                let n = what.shared_bytes(i).map_or(hi - lo, u64::from);
                self.check_extent((n, hi - lo), op, i, "bytes")?;
                accessed.regions.extend(programs.iter().map(|cta| (*cta, lo, lo + n)));
            }
        }
        let regions = accessed.regions.iter().map(|(cta, lo, hi)| shared(*cta, *lo, *hi, false));
        // A column that is read and written is touched once.
        let reads = accessed.reads.iter().filter(|read| !accessed.writes.contains(read));
        let reads = reads.map(|(cta, lo, hi)| touch(*cta, *lo, *hi, false));
        let writes = accessed.writes.iter().map(|(cta, lo, hi)| touch(*cta, *lo, *hi, true));
        let touches = regions.chain(reads).chain(writes).collect();
        Ok((touches, accessed))
    }

    /// Checks that an operand is as large as what is accessed.
    fn check_extent(&self, (used, has): (u64, u64), op: &Op, i: usize, unit: &str) -> Res<()> {
        if used <= has {
            return Ok(());
        }
        let name = op.args.get(i).map(|v| self.kernel().display_name(*v)).unwrap_or_default();
        let message = format!("`{}` accesses {used} {unit} of `{name}`, which has {has}", mnemonic(&op.kind));
        Err(Found::new(Kind::Bounds, message))
    }
}

/// Whether an operation reads the value of an operand, and whether it writes it. The accumulator of an MMA may be added to or overwritten;
/// it is read for certain only if it is scaled first.
const fn access(what: &Tcgen05Op, operand: usize) -> (bool, bool) {
    match (what, operand) {
        (Tcgen05Op::Mma(mma), 0) => (mma.scaled_input, true),
        (Tcgen05Op::Shift { .. }, _) => (true, true),
        (Tcgen05Op::Store { .. } | Tcgen05Op::Copy { .. }, _) => (false, true),
        (Tcgen05Op::Mma(_) | Tcgen05Op::Load { .. }, _) => (true, false),
        (
            Tcgen05Op::Alloc { .. }
            | Tcgen05Op::Dealloc { .. }
            | Tcgen05Op::Relinquish { .. }
            | Tcgen05Op::Commit { .. }
            | Tcgen05Op::WaitLoad
            | Tcgen05Op::WaitStore
            | Tcgen05Op::FenceBefore
            | Tcgen05Op::FenceAfter,
            _,
        ) => (false, false),
    }
}
