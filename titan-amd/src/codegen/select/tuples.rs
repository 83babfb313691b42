//! Which values are consecutive registers: the elements of the accumulators of matrix instructions, wherever control flow carries them.
//!
//! A matrix instruction reads and writes its accumulator as one tuple of registers. The elements of an accumulator are values of their own in
//! the lane IR. What a loop carries, and what the arms of a branch yield, has registers of its own (`control`, `loops`); so lists of such
//! values that are an accumulator are found first, and get one tuple.
//!
//! ```text
//! for (a0, a1, a2, a3) = (0, 0, 0, 0) {           a0 … a3 are operands of `mma`: a list
//!     b0, b1, b2, b3 = mma(…, a0, a1, a2, a3)
//!     c0, c1, c2, c3 = if p { yield b0 … b3 } …   yielded for a0 … a3: a list
//!     yield c0, c1, c2, c3
//! }
//! ```
//!
//! From the operands of the matrix instructions, lists are followed to where control flow brings their values from: the arguments of a loop's
//! body to what its iterations yield and to the results of the loop; what iterations yield to the arguments; results of a branch to what the
//! arms yield. A value is in the first list that has it, so that the search ends.
//!
//! The words of a store that are packed for it are lists, so that they are packed where they are stored from.
//!
//! The operands A and B are lists too, for operations that compute their words one by one; most are loaded as tuples.

use std::collections::BTreeMap;
use titan_core::lane::family::{Family, Flow};

use titan_core::lane::op::OpKind;
use titan_core::lane::{Block as Region, Def, Func, Op, Value};

/// The tuples of a function.
pub(super) struct Tuples {
    /// The list that each value is in, and its position there.
    list: Vec<Option<(usize, usize)>>,
    lists: Vec<Vec<Value>>,
    /// The number of operands that each value is.
    uses: Vec<u32>,
    /// The region that defines each value.
    home: Vec<Option<Region>>,
}

impl Tuples {
    pub(super) fn of(func: &Func) -> Tuples {
        let n = func.values.len();
        let mut tuples = Tuples { list: vec![None; n], lists: Vec::new(), uses: vec![0; n], home: vec![None; n] };
        tuples.count(func, func.body);
        let mut open = Vec::new();
        func.walk(&mut |_, op| {
            if let OpKind::Mma(atom) = &op.kind {
                let c = op.args.len().saturating_sub(atom.registers(func.lanes).c);
                open.extend(op.args.get(c..).map(<[Value]>::to_vec));
                open.push(op.results.clone());
            }
        });
        // What accumulators need comes before the other operands.
        func.walk(&mut |_, op| {
            if let OpKind::Mma(atom) = &op.kind {
                let count = atom.registers(func.lanes);
                open.extend(op.args.get(..count.a).map(<[Value]>::to_vec));
                open.extend(op.args.get(count.a..count.a + count.b).map(<[Value]>::to_vec));
            }
        });
        func.walk(&mut |_, op| open.extend(tuples.packed(func, op)));
        open.reverse();
        let carried = carried(func);
        while let Some(list) = open.pop() {
            if list.len() > 1 && tuples.add(&list) {
                sources(func, &list, &mut open);
                if let Some((op, at)) = list.first().and_then(|first| carried.get(first)) {
                    of_loop(func, op, (*at, list.len()), &mut open);
                }
            }
        }
        tuples
    }

    /// The words that an operation stores together, if each was packed for that alone.
    fn packed(&self, func: &Func, op: &Op) -> Option<Vec<Value>> {
        let OpKind::Store { bytes: 4, n: n @ 2.., .. } = op.kind else { return None };
        let words = op.args.get(1..=usize::from(n))?;
        let own = |value: &Value| {
            self.uses[value.index()] == 1 && func.def_op(*value).is_some_and(|by| by.kind == OpKind::Pack)
        };
        words.iter().all(own).then(|| words.to_vec())
    }

    fn count(&mut self, func: &Func, region: Region) {
        let data = func.block(region);
        for value in &data.args {
            self.home[value.index()] = Some(region);
        }
        for op in data.ops.iter().map(|id| func.op(*id)) {
            for arg in &op.args {
                self.uses[arg.index()] += 1;
            }
            for value in &op.results {
                self.home[value.index()] = Some(region);
            }
            for inner in &op.regions {
                self.count(func, *inner);
            }
        }
    }

    /// Adds a list, unless one of its values is in another one; returns whether it was added.
    fn add(&mut self, list: &[Value]) -> bool {
        if list.iter().any(|value| self.list[value.index()].is_some()) {
            return false;
        }
        for (i, value) in list.iter().enumerate() {
            self.list[value.index()] = Some((self.lists.len(), i));
        }
        self.lists.push(list.to_vec());
        true
    }

    /// The number of values at the start of some variables that are one tuple: at least 1 if there are variables.
    pub(super) fn together(&self, variables: &[Value]) -> usize {
        let Some(first) = variables.first() else { return 0 };
        let Some((list, 0)) = self.list[first.index()] else { return 1 };
        let all = &self.lists[list];
        if variables.starts_with(all) { all.len() } else { 1 }
    }

    /// The list that a value is in, and its position there.
    pub(super) fn place(&self, value: Value) -> Option<(usize, usize)> {
        self.list[value.index()]
    }

    /// The values of a list.
    pub(super) fn values(&self, list: usize) -> &[Value] {
        self.lists.get(list).map_or(&[], Vec::as_slice)
    }

    /// Whether an operation of a region may overwrite the register of one of its operands: nothing else reads the value, and the operation is
    /// executed as often as the definition.
    pub(super) fn dies(&self, value: Value, region: Region) -> bool {
        self.uses[value.index()] == 1 && self.home[value.index()] == Some(region)
    }
}

/// The values that iterations of loops yield, with the loop and the position of the argument of its body that each is for.
fn carried(func: &Func) -> BTreeMap<Value, (&Op, usize)> {
    let mut all = BTreeMap::new();
    for op in &func.ops {
        let counted = usize::from(op.kind == OpKind::For);
        if op.kind != OpKind::For && op.kind != OpKind::Loop {
            continue;
        }
        let ops = op.regions.first().map(|body| &func.block(*body).ops);
        let Some(last) = ops.and_then(|ops| ops.last()).map(|id| func.op(*id)) else { continue };
        for (at, value) in last.args.iter().enumerate() {
            all.entry(*value).or_insert((op, at + counted));
        }
    }
    all
}

/// The lists from which control flow takes the values of a list, and those to which it takes them at the end of a loop.
fn sources(func: &Func, list: &[Value], open: &mut Vec<Vec<Value>>) {
    let Some(first) = list.first() else { return };
    match func.values[first.index()].def {
        Def::BlockArg(body, at) => {
            let args = &func.block(body).args;
            if args.get(at..at + list.len()) != Some(list) {
                return;
            }
            let Some(op) = func.ops.iter().find(|op| op.regions.contains(&body)) else { return };
            of_loop(func, op, (at, list.len()), open);
        }
        Def::Result(id, at) => {
            let op = func.op(id);
            if op.results.get(at..at + list.len()) != Some(list) {
                return;
            }
            match op.kind.family() {
                Family::Flow(Flow::If) => {
                    open.extend(op.regions.iter().filter_map(|arm| ended(func, *arm, at, list.len())));
                }
                Family::Flow(Flow::For) => of_loop(func, op, (at + 1, list.len()), open),
                Family::Flow(Flow::Loop) => of_loop(func, op, (at, list.len()), open),
                Family::Flow(_)
                | Family::Pure
                | Family::Warp
                | Family::Mark { .. }
                | Family::Access { .. }
                | Family::Matrix { .. }
                | Family::Copy(_)
                | Family::Protocol
                | Family::Order
                | Family::Group(_)
                | Family::Barrier(_) => {}
            }
        }
    }
}

/// The lists of a loop: the arguments of its body from a position on, what its iterations yield for them, and its results.
fn of_loop(func: &Func, op: &Op, (at, n): (usize, usize), open: &mut Vec<Vec<Value>>) {
    let counted = usize::from(op.kind == OpKind::For);
    let (Some(body), Some(from)) = (op.regions.first(), at.checked_sub(counted)) else { return };
    open.extend(func.block(*body).args.get(at..at + n).map(<[Value]>::to_vec));
    open.extend(op.results.get(from..from + n).map(<[Value]>::to_vec));
    open.extend(ended(func, *body, from, n));
}

/// The values that the end of a region gives, from a position on.
fn ended(func: &Func, region: Region, at: usize, n: usize) -> Option<Vec<Value>> {
    let last = func.op(*func.block(region).ops.last()?);
    last.args.get(at..at + n).map(<[Value]>::to_vec)
}
