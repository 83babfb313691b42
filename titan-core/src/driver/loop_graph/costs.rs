//! What operations of a loop cost: the units of the machine that they hold, and how long their results take.
//!
//! Deliberately absent: bank conflicts, registers of numbers, instructions for addresses.

use super::super::order::{is_in_flight, is_product};
use super::super::registers::registers;
use crate::ir::{Kernel, LocalOp, Op, OpId, OpKind, Token, TtgOp, Ty, UnOp, Value};
use crate::pipeline::modulo::{Dependent, Why};
use crate::plan::operands;
use crate::target::Target;

/// What an operation costs the warps of a partition.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    pub(super) unit: Option<&'static str>,
    /// Cycles for which it holds the unit.
    pub(super) held: i64,
    /// Cycles from the end of that to the last result.
    pub(super) latency: i64,
    /// Registers per thread of its results.
    pub(super) weight: i64,
}

/// What the operations of a group cost. They follow each other, and only results that are used outside of the group take registers beyond it.
pub(super) fn costs(kernel: &Kernel, of: &Dependent, ops: &[OpId], target: &Target) -> Vec<Cost> {
    let mut before = 0;
    let mut costs = Vec::new();
    for id in ops {
        let mut cost = cost(kernel, *id, target);
        let mut uses = of.dependences.iter().filter(|edge| edge.why == Why::Value && edge.from == *id).peekable();
        if uses.peek().is_some() && uses.all(|edge| ops.contains(&edge.to) && edge.distance == 0) {
            cost.weight = 0;
        }
        cost.latency += before;
        before += cost.held;
        costs.push(cost);
    }
    costs
}

pub(super) const MATRIX: &str = "matrix";
const SHARED: &str = "shared";
const LANES: &str = "lanes";
const SPECIAL: &str = "special";
pub(super) const UNITS: [&str; 4] = [MATRIX, SHARED, LANES, SPECIAL];

fn cost(kernel: &Kernel, id: OpId, target: &Target) -> Cost {
    let op = kernel.op(id);
    let timing = &target.timing;
    let warps = i64::from(kernel.laid_out.as_deref().map_or(1, |laid| laid.warps)).max(1);
    let partitions = i64::from(timing.partitions.max(1));
    // Warps are dealt to partitions evenly; the fullest one determines the time.
    let per_partition = (warps + partitions - 1) / partitions;
    let threads = i64::from(target.lanes) * warps;
    let of_values = |values: &[Value]| values.iter().map(|v| i64::from(registers(kernel, *v))).sum::<i64>();
    let weight = of_values(&op.results);
    let rate = |rate: u32| i64::from(rate.max(1));
    let ceil = |a: i64, b: i64| (a + b - 1) / b;
    let cost =
        |unit, held: i64, latency: u32| Cost { unit: Some(unit), held: held.max(1), latency: latency.into(), weight };
    if let Some([a, b, _]) = product(op) {
        let len = |value: Value| {
            kernel.ty(value).tile_shape().map_or(1, |shape| i64::try_from(shape.len()).unwrap_or(i64::MAX))
        };
        let results = op.results.first().map_or(1, |v| len(*v));
        // (m·k)·(k·n) / (m·n) is the square of k. The work of a type of 32 bits is twice that of one of 16.
        let k = ceil(len(a) * len(b), results.max(1)).isqrt().max(1);
        let macs = results * k * i64::from(kernel.ty(a).elem().bits()) / 16;
        return cost(MATRIX, ceil(macs, partitions * rate(timing.macs)), timing.matrix_latency);
    }
    let shared = |values: &[Value]| ceil(of_values(values) * threads * 4, rate(timing.shared_bytes));
    let lanes = |count: i64, each: u32| ceil(count * i64::from(target.lanes) * per_partition, rate(each));
    if !op.regions.is_empty() {
        // An estimate: both arms of a branch, and one iteration of each inner loop, whose number of iterations is not
        // known. What is nested in these operations is a part of their costs. Nesting is finite, so this recursion ends.
        let inside = op.regions.iter().flat_map(|region| &kernel.block(*region).ops);
        let held = inside.map(|id| self::cost(kernel, *id, target)).map(|cost| cost.held + cost.latency).sum();
        return cost(LANES, held, timing.lanes_latency);
    }
    if is_wait(kernel, id) || waited(op).is_some() || is_another_name(&op.kind) {
        return Cost::default();
    }
    if op.kind == OpKind::Local(LocalOp::Load) {
        return cost(SHARED, shared(&op.results), timing.shared_latency);
    }
    if op.kind == OpKind::Local(LocalOp::Store) {
        return cost(SHARED, shared(&op.args), timing.shared_latency);
    }
    if matches!(op.kind, OpKind::Local(LocalOp::Fold { .. })) {
        return cost(LANES, lanes(of_values(&op.args), timing.lanes), timing.shared_latency);
    }
    if weight == 0 || op.args.is_empty() {
        return Cost { weight, ..Cost::default() };
    }
    let special = matches!(op.kind, OpKind::Unary(f) if is_special(f));
    if special {
        cost(SPECIAL, lanes(weight, timing.special), timing.special_latency)
    } else {
        cost(LANES, lanes(weight, timing.lanes), timing.lanes_latency)
    }
}

/// Whether an operation gives registers other names, or makes constants.
const fn is_another_name(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Splat(_)
            | OpKind::Iota(_)
            | OpKind::Broadcast { .. }
            | OpKind::Permute(_)
            | OpKind::Reshape(_)
            | OpKind::Local(LocalOp::Convert)
    )
}

/// The tiles that an operation multiplies, and what it adds their product to.
pub(super) fn product(op: &Op) -> Option<[Value; 3]> {
    match op.args[..] {
        [a, b, sum] if is_product(op) || is_in_flight(op) => Some([a, b, sum]),
        _ => operands(op),
    }
}

/// The product in flight that an operation waits for.
pub(super) fn waited(op: &Op) -> Option<Value> {
    op.args.first().copied().filter(|_| op.kind == OpKind::Ttg(TtgOp::ComputeWait))
}

/// Whether an operation waits for a stage of a ring.
pub(super) fn is_wait(kernel: &Kernel, id: OpId) -> bool {
    kernel.op(id).args.iter().any(|v| matches!(kernel.ty(*v), Ty::Token(Token::Ready, _)))
}

/// Whether the unit for special functions computes it.
const fn is_special(f: UnOp) -> bool {
    match f {
        UnOp::Exp
        | UnOp::Exp2
        | UnOp::Ln
        | UnOp::Log2
        | UnOp::Sqrt
        | UnOp::Rsqrt
        | UnOp::Recip
        | UnOp::Sin
        | UnOp::Cos
        | UnOp::Tanh
        | UnOp::Sigmoid
        | UnOp::Erf => true,
        UnOp::Neg
        | UnOp::Abs
        | UnOp::Not
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Trunc
        | UnOp::Round
        | UnOp::RoundTiesEven
        | UnOp::IsNan
        | UnOp::CountOnes
        | UnOp::LeadingZeros => false,
    }
}
