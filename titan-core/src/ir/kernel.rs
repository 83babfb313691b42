//! A kernel: its signature, its values, operations and blocks.
//!
//! Control is structured: an operation with regions owns the blocks inside, and a block ends in exactly one terminator.
//! A value may be used where its definition is visible: later in its block, or in blocks nested there.

use super::host_expr::{HostExpr, HostNames, Symbol};
use super::op::{Op, OpId};
use super::place::{LaidOut, Place};
use super::{Const, Elem, OpKind, Pipe, PipeDecl, RoleDecl, Ty};

crate::entity!(
    /// An SSA value: a parameter, a block argument or a result.
    Value, "%"
);
crate::entity!(
    /// A block of operations.
    Block, "block"
);

/// The data of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueData {
    /// The type.
    pub ty: Ty,
    /// The user's name, for messages, if there is one.
    pub name: Option<String>,
    /// Its definition.
    pub def: Def,
    /// Its layout or encoding, in a laid-out kernel.
    pub place: Place,
}

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// The parameter of this index.
    Param(usize),
    /// An argument of a block.
    BlockArg(Block, usize),
    /// A result of an operation.
    Result(OpId, usize),
}

/// A block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockData {
    /// Arguments: the induction variable and the carried values of a loop, the operands of a reduction.
    pub args: Vec<Value>,
    /// Operations; the last one is the terminator.
    pub ops: Vec<OpId>,
}

/// Whether a tensor parameter is `&` or `&mut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    In,
    /// Written, and perhaps read.
    Mut,
}

/// The declaration of one extent of a tensor parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimSpec {
    /// `_`, or no declaration.
    Any,
    /// The first mention of a shape name: the extent is its value.
    Bind(Symbol),
    /// The extent equals this expression.
    Equals(HostExpr),
}

/// The kind of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// A tensor.
    Tensor {
        /// The element type.
        elem: Elem,
        /// `&` or `&mut`.
        access: Access,
        /// `Option<&Tensor>`.
        optional: bool,
        /// One entry per axis.
        shape: Vec<DimSpec>,
    },
    /// A scalar, by value.
    Scalar(Elem),
}

/// A parameter. The value that stands for parameter `i` in the body is the kernel's value number `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The user's name.
    pub name: String,
    /// Its kind.
    pub kind: ParamKind,
}

/// The grid of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GridSpec {
    /// Up to three extents, evaluated at the launch.
    Extents(Vec<HostExpr>),
    /// As many programs as the device runs at once: for distributed loops.
    Persistent,
}

/// A generic argument of the instance, for display: `T = f16` or `BM = 128`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceArg {
    /// The generic parameter.
    pub name: String,
    /// Its value as the user wrote it.
    pub value: String,
}

/// The signature: everything that a launch needs, without the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The user's name.
    pub name: String,
    /// The generic arguments.
    pub instance: Vec<InstanceArg>,
    /// Names of the shape symbols.
    pub symbols: Vec<String>,
    /// Parameters, in the order of the launch.
    pub params: Vec<Param>,
    /// The grid.
    pub grid: GridSpec,
    /// Whether the grid may leave parts of outputs unwritten: `grid(unchecked ..)`.
    pub partial: bool,
    /// Conditions on the arguments.
    pub requires: Vec<HostExpr>,
    /// The last iterations of loops, whose tiles extend beyond the end of a tensor; `None`: the compiler decides.
    pub tails: Option<Tails>,
}

/// What is done about iterations of loops over MMAs whose tiles are not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tails {
    /// They have a loop of their own. In the other one tiles are whole, and need no masks along the loop's axis.
    Split,
    /// All iterations are in one loop, which masks what is beyond the end.
    ZeroFilled,
}

impl Tails {
    /// Every choice.
    pub const ALL: [Tails; 2] = [Tails::Split, Tails::ZeroFilled];

    /// The word for it, in kernels and in the text form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tails::Split => "split",
            Tails::ZeroFilled => "zero_filled",
        }
    }
}

impl Signature {
    /// The name with the instance: `gemm::<f16, 128, 256, 64>`.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.instance.is_empty() {
            return self.name.clone();
        }
        let args: Vec<&str> = self.instance.iter().map(|a| a.value.as_str()).collect();
        format!("{}::<{}>", self.name, args.join(", "))
    }
}

impl HostNames for Signature {
    fn symbol(&self, symbol: Symbol) -> String {
        self.symbols.get(symbol.index()).cloned().unwrap_or_else(|| symbol.to_string())
    }

    fn param(&self, param: usize) -> String {
        self.params.get(param).map_or_else(|| format!("?{param}"), |p| p.name.clone())
    }
}

/// A kernel in tile IR, for one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The signature.
    pub sig: Signature,
    /// Its rings.
    pub pipes: Vec<PipeDecl>,
    /// Its roles, in the order of the regions of `ttg.roles`; none if all warps do everything.
    pub roles: Vec<RoleDecl>,
    /// Layouts and encodings, once its tiles are laid out over the threads of a target.
    pub laid_out: Option<Box<LaidOut>>,
    /// The outermost block.
    pub body: Block,
    /// Arena of values; the parameters come first.
    pub values: Vec<ValueData>,
    /// Arena of operations.
    pub ops: Vec<Op>,
    /// Arena of blocks.
    pub blocks: Vec<BlockData>,
}

impl Kernel {
    /// The value of a parameter.
    #[must_use]
    pub fn param(&self, index: usize) -> Value {
        Value::new(index)
    }

    /// The data of a value.
    #[must_use]
    pub fn value(&self, value: Value) -> &ValueData {
        &self.values[value.index()]
    }

    /// The type of a value.
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

    /// A ring; `None` if there is no such ring.
    #[must_use]
    pub fn pipe(&self, pipe: Pipe) -> Option<&PipeDecl> {
        self.pipes.get(pipe.index())
    }

    /// The user's name of a ring, or its number.
    #[must_use]
    pub fn pipe_name(&self, pipe: Pipe) -> String {
        self.pipe(pipe).and_then(|p| p.name.clone()).unwrap_or_else(|| pipe.to_string())
    }

    /// The user's name of a value, or its number.
    #[must_use]
    pub fn display_name(&self, value: Value) -> String {
        self.value(value).name.clone().unwrap_or_else(|| value.to_string())
    }

    /// The operation that defines a value.
    #[must_use]
    pub fn def_op(&self, value: Value) -> Option<&Op> {
        match self.value(value).def {
            Def::Result(op, _) => Some(self.op(op)),
            Def::Param(_) | Def::BlockArg(..) => None,
        }
    }

    /// The constant a value is, if it is one.
    #[must_use]
    pub fn constant(&self, value: Value) -> Option<Const> {
        if let OpKind::Const(c) = self.def_op(value)?.kind { Some(c) } else { None }
    }

    /// The integer a value is, if it is an integer constant.
    #[must_use]
    pub fn int_constant(&self, value: Value) -> Option<i64> {
        match self.constant(value)? {
            Const::Int(_, v) => Some(v),
            Const::Float(..) => None,
        }
    }

    /// Calls `f` on every operation, outer before inner, in program order.
    pub fn walk(&self, f: &mut dyn FnMut(OpId, &Op)) {
        self.walk_block(self.body, f);
    }

    /// Calls `f` on every operation of a block and of nested blocks.
    pub fn walk_block(&self, block: Block, f: &mut dyn FnMut(OpId, &Op)) {
        for id in &self.block(block).ops {
            let op = self.op(*id);
            f(*id, op);
            for region in &op.regions {
                self.walk_block(*region, f);
            }
        }
    }
}
