//! The numbers of instructions in the loops of large matrix products, as docs/performance.md has them: none may grow.

use crate::kernels::products::Product;
use crate::launch::{emitted, machine};
use titan_amd::codegen::machine_ir::{Code, Inst};
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
    ([128, 128, 64], true, 166, 10),
    ([256, 256, 64], true, 243, 13),
    ([128, 128, 64], false, 231, 14),
    ([256, 256, 64], false, 307, 17),
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
