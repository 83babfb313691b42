//! Attention for sm_90a: what NVIDIA's assembler makes of its loop, in which the softmax of a step runs beside the second MMA of the
//! step before; and mistakes in its code, which the emulator finds.

use super::lowered::compiled;
use super::{kernels, ptxas, sass};
use kernels::Mask;
use titan_core::driver::{Ahead, Schedule, Stages, follow};
use titan_core::launch::abi::{self, GpuArg};
use titan_core::launch::report;
use titan_core::num;
use titan_core::text;
use titan_core::verify::verify;
use titan_nv::Machine;
use titan_nv::emu::Schedule as Turns;
use titan_nv::emu::{Completion, Launch, Memory, Module, Options, Param};
use titan_nv::tma::TensorMap;
use titan_sim::engine::Rng;

/// What a loop may cost: queries, head, keys a step; MMAs, cycles in which they keep the tensor cores of a quarter of a multiprocessor busy,
/// instructions, and cycles that a warp is kept from its next instruction.
struct Limit {
    sizes: [u32; 3],
    mask: Mask,
    mmas: usize,
    instructions: usize,
    stalled: u32,
}

/// Of a loop written by hand for heads of 128 without a mask: 445 instructions, stalled for 928 cycles. The first row may cost 1.15 times
/// that.
const LIMITS: [Limit; 6] = [
    Limit { sizes: [128, 128, 128], mask: Mask::None, mmas: 16, instructions: 446, stalled: 928 * 115 / 100 },
    Limit { sizes: [128, 128, 128], mask: Mask::Tail, mmas: 16, instructions: 446, stalled: 990 },
    Limit { sizes: [128, 128, 128], mask: Mask::Causal, mmas: 16, instructions: 446, stalled: 995 },
    Limit { sizes: [128, 64, 128], mask: Mask::None, mmas: 12, instructions: 405, stalled: 890 },
    Limit { sizes: [128, 32, 128], mask: Mask::None, mmas: 10, instructions: 381, stalled: 850 },
    Limit { sizes: [128, 96, 128], mask: Mask::None, mmas: 14, instructions: 448, stalled: 990 },
];

fn emitted(sizes: [u32; 3], mask: Mask) -> Stages {
    let made = compiled(&kernels::text(sizes, mask));
    assert!(made.schedule.shifted, "{}", made.schedule);
    made
}

fn text_of(made: &Stages) -> String {
    String::from_utf8(made.code.payload.clone()).expect("PTX is text")
}

/// What is wrong with a loop; nothing, if the gates let it pass.
fn faults(code: &sass::Code, limit: &Limit) -> Vec<String> {
    let Some(looped) = code.loop_with(&sass::ALL_HGMMA, limit.mmas) else {
        return vec![format!("no loop has {} MMAs", limit.mmas)];
    };
    let mut found = Vec::new();
    let stalled: u32 = looped.iter().map(|i| sass::stall(*i)).sum();
    ptxas::say(&format!(
        "attention {:?} {:?}: {} instructions, stalled for {stalled}",
        limit.sizes,
        limit.mask,
        looped.len()
    ));
    if looped.len() > limit.instructions || stalled > limit.stalled {
        found.push(format!("{} instructions, stalled for {stalled} cycles", looped.len()));
    }
    let commits = looped.iter().filter(|i| sass::commits(**i)).count();
    let waits: Vec<u128> = looped.iter().filter_map(|i| sass::left_in_flight(*i)).collect();
    if commits != 2 || waits != [1, 0] {
        found.push(format!("{commits} groups, waits that leave {waits:?} of them in flight"));
    }
    for (name, opcode) in sass::SLOW {
        if sass::count(looped, &[opcode]) != 0 {
            found.push(format!("{name} in the loop"));
        }
    }
    let boxes =
        code.main_loop(&sass::UTMALDG).map(|l| (sass::count(l, &sass::UTMALDG), l.iter().any(|i| sass::repeats(*i))));
    // A panel is a box: of 64 elements, or as many as divide the head evenly; of K, and of V.
    let head = limit.sizes[1];
    let wanted = (2 * head / (1 << head.trailing_zeros().min(6))) as usize;
    if boxes != Some((wanted, false)) {
        found.push(format!("copies of boxes, and whether they repeat for each thread: {boxes:?}"));
    }
    found
}

#[test]
fn loops_of_attention_pass() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    if !sass::is_measured(&ptxas) {
        return;
    }
    for limit in LIMITS {
        let text = text_of(&emitted(limit.sizes, limit.mask));
        let usages = ptxas::assemble(&ptxas, "sm_90a", &text).unwrap_or_else(|e| panic!("{e}"));
        assert!(usages.iter().all(|usage| usage.spilled == 0), "{usages:?}");
        let code = sass::assemble(&ptxas, "sm_90a", &text).unwrap_or_else(|e| panic!("{e}"));
        let found = faults(&code, &limit);
        assert!(found.is_empty(), "{:?} {:?}: {found:?}", limit.sizes, limit.mask);
    }
}

#[test]
fn loops_that_do_not_overlap_do_not_pass() {
    let Some(ptxas) = ptxas::unless_absent() else { return };
    if !sass::is_measured(&ptxas) {
        return;
    }
    let text = text_of(&emitted(LIMITS[0].sizes, LIMITS[0].mask));
    let changed = text.replace("wgmma.wait_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned 0;");
    let code = sass::assemble(&ptxas, "sm_90a", &changed).unwrap_or_else(|e| panic!("{e}"));
    let found = faults(&code, &LIMITS[0]);
    assert!(found.iter().any(|fault| fault.contains("in flight")), "{found:?}");
}

/// Small tiles for the emulator: queries, head, keys a step.
const SMALL: [u32; 3] = [64, 16, 16];
/// Slots of the rings there, of keys and of values. With as many of keys, the copies of keys would wait for a release of values behind the
/// wait for the MMA that reads the keys, and could not be too early.
const SLOTS: [u32; 2] = [2, 3];
/// Keys: more steps than the rings have slots, the last one ragged, and ending in both parities.
const KEYS: [usize; 2] = [16 * 9 + 5, 16 * 12 + 5];

/// The kernel with few slots, and masks in every iteration: in a loop of its own the last tile is the only one, behind which releases and
/// parities have no effect.
fn small() -> Stages {
    let kernel =
        verify(text::parse(&kernels::text(SMALL, Mask::Tail)).expect("a kernel").remove(0)).expect("a right one");
    let machine = Machine::from_name("sm_90a").expect("it is known");
    let chosen = emitted(SMALL, Mask::Tail).schedule;
    let loops = chosen.loops.iter().zip(SLOTS).map(|(ahead, slots)| Ahead { slots, ..ahead.clone() }).collect();
    follow(&kernel, machine, &Schedule { loops, unmasked: false, bodies: Vec::new(), ..chosen })
        .unwrap_or_else(|e| panic!("{}", e.message))
}

/// The number of queries, the length of a head, and the number of keys.
type Sizes = [usize; 3];

/// Queries, keys and values, each `[1, 1, rows, head]`: scores are small whole numbers. Then the output and the scale; and the values.
fn tensors(memory: &mut Memory, [queries, head, keys]: Sizes) -> (Vec<GpuArg>, Vec<Vec<f64>>) {
    let (mut rng, mut values) = (Rng::new(5), Vec::new());
    let mut tensor = |name: &str, rows: usize, sparse: bool| {
        let one =
            |_| if sparse && !rng.next_u64().is_multiple_of(4) { 0.0 } else { (rng.next_u64() >> 62) as f64 - 1.0 };
        values.push((0..rows * head).map(one).collect::<Vec<f64>>());
        let bytes: Vec<u8> =
            values[values.len() - 1].iter().flat_map(|x| num::f16_from_f64(*x).to_le_bytes()).collect();
        let at = memory.upload(name, &bytes);
        let all = (rows * head) as i64;
        let (extents, strides) = (vec![1, 1, rows as i32, head as i32], vec![all, all, head as i64, 1]);
        GpuArg::Tensor { address: at.address(), extents, strides }
    };
    let rows = [("q", queries, true), ("k", keys, true), ("v", keys, false), ("out", queries, false)];
    let mut all: Vec<GpuArg> = rows.map(|(name, rows, sparse)| tensor(name, rows, sparse)).into();
    all.push(GpuArg::Scalar(titan_core::ir::Const::Float(titan_core::ir::Elem::F32, 1.0)));
    (all, values)
}

/// The output of some code of the kernel, or why it did not run.
pub(super) fn run(made: &Stages, text: &str, sizes: Sizes, options: &Options) -> Result<Vec<u8>, String> {
    let mut memory = Memory::new();
    let (args, _) = tensors(&mut memory, sizes);
    let told = memory.upload("report", &vec![0; 4 * (report::RECORDS + 64)]);
    let lanes = &made.lanes;
    let block = abi::pack(&lanes.slots, &args, told.address());
    let (at, _) = abi::offsets(&lanes.slots);
    let words = lanes.slots.iter().zip(at).map(|(slot, at)| Param::Bytes(block[at..at + slot.bytes()].to_vec()));
    let mut params: Vec<Param> = words.collect();
    for map in &lanes.maps {
        let map = TensorMap::of_argument(map, &args[map.param as usize]).map_err(|e| e.to_string())?;
        params.push(Param::Bytes(map.to_bytes().to_vec()));
    }
    let launch = Launch {
        grid: [1; 3],
        block: [lanes.threads, 1, 1],
        dynamic_shared: lanes.shared_bytes,
        cluster: None,
        params: &params,
    };
    let entry = made.code.config.iter().find(|(name, _)| name == "entry").map_or("", |(_, entry)| entry);
    let module = Module::parse(text).map_err(|e| e.to_string())?;
    module.entry(entry).and_then(|kernel| kernel.run(&launch, &mut memory, options)).map_err(|e| e.to_string())?;
    let GpuArg::Tensor { address, .. } = args[3] else { return Err("no tensor".to_owned()) };
    memory.read(titan_nv::emu::DevicePtr::from_address(address), sizes[0] * sizes[1] * 2).map_err(|e| e.to_string())
}

pub(super) fn options() -> Vec<Options> {
    let of = |completion, schedule| Options { completion, schedule, max_steps: 1 << 20, ..Options::default() };
    let orders = [
        of(Completion::Late, Turns::InTurn),
        of(Completion::Early, Turns::InTurn),
        of(Completion::Seeded(3), Turns::Seeded(4)),
    ];
    let watched = orders.clone().map(|order| Options { sanitize: true, ..order });
    watched.into_iter().chain(orders).collect()
}

fn without(lines: &[&str], gone: std::ops::Range<usize>) -> String {
    [&lines[..gone.start], &lines[gone.end..]].concat().join("\n")
}

fn with(lines: &[&str], at: usize, line: &str) -> String {
    let mut lines = lines.to_vec();
    lines[at] = line;
    lines.join("\n")
}

/// The line with its last number changed.
fn with_number(line: &str, change: impl Fn(u32) -> u32) -> Option<String> {
    let body = line.strip_suffix(';')?;
    let (before, number) = body.rsplit_once([' ', ','])?;
    let number: u32 = number.parse().ok()?;
    Some(format!("{before} {};", change(number))).filter(|_| before.ends_with(',') || before.contains("wait_group"))
}

/// Every mistake of one line: what is wrong, and the text with it.
fn mistakes(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let mut say = |what: &str, text: String| all.push((format!("{what}, line {}: {line}", at + 1), text));
        let next = lines.get(at + 1).copied().unwrap_or_default();
        let behind = |wanted: &str| lines[at + 1..].iter().position(|l| l.contains(wanted)).unwrap_or(usize::MAX);
        if line.contains("wgmma.wait_group") {
            say("a wait for MMAs is gone", without(&lines, at..at + 1));
            say("a wait leaves one more MMA", with(&lines, at, &with_number(line, |n| n + 1).expect("a number")));
        } else if line.contains("wgmma.commit_group") {
            say("a group is not committed", without(&lines, at..at + 1));
        } else if line.contains("wgmma.fence") {
            // Another one behind it does the same, and an MMA that begins anew on shared memory reads no registers.
            let anew = lines[at..].iter().find(|l| l.contains("mov.pred")).is_some_and(|l| l.ends_with(", 0;"));
            if behind("wgmma.mma_async") < behind("wgmma.fence") && !anew {
                say("a fence of registers is gone", without(&lines, at..at + 1));
            }
        } else if line.contains("fence.proxy.async") {
            say("a fence between proxies is gone", without(&lines, at..at + 1));
        } else if line.contains("mbarrier.try_wait") && next.contains("bra") {
            say("a wait for a barrier is gone", without(&lines, at..at + 2));
            let other = line.rsplit_once(", ").map(|(before, _)| [format!("{before}, 0;"), format!("{before}, 1;")]);
            for parity in other.into_iter().flatten().filter(|other| other != line) {
                say("a constant parity", with(&lines, at, &parity));
            }
        } else if line.contains("mbarrier.arrive.expect_tx") {
            say("bytes are not announced", without(&lines, at..at + 1));
            say("too many bytes", with(&lines, at, &with_number(line, |n| n + 16).expect("a number")));
            say("too few bytes", with(&lines, at, &with_number(line, |n| n - 16).expect("a number")));
        } else if line.contains("mbarrier.arrive") && behind("wgmma.") < usize::MAX {
            // The last release is not waited for.
            say("an arrival is gone", without(&lines, at..at + 1));
            let wait = lines[..at].iter().rposition(|l| l.contains("wgmma.wait_group")).expect("a wait");
            let mut early = lines.clone();
            early[wait..=at].rotate_left(1);
            say("a release before the wait", early.join("\n"));
        } else if line.contains("mbarrier.init") {
            say("a count too high", with(&lines, at, &with_number(line, |n| n + 1).expect("a number")));
            say("a count too low", with(&lines, at, &with_number(line, |n| n - 1).expect("a number")));
        } else if line.contains("cp.async.bulk.tensor") {
            say("a copy is gone", without(&lines, at..at + 1));
        }
    }
    all
}

#[test]
fn mistakes_in_attention_are_found() {
    let made = small();
    let text = text_of(&made);
    let right =
        KEYS.map(|keys| run(&made, &text, [64, 16, keys], &Options::default()).unwrap_or_else(|e| panic!("{e}")));
    let differs = |text: &str| {
        let mut runs =
            options().into_iter().flat_map(|options| KEYS.iter().zip(&right).map(move |r| (options.clone(), r)));
        runs.any(|(options, (keys, right))| run(&made, text, [64, 16, *keys], &options).as_ref() != Ok(right))
    };
    assert!(!differs(&text));
    let mistakes = mistakes(&text);
    assert!(mistakes.len() >= 40, "{}", mistakes.len());
    // In the quick depth, each mistake in one of the lines where it can be made.
    let kind = |(what, _): &(String, String)| what.split(", line").next().unwrap_or_default().to_owned();
    let mistakes = test_depth::sample_each(mistakes, 1, kind);
    let missed: Vec<&str> = mistakes.iter().filter(|(_, text)| !differs(text)).map(|(what, _)| &**what).collect();
    ptxas::say(&format!("{} mistakes in attention, {} not found", mistakes.len(), missed.len()));
    assert!(missed.is_empty(), "of {}:\n{}", mistakes.len(), missed.join("\n"));
}

/// What attention gives, from the values of its tensors.
fn reference([queries, head, keys]: Sizes, mask: Mask) -> Vec<f64> {
    let (_, values) = tensors(&mut Memory::new(), [queries, head, keys]);
    let [q, k, v] = [0, 1, 2].map(|i| &values[i]);
    let mut out = Vec::new();
    for row in 0..queries {
        let last = if matches!(mask, Mask::Causal) { (row + 1 + keys).saturating_sub(queries).min(keys) } else { keys };
        let score = |key: usize| (0..head).map(|i| q[row * head + i] * k[key * head + i]).sum::<f64>().exp2();
        let scores: Vec<f64> = (0..last).map(score).collect();
        let sum: f64 = scores.iter().sum();
        out.extend((0..head).map(|i| (0..last).map(|key| scores[key] * v[key * head + i]).sum::<f64>() / sum));
    }
    out
}

/// Tiles with more rows than two warpgroups have at a time, or whose rows two warpgroups do not share evenly: whether roles or threads copy,
/// the results are right, and nothing is taken back.
#[test]
fn tall_tiles_of_queries_are_right() {
    for sizes in [[192, 64, 64], [192, 128, 32], [256, 128, 64], [384, 64, 64]] {
        let text = kernels::text(sizes, Mask::Causal);
        let verified = verify(text::parse(&text).expect("a kernel").remove(0)).expect("a right one");
        let variants = titan_core::driver::compile(&verified, Machine::from_name("sm_90a").expect("it is known"), None);
        let notes = variants.expect("it compiles").into_iter().flat_map(|variant| variant.notes);
        let fallen: Vec<String> = notes.filter(|note| note.starts_with(titan_core::driver::FALLBACK)).collect();
        assert!(fallen.is_empty(), "{sizes:?}: {fallen:?}");
        let made = compiled(&text);
        let [queries, head, step] = sizes.map(|n| n as usize);
        let sizes = [queries, head, test_depth::cases(5, 2) * step + 8];
        for options in test_depth::sample(&options()[..3], 1) {
            let found = run(&made, &text_of(&made), sizes, options).unwrap_or_else(|e| panic!("{sizes:?}: {e}"));
            for (i, (bytes, wanted)) in found.chunks(2).zip(reference(sizes, Mask::Causal)).enumerate() {
                let found = num::f16_to_f64(u16::from_le_bytes([bytes[0], bytes[1]]));
                let near = (found - wanted).abs() <= 0.01 * wanted.abs() + 0.01 || found.is_nan() && wanted.is_nan();
                assert!(near, "{sizes:?}, row {}, column {}: {found} instead of {wanted}", i / head, i % head);
            }
        }
    }
}
