//! Gates on what NVIDIA's assembler makes of kernels for sm_90a: how many instructions the loop of a product takes beside its
//! MMAs of warpgroups, how long a warp waits for the issue of them, and what must not be among them; and on what the assembler says: that
//! it runs MMAs one after the other, inserts waits, ignores `setmaxnreg` (its remarks C75..), or spills registers. Changes of the text that
//! are known to cost much are tried too, and must not pass. `foreign` applies the gates to a product that another compiler made.
//!
//! An MMA of 64x256x16 elements of 16 bits keeps the tensor cores of a quarter of a multiprocessor busy for 128 cycles.

use super::kernels::{self, Mask};
use super::lowered::compiled;
use super::{ptxas, reference, sass};
use sass::{Code, HGMMA, Instruction, UTMALDG, count};

const GEMM: &str = include_str!("kernels/gemm.tir");
const GEMM_WS: &str = include_str!("kernels/gemm_ws.tir");

const GROUPED: &str = include_str!("../emit/loops/grouped.tir");

/// The most that a loop with four MMAs may take.
pub(super) struct Limits {
    /// Instructions, what only pads counted.
    pub(super) instructions: usize,
    /// Cycles, of the 512 in which the tensor cores are busy, that a warp is kept from its next instruction.
    pub(super) stalled: u32,
    /// Registers that the loop of the role that copies makes uniform (`R2UR`).
    pub(super) made_uniform: usize,
}

/// Those of what is emitted.
const EMITTED: Limits = Limits { instructions: 35, stalled: 28 * 512 / 100, made_uniform: 7 };
/// Copies of boxes in the producer's loop: one of A, one of B.
const BOXES: usize = 2;

/// What is wrong with the code of a product of 128x256x64 elements; nothing, if the gates let it pass.
fn faults(code: &Code, limits: &Limits) -> Vec<String> {
    let mut found = Vec::new();
    let mut must = |holds: bool, what: String| {
        if !holds {
            found.push(what);
        }
    };
    match code.main_loop(&[HGMMA]) {
        None => must(false, "no loop has MMAs of warpgroups".to_owned()),
        Some(consumer) => {
            let mmas = count(consumer, &[HGMMA]);
            must(mmas == 4, format!("{mmas} MMAs in the loop"));
            must(consumer.len() <= limits.instructions, format!("{} instructions in the loop", consumer.len()));
            let stalled: u32 = consumer.iter().map(|i| sass::stall(*i)).sum();
            must(stalled <= limits.stalled, format!("stalled for {stalled} cycles"));
            let commits = consumer.iter().filter(|i| sass::commits(**i)).count();
            must(commits == 1, format!("{commits} groups"));
            let waits: Vec<u128> = consumer.iter().filter_map(|i| sass::left_in_flight(*i)).collect();
            must(waits == [1], format!("waits that leave {waits:?} groups in flight"));
            for (name, opcode) in sass::SLOW {
                must(count(consumer, &[opcode]) == 0, format!("{name} in the loop"));
            }
        }
    }
    match code.main_loop(&UTMALDG) {
        None => must(false, "no loop copies boxes".to_owned()),
        Some(producer) => {
            let copies = count(producer, &UTMALDG);
            must(copies == BOXES, format!("{copies} copies in the producer's loop"));
            must(!producer.iter().any(|i| sass::repeats(*i)), "the producer's loop repeats for each thread".to_owned());
            for (name, opcode) in sass::SLOW {
                let (n, most) = (count(producer, &[opcode]), if name == "R2UR" { limits.made_uniform } else { 0 });
                must(n <= most, format!("{n} {name} in the producer's loop"));
            }
        }
    }
    found
}

/// The code of a text; `None` without the assembler that the figures are of.
fn measured(text: &str) -> Option<Result<Code, String>> {
    let ptxas = ptxas::unless_absent()?;
    sass::is_measured(&ptxas).then(|| sass::assemble(&ptxas, "sm_90a", text))
}

/// What the gates find in a text: in what the assembler says, and in its code. `None` without the assembler that the figures are of.
pub(super) fn found(text: &str, limits: &Limits) -> Option<Vec<String>> {
    let made = measured(text)?;
    let mut all = said(&ptxas::unless_absent()?, text);
    match made {
        Ok(code) => all.extend(faults(&code, limits)),
        Err(said) => all.push(said),
    }
    Some(all)
}

/// What the assembler reports: remarks, and spills.
fn said(ptxas: &std::path::Path, text: &str) -> Vec<String> {
    match ptxas::assemble(ptxas, "sm_90a", text) {
        Err(said) => said.lines().filter(|line| line.contains("(C7")).map(str::to_owned).collect(),
        Ok(usages) => {
            let spills = usages.iter().filter(|usage| usage.spilled > 0);
            spills.map(|usage| format!("{} bytes are spilled", usage.spilled)).collect()
        }
    }
}

fn emitted(kernel: &str) -> String {
    String::from_utf8(compiled(kernel).code.payload).expect("PTX is text")
}

#[test]
fn loops_of_products_pass() {
    let brains = [GEMM, GEMM_WS].map(|kernel| kernel.replace("f16", "bf16"));
    for kernel in [GEMM, GEMM_WS, &brains[0], &brains[1]] {
        let text = emitted(kernel);
        assert!(text.contains(".reqnctapercluster 2") && text.contains("multicast::cluster"), "{text}");
        let Some(found) = found(&text, &EMITTED) else { return };
        assert!(found.is_empty(), "{found:?}\n{kernel}");
    }
}

/// Copies by the threads that multiply, and the fences from them, leave the MMAs of warpgroups as they are.
#[test]
fn copies_of_the_same_threads_pass() {
    let text = emitted(&super::why::roles_after_an_mma());
    let Some(ptxas) = ptxas::unless_absent() else { return };
    assert_eq!(said(&ptxas, &text), Vec::<String>::new());
    let Some(Ok(code)) = measured(&text) else { return };
    let looped = code.main_loop(&[HGMMA]).expect("a loop with MMAs of warpgroups");
    assert_eq!(count(looped, &[HGMMA]), 4);
    assert_eq!(looped.iter().filter(|i| sass::commits(**i)).count(), 1);
}

#[test]
fn a_product_by_hand_passes() {
    let Some(text) = reference::text("gemm_sm90a.ptx") else { return };
    // How many registers its other loop makes uniform is not demanded of it.
    let Some(found) = found(&text, &Limits { made_uniform: usize::MAX, ..EMITTED }) else { return };
    assert!(found.is_empty(), "{found:?}");
}

/// A product of rows that indices select: threads copy the rows, and one of them starts the bulk copies of the other tiles. What threads
/// copied is ordinary memory, so that a fence comes before the MMAs of each step. Tile, MMAs, instructions and stall cycles of the loop,
/// and asynchronous copies of a thread in the loop of the role that copies.
const ROWS: [([u32; 3], [usize; 4]); 2] = [([64, 64, 64], [4, 38, 94, 4]), ([128, 128, 64], [8, 50, 158, 8])];

/// The code of a kernel for this tile; `None` without the assembler.
fn with_tile(kernel: &str, tile: [u32; 3]) -> Option<Code> {
    let sizes = ["BM", "BN", "BK"].into_iter().zip(tile);
    let kernel = sizes.fold(kernel.to_owned(), |text, (name, n)| text.replace(name, &n.to_string()));
    Some(measured(&emitted(&kernel))?.unwrap_or_else(|said| panic!("{said}")))
}

/// The loop with the MMAs, which has so many, at most so many instructions and stall cycles, and one group in flight.
fn loop_within(code: &Code, tile: [u32; 3], [mmas, in_loop, stalled]: [usize; 3]) -> &[Instruction] {
    let consumer = code.main_loop(&[HGMMA]).expect("it has MMAs of warpgroups");
    let stalls: u32 = consumer.iter().map(|i| sass::stall(*i)).sum();
    let found = [count(consumer, &[HGMMA]), consumer.len(), stalls as usize];
    assert!(found[0] == mmas && found[1] <= in_loop && found[2] <= stalled, "{tile:?}: {found:?}");
    assert_eq!(consumer.iter().filter_map(|i| sass::left_in_flight(*i)).collect::<Vec<_>>(), [1], "{tile:?}");
    consumer
}

#[test]
fn loops_of_products_with_selected_rows_pass() {
    for ([bm, bn, bk], [mmas, in_loop, stalled, copies]) in ROWS {
        let Some(code) = with_tile(GROUPED, [bm, bn, bk]) else { return };
        let consumer = loop_within(&code, [bm, bn, bk], [mmas, in_loop, stalled]);
        let spills: usize = sass::SLOW
            .iter()
            .filter(|(name, _)| ["LDL", "STL", "R2UR"].contains(name))
            .map(|(_, op)| count(consumer, &[*op]))
            .sum();
        assert_eq!(spills, 0, "{bm}x{bn}x{bk}");
        let producer = code.main_loop(&[sass::LDGSTS]).expect("threads copy rows");
        assert_eq!([count(producer, &UTMALDG), count(producer, &[sass::LDGSTS])], [1, copies], "{bm}x{bn}x{bk}");
        assert!(!producer.iter().any(|i| sass::repeats(*i)), "the producer's loop repeats for each thread");
    }
}

/// Roles of one, two and four warps that copy by all their threads, and in bulk by one of them, which `elect.sync` chooses. Chosen by its
/// number, the assembler would not know that it is one.
#[test]
fn roles_that_copy_both_ways_do_not_repeat_bulk_copies() {
    use super::mixed::{Case, How, PLAIN, with_roles};
    for (how, copying) in [
        ([How::Gathered, How::Box], 1),
        ([How::Box, How::Gathered], 4),
        ([How::Rows(2), How::Columns(2)], 2),
        ([How::Ones, How::Box], 4),
    ] {
        let text = emitted(&with_roles(&Case { how, copying, ..PLAIN }));
        for (text, expected) in [(chosen_by_number(&text), true), (text, false)] {
            let Some(code) = measured(&text) else { return };
            let code = code.unwrap_or_else(|said| panic!("{said}"));
            assert_eq!(count(&code.instructions, &UTMALDG), 1, "{how:?}");
            assert_eq!(code.instructions.iter().any(|i| sass::repeats(*i)), expected, "{how:?}, {copying} warps");
        }
    }
}

/// A product of rows that lie one group after the other. Tile, and MMAs, instructions and stall cycles of the loop; the loop of the role that
/// copies has a box of each operand.
const IN_ORDER: [([u32; 3], [usize; 3]); 2] = [([64, 64, 64], [4, 32, 80]), ([128, 128, 64], [8, 44, 138])];

#[test]
fn loops_of_products_of_parts_pass() {
    for ([bm, bn, bk], [mmas, in_loop, stalled]) in IN_ORDER {
        let Some(code) = with_tile(&rows_in_order(), [bm, bn, bk]) else { return };
        let consumer = loop_within(&code, [bm, bn, bk], [mmas, in_loop, stalled]);
        for (name, opcode) in sass::SLOW {
            assert_eq!(count(consumer, &[opcode]), 0, "{bm}x{bn}x{bk}: {name} in the loop");
        }
        let producer = code.main_loop(&UTMALDG).expect("it copies boxes");
        assert_eq!([count(producer, &UTMALDG), count(producer, &[sass::LDGSTS])], [BOXES, 0], "{bm}x{bn}x{bk}");
        assert!(!producer.iter().any(|i| sass::repeats(*i)), "the producer's loop repeats for each thread");
    }
}

/// The grouped product, of rows that no indices select.
fn rows_in_order() -> String {
    let changes = [
        ("tensor<bf16>[TOK, K]", "tensor<bf16>[R, K]"),
        ("%rows = segment %row, %off, %e : tensor<i32, 1>", "%rows = segment %x, %off, %e : tensor<bf16, 2>"),
        ("%none = const -1 : i32", ""),
        ("%token = load_tile %rows[%m] or %none : tile<BMxi32>", ""),
        ("%at = mul %k, %depth : i32", ""),
        ("gather_rows %x[%token, %at]", "load_tile %rows[%m, %k]"),
    ];
    changes.iter().fold(GROUPED.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

/// A change of the text: what it is, what is replaced by what, and what the gates must find.
const CHANGES: [(&str, &str, &str, &str); 9] = [
    ("no group stays in flight", "wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 0;", "leave [0]"),
    ("no MMA of a loop is waited for", "wgmma.wait_group.sync.aligned 1;", "", "leave []"),
    ("a group for each MMA", ", 1, 1, 0, 0;\n", ", 1, 1, 0, 0;\n  wgmma.commit_group.sync.aligned;\n", "groups"),
    (
        "a fence between proxies",
        "wgmma.wait_group.sync.aligned 1;",
        "wgmma.wait_group.sync.aligned 1;\n  fence.proxy.async.shared::cta;",
        "FENCE.VIEW",
    ),
    (
        "a fence of the device",
        "wgmma.wait_group.sync.aligned 1;",
        "wgmma.wait_group.sync.aligned 1;\n  fence.acq_rel.gpu;",
        "MEMBAR",
    ),
    ("descriptors that are not uniform", ", 0x40000040;", ", %laneid;", "R2UR"),
    ("sums are read before the last MMAs end", "wgmma.wait_group.sync.aligned 0;", "", "(C7514)"),
    ("registers of MMAs without a fence", "wgmma.fence.sync.aligned;", "", "(C7519)"),
    (
        "too few registers for the sums",
        "setmaxnreg.inc.sync.aligned.u32 232;",
        "setmaxnreg.inc.sync.aligned.u32 128;",
        "(C7507)",
    ),
];

/// One thread of a warp is chosen by its number instead of `elect.sync`: the assembler does not know that it is one.
pub(super) fn chosen_by_number(text: &str) -> String {
    let elected =
        |line: &str| Some(line.trim().strip_prefix("elect.sync")?.split_once('|')?.1.strip_suffix(", -1;")?.to_owned());
    let line = |line: &str| match elected(line) {
        Some(to) => {
            format!("  {{ .reg .b32 %at; mov.u32 %at, %tid.x; and.b32 %at, %at, 31; setp.eq.u32 {to}, %at, 0; }}\n")
        }
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Where a role that copies begins, it has more values at a time than the registers that it keeps.
pub(super) fn crowded(text: &str, begin: &str, shared: &str) -> String {
    const VALUES: usize = 64;
    let loads: String = (0..VALUES)
        .map(|i| format!("  .reg .b32 %live{i}; ld.volatile.shared.b32 %live{i}, [{shared}+{}];\n", 4 * i))
        .collect();
    let stores: String = (0..VALUES)
        .map(|i| format!("  st.volatile.shared.b32 [{shared}+{}], %live{};\n", 4 * i, VALUES - 1 - i))
        .collect();
    text.replace(begin, &format!("{begin}\n  {{\n{loads}{stores}  }}"))
}

#[test]
fn changes_that_cost_do_not_pass() {
    let text = emitted(GEMM_WS);
    let mut changes: Vec<(&str, String, &str)> =
        CHANGES.iter().map(|(name, from, to, expected)| (*name, text.replace(from, to), *expected)).collect();
    changes.push(("a thread chosen by its number", chosen_by_number(&text), "repeats"));
    changes.push((
        "a role with too many values",
        crowded(&text, "setmaxnreg.dec.sync.aligned.u32 40;", "smem"),
        "bytes are spilled",
    ));
    for (name, changed, expected) in changes {
        assert_ne!(changed, text, "{name}");
        let Some(found) = found(&changed, &EMITTED) else { return };
        assert!(found.iter().any(|fault| fault.contains(expected)), "{name}: {found:?}");
    }
}

/// Attention whose roles keep the registers that they begin with: its MMAs run one after the other. With a few too few, it spills.
#[test]
fn attention_with_too_few_registers_does_not_pass() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    if !sass::is_measured(&ptxas) {
        return;
    }
    let text = emitted(&kernels::text([128; 3], Mask::Causal));
    assert_eq!(said(&ptxas, &text), Vec::<String>::new());
    let without: String = text.lines().filter(|line| !line.contains("setmaxnreg")).map(|l| format!("{l}\n")).collect();
    let fewer = text.replace("setmaxnreg.inc.sync.aligned.u32 232;", "setmaxnreg.inc.sync.aligned.u32 192;");
    for (changed, expected) in [(without, "(C7512)"), (fewer, "bytes are spilled")] {
        assert_ne!(changed, text);
        let said = said(&ptxas, &changed);
        assert!(said.iter().any(|line| line.contains(expected)), "{expected}: {said:?}");
    }
}
