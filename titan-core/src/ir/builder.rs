//! The builder of IR. Operations are typed as they are added, and scalar integer arithmetic on constants is folded.
//!
//! The builder keeps a stack of open blocks. `begin_*` opens a region, and `end_*` closes it and returns the results. Properties of the
//! whole kernel (balance of regions, visibility) are checked by the verifier.

use super::Const;
use super::fold;
use super::host_expr::{HostExpr, Symbol};
use super::infer::{TypeError, infer};
use super::kernel::{
    Block, BlockData, Def, DimSpec, GridSpec, InstanceArg, Kernel, Param, ParamKind, Scheduler, Signature, Tails,
    Value, ValueData,
};
use super::op::{ForKind, Loc, Op, OpId, OpKind};
use super::{Access, Elem, Encoding, LaidOut, Layout, LayoutId, Pipe, PipeDecl, Place, RoleDecl, TtgOp, Ty};

/// Builds a kernel.
#[derive(Debug)]
pub struct Builder {
    kernel: Kernel,
    open: Vec<Block>,
    loc: Loc,
}

/// A loop whose region is open.
#[derive(Debug)]
pub struct OpenLoop {
    kind: OpKind,
    bounds: Vec<Value>,
    body: Block,
    loc: Loc,
    /// The induction variable of a `for`.
    pub index: Option<Value>,
    /// The carried values inside the body.
    pub carried: Vec<Value>,
}

/// An `if` of which a region is open.
#[derive(Debug)]
pub struct OpenIf {
    cond: Value,
    then: Block,
    other: Option<Block>,
    loc: Loc,
}

impl Builder {
    /// An empty kernel.
    #[must_use]
    pub fn new(name: &str, instance: Vec<InstanceArg>) -> Self {
        let body = Block::new(0);
        let sig = Signature {
            name: name.to_owned(),
            instance,
            symbols: Vec::new(),
            params: Vec::new(),
            grid: GridSpec::Extents(Vec::new()),
            partial: false,
            tails: None,
            scheduler: None,
            requires: Vec::new(),
        };
        let kernel = Kernel {
            sig,
            pipes: Vec::new(),
            roles: Vec::new(),
            laid_out: None,
            body,
            values: Vec::new(),
            ops: Vec::new(),
            blocks: vec![BlockData::default()],
        };
        Builder { kernel, open: vec![body], loc: Loc::default() }
    }

    /// An empty kernel with the signature, rings and roles of another kernel.
    #[must_use]
    pub fn like(kernel: &Kernel) -> Self {
        let mut builder = Builder::new(&kernel.sig.name, kernel.sig.instance.clone());
        builder.kernel.sig = kernel.sig.clone();
        builder.kernel.pipes.clone_from(&kernel.pipes);
        builder.kernel.roles.clone_from(&kernel.roles);
        for index in 0..kernel.sig.params.len() {
            let data = kernel.value(kernel.param(index));
            builder.new_value(data.ty, data.name.as_deref(), Def::Param(index));
        }
        builder
    }

    /// Makes the kernel a laid-out one: sets its additional data.
    pub fn lay_out(&mut self, plan: LaidOut) {
        self.kernel.laid_out = Some(Box::new(plan));
    }

    /// Sets the register layout of a tile. No effect unless the kernel is laid out.
    pub fn put(&mut self, value: Value, layout: &Layout) {
        if let Some(plan) = &mut self.kernel.laid_out {
            self.kernel.values[value.index()].place = Place::Registers(plan.layout(layout));
        }
    }

    /// Sets the place of a value.
    pub fn set_place(&mut self, value: Value, place: Place) {
        self.kernel.values[value.index()].place = place;
    }

    /// The number of a layout, which is added if it is new.
    pub fn layout_id(&mut self, layout: &Layout) -> LayoutId {
        self.kernel.laid_out.as_mut().map_or_else(|| LayoutId::new(0), |plan| plan.layout(layout))
    }

    /// Sets the shared-memory encoding of a tile. No effect unless the kernel is laid out.
    pub fn put_shared(&mut self, value: Value, encoding: &Encoding) {
        if let Some(plan) = &mut self.kernel.laid_out {
            self.kernel.values[value.index()].place = Place::Shared(plan.encoding(encoding));
        }
    }

    /// The kernel so far.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Sets the source location of the following operations.
    pub fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// The source location of the next operation.
    #[must_use]
    pub fn loc(&self) -> Loc {
        self.loc
    }

    /// The symbol with this name, which is added if it is new.
    pub fn symbol(&mut self, name: &str) -> Symbol {
        let known = self.kernel.sig.symbols.iter().position(|s| s == name);
        Symbol::new(known.unwrap_or_else(|| {
            self.kernel.sig.symbols.push(name.to_owned());
            self.kernel.sig.symbols.len() - 1
        }))
    }

    /// Adds a tensor parameter. Parameters come before operations.
    pub fn tensor(&mut self, name: &str, elem: Elem, access: Access, optional: bool, shape: Vec<DimSpec>) -> Value {
        let rank = u8::try_from(shape.len()).unwrap_or(u8::MAX);
        let value = self.new_value(Ty::Tensor(elem, rank), Some(name), Def::Param(self.kernel.sig.params.len()));
        let kind = ParamKind::Tensor { elem, access, optional, shape };
        self.kernel.sig.params.push(Param { name: name.to_owned(), kind });
        value
    }

    /// Adds a scalar parameter. Parameters come before operations.
    pub fn scalar(&mut self, name: &str, elem: Elem) -> Value {
        let value = self.new_value(Ty::Scalar(elem), Some(name), Def::Param(self.kernel.sig.params.len()));
        self.kernel.sig.params.push(Param { name: name.to_owned(), kind: ParamKind::Scalar(elem) });
        value
    }

    /// Declares the extents of a tensor parameter.
    pub fn set_shape(&mut self, param: usize, dims: Vec<DimSpec>) {
        if let Some(Param { kind: ParamKind::Tensor { shape, .. }, .. }) = self.kernel.sig.params.get_mut(param) {
            *shape = dims;
        }
    }

    /// Sets the grid.
    pub fn set_grid(&mut self, grid: GridSpec) {
        self.kernel.sig.grid = grid;
    }

    /// Sets whether the grid may leave parts of outputs unwritten.
    pub fn set_partial(&mut self, partial: bool) {
        self.kernel.sig.partial = partial;
    }

    /// Sets what places the operations of pipelined loops in stages.
    pub fn set_scheduler(&mut self, scheduler: Option<Scheduler>) {
        self.kernel.sig.scheduler = scheduler;
    }

    /// Sets how the last iterations of loops, with tiles that extend beyond the end of a tensor, are executed.
    pub fn set_tails(&mut self, tails: Option<Tails>) {
        self.kernel.sig.tails = tails;
    }

    /// Adds a condition on the arguments.
    pub fn require(&mut self, condition: HostExpr) {
        self.kernel.sig.requires.push(condition);
    }

    /// The type of a value.
    #[must_use]
    pub fn ty(&self, value: Value) -> Ty {
        self.kernel.ty(value)
    }

    /// Names a value after the user's variable, if it has no name yet.
    pub fn name(&mut self, value: Value, name: &str) {
        let slot = &mut self.kernel.values[value.index()].name;
        if slot.is_none() {
            *slot = Some(name.to_owned());
        }
    }

    /// Adds an operation without regions; returns its results.
    ///
    /// # Errors
    /// Returns an error if the operands are invalid.
    pub fn op(&mut self, kind: OpKind, args: &[Value]) -> Result<Vec<Value>, TypeError> {
        if let Some(folded) = fold::fold(&self.kernel, &kind, args) {
            return Ok(vec![self.constant(folded)]);
        }
        let tys: Vec<Ty> = args.iter().map(|v| self.ty(*v)).collect();
        let results = infer(&kind, &tys)?;
        Ok(self.push(kind, args.to_vec(), &results, Vec::new()))
    }

    /// Adds an operation that has one result.
    ///
    /// # Errors
    /// Returns an error if the operands are invalid.
    pub fn op1(&mut self, kind: OpKind, args: &[Value]) -> Result<Value, TypeError> {
        let results = self.op(kind, args)?;
        results.first().copied().ok_or_else(|| TypeError {
            code: crate::diag::Code::Operands,
            message: "this operation has no value".to_owned(),
            help: None,
        })
    }

    /// A constant; equal constants in one block share one value.
    pub fn constant(&mut self, c: Const) -> Value {
        let block = self.block();
        let known = self.kernel.block(block).ops.iter().find_map(|id| {
            let op = self.kernel.op(*id);
            (op.kind == OpKind::Const(c)).then(|| op.results[0])
        });
        known.unwrap_or_else(|| self.push(OpKind::Const(c), Vec::new(), &[Ty::Scalar(c.elem())], Vec::new())[0])
    }

    /// An `i32` constant.
    pub fn i32(&mut self, value: i32) -> Value {
        self.constant(Const::Int(Elem::I32, value.into()))
    }

    /// Opens a `for` over `lo, lo + step, … < hi` with these initial carried values.
    ///
    /// # Errors
    /// Returns an error if a bound is not an `i32`.
    pub fn begin_for(&mut self, kind: ForKind, bounds: [Value; 3], init: &[Value]) -> Result<OpenLoop, TypeError> {
        let tys: Vec<Ty> = bounds.iter().map(|v| self.ty(*v)).collect();
        super::infer::all_i32(&tys)?;
        Ok(self.begin_loop_of(OpKind::For(kind), bounds.to_vec(), init, true))
    }

    /// Opens a loop that runs until a `break`.
    pub fn begin_loop(&mut self, init: &[Value]) -> OpenLoop {
        self.begin_loop_of(OpKind::Loop, Vec::new(), init, false)
    }

    fn begin_loop_of(&mut self, kind: OpKind, bounds: Vec<Value>, init: &[Value], counted: bool) -> OpenLoop {
        let body = self.new_block();
        let index = counted.then(|| self.block_arg(body, Ty::I32));
        let carried = init.iter().map(|v| self.block_arg(body, self.ty(*v))).collect();
        self.open.push(body);
        let bounds = bounds.into_iter().chain(init.iter().copied()).collect();
        OpenLoop { kind, bounds, body, loc: self.loc, index, carried }
    }

    /// Closes a loop, whose body must already end in a terminator. The types of the results are those of the carried values for a `for`,
    /// and `results` for a `loop`.
    pub fn end_loop(&mut self, open: OpenLoop, results: &[Ty]) -> Vec<Value> {
        self.open.pop();
        let tys: Vec<Ty> = if open.kind == OpKind::Loop {
            results.to_vec()
        } else {
            open.carried.iter().map(|v| self.ty(*v)).collect()
        };
        let loc = std::mem::replace(&mut self.loc, open.loc);
        let values = self.push(open.kind, open.bounds, &tys, vec![open.body]);
        self.loc = loc;
        values
    }

    /// Opens the first arm of an `if`.
    pub fn begin_if(&mut self, cond: Value) -> OpenIf {
        let then = self.new_block();
        self.open.push(then);
        OpenIf { cond, then, other: None, loc: self.loc }
    }

    /// Closes the first arm, which must already end in a terminator, and opens the second one.
    pub fn begin_else(&mut self, open: &mut OpenIf) {
        self.open.pop();
        let other = self.new_block();
        open.other = Some(other);
        self.open.push(other);
    }

    /// Closes the second arm. `results` are the types of the results.
    pub fn end_if(&mut self, open: OpenIf, results: &[Ty]) -> Vec<Value> {
        self.open.pop();
        let loc = std::mem::replace(&mut self.loc, open.loc);
        let regions = std::iter::once(open.then).chain(open.other).collect();
        let values = self.push(OpKind::If, vec![open.cond], results, regions);
        self.loc = loc;
        values
    }

    /// Adds a ring.
    pub fn pipe(&mut self, decl: PipeDecl) -> Pipe {
        self.kernel.pipes.push(decl);
        Pipe::new(self.kernel.pipes.len() - 1)
    }

    /// Names a ring after the user's variable, if it has no name yet.
    pub fn name_pipe(&mut self, pipe: Pipe, name: &str) {
        if let Some(decl) = self.kernel.pipes.get_mut(pipe.index())
            && decl.name.is_none()
        {
            decl.name = Some(name.to_owned());
        }
    }

    /// Names the roles, in the order in which [`Builder::begin_role`] opens their regions.
    pub fn set_roles(&mut self, roles: Vec<RoleDecl>) {
        self.kernel.roles = roles;
    }

    /// Opens the region of the next role; the previous one must have been closed by [`Builder::end_role`].
    pub fn begin_role(&mut self) -> Block {
        let region = self.new_block();
        self.open.push(region);
        region
    }

    /// Closes the region of a role with `ttg.finalize`: none of the role's asynchronous work is in flight at its end.
    pub fn end_role(&mut self) {
        if !self.is_terminated() {
            self.terminate(OpKind::Ttg(TtgOp::Finalize), &[]);
            self.terminate(OpKind::Yield, &[]);
        }
        self.open.pop();
    }

    /// Adds `ttg.roles` with the regions of all roles, in the order of [`Builder::set_roles`].
    pub fn roles(&mut self, regions: Vec<Block>) {
        self.push(OpKind::Ttg(TtgOp::Roles), Vec::new(), &[], regions);
    }

    /// Opens the region of a `reduce` or `scan` with a closure; returns its two scalar arguments.
    pub fn begin_combine(&mut self, elem: Elem) -> (Block, [Value; 2]) {
        let body = self.new_block();
        let a = self.block_arg(body, Ty::Scalar(elem));
        let b = self.block_arg(body, Ty::Scalar(elem));
        self.open.push(body);
        (body, [a, b])
    }

    /// Closes the region of a `reduce` or `scan`, after its `yield`.
    ///
    /// # Errors
    /// Returns an error if the tile, the neutral element or the axis is invalid.
    pub fn end_combine(&mut self, kind: OpKind, args: &[Value], body: Block) -> Result<Value, TypeError> {
        self.open.pop();
        let tys: Vec<Ty> = args.iter().map(|v| self.ty(*v)).collect();
        let results = infer(&kind, &tys)?;
        Ok(self.push(kind, args.to_vec(), &results, vec![body])[0])
    }

    /// Ends the current block.
    pub fn terminate(&mut self, kind: OpKind, args: &[Value]) {
        self.push(kind, args.to_vec(), &[], Vec::new());
    }

    /// Whether the current block already ends in a terminator.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        let last = self.kernel.block(self.block()).ops.last();
        last.is_some_and(|id| self.kernel.op(*id).kind.is_terminator())
    }

    /// The finished kernel. A `return` is added to the outermost block if it has no terminator.
    #[must_use]
    pub fn finish(mut self) -> Kernel {
        if !self.is_terminated() {
            self.terminate(OpKind::Return, &[]);
        }
        self.kernel
    }

    fn block(&self) -> Block {
        self.open.last().copied().unwrap_or(self.kernel.body)
    }

    fn new_block(&mut self) -> Block {
        self.kernel.blocks.push(BlockData::default());
        Block::new(self.kernel.blocks.len() - 1)
    }

    fn block_arg(&mut self, block: Block, ty: Ty) -> Value {
        let index = self.kernel.block(block).args.len();
        let value = self.new_value(ty, None, Def::BlockArg(block, index));
        self.kernel.blocks[block.index()].args.push(value);
        value
    }

    fn new_value(&mut self, ty: Ty, name: Option<&str>, def: Def) -> Value {
        self.kernel.values.push(ValueData { ty, name: name.map(str::to_owned), def, place: Place::None });
        Value::new(self.kernel.values.len() - 1)
    }

    fn push(&mut self, kind: OpKind, args: Vec<Value>, results: &[Ty], regions: Vec<Block>) -> Vec<Value> {
        let id = OpId::new(self.kernel.ops.len());
        let results: Vec<Value> =
            results.iter().enumerate().map(|(i, ty)| self.new_value(*ty, None, Def::Result(id, i))).collect();
        self.kernel.ops.push(Op {
            kind,
            args,
            results: results.clone(),
            regions,
            planned: None,
            peeled: false,
            unmasked: false,
            origin: None,
            loc: self.loc,
        });
        let block = self.block();
        self.kernel.blocks[block.index()].ops.push(id);
        results
    }
}
