//! One small kernel at every stage of the way to its code, for sm_80 and for sm_90a: docs/stages.md is made here.

use std::fmt::Write as _;
use std::path::Path;
use titan_core::driver::{Schedule, Stages, Walk, follow, stages};
use titan_core::ir::Scheduler;
use titan_core::text::{parse_one, print};
use titan_core::verify::verify;
use titan_nv::Machine;

/// The text of a kernel without the places of a file.
fn bare(text: &str) -> String {
    let line = |line: &str| match line.rsplit_once(" @") {
        Some((before, place)) if place.split(':').all(|n| n.parse::<u32>().is_ok()) => before.to_owned(),
        Some(_) | None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The lines from the last one that begins a loop to the one that ends it.
fn last_loop(text: &str, begins: impl Fn(&str) -> bool, ends: impl Fn(&str) -> bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().rposition(|line| begins(line)).unwrap();
    let end = first + lines[first..].iter().position(|line| ends(line)).unwrap();
    lines[first..=end].join("\n")
}

/// The loop whose operations have stages.
fn scheduled_loop(text: &str) -> String {
    last_loop(text, |l| l.starts_with("    ") && l.contains(" = for "), |l| l == "    }")
}

/// The first loop, and what follows up to the end of the rings.
fn loops(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| line.trim_start().starts_with("for ")).unwrap();
    let end = lines.iter().position(|line| line.contains("ttg.pipeline.finalize")).unwrap();
    lines[first..=end].join("\n")
}

/// The lines from the last one before a place that begins a block to the one that ends it.
fn around(text: &str, has: &str, begins: impl Fn(&str) -> bool, ends: impl Fn(&str, &str) -> bool) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().rposition(|line| line.contains(has)).unwrap();
    let first = lines[..at].iter().rposition(|line| begins(line)).unwrap();
    let end = at + lines[at..].iter().position(|line| ends(lines[first], line)).unwrap();
    lines[first..=end].iter().map(|line| short(line) + "\n").collect()
}

/// A line without most of its registers, if it has many.
fn short(line: &str) -> String {
    let few = |text: &str, front: usize, back: usize| {
        let parts: Vec<&str> = text.split(", ").collect();
        if parts.len() <= 12 {
            return text.to_owned();
        }
        [&parts[..front], &[".."], &parts[parts.len() - back..]].concat().join(", ")
    };
    // Lane IR has an operation behind its results.
    match line.split_once(" = ") {
        Some((results, operation)) => format!("{} = {}", few(results, 2, 1), few(operation, 5, 1)),
        None => few(line, 2, 9),
    }
}

/// The innermost loop of lane IR with an operation.
fn loop_of_lanes(text: &str, has: &str) -> String {
    let depth = |line: &str| line.len() - line.trim_start().len();
    around(text, has, |line| line.contains(" = for "), |first, line| line.trim() == "}" && depth(line) == depth(first))
}

/// The loop of PTX with an instruction: from its label to the branch back.
fn loop_of_ptx(text: &str, has: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().rposition(|line| line.contains(has)).unwrap();
    let back = |line: &&str| line.trim().starts_with('@') && line.contains("bra.uni $L");
    let label = |line: &str| format!("{}:", line.rsplit_once(' ').unwrap().1.trim_end_matches(';'));
    let end = (at..lines.len()).find(|i| back(&lines[*i]) && lines[..at].contains(&&*label(lines[*i]))).unwrap();
    let first = lines[..at].iter().rposition(|line| *line == label(lines[end])).unwrap();
    lines[first..=end].iter().map(|line| short(line) + "\n").collect()
}

/// A section of the page.
type Section = (&'static str, &'static str, String);

fn on_sm_80() -> Vec<Section> {
    let tile = super::loops::gemm([32, 32, 32]);
    let kernel = verify(parse_one(&tile).unwrap()).unwrap();
    let machine = Machine::from_name("sm_80").unwrap();
    let all = stages(&kernel, machine, true, None).unwrap();
    let mut by_rule = parse_one(&tile).unwrap();
    by_rule.sig.scheduler = Some(Scheduler::Rule);
    let by_rule = stages(&verify(by_rule).unwrap(), machine, true, None).unwrap();
    let ptx = std::str::from_utf8(&all.code.payload).unwrap();
    // The loop ends where it branches back to its label.
    let label = ptx.lines().rev().find_map(|l| l.trim().strip_prefix("@")?.split_once("bra.uni ")).unwrap().1;
    let code = last_loop(
        ptx,
        |l| l == format!("{}:", label.trim_end_matches(';')),
        |l| l.ends_with(&format!("bra.uni {label}")),
    );
    let lanes = all.lanes.to_string();
    let lanes = last_loop(&lanes, |l| l.starts_with("  ") && l.contains(" = for "), |l| l == "  }");
    vec![
        ("Tile", "What the user wrote, as `#[titan::kernel]` reads it: tiles, loops, products.", bare(&print(&kernel))),
        (
            "Rings",
            "The target has asynchronous copies, so the `pipelined` loop has become a ring: slots in shared memory that copies fill and \
             products read. Every slot is a token: acquired, filled, waited for, read, released. Each iteration fills its own slot here; how \
             far ahead that happens, the schedule of the loop says below.",
            bare(&print(&all.rings)),
        ),
        (
            "Laid out",
            "Every tile has a layout, which says what thread holds which element, or an encoding, which says where its elements lie \
             in shared memory. A product is steps of `k`, with the fragments that the instruction takes.",
            bare(&print(&all.laid_out)),
        ),
        (
            "Scheduled",
            "The schedule of the loop is written at its operations: `stage(s, p)` is the stage and the place in an iteration of the loop that \
             is made of it. An operation of stage s is executed as many iterations ahead as there are stages behind it. Copies are in the \
             first stage; the wait for a slot and the first fragments are in the last stage but one. This is what the modulo scheduler finds, \
             which is the default for this loop (`schedule(swing)`, [scheduling.md](scheduling.md)).",
            scheduled_loop(&bare(&print(&all.scheduled))),
        ),
        (
            "Scheduled by the rule",
            "The same by `schedule(rule)`: copies first, and the loads of the fragments of each step in front of the product of the step before.",
            scheduled_loop(&bare(&print(&by_rule.scheduled))),
        ),
        (
            "Loops",
            "The loop in the stages of the modulo scheduler. Before it, a loop fills the first slots, with zeros where there is no such step of `k`, and the first \
             fragments are loaded. After it, the slots beyond the last step are released. `of(o, c)` says that an operation is operation o \
             above, c iterations ahead. A checker shows that every operation is executed once for each iteration, with the operands and in \
             the order of the loop above ([protocol.md](protocol.md), theorem 15).",
            loops(&bare(&print(&all.loops))),
        ),
        (
            "Barrier program",
            "Tokens are gone. The ring is a region of shared memory, its slots are numbers that loops carry, its waits are commit \
             groups and barriers between warps (between roles they are mbarriers with parities). `ttg.claim.*` says what that does \
             to the ring; it is checked and emits nothing ([lowering.md](lowering.md)).",
            bare(&print(&all.barriers)),
        ),
        ("Lanes", "What each thread does. The main loop:", lanes),
        ("PTX", "The main loop again:", code),
    ]
}

/// The code for sm_90a with the simplest schedule of its kind: a role that copies, and one that multiplies.
fn simplest() -> Stages {
    let tile = super::loops::gemm([64, 32, 32]);
    let kernel = verify(parse_one(&tile).unwrap()).unwrap();
    let machine = Machine::from_name("sm_90a").unwrap();
    let chosen = stages(&kernel, machine, true, None).unwrap().schedule;
    follow(&kernel, machine, &Schedule { walk: Walk::default(), bodies: Vec::new(), ..chosen }).unwrap()
}

fn on_sm_90a() -> Vec<Section> {
    let all = simplest();
    let (lanes, ptx) = (all.lanes.to_string(), String::from_utf8(all.code.payload).unwrap());
    let rings = bare(&print(&all.rings));
    vec![
        (
            "Rings on sm_90a",
            "The loop is split into two roles, which execute at the same time: one warp copies, a warpgroup multiplies. Both count the \
             steps of `k` for themselves; the ring's tokens are all that they exchange. `ttg.acc.*` is an accumulator with MMAs in \
             flight, at most one here: it owns the stages that they read, and releases a stage when the MMA behind its own is issued. \
             The first step is peeled, so that its MMA begins a sum and nothing is set to zero.",
            rings,
        ),
        (
            "Barrier program on sm_90a",
            "Each slot has two barriers. `full` completes when one thread has arrived and the announced bytes are there: those of both \
             tiles, also where these end outside of the tensors ([protocol.md](protocol.md), theorem 13). `empty` completes when the \
             four warps that read have arrived. A wait names the parity of a phase, which loops carry with the slot. MMAs are \
             asynchronous: `wgmma.wait_group {n = 1}` waits for all but the one that was issued last, and the slot of the one before is \
             released behind it. Results go through shared memory, so that whole rows are stored.",
            bare(&print(&all.barriers)),
        ),
        (
            "Lanes on sm_90a: the loop that copies",
            "What one elected thread of the role does.",
            loop_of_lanes(&lanes, "bulk_load"),
        ),
        (
            "Lanes on sm_90a: the loop that multiplies",
            "What each thread of the warpgroup does. The operands of an MMA are descriptors of shared memory, its sums are registers \
             that the loop carries; `..` stands for most of them.",
            loop_of_lanes(&lanes, "group_wait 1"),
        ),
        (
            "PTX for sm_90a: the loop that copies",
            "A wait for a free slot, the number of bytes, and a copy for each tile.",
            loop_of_ptx(&ptx, "cp.async.bulk.tensor.2d.shared"),
        ),
        (
            "PTX for sm_90a: the loop that multiplies",
            "A wait for a filled slot, two MMAs of 16 of `k`, a wait for those of the step before, and the release of their slot.",
            loop_of_ptx(&ptx, "wgmma.wait_group.sync.aligned 1"),
        ),
    ]
}

#[test]
fn the_page_of_stages_is_current() {
    let mut page = "# One kernel at every stage\n\n\
        <!-- Made by `TITAN_BLESS=1 cargo test -p titan-gpu-nv --test emit stages`. -->\n\n\
        A matrix product with small tiles on its way to sm_80, as `titan emit FILE --stage ..` prints it. Each of the first four is \
        tile IR ([ir.md](ir.md)): a text that can be read, checked and lowered again. Behind them is [the same for \
        sm_90a](#rings-on-sm_90a).\n"
        .to_owned();
    let mut write = |sections: Vec<Section>| {
        for (name, about, text) in sections {
            let _ = write!(page, "\n## {name}\n\n{about}\n\n```text\n{}\n```\n", text.trim_end());
        }
    };
    write(on_sm_80());
    write(on_sm_90a());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/stages.md");
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/stages.md is not current: run with TITAN_BLESS=1"
    );
}
