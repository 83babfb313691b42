//! The loops of large matrix products: how many instructions they have, as docs/performance.md says, and that loads are in flight while they
//! multiply.

use crate::kernels::attention::{attention, causal_attention};
use crate::kernels::products::Product;
use crate::launch::{emitted, machine};
use titan_amd::codegen::machine_ir::{Block, Code, Inst, Operand};
use titan_amd::isa::Operand as Isa;
use titan_core::driver::stages;
use titan_core::ir::Elem;

/// The instructions of a loop: all, those that multiply matrices, and waits.
fn counts(code: &Code) -> [usize; 3] {
    let inside = code.order.iter().filter(|block| code.blocks[block.index()].depth > 0);
    let names: Vec<&str> = inside.flat_map(|block| code.insts(*block)).map(Inst::name).collect();
    let count = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
    [names.len() - count("start"), count("v_mfma"), count("s_waitcnt")]
}

/// A product of `bf16`: its tile, whether the rows of Bᵀ are contiguous along K, and the most instructions and waits of its loop.
const LOOPS: [([u32; 3], bool, usize, usize); 4] = [
    ([128, 128, 64], true, 122, 5),
    ([256, 256, 64], true, 195, 6),
    ([128, 128, 64], false, 152, 6),
    ([256, 256, 64], false, 225, 7),
];

#[test]
fn loops_do_not_grow() {
    for (tile, along_k, most, most_waits) in LOOPS {
        let product = Product { along_k: [true, along_k], ..Product::of(Elem::Bf16, Elem::F32, tile) };
        let stages = stages(&product.kernel(), machine(), true, None).unwrap_or_else(|e| panic!("{product:?}: {e}"));
        let emitted = emitted(&stages.lanes).unwrap_or_else(|e| panic!("{product:?}: {e}"));
        let [all, multiply, waits] = counts(&emitted.code);
        let [m, n, k] = tile.map(|n| n as usize);
        assert_eq!(multiply, m * n * k / (16 * 16 * 16) / (stages.lanes.threads as usize / 64), "{product:?}");
        assert!(all <= most && waits <= most_waits, "{product:?}: {all} instructions, {waits} waits");
        // No register is kept in memory, and all waves of the program fit on a compute unit.
        let [_, vector, accumulation] = emitted.registers.map(u32::from);
        let waves = stages.lanes.threads / 64 / 4;
        let held = machine().waves_by_registers(vector.next_multiple_of(4) + accumulation);
        assert!(held >= waves, "{product:?}: {vector} and {accumulation} registers");
    }
}

/// Attention of 128 queries and heads of 128, 64 keys at a time: the most instructions and waits of the loop without masks, and of the one with
/// masks.
const ATTENTION: [(bool, [[usize; 2]; 2]); 2] = [(false, [[501, 17], [568, 17]]), (true, [[504, 17], [648, 17]])];

/// A block for NaN is outside of the loops.
#[test]
fn attention_does_not_grow() {
    for (causal, most) in ATTENTION {
        let kernel = if causal { causal_attention(128, 128) } else { attention(Elem::Bf16, 128, 128) };
        let stages = stages(&kernel, machine(), true, None).unwrap_or_else(|e| panic!("{e}"));
        let emitted = emitted(&stages.lanes).unwrap_or_else(|e| panic!("{e}"));
        let loops = loops(&emitted.code);
        assert_eq!(loops.len(), 2, "causal: {causal}");
        for (own, [most, most_waits]) in loops.iter().zip(most) {
            let [all, multiply, waits] = counts(own);
            assert_eq!(multiply, 2 * 128 * 64 * 128 / (16 * 16 * 16) / 4);
            assert!(all <= most && waits <= most_waits, "causal: {causal}, {all} instructions, {waits} waits");
        }
        let [_, vector, accumulation] = emitted.registers.map(u32::from);
        assert_eq!((stages.lanes.threads, accumulation), (256, 0), "{vector} and {accumulation} registers");
    }
}

/// The loops with matrix instructions, each as code of its own.
fn loops(code: &Code) -> Vec<Code> {
    let inside = |block: &Block| code.blocks[block.index()].depth > 0;
    let runs = code.order.chunk_by(|a, b| inside(a) == inside(b)).filter(|run| run.iter().all(inside));
    runs.map(|run| Code { order: run.to_vec(), ..code.clone() }).filter(|code| counts(code)[1] > 0).collect()
}

/// The instructions of loops, in order.
fn in_loop(code: &Code) -> Vec<&Inst> {
    let inside = code.order.iter().filter(|block| code.blocks[block.index()].depth > 0);
    inside.flat_map(|block| code.insts(*block)).collect()
}

/// Whether a wait is for vector memory: ISA §12.5, `S_WAITCNT`.
fn waits_for_memory(inst: &Inst) -> bool {
    match inst.operands.first() {
        Some(Operand::Isa(Isa::Imm(bits))) if inst.name() == "s_waitcnt" => bits & 0xc00f != 0xc00f,
        _ => false,
    }
}

#[test]
fn loads_are_in_flight_while_a_loop_multiplies() {
    for (tile, along_k, ..) in LOOPS {
        let product = Product { along_k: [true, along_k], ..Product::of(Elem::Bf16, Elem::F32, tile) };
        let stages = stages(&product.kernel(), machine(), true, None).unwrap_or_else(|e| panic!("{product:?}: {e}"));
        assert_eq!(
            stages.schedule.loops.first().map(|ahead| ahead.distance),
            Some(1),
            "{product:?}: {}",
            stages.schedule
        );
        let emitted = emitted(&stages.lanes).unwrap_or_else(|e| panic!("{product:?}: {e}"));
        let loops = in_loop(&emitted.code);
        let is = |prefix: &'static str| move |inst: &&Inst| inst.name().starts_with(prefix);
        let last = loops.iter().rposition(is("buffer_load")).expect("loads");
        let stored = loops.iter().position(is("ds_write")).expect("stores");
        assert!(last < stored, "{product:?}: all loads come before the first store");
        let between = &loops[last..stored];
        // All products are between them, and one wait: before the first store of what was loaded.
        assert_eq!(
            between.iter().filter(|inst| is("v_mfma")(inst)).count(),
            loops.iter().filter(|inst| is("v_mfma")(inst)).count()
        );
        let waits: Vec<usize> = (0..between.len()).filter(|at| waits_for_memory(between[*at])).collect();
        let multiplied = between.iter().rposition(is("v_mfma")).expect("products");
        assert!(waits.len() == 1 && waits[0] > multiplied, "{product:?}: {waits:?}, {multiplied}");
        // With one slot, the barrier that shows that others have read it is between them, too.
        let barriers = between.iter().filter(|inst| is("s_barrier")(inst)).count();
        assert_eq!(barriers, if stages.schedule.loops[0].slots == 1 { 2 } else { 1 }, "{product:?}");
    }
}
