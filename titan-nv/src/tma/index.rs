//! The index of every domain of a schedule, computed from the indices of its leaves.
//!
//! The steps are followed backwards: `input = outer * factor + inner` for a split, quotient and remainder for a merge, a difference
//! for a resize, the same exclusive or for a swizzle. The result is a straight list of operations, each over earlier ones,
//! linear in the number of steps, which a code generator translates to its own.
//!
//! Quotients and remainders are Euclidean: the remainder is never negative. A widening to the left makes negative indices.

use super::domain::{Domains, Id, Step};

/// A value of a list of operations: the number of the operation that computes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub(super) usize);

impl Value {
    /// The number of the operation, which indexes lists of values.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0
    }
}

/// An operation on 64-bit integers. None overflows: extents are at most 2⁴⁰, boxes 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A constant.
    Const(i64),
    /// The index of a leaf.
    Index(Id),
    /// A sum.
    Add(Value, Value),
    /// A product with a positive constant.
    Mul(Value, i64),
    /// The quotient by a positive constant, rounded down.
    Div(Value, i64),
    /// The remainder by a positive constant, never negative.
    Rem(Value, i64),
    /// The bitwise exclusive or in two's complement. The second value is in the range `0..2^k` whose bits it may change.
    Xor(Value, Value),
}

/// A list of operations, each of which defines a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    ops: Vec<Op>,
}

/// The lowest and the highest possible value; `None` if it depends on a size that is known only at a launch.
pub type Range = Option<(i64, i64)>;

impl Values {
    /// The operations, each over earlier ones.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Evaluates all values for these indices of leaves.
    #[must_use]
    pub fn eval(&self, index: impl Fn(Id) -> i64) -> Vec<i64> {
        let mut values: Vec<i64> = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            values.push(match *op {
                Op::Const(c) => c,
                Op::Index(id) => index(id),
                Op::Add(a, b) => values[a.0] + values[b.0],
                Op::Mul(a, by) => values[a.0] * by,
                Op::Div(a, by) => values[a.0].div_euclid(by),
                Op::Rem(a, by) => values[a.0].rem_euclid(by),
                Op::Xor(a, b) => values[a.0] ^ values[b.0],
            });
        }
        values
    }

    /// The ranges of all values, for leaves that stay within their extents. They contain every value, and may be too wide.
    #[must_use]
    pub fn ranges(&self, domains: &Domains) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            let of = |value: Value| ranges[value.0];
            let range = match *op {
                Op::Const(c) => Some((c, c)),
                Op::Index(id) => domains.extent(id).map(|extent| (0, extent - 1)),
                Op::Add(a, b) => of(a).zip(of(b)).map(|((a, b), (c, d))| (a + c, b + d)),
                Op::Mul(a, by) => of(a).map(|(low, high)| (low * by, high * by)),
                Op::Div(a, by) => of(a).map(|(low, high)| (low.div_euclid(by), high.div_euclid(by))),
                Op::Rem(a, by) => {
                    let within = of(a).filter(|(low, high)| *low >= 0 && *high < by);
                    Some(within.unwrap_or((0, by - 1)))
                }
                Op::Xor(a, b) => of(a).zip(of(b)).map(|((low, high), (_, b))| {
                    let span = (b + 1).unsigned_abs().next_power_of_two().cast_signed();
                    (low.div_euclid(span) * span, high.div_euclid(span) * span + span - 1)
                }),
            };
            ranges.push(range);
        }
        ranges
    }

    /// Adds an operation; returns the existing value if there is an equal operation.
    pub(super) fn add(&mut self, op: Op) -> Value {
        match op {
            Op::Mul(a, 1) | Op::Div(a, 1) => return a,
            Op::Add(a, b) | Op::Xor(a, b) if self.ops[b.0] == Op::Const(0) => return a,
            Op::Add(a, b) if self.ops[a.0] == Op::Const(0) => return b,
            Op::Mul(a, _) | Op::Div(a, _) | Op::Rem(a, _) if self.ops[a.0] == Op::Const(0) => return a,
            Op::Rem(_, 1) => return self.add(Op::Const(0)),
            Op::Const(_) | Op::Index(_) | Op::Add(..) | Op::Mul(..) | Op::Div(..) | Op::Rem(..) | Op::Xor(..) => {}
        }
        if let Some(known) = self.ops.iter().position(|known| *known == op) {
            return Value(known);
        }
        self.ops.push(op);
        Value(self.ops.len() - 1)
    }

    /// Keeps only the operations that these values depend on, and renumbers the values.
    #[must_use]
    pub fn keep<'a>(&self, roots: impl IntoIterator<Item = &'a mut Value>) -> Values {
        let roots: Vec<&mut Value> = roots.into_iter().collect();
        let mut live = vec![false; self.ops.len()];
        roots.iter().for_each(|root| live[root.0] = true);
        for (i, op) in self.ops.iter().enumerate().rev() {
            if live[i] {
                operands(op).into_iter().flatten().for_each(|operand| live[operand.0] = true);
            }
        }
        let mut new = vec![0; self.ops.len()];
        let mut kept = Values::default();
        for (i, op) in self.ops.iter().enumerate().filter(|(i, _)| live[*i]) {
            new[i] = kept.ops.len();
            kept.ops.push(renumbered(*op, |value| Value(new[value.0])));
        }
        roots.into_iter().for_each(|root| root.0 = new[root.0]);
        kept
    }
}

fn operands(op: &Op) -> [Option<Value>; 2] {
    match *op {
        Op::Const(_) | Op::Index(_) => [None, None],
        Op::Mul(a, _) | Op::Div(a, _) | Op::Rem(a, _) => [Some(a), None],
        Op::Add(a, b) | Op::Xor(a, b) => [Some(a), Some(b)],
    }
}

fn renumbered(op: Op, new: impl Fn(Value) -> Value) -> Op {
    match op {
        Op::Const(_) | Op::Index(_) => op,
        Op::Mul(a, by) => Op::Mul(new(a), by),
        Op::Div(a, by) => Op::Div(new(a), by),
        Op::Rem(a, by) => Op::Rem(new(a), by),
        Op::Add(a, b) => Op::Add(new(a), new(b)),
        Op::Xor(a, b) => Op::Xor(new(a), new(b)),
    }
}

/// The index of every domain, by [`Id`], as a value over the indices of the leaves.
#[must_use]
pub fn indices(domains: &Domains) -> (Values, Vec<Value>) {
    let mut values = Values::default();
    let zero = values.add(Op::Const(0));
    let mut of = vec![zero; domains.len()];
    for leaf in domains.loops().chain(domains.tile()) {
        // A domain of one element has the index 0 only.
        of[leaf.0] = if domains.extent(leaf) == Some(1) { zero } else { values.add(Op::Index(leaf)) };
    }
    for step in domains.steps().iter().rev() {
        match *step {
            Step::Split { input, outer, inner, factor } => {
                let above = values.add(Op::Mul(of[outer.0], factor));
                of[input.0] = values.add(Op::Add(above, of[inner.0]));
            }
            Step::Merge { outer, inner, output } => {
                // A merge is only created if the inner extent is known.
                let length = domains.extent(inner).unwrap_or(1);
                of[outer.0] = values.add(Op::Div(of[output.0], length));
                of[inner.0] = values.add(Op::Rem(of[output.0], length));
            }
            Step::Resize { input, output, left, .. } => {
                let back = values.add(Op::Const(-left));
                of[input.0] = values.add(Op::Add(of[output.0], back));
            }
            Step::Swizzle { x, y, out_x, out_y } => {
                let length = domains.extent(y).unwrap_or(1);
                let mask = values.add(Op::Rem(of[out_x.0], length));
                of[x.0] = of[out_x.0];
                of[y.0] = values.add(Op::Xor(of[out_y.0], mask));
            }
        }
    }
    (values, of)
}
