//! The builder of lane IR. It infers types as operations are added, folds operations on constants, reuses equal pure operations that are
//! visible (value numbering), and moves operations out of the loops in which their operands do not change.
//!
//! An invalid operand is a defect of the lowering, not an error of the user: the builder keeps the first one, continues with a value of the
//! expected type, and [`Builder::finish`] returns the error. So the lowering needs no error handling for each operation.

use super::fold;
use super::func::{Block, BlockData, Buffer, Def, Func, Op, OpId, Value, ValueData};
use super::nv::NvOp;
use super::op::{FloatBin, FloatTy, IntBin, OpKind, Role, Ty};
use super::range::{self, Range};
use super::types::{TypeError, infer};
use crate::collections::SortedMap;
use crate::ir::{Loc, Pred};
use crate::launch::abi::{MapParam, Slot};

/// Builds a function.
#[derive(Debug)]
pub struct Builder {
    pub(super) func: Func,
    pub(super) open: Vec<Scope>,
    /// For each value, the depth of the block that defines it, among the blocks that were open.
    levels: Vec<usize>,
    /// For each value, the depth of the block in which it would be defined if it were not a condition.
    pub(super) belongs: Vec<usize>,
    /// For each value, the range of its numbers.
    pub(super) ranges: Vec<Range>,
    loc: Loc,
    error: Option<TypeError>,
}

/// An open block, with the pure operations in it, for value numbering.
#[derive(Debug)]
pub(super) struct Scope {
    block: Block,
    pub(super) around: Around,
    pub(super) known: SortedMap<(OpKind, Vec<Value>), Vec<Value>>,
}

/// The kind of region that a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Around {
    /// The body of the function, or an arm of a branch: executed at most once.
    Once,
    /// The body of a loop. Operations whose operands do not change in it are placed before the loop.
    Loop,
    /// The code of a role. Operations are not moved out of it, since other roles would compute them too.
    Role,
}

/// A loop or branch whose last block is still open.
#[derive(Debug)]
pub struct Open {
    kind: OpKind,
    args: Vec<Value>,
    regions: Vec<Block>,
    results: Vec<Ty>,
    loc: Loc,
}

impl Builder {
    /// An empty function.
    #[must_use]
    pub fn new(name: &str, slots: Vec<Slot>, threads: u32, lanes: u32) -> Self {
        let body = Block::new(0);
        let func = Func {
            name: name.to_owned(),
            slots,
            threads,
            lanes,
            cluster: 1,
            shared_bytes: 0,
            buffers: Vec::new(),
            maps: Vec::new(),
            maker: None,
            body,
            values: Vec::new(),
            ops: Vec::new(),
            blocks: vec![BlockData::default()],
        };
        let scope = Scope { block: body, around: Around::Once, known: SortedMap::new() };
        Builder {
            func,
            open: vec![scope],
            levels: Vec::new(),
            belongs: Vec::new(),
            ranges: Vec::new(),
            loc: Loc::default(),
            error: None,
        }
    }

    /// The function so far.
    #[must_use]
    pub fn func(&self) -> &Func {
        &self.func
    }

    /// Returns the finished function.
    ///
    /// # Errors
    /// Returns the first error of an operation with invalid operands.
    pub fn finish(self) -> Result<Func, TypeError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.func),
        }
    }

    /// Adds a buffer of shared memory and returns its number.
    pub fn buffer(&mut self, name: &str, bytes: u32, offset: u32) -> u32 {
        let number = u32::try_from(self.func.buffers.len()).unwrap_or(u32::MAX);
        self.func.buffers.push(Buffer { name: name.to_owned(), bytes, offset, loc: self.loc });
        number
    }

    /// The number of a tensor map, which is added to the maps of the function if it is new.
    pub fn map_number(&mut self, map: MapParam) -> u32 {
        let maps = &mut self.func.maps;
        let number = maps.iter().position(|m| *m == map).unwrap_or_else(|| {
            maps.push(map);
            maps.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The address of a tensor map.
    pub fn tensor_map(&mut self, map: MapParam) -> Value {
        let number = self.map_number(map);
        self.one(NvOp::TensorMap(number), &[])
    }

    /// Gives the function these tensor maps, before any of its own.
    pub fn set_maps(&mut self, maps: Vec<MapParam>) {
        self.func.maps = maps;
    }

    /// Sets the source location of the following operations.
    pub fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// The width of a value.
    #[must_use]
    pub fn ty(&self, value: Value) -> Ty {
        self.func.ty(value)
    }

    /// Records a defect of the lowering; the first one is kept.
    pub fn fail(&mut self, message: String) {
        self.error.get_or_insert(TypeError { message });
    }

    /// Adds an operation without regions and returns its results.
    pub fn op(&mut self, kind: impl Into<OpKind>, args: &[Value]) -> Vec<Value> {
        self.add_op(kind.into(), args)
    }

    /// Adds an operation with one result at this place, although an equal one may be visible, or its operands may not change in a loop: for registers
    /// that something reads later than the operation that names them.
    pub fn in_place(&mut self, kind: impl Into<OpKind>, args: &[Value]) -> Value {
        let kind = kind.into();
        let tys: Vec<Ty> = args.iter().map(|v| self.ty(*v)).collect();
        let give = infer(&self.func, &kind, &tys).unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            vec![Ty::B32]
        });
        let results = self.push(kind, args.to_vec(), Vec::new(), &give, self.loc);
        results.first().copied().unwrap_or_else(|| {
            self.fail("an operation without a result was used as a value".to_owned());
            self.i32(0)
        })
    }

    fn add_op(&mut self, kind: OpKind, args: &[Value]) -> Vec<Value> {
        if let Some(folded) = fold::fold(self, &kind, args) {
            return folded;
        }
        let pure = kind.is_pure();
        let key = (kind, args.to_vec());
        if pure && let Some(known) = self.open.iter().rev().find_map(|s| s.known.get(&key)) {
            return known.clone();
        }
        let tys: Vec<Ty> = args.iter().map(|v| self.ty(*v)).collect();
        let give = match infer(&self.func, &key.0, &tys) {
            Ok(give) => give,
            Err(error) => {
                self.error.get_or_insert(error);
                vec![Ty::B32; 4]
            }
        };
        let last = self.open.len() - 1;
        let at = if pure { self.outermost(&key.0, &key.1) } else { last };
        // Predicate registers are few, so their live ranges are kept short: a loop-invariant condition is computed where it is requested.
        let is_condition = give == [Ty::Pred];
        let operands = if at < last && !is_condition { self.outside(&key.1, at) } else { key.1.clone() };
        let results =
            self.push_at(if is_condition { last } else { at }, (key.0.clone(), operands), Vec::new(), &give, self.loc);
        if let [result] = results[..] {
            self.ranges[result.index()] = range::of(self, &key.0, &key.1);
            self.belongs[result.index()] = at;
        }
        if pure && let Some(scope) = self.open.get_mut(if is_condition { last } else { at }) {
            scope.known.insert(key, results.clone());
        }
        results
    }

    /// Removes all conditions from value numbering: conditions that are requested from here on are computed again, so that none occupies a
    /// register in between.
    pub fn forget_conditions(&mut self) {
        let Builder { func, open, .. } = self;
        for scope in open {
            scope.known.retain(|_, results| results.iter().all(|v| func.ty(*v) != Ty::Pred));
        }
    }

    /// The depth of the block that defines a value: the number of open blocks around it.
    #[must_use]
    pub fn level(&self, value: Value) -> usize {
        self.levels.get(value.index()).copied().unwrap_or(0)
    }

    /// The range of numbers that a value may have.
    pub(super) fn range(&self, value: Value) -> Range {
        self.ranges.get(value.index()).copied().unwrap_or(Range::of_type(self.ty(value)))
    }

    /// Adds an operation with one result.
    pub fn one(&mut self, kind: impl Into<OpKind>, args: &[Value]) -> Value {
        let results = self.op(kind, args);
        match results.first() {
            Some(value) => *value,
            None => {
                self.fail("an operation without a result was used as a value".to_owned());
                self.i32(0)
            }
        }
    }

    fn push(&mut self, kind: OpKind, args: Vec<Value>, regions: Vec<Block>, give: &[Ty], loc: Loc) -> Vec<Value> {
        self.push_at(self.open.len().saturating_sub(1), (kind, args), regions, give, loc)
    }

    /// Adds an operation at the end of one of the open blocks.
    pub(super) fn push_at(
        &mut self,
        level: usize,
        (kind, args): (OpKind, Vec<Value>),
        regions: Vec<Block>,
        give: &[Ty],
        loc: Loc,
    ) -> Vec<Value> {
        let id = OpId::new(self.func.ops.len());
        let results: Vec<Value> =
            give.iter().enumerate().map(|(i, ty)| self.value(*ty, Def::Result(id, i), level)).collect();
        self.func.ops.push(Op { kind, args, results: results.clone(), regions, loc });
        if let Some(scope) = self.open.get(level) {
            self.func.blocks[scope.block.index()].ops.push(id);
        }
        results
    }

    fn value(&mut self, ty: Ty, def: Def, level: usize) -> Value {
        self.func.values.push(ValueData { ty, def });
        self.levels.push(level);
        self.belongs.push(level);
        self.ranges.push(Range::of_type(ty));
        Value::new(self.func.values.len() - 1)
    }

    fn open_block(&mut self, around: Around, args: &[Ty]) -> (Block, Vec<Value>) {
        let block = Block::new(self.func.blocks.len());
        self.func.blocks.push(BlockData::default());
        let level = self.open.len();
        let values: Vec<Value> =
            args.iter().enumerate().map(|(i, ty)| self.value(*ty, Def::BlockArg(block, i), level)).collect();
        self.func.blocks[block.index()].args.clone_from(&values);
        self.open.push(Scope { block, around, known: SortedMap::new() });
        (block, values)
    }

    /// Opens `for i in (lo..hi).step_by(step)`; returns the induction variable and the carried values.
    pub fn begin_for(&mut self, bounds: [Value; 3], init: &[Value]) -> (Open, Value, Vec<Value>) {
        let results: Vec<Ty> = init.iter().map(|v| self.ty(*v)).collect();
        let mut tys = vec![Ty::B32];
        tys.extend(&results);
        let (block, values) = self.open_block(Around::Loop, &tys);
        self.ranges[values[0].index()] = Range::below(self.range(bounds[0]), self.range(bounds[1]));
        let mut args = bounds.to_vec();
        args.extend(init);
        let open = Open { kind: OpKind::For, args, regions: vec![block], results, loc: self.loc };
        (open, values[0], values[1..].to_vec())
    }

    /// Opens a loop whose `break` yields values of the types `results`.
    pub fn begin_loop(&mut self, init: &[Value], results: &[Ty]) -> (Open, Vec<Value>) {
        let tys: Vec<Ty> = init.iter().map(|v| self.ty(*v)).collect();
        let (block, values) = self.open_block(Around::Loop, &tys);
        let open = Open {
            kind: OpKind::Loop,
            args: init.to_vec(),
            regions: vec![block],
            results: results.to_vec(),
            loc: self.loc,
        };
        (open, values)
    }

    /// Opens a branch whose arms yield values of these types.
    pub fn begin_if(&mut self, cond: Value, results: &[Ty]) -> Open {
        let (block, _) = self.open_block(Around::Once, &[]);
        Open { kind: OpKind::If, args: vec![cond], regions: vec![block], results: results.to_vec(), loc: self.loc }
    }

    /// Opens the code of the first of these roles; each role yields values of the types `results`. [`Builder::begin_else`] opens the next
    /// role.
    pub fn begin_roles(&mut self, roles: &[Role], results: &[Ty]) -> Open {
        let (block, _) = self.open_block(Around::Role, &[]);
        let kind = OpKind::Roles(roles.to_vec());
        Open { kind, args: Vec::new(), regions: vec![block], results: results.to_vec(), loc: self.loc }
    }

    /// Closes an arm or the code of a role, which must already end in a terminator, and opens the next.
    pub fn begin_else(&mut self, open: &mut Open) {
        self.open.pop();
        let around = if matches!(open.kind, OpKind::Roles(_)) { Around::Role } else { Around::Once };
        let (block, _) = self.open_block(around, &[]);
        open.regions.push(block);
    }

    /// Ends the innermost open block.
    pub fn terminate(&mut self, kind: OpKind, args: &[Value]) {
        let loc = self.loc;
        self.push(kind, args.to_vec(), Vec::new(), &[], loc);
    }

    /// Whether the innermost open block already ends in a terminator.
    #[must_use]
    pub fn is_terminated(&self) -> bool {
        let last = self.open.last().and_then(|s| self.func.block(s.block).ops.last());
        last.is_some_and(|op| self.func.op(*op).kind.is_terminator())
    }

    /// Closes the last block of a loop or branch and returns its results.
    pub fn end(&mut self, open: Open) -> Vec<Value> {
        self.open.pop();
        let Open { kind, args, regions, results, loc } = open;
        self.push(kind, args, regions, &results, loc)
    }

    /// A constant of 32 bits.
    pub fn i32(&mut self, value: i32) -> Value {
        self.one(OpKind::Const(Ty::B32, u64::from(value.cast_unsigned())), &[])
    }

    /// A constant of 64 bits.
    pub fn i64(&mut self, value: i64) -> Value {
        self.one(OpKind::Const(Ty::B64, value.cast_unsigned()), &[])
    }

    /// A constant condition.
    pub fn pred(&mut self, value: bool) -> Value {
        self.one(OpKind::Const(Ty::Pred, u64::from(value)), &[])
    }

    /// A constant `f32`.
    pub fn f32(&mut self, value: f32) -> Value {
        self.one(OpKind::Const(Ty::B32, u64::from(value.to_bits())), &[])
    }

    /// A constant `f64`.
    pub fn f64(&mut self, value: f64) -> Value {
        self.one(OpKind::Const(Ty::B64, value.to_bits()), &[])
    }

    /// Integer arithmetic.
    pub fn int(&mut self, op: IntBin, a: Value, b: Value) -> Value {
        self.one(OpKind::Int(op), &[a, b])
    }

    /// `a + b` on integers.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.int(IntBin::Add, a, b)
    }

    /// `a + b` with a constant `b`, in the width of `a`.
    pub fn add_const(&mut self, a: Value, b: i64) -> Value {
        let b = self.const_like(a, b);
        self.add(a, b)
    }

    /// The constant `b` in the width of `a`.
    pub fn const_like(&mut self, a: Value, b: i64) -> Value {
        let ty = self.ty(a);
        self.one(OpKind::Const(ty, fold::truncate(ty, b.cast_unsigned())), &[])
    }

    /// The low half of `a · b`, on integers.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.int(IntBin::Mul, a, b)
    }

    /// `a & b`.
    pub fn and(&mut self, a: Value, b: Value) -> Value {
        self.int(IntBin::And, a, b)
    }

    /// `a | b`.
    pub fn or(&mut self, a: Value, b: Value) -> Value {
        self.int(IntBin::Or, a, b)
    }

    /// `!a` of a condition.
    pub fn not(&mut self, a: Value) -> Value {
        let one = self.pred(true);
        self.int(IntBin::Xor, a, one)
    }

    /// A comparison of signed integers.
    pub fn cmp_s(&mut self, pred: Pred, a: Value, b: Value) -> Value {
        self.one(OpKind::IntCmp { pred, signed: true }, &[a, b])
    }

    /// A comparison of unsigned integers.
    pub fn cmp_u(&mut self, pred: Pred, a: Value, b: Value) -> Value {
        self.one(OpKind::IntCmp { pred, signed: false }, &[a, b])
    }

    /// `b` if the condition `a` is true, otherwise `c`.
    pub fn select(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.one(OpKind::Select, &[a, b, c])
    }

    /// A signed 32-bit integer extended to 64 bits.
    pub fn widen(&mut self, a: Value) -> Value {
        self.one(OpKind::Extend { from: 32, signed: true, to: Ty::B64 }, &[a])
    }

    /// Float arithmetic.
    pub fn float(&mut self, op: FloatBin, ty: FloatTy, a: Value, b: Value) -> Value {
        self.one(OpKind::Float(op, ty), &[a, b])
    }

    /// `a · b + c`.
    pub fn fma(&mut self, ty: FloatTy, a: Value, b: Value, c: Value) -> Value {
        self.one(OpKind::Fma(ty), &[a, b, c])
    }
}
