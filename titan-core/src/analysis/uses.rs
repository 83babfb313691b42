//! The nesting of operations, the users of values, and the operations that every program executes for all data.

use crate::ir::{Block, ForKind, Kernel, OpId, OpKind, Value};

/// The parents and users of all operations and values.
#[derive(Clone, Debug)]
pub struct Tree {
    block_of: Vec<Option<Block>>,
    owner: Vec<Option<OpId>>,
    users: Vec<Vec<OpId>>,
}

impl Tree {
    /// The tree of a kernel.
    #[must_use]
    pub fn new(kernel: &Kernel) -> Tree {
        let mut tree = Tree {
            block_of: vec![None; kernel.ops.len()],
            owner: vec![None; kernel.blocks.len()],
            users: vec![Vec::new(); kernel.values.len()],
        };
        for (b, block) in kernel.blocks.iter().enumerate() {
            block.ops.iter().for_each(|op| set(&mut tree.block_of, op.index(), Block::new(b)));
        }
        for (i, op) in kernel.ops.iter().enumerate() {
            let id = OpId::new(i);
            op.regions.iter().for_each(|r| set(&mut tree.owner, r.index(), id));
            for arg in &op.args {
                if let Some(users) = tree.users.get_mut(arg.index()) {
                    users.push(id);
                }
            }
        }
        tree
    }

    /// The block that contains an operation.
    #[must_use]
    pub fn block_of(&self, op: OpId) -> Option<Block> {
        self.block_of.get(op.index()).copied().flatten()
    }

    /// The operation whose region a block is; `None` for the outermost block.
    #[must_use]
    pub fn owner(&self, block: Block) -> Option<OpId> {
        self.owner.get(block.index()).copied().flatten()
    }

    /// The operation whose region contains an operation.
    #[must_use]
    pub fn parent(&self, op: OpId) -> Option<OpId> {
        self.owner(self.block_of(op)?)
    }

    /// The operations whose regions contain an operation, the innermost first.
    pub fn around(&self, op: OpId) -> impl Iterator<Item = OpId> + '_ {
        std::iter::successors(self.parent(op), |o| self.parent(*o))
    }

    /// The operations that use a value, once for each operand.
    #[must_use]
    pub fn users(&self, value: Value) -> &[OpId] {
        self.users.get(value.index()).map_or(&[], Vec::as_slice)
    }

    /// Whether every program executes the operation, and inside of a distributed loop some program executes it for each iteration: it is
    /// nested only in distributed loops without early exits, and no early exit comes before it.
    ///
    /// Traps and endless loops before it are ignored: with them, the launch is an error.
    #[must_use]
    pub fn always_runs(&self, kernel: &Kernel, op: OpId) -> bool {
        let mut at = op;
        loop {
            let Some(block) = self.block_of(at) else { return false };
            let before = kernel.block(block).ops.iter().take_while(|o| **o != at);
            if before.into_iter().any(|o| may_leave(kernel, *o, 0)) {
                return false;
            }
            let Some(parent) = self.owner(block) else { return true };
            let whole = kernel.op(parent).kind == OpKind::For(ForKind::Distributed) && !may_break(kernel, parent);
            if !whole {
                return false;
            }
            at = parent;
        }
    }
}

fn set<T>(table: &mut [Option<T>], index: usize, value: T) {
    if let Some(slot) = table.get_mut(index) {
        *slot = Some(value);
    }
}

/// Whether executing `op` may skip the operations after it in its block: by a nested `return`, or a `break` or `continue` to a loop
/// around `op`. `depth` counts the loops between `op`'s block and the current one.
fn may_leave(kernel: &Kernel, op: OpId, depth: u32) -> bool {
    let op = kernel.op(op);
    if let OpKind::Break(n) | OpKind::Continue(n) = op.kind {
        return n >= depth;
    }
    let inner = depth.saturating_add(op.kind.is_loop().into());
    op.kind == OpKind::Return
        || op.regions.iter().any(|r| kernel.block(*r).ops.iter().any(|o| may_leave(kernel, *o, inner)))
}

/// Whether an iteration may end the whole loop: by a nested `return`, by a `break` of this loop or of a loop around it, or by a `continue`
/// of a loop around it.
#[must_use]
pub fn may_break(kernel: &Kernel, looped: OpId) -> bool {
    fn inside(kernel: &Kernel, op: OpId, depth: u32) -> bool {
        let op = kernel.op(op);
        if let OpKind::Break(n) = op.kind {
            return n >= depth;
        }
        if let OpKind::Continue(n) = op.kind {
            return n > depth;
        }
        let inner = depth.saturating_add(op.kind.is_loop().into());
        op.kind == OpKind::Return
            || op.regions.iter().any(|r| kernel.block(*r).ops.iter().any(|o| inside(kernel, *o, inner)))
    }
    kernel.op(looped).regions.iter().any(|r| kernel.block(*r).ops.iter().any(|o| inside(kernel, *o, 0)))
}
