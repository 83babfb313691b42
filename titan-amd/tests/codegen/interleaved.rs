//! List scheduling: kernels are no worse than in the order of the lane IR, which the checker shows to be the same code; loops multiply while they load.

use crate::kernels::attention::{attention, causal_attention};
use crate::kernels::products::Product;
use crate::launch::{emitted, machine};
use crate::mutants::crowded;
use crate::nests::functions;
use titan_amd::codegen::check::order::check;
use titan_amd::codegen::machine_ir::{Block, Code, Inst, Kind, Operand};
use titan_amd::codegen::{Emitted, emit_in_given_order};
use titan_amd::isa::{Access, Operand as Isa, Unit};
use titan_core::driver::stages;
use titan_core::ir::Elem;
use titan_core::lane::Func;
use titan_core::verify::Verified;

fn lanes(kernel: &Verified) -> Func {
    stages(kernel, machine(), true, None).unwrap_or_else(|e| panic!("{e}")).lanes
}

fn product(tile: [u32; 3], along_k: bool) -> Func {
    lanes(&Product { along_k: [true, along_k], ..Product::of(Elem::Bf16, Elem::F32, tile) }.kernel())
}

/// Kernels in the order of the lane IR, and in the one that they get.
fn both(func: &Func) -> [Emitted; 2] {
    [emit_in_given_order(func, machine()), emitted(func)].map(|emitted| emitted.unwrap_or_else(|e| panic!("{e}")))
}

fn subjects() -> Vec<Func> {
    let nests = functions(test_depth::cases(200, 20)).map(|(_, func)| func);
    let products =
        [([64, 64, 32], true), ([64, 64, 32], false), ([128, 128, 64], true)].map(|(tile, k)| product(tile, k));
    let attention = [lanes(&attention(Elem::Bf16, 64, 64)), lanes(&causal_attention(64, 64))];
    nests.chain([30, 200, 300].map(crowded)).chain(products).chain(attention).collect()
}

/// The instructions of a run of blocks of one depth, with waits and wait states.
fn runs(code: &Code) -> Vec<usize> {
    let depth = |block: &Block| code.blocks[block.index()].depth;
    let is = |inst: &&Inst| matches!(inst.kind, Kind::Row { .. });
    let count = |run: &[Block]| run.iter().map(|block| code.insts(*block).iter().filter(is).count()).sum();
    code.order.chunk_by(|a, b| depth(a) == depth(b)).map(count).collect()
}

fn copies(code: &Code) -> usize {
    code.order.iter().flat_map(|block| code.insts(*block)).filter(|inst| inst.added).count()
}

#[test]
fn no_kernel_gets_worse() {
    let (mut changed, mut kept) = (0, 0);
    for func in subjects() {
        let [given, own] = both(&func);
        assert_eq!(check(&given.selected, &own.selected), Ok(()), "{}", func.name);
        let waves = |emitted: &Emitted| {
            let [_, vector, accumulation] = emitted.registers.map(u32::from);
            machine().waves_by_registers(vector.next_multiple_of(4) + accumulation)
        };
        assert!(waves(&own) >= waves(&given), "{}: {:?}, {:?}", func.name, given.registers, own.registers);
        assert!(copies(&own.allocated) <= copies(&given.allocated), "{}", func.name);
        let (before, after) = (runs(&given.code), runs(&own.code));
        assert!(before.len() == after.len() && before.iter().zip(&after).all(|(a, b)| b <= a), "{before:?}, {after:?}");
        if given.selected == own.selected {
            assert_eq!(given.object, own.object, "{}", func.name);
            kept += 1;
        } else {
            changed += 1;
        }
    }
    assert!(changed > 9 && kept > 0, "{changed} are in another order, {kept} in the given one");
}

#[test]
fn the_order_is_the_same_each_time() {
    for func in [product([128, 128, 64], true), lanes(&causal_attention(64, 64))] {
        let [a, b] = [emitted(&func), emitted(&func)].map(|emitted| emitted.unwrap_or_else(|e| panic!("{e}")));
        assert!(a.object == b.object && a.selected == b.selected, "{}", func.name);
    }
}

fn unit(inst: &Inst) -> Option<Unit> {
    match &inst.kind {
        Kind::Row { row, .. } => Some(row.unit),
        Kind::Start | Kind::Rematerialized => None,
    }
}

/// The numbers of the local data share that the waits of a loop leave in flight: ISA §12.5, `S_WAITCNT`.
fn left(insts: &[&Inst]) -> Vec<i32> {
    let count = |inst: &&&Inst| match inst.operands.first() {
        Some(Operand::Isa(Isa::Imm(bits))) if inst.name() == "s_waitcnt" => Some(bits >> 8 & 15),
        _ => None,
    };
    insts.iter().filter_map(|inst| count(&inst)).filter(|left| *left < 15).collect()
}

/// In both orders, the loads of fragments among matrix instructions, and the waits that leave some of them in flight.
#[test]
fn fragments_are_loaded_while_a_loop_multiplies() {
    for along_k in [true, false] {
        let [given, own] = both(&product([256, 256, 64], along_k)).map(|emitted| {
            let code = &emitted.code;
            let inside = code.order.iter().filter(|block| code.blocks[block.index()].depth > 0);
            let insts: Vec<&Inst> = inside.flat_map(|block| code.insts(*block)).collect();
            let pairs = insts
                .windows(2)
                .filter(|pair| unit(pair[0]) == Some(Unit::Xdl) && pair[1].name().starts_with("ds_read"));
            (pairs.count(), left(&insts).into_iter().filter(|left| *left > 0).count())
        });
        assert!(given.0 <= 1 && own.0 >= 12, "{given:?}, {own:?}");
        assert!(own.1 >= given.1 && own.1 >= 2, "{given:?}, {own:?}");
    }
}

/// Whether the second instruction reads what the first one writes.
fn flows(a: &Inst, b: &Inst) -> bool {
    let parts = |inst: &Inst, writes: bool| -> Vec<Operand> {
        let own =
            inst.accesses().filter(|(access, _)| (*access != Access::Read) == writes || *access == Access::ReadWrite);
        own.map(|(_, operand)| *operand).collect()
    };
    let read = parts(b, false);
    parts(a, true).iter().any(|operand| matches!(operand, Operand::Part(_)) && read.contains(operand))
}

/// Mistakes of the scheduler: an instruction before one whose result it reads, loads before the barrier behind which they come, and the branch before
/// the end.
#[test]
fn mistakes_of_the_order_are_found() {
    let mut refused = [0; 3];
    for func in [product([128, 128, 64], true), product([64, 64, 32], false), lanes(&causal_attention(64, 64))] {
        let [given, own] = both(&func).map(|emitted| emitted.selected);
        for block in &own.order {
            let insts = own.insts(*block);
            let moved = |from: usize, to: usize| {
                let mut mutant = own.clone();
                let inst = mutant.blocks[block.index()].insts.remove(from);
                mutant.blocks[block.index()].insts.insert(to, inst);
                mutant
            };
            for at in 1..insts.len() {
                let before = &insts[at - 1];
                let kind = if flows(before, &insts[at]) && before.kind != Kind::Start {
                    0
                } else if before.name() == "s_barrier" && unit(&insts[at]) == Some(Unit::Lds) {
                    1
                } else if insts[at].target().is_some() {
                    2
                } else {
                    continue;
                };
                let result = check(&given, &moved(at, at - 1));
                assert!(result.is_err(), "{}: {} and {}", func.name, before.name(), insts[at].name());
                refused[kind] += 1;
            }
        }
    }
    assert!(refused[0] > 50 && refused[1] > 2 && refused[2] > 5, "{refused:?}");
}
