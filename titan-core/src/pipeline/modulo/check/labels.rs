//! Labels: what a value stands for, so that values of two kernels can be compared.
//!
//! Two values with one label are equal in every execution. A label is one of:
//!
//! | label | stands for |
//! |---|---|
//! | a sum | a number: a constant plus multiples of other labels and of products of two of them, modulo 2³² |
//! | unknown | something that neither kernel says more about, such as a parameter or the result of an operation outside of scheduled loops |
//! | an iteration | the number of an iteration that is any number |
//! | a term | the result of an operation that computes a number or a name, on labels |
//! | an instance | the result of an operation of a loop's body in one of its iterations |
//!
//! Sums make `lo + (i + 2) · step`, `lo + i · step + 2 · step` and a counter that was stepped twice the same label. A sum of 32-bit integers
//! is computed modulo 2³² by all targets, so that equal labels are equal numbers, also where a sum wraps.
//!
//! Deliberately absent: equalities that need more than this, such as those of quotients. They would accept more kernels, and the rewriter
//! needs none of them.

use crate::collections::SortedMap;
use crate::ir::{BinOp, Const, Effect, Elem, ForKind, Kernel, Op, OpId, OpKind, Place, Pred, Ty, Value};

/// A label, as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label(u32);

/// The number of an iteration: `n`, or, if it is relative, the iteration that is any number plus `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) relative: bool,
    pub(super) n: i32,
}

impl At {
    /// So many iterations later.
    pub(super) const fn later(self, by: i32) -> At {
        At { n: self.n + by, ..self }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Data {
    /// A constant and multiples of labels, sorted, none of which is a sum or has the factor 0.
    Sum(i32, Vec<(Label, i32)>),
    /// The product of two labels, in order.
    Product(Label, Label),
    Unknown,
    Iteration(OpId),
    /// The kind of the operation is an index of `Labels::kinds`.
    Term(u32, Vec<Label>, usize),
    Instance(OpId),
}

/// All labels of one comparison.
pub(super) struct Labels {
    data: Vec<Data>,
    known: SortedMap<Data, Label>,
    /// For each label, the memory that it names: tokens, tensors, buffers.
    roots: Vec<Vec<Label>>,
    /// The kinds of operations of terms, and the places of their results: a tile that is read in another layout is another tile.
    kinds: Vec<(OpKind, Place)>,
}

impl Labels {
    /// The root of names of unknown memory.
    pub(super) const ANYWHERE: Label = Label(0);

    pub(super) fn new() -> Self {
        let mut labels = Labels { data: Vec::new(), known: SortedMap::new(), roots: Vec::new(), kinds: Vec::new() };
        // Label 0 is the root of everything that is not known, so that `ANYWHERE` is a constant.
        labels.unknown(Some(Vec::new()));
        labels
    }

    fn intern(&mut self, data: Data, roots: impl FnOnce(Label) -> Vec<Label>) -> Label {
        if let Some(known) = self.known.get(&data) {
            return *known;
        }
        let label = self.own(data.clone(), roots);
        self.known.insert(data, label);
        label
    }

    /// A label that is equal to no other one.
    fn own(&mut self, data: Data, roots: impl FnOnce(Label) -> Vec<Label>) -> Label {
        let label = Label(u32::try_from(self.data.len()).unwrap_or(u32::MAX));
        self.data.push(data);
        self.roots.push(roots(label));
        label
    }

    /// A label that is equal to no other one. It names the memory of these roots, or, without any, memory of its own.
    pub(super) fn unknown(&mut self, roots: Option<Vec<Label>>) -> Label {
        self.own(Data::Unknown, |own| roots.unwrap_or_else(|| vec![own]))
    }

    /// A result of an operation in one iteration, which whoever asks knows apart from those in other iterations. It names the memory of these
    /// roots, or, without any, memory of its own.
    pub(super) fn instance(&mut self, op: OpId, roots: Option<Vec<Label>>) -> Label {
        self.own(Data::Instance(op), |own| roots.unwrap_or_else(|| vec![own]))
    }

    /// The operation whose instance a label is.
    pub(super) fn instance_of(&self, label: Label) -> Option<OpId> {
        match self.data.get(label.0 as usize)? {
            Data::Instance(op) => Some(*op),
            Data::Sum(..) | Data::Product(..) | Data::Unknown | Data::Iteration(_) | Data::Term(..) => None,
        }
    }

    /// The memory that a value names.
    pub(super) fn roots(&self, label: Label) -> &[Label] {
        self.roots.get(label.0 as usize).map_or(&[], Vec::as_slice)
    }

    fn sum_of(&self, label: Label) -> (i32, Vec<(Label, i32)>) {
        match self.data.get(label.0 as usize) {
            Some(Data::Sum(constant, terms)) => (*constant, terms.clone()),
            Some(Data::Product(..) | Data::Unknown | Data::Iteration(_) | Data::Term(..) | Data::Instance(_))
            | None => (0, vec![(label, 1)]),
        }
    }

    fn sum(&mut self, constant: i32, mut terms: Vec<(Label, i32)>) -> Label {
        terms.sort_unstable();
        let mut merged: Vec<(Label, i32)> = Vec::new();
        for (label, factor) in terms {
            match merged.last_mut() {
                Some((last, sum)) if *last == label => *sum = sum.wrapping_add(factor),
                Some(_) | None => merged.push((label, factor)),
            }
        }
        // A factor can become 0 modulo 2³²; then the term is 0 for every value of the label.
        merged.retain(|(_, factor)| *factor != 0);
        match merged[..] {
            // One label for one number: a sum that is only a label is that label, so that `i + 0` and `i` are equal.
            [(label, 1)] if constant == 0 => label,
            _ => self.intern(Data::Sum(constant, merged), |_| Vec::new()),
        }
    }

    pub(super) fn constant(&mut self, value: i32) -> Label {
        self.sum(value, Vec::new())
    }

    /// The number that a label always is.
    pub(super) fn known(&self, label: Label) -> Option<i32> {
        match self.data.get(label.0 as usize)? {
            Data::Sum(constant, terms) => terms.is_empty().then_some(*constant),
            Data::Product(..) | Data::Unknown | Data::Iteration(_) | Data::Term(..) | Data::Instance(_) => None,
        }
    }

    /// Whether a name of memory is made of others with numbers that are always the same, so that it is in bounds in all iterations if it is
    /// in one.
    pub(super) fn is_fixed(&self, label: Label) -> bool {
        match self.data.get(label.0 as usize) {
            Some(Data::Sum(_, terms)) => terms.is_empty(),
            // A term is made of labels that are older than it.
            Some(Data::Term(_, args, _)) => args.iter().all(|arg| self.is_fixed(*arg)),
            Some(Data::Unknown | Data::Instance(_)) => true,
            Some(Data::Product(..) | Data::Iteration(_)) | None => false,
        }
    }

    /// The operands of the comparison whose result a label is: `a < b`.
    pub(super) fn less(&self, label: Label) -> Option<[Label; 2]> {
        match self.data.get(label.0 as usize)? {
            Data::Term(kind, args, 0)
                if self.kinds.get(*kind as usize).is_some_and(|(kind, _)| *kind == OpKind::Cmp(Pred::Lt)) =>
            {
                args.as_slice().try_into().ok()
            }
            Data::Sum(..)
            | Data::Product(..)
            | Data::Unknown
            | Data::Iteration(_)
            | Data::Term(..)
            | Data::Instance(_) => None,
        }
    }

    /// `a + b · factor`
    pub(super) fn add(&mut self, a: Label, b: Label, factor: i32) -> Label {
        let ((a, mut terms), (b, more)) = (self.sum_of(a), self.sum_of(b));
        terms.extend(more.into_iter().map(|(label, by)| (label, by.wrapping_mul(factor))));
        self.sum(a.wrapping_add(b.wrapping_mul(factor)), terms)
    }

    /// `a · b`; `None` if it has a product of more than two labels.
    pub(super) fn mul(&mut self, a: Label, b: Label) -> Option<Label> {
        let ((a, of_a), (b, of_b)) = (self.sum_of(a), self.sum_of(b));
        let mut terms = Vec::new();
        terms.extend(of_a.iter().map(|(label, by)| (*label, by.wrapping_mul(b))));
        terms.extend(of_b.iter().map(|(label, by)| (*label, by.wrapping_mul(a))));
        for (x, by) in &of_a {
            for (y, times) in &of_b {
                let is_product = |label: &Label| matches!(self.data.get(label.0 as usize), Some(Data::Product(..)));
                // Sums of products of two labels have one normal form, which `intern` compares. Products of three would
                // need sorting among factors, and no counter has one.
                if is_product(x) || is_product(y) {
                    return None;
                }
                let product = self.intern(Data::Product(*x.min(y), *x.max(y)), |_| Vec::new());
                terms.push((product, by.wrapping_mul(*times)));
            }
        }
        Some(self.sum(a.wrapping_mul(b), terms))
    }

    /// The counter of a loop in an iteration: `lo + at · step`.
    pub(super) fn counter(&mut self, looped: OpId, lo: Label, step: Label, at: At) -> Label {
        let known = self.constant(at.n);
        let at = if at.relative {
            let any = self.intern(Data::Iteration(looped), |_| Vec::new());
            self.add(known, any, 1)
        } else {
            known
        };
        match self.mul(at, step) {
            Some(ahead) => self.add(lo, ahead, 1),
            // The step is a product itself. Nothing is known of the counter then but that it is the counter of this iteration.
            None => self.term((&OpKind::For(ForKind::Sequential), Place::None), vec![lo, step, at], 0),
        }
    }

    fn term(&mut self, (kind, at): (&OpKind, Place), args: Vec<Label>, result: usize) -> Label {
        let place = self.kinds.iter().position(|(known, place)| known == kind && *place == at).unwrap_or_else(|| {
            self.kinds.push((kind.clone(), at));
            self.kinds.len() - 1
        });
        let data = Data::Term(u32::try_from(place).unwrap_or(u32::MAX), args, result);
        if let Some(known) = self.known.get(&data) {
            return *known;
        }
        let args = if let Data::Term(_, args, _) = &data { &args[..] } else { &[] };
        let mut roots: Vec<Label> = args.iter().flat_map(|arg| self.roots(*arg)).copied().collect();
        roots.sort_unstable();
        roots.dedup();
        self.intern(data, |_| roots)
    }

    /// The results of an operation that computes numbers or names and nothing else, of which it does not matter how often it is executed.
    pub(super) fn computed(&mut self, kernel: &Kernel, op: &Op, args: Vec<Label>) -> Vec<Label> {
        let is_i32 = op.results.first().is_some_and(|v| kernel.ty(*v) == Ty::I32);
        // Only for 32-bit integers, where all targets compute modulo 2³². Sums of floating-point numbers are terms, in
        // which the order of operands counts.
        if let Some(number) = is_i32.then(|| self.number(&op.kind, &args)).flatten() {
            return vec![number];
        }
        let place = |result: &Value| kernel.value(*result).place;
        if let [result] = &op.results[..] {
            return vec![self.term((&op.kind, place(result)), args, 0)];
        }
        let results = op.results.iter().enumerate();
        results.map(|(n, result)| self.term((&op.kind, place(result)), args.clone(), n)).collect()
    }

    fn number(&mut self, kind: &OpKind, args: &[Label]) -> Option<Label> {
        match (kind, args) {
            (OpKind::Const(Const::Int(Elem::I32, value)), []) => Some(self.constant(i32::try_from(*value).ok()?)),
            (OpKind::Binary(BinOp::Add), [a, b]) => Some(self.add(*a, *b, 1)),
            (OpKind::Binary(BinOp::Sub), [a, b]) => Some(self.add(*a, *b, -1)),
            (OpKind::Binary(BinOp::Mul), [a, b]) => self.mul(*a, *b),
            (_, _) => None,
        }
    }
}

/// Whether an operation computes numbers or names of memory and nothing else.
pub(super) fn is_computed(kernel: &Kernel, op: &Op) -> bool {
    let simple = |ty: Ty| match ty {
        Ty::Scalar(_) | Ty::Smem(..) | Ty::Source(..) | Ty::Tensor(..) => true,
        Ty::Tile(..) | Ty::Compute(..) | Ty::Acc(..) | Ty::Token(..) | Ty::Barrier(_) => false,
    };
    op.regions.is_empty() && op.kind.effect() == Effect::Pure && op.results.iter().all(|v| simple(kernel.ty(*v)))
}
