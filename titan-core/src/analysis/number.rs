//! Value numbering of invariant values: those that are the same in every program of a launch, at all times.
//!
//! A value is *invariant* if it is a constant, a parameter, an extent, or a pure scalar operation or view of invariant values. Two
//! invariant values have the same number if they are the results of the same operation on values with the same numbers: a second
//! `cdiv(M, 128)` has the number of the first one.
//!
//! Deliberately absent: values read from memory, even if every program reads the same; equalities that need algebra.

use crate::collections::SortedMap;
use crate::ir::{BinOp, Const, Def, Kernel, Op, OpId, OpKind, TtgOp, Ty, Value};

/// The numbers of invariant values.
#[derive(Clone, Debug)]
pub struct Numbers {
    number: Vec<Option<Value>>,
}

impl Numbers {
    /// The numbers of a kernel's values.
    #[must_use]
    pub fn new(kernel: &Kernel) -> Numbers {
        let mut numbers = Numbers { number: vec![None; kernel.values.len()] };
        for (i, value) in kernel.values.iter().enumerate() {
            if matches!(value.def, Def::Param(_)) {
                numbers.number[i] = Some(Value::new(i));
            }
        }
        // Operations are found by their operands, so that one pass over a kernel with many operations is enough.
        let mut known: SortedMap<(Vec<Value>, u64), Vec<OpId>> = SortedMap::new();
        kernel.walk(&mut |id, op| {
            if !may_number(&op.kind) || op.results.iter().any(|r| matches!(kernel.ty(*r), Ty::Tile(..))) {
                return;
            }
            let Some(args) = op.args.iter().map(|a| numbers.of(*a)).collect::<Option<Vec<Value>>>() else { return };
            let alike = known.entry((args, bits(&op.kind))).or_default();
            let canonical = alike.iter().copied().find(|k| kernel.op(*k).kind == op.kind).unwrap_or(id);
            if canonical == id {
                alike.push(id);
            }
            for (result, number) in op.results.iter().zip(&kernel.op(canonical).results) {
                if let Some(slot) = numbers.number.get_mut(result.index()) {
                    *slot = Some(*number);
                }
            }
        });
        numbers
    }

    /// The value that represents all invariant values equal to this one; `None` if this one is not invariant.
    #[must_use]
    pub fn of(&self, value: Value) -> Option<Value> {
        self.number.get(value.index()).copied().flatten()
    }

    /// The numbers of the factors of a product, sorted, without constants of 1; `None` if a factor is not invariant.
    #[must_use]
    pub fn factors(&self, kernel: &Kernel, product: Value) -> Option<Vec<Value>> {
        let (mut open, mut factors) = (vec![product], Vec::new());
        while let Some(value) = open.pop() {
            match kernel.def_op(value) {
                Some(Op { kind: OpKind::Binary(BinOp::Mul), args, .. }) => open.extend(args),
                Some(_) if kernel.int_constant(value) == Some(1) => {}
                Some(_) | None => factors.push(self.of(value)?),
            }
        }
        factors.sort_unstable();
        Some(factors)
    }
}

/// The bits of a constant, which distinguish constants, since these have no operands.
fn bits(kind: &OpKind) -> u64 {
    let OpKind::Const(constant) = kind else { return 0 };
    match constant {
        Const::Int(_, value) => value.cast_unsigned(),
        Const::Float(_, value) => value.to_bits(),
    }
}

/// Whether the result depends only on the operands, and is the same in all programs.
const fn may_number(kind: &OpKind) -> bool {
    match kind {
        OpKind::Const(_)
        | OpKind::NumPrograms(_)
        | OpKind::Dim(_)
        | OpKind::Present
        | OpKind::Unary(_)
        | OpKind::Binary(_)
        | OpKind::Cmp(_)
        | OpKind::Select
        | OpKind::MulAdd
        | OpKind::Cast(_)
        | OpKind::Bitcast(_)
        | OpKind::Index(_)
        | OpKind::Slice(_)
        | OpKind::Shared
        | OpKind::Unflatten
        | OpKind::UnflattenGrouped(_)
        | OpKind::Ttg(TtgOp::Rematerialize) => true,
        OpKind::ProgramId(_)
        | OpKind::Iota(_)
        | OpKind::Splat(_)
        | OpKind::Reshape(_)
        | OpKind::Broadcast { .. }
        | OpKind::Permute(_)
        | OpKind::Interleave
        | OpKind::Split
        | OpKind::Cut { .. }
        | OpKind::Concat(_)
        | OpKind::Reduce(..)
        | OpKind::ArgReduce(..)
        | OpKind::ReduceWith(_)
        | OpKind::Scan(..)
        | OpKind::ScanWith(_)
        | OpKind::Mma
        | OpKind::Segment
        | OpKind::Load(..)
        | OpKind::Store(_)
        | OpKind::Get
        | OpKind::Set
        | OpKind::GatherRows { .. }
        | OpKind::ScatterRows
        | OpKind::Gather
        | OpKind::Scatter
        | OpKind::Atomic(_)
        | OpKind::AtomicTile(_)
        | OpKind::Fetch(_)
        | OpKind::CompareExchange
        | OpKind::RaggedCount { .. }
        | OpKind::RaggedTile { .. }
        | OpKind::Print(_)
        | OpKind::Assert(_)
        | OpKind::For(_)
        | OpKind::Loop
        | OpKind::If
        | OpKind::Yield
        | OpKind::Break(_)
        | OpKind::Continue(_)
        | OpKind::Return
        | OpKind::Ttg(_)
        | OpKind::Local(_)
        | OpKind::Region(_)
        | OpKind::Nv(_)
        | OpKind::Amd(_) => false,
    }
}

/// The parameter that a view is of.
#[must_use]
pub fn root(kernel: &Kernel, tensor: Value) -> Option<usize> {
    let mut at = tensor;
    loop {
        match kernel.value(at).def {
            Def::Param(p) => return Some(p),
            Def::BlockArg(..) => return None,
            Def::Result(op, _) => {
                let op = kernel.op(op);
                let view = matches!(op.kind, OpKind::Index(_) | OpKind::Slice(_) | OpKind::Segment | OpKind::Shared);
                at = *op.args.first().filter(|_| view)?;
            }
        }
    }
}

/// The tensor of which a source names a tile, possibly under a condition; the tensor itself if it is one.
#[must_use]
pub fn tensor_of(kernel: &Kernel, source: Value) -> Option<Value> {
    let mut at = source;
    while matches!(kernel.ty(at), Ty::Source(..)) {
        at = *kernel.def_op(at)?.args.first()?;
    }
    Some(at)
}

/// The name of a tensor for messages: the user's, or that of the parameter that a view is of.
#[must_use]
pub fn named(kernel: &Kernel, tensor: Value) -> String {
    match (kernel.def_op(tensor), root(kernel, tensor)) {
        (Some(op), Some(param)) if kernel.value(tensor).name.is_none() => {
            let name = kernel.display_name(kernel.param(param));
            if op.kind == OpKind::Shared { format!("`{name}`") } else { format!("a view of `{name}`") }
        }
        _ => format!("`{}`", kernel.display_name(tensor)),
    }
}
