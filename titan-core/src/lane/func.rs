//! A function of the lane IR: its parameter slots, values, operations and blocks.

use super::op::{OpKind, Ty};
use crate::ir::Loc;
use crate::launch::abi::{MapParam, Slot};

crate::entity!(
    /// An SSA value of one thread.
    Value, "%"
);
crate::entity!(
    /// A block of operations.
    Block, "block"
);
crate::entity!(
    /// An operation.
    OpId, "op"
);

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// An argument of a block.
    BlockArg(Block, usize),
    /// A result of an operation.
    Result(OpId, usize),
}

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueData {
    /// Its width.
    pub ty: Ty,
    /// Where it comes from.
    pub def: Def,
}

/// A block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockData {
    /// The induction variable of a `for`, then the carried values.
    pub args: Vec<Value>,
    /// Operations; the last one is the terminator.
    pub ops: Vec<OpId>,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Operands.
    pub args: Vec<Value>,
    /// Results.
    pub results: Vec<Value>,
    /// The body of a loop, the two arms of an `if`, the code of each role.
    pub regions: Vec<Block>,
    /// Where the user wrote what it is part of.
    pub loc: Loc,
}

/// A buffer of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// What it is for: the user's name of the tile, or the operation.
    pub name: String,
    /// Its size.
    pub bytes: u32,
    /// Where it begins.
    pub offset: u32,
    /// What the user wrote that needs it.
    pub loc: Loc,
}

/// A kernel for one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Func {
    /// The kernel with its instance: `gemm::<f16, 128, 256, 64>`.
    pub name: String,
    /// The words of the parameter block, in order.
    pub slots: Vec<Slot>,
    /// Threads of a program: warps times lanes.
    pub threads: u32,
    /// Lanes of a warp: 32 or 64.
    pub lanes: u32,
    /// Programs of a cluster, neighbours along axis 0 of the grid; 1 without clusters.
    pub cluster: u32,
    /// Shared memory of a program, in bytes.
    pub shared_bytes: u32,
    /// The parts of the shared memory.
    pub buffers: Vec<Buffer>,
    /// The tensor maps that a launch passes besides the parameter block.
    pub maps: Vec<MapParam>,
    /// The outermost block.
    pub body: Block,
    /// Arena of values.
    pub values: Vec<ValueData>,
    /// Arena of operations.
    pub ops: Vec<Op>,
    /// Arena of blocks.
    pub blocks: Vec<BlockData>,
}

impl Func {
    /// The width of a value.
    #[must_use]
    pub fn ty(&self, value: Value) -> Ty {
        self.values[value.index()].ty
    }

    /// An operation.
    #[must_use]
    pub fn op(&self, op: OpId) -> &Op {
        &self.ops[op.index()]
    }

    /// A block.
    #[must_use]
    pub fn block(&self, block: Block) -> &BlockData {
        &self.blocks[block.index()]
    }

    /// The operation that defines a value.
    #[must_use]
    pub fn def_op(&self, value: Value) -> Option<&Op> {
        match self.values[value.index()].def {
            Def::Result(op, _) => Some(self.op(op)),
            Def::BlockArg(..) => None,
        }
    }

    /// The bits of a constant.
    #[must_use]
    pub fn constant(&self, value: Value) -> Option<u64> {
        if let OpKind::Const(_, bits) = self.def_op(value)?.kind { Some(bits) } else { None }
    }

    /// Calls `f` on every operation, outer before inner, in program order.
    pub fn walk(&self, f: &mut dyn FnMut(OpId, &Op)) {
        self.walk_block(self.body, f);
    }

    fn walk_block(&self, block: Block, f: &mut dyn FnMut(OpId, &Op)) {
        for id in &self.block(block).ops {
            let op = self.op(*id);
            f(*id, op);
            for region in &op.regions {
                self.walk_block(*region, f);
            }
        }
    }
}
