//! Dead code: operations without effect whose results nothing uses.
//!
//! Operations that lanes do together may go like others when no lane uses what they give: all lanes lose them at once,
//! because the program is one for all lanes. Carried values of loops that only feed themselves stay; a back end's own copies
//! are cheaper than a second analysis.

use super::func::{Block, Func, OpId};

/// Drops dead operations. Values and operations keep their numbers.
pub fn eliminate_dead(func: &mut Func) {
    let mut used = vec![false; func.values.len()];
    let mut keep = vec![false; func.ops.len()];
    mark(func, func.body, &mut used, &mut keep);
    for block in &mut func.blocks {
        block.ops.retain(|op| keep[op.index()]);
    }
}

/// Uses stand after definitions, or in blocks inside of later operations: one pass from the end sees all uses first. Carried
/// values are the exception, and their sources are operands of terminators and loops, which are always kept.
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
