//! Determines which values must be computed, and which are folded into their uses: constants are immediates, sums with a constant are
//! offsets of addresses, inverted conditions are inverted guards.

use titan_core::lane::op::OpKind;
use titan_core::lane::{Block, FloatUn, Func, IntBin, NvOp, Op, OpId, Ty, Value};

/// The values that are read after folding, and by what kind of operations.
#[derive(Clone, Debug)]
pub(super) struct Uses {
    values: Vec<bool>,
    /// Values whose bits matter, including the payload of a NaN, to some operation that reads them.
    bits: Vec<bool>,
    /// Values that are read by an operation other than an MMA.
    outside: Vec<bool>,
}

impl Uses {
    /// Determines the uses in a function.
    pub(super) fn of(func: &Func) -> Uses {
        let none = vec![false; func.values.len()];
        let mut uses = Uses { values: none.clone(), bits: none.clone(), outside: none };
        uses.block(func, func.body);
        uses
    }

    /// Uses follow definitions, so one backward pass knows all uses of a value at its definition. Values that loops carry
    /// are read by operations that are always kept.
    fn block(&mut self, func: &Func, block: Block) {
        for id in func.block(block).ops.iter().rev() {
            let op = func.op(*id);
            if !self.wanted(op) {
                continue;
            }
            for region in op.regions.iter().rev() {
                self.block(func, *region);
            }
            self.read(func, *id);
        }
    }

    fn read(&mut self, func: &Func, id: OpId) {
        let op = func.op(id);
        let numbers = reads_numbers(&op.kind);
        for (i, arg) in op.args.iter().enumerate() {
            let arg = if let Some(offset) = offset(&op.kind, i) {
                base(func, *arg, offset).0
            } else if Some(i) == guard_operand(op) {
                positive(func, *arg).0
            } else {
                *arg
            };
            self.values[arg.index()] = true;
            self.bits[arg.index()] |= !numbers;
            self.outside[arg.index()] |= !matches!(op.kind, OpKind::Mma(_));
        }
    }

    /// Whether an operation must be emitted.
    pub(super) fn wanted(&self, op: &Op) -> bool {
        !op.kind.is_removable() || op.results.iter().any(|r| self.values[r.index()])
    }

    /// Whether an operation reads a value's bits, and not only the number that it represents.
    pub(super) fn bits_matter(&self, value: Value) -> bool {
        self.bits[value.index()]
    }

    /// Whether only MMAs read a value.
    pub(super) fn only_matrices(&self, value: Value) -> bool {
        !self.outside[value.index()]
    }
}

/// The constant that an operation adds to an operand that is an address.
const fn offset(kind: &OpKind, operand: usize) -> Option<i32> {
    match (kind, operand) {
        (
            OpKind::Load { offset, .. }
            | OpKind::Store { offset, .. }
            | OpKind::Nv(
                NvOp::CopyAsync { offset, .. } | NvOp::LoadMatrix { offset, .. } | NvOp::StoreMatrix { offset, .. },
            ),
            0,
        ) => Some(*offset),
        (OpKind::Atomic { .. } | OpKind::CompareSwap(_), 0)
        | (OpKind::Nv(NvOp::CopyAsync { .. } | NvOp::BulkStore { .. }), 1)
        | (OpKind::Nv(NvOp::BulkLoad { .. }), 1 | 2) => Some(0),
        (
            OpKind::Nv(NvOp::CopyArrive { .. } | NvOp::MbarrierInit { .. })
            | OpKind::Nv(NvOp::MbarrierInvalidate { .. } | NvOp::MbarrierArrive { .. })
            | OpKind::Nv(NvOp::MbarrierArriveCluster { .. } | NvOp::MbarrierWait | NvOp::MbarrierExpect { .. })
            | OpKind::StoreRelease { .. }
            | OpKind::LoadAcquire
            | OpKind::SequenceWait,
            0,
        ) => Some(0),
        _ => None,
    }
}

/// The operand that is a condition whose inversion can be folded into a guard.
fn guard_operand(op: &Op) -> Option<usize> {
    if let OpKind::If | OpKind::Select | OpKind::FromPred = op.kind {
        return Some(0);
    }
    let masked = matches!(
        op.kind,
        OpKind::Load { masked: true, .. }
            | OpKind::Store { masked: true, .. }
            | OpKind::Atomic { masked: true, .. }
            | OpKind::Nv(NvOp::CopyAsync { masked: true, .. } | NvOp::BulkLoad { masked: true, .. })
            | OpKind::Nv(NvOp::MbarrierExpect { masked: true, .. } | NvOp::CopyArrive { masked: true })
            | OpKind::Nv(NvOp::MbarrierInit { masked: true, .. } | NvOp::MbarrierInvalidate { masked: true })
            | OpKind::Nv(NvOp::MbarrierArrive { masked: true, .. } | NvOp::MbarrierArriveCluster { masked: true })
            | OpKind::StoreRelease { masked: true }
    );
    // The operands of an operation that is missing here are all computed, and a guard that folds one is reported as a defect.
    if masked { op.args.len().checked_sub(1) } else { None }
}

/// Whether an operation depends only on the numbers of its operands, so that any NaN serves as well as another.
const fn reads_numbers(kind: &OpKind) -> bool {
    if let OpKind::FloatUn(un, _) = kind {
        return !matches!(un, FloatUn::Neg | FloatUn::Abs);
    }
    if let OpKind::Convert { to, .. } = kind {
        return to.is_int();
    }
    matches!(kind, OpKind::Float(..) | OpKind::Fma(_) | OpKind::FloatCmp(..))
}

/// An address as a base value and a constant offset; `offset` is added to it if the sum fits.
pub(super) fn base(func: &Func, value: Value, offset: i32) -> (Value, i32) {
    let (mut value, mut offset) = (value, offset);
    while let Some(op) = func.def_op(value) {
        let (OpKind::Int(IntBin::Add), [a, b]) = (&op.kind, op.args.as_slice()) else { break };
        let Some(more) = func.constant(*b).map(|bits| signed(func.ty(*b), bits)) else { break };
        let sum = i64::from(offset).checked_add(more).and_then(|sum| i32::try_from(sum).ok());
        let Some(sum) = sum else { break };
        (value, offset) = (*a, sum);
    }
    (value, offset)
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is meant")]
pub(super) const fn signed(ty: Ty, bits: u64) -> i64 {
    match ty {
        Ty::B64 => bits.cast_signed(),
        Ty::Pred | Ty::B16 | Ty::B32 => (bits as i32) as i64,
    }
}

/// A condition as another condition, and whether that one is inverted.
pub(super) fn positive(func: &Func, cond: Value) -> (Value, bool) {
    let (mut cond, mut negated) = (cond, false);
    while let Some(op) = func.def_op(cond) {
        let (OpKind::Int(IntBin::Xor), [a, b]) = (&op.kind, op.args.as_slice()) else { break };
        let inner = match (func.constant(*a), func.constant(*b)) {
            (None, Some(1)) => *a,
            (Some(1), None) => *b,
            (None | Some(_), _) => break,
        };
        (cond, negated) = (inner, !negated);
    }
    (cond, negated)
}
