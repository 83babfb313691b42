//! The checker of expanded loops: what was not made of a loop by its schedule is refused, or computes the same.

use super::ahead;
use super::modulo::{Loop, kernel, plain, random, written};
use super::random::{Rng, below};
use std::collections::{BTreeMap, BTreeSet};
use titan_core::ir::{BinOp, Block, Const, Def, Kernel, OpId, OpKind, Origin, TtgOp, Ty, Value};
use titan_core::pipeline::modulo::{check, expand};
use titan_core::text::print;
use titan_core::verify::well_formed;

/// A defect of the rewriter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
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
}

const KINDS: [Kind; 24] = [
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
];

struct Mutation<'r> {
    kernel: Kernel,
    rng: &'r mut Rng,
    /// The steady loop and its body.
    looped: OpId,
    body: Block,
}

impl<'r> Mutation<'r> {
    fn new(kernel: &Kernel, rng: &'r mut Rng) -> Self {
        let is_loop = |id: &&OpId| matches!(kernel.op(**id).kind, OpKind::For(_));
        // Loops of prologues come before it, and none after it.
        let looped = *kernel.block(kernel.body).ops.iter().rfind(is_loop).expect("a loop");
        Mutation { body: kernel.op(looped).regions[0], kernel: kernel.clone(), rng, looped }
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[below(self.rng, all.len())])
    }

    fn before(&self) -> Vec<OpId> {
        let ops = &self.kernel.block(self.kernel.body).ops;
        let at = ops.iter().position(|id| *id == self.looped).expect("the loop");
        ops[..at].to_vec()
    }

    fn inside(&self) -> Vec<OpId> {
        let ops = &self.kernel.block(self.body).ops;
        ops[..ops.len() - 1].to_vec()
    }

    fn after(&self) -> Vec<OpId> {
        let ops = &self.kernel.block(self.kernel.body).ops;
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
        let place = below(self.rng, 2);
        let operand = self.kernel.op(compares).args[place];
        let mut others = self.known(compares, Ty::I32);
        others.retain(|v| *v != operand);
        self.kernel.ops[compares.index()].args[place] = self.pick(&others)?;
        Some(())
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
        let place = below(self.rng, self.kernel.op(id).args.len().max(1));
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

    fn make(&mut self, kind: Kind) -> Option<()> {
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
            Kind::TwiceAfter => self.duplicate(self.kernel.body, &self.after()),
            Kind::Twice => self.duplicate(self.body, &inside),
            Kind::TwiceBefore => self.duplicate(self.kernel.body, &before),
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
                let ops = &mut self.kernel.blocks[self.kernel.body.index()].ops;
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
                let ops = &self.kernel.block(self.kernel.body).ops;
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

/// Whether a kernel does what it should, for each number of iterations. A value that is used before it is defined is a difference.
fn is_right(kernel: &Kernel, right: &dyn Fn(&Kernel) -> bool) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| right(kernel))).is_ok_and(|right| right)
}

/// How many mutants of a kind were refused, and accepted although they differ from what the rewriter made: they compute the same.
type Counts = BTreeMap<Kind, [usize; 2]>;

/// Makes a mutant of what a loop was expanded to. It is refused, or right.
fn mutate(text: &str, kind: Kind, rng: &mut Rng, counts: &mut Counts, right: &dyn Fn(&Kernel) -> bool) {
    let before = kernel(text);
    let expanded = expand(&before).expect("it is legal");
    let mut mutation = Mutation::new(&expanded, rng);
    if mutation.make(kind).is_none() {
        return;
    }
    let mutant = mutation.kernel.canonical();
    if well_formed(mutant.clone()).is_err() {
        return;
    }
    let is_accepted = check(&before, &mutant).is_ok();
    assert!(!is_accepted || is_right(&mutant, right), "{kind:?} was accepted:\n{text}\n{}", print(&mutant));
    counts.entry(kind).or_default()[usize::from(is_accepted)] += 1;
}

/// A mutant may be refused though it computes the same: the checker shows more than results, such as that nothing is executed twice.
fn report(counts: &Counts, kinds: &[Kind]) {
    println!("kind: refused, accepted with equal results\n{counts:?}");
    for kind in kinds {
        assert!(
            counts.get(kind).is_some_and(|[refused, _]| *refused > 0),
            "{kind:?}: no mutant was refused: {counts:?}"
        );
    }
}

#[test]
fn what_differs_from_the_loop_it_was_made_of_is_refused() {
    let mut rng = Rng(0x1357_9bdf_0246_8ace);
    let mut counts = Counts::new();
    for turn in 0..test_depth::cases(30_000, 2500) {
        let made: Loop = random(&mut rng);
        let text = made.text();
        let most = 2 * made.stages as i64 + 6;
        let right = |mutant: &Kernel| (0..=most).all(|n| written(&plain(&text), n) == written(mutant, n));
        mutate(&text, KINDS[turn % 19], &mut rng, &mut counts, &right);
    }
    report(&counts, &KINDS[..19]);
}

#[test]
fn loops_over_rings_that_fill_read_or_release_otherwise_are_refused() {
    let mut rng = Rng(0x2468_ace0_1357_9bdf);
    let mut counts = Counts::new();
    for turn in 0..test_depth::cases(30_000, 2500) {
        let made = ahead::random(&mut rng);
        let text = made.text();
        let before = kernel(&text);
        let right = |mutant: &Kernel| ahead::difference(&before, mutant, made.most()).is_none();
        mutate(&text, KINDS[turn % KINDS.len()], &mut rng, &mut counts, &right);
    }
    // What is stated of an operation matters if its result is carried, as few are here.
    let none_here = [Kind::PassedOn, Kind::Initial, Kind::OtherOperation, Kind::Result, Kind::Ahead];
    let kinds: Vec<Kind> = KINDS.into_iter().filter(|kind| !none_here.contains(kind)).collect();
    report(&counts, &kinds);
}
