//! Defects of the rewriter of loops: what was made of a loop by its schedule, with one mistake in it.
//!
//! Deliberately absent: which mistakes are harmless. Whoever makes them runs what the checker accepts.

use std::collections::BTreeSet;
use titan_core::ir::{BinOp, Block, Const, Def, Kernel, OpId, OpKind, Origin, Place, Pred, TtgOp, Ty, Value};

/// A defect of the rewriter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// An operand in the steady loop is another value of its type that is known there.
    Operand,
    /// The same, before the loop.
    OperandOfPrologue,
    /// The same, in a branch or loop inside of the steady loop.
    OperandInside,
    /// Two values that are passed on change places.
    PassedOn,
    /// A value that is passed on is the one that was carried to here, one iteration too old.
    TooOld,
    /// Two values that the loop begins with change places.
    Initial,
    /// The loop begins one step later.
    Begin,
    /// The loop ends at another number.
    End,
    /// Steps are longer.
    Step,
    /// A constant differs by one.
    Constant,
    /// The operations of the steady loop have another order.
    Order,
    /// An operation is executed twice in the steady loop.
    Twice,
    /// An operation is executed twice before the loop.
    TwiceBefore,
    /// An operation whose results nothing uses is not executed.
    Dropped,
    /// An operation is executed before the loop instead of in it.
    MovedOut,
    /// Another operation is executed instead.
    OtherOperation,
    /// A later use of a result names another one.
    Result,
    /// An operation is stated to be another one.
    Origin,
    /// An operation is stated to be one of another iteration.
    Ahead,
    /// What a branch guards is executed always.
    Unguarded,
    /// The condition of a guard or of a copy is the constant that is always true, or another comparison.
    OtherCondition,
    /// A copy has no condition.
    Unconditional,
    /// An operation after the loop is not executed, nor what uses its results.
    ShortEnd,
    /// An operation after the loop is executed twice.
    TwiceAfter,
    /// A tile that the loop carries, or one that is computed or named in it, is laid out like another one.
    Layout,
    /// A peeled loop is executed under another condition than that it has an iteration.
    FirstCondition,
    /// What is yielded behind a peeled loop, or without an iteration, is another value.
    Yielded,
}

pub(crate) const KINDS: [Kind; 27] = [
    Kind::Operand,
    Kind::OperandOfPrologue,
    Kind::OperandInside,
    Kind::PassedOn,
    Kind::TooOld,
    Kind::Initial,
    Kind::Begin,
    Kind::End,
    Kind::Step,
    Kind::Constant,
    Kind::Order,
    Kind::Twice,
    Kind::TwiceBefore,
    Kind::Dropped,
    Kind::MovedOut,
    Kind::OtherOperation,
    Kind::Result,
    Kind::Origin,
    Kind::Ahead,
    Kind::Unguarded,
    Kind::OtherCondition,
    Kind::Unconditional,
    Kind::ShortEnd,
    Kind::TwiceAfter,
    Kind::Layout,
    Kind::FirstCondition,
    Kind::Yielded,
];

impl Kind {
    /// The kind in the words of tables.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Kind::Operand => "another operand in the loop",
            Kind::OperandOfPrologue => "another operand before the loop",
            Kind::OperandInside => "another operand in a branch or loop inside",
            Kind::PassedOn => "two values that are passed on exchanged",
            Kind::TooOld => "a carried value too old",
            Kind::Initial => "two initial values exchanged",
            Kind::Begin => "another beginning of the loop",
            Kind::End => "another end of the loop",
            Kind::Step => "another step",
            Kind::Constant => "a constant that differs by one",
            Kind::Order => "two operations exchanged",
            Kind::Twice => "an operation twice in the loop",
            Kind::TwiceBefore => "an operation twice before the loop",
            Kind::Dropped => "an operation dropped",
            Kind::MovedOut => "an operation moved out of the loop",
            Kind::OtherOperation => "another operation",
            Kind::Result => "another result of the loop",
            Kind::Origin => "another origin stated",
            Kind::Ahead => "another iteration stated",
            Kind::Unguarded => "a guard dropped",
            Kind::OtherCondition => "another condition of a guard",
            Kind::Unconditional => "a predicate dropped",
            Kind::ShortEnd => "an epilogue too short",
            Kind::TwiceAfter => "an operation twice after the loop",
            Kind::Layout => "another layout of a tile",
            Kind::FirstCondition => "another condition of the first iteration",
            Kind::Yielded => "another result behind the last iteration",
        }
    }
}

/// A choice of a number below another one.
pub(crate) type Below<'r> = &'r mut dyn FnMut(usize) -> usize;

/// A kernel with a loop that was made by a schedule, in which a mistake is made.
pub(crate) struct Mutation<'r> {
    pub(crate) kernel: Kernel,
    below: Below<'r>,
    /// The steady loop, its body, and the block around it.
    looped: OpId,
    body: Block,
    around: Block,
}

impl<'r> Mutation<'r> {
    pub(crate) fn new(kernel: &Kernel, looped: OpId, below: Below<'r>) -> Self {
        let has = |block: &Block| kernel.block(*block).ops.contains(&looped);
        let around = (0..kernel.blocks.len()).map(Block::new).find(has).expect("a block");
        Mutation { body: kernel.op(looped).regions[0], kernel: kernel.clone(), below, looped, around }
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[(self.below)(all.len())])
    }

    fn before(&self) -> Vec<OpId> {
        let ops = &self.kernel.block(self.around).ops;
        let at = ops.iter().position(|id| *id == self.looped).expect("the loop");
        ops[..at].to_vec()
    }

    fn inside(&self) -> Vec<OpId> {
        let ops = &self.kernel.block(self.body).ops;
        ops[..ops.len() - 1].to_vec()
    }

    fn after(&self) -> Vec<OpId> {
        let ops = &self.kernel.block(self.around).ops;
        let at = ops.iter().position(|id| *id == self.looped).expect("the loop");
        ops[at + 1..ops.len() - 1].to_vec()
    }

    /// All operations around the loop and in it, with those in branches and loops.
    fn everywhere(&self) -> Vec<OpId> {
        let own = [self.before(), self.inside(), self.after()].concat();
        let nested = self.nested(&own);
        [own, nested].concat()
    }

    /// Removes an operation and what uses its results.
    fn remove(&mut self, id: OpId) {
        let results = self.kernel.op(id).results.clone();
        self.kernel.blocks.iter_mut().for_each(|block| block.ops.retain(|other| *other != id));
        let users = |op: &OpId| self.kernel.op(*op).args.iter().any(|v| results.contains(v));
        for user in self.everywhere().into_iter().filter(users).collect::<Vec<_>>() {
            self.remove(user);
        }
    }

    /// Makes a guard, or the condition of a copy, another one.
    fn other_condition(&mut self) -> Option<()> {
        let guarded = |id: &OpId| {
            let op = self.kernel.op(*id);
            op.kind == OpKind::If && op.origin.is_none()
                || matches!(op.kind, OpKind::Ttg(TtgOp::AsyncProduce { skipped: Some(_), .. }))
        };
        let all: Vec<OpId> = self.everywhere().into_iter().filter(guarded).collect();
        let id = self.pick(&all)?;
        let now = *self.kernel.op(id).args.last()?;
        let Def::Result(compares, _) = self.kernel.value(now).def else { return None };
        let place = (self.below)(2);
        let operand = self.kernel.op(compares).args[place];
        let mut others = self.known(compares, Ty::I32);
        others.retain(|v| *v != operand);
        self.kernel.ops[compares.index()].args[place] = self.pick(&others)?;
        Some(())
    }

    /// The branch around a peeled loop.
    fn branch(&self) -> Option<OpId> {
        let arms = |op: &OpId| self.kernel.op(*op).regions.contains(&self.around);
        let found = (0..self.kernel.ops.len()).map(OpId::new).find(arms)?;
        (self.kernel.op(found).kind == OpKind::If).then_some(found)
    }

    fn end(&self) -> OpId {
        *self.kernel.block(self.body).ops.last().expect("an end")
    }

    /// The values of a type that are known where an operation is executed.
    fn known(&self, id: OpId, ty: Ty) -> Vec<Value> {
        fn enter(kernel: &Kernel, block: Block, id: OpId, known: &mut Vec<Value>) -> bool {
            let mark = known.len();
            known.extend(&kernel.block(block).args);
            for other in &kernel.block(block).ops {
                if *other == id || kernel.op(*other).regions.iter().any(|inner| enter(kernel, *inner, id, known)) {
                    return true;
                }
                known.extend(&kernel.op(*other).results);
            }
            known.truncate(mark);
            false
        }
        let mut known = Vec::new();
        assert!(enter(&self.kernel, self.kernel.body, id, &mut known));
        known.retain(|v| self.kernel.ty(*v) == ty);
        known
    }

    fn nested(&self, ops: &[OpId]) -> Vec<OpId> {
        let mut found = Vec::new();
        for region in ops.iter().flat_map(|id| &self.kernel.op(*id).regions) {
            self.kernel.walk_block(*region, &mut |id, _| found.push(id));
        }
        found
    }

    fn other_operand(&mut self, of: &[OpId]) -> Option<()> {
        let id = self.pick(of)?;
        let place = (self.below)(self.kernel.op(id).args.len().max(1));
        let now = *self.kernel.op(id).args.get(place)?;
        let mut others = self.known(id, self.kernel.ty(now));
        others.retain(|v| *v != now);
        self.kernel.ops[id.index()].args[place] = self.pick(&others)?;
        Some(())
    }

    /// Exchanges two operands of one type, from a place on.
    fn exchange(&mut self, id: OpId, from: usize) -> Option<()> {
        let args = self.kernel.op(id).args.clone();
        let places: Vec<usize> = (from..args.len()).collect();
        let (a, b) = (self.pick(&places)?, self.pick(&places)?);
        if args[a] == args[b] || self.kernel.ty(args[a]) != self.kernel.ty(args[b]) {
            return None;
        }
        self.kernel.ops[id.index()].args.swap(a, b);
        Some(())
    }

    fn duplicate(&mut self, block: Block, of: &[OpId]) -> Option<()> {
        let id = self.pick(of)?;
        if !self.kernel.op(id).regions.is_empty() {
            return None;
        }
        let copy = OpId::new(self.kernel.ops.len());
        let mut op = self.kernel.op(id).clone();
        for (place, result) in op.results.iter_mut().enumerate() {
            let mut data = self.kernel.value(*result).clone();
            data.def = Def::Result(copy, place);
            self.kernel.values.push(data);
            *result = Value::new(self.kernel.values.len() - 1);
        }
        self.kernel.ops.push(op);
        let ops = &mut self.kernel.blocks[block.index()].ops;
        let at = ops.iter().position(|other| *other == id)?;
        ops.insert(at, copy);
        Some(())
    }

    /// Makes a mistake of a kind; `None` if there is no place for it, or the one that was picked is none.
    pub(crate) fn make(&mut self, kind: Kind) -> Option<()> {
        let (looped, end) = (self.looped, self.end());
        let (inside, before) = (self.inside(), self.before());
        match kind {
            Kind::Operand => self.other_operand(&inside),
            Kind::OperandOfPrologue => self.other_operand(&before),
            Kind::OperandInside => self.other_operand(&self.nested(&inside)),
            Kind::PassedOn => self.exchange(end, 0),
            Kind::Initial => self.exchange(looped, 3),
            Kind::TooOld => {
                let places: Vec<usize> = (0..self.kernel.op(end).args.len()).collect();
                let place = self.pick(&places)?;
                let arg = self.kernel.block(self.body).args[place + 1];
                (self.kernel.op(end).args[place] != arg).then(|| self.kernel.ops[end.index()].args[place] = arg)
            }
            Kind::Begin | Kind::End | Kind::Step => {
                let place = [Kind::Begin, Kind::End, Kind::Step].iter().position(|k| *k == kind)?;
                let now = self.kernel.op(looped).args[place];
                let mut others = self.known(looped, Ty::I32);
                others.retain(|v| *v != now);
                self.kernel.ops[looped.index()].args[place] = self.pick(&others)?;
                // Steps of 0 do not end.
                (kind != Kind::Step || self.kernel.int_constant(self.kernel.op(looped).args[2])? > 0).then_some(())
            }
            Kind::Constant => {
                let all: Vec<OpId> = before.iter().chain(&inside).copied().collect();
                let id = self.pick(&all)?;
                let OpKind::Const(Const::Int(elem, value)) = self.kernel.op(id).kind else { return None };
                self.kernel.ops[id.index()].kind = OpKind::Const(Const::Int(elem, value + 1));
                Some(())
            }
            Kind::Order => {
                let places: Vec<usize> = (0..inside.len()).collect();
                let (a, b) = (self.pick(&places)?, self.pick(&places)?);
                self.kernel.blocks[self.body.index()].ops.swap(a, b);
                (a != b).then_some(())
            }
            Kind::Unguarded => {
                let guards = |id: &OpId| self.kernel.op(*id).kind == OpKind::If && self.kernel.op(*id).origin.is_none();
                let all: Vec<OpId> = inside.iter().copied().filter(guards).collect();
                let id = self.pick(&all)?;
                let mut ops = self.kernel.block(self.kernel.op(id).regions[0]).ops.clone();
                ops.pop();
                let body = &mut self.kernel.blocks[self.body.index()].ops;
                let at = body.iter().position(|other| *other == id)?;
                body.splice(at..=at, ops);
                Some(())
            }
            Kind::OtherCondition => self.other_condition(),
            Kind::Unconditional => {
                let of_copy = |id: &OpId| {
                    matches!(self.kernel.op(*id).kind, OpKind::Ttg(TtgOp::AsyncProduce { skipped: Some(_), .. }))
                };
                let all: Vec<OpId> = self.everywhere().into_iter().filter(of_copy).collect();
                let id = self.pick(&all)?;
                let op = &mut self.kernel.ops[id.index()];
                if let OpKind::Ttg(TtgOp::AsyncProduce { skipped, .. }) = &mut op.kind {
                    *skipped = None;
                }
                op.args.pop();
                Some(())
            }
            Kind::ShortEnd => {
                let all: Vec<OpId> =
                    self.after().into_iter().filter(|id| self.kernel.op(*id).origin.is_some()).collect();
                let id = self.pick(&all)?;
                self.remove(id);
                Some(())
            }
            Kind::TwiceAfter => self.duplicate(self.around, &self.after()),
            Kind::FirstCondition => {
                let branch = self.branch()?;
                let condition = *self.kernel.op(branch).args.first()?;
                let Def::Result(compares, _) = self.kernel.value(condition).def else { return None };
                match (self.below)(3) {
                    0 => self.kernel.ops[compares.index()].kind = OpKind::Cmp(Pred::Le),
                    1 => self.kernel.ops[compares.index()].args.swap(0, 1),
                    _ => return self.other_operand(&[compares]),
                }
                Some(())
            }
            Kind::Yielded => {
                let branch = self.branch()?;
                let arm = self.kernel.op(branch).regions[(self.below)(2)];
                let end = *self.kernel.block(arm).ops.last()?;
                self.other_operand(&[end])
            }
            Kind::Layout => {
                let nested = self.nested(&inside);
                let loops = [looped].into_iter().chain(nested).filter(|id| self.kernel.op(*id).kind.is_loop());
                let bodies = loops.flat_map(|id| &self.kernel.op(id).regions);
                let carried = bodies.flat_map(|body| self.kernel.block(*body).args.clone());
                let results = inside.iter().flat_map(|id| self.kernel.op(*id).results.clone());
                let place = |v: Value| self.kernel.value(v).place;
                let all: Vec<Value> = carried.chain(results).filter(|v| place(*v) != Place::None).collect();
                let value = self.pick(&all)?;
                let place = |v: Value| self.kernel.value(v).place;
                let kind_of = |v: Value| std::mem::discriminant(&place(v));
                let alike = (0..self.kernel.values.len()).map(Value::new).filter(|v| kind_of(*v) == kind_of(value));
                let others: Vec<Place> = alike.map(place).filter(|other| *other != place(value)).collect();
                self.kernel.values[value.index()].place = self.pick(&others)?;
                Some(())
            }
            Kind::Twice => self.duplicate(self.body, &inside),
            Kind::TwiceBefore => self.duplicate(self.around, &before),
            Kind::Dropped => {
                let used: BTreeSet<Value> = self.kernel.ops.iter().flat_map(|op| op.args.iter().copied()).collect();
                let unused = |id: &OpId| self.kernel.op(*id).results.iter().all(|v| !used.contains(v));
                let all: Vec<OpId> = before.iter().chain(&inside).copied().filter(unused).collect();
                let id = self.pick(&all)?;
                self.kernel.blocks.iter_mut().for_each(|block| block.ops.retain(|other| *other != id));
                Some(())
            }
            Kind::MovedOut => {
                let id = self.pick(&inside)?;
                self.kernel.blocks[self.body.index()].ops.retain(|other| *other != id);
                let ops = &mut self.kernel.blocks[self.around.index()].ops;
                let at = ops.iter().position(|other| *other == looped)?;
                ops.insert(at, id);
                Some(())
            }
            Kind::OtherOperation => {
                let all: Vec<OpId> = [&inside[..], &before[..], &self.nested(&inside)[..]].concat();
                let id = self.pick(&all)?;
                let OpKind::Binary(now) = self.kernel.op(id).kind else { return None };
                let other = self.pick(&[BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Xor])?;
                self.kernel.ops[id.index()].kind = OpKind::Binary(other);
                (other != now).then_some(())
            }
            Kind::Result => {
                let ops = &self.kernel.block(self.around).ops;
                let at = ops.iter().position(|id| *id == looped)?;
                let behind = ops[at + 1..].to_vec();
                self.other_operand(&behind)
            }
            Kind::Origin | Kind::Ahead => {
                let stated = |id: &OpId| self.kernel.op(*id).origin.is_some();
                let all: Vec<OpId> = before.iter().chain(&inside).copied().filter(stated).collect();
                let (id, other) = (self.pick(&all)?, self.pick(&all)?);
                let (now, of) = (self.kernel.op(id).origin?, self.kernel.op(other).origin?);
                let made =
                    if kind == Kind::Origin { Origin { op: of.op, ..now } } else { Origin { ahead: of.ahead, ..now } };
                self.kernel.ops[id.index()].origin = Some(made);
                (made != now).then_some(())
            }
        }
    }
}
