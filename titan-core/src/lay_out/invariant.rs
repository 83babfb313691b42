//! Operands in registers of MMAs of warpgroups that are the same in all iterations of a loop: their parts stand in front of the loop.
//!
//! ```text
//! %p = cast %s : tile<128x64xf16, 2>                      %p = cast %s : tile<128x64xf16, 2>
//! %y = for .. carry(%x = %acc) {                          %0 = ttg.local.slice<1, 16> %p, %zero : tile<128x16xf16, 3>
//!     %0 = ttg.local.slice<1, 16> %p, %zero       ─▶      %y = for .. carry(%x = %acc) {
//!     %1 = ttg.nv.wgmma.mma_async %0, %b, %x                  %1 = ttg.nv.wgmma.mma_async %0, %b, %x
//! ```
//!
//! An MMA in flight reads the registers of its operand, and a part of a tile may be in registers of its own, which are written where the part
//! is taken. In the loop, the next iteration would write them while the MMA of this one reads them, so that each MMA would have to be waited for.
//!
//! Deliberately absent: parts that are taken in branches; operands that loops compute.

use crate::analysis::same_registers::takes_part;
use crate::collections::SortedSet;
use crate::ir::{Block, Def, Kernel, NvOp, OpId, OpKind, Ty, Value};

/// Moves them.
pub(super) fn in_front(mut kernel: Kernel) -> Kernel {
    let parts = parts(&kernel);
    if parts.is_empty() {
        return kernel;
    }
    let body = kernel.body;
    let any = from_block(&mut kernel, &parts, body);
    // Operations have new places: they are numbered in the order of the program again.
    if any { kernel.canonical() } else { kernel }
}

/// The operations that only take and arrange parts of the tiles of which MMAs read their operands in registers.
fn parts(kernel: &Kernel) -> SortedSet<OpId> {
    let of_mma = |op: &&crate::ir::Op| op.kind == OpKind::Nv(NvOp::Wgmma);
    let mut open: Vec<Value> = kernel.ops.iter().filter(of_mma).filter_map(|op| op.args.first().copied()).collect();
    let mut found = SortedSet::new();
    // This ends: an operation is added once, and only then what it takes is looked at.
    while let Some(value) = open.pop() {
        let (Ty::Tile(..), Def::Result(id, _)) = (kernel.ty(value), kernel.value(value).def) else { continue };
        if takes_part(&kernel.op(id).kind) && found.insert(id) {
            open.extend(&kernel.op(id).args);
        }
    }
    found
}

/// Moves what is invariant out of the loops of a block; returns whether there was anything. Inner loops are first, so that what comes out of one may
/// leave the outer one as well.
fn from_block(kernel: &mut Kernel, parts: &SortedSet<OpId>, block: Block) -> bool {
    let mut any = false;
    for id in kernel.block(block).ops.clone() {
        for region in kernel.op(id).regions.clone() {
            any |= from_block(kernel, parts, region);
        }
        let [body] = kernel.op(id).regions[..] else { continue };
        let front = if kernel.op(id).kind.is_loop() { invariant(kernel, parts, body) } else { SortedSet::new() };
        if front.is_empty() {
            continue;
        }
        any = true;
        let ops = &mut kernel.blocks[body.index()].ops;
        let (front, rest): (Vec<OpId>, Vec<OpId>) = ops.iter().partition(|id| front.contains(id));
        *ops = rest;
        let ops = &mut kernel.blocks[block.index()].ops;
        let place = ops.iter().position(|other| *other == id).unwrap_or(ops.len());
        ops.splice(place..place, front);
    }
    any
}

/// The parts that a loop's body takes of what is defined outside of it, with the constants that say which parts they are.
fn invariant(kernel: &Kernel, parts: &SortedSet<OpId>, body: Block) -> SortedSet<OpId> {
    let (ops, mut found) = (&kernel.block(body).ops, SortedSet::new());
    for id in ops.iter().filter(|id| parts.contains(id)) {
        let mut with = vec![*id];
        let is_invariant = kernel.op(*id).args.iter().all(|arg| match kernel.value(*arg).def {
            Def::Param(_) => true,
            Def::BlockArg(of, _) => of != body,
            // Operands are defined in this block or in one around it, and what is in this block stands before its uses.
            Def::Result(by, _) if !ops.contains(&by) || found.contains(&by) => true,
            Def::Result(by, _) => {
                with.push(by);
                matches!(kernel.op(by).kind, OpKind::Const(_))
            }
        });
        if is_invariant {
            found.extend(with);
        }
    }
    found
}
