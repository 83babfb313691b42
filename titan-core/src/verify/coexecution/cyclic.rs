//! Cyclic indices and parities: `t mod n` and `(t div n) mod 2`, in every way in which kernels compute them.
//!
//! Kernels divide a counter, or they carry a slot index and a parity and wrap them explicitly: `s = s + 1 == n ? 0 : s + 1`,
//! `p = p ^ (s + 1 == n)`. Both become the same [`Linear`]: `t − n·q` with `q` the atom of the quotient. [`Turns`] recognises the second
//! kind in the body of a loop.
//!
//! # An example
//!
//! A ring of three slots, with explicit wrapping. In step `t`, with `q = t / 3` and `q' = (t + 1) / 3` atoms of quotients:
//!
//! | value | as an integer | found by |
//! |---|---|---|
//! | `s` | `t − 3·q` | the hypothesis of the loop: `s` is a `Turn::Stage(3)` |
//! | `p` | `q − 2·(q / 2)` | the same: `p` is a `Turn::Parity(3, s)` |
//! | `w`, `s + 1 == 3` | `t − 3·q − 2 = 0` | `begins`: it tests that the counter `t + 1` is a multiple of 3 |
//! | `w ? 0 : s + 1` | `(t + 1) − 3·q'` | `chosen`: 0 where `t + 1` wraps, and one more than the remainder of `t` elsewhere |
//! | `p ^ w` | `q' − 2·(q' / 2)` | `turned`: `q` is the quotient before the step, so the parity is that of `q'` after it |
//!
//! So the next `s` and `p` are those of `t + 1`, for every `t`. In numbers:
//!
//! | `t` | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
//! |---|---|---|---|---|---|---|---|
//! | `s` | 0 | 1 | 2 | 0 | 1 | 2 | 0 |
//! | `s + 1 == 3` | no | no | yes | no | no | yes | no |
//! | `p` | 0 | 0 | 0 | 1 | 1 | 1 | 0 |

use super::key::Key;
use super::linear::{Condition, Facts, Linear};
use super::values::{Env, Known, Symbols};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{BinOp, Block, Const, Elem, Kernel, Op, OpId, OpKind, Pred, Ty, Value};

impl Symbols<'_> {
    /// The dividend and the divisor, if the integer is a remainder.
    pub(in crate::verify) fn cyclic(&self, l: &Linear) -> Option<(Linear, i64)> {
        l.terms().find_map(|(atom, k)| {
            let (of, by) = self.quotient_of(atom)?;
            // `of - by · (of / by)`, and nothing else in the sum: then it is `of mod by`.
            (k == -by && l.plus(by, &Linear::atom(atom)) == *of).then(|| (of.clone(), by))
        })
    }

    /// `of mod by`, if `of` is not negative.
    pub(in crate::verify) fn remainder(&mut self, of: &Linear, by: i64, facts: &mut Facts) -> Option<Linear> {
        self.quotient(of, by, facts).map(|q| of.plus(-by, &q))
    }

    /// Whether a condition tests if a counter wraps: the counter, its period, and the truth value in that case.
    fn begins(&self, condition: &Condition) -> Option<(Linear, i64, bool)> {
        let (l, truth, equal) = match condition {
            Condition::Zero(l, v) => (l, *v, true),
            Condition::NotNegative(l, v) => (l, *v, false),
            Condition::Known(_) | Condition::Opaque(..) => return None,
        };
        // `t mod n = 0` tests exactly that t is a multiple of n.
        if let (Some((t, n)), true) = (self.cyclic(l), equal) {
            return Some((t, n, truth));
        }
        // One of `s + 1 = n`, `s + 1 ≥ n`, or the negation of `s + 1 ≤ n − 1`.
        let other = if equal { (l.times(-1), truth) } else { (l.times(-1).plus_const(-1), !truth) };
        for (l, truth) in [(l.clone(), truth), other] {
            for (atom, _) in l.terms() {
                let Some((of, by)) = self.quotient_of(atom) else { continue };
                // `(of mod by) + 1 - by`: zero, and not negative, exactly if of mod by is by - 1, so if of + 1 is a
                // multiple of by.
                if l == of.plus(-by, &Linear::atom(atom)).plus_const(1 - by) {
                    return Some((of.plus_const(1), by, truth));
                }
            }
        }
        None
    }

    /// The parity after an update under a condition: it flips if the counter of the condition wraps.
    fn turned(&mut self, parity: &Linear, condition: &Condition, facts: &mut Facts) -> Option<Linear> {
        let (t, n, truth) = self.begins(condition)?;
        let (of, _) = self.cyclic(parity).filter(|(_, by)| *by == 2)?;
        // The parity is that of (t - 1) / n, up to a flip, which is kept. After the step it is that of t / n: the
        // quotient grows by 1 exactly where t is a multiple of n, which is what the condition tests.
        let before = self.quotient(&t.plus_const(-1), n, facts)?;
        let flip = of.minus(&before).as_constant()?;
        let after = self.quotient(&t, n, facts)?.plus_const(flip);
        truth.then(|| self.remainder(&after, 2, facts)).flatten()
    }

    /// Selects and exclusive ors of stages and parities.
    pub(in crate::verify) fn turning(&mut self, op: &Op, env: &Env, facts: &mut Facts) -> Option<Linear> {
        match (&op.kind, &op.args[..]) {
            (OpKind::Select, [condition, a, b]) => {
                let condition = self.condition(*condition, env, facts);
                let (a, b) = (self.int(*a, env, facts), self.int(*b, env, facts));
                self.chosen(&condition, &a, &b, facts)
            }
            (OpKind::Binary(BinOp::Xor), [a, b]) => {
                self.exclusive(*a, *b, env, facts).or_else(|| self.exclusive(*b, *a, env, facts))
            }
            (OpKind::Binary(BinOp::Sub), [one, p]) => {
                let (one, p) = (self.int(*one, env, facts), self.int(*p, env, facts));
                let (of, _) = self.cyclic(&p).filter(|(_, by)| *by == 2 && one.as_constant() == Some(1))?;
                self.remainder(&of.plus_const(1), 2, facts)
            }
            (OpKind::Binary(BinOp::And), [a, b]) => {
                let (a, b) = (self.int(*a, env, facts), self.int(*b, env, facts));
                let (a, mask) = b.as_constant().map(|mask| (&a, mask)).or(a.as_constant().map(|mask| (&b, mask)))?;
                // A mask of ones from bit 0 on is a remainder, for numbers that are not negative; `remainder` asks for
                // that.
                let n = mask.checked_add(1).filter(|n| *n > 0 && n & mask == 0)?;
                self.remainder(a, n, facts)
            }
            (_, _) => None,
        }
    }

    fn chosen(&mut self, condition: &Condition, a: &Linear, b: &Linear, facts: &mut Facts) -> Option<Linear> {
        if a == b {
            return Some(a.clone());
        }
        if let Some(first) = facts.decide(condition) {
            return Some(if first { a.clone() } else { b.clone() });
        }
        let Some((t, n, truth)) = self.begins(condition) else {
            self.open_choice(condition, facts);
            return None;
        };
        let (new, same) = if truth { (a, b) } else { (b, a) };
        // It is 0 if the counter wraps, and `s + 1` otherwise.
        let next = self.remainder(&t, n, facts)?;
        // Where t wraps, the value is 0 = t mod n. Elsewhere it is (t - 1) mod n + 1, which is t mod n because t is no
        // multiple of n. So it is t mod n in both cases.
        if new.as_constant() == Some(0) && self.cyclic(&same.plus_const(-1)) == Some((t.plus_const(-1), n)) {
            return Some(next);
        }
        let (of, _) = self.cyclic(same).filter(|(_, by)| *by == 2)?;
        let other = self.remainder(&of.plus_const(1), 2, facts)?;
        let turned = if truth {
            self.turned(same, condition, facts)
        } else {
            self.turned(same, &condition.clone().negated(), facts)
        };
        (*new == other).then_some(turned).flatten()
    }

    fn exclusive(&mut self, p: Value, with: Value, env: &Env, facts: &mut Facts) -> Option<Linear> {
        let parity = self.int(p, env, facts);
        if let Some(cast) = self.kernel().def_op(with).filter(|o| o.kind == OpKind::Cast(Elem::I32))
            && self.kernel().ty(cast.args[0]) == Ty::BOOL
        {
            let condition = self.condition(cast.args[0], env, facts);
            return match facts.decide(&condition) {
                Some(false) => Some(parity),
                Some(true) => self.inverted(&parity, facts),
                None => self.turned(&parity, &condition, facts),
            };
        }
        match self.int(with, env, facts).as_constant() {
            Some(0) => Some(parity),
            Some(1) => self.inverted(&parity, facts),
            Some(_) | None => None,
        }
    }

    fn inverted(&mut self, parity: &Linear, facts: &mut Facts) -> Option<Linear> {
        if let Some(c @ (0 | 1)) = parity.as_constant() {
            return Some(Linear::constant(1 - c));
        }
        let (of, _) = self.cyclic(parity).filter(|(_, by)| *by == 2)?;
        self.remainder(&of.plus_const(1), 2, facts)
    }

    /// The same integer with every atom that the facts determine replaced by its value, also inside of quotients and products; integers
    /// that are equal under these facts become identical.
    pub(super) fn settled(&mut self, l: &Linear, facts: &mut Facts) -> Linear {
        let mut sum = Linear::constant(l.base());
        for (atom, k) in l.terms() {
            let one = match self.key(atom).cloned() {
                // The recursion goes to what the atom is made of, which was found before it: this ends.
                Some(Key::Quotient(of, by)) => {
                    let of = self.settled(&of, facts);
                    self.quotient(&of, by, facts)
                }
                Some(Key::Product(atoms)) => atoms.iter().try_fold(Linear::constant(1), |all, atom| {
                    let factor = facts.resolved(&Linear::atom(*atom));
                    self.product(&all, &factor, facts)
                }),
                Some(Key::Symbol(_) | Key::Dim(..) | Key::Value(..) | Key::Counter(_) | Key::Op(..)) | None => None,
            };
            sum = sum.plus(k, &facts.resolved(&one.unwrap_or_else(|| Linear::atom(atom))));
        }
        sum
    }

    /// The known value of an integer, if there is one.
    pub(in crate::verify) fn known_int(&self, value: Value, env: &Env) -> Option<Linear> {
        match env.known.get(&value)? {
            Known::Int(l) => Some(l.clone()),
            Known::Condition(_) => None,
        }
    }
}

/// The cycle of a carried value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum Turn {
    /// `0, 1, …, n − 1, 0, …`
    Stage(i64),
    /// 0 or 1, flipped whenever a stage of period `n` wraps.
    Parity(i64, Value),
}

/// The cycles of the carried values of loops, from their updates as written.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Turns(SortedMap<Value, Turn>);

impl Turns {
    pub(in crate::verify) fn new(kernel: &Kernel) -> Turns {
        let mut turns = Turns::default();
        let mut loops = Vec::new();
        kernel.walk(&mut |id, op| {
            if matches!(op.kind, OpKind::For(_)) {
                loops.push(id);
            }
        });
        for id in loops {
            turns.of_loop(kernel, id);
        }
        turns
    }

    pub(in crate::verify) fn get(&self, arg: Value) -> Option<Turn> {
        self.0.get(&arg).copied()
    }

    fn of_loop(&mut self, kernel: &Kernel, id: OpId) {
        let Some(body) = kernel.op(id).regions.first().copied() else { return };
        let args: Vec<Value> =
            kernel.block(body).args.iter().skip(1).copied().filter(|v| kernel.ty(*v) == Ty::I32).collect();
        let versions: Vec<(Value, SortedSet<Value>)> = args.iter().map(|a| (*a, versions(kernel, body, *a))).collect();
        let mut comparisons: SortedMap<Value, (i64, Value)> = SortedMap::new();
        // Stages first: the parities are recognised by the comparisons of stages.
        for (arg, all) in &versions {
            if let Some((n, compared)) = stage(kernel, body, all) {
                self.0.insert(*arg, Turn::Stage(n));
                comparisons.extend(compared.into_iter().map(|c| (c, (n, *arg))));
            }
        }
        for (arg, all) in versions.iter().filter(|(arg, _)| !self.0.contains_key(arg)).collect::<Vec<_>>() {
            if let Some(turn) = parity(kernel, body, all, &comparisons) {
                self.0.insert(*arg, turn);
            }
        }
    }
}

/// The values that a carried value becomes in a body: carried by inner loops, or updated like stages and parities.
fn versions(kernel: &Kernel, body: Block, arg: Value) -> SortedSet<Value> {
    let mut all = SortedSet::from([arg]);
    // Updates after an inner loop follow it in program order, so that two walks find all of them.
    for _ in 0..2 {
        kernel.walk_block(body, &mut |_, op| {
            let from = |v: &Value| all.contains(v) || stepped(kernel, *v, &all).is_some();
            if let OpKind::For(_) = op.kind {
                let inner: &[Value] = op.regions.first().map_or(&[], |b| &kernel.block(*b).args);
                for (i, init) in op.args.iter().skip(3).enumerate() {
                    if all.contains(init) {
                        all.extend(inner.get(i + 1));
                        all.extend(op.results.get(i));
                    }
                }
                return;
            }
            let is = |kind: BinOp| op.kind == OpKind::Binary(kind);
            let chosen = op.kind == OpKind::Select && op.args.iter().skip(1).any(from);
            let wrapped = (is(BinOp::Rem) || is(BinOp::And)) && stepped(kernel, op.args[0], &all).is_some();
            let flipped = is(BinOp::Xor) && op.args.iter().any(|v| all.contains(v));
            if chosen || wrapped || flipped || is(BinOp::Sub) && all.contains(&op.args[1]) {
                all.extend(&op.results);
            }
        });
    }
    all
}

/// The value `v + 1` of one of these values.
fn stepped(kernel: &Kernel, value: Value, all: &SortedSet<Value>) -> Option<Value> {
    let op = kernel.def_op(value).filter(|o| o.kind == OpKind::Binary(BinOp::Add))?;
    let [a, b] = op.args[..] else { return None };
    let step = |v: Value| kernel.int_constant(v).is_some_and(|c| c > 0);
    if all.contains(&a) && step(b) { Some(a) } else { Some(b).filter(|b| all.contains(b) && step(a)) }
}

/// The period of a stage, and the comparisons that test for the wrap.
fn stage(kernel: &Kernel, body: Block, all: &SortedSet<Value>) -> Option<(i64, Vec<Value>)> {
    let (mut turn, mut compared) = (None, Vec::new());
    kernel.walk_block(body, &mut |_, op| {
        let [a, b] = op.args[..] else { return };
        let masks = op.kind == OpKind::Binary(BinOp::And);
        let Some(n) = kernel.int_constant(b).and_then(|n| n.checked_add(i64::from(masks))).filter(|n| *n > 1) else {
            return;
        };
        let ends = matches!(op.kind, OpKind::Cmp(Pred::Eq | Pred::Ne | Pred::Ge | Pred::Lt));
        let turns = op.kind == OpKind::Binary(BinOp::Rem) || masks && n & (n - 1) == 0;
        if stepped(kernel, a, all).is_some() && (ends || turns) {
            turn.get_or_insert(n);
            compared.extend(op.results.first().filter(|_| ends));
        }
    });
    // Comparisons of the next stage with 0 test for the wrap too.
    kernel.walk_block(body, &mut |_, op| {
        if let (OpKind::Cmp(Pred::Eq | Pred::Ne), [a, b]) = (&op.kind, &op.args[..])
            && all.contains(a)
            && kernel.constant(*b) == Some(Const::Int(Elem::I32, 0))
        {
            compared.extend(op.results.first());
        }
    });
    turn.map(|n| (n, compared))
}

/// The cycle of these values, if they are the versions of a parity.
fn parity(kernel: &Kernel, body: Block, all: &SortedSet<Value>, ends: &SortedMap<Value, (i64, Value)>) -> Option<Turn> {
    let mut found = None;
    let mut note = |turn: Option<Turn>| {
        if let Some(turn @ Turn::Parity(..)) = turn {
            found = Some(turn);
        } else if found.is_none() {
            found = turn;
        }
    };
    let end = |v: Value| ends.get(&v).map(|(n, stage)| Turn::Parity(*n, *stage));
    kernel.walk_block(body, &mut |_, op| match (&op.kind, &op.args[..]) {
        (OpKind::Binary(BinOp::Xor), [a, b]) if all.contains(a) || all.contains(b) => {
            let with = if all.contains(a) { *b } else { *a };
            match kernel.def_op(with) {
                Some(cast) if cast.kind == OpKind::Cast(Elem::I32) => note(end(cast.args[0])),
                Some(_) | None => note((kernel.int_constant(with) == Some(1)).then_some(Turn::Stage(2))),
            }
        }
        (OpKind::Binary(BinOp::Sub), [one, p]) if all.contains(p) && kernel.int_constant(*one) == Some(1) => {
            note(Some(Turn::Stage(2)))
        }
        (OpKind::Select, [condition, a, b]) if all.contains(a) || all.contains(b) => note(end(*condition)),
        (_, _) => {}
    });
    found
}
