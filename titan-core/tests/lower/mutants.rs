//! Barrier programs with one mistake of the lowering in them: a wait, an arrival, a count, a parity, a slot, a barrier or a claim
//! that is gone or not the right one. The verifier refuses each, or the program is still right.

use crate::filetests::kernels;
use crate::launch::target;
use std::collections::BTreeMap;
use titan_core::ir::FreeBy;
use titan_core::ir::{BinOp, Kernel, NvOp, OpId, OpKind, RegionOp, TtgOp, Value};
use titan_core::lower::barrier_program;
use titan_core::plan::{Plan, plan};
use titan_core::verify::{barrier_program as check, verify};

/// The program without an operation that has no results.
fn without(program: &Kernel, id: OpId) -> Kernel {
    let mut mutant = program.clone();
    mutant.blocks.iter_mut().for_each(|block| block.ops.retain(|op| *op != id));
    mutant
}

/// The program with another operation in a place.
fn with(program: &Kernel, id: OpId, kind: OpKind) -> Kernel {
    let mut mutant = program.clone();
    mutant.ops[id.index()].kind = kind;
    mutant
}

fn with_arg(program: &Kernel, id: OpId, at: usize, arg: Value) -> Kernel {
    let mut mutant = program.clone();
    mutant.ops[id.index()].args[at] = arg;
    mutant
}

/// The program with an operation behind the one that follows it.
fn later(program: &Kernel, id: OpId) -> Option<Kernel> {
    let mut mutant = program.clone();
    for block in &mut mutant.blocks {
        let Some(at) = block.ops.iter().position(|op| *op == id) else { continue };
        if at + 2 >= block.ops.len() {
            return None;
        }
        block.ops.swap(at, at + 1);
        return Some(mutant);
    }
    None
}

/// The slot after this one, if the program has it.
fn next_slot(program: &Kernel, slot: Value) -> Option<Value> {
    program.ops.iter().find_map(|op| {
        let [_, _, sum] = op.args[..] else { return None };
        let sum = program.def_op(sum).filter(|_| op.kind == OpKind::Select)?;
        let next = sum.kind == OpKind::Binary(BinOp::Add) && sum.args.first() == Some(&slot);
        op.results.first().copied().filter(|_| next)
    })
}

/// Another constant of the program.
fn another(program: &Kernel, than: Value) -> Option<Value> {
    let number = program.int_constant(than)?;
    program.ops.iter().find_map(|op| {
        let value = op.results.first().copied().filter(|_| matches!(op.kind, OpKind::Const(_)))?;
        (program.int_constant(value)? != number).then_some(value)
    })
}

/// What may be wrong at one operation.
fn mutants_of(program: &Kernel, id: OpId) -> Vec<(&'static str, Kernel)> {
    let op = program.op(id);
    let mut all = Vec::new();
    let gone = |name| (name, without(program, id));
    match op.kind {
        OpKind::Nv(nv) => match nv {
            NvOp::WaitParity => {
                all.push(gone("a wait for a parity is gone"));
                let parity = program.def_op(op.args[1]);
                if let Some(minus) = parity.filter(|p| p.kind == OpKind::Binary(BinOp::Sub)) {
                    all.push(("a wait for the other parity", with_arg(program, id, 1, minus.args[1])));
                }
                if let Some(rem) = parity.filter(|p| p.kind == OpKind::Binary(BinOp::Rem)) {
                    all.push(("a wait for a round, not its parity", with_arg(program, id, 1, rem.args[0])));
                }
            }
            NvOp::SequenceWait => {
                all.push(gone("a wait for a counter is gone"));
                let slot = program.def_op(op.args[0]).map(|at| at.args[1]);
                all.extend(slot.map(|slot| ("a wait for a slot, not a round", with_arg(program, id, 1, slot))));
            }
            NvOp::SequenceStore => {
                all.push(gone("a counter is not stored"));
                let before = program.def_op(op.args[1]).filter(|sum| sum.kind == OpKind::Binary(BinOp::Add));
                all.extend(before.map(|sum| ("a counter one too low", with_arg(program, id, 1, sum.args[0]))));
            }
            NvOp::SequenceInit => all.push(gone("counters are not initialised")),
            NvOp::Arrive { arrivals } => {
                all.push(gone("an arrival is gone"));
                all.push((
                    "an arrival of fewer",
                    with(program, id, OpKind::Nv(NvOp::Arrive { arrivals: arrivals - 1 })),
                ));
                all.push((
                    "an arrival of more",
                    with(program, id, OpKind::Nv(NvOp::Arrive { arrivals: arrivals + 1 })),
                ));
                all.extend(later(program, id).map(|mutant| ("an arrival after its claim", mutant)));
            }
            NvOp::CpAsyncArrive { arrivals, noinc } => {
                all.push(gone("an arrival of copies is gone"));
                let kind = |noinc, arrivals| OpKind::Nv(NvOp::CpAsyncArrive { noinc, arrivals });
                all.push(("an arrival of copies that raises the count", with(program, id, kind(!noinc, arrivals))));
                all.push(("an arrival of copies of fewer", with(program, id, kind(noinc, arrivals - 1))));
                all.push((
                    "copies that threads arrive for at once",
                    with(program, id, OpKind::Nv(NvOp::Arrive { arrivals })),
                ));
            }
            NvOp::MbarrierInit { count } => {
                all.push(gone("a barrier is not initialised"));
                all.push(("a count too high", with(program, id, OpKind::Nv(NvOp::MbarrierInit { count: count + 1 }))));
                all.push(("a count too low", with(program, id, OpKind::Nv(NvOp::MbarrierInit { count: count - 1 }))));
            }
            NvOp::MbarrierAt => {
                let next = next_slot(program, op.args[1]);
                all.extend(next.map(|next| ("the barrier of the next slot", with_arg(program, id, 1, next))));
                let other = program.ops.iter().find_map(|o| {
                    let alloc = o.results.first().copied().filter(|v| *v != op.args[0])?;
                    matches!(o.kind, OpKind::Nv(NvOp::MbarrierAlloc { .. })).then_some(alloc)
                });
                all.extend(other.map(|other| ("a barrier of another kind or ring", with_arg(program, id, 0, other))));
            }
            NvOp::Commit { .. } => all.push(gone("a group is not closed")),
            NvOp::WaitGroup { group, n, read } => {
                all.push(gone("a wait for groups is gone"));
                all.push((
                    "a wait that leaves one more group",
                    with(program, id, OpKind::Nv(NvOp::WaitGroup { group, n: n + 1, read })),
                ));
                all.extend(later(program, id).map(|mutant| ("a wait for groups, one later", mutant)));
            }
            NvOp::BarrierSync { id: named, threads } => {
                all.push(gone("a barrier between warps is gone"));
                let fewer = NvOp::BarrierSync { id: named, threads: threads - 32 };
                all.push(("a barrier between fewer warps", with(program, id, OpKind::Nv(fewer))));
                all.extend(later(program, id).map(|mutant| ("a barrier between warps, one later", mutant)));
            }
            NvOp::WarpSync => {
                all.push(gone("a barrier within a warp is gone"));
                all.extend(later(program, id).map(|mutant| ("a barrier within a warp, one later", mutant)));
            }
            _ => {}
        },
        OpKind::Region(RegionOp::At) => {
            let next = next_slot(program, op.args[1]);
            all.extend(next.map(|next| ("the part of the next slot", with_arg(program, id, 1, next))));
        }
        OpKind::Ttg(TtgOp::Claim(..)) => {
            all.push(gone("a claim is gone"));
            let next = next_slot(program, op.args[1]);
            all.extend(next.map(|next| ("a claim of the next slot", with_arg(program, id, 1, next))));
        }
        OpKind::Select if op.args.len() == 3 && program.int_constant(op.args[1]) == Some(0) => {
            all.push(("a slot that does not wrap", with_arg(program, id, 1, op.args[2])));
        }
        OpKind::Cmp(_) => {
            let other = another(program, op.args[1]);
            all.extend(other.map(|other| ("a number compared with another constant", with_arg(program, id, 1, other))));
        }
        _ => {}
    }
    all
}

#[test]
fn mistakes_of_the_lowering_are_refused() {
    let mut found: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
    for (file, kernel) in kernels() {
        let Ok(verified) = verify(kernel) else { continue };
        if verified.pipes.is_empty() {
            continue;
        }
        for free in [FreeBy::Mbarrier, FreeBy::Sequence] {
            let plan = Plan { free, ..plan(&verified, &target(32), true) };
            let Ok(program) = barrier_program(&verified, &plan) else { continue };
            for id in (0..program.ops.len()).map(OpId::new) {
                for (name, mutant) in mutants_of(&program, id) {
                    let entry = found.entry(name).or_default();
                    entry.0 += 1;
                    if check(&mutant).is_ok() {
                        entry.1.push(format!("{file}: {} {id:?} {:?}", verified.sig.name, program.op(id).kind));
                    }
                }
            }
        }
    }
    for (name, (all, passed)) in &found {
        println!("{name}: {all}, accepted {}", passed.len());
        passed.iter().take(3).for_each(|p| println!("    {p}"));
    }
    panic!();
}
