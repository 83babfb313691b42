//! Copies that are divided: the checker of expanded loops, which shares no code with the rewriter, refuses mistakes in what is made of a loop that loads
//! the tiles of the next iteration.

use super::products::Product;
use crate::launch::machine;
use titan_core::driver::stages;
use titan_core::ir::{Block, Def, Elem, Kernel, LocalOp, OpId, OpKind, Pred, TtgOp, Value, ValueData};
use titan_core::pipeline::modulo;

fn all(kernel: &Kernel, wanted: impl Fn(&OpKind) -> bool) -> Vec<OpId> {
    let mut found = Vec::new();
    kernel.walk(&mut |id, op| found.extend(wanted(&op.kind).then_some(id)));
    found
}

/// The block of an operation, and its place there.
fn place(kernel: &Kernel, id: OpId) -> (Block, usize) {
    let blocks = (0..kernel.blocks.len()).map(Block::new);
    let at = |block: Block| Some((block, kernel.block(block).ops.iter().position(|op| *op == id)?));
    blocks.into_iter().find_map(at).expect("it is in a block")
}

/// The mistakes of one loop, with what is wrong.
fn mistakes(made: &Kernel) -> Vec<(&'static str, Kernel)> {
    let mut mutants = Vec::new();
    let fetches = all(made, |kind| *kind == OpKind::Local(LocalOp::Fetch { guarded: true }));
    for id in &fetches {
        let mut mutant = made.clone();
        mutant.ops[id.index()].kind = OpKind::Local(LocalOp::Fetch { guarded: false });
        mutant.ops[id.index()].args.pop();
        mutants.push(("a fetch for an iteration that may not exist", mutant));
        let condition = made.def_op(made.op(*id).args[1]).map(|op| op.kind.clone());
        assert_eq!(condition, Some(OpKind::Cmp(Pred::Lt)));
        let by = all(made, |kind| *kind == OpKind::Cmp(Pred::Lt));
        let by = by.into_iter().find(|cmp| made.op(*cmp).results[0] == made.op(*id).args[1]).expect("a comparison");
        let mut mutant = made.clone();
        mutant.ops[by.index()].kind = OpKind::Cmp(Pred::Le);
        mutants.push(("a fetch for one iteration more", mutant));
        let mut mutant = made.clone();
        let (block, at) = place(&mutant, *id);
        let copy = OpId::new(mutant.ops.len());
        let op = mutant.op(*id).clone();
        mutant.ops.push(op);
        let again = Value::new(mutant.values.len());
        let data = mutant.value(made.op(*id).results[0]).clone();
        mutant.values.push(ValueData { def: Def::Result(copy, 0), ..data });
        mutant.ops[copy.index()].results = vec![again];
        mutant.blocks[block.index()].ops.insert(at, copy);
        mutants.push(("a fetch that is executed twice", mutant));
    }
    for pair in fetches.chunks(2) {
        let mut mutant = made.clone();
        let [a, b] = [pair[0], pair[1]].map(|id| made.op(id).args[0]);
        mutant.ops[pair[0].index()].args[0] = b;
        mutant.ops[pair[1].index()].args[0] = a;
        mutants.push(("the tiles of two tensors exchanged", mutant));
    }
    for id in all(made, |kind| matches!(kind, OpKind::Ttg(TtgOp::AsyncProduce { .. }))) {
        let mut mutant = made.clone();
        mutant.ops[id.index()].args.swap(1, 2);
        mutants.push(("tiles in each other's place in a stage", mutant));
    }
    // The branch that stores in the loop, in front of the first load from the stage that it overwrites.
    let guards = all(made, |kind| *kind == OpKind::If);
    let stores = *guards.last().expect("a guard");
    let (body, at) = place(made, stores);
    let first = made.block(body).ops.iter().position(|id| made.op(*id).kind == OpKind::Local(LocalOp::Load));
    let mut mutant = made.clone();
    let moved = mutant.blocks[body.index()].ops.remove(at);
    mutant.blocks[body.index()].ops.insert(first.expect("loads"), moved);
    mutants.push(("a slot is overwritten before it is read", mutant));
    mutants
}

#[test]
fn mistakes_in_divided_copies_are_refused() {
    let mut tried = 0;
    for tile in [[64, 64, 64], [128, 128, 64]] {
        let product = Product::of(Elem::Bf16, Elem::F32, tile);
        let stages = stages(&product.kernel(), machine(), true, None).unwrap_or_else(|e| panic!("{product:?}: {e}"));
        assert!(!stages.schedule.unmasked && stages.schedule.loops.len() == 1, "{}", stages.schedule);
        assert_eq!(modulo::check(&stages.scheduled, &stages.loops), Ok(()));
        // With two slots, the slot that is filled is another one than that which is read.
        let one_slot = stages.schedule.loops[0].slots == 1;
        for (what, mutant) in mistakes(&stages.loops) {
            if what == "a slot is overwritten before it is read" && !one_slot {
                continue;
            }
            assert!(modulo::check(&stages.scheduled, &mutant).is_err(), "{tile:?}: {what}");
            tried += 1;
        }
    }
    assert!(tried >= 30, "{tried} mistakes");
}
