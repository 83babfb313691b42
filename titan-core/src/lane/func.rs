//! A function of the lane IR: parameter slots, values, operations and blocks.

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

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// An argument of a block.
    BlockArg(Block, usize),
    /// A result of an operation.
    Result(OpId, usize),
}

/// The data of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueData {
    /// The width of the value.
    pub ty: Ty,
    /// The definition of the value.
    pub def: Def,
}

/// The data of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockData {
    /// The induction variable of a `for`, then the carried values.
    pub args: Vec<Value>,
    /// Operations; the last one is the terminator.
    pub ops: Vec<OpId>,
}

/// An operation, with its operands, results and regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The kind, with its attributes.
    pub kind: OpKind,
    /// The operands, in the order of the contract.
    pub args: Vec<Value>,
    /// The results, in the order of the contract.
    pub results: Vec<Value>,
    /// The body of a loop, the two arms of an `if`, the code of each role.
    pub regions: Vec<Block>,
    /// The location of the user's code that it implements.
    pub loc: Loc,
}

/// A buffer of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its purpose: the user's name of the tile, or the operation.
    pub name: String,
    /// The size in bytes.
    pub bytes: u32,
    /// The offset in the shared memory of the program, in bytes.
    pub offset: u32,
    /// The location of the user's code that needs it.
    pub loc: Loc,
}

/// The code of one thread of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Func {
    /// The name of the kernel with its instance: `gemm::<f16, 128, 256, 64>`.
    pub name: String,
    /// The words of the parameter block, in order.
    pub slots: Vec<Slot>,
    /// The number of threads of a program: warps times lanes.
    pub threads: u32,
    /// The number of lanes of a warp: 32 or 64.
    pub lanes: u32,
    /// The number of programs of a cluster, which are adjacent along axis 0 of the grid; 1 without clusters.
    pub cluster: u32,
    /// The size of the shared memory of a program in bytes.
    pub shared_bytes: u32,
    /// The buffers in shared memory.
    pub buffers: Vec<Buffer>,
    /// The tensor maps that a launch passes in addition to the parameter block.
    pub maps: Vec<MapParam>,
    /// The function that makes the tables of maps, if there are any; each of its programs makes one entry of each table. It has the same
    /// parameters and runs before.
    pub maker: Option<Box<Func>>,
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

    /// The bits of a value that is a constant.
    #[must_use]
    pub fn constant(&self, value: Value) -> Option<u64> {
        if let OpKind::Const(_, bits) = self.def_op(value)?.kind { Some(bits) } else { None }
    }

    /// Calls `f` on every operation in program order, on an operation before those in its regions.
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
