//! The symbolic values of scalars, computed on demand from their definitions.

use super::example::Example;
use super::key::{Arg, Key};
use super::linear::{Atom, Condition, Facts, Linear};
use crate::analysis::boxes;
use crate::analysis::forms::is_input;
use crate::analysis::number::root;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::fold::of_constants;
use crate::ir::{
    BinOp, Const, Def, DimSpec, Elem, Kernel, Op, OpId, OpKind, ParamKind, Pred, Symbol, TtgOp, Ty, UnOp, Value,
};

/// A symbolic value.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::verify) enum Known {
    Int(Linear),
    Condition(Condition),
}

/// The symbolic values of loop arguments and results, in one role.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::verify) struct Env {
    pub(in crate::verify) known: SortedMap<Value, Known>,
    /// The serial number of the iteration, over all loops: values that are loaded in two iterations differ.
    pub(in crate::verify) serial: u32,
}

/// Undecided conditions on which values depend.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    /// Which of two numbers is less, for a minimum or maximum.
    pub(super) extreme: Option<Condition>,
    /// The condition of a select, or whether a dividend is negative.
    pub(super) other: Option<Condition>,
}

/// Atoms and their meaning.
pub(in crate::verify) struct Symbols<'k> {
    kernel: &'k Kernel,
    keys: Vec<Key>,
    /// An index of the atoms of quotients and of values, which are many.
    quotients: SortedMap<(Linear, i64), Atom>,
    values: SortedMap<(Value, u32), Atom>,
    /// The atoms of names, extents, products and operations, by [`Key::fingerprint`].
    others: SortedMap<u64, Vec<Atom>>,
    counters: u32,
    /// The operations of the kernel's outermost block.
    once: SortedSet<OpId>,
    /// Numbers that a launch must check to be non-negative, so that no sum overflows `i32`.
    pub(super) required: Vec<Linear>,
    /// Sums that may overflow `i32`.
    pub(super) may_wrap: SortedSet<Atom>,
    /// Whether integers keep their cyclic form even where their value is known.
    pub(super) by_form: bool,
    /// Whether sums are assumed not to overflow: only used to explain errors of a kernel that is rejected already.
    pub(in crate::verify) as_written: bool,
    /// Whether no conditions on the launch may be imposed, because the value is only passed on.
    pub(super) speculative: bool,
    /// Concrete launch arguments.
    pub(super) example: Option<Example>,
    /// The first undecided conditions that were needed: of minima and maxima, and of selects and of signs of dividends.
    pub(super) open: Open,
    /// What values are, found since the outermost value was asked for. An index that is advanced in several steps has as many uses of
    /// each step as paths lead to it, twice as many with every step.
    found: SortedMap<Value, Option<Known>>,
    /// How many values are being computed, each for the one before it.
    nested: u32,
}

impl<'k> Symbols<'k> {
    pub(in crate::verify) fn new(kernel: &'k Kernel) -> Self {
        let once = kernel.block(kernel.body).ops.iter().copied().collect();
        Symbols {
            kernel,
            keys: Vec::new(),
            others: SortedMap::new(),
            quotients: SortedMap::new(),
            values: SortedMap::new(),
            counters: 0,
            once,
            required: Vec::new(),
            may_wrap: SortedSet::new(),
            by_form: false,
            as_written: false,
            speculative: false,
            example: None,
            open: Open::default(),
            found: SortedMap::new(),
            nested: 0,
        }
    }

    /// Decides a condition on which a select or a quotient depends, or records it as undecided.
    pub(super) fn open_choice(&mut self, condition: &Condition, facts: &Facts) -> Option<bool> {
        let decided = facts.decide(condition);
        if decided.is_none() && !self.speculative {
            self.open.other.get_or_insert(condition.clone());
        }
        decided
    }

    /// The same for a minimum or maximum.
    fn open_extreme(&mut self, condition: &Condition, facts: &Facts) -> Option<bool> {
        let decided = facts.decide(condition);
        if decided.is_none() && !self.speculative {
            self.open.extreme.get_or_insert(condition.clone());
        }
        decided
    }

    pub(super) fn key(&self, atom: Atom) -> Option<&Key> {
        self.keys.get(atom.0)
    }

    /// The parameter that binds a shape name.
    pub(super) fn binder(&self, symbol: Symbol) -> Option<usize> {
        self.kernel.sig.params.iter().position(|p| match &p.kind {
            ParamKind::Tensor { shape, .. } => shape.contains(&DimSpec::Bind(symbol)),
            ParamKind::Scalar(_) => false,
        })
    }

    pub(super) fn intern(&mut self, key: Key) -> Atom {
        let new = Atom(self.keys.len());
        let atom = match &key {
            Key::Counter(_) => new,
            Key::Quotient(of, by) => *self.quotients.entry((of.clone(), *by)).or_insert(new),
            Key::Value(value, age) => *self.values.entry((*value, *age)).or_insert(new),
            Key::Symbol(_) | Key::Dim(..) | Key::Product(_) | Key::Op(..) => {
                let alike = self.others.entry(key.fingerprint()).or_default();
                let known = alike.iter().find(|atom| self.keys.get(atom.0) == Some(&key)).copied();
                if known.is_none() {
                    alike.push(new);
                }
                known.unwrap_or(new)
            }
        };
        if atom == new {
            self.keys.push(key);
        }
        atom
    }

    /// A new counter, for a loop that is entered.
    pub(in crate::verify) fn counter(&mut self) -> Atom {
        self.counters += 1;
        self.intern(Key::Counter(self.counters))
    }

    /// `of / by`, for a non-negative number and a positive constant.
    pub(in crate::verify) fn quotient(&mut self, of: &Linear, by: i64, facts: &mut Facts) -> Option<Linear> {
        if by <= 0 || !facts.is_not_negative(of) {
            return None;
        }
        // Divisible terms are separated, so that equal quotients have equal atoms.
        // (4 a + b + 6) / 4 is a + 1 + (b + 2) / 4. Only the second part is an atom, so that the quotients of b + 2 and
        // of 4 a + b + 6 are found equal up to a + 1.
        let (mut whole, mut rest) = of.divided(by);
        // Where the rest may be negative, its quotient is not known, while that of the whole number is.
        if whole != Linear::default() && !facts.is_not_negative(&rest) {
            (whole, rest) = (Linear::default(), of.clone());
        }
        if let Some(c) = rest.as_constant() {
            return Some(whole.plus_const(c / by));
        }
        let atom = self.intern(Key::Quotient(rest.clone(), by));
        // by · q ≤ rest ≤ by · q + by - 1, and q ≥ 0: all that is known of it.
        facts.quotient(atom, &rest, by);
        Some(whole.plus(1, &Linear::atom(atom)))
    }

    /// Whether the integer may differ between iterations of a loop: it contains the loop's counter or a later unknown, also in the
    /// definitions of its atoms.
    pub(in crate::verify) fn depends(&self, l: &Linear, counter: (Atom, u32)) -> bool {
        l.terms().any(|(atom, _)| self.varies(atom, counter))
    }

    fn varies(&self, atom: Atom, (counter, since): (Atom, u32)) -> bool {
        let inside = |l: &Linear| self.depends(l, (counter, since));
        match self.keys.get(atom.0) {
            // Counters are numbered in the order in which loops are entered, so a later one belongs to a loop inside of
            // this round.
            Some(Key::Counter(n)) => matches!(self.keys.get(counter.0), Some(Key::Counter(own)) if n >= own),
            Some(Key::Value(_, age)) => *age > since,
            Some(Key::Quotient(of, _)) => inside(of),
            Some(Key::Product(atoms)) => atoms.iter().any(|atom| self.varies(*atom, (counter, since))),
            Some(Key::Op(_, args)) => args.iter().any(|arg| match arg {
                Arg::Int(l) | Arg::Condition(Condition::NotNegative(l, _) | Condition::Zero(l, _)) => inside(l),
                Arg::Condition(Condition::Opaque(a, _)) => self.varies(*a, (counter, since)),
                Arg::Value(_, age) => *age > since,
                Arg::Condition(Condition::Known(_)) | Arg::Param(_) => false,
            }),
            Some(Key::Symbol(_) | Key::Dim(..)) | None => false,
        }
    }

    /// The dividend and divisor of the quotient that an atom is.
    pub(in crate::verify) fn quotient_of(&self, atom: Atom) -> Option<(&Linear, i64)> {
        match self.keys.get(atom.0) {
            Some(Key::Quotient(of, by)) => Some((of, *by)),
            Some(_) | None => None,
        }
    }

    pub(in crate::verify) fn kernel(&self) -> &'k Kernel {
        self.kernel
    }

    /// The symbolic integer of a value; an atom if nothing is known about it.
    pub(in crate::verify) fn int(&mut self, value: Value, env: &Env, facts: &mut Facts) -> Linear {
        // Half of the operands are constants.
        if let Some(Const::Int(Elem::I32, c)) = self.kernel.constant(value) {
            return Linear::constant(c);
        }
        let l = match self.known(value, env, facts) {
            Some(Known::Int(l)) => l,
            Some(Known::Condition(_)) | None => self.given(Key::Value(value, self.age(value, env))),
        };
        // The known number is used, unless the cyclic form is requested.
        // Where barriers are compared by form, an index must stay `t mod 3` of its counter: the number 2 alone would
        // not say of which t.
        let number = if self.by_form { None } else { facts.number(&l) };
        number.map_or(l, Linear::constant)
    }

    /// The symbolic condition of a `bool` value.
    pub(in crate::verify) fn condition(&mut self, value: Value, env: &Env, facts: &mut Facts) -> Condition {
        match self.known(value, env, facts) {
            Some(Known::Condition(c)) => c,
            Some(Known::Int(_)) | None => Condition::Opaque(self.intern(Key::Value(value, self.age(value, env))), true),
        }
    }

    /// The serial number of the iteration of a value: 0 for parameters and values computed once in the kernel.
    fn age(&self, value: Value, env: &Env) -> u32 {
        let once = match self.kernel.value(value).def {
            Def::Param(_) => true,
            Def::Result(op, _) => self.once.contains(&op),
            Def::BlockArg(..) => false,
        };
        if once { 0 } else { env.serial }
    }

    fn known(&mut self, value: Value, env: &Env, facts: &mut Facts) -> Option<Known> {
        if let Some(known) = env.known.get(&value) {
            return Some(known.clone());
        }
        // Without this, an index that is advanced k times would be looked at 2ᵏ times. It is cleared when the outermost
        // value is found, since what is known changes with the position of the role.
        if let Some(found) = self.found.get(&value) {
            return found.clone();
        }
        // The loops and branches that the values are in, and what is known about them, stay until the outermost one is found.
        self.nested += 1;
        let known = self.computed(value, env, facts);
        self.nested -= 1;
        if self.nested == 0 {
            self.found.clear();
        } else {
            self.found.insert(value, known.clone());
        }
        known
    }

    /// What a value is, from its definition.
    fn computed(&mut self, value: Value, env: &Env, facts: &mut Facts) -> Option<Known> {
        let kernel = self.kernel;
        let op = kernel.def_op(value)?;
        match (&op.kind, kernel.ty(value)) {
            (OpKind::Const(Const::Int(Elem::Bool, v)), _) => Some(Known::Condition(Condition::Known(*v != 0))),
            (OpKind::Const(Const::Int(_, v)), _) => Some(Known::Int(Linear::constant(*v))),
            (OpKind::Dim(axis), _) => self.extent_of(op.args[0], usize::from(*axis), env, facts).map(Known::Int),
            (OpKind::Ttg(TtgOp::Rematerialize), Ty::Scalar(_)) => self.known(op.args[0], env, facts),
            (OpKind::Select | OpKind::Binary(BinOp::Xor | BinOp::Sub | BinOp::And), Ty::I32)
                if let Some(turned) = self.turning(op, env, facts) =>
            {
                Some(Known::Int(turned))
            }
            (OpKind::Binary(bin), Ty::Scalar(Elem::I32)) => self.binary(*bin, op, env, facts).map(Known::Int),
            (OpKind::Cmp(pred), Ty::Scalar(_)) if kernel.ty(op.args[0]) == Ty::I32 => {
                let (a, b) = (self.int(op.args[0], env, facts), self.int(op.args[1], env, facts));
                Some(Known::Condition(Condition::compare(*pred, &a, &b)))
            }
            (OpKind::Unary(UnOp::Not), Ty::Scalar(Elem::Bool)) => {
                Some(Known::Condition(self.condition(op.args[0], env, facts).negated()))
            }
            (_, Ty::Scalar(elem)) => self.structural(value, op, elem, env, facts),
            (_, _) => None,
        }
    }

    /// The extent of a tensor or view. That of a part of a tensor is an atom: the same bounds of the same extent give the same one in every
    /// role.
    fn extent_of(&mut self, tensor: Value, axis: usize, env: &Env, facts: &mut Facts) -> Option<Linear> {
        let kernel = self.kernel;
        if let Def::Param(param) = kernel.value(tensor).def {
            return Some(self.dim(param, axis, facts));
        }
        let op = kernel.def_op(tensor)?;
        let of = *op.args.first()?;
        if op.kind == OpKind::Shared {
            return self.extent_of(of, axis, env, facts);
        }
        if let OpKind::Index(fixed) = op.kind {
            return self.extent_of(of, axis + usize::from(usize::from(fixed) <= axis), env, facts);
        }
        let cut = usize::from(boxes::cut(op)?);
        if cut != axis {
            return self.extent_of(of, axis, env, facts);
        }
        let args = if op.kind == OpKind::Segment {
            let Def::Param(offsets) = kernel.value(op.args[1]).def else { return None };
            if !is_input(kernel, offsets) {
                return None;
            }
            // A role goes on after a trap with no rows, and whether it traps depends on the extent of the tensor.
            let extent = self.extent_of(of, axis, env, facts)?;
            vec![Arg::Int(extent), Arg::Param(offsets), Arg::Int(self.int(op.args[2], env, facts))]
        } else {
            let extent = self.extent_of(of, axis, env, facts)?;
            let bounds = [extent, self.int(op.args[1], env, facts), self.int(op.args[2], env, facts)];
            if let [Some(extent), Some(lo), Some(hi)] = [0, 1, 2].map(|i| bounds[i].as_constant()) {
                return Some(Linear::constant((hi.min(extent) - lo.max(0)).max(0)));
            }
            bounds.map(Arg::Int).to_vec()
        };
        Some(self.extent(Key::Op(op.kind.clone(), args), facts))
    }

    fn binary(&mut self, bin: BinOp, op: &Op, env: &Env, facts: &mut Facts) -> Option<Linear> {
        if let Some(rounded) = self.rounded_up(op, env, facts) {
            return Some(rounded);
        }
        let (a, b) = (self.int(op.args[0], env, facts), self.int(op.args[1], env, facts));
        let result = match (bin, a.as_constant(), b.as_constant()) {
            // Arithmetic on constants wraps.
            // With both numbers known, the result is that of the machine, whatever overflows.
            (_, Some(a), Some(b)) => return of_constants(bin, Elem::I32, a, b).map(Linear::constant),
            (BinOp::Add, ..) => Some(a.plus(1, &b)),
            (BinOp::Sub, ..) => Some(a.minus(&b)),
            (BinOp::Mul, ..) => self.product(&a, &b, facts),
            (BinOp::Min | BinOp::Max, ..) => {
                let less = Condition::NotNegative(b.minus(&a), true);
                // A minimum of undecided numbers is neither of them. If cases are distinguished, the condition comes
                // back as a branch.
                self.open_extreme(&less, facts)
                    .map(|less| if less == (bin == BinOp::Min) { a.clone() } else { b.clone() })
            }
            (BinOp::Div, _, Some(k @ 1..)) => {
                // Rounded towards zero, the quotient of a negative number is that of its absolute value, negated.
                // -7 / 2 is -3 and not -4: without its sign, a quotient cannot be one of these rounded down.
                let natural = Condition::NotNegative(a.clone(), true);
                match self.open_choice(&natural, facts) {
                    Some(true) => self.quotient(&a, k, facts),
                    Some(false) => self.quotient(&a.times(-1), k, facts).map(|q| q.times(-1)),
                    None => None,
                }
            }
            (BinOp::Rem, _, Some(1 | -1)) => Some(Linear::default()),
            (BinOp::Shr, _, Some(k @ 0..31)) => self.quotient(&a, 1 << k, facts),
            (BinOp::Shl, _, Some(k @ 0..31)) => self.product(&a, &Linear::constant(1 << k), facts),
            (BinOp::Rem, _, Some(k)) => self.quotient(&a, k, facts).map(|q| a.plus(-k, &q)),
            (_, _, _) => None,
        };
        let result = match bin {
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Shl => result.and_then(|l| self.exact(l, facts)),
            // The results of these operations are always in the range of `i32`.
            BinOp::Div
            | BinOp::Rem
            | BinOp::Min
            | BinOp::Max
            | BinOp::And
            | BinOp::Or
            | BinOp::Xor
            | BinOp::Shr
            | BinOp::MulHi
            | BinOp::Powf => {
                return result.or_else(|| self.opaque(bin, &a, &b));
            }
        };
        result.or_else(|| {
            // It may overflow: then it is no integer of this kind, but still the same 32-bit number wherever it is
            // computed of the same operands.
            let sum = self.opaque(bin, &a, &b)?;
            self.may_wrap.extend(sum.terms().map(|(atom, _)| atom));
            Some(sum)
        })
    }

    fn opaque(&mut self, bin: BinOp, a: &Linear, b: &Linear) -> Option<Linear> {
        let args = vec![Arg::Int(a.clone()), Arg::Int(b.clone())];
        Some(Linear::atom(self.intern(Key::Op(OpKind::Binary(bin), args))))
    }

    /// `a / b + (a % b > 0)`: the expansion of `cdiv`.
    fn rounded_up(&mut self, op: &Op, env: &Env, facts: &mut Facts) -> Option<Linear> {
        let kernel = self.kernel;
        let def = |v: Value, kind: OpKind| kernel.def_op(v).filter(|o| o.kind == kind);
        if op.kind != OpKind::Binary(BinOp::Add) {
            return None;
        }
        let quotient = def(op.args[0], OpKind::Binary(BinOp::Div))?;
        let up = def(op.args[1], OpKind::Cast(Elem::I32))?;
        let more = def(up.args[0], OpKind::Cmp(Pred::Gt))?;
        let rest = def(more.args[0], OpKind::Binary(BinOp::Rem))?;
        if rest.args != quotient.args || kernel.int_constant(more.args[1]) != Some(0) {
            return None;
        }
        let by = kernel.int_constant(quotient.args[1])?;
        let of = self.int(quotient.args[0], env, facts);
        // a / b, and one more if there is a remainder, is ⌈a / b⌉ = (a + b - 1) / b. The sum is of unbounded integers
        // and computed nowhere.
        self.quotient(&of.plus_const(by - 1), by, facts)
    }

    /// An operation as an atom: the same operation on the same scalars gives the same value, in every role. Inputs do not change.
    fn structural(&mut self, value: Value, op: &Op, elem: Elem, env: &Env, facts: &mut Facts) -> Option<Known> {
        let kernel = self.kernel;
        // The number of tiles contains `(extent % size != 0) as i32`. An example needs the number, a proof only that it is the same.
        if self.example.is_some() && op.kind == OpKind::Cast(Elem::I32) && kernel.ty(op.args[0]) == Ty::BOOL {
            let condition = self.condition(op.args[0], env, facts);
            if let Some(holds) = facts.decide(&condition) {
                return Some(Known::Int(Linear::constant(i64::from(holds))));
            }
        }
        // The only tile of an example is the first one, with the index 0 along each axis.
        if self.example.is_some()
            && matches!(op.kind, OpKind::Unflatten | OpKind::UnflattenGrouped(_))
            && self.int(op.args[0], env, facts).as_constant() == Some(0)
        {
            return Some(Known::Int(Linear::default()));
        }
        // All other operations are unknowns, about which nothing is concluded.
        let same = matches!(
            op.kind,
            OpKind::Unary(_)
                | OpKind::Binary(_)
                | OpKind::Cmp(_)
                | OpKind::Select
                | OpKind::MulAdd
                | OpKind::Cast(_)
                | OpKind::Bitcast(_)
                | OpKind::Const(_)
                | OpKind::ProgramId(_)
                | OpKind::NumPrograms(_)
                | OpKind::Present
                | OpKind::Unflatten
                | OpKind::UnflattenGrouped(_)
        );
        let param = |tensor: Value| matches!(kernel.value(tensor).def, Def::Param(_));
        let of_input = |tensor: Value| param(tensor) && root(kernel, tensor).is_some_and(|p| is_input(kernel, p));
        let read = op.kind == OpKind::Get && of_input(op.args[0]);
        // Of the first tensor, only extents matter.
        let ragged = matches!(op.kind, OpKind::RaggedTile { .. }) && param(op.args[0]) && of_input(op.args[1]);
        // Of equal operands, these give equal results in every role and at any time: parameters and inputs do not
        // change during a launch. A tensor that the kernel writes is no input.
        let stable = same || read || ragged;
        if !stable {
            return None;
        }
        // The number of the result comes first if there are several.
        let place = op.results.iter().position(|v| *v == value).filter(|_| op.results.len() > 1);
        let mut args: Vec<Arg> = place.map(Arg::Param).into_iter().collect();
        for arg in &op.args {
            args.push(match kernel.ty(*arg) {
                Ty::Scalar(Elem::I32) => Arg::Int(self.int(*arg, env, facts)),
                Ty::Scalar(Elem::Bool) => Arg::Condition(self.condition(*arg, env, facts)),
                Ty::Tensor(..) => Arg::Param(root(kernel, *arg)?),
                Ty::Scalar(_)
                | Ty::Tile(..)
                | Ty::Source(..)
                | Ty::Smem(..)
                | Ty::Compute(..)
                | Ty::Acc(..)
                | Ty::Token(..)
                | Ty::Barrier(_) => Arg::Value(*arg, self.age(*arg, env)),
            });
        }
        let key = Key::Op(op.kind.clone(), args);
        if elem == Elem::I32 {
            return Some(Known::Int(self.given(key)));
        }
        (elem == Elem::Bool).then(|| Known::Condition(Condition::Opaque(self.intern(key), true)))
    }
}
