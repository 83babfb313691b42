//! Estimates the resources of a multiprocessor that a program uses, from layouts: shared memory, and registers per thread.
//!
//! Shared memory is exact: regions are allocated as they are later. Registers are those of tiles that are live at the same time, plus
//! [`OTHER_REGISTERS`] for everything else. The assembler shares and moves values, so this is no bound.
//!
//! Deliberately absent: registers of individual addresses and scalars.

use super::table::OTHER_REGISTERS;
use crate::collections::SortedSet;
use crate::ir::{Block, Kernel, LocalOp, NvGroup, NvOp, OpId, OpKind, Value};
use crate::target::Target;

/// The resources that a program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The shared memory in bytes.
    pub shared_bytes: u32,
    /// The number of 32-bit registers per thread.
    pub registers: u32,
    /// The number of warps.
    pub warps: u32,
    /// Whether it copies tiles to shared memory in bulk.
    pub copies_in_bulk: bool,
}

impl Estimate {
    /// The estimate for a barrier program whose regions are allocated in `shared_bytes` bytes, and whose threads hold tiles in so many
    /// registers ([`live`]).
    pub(super) fn of(program: &Kernel, shared_bytes: u32, tiles: u32) -> Estimate {
        let warps = program.laid_out.as_deref().map_or(1, |laid| laid.warps);
        let copies_in_bulk = program.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(NvOp::BulkLoad { .. })));
        Estimate { shared_bytes, registers: tiles.saturating_add(OTHER_REGISTERS), warps, copies_in_bulk }
    }

    /// The number of programs that a multiprocessor can run concurrently, if it has no more shared memory than one program may use.
    #[must_use]
    pub fn programs(&self, target: &Target) -> u32 {
        let of = |all: u32, each: u32| all.checked_div(each).unwrap_or(u32::MAX);
        // For each program, the system reserves some memory in addition to the program's own.
        let shared = of(target.shared_bytes + target.shared_reserved, self.shared_bytes + target.shared_reserved);
        let registers = of(target.registers_per_sm, self.registers.min(target.registers) * self.warps * target.lanes);
        shared.min(registers).min(of(target.warps_per_sm, self.warps))
    }
}

/// Whether an operation of a barrier program adds a product to an accumulator.
pub(super) const fn is_mma(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Nv(NvOp::Wgmma) | OpKind::Local(LocalOp::Mma) | OpKind::Mma)
}

/// Whether the assembler moves no computation across an operation of a barrier program, so that what is live there is in registers or in
/// local memory: MMAs, waits for them, and reductions across lanes.
pub(super) const fn is_fixed(kind: &OpKind) -> bool {
    let waits = matches!(kind, OpKind::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, .. }));
    is_mma(kind) || waits || matches!(kind, OpKind::Local(LocalOp::Fold { .. }))
}

/// The maximum number of registers of the tiles that are live at the same time in a barrier program. Calls `at_op` for each operation, with
/// the tiles that are live after it, its results included.
pub(super) fn live(program: &Kernel, at_op: &mut dyn FnMut(OpId, &SortedSet<Value>)) -> u32 {
    let mut walk = Walk { kernel: program, most: 0, at_op };
    walk.block(program.body, SortedSet::new());
    walk.most
}

/// The number of 32-bit registers per thread of a value; 0 if it is no tile in registers.
pub(super) fn registers(program: &Kernel, value: Value) -> u32 {
    let ty = program.ty(value);
    let layout = program.layout(value).filter(|_| ty.is_in_registers());
    let elements = layout.map_or(0, |layout| u32::try_from(layout.registers()).unwrap_or(u32::MAX));
    elements.saturating_mul(ty.elem().bits()).div_ceil(32)
}

/// A backward liveness analysis of tiles.
struct Walk<'k> {
    kernel: &'k Kernel,
    most: u32,
    at_op: &'k mut dyn FnMut(OpId, &SortedSet<Value>),
}

impl Walk<'_> {
    fn registers(&self, value: Value) -> u32 {
        registers(self.kernel, value)
    }

    fn keep(&mut self, needed: &SortedSet<Value>) {
        self.most = needed.iter().fold(0, |sum: u32, v| sum.saturating_add(self.registers(*v))).max(self.most);
    }

    /// Processes a block after which the tiles `needed` are live. Returns the tiles that are live before it.
    fn block(&mut self, block: Block, mut needed: SortedSet<Value>) -> SortedSet<Value> {
        for id in self.kernel.block(block).ops.iter().rev() {
            let op = self.kernel.op(*id);
            needed.extend(op.results.iter().filter(|v| self.registers(**v) > 0));
            self.keep(&needed);
            (self.at_op)(*id, &needed);
            needed.retain(|v| !op.results.contains(v));
            let mut inside = SortedSet::new();
            for region in &op.regions {
                let mut behind = needed.clone();
                if op.kind.is_loop() {
                    // A value from outside that an iteration uses is live throughout the loop, since the next iteration uses it too.
                    self.kernel.walk_block(*region, &mut |_, op| {
                        behind.extend(op.args.iter().filter(|v| self.registers(**v) > 0));
                    });
                    let mut made: SortedSet<Value> = self.kernel.block(*region).args.iter().copied().collect();
                    self.kernel.walk_block(*region, &mut |_, op| {
                        made.extend(&op.results);
                        made.extend(op.regions.iter().flat_map(|r| &self.kernel.block(*r).args));
                    });
                    behind.retain(|v| !made.contains(v));
                }
                inside.extend(self.block(*region, behind));
            }
            needed.extend(inside);
            needed.extend(op.args.iter().filter(|v| self.registers(**v) > 0));
            self.keep(&needed);
        }
        needed.retain(|v| !self.kernel.block(block).args.contains(v));
        needed
    }
}
