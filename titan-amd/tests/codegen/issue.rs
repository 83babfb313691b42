//! How long the loops of products and of attention take in the model of issue, in the order of the lane IR and in the one that they get: docs/performance.md
//! has the table.

use crate::kernels::attention::{attention, causal_attention};
use crate::kernels::products::Product;
use crate::launch::machine;
use crate::occupancy::{Loop, loops};
use crate::page;
use titan_amd::codegen::{emit, emit_in_given_order};
use titan_amd::isa::{Form, Inst, Operand, by_name};
use titan_amd::model::issue::{Issue, STALLS, Sharing, Stall, of_loop, once};
use titan_amd::model::units::{Engine, occupies};
use titan_core::driver::stages;
use titan_core::ir::Elem;
use titan_core::lane::Func;
use titan_core::verify::Verified;

/// What a loop takes.
#[derive(Clone, Debug)]
struct Row {
    issue: Issue,
    /// The clocks of the matrix unit.
    matrix: u64,
    instructions: usize,
    vectors: u16,
}

fn sharing(func: &Func) -> Sharing {
    Sharing { waves: u64::from(func.threads / 256), simds: 4 }
}

/// The loops of a kernel in both orders.
fn rows(kernel: &Verified) -> Vec<[Row; 2]> {
    let func = stages(kernel, machine(), true, None).unwrap_or_else(|e| panic!("{e}")).lanes;
    let sharing = sharing(&func);
    let [given, own] = [emit_in_given_order(&func, machine()), emit(&func, machine())].map(|emitted| {
        let emitted = emitted.unwrap_or_else(|e| panic!("{e}"));
        let of = |own: &Loop| {
            let insts: Vec<Inst> = own.values().cloned().collect();
            let matrix = insts.iter().filter_map(occupies).filter(|(engine, _)| *engine == Engine::Matrix);
            let matrix = sharing.waves * matrix.map(|(_, clocks)| clocks).sum::<u64>();
            Row { issue: of_loop(&insts, sharing), matrix, instructions: insts.len(), vectors: emitted.registers[1] }
        };
        loops(&emitted).iter().map(of).collect::<Vec<Row>>()
    });
    given.into_iter().zip(own).map(|(given, own)| [given, own]).collect()
}

fn row(name: &str, rows: &[Row; 2]) -> String {
    let both = |of: &dyn Fn(&Row) -> String| rows.each_ref().map(of).join(" → ");
    let share = |row: &Row| format!("{:.2}", row.matrix as f64 / row.issue.clocks as f64);
    let stall = |why: Stall| both(&|row| row.issue.stalls[why as usize].to_string());
    let columns = [
        both(&|row| row.issue.clocks.to_string()),
        both(&share),
        stall(Stall::Local),
        stall(Stall::Memory),
        stall(Stall::Barrier),
        both(&|row| row.instructions.to_string()),
        both(&|row| row.vectors.to_string()),
    ];
    format!("| {name} | {} |\n", columns.join(" | "))
}

const BEGIN: &str = "<!-- Made by `TITAN_BLESS=1 cargo xtask test -p titan-gpu-amd --test codegen issue`. -->\n\n";
const END: &str = "<!-- The end of the table of issue. -->\n";

#[test]
fn the_page_has_the_clocks_of_loops() {
    let product = |tile: [u32; 3], along_k: bool| {
        Product { along_k: [true, along_k], ..Product::of(Elem::Bf16, Elem::F32, tile) }.kernel()
    };
    let products = [([256, 256, 64], true), ([256, 256, 64], false), ([128, 128, 64], true), ([128, 128, 64], false)];
    let mut all: Vec<[Row; 2]> = products.iter().map(|(tile, k)| rows(&product(*tile, *k)).remove(0)).collect();
    all.extend(rows(&attention(Elem::Bf16, 128, 128)));
    all.extend(rows(&causal_attention(128, 128)));
    let mut table = "| loop | clocks | matrix ÷ clocks | stalls for the local data share | for memory | at barriers | instructions | vector registers |\n\
        |---|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    let names = [
        "256×256×64",
        "the same, rows of B along N",
        "128×128×64",
        "the same, rows of B along N",
        "attention",
        "its loop with masks",
        "the same, causal",
        "its loop with masks",
    ];
    assert_eq!(names.len(), all.len());
    for (name, rows) in names.iter().zip(&all) {
        table += &row(name, rows);
        let [given, own] = rows;
        assert!(own.issue.clocks < given.issue.clocks && own.instructions <= given.instructions, "{name}: {rows:?}");
    }
    page::told([BEGIN, END], &table);
}

fn inst(name: &str, operands: Vec<Operand>) -> Inst {
    Inst::new(by_name(name).first().expect("a row"), Form::Base, operands).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// A load of 16 bytes a lane, a wait for all but so many, an MMA of 4 passes.
fn load(to: u8) -> Inst {
    inst("ds_read_b128", vec![Operand::V(to, 4), Operand::V(0, 1)])
}

fn wait(local: i32) -> Inst {
    inst("s_waitcnt", vec![Operand::Imm(0xc07f | local << 8)])
}

fn multiply(to: u8) -> Inst {
    let (a, b) = (Operand::V(4, 2), Operand::V(6, 2));
    inst("v_mfma_f32_16x16x16_f16", vec![Operand::V(to, 4), a, b, Operand::V(to, 4)])
}

#[test]
fn the_model_counts_latencies_and_units() {
    let alone = Sharing { waves: 1, simds: 4 };
    // The load is served for 8 clocks for each SIMD unit and returns 64 later; then a wait and an MMA are issued.
    let insts = [load(4), wait(0), multiply(16)];
    let issue = of_loop(&insts, alone);
    assert_eq!((issue.clocks, issue.stalls[Stall::Local as usize]), (8 * 4 + 64 + 8, 8 * 4 + 64 - 4));
    // Two waves on a SIMD unit: one waits while the data of the other one are served.
    assert!(of_loop(&insts, Sharing { waves: 2, simds: 4 }).clocks < 2 * issue.clocks);
    // MMAs follow each other every 16 clocks, and leave three places between them.
    let many = [multiply(16), multiply(20), multiply(24), multiply(28)];
    assert_eq!(of_loop(&many, alone).clocks, 4 * 16);
    let between: Vec<Inst> = many.iter().flat_map(|own| [own.clone(), load(32), load(36)]).collect();
    assert_eq!(of_loop(&between[..2], Sharing { waves: 1, simds: 1 }).clocks, 16);
    // A wait for an older load is shorter than one for all.
    let [all, older] = [0, 1].map(|left| once(&[load(4), load(8), wait(left)], alone).clocks);
    assert_eq!((all, older), (2 * 32 + 64 + 4, 32 + 64 + 4));
    // Wait states take 4 clocks each.
    let idle = inst("s_nop", vec![Operand::Imm(3)]);
    let issue = of_loop(&[idle], alone);
    assert_eq!((issue.clocks, issue.stalls[Stall::States as usize]), (16, 16));
    // At a barrier, both waves of a SIMD unit wait for the later one.
    let barrier = inst("s_barrier", Vec::new());
    let insts = [multiply(16), multiply(20), barrier];
    assert!(of_loop(&insts, Sharing { waves: 2, simds: 4 }).stalls[Stall::Barrier as usize] > 0);
    assert_eq!(of_loop(&[], alone), Issue::default());
    assert_eq!(STALLS.map(|stall| stall as usize), [0, 1, 2, 3, 4]);
}
