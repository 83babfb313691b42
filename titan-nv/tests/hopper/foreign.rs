//! The gates on the loops of products, on a product that another compiler made: Triton, from a kernel for warpgroups with a role that copies
//! (`foreign.py`). It passes, with figures of its own, and its product is exact; changes of its text that are known to cost do not pass.
//! Nothing that Triton makes is kept. Without it the tests say that they are skipped.

#[path = "../triton/make.rs"]
mod make;

use super::gates::{Limits, chosen_by_number, crowded, found};
use super::ptxas;
use std::path::Path;
use std::sync::OnceLock;
use titan_core::num;
use titan_nv::emu::{Completion, DevicePtr, EmuError, Launch, Memory, Module, Options, Param, Schedule};
use titan_nv::tma::{Element, Swizzle, TensorMap};

/// What its loop takes, which has two barriers of all threads that multiply; other loops of products have none.
const LIMITS: Limits = Limits { instructions: 51, stalled: 159, made_uniform: 0 };

/// What Triton makes: PTX with one blank between words, without comments; bytes of shared memory; warps.
struct Product {
    text: String,
    shared: u32,
    warps: u32,
}

fn product() -> Option<&'static Product> {
    static MADE: OnceLock<Option<Product>> = OnceLock::new();
    let make = || make::make("the product of another compiler", "triton-hopper", "tests/hopper/foreign.py");
    MADE.get_or_init(|| make().map(|folder| read(&folder))).as_ref()
}

fn read(folder: &Path) -> Product {
    let file = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the script writes it");
    let code =
        |line: &str| line.split("//").next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = file("product.ptx").lines().map(code).filter(|line| !line.is_empty()).collect::<Vec<_>>();
    let numbers: Vec<u32> = file("product.txt").split_whitespace().map(|n| n.parse().expect("a number")).collect();
    Product { text: lines.join("\n") + "\n", shared: numbers[0], warps: numbers[1] }
}

/// The text with other lines for some.
fn lines(text: &str, mut change: impl FnMut(&str) -> Option<String>) -> String {
    text.lines().map(|line| change(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

#[test]
fn a_product_of_another_compiler_passes() {
    let Some(product) = product() else { return };
    let Some(found) = found(&product.text, &LIMITS) else { return };
    assert!(found.is_empty(), "{found:?}\n{}", product.text);
    // The figures are no larger than they have to be.
    for (limits, fault) in [
        (Limits { instructions: LIMITS.instructions - 1, ..LIMITS }, "instructions in the loop"),
        (Limits { stalled: LIMITS.stalled - 1, ..LIMITS }, "stalled for"),
    ] {
        let found = super::gates::found(&product.text, &limits).expect("ptxas was there");
        assert!(found.len() == 1 && found[0].contains(fault), "{found:?}");
    }
    // What costs nothing: the assembler ends a group where there is a wait for groups. The emulator finds this mistake.
    let found = super::gates::found(&without_commit(&product.text), &LIMITS).expect("ptxas was there");
    assert!(found.is_empty(), "{found:?}");
}

/// The text whose MMAs of the loop are in no group.
fn without_commit(text: &str) -> String {
    let changed = text.replace(&format!("{COMMIT}{WAIT}"), WAIT);
    assert_ne!(changed, text);
    changed
}

/// Rows in boxes of 128 bytes, and what Triton passes beside a tensor map: extents and strides.
fn tensor(ptr: DevicePtr, [rows, cols]: [u64; 2], rows_in_box: u32) -> Vec<Param> {
    let map = TensorMap::tiled(Element::Bf16, ptr.address(), &[cols, rows], &[cols * 2], &[64, rows_in_box]);
    let map = TensorMap { swizzle: Swizzle::B128, ..map };
    let extents = [rows, cols].map(|n| Param::I32(n as i32));
    [&[Param::Bytes(map.to_bytes().to_vec())], &extents[..], &[Param::U64(cols), Param::U64(1)]].concat()
}

/// Small whole numbers, whose sums are exact.
fn whole(n: u64, seed: u64) -> Vec<f32> {
    let mut rng = titan_sim::engine::Rng::new(seed);
    (0..n).map(|_| (rng.next_u64() >> 61) as f32 - 3.0).collect()
}

fn upload(memory: &mut Memory, name: &str, values: &[f32]) -> DevicePtr {
    let bytes: Vec<u8> = values.iter().flat_map(|x| num::bf16_from_f32(*x).to_le_bytes()).collect();
    memory.upload(name, &bytes)
}

/// Neither the sizes nor the number of steps fit the tiles and the slots.
const SIZE: [u64; 3] = [200, 264, 328];

/// What a text makes of matrices: the bytes of the product.
fn run(text: &str, product: &Product, [a, b]: &[Vec<f32>; 2], options: &Options) -> Result<Vec<u8>, EmuError> {
    let ([m, n, k], mut memory) = (SIZE, Memory::new());
    let (pa, pb) = (upload(&mut memory, "a", a), upload(&mut memory, "b", b));
    let pc = memory.alloc_named("c", (m * n * 2) as usize);
    let mut params = [tensor(pa, [m, k], 128), tensor(pb, [n, k], 256), tensor(pc, [m, n], 128)].concat();
    // The last two are memory of the programs, which this kernel has none of.
    params.extend([Param::I32(k as i32), Param::Ptr(DevicePtr::NULL), Param::Ptr(DevicePtr::NULL)]);
    let launch = Launch {
        grid: [m.div_ceil(128) as u32, n.div_ceil(256) as u32, 1],
        block: [product.warps * 32, 1, 1],
        dynamic_shared: product.shared,
        cluster: None,
        params: &params,
    };
    Module::parse(text)?.entry("product")?.run(&launch, &mut memory, options)?;
    memory.read(pc, (m * n * 2) as usize)
}

/// The text without exchanges of registers: the warp that copies and those beside it, which have nothing to do, execute different
/// instructions for them, but all warps of a warpgroup must execute the same one (PTX ISA, `setmaxnreg`).
fn with_all_registers(text: &str) -> String {
    lines(text, |line| line.starts_with("setmaxnreg.").then(String::new))
}

#[test]
fn the_product_of_another_compiler_is_exact() {
    let Some(product) = product() else { return };
    let [m, n, k] = SIZE;
    let inputs = [whole(m * k, 1), whole(n * k, 2)];
    let dot = |row: u64, col: u64| -> f32 {
        let rows = [&inputs[0][(row * k) as usize..], &inputs[1][(col * k) as usize..]];
        (0..k as usize).map(|i| rows[0][i] * rows[1][i]).sum()
    };
    let want: Vec<u8> = (0..m * n).flat_map(|at| num::bf16_from_f32(dot(at / n, at % n)).to_le_bytes()).collect();
    let text = with_all_registers(&product.text);
    let open = without_commit(&text);
    let mut open_fails = false;
    for (completion, schedule) in [
        (Completion::Late, Schedule::InTurn),
        (Completion::Early, Schedule::InTurn),
        (Completion::Seeded(7), Schedule::Seeded(7)),
    ] {
        let options = Options { completion, schedule, sanitize: true, ..Options::default() };
        let got = run(&text, product, &inputs, &options).unwrap_or_else(|e| panic!("{completion:?}: {e}"));
        assert!(got == want, "{completion:?}");
        open_fails |= run(&open, product, &inputs, &options).ok() != Some(want.clone());
    }
    assert!(open_fails, "MMAs that are in no group are waited for");
}

const WAIT: &str = "wgmma.wait_group.sync.aligned 1;\n";
const COMMIT: &str = "wgmma.commit_group.sync.aligned;\n";

/// What is inserted behind the wait of the loop: what it is, the instructions, and what the gates must find.
const IN_LOOP: [(&str, &str, &str); 8] = [
    ("a fence between proxies", "fence.proxy.async;", "FENCE.VIEW in the loop"),
    ("a fence between proxies, for shared memory", "fence.proxy.async.shared::cta;", "FENCE.VIEW in the loop"),
    ("a fence of the block", "membar.cta;", "MEMBAR in the loop"),
    ("a fence of the device", "fence.acq_rel.gpu;", "MEMBAR in the loop"),
    ("a second wait", "wgmma.wait_group.sync.aligned 0;", "leave [1, 0]"),
    ("one more barrier", "bar.sync 0, 256;", "instructions in the loop"),
    (
        "an array in local memory",
        "{ .local .b32 %array[8]; .reg .b32 %i; .reg .b64 %p, %o; mov.u32 %i, %clock; and.b32 %i, %i, 7;
         mul.wide.u32 %o, %i, 4; mov.b64 %p, %array; add.s64 %p, %p, %o; st.local.b32 [%p], %i;
         ld.local.b32 %i, [%array+8]; st.volatile.shared.b32 [global_smem+213104], %i; }",
        "STL in the loop",
    ),
    (
        "a chain of multiplications",
        "{ .reg .b32 %i; mov.u32 %i, %clock; mul.lo.u32 %i, %i, %i; mul.lo.u32 %i, %i, %i; mul.lo.u32 %i, %i, %i;
         st.volatile.shared.b32 [global_smem+213104], %i; }",
        "stalled for",
    ),
];

/// What is replaced by what.
const REPLACED: [(&str, &str, &str, &str); 9] = [
    ("no group stays in flight", WAIT, "wgmma.wait_group.sync.aligned 0;\n", "leave [0]"),
    ("two groups stay in flight", WAIT, "wgmma.wait_group.sync.aligned 2;\n", "leave [2]"),
    ("no MMA of a loop is waited for", WAIT, "", "leave []"),
    ("a group for each MMA", ", 1, 1, 0, 0;\n", ", 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n", "5 groups"),
    ("a group twice", COMMIT, "wgmma.commit_group.sync.aligned;\nwgmma.commit_group.sync.aligned;\n", "2 groups"),
    ("sums are read before the last MMAs end", "wgmma.wait_group.sync.aligned 0;\n", "", "(C7514)"),
    ("registers of MMAs without a fence", "wgmma.fence.sync.aligned;\n", "", "(C7519)"),
    (
        "too few registers for the sums",
        "setmaxnreg.dec.sync.aligned.u32 232;",
        "setmaxnreg.dec.sync.aligned.u32 136;",
        "(C7507)",
    ),
    ("too few registers for the kernel", ".maxnreg 168\n", ".maxnreg 152\n", "(C7602)"),
];

/// Changes that are more than one replacement.
fn rewritten(text: &str) -> Vec<(&'static str, String, &'static str)> {
    let copies = |line: &str| line.contains("cp.async.bulk.tensor.2d.shared::cta.global");
    let twice = lines(text, |line| copies(line).then(|| format!("{line}\n{line}")));
    // Descriptors of operands and addresses of tensor maps that are not the same in all threads, for all that the assembler knows.
    let descriptors = lines(text, |line| {
        let to = line.strip_prefix("or.b64 ")?.strip_suffix(", 4611686293305294848;")?.split(',').next()?;
        Some(format!(
            "{line}\n{{ .reg .b32 %l; .reg .b64 %w; mov.u32 %l, %laneid; cvt.u64.u32 %w, %l; xor.b64 {to}, {to}, %w; }}"
        ))
    });
    let maps = lines(text, |line| {
        let (head, rest) = line.split_once("[%rd").filter(|_| copies(line))?;
        let (number, tail) = rest.split_once(',')?;
        Some(format!(
            "{{ .reg .b32 %l; .reg .b64 %w; mov.u32 %l, %laneid; cvt.u64.u32 %w, %l; add.s64 %w, %w, %rd{number};\n{head}[%w,{tail} }}"
        ))
    });
    // The first sum of each MMA is added to behind it.
    let sums = lines(text, |line| {
        let sum = line.strip_prefix("wgmma.mma_async")?.split_once('{')?.1.split(',').next()?.to_owned();
        Some(format!("{line}\nadd.f32 {sum}, {sum}, 0f3F800000;"))
    });
    vec![
        ("boxes copied twice", twice, "4 copies"),
        ("descriptors that are not uniform", descriptors, "R2UR"),
        ("tensor maps that are not uniform", maps, "R2UR in the producer's loop"),
        ("sums are used between MMAs", sums, "(C75"),
        ("too few registers for values beside the sums", kept_over_the_loop(text), "bytes are spilled"),
        ("a thread chosen by its number", chosen_by_number(text), "repeats"),
        (
            "a role with too many values",
            crowded(text, "setmaxnreg.inc.sync.aligned.u32 40;", "global_smem"),
            "bytes are spilled",
        ),
    ]
}

/// Values that are read before the first MMAs and used after the last ones, with fewer registers than they need.
fn kept_over_the_loop(text: &str) -> String {
    const VALUES: usize = 100;
    let each = |line: fn(usize) -> String| (0..VALUES).map(line).collect::<String>();
    let begin = "setmaxnreg.dec.sync.aligned.u32 232;\n";
    let end = "wgmma.wait_group.sync.aligned 0;\n";
    let loads = each(|i| format!("ld.volatile.shared.b32 %kept{i}, [global_smem+{}];\n", 4 * i));
    let stores = each(|i| format!("st.volatile.shared.b32 [global_smem+{}], %kept{i};\n", 4 * (VALUES - 1 - i)));
    text.replace(".reg .b16", &format!("{}.reg .b16", each(|i| format!(".reg .b32 %kept{i};\n"))))
        .replace(begin, &format!("setmaxnreg.dec.sync.aligned.u32 168;\n{loads}"))
        .replace(end, &format!("{end}{stores}"))
}

#[test]
fn changes_of_it_that_cost_do_not_pass() {
    let Some(product) = product() else { return };
    let text = &product.text;
    let mut all = rewritten(text);
    all.extend(IN_LOOP.map(|(what, add, expected)| (what, text.replace(WAIT, &format!("{WAIT}{add}\n")), expected)));
    all.extend(REPLACED.map(|(what, from, to, expected)| (what, text.replace(from, to), expected)));
    let mut missed = Vec::new();
    for (what, changed, expected) in &all {
        assert_ne!(changed, text, "{what}");
        let Some(found) = found(changed, &LIMITS) else { return };
        if !found.iter().any(|fault| fault.contains(expected)) {
            missed.push(format!("{what}: {found:?}"));
        }
    }
    ptxas::say(&format!("{} changes that cost, {} not found", all.len(), missed.len()));
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
