//! A kernel: its signature, its values, operations and blocks.
//!
//! Control flow is structured: an operation with regions owns the blocks inside, and a block ends in exactly one terminator. A value may be
//! used where its definition is visible: later in its block, or in blocks nested there.

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
    /// The type of the value.
    pub ty: Ty,
    /// The user's name for it, for messages, if there is one.
    pub name: Option<String>,
    /// The definition of the value.
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

/// The data of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockData {
    /// Arguments: the induction variable and the carried values of a loop, the operands of a reduction.
    pub args: Vec<Value>,
    /// Operations; the last one is the terminator.
    pub ops: Vec<OpId>,
}

/// The access to a tensor parameter: `&` or `&mut`.
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
    /// `_`, or no declaration: any extent.
    Any,
    /// The first mention of a shape name, which binds the name to the extent.
    Bind(Symbol),
    /// The extent must equal this expression.
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
        /// Whether the parameter is optional: `Option<&Tensor>` or `Option<&mut Tensor>`.
        optional: bool,
        /// The declared extents, one for each axis.
        shape: Vec<DimSpec>,
    },
    /// A scalar, passed by value.
    Scalar(Elem),
}

/// A parameter. In the body, parameter `i` is the kernel's value number `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The user's name.
    pub name: String,
    /// The kind: tensor or scalar.
    pub kind: ParamKind,
}

/// The grid of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GridSpec {
    /// Up to three extents, evaluated at each launch.
    Extents(Vec<HostExpr>),
    /// As many programs as the device can execute concurrently; for distributed loops.
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
    /// How the last iterations of loops are executed if their tiles extend beyond the end of a tensor; `None`: the compiler decides.
    pub tails: Option<Tails>,
    /// What places the operations of pipelined loops in stages; `None`: the compiler decides.
    pub scheduler: Option<Scheduler>,
}

/// How iterations of loops over MMAs are executed whose tiles extend beyond the end of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tails {
    /// They have a loop of their own. In the main loop all tiles are inside the tensor, so that it needs no masks along the loop's axis.
    Split,
    /// All iterations are in one loop, which fills elements beyond the end with zeros by masks.
    ZeroFilled,
}

impl Tails {
    /// All choices.
    pub const ALL: [Tails; 2] = [Tails::Split, Tails::ZeroFilled];

    /// The name in kernels and in the text form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tails::Split => "split",
            Tails::ZeroFilled => "zero_filled",
        }
    }
}

/// What places the operations of pipelined loops in stages, and orders them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// A rule: copies as early as slots allow, the first fragments of an iteration in the one before, all else in the last stage.
    Rule,
    /// Swing modulo scheduling, from the units and latencies of the machine.
    Swing,
}

impl Scheduler {
    /// All choices.
    pub const ALL: [Scheduler; 2] = [Scheduler::Rule, Scheduler::Swing];

    /// The name in kernels and in the text form.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scheduler::Rule => "rule",
            Scheduler::Swing => "swing",
        }
    }
}

impl Signature {
    /// The name with the generic arguments: `gemm::<f16, 128, 256, 64>`.
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
    /// The signature, which a launch reads.
    pub sig: Signature,
    /// Its rings.
    pub pipes: Vec<PipeDecl>,
    /// Its roles, in the order of the regions of `ttg.roles`; empty if all warps execute the same code.
    pub roles: Vec<RoleDecl>,
    /// The layouts and encodings, if its tiles are laid out over the threads of a target.
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

    /// The name of a value in a message: the user's, or the line of the operation that defines it. Numbers of values tell users nothing.
    #[must_use]
    pub fn name_or_line(&self, value: Value) -> String {
        match (&self.value(value).name, self.def_op(value).and_then(|op| op.loc.of_kernel())) {
            (Some(name), _) => format!("`{name}`"),
            (None, Some(line)) => format!("the value of line {line} of the kernel"),
            (None, None) => "a value without a name".to_owned(),
        }
    }

    /// A message in which numbers of values are replaced by what [`name_or_line`](Self::name_or_line) says of them.
    #[must_use]
    pub fn without_numbers(&self, message: &str) -> String {
        let mut pieces = message.split('%');
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let digits = piece.find(|c: char| !c.is_ascii_digit()).unwrap_or(piece.len());
            let (number, rest) = piece.split_at(digits);
            match number.parse::<usize>().ok().filter(|n| *n < self.values.len()) {
                Some(n) => {
                    // The number may be quoted as a name is.
                    let quoted = out.ends_with('`') && rest.starts_with('`');
                    let rest = if quoted { &rest[1..] } else { rest };
                    out.truncate(out.len() - usize::from(quoted));
                    out.push_str(&self.name_or_line(Value::new(n)));
                    out.push_str(rest);
                }
                None => {
                    out.push('%');
                    out.push_str(piece);
                }
            }
        }
        out
    }

    /// The operation that defines a value.
    #[must_use]
    pub fn def_op(&self, value: Value) -> Option<&Op> {
        match self.value(value).def {
            Def::Result(op, _) => Some(self.op(op)),
            Def::Param(_) | Def::BlockArg(..) => None,
        }
    }

    /// The constant that defines a value, if it is one.
    #[must_use]
    pub fn constant(&self, value: Value) -> Option<Const> {
        if let OpKind::Const(c) = self.def_op(value)?.kind { Some(c) } else { None }
    }

    /// The value of an integer constant; `None` for other values.
    #[must_use]
    pub fn int_constant(&self, value: Value) -> Option<i64> {
        match self.constant(value)? {
            Const::Int(_, v) => Some(v),
            Const::Float(..) => None,
        }
    }

    /// The operands of an operation, and of those nested in it.
    pub fn operands_within(&self, id: OpId) -> Vec<Value> {
        let op = self.op(id);
        let mut all = op.args.clone();
        op.regions.iter().for_each(|region| self.walk_block(*region, &mut |_, op| all.extend(&op.args)));
        all
    }

    /// Calls `f` on every operation in program order, on an operation before those in its regions.
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
