//! Generates `docs/ownership.md`: for each class of pipeline bugs, what rejects it and with which message. The messages are taken
//! from the filetests.

use std::fmt::Write;
use std::path::Path;

/// What rejects a class of bugs.
enum Layer {
    /// The verifier: the name of a filetest, and what rustc reports for the same mistake in Rust.
    Verifier(&'static str, &'static str),
    /// The bug cannot be expressed: why.
    Construction(&'static str),
}
use Layer::{Construction, Verifier};

const CLASSES: &[(&str, Layer)] = &[
    ("a stage that is never released", Verifier("perm_dropped", "")),
    ("a stage that is released on one path only", Verifier("released_in_one_arm", "")),
    ("a stage that is released twice", Verifier("released_twice", "E0382: use of moved value")),
    (
        "a stage that is released while an MMA still reads it",
        Verifier("release_under_an_mma", "E0505: cannot move out"),
    ),
    (
        "a stage that is released while an MMA of an earlier iteration still reads it",
        Verifier("release_under_a_carried_mma", "E0505"),
    ),
    ("use after release", Verifier("read_after_release", "E0382, or E0505 if the stage is borrowed")),
    (
        "a release, copy or wait of the wrong slot",
        Construction("the operations are methods of tokens; slots have no names or indices"),
    ),
    (
        "a wrong or stale parity, a wrong first phase, a phase that never toggles",
        Construction(
            "parities are computed from the ring time when a ring is lowered; a ring time that is written is checked",
        ),
    ),
    ("a written ring time that is wrong", Verifier("time_that_stands_still", "")),
    ("a missing wait for a free slot", Construction("only `acquire` returns a slot, and it waits")),
    ("a missing wait for the bytes of a copy", Construction("only `wait` returns a stage that can be read")),
    ("a pending wait that is never completed", Verifier("ready_dropped", "")),
    ("too few transaction bytes: a race", Verifier("bytes_too_few", "computed by the compiler, not written")),
    ("too many transaction bytes: a hang", Verifier("bytes_too_many", "computed by the compiler, not written")),
    ("a copy that does not fit its stage", Verifier("another_shape", "E0308: mismatched types")),
    (
        "a copy that signals another slot's barrier, one barrier for all slots",
        Construction("each slot has its own barrier, created when the ring is lowered"),
    ),
    (
        "too high or too low arrival counts",
        Construction("counts are computed from the number of threads of the roles that use the ring"),
    ),
    ("a part of a split stage that is never joined", Verifier("part_missing", "")),
    ("a reader that stops early", Verifier("a_reader_stops_early", "")),
    (
        "a `wait_group` that is missing, or whose count is one too large",
        Construction("counts are computed from virtual tokens, and checked by an independent analysis"),
    ),
    ("a slot that is never filled", Verifier("slot_dropped", "")),
    ("two copies into one slot", Verifier("slot_filled_twice", "E0382: use of moved value")),
    ("exit with copies in flight", Verifier("role_without_finalize", "")),
    ("a staging slot written before its store has read it", Verifier("staging_slot_reused", "")),
    ("a store that is never waited for", Verifier("store_dropped", "")),
    ("a producer that fills one stage too many", Verifier("one_stage_too_many", "")),
    ("a consumer that reads one stage too many", Verifier("bound_one_off", "")),
    ("a tail iteration that only one role skips", Verifier("guard_on_one_side", "")),
    ("trip count 0: a wait before a loop that executes no iterations", Verifier("read_before_an_empty_loop", "")),
    ("more copies in flight than slots", Verifier("prefetch_beyond_the_ring", "")),
    ("a role that holds all stages and waits for another", Verifier("holds_every_slot", "")),
    ("MMAs in flight that hold all stages", Verifier("accumulator_holds_every_slot", "")),
    ("roles that wait for each other in a cycle", Verifier("rings_in_another_order", "")),
    ("roles of which each first waits for the other", Verifier("wait_before_the_first_word", "")),
    ("loops of the roles with different numbers of iterations", Verifier("loops_of_two_lengths", "")),
    ("an early exit of one role", Verifier("left_early", "T0501 in Rust")),
    ("a number of slots that differs between the roles", Construction("a ring is declared once, for all roles")),
    ("two roles that fill one ring", Verifier("two_fillers", "")),
    ("a ring that is never read", Verifier("never_read", "")),
    (
        "a token that another role uses",
        Construction(
            "the tokens of a role are visible in the role only; no role may use one that was made before `match role()`",
        ),
    ),
    ("a poisoned stage that is read", Verifier("poison_not_asked", "")),
    (
        "a stage that is read before it was ever written",
        Construction("the wait that returns a stage waits for its copies"),
    ),
    (
        "an accumulator that is read before its MMA is complete",
        Construction("an MMA in flight is not a tile; `.wait()` or `.finish()` returns the tile"),
    ),
    ("an MMA that is never waited for", Verifier("mma_dropped", "")),
    (
        "slots, or a ring and a barrier word, that overlap in shared memory",
        Construction("the compiler allocates shared memory, and its liveness analysis treats roles as concurrent"),
    ),
    (
        "divergent barriers",
        Construction("a condition is one `bool` for the whole role; a mask is not a condition (E0308)"),
    ),
    ("a copy from an output", Verifier("copied_from_an_output", "")),
    ("two roles that store one output", Verifier("stored_by_two_roles", "")),
    ("a tile of all warps in one role", Verifier("tile_of_all_warps", "")),
];

/// The same classes in barrier programs, which state their barriers and groups explicitly; the kernels are filetests.
const BARRIERS: &[(&str, &str)] = &[
    ("a slot that is never released", "never_released"),
    ("a slot that is released twice", "released_twice"),
    ("a slot that is released while an MMA still reads it", "released_under_an_mma"),
    ("a release of the wrong slot", "another_slot_is_released"),
    ("a missing wait for a free slot", "slot_not_waited_for"),
    ("a missing wait for the bytes of a copy", "stage_not_waited_for"),
    ("a wrong first phase, a wrong parity", "parity_inverted"),
    ("a parity that never flips", "parity_never_turned"),
    ("a parity for another number of slots", "parity_of_another_depth"),
    ("too few transaction bytes: a race", "bytes_too_few"),
    ("too many transaction bytes: a hang", "bytes_too_many"),
    ("a copy without `expect_tx`", "bytes_not_announced"),
    ("transaction bytes that are expected twice", "bytes_announced_twice"),
    ("a copy that signals another slot's barrier", "copy_to_another_barrier"),
    ("a copy into the wrong slot", "another_slot_is_filled"),
    ("a read of the wrong slot", "another_slot_is_read"),
    ("too high arrival counts", "count_too_high"),
    ("too low arrival counts", "count_too_low"),
    ("one barrier for all slots", "one_barrier_for_all_slots"),
    ("a number of slots that differs between the roles", "index_of_another_depth"),
    ("a `wait_group` whose count is one too large", "wait_group_one_too_large"),
    ("a missing `wait_group`", "wait_group_omitted"),
    ("a group that is not committed", "group_not_closed"),
    ("groups that are waited for out of order", "token_out_of_order"),
    ("a missing proxy fence", "fence_missing"),
    ("a proxy fence after the arrival", "fence_after_the_arrival"),
    ("exit with copies in flight", "copies_in_flight_at_the_end"),
    ("exit with stores in flight", "store_in_flight_at_the_end"),
    ("a staging buffer reused before its store has read it", "staging_reused"),
    ("two copies into one slot", "two_copies_into_one_slot"),
    ("a producer that runs one tile more", "one_tile_more_is_copied"),
    ("a consumer that runs one tile more", "one_tile_more_is_read"),
    ("memory that is reused while copies are in flight", "aliases_while_copies_are_in_flight"),
    ("a barrier word inside a payload", "word_in_a_payload"),
    ("a barrier that is never initialised", "never_initialised"),
    ("a barrier that is initialised twice", "initialised_twice"),
    ("a barrier that is invalidated early", "invalidated_early"),
    ("a barrier that is used after it was invalidated", "used_after_it_is_gone"),
    ("a barrier that is not fenced after its initialisation", "initialised_without_a_fence"),
    ("roles that wait for each other in a cycle", "wait_cycle"),
    ("a named barrier that one role does not reach", "turns_missed"),
    ("a named barrier with different numbers of threads", "turns_of_different_threads"),
    ("a cluster barrier that one role does not reach", "cluster_not_come_to"),
    ("multicast to programs that are not modelled", "copy_to_others"),
    ("more registers than a program has", "registers_too_many"),
    ("more shared memory than any target has", "region_too_large"),
];

/// The text of a filetest of this name; or, of a filetest with several kernels, that from the kernel of this name on.
fn filetest(prefix: &str, name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests/verify");
    let own = folder.join(format!("{prefix}_{name}.tir"));
    if let Ok(text) = std::fs::read_to_string(&own) {
        return text;
    }
    let kernel = format!("kernel @{name}(");
    let files = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let of_several = files.filter(|path| path.file_name().is_some_and(|f| f.to_string_lossy().starts_with(prefix)));
    let texts = of_several.map(|path| std::fs::read_to_string(path).expect("a file"));
    let mut found = texts.filter_map(|text| text.find(&kernel).map(|at| text[at..].to_owned()));
    found.next().unwrap_or_else(|| panic!("no file {} and no {kernel}..)", own.display()))
}

/// The first error of a filetest: its code, title, helps and notes.
fn said(prefix: &str, name: &str) -> Vec<String> {
    let text = filetest(prefix, name);
    let comments = text.lines().map(str::trim).skip_while(|l| !l.starts_with("; error["));
    let first =
        comments.enumerate().take_while(|(i, l)| *i == 0 || (l.starts_with("; ") && !l.starts_with("; error[")));
    first.map(|(_, l)| l.trim_start_matches("; ").to_owned()).collect()
}

fn page() -> String {
    let mut out = "# Bugs of pipelines, and what rejects them\n\n<!-- Made by `TITAN_BLESS=1 cargo test -p titan-gpu-core --test ownership`. -->\n\n\
        This page lists the classes of bugs of hand-written asynchronous pipelines, and what prevents each of them in TITAN: rustc, the \
        verifier, or the language itself.\n\n\
        * *verifier*: the macro reports the bug at the user's token, by one of the rules whose consequences are proved in \
        [protocol.md](protocol.md). If the bug violates Rust's ownership rules, rustc reports it first (after *In Rust*), and the verifier \
        rejects the same bug in tile IR.\n\
        * *construction*: the bug cannot be expressed.\n\n\
        The messages are those of tests. The terms are explained in [glossary.md](glossary.md).\n".to_owned();
    for (class, layer) in CLASSES {
        let _ = write!(out, "\n### {}{}\n\n", class[..1].to_uppercase(), &class[1..]);
        match layer {
            Construction(why) => {
                let _ = writeln!(out, "*construction*: {why}.");
            }
            Verifier(file, rustc) => {
                if !rustc.is_empty() {
                    let _ = write!(out, "In Rust: {rustc}. ");
                }
                let _ = writeln!(out, "*verifier*:\n\n```text");
                for line in said("pipe", file) {
                    let _ = writeln!(out, "{line}");
                }
                out.push_str("```\n");
            }
        }
    }
    out.push_str("\n## Barriers and groups\n\n\
        A barrier program is tile IR text that uses regions of shared memory, barriers and commit groups explicitly (`ttg.region`, `ttg.nv`, \
        `ttg.amd`). It can contain bugs that rings exclude; the verifier rejects them, for any number of iterations.\n");
    for (class, file) in BARRIERS {
        let _ = write!(out, "\n### {}{}\n\n```text\n", class[..1].to_uppercase(), &class[1..]);
        for line in said("barrier", file) {
            let _ = writeln!(out, "{line}");
        }
        out.push_str("```\n");
    }
    out.push_str("\n## What the verifier does not check\n\n\
        * *Barriers between the warps of a role.* The verifier treats a role as one thread of control. The lowering inserts the barriers \
        between its warps, and the race detector of the emulator checks the generated code.\n\
        * *A `cp.async` into the wrong slot while no role uses that slot.* This is a wrong result but not a race. Rings cannot express it; \
        in a barrier program only a run shows it.\n\
        * *Descriptors and swizzles*, which are part of the back end of a target.\n\
        * *Overflow of sums of indices* is either excluded by proof or checked by the launch ([protocol.md](protocol.md)).\n");
    out.push_str("\n## Correct programs that must be accepted\n\n\
        Stages that are released in another order than they were filled; a pending wait that is taken long before it is completed; one copy \
        before a loop and the rest inside it; an accumulator that releases a stage one iteration late; roles that exchange data in both \
        directions, if one of them starts; conditions on loop counters that hold in all iterations but the first or the last; zero \
        iterations. Each has a kernel among the accepted twins in `titan-core/filetests/verify` and in `titan-core/tests/pipes`.\n");
    out
}

#[test]
fn the_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ownership.md");
    let wanted = page();
    if std::env::var_os("TITAN_BLESS").is_some() {
        std::fs::write(&path, &wanted).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/ownership.md is not current: `TITAN_BLESS=1 cargo test -p titan-gpu-core --test ownership`"
    );
}
