//! Rule 12: visibility. With structured control flow, a definition dominates its use if it is earlier in the same or an enclosing
//! block.

use super::Error;
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{Block, Kernel, Value};

/// Violations of rule 12.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut scope = Scope {
        kernel,
        visible: vec![false; kernel.values.len()],
        gone: vec![false; kernel.values.len()],
        errors: Vec::new(),
    };
    for i in 0..kernel.sig.params.len() {
        scope.show(Value::new(i), true);
    }
    scope.block(kernel.body);
    scope.errors
}

struct Scope<'a> {
    kernel: &'a Kernel,
    visible: Vec<bool>,
    /// For each value, whether its block has ended.
    gone: Vec<bool>,
    errors: Vec<Error>,
}

impl Scope<'_> {
    fn show(&mut self, value: Value, visible: bool) {
        if let Some(slot) = self.visible.get_mut(value.index()) {
            *slot = visible;
        }
    }

    fn block(&mut self, block: Block) {
        let kernel = self.kernel;
        let data = kernel.block(block);
        data.args.iter().for_each(|v| self.show(*v, true));
        for id in &data.ops {
            let op = kernel.op(*id);
            for (i, arg) in op.args.iter().enumerate() {
                let seen_before = op.args[..i].contains(arg);
                if !seen_before && !self.visible.get(arg.index()).copied().unwrap_or(false) {
                    let (name, what) = (kernel.display_name(*arg), mnemonic(&op.kind));
                    let ended = self.gone.get(arg.index()).copied().unwrap_or(false);
                    let why = if ended { "after the block that defines it" } else { "before it is defined" };
                    self.errors.push(Error::new(Code::Visibility, op.loc, format!("`{what}` uses `{name}` {why}")));
                }
            }
            op.regions.iter().for_each(|r| self.block(*r));
            op.results.iter().for_each(|v| self.show(*v, true));
        }
        let results = data.ops.iter().flat_map(|id| &kernel.op(*id).results);
        for value in data.args.iter().chain(results) {
            self.show(*value, false);
            if let Some(slot) = self.gone.get_mut(value.index()) {
                *slot = true;
            }
        }
    }
}
