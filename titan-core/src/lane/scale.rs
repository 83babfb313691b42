//! Numbers of slots that loops carry, as offsets in bytes.
//!
//! The number of a slot of a ring is carried by a loop and multiplied by the bytes of a slot wherever an address is computed. The loop
//! can carry the product instead:
//!
//! ```text
//! for .. (%slot = 0) {                              for .. (%at = 0) {
//!     %offset = shl %slot, 15                           load %base + %at
//!     load %base + %offset                              %next = add %at, 32768
//!     %next = add %slot, 1                              %end = cmp.eq %next, 98304
//!     %end = cmp.eq %next, 3              ->            %wrapped = select %end, 0, %next
//!     %wrapped = select %end, 0, %next                  continue %wrapped
//!     continue %wrapped                             }
//! }
//! ```
//!
//! That is worth more than the shift: if an assembler keeps the number in a register of the warp, each address needs a move in front of the
//! multiplication by a constant, and none in front of an addition.
//!
//! Carried values of a loop are a *family* if each iteration passes one of them, or one that is *advanced* (`select(x + 1 = D, 0, x + 1)`), to
//! each of them. All members of a family are scaled by the same factor or none, if in the loop they are only advanced, passed on and multiplied
//! by that factor.
//!
//! **Why it is right.** Multiplication by the factor F modulo 2³² distributes over the addition, and 0 stays 0. The comparison has the same
//! result on multiples if F · D fits in 32 bits and the member is at most D − 1: then x + 1 and D are multiplied without wrapping, which is
//! one to one. That all members are below D is shown by induction over the execution ([`Carried::is_below`]).
//!
//! Deliberately absent: numbers that are multiplied by several factors, as where barriers have slots too: each would need a value of its own.

use super::family::{Family, Flow};
use super::func::{Block, Def, Func, Op, OpId, Value, ValueData};
use super::op::{IntBin, OpKind, Ty};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::Pred;

/// Replaces carried numbers of slots by offsets. The multiplications that are not needed any more stay, without a use.
pub fn scale(func: &mut Func) {
    let mut loops = Vec::new();
    func.walk(&mut |id, op| {
        if op.kind == OpKind::For {
            loops.push(id);
        }
    });
    if !func.ops.iter().any(|op| op.results.iter().any(|value| advanced(func, *value).is_some())) {
        return;
    }
    let passed = Passed::of(func);
    let mut found = Vec::new();
    for looped in loops {
        let families = families(func, &passed, looped);
        found.extend(families.into_iter().filter(|family| family.is_below(func, &passed)).map(|own| (looped, own)));
    }
    // A later loop begins with what an earlier one ends with. So the later one comes first: the product with which it begins is then a use of
    // the earlier one's result that needs no division.
    for (looped, family) in found.into_iter().rev() {
        carry_products(func, looped, &family);
    }
}

/// Where values come from that control flow passes on, and what uses values.
struct Passed {
    /// For each argument of a block but the variables of loops, and each result of control flow: what may be passed to it.
    sources: SortedMap<Value, Vec<Value>>,
    /// The operations that use a value.
    uses: SortedMap<Value, Vec<OpId>>,
    /// The blocks of operations.
    blocks: SortedMap<OpId, Block>,
}

impl Passed {
    fn of(func: &Func) -> Passed {
        let mut passed = Passed { sources: SortedMap::new(), uses: SortedMap::new(), blocks: SortedMap::new() };
        passed.block(func, func.body, &mut Vec::new(), None);
        passed
    }

    fn pass(&mut self, from: &[Value], to: &[Value]) {
        for (from, to) in from.iter().zip(to) {
            self.sources.entry(*to).or_default().push(*from);
        }
    }

    fn block(&mut self, func: &Func, block: Block, loops: &mut Vec<OpId>, owner: Option<OpId>) {
        for id in &func.block(block).ops {
            let op = func.op(*id);
            self.blocks.insert(*id, block);
            for arg in &op.args {
                self.uses.entry(*arg).or_default().push(*id);
            }
            let depth = loops.len();
            if let Family::Flow(flow) = op.kind.family() {
                self.flow(func, op, flow, (loops, owner));
                if matches!(flow, Flow::For | Flow::Loop) {
                    loops.push(*id);
                }
            }
            for region in &op.regions {
                self.block(func, *region, loops, Some(*id));
            }
            loops.truncate(depth);
        }
    }

    fn flow(&mut self, func: &Func, op: &Op, flow: Flow<'_>, (loops, owner): (&[OpId], Option<OpId>)) {
        let around = |n: u32| loops.iter().rev().nth(n as usize).map(|id| func.op(*id));
        let inside = |looped: &Op| looped.regions.first().map_or(Vec::new(), |body| func.block(*body).args.clone());
        match flow {
            Flow::For => {
                let begin = op.args.get(3..).unwrap_or(&[]);
                self.pass(begin, inside(op).get(1..).unwrap_or(&[]));
                self.pass(begin, &op.results);
            }
            Flow::Loop => self.pass(&op.args, &inside(op)),
            Flow::Continue(n) => match around(n) {
                Some(looped) if looped.kind == OpKind::For => {
                    self.pass(&op.args, inside(looped).get(1..).unwrap_or(&[]));
                    self.pass(&op.args, &looped.results);
                }
                Some(looped) => self.pass(&op.args, &inside(looped)),
                None => {}
            },
            Flow::Break(n) => self.pass(&op.args, around(n).map_or(&[], |looped| &looped.results)),
            Flow::Yield => self.pass(&op.args, owner.map_or(&[], |owner| &func.op(owner).results)),
            Flow::If | Flow::Roles(_) | Flow::Return => {}
        }
    }

    fn uses(&self, value: Value) -> &[OpId] {
        self.uses.get(&value).map_or(&[], Vec::as_slice)
    }
}

/// The values that a counted loop carries, without its variable.
fn carried(func: &Func, body: Block) -> &[Value] {
    func.block(body).args.get(1..).unwrap_or(&[])
}

/// A number that is advanced to the next slot.
#[derive(Clone, Copy)]
struct Advanced {
    number: Value,
    slots: u32,
    add: OpId,
    compare: OpId,
}

/// `select(x = D, 0, x)` for x = number + 1.
fn advanced(func: &Func, value: Value) -> Option<Advanced> {
    let [equal, zero, next] = *func.def_op(value).filter(|op| op.kind == OpKind::Select)?.args.as_slice() else {
        return None;
    };
    let with_constant = |op: &Op| match op.args[..] {
        [a, b] => func.constant(b).map(|n| (a, n)).or_else(|| Some((b, func.constant(a)?))),
        _ => None,
    };
    let is_equality = |op: &Op| matches!(op.kind, OpKind::IntCmp { pred: Pred::Eq, .. });
    let (compared, slots) = with_constant(func.def_op(equal).filter(|op| is_equality(op))?)?;
    let (number, one) = with_constant(func.def_op(next).filter(|op| op.kind == OpKind::Int(IntBin::Add))?)?;
    if compared != next || one != 1 || func.constant(zero) != Some(0) || func.ty(value) != Ty::B32 {
        return None;
    }
    let (Def::Result(add, _), Def::Result(compare, _)) =
        (func.values[next.index()].def, func.values[equal.index()].def)
    else {
        return None;
    };
    Some(Advanced { number, slots: u32::try_from(slots).ok()?, add, compare })
}

/// The factor by which an operation multiplies a value.
fn factor(func: &Func, op: &Op, of: Value) -> Option<u32> {
    let [a, b] = op.args[..] else { return None };
    let constant = |v: Value| func.constant(v).and_then(|n| u32::try_from(n).ok());
    if op.results.first().is_none_or(|result| func.ty(*result) != Ty::B32) {
        return None;
    }
    if op.kind == OpKind::Int(IntBin::Shl) && a == of {
        return 1_u32.checked_shl(constant(b)?);
    }
    let by = if a == of { b } else { a };
    if op.kind == OpKind::Int(IntBin::Mul) && (a == of || b == of) { constant(by) } else { None }
}

/// Carried values that are scaled together.
struct Carried {
    /// The members, each with its place among the carried values.
    args: Vec<(Value, usize)>,
    /// The members that are advanced.
    advanced: Vec<(Value, Advanced)>,
    slots: u32,
    factor: u32,
}

impl Carried {
    /// Whether all members are less than the number of slots, as unsigned numbers, at any time.
    ///
    /// That is so if it is of all values from which they come, directly or by way of others, by the rules of `inputs`. Members come from
    /// each other, so this is an induction over the steps of an execution: a value that is computed comes from values that were computed
    /// before, of which it holds. The search ends, since a value is visited once.
    fn is_below(&self, func: &Func, passed: &Passed) -> bool {
        let inputs = |value: Value| {
            if let Some(sources) = passed.sources.get(&value) {
                return Some(sources.clone());
            }
            if let Some(step) = advanced(func, value) {
                return (step.slots == self.slots).then(|| vec![step.number]);
            }
            let op = func.def_op(value)?;
            match (&op.kind, &op.args[..]) {
                (OpKind::Const(_, bits), []) => (*bits < u64::from(self.slots)).then(Vec::new),
                (OpKind::Select, [_, a, b]) => Some(vec![*a, *b]),
                // Of the results of all others it is not known.
                _ => None,
            }
        };
        let mut open: Vec<Value> = self.args.iter().map(|(arg, _)| *arg).collect();
        let mut visited = SortedSet::new();
        while let Some(value) = open.pop() {
            if visited.insert(value) {
                let Some(inputs) = inputs(value) else { return false };
                open.extend(inputs);
            }
        }
        true
    }
}

/// The families of a loop whose members have one factor. That members are less than the number of slots is not yet known.
fn families(func: &Func, passed: &Passed, looped: OpId) -> Vec<Carried> {
    let op = func.op(looped);
    let Some(body) = op.regions.first().copied() else { return Vec::new() };
    let args = carried(func, body);
    let Some(last) = func.block(body).ops.last().map(|id| func.op(*id)) else { return Vec::new() };
    // A jump from within would be another way to the next iteration, or to the end.
    let one_way = args.iter().zip(&op.results).all(|(arg, result)| {
        let sources = |value: &Value| passed.sources.get(value).map_or(0, Vec::len);
        sources(arg) == 2 && sources(result) == 2
    });
    if last.kind != OpKind::Continue(0) || !one_way || last.args.len() != args.len() {
        return Vec::new();
    }
    // The member from which a value comes, by being advanced or not; and what is advanced on the way.
    let origin = |value: Value| {
        let (mut at, mut steps) = (value, Vec::new());
        // This ends: what is advanced is computed before its result.
        loop {
            if let Some(place) = args.iter().position(|arg| *arg == at) {
                return Some((place, steps));
            }
            let step = advanced(func, at).filter(|step| passed.blocks.get(&step.add) == Some(&body))?;
            steps.push((at, step));
            at = step.number;
        }
    };
    let origins: Vec<_> = last.args.iter().map(|next| origin(*next)).collect();
    let mut family: Vec<usize> = (0..args.len()).collect();
    for (to, from) in origins.iter().enumerate() {
        if let Some((from, _)) = from {
            let (a, b) = (family[to], family[*from]);
            family.iter_mut().filter(|own| **own == a).for_each(|own| *own = b);
        }
    }
    let mut found = Vec::new();
    for first in 0..args.len() {
        let members: Vec<usize> = (0..args.len()).filter(|at| family[*at] == family[first]).collect();
        if members.first() != Some(&first) || members.iter().any(|at| origins[*at].is_none()) {
            continue;
        }
        let steps = members.iter().filter_map(|at| origins[*at].as_ref()).flat_map(|(_, steps)| steps.iter().copied());
        let mut all: Vec<(Value, Advanced)> = Vec::new();
        for step in steps {
            if !all.iter().any(|(value, _)| *value == step.0) {
                all.push(step);
            }
        }
        let members: Vec<(Value, usize)> = members.into_iter().map(|at| (args[at], at)).collect();
        found.extend(with_one_factor(func, passed, last, members, all));
    }
    found
}

/// The family of these members, if in the loop they are only advanced, passed on to members, and multiplied by one factor.
fn with_one_factor(
    func: &Func,
    passed: &Passed,
    last: &Op,
    args: Vec<(Value, usize)>,
    advanced: Vec<(Value, Advanced)>,
) -> Option<Carried> {
    let slots = advanced.first().map(|(_, step)| step.slots)?;
    let mut factors = SortedSet::new();
    let is_passed = |value: Value| {
        let places = last.args.iter().enumerate().filter(|(_, passed)| **passed == value);
        places.map(|(place, _)| place).all(|place| args.iter().any(|(_, own)| *own == place))
    };
    for value in args.iter().map(|(arg, _)| *arg).chain(advanced.iter().map(|(value, _)| *value)) {
        for user in passed.uses(value) {
            let op = func.op(*user);
            let is_step = advanced.iter().any(|(_, step)| step.add == *user && step.number == value);
            if is_step || op.kind == OpKind::Continue(0) && std::ptr::eq(op, last) && is_passed(value) {
                continue;
            }
            factors.insert(factor(func, op, value)?);
        }
    }
    for (value, step) in &advanced {
        let selects = |user: &OpId| func.op(*user).results.first() == Some(value);
        let sum = func.op(step.add).results.first()?;
        let only = passed.uses(*sum).iter().all(|user| *user == step.compare || selects(user));
        if step.slots != slots || !only {
            return None;
        }
    }
    let factors: Vec<u32> = factors.into_iter().collect();
    let [factor] = factors[..] else { return None };
    // Otherwise a comparison of multiples could be true of other numbers.
    let fits = factor > 0 && factor.checked_mul(slots).is_some();
    fits.then_some(Carried { args, advanced, slots, factor })
}

/// Lets a loop carry the products of a family with its factor, instead of its members.
fn carry_products(func: &mut Func, looped: OpId, family: &Carried) {
    let Carried { args, advanced, slots, factor } = family;
    // Behind the loop, its results are products as well.
    let results: Vec<Value> = args.iter().map(|(_, place)| func.op(looped).results[*place]).collect();
    let mut members: Vec<Value> = args.iter().map(|(arg, _)| *arg).collect();
    members.extend(advanced.iter().map(|(value, _)| *value));
    let mut products: SortedMap<Value, Value> = SortedMap::new();
    for op in &func.ops {
        let of = members.iter().chain(&results).find(|value| self::factor(func, op, **value) == Some(*factor));
        products.extend(of.and_then(|value| Some((*op.results.first()?, *value))));
    }
    for (_, step) in advanced {
        for (op, number, product) in [(step.add, 1, *factor), (step.compare, *slots, factor * slots)] {
            let constant = insert(func, (op, false), OpKind::Const(Ty::B32, product.into()), Vec::new());
            let old = func.op(op).args.iter().position(|arg| func.constant(*arg) == Some(number.into()));
            if let Some(old) = old {
                func.ops[op.index()].args[old] = constant;
            }
        }
    }
    for (_, place) in args {
        let begin = func.op(looped).args[3 + place];
        let product = match func.constant(begin).and_then(|begin| u32::try_from(begin).ok()) {
            Some(number) => {
                let bits = number.wrapping_mul(*factor).into();
                insert(func, (looped, false), OpKind::Const(Ty::B32, bits), Vec::new())
            }
            None => {
                let by = insert(func, (looped, false), OpKind::Const(Ty::B32, (*factor).into()), Vec::new());
                insert(func, (looped, false), OpKind::Int(IntBin::Mul), vec![begin, by])
            }
        };
        func.ops[looped.index()].args[3 + place] = product;
    }
    for result in results {
        divide(func, looped, (result, *factor), &products);
    }
    for op in &mut func.ops {
        for arg in &mut op.args {
            if let Some(value) = products.get(arg) {
                *arg = *value;
            }
        }
    }
}

/// Divides what is now a product behind a loop, for all that need the number; what multiplies it is replaced by it.
fn divide(func: &mut Func, looped: OpId, (result, factor): (Value, u32), products: &SortedMap<Value, Value>) {
    let needs = |op: &Op| op.args.contains(&result) && !op.results.iter().any(|own| products.contains_key(own));
    let users: Vec<OpId> = (0..func.ops.len()).map(OpId::new).filter(|id| needs(func.op(*id))).collect();
    if users.is_empty() {
        return;
    }
    // What is inserted last comes first behind the loop. The product is divided by it, as soon as it is there.
    let number = insert(func, (looped, true), OpKind::Int(IntBin::DivU), vec![result, result]);
    let by = insert(func, (looped, true), OpKind::Const(Ty::B32, factor.into()), Vec::new());
    if let Def::Result(divided, _) = func.values[number.index()].def {
        func.ops[divided.index()].args[1] = by;
    }
    for user in users {
        func.ops[user.index()].args.iter_mut().filter(|arg| **arg == result).for_each(|arg| *arg = number);
    }
}

/// Inserts an operation with a 32-bit result before another one, or behind it.
fn insert(func: &mut Func, (beside, behind): (OpId, bool), kind: OpKind, args: Vec<Value>) -> Value {
    let (id, value) = (OpId::new(func.ops.len()), Value::new(func.values.len()));
    let loc = func.op(beside).loc;
    func.values.push(ValueData { ty: Ty::B32, def: Def::Result(id, 0) });
    func.ops.push(Op { kind, args, results: vec![value], regions: Vec::new(), loc });
    for block in &mut func.blocks {
        if let Some(at) = block.ops.iter().position(|id| *id == beside) {
            block.ops.insert(at + usize::from(behind), id);
            break;
        }
    }
    value
}
