//! Dead-code elimination: removes operations without effect whose results are not used.
//!
//! Convergent operations are removed like others if no lane uses their results: they disappear for all lanes at once, because all lanes
//! execute the same code. Carried values of loops that are used only to compute themselves stay: removing them would need a second
//! analysis, and they cost at most copies of registers.

use super::func::{Block, Func, OpId};

/// Removes dead operations. Values and operations keep their numbers.
pub fn eliminate_dead(func: &mut Func) {
    let mut used = vec![false; func.values.len()];
    let mut keep = vec![false; func.ops.len()];
    mark(func, func.body, &mut used, &mut keep);
    for block in &mut func.blocks {
        block.ops.retain(|op| keep[op.index()]);
    }
}

/// Uses come after definitions, or in blocks nested in later operations, so that one pass from the end sees all uses of a value before its
/// definition. Carried values are the exception; their sources are operands of terminators and loops, which are always kept.
fn mark(func: &Func, block: Block, used: &mut [bool], keep: &mut [bool]) {
    let ops: Vec<OpId> = func.block(block).ops.clone();
    for id in ops.into_iter().rev() {
        let op = func.op(id);
        if op.kind.is_removable() && !op.results.iter().any(|r| used[r.index()]) {
            continue;
        }
        keep[id.index()] = true;
        for region in op.regions.iter().rev() {
            mark(func, *region, used, keep);
        }
        for arg in &op.args {
            used[arg.index()] = true;
        }
    }
}
