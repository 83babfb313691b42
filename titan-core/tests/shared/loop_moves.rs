//! Schedules of loops by their dependences: random ones that keep all of them, and ones that violate one.
//!
//! Deliberately absent: what the rewriter and the checker say of them, and what the loops compute.

use std::collections::BTreeMap;
use titan_core::ir::{Kernel, OpId, Planned, Token, Ty, Value};
use titan_core::pipeline::modulo::{Dependence, Dependent};

/// A choice of a number below another one.
type Below<'r> = &'r mut dyn FnMut(usize) -> usize;

/// The stages of operations.
pub(crate) type Stages = BTreeMap<OpId, i64>;

/// The operations of a body that must have one stage: what acquires slots of a ring and fills them, and what waits for stages.
pub(crate) fn together(kernel: &Kernel, of: &Dependent) -> Vec<Vec<OpId>> {
    let mut groups: BTreeMap<(usize, bool), Vec<OpId>> = BTreeMap::new();
    for id in &of.ops {
        let op = kernel.op(*id);
        let mut used: Vec<Value> = op.args.iter().chain(&op.results).copied().collect();
        op.regions.iter().for_each(|arm| kernel.walk_block(*arm, &mut |_, op| used.extend(&op.args)));
        for value in used {
            let Ty::Token(token, pipe) = kernel.ty(value) else { continue };
            if matches!(token, Token::Slot | Token::Ready | Token::Stage) {
                groups.entry((pipe.index(), token == Token::Slot)).or_default().push(*id);
            }
        }
    }
    groups.into_values().collect()
}

/// Raises stages until all dependences are kept, and operations that must have one stage have one: this ends, since no cycle of dependences
/// has the distance 0.
pub(crate) fn settle(of: &Dependent, together: &[Vec<OpId>], stages: &mut Stages) {
    loop {
        let mut changed = false;
        for group in together {
            let most = group.iter().map(|id| stages[id]).max().unwrap_or(0);
            changed |= group.iter().any(|id| stages[id] < most);
            stages.extend(group.iter().map(|id| (*id, most)));
        }
        for edge in &of.dependences {
            let least = stages[&edge.from] - i64::from(edge.distance);
            let own = stages.get_mut(&edge.to).expect("an operation of the body");
            changed |= *own < least;
            *own = least.max(*own);
        }
        if !changed {
            return;
        }
    }
}

/// Random places in a body that keep the dependences, for these stages. Those of one dependence may change places instead; none if others do
/// not allow it.
pub(crate) fn places(
    of: &Dependent,
    stages: &Stages,
    below: Below<'_>,
    exchanged: Option<&Dependence>,
) -> Option<BTreeMap<OpId, u16>> {
    let mut open = of.ops.clone();
    let mut places = BTreeMap::new();
    while !open.is_empty() {
        let waits = |id: &OpId| {
            let kept = of.dependences.iter().filter(|edge| edge.to == *id && edge.from != *id);
            let ends = |edge: &Dependence| exchanged.is_some_and(|it| (it.from, it.to) == (edge.from, edge.to));
            let mut kept = kept.filter(|edge| !ends(edge));
            let here = |edge: &Dependence| stages[&edge.from] == stages[&edge.to] + i64::from(edge.distance);
            exchanged.is_some_and(|it| it.from == *id && open.contains(&it.to))
                || kept.any(|edge| here(edge) && open.contains(&edge.from))
        };
        let ready: Vec<usize> = (0..open.len()).filter(|at| !waits(&open[*at])).collect();
        if ready.is_empty() {
            return None;
        }
        let id = open.remove(ready[below(ready.len())]);
        places.insert(id, places.len() as u16);
    }
    Some(places)
}

/// The kernel with these stages and places in the body of one loop.
pub(crate) fn planned(kernel: &Kernel, stages: &Stages, places: &BTreeMap<OpId, u16>) -> Kernel {
    let mut made = kernel.clone();
    let least = stages.values().copied().min().unwrap_or(0);
    for (id, stage) in stages {
        let stage = u16::try_from(stage - least).expect("few stages");
        made.ops[id.index()].planned = Some(Planned { stage, order: places[id] });
    }
    made
}
