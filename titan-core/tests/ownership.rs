//! `docs/ownership.md`: for each class of pipeline bugs, the layer that rejects it and the message. The messages are those of the
//! filetests, so they are tested.

use std::fmt::Write;
use std::path::Path;

/// The layer that rejects a class, and a kernel of it.
enum Layer {
    /// The verifier; the kernel is a filetest. The text is what rustc reports for the same mistake in Rust.
    Verifier(&'static str, &'static str),
    /// It cannot be written; the reason.
    Construction(&'static str),
}
use Layer::{Construction, Verifier};

const CLASSES: &[(&str, Layer)] = &[
    ("a release that is omitted", Verifier("perm_dropped", "")),
    ("a release on one path only", Verifier("released_in_one_arm", "")),
    ("a release that is doubled", Verifier("released_twice", "E0382: use of moved value")),
    (
        "a release that is early: an MMA still reads the stage",
        Verifier("release_under_a_product", "E0505: cannot move out, with both places"),
    ),
    (
        "a release that is early: an MMA of an earlier iteration still reads",
        Verifier("release_under_a_carried_product", "E0505"),
    ),
    ("use after release", Verifier("read_after_release", "E0382, or E0505 for borrows")),
    (
        "a release, copy or wait of the wrong slot",
        Construction("operations act on tokens: a slot is the result of `acquire`, and cannot be named otherwise"),
    ),
    (
        "a wrong or stale parity, a wrong first phase, a phase that never toggles",
        Construction("parities are computed from the clock when a ring is lowered; a stated time is checked"),
    ),
    ("a time that is not the clock's", Verifier("time_that_stands_still", "")),
    ("a skipped wait for a free slot", Construction("only `acquire` returns a slot, and it waits")),
    ("a skipped wait for the bytes", Construction("only `wait` returns a stage that can be read")),
    ("a pending wait that is never completed", Verifier("ready_dropped", "")),
    ("transaction bytes too few: a race", Verifier("bytes_too_few", "computed, not written")),
    ("transaction bytes too many: a hang", Verifier("bytes_too_many", "computed, not written")),
    ("a copy that does not fit its stage", Verifier("another_shape", "E0308: mismatched types")),
    (
        "a copy that signals another slot's barrier, one barrier for all slots",
        Construction("each slot has its own, created when the ring is lowered"),
    ),
    ("arrival counts too high or too low", Construction("counts are the threads of the roles that use the ring")),
    ("a reader of several that never joins", Verifier("part_missing", "")),
    ("a reader that stops early", Verifier("a_reader_stops_early", "")),
    (
        "`wait_group` one too large or omitted",
        Construction("counts are assigned from virtual tokens, and checked by an independent checker"),
    ),
    ("a slot that is never filled", Verifier("slot_dropped", "")),
    ("two copies into one slot", Verifier("slot_filled_twice", "E0382: use of moved value")),
    ("exit with copies in flight", Verifier("role_without_finalize", "")),
    ("a staging slot written before its store has read it", Verifier("staging_slot_reused", "")),
    ("a store that is not waited for", Verifier("store_dropped", "")),
    ("a producer that runs one tile more", Verifier("one_stage_too_many", "")),
    ("a consumer that runs one tile more", Verifier("bound_one_off", "")),
    ("a tail that only one side skips", Verifier("guard_on_one_side", "")),
    ("trip count 0: a wait before a loop that does not run", Verifier("read_before_an_empty_loop", "")),
    ("copies further ahead than there are slots", Verifier("prefetch_beyond_the_ring", "")),
    ("stages held until none is left", Verifier("holds_every_slot", "")),
    ("MMAs in flight that keep every stage", Verifier("accumulator_holds_every_slot", "")),
    ("a cyclic wait between roles", Verifier("rings_in_another_order", "")),
    ("roles that each wait for the other to send first", Verifier("wait_before_the_first_word", "")),
    ("loops of the roles that do not correspond", Verifier("loops_of_two_lengths", "")),
    ("an early exit of one role", Verifier("left_early", "T0501 in Rust")),
    ("depth that differs between the roles", Construction("a ring is declared once, for all of them")),
    ("two roles that fill one ring", Verifier("two_fillers", "")),
    ("a ring that is never read", Verifier("nobody_reads", "")),
    (
        "tokens that cross roles",
        Construction("a role's tokens are visible in the role only; earlier ones cannot be consumed in a role"),
    ),
    ("a poisoned stage that is read", Verifier("poison_not_asked", "")),
    ("a stage that is read before it was ever written", Construction("the wait that returns it comes after its fill")),
    (
        "an accumulator that is read before its MMA completes",
        Construction("an MMA in flight is not a tile until `.wait()` or `.finish()` returns one"),
    ),
    ("an MMA that is not waited for", Verifier("product_dropped", "")),
    (
        "slots, or a ring and a barrier word, that share bytes",
        Construction("addresses are allocated, and liveness treats roles as concurrent"),
    ),
    (
        "divergent barriers",
        Construction("a condition is one `bool` of the whole role: a mask is not a condition (E0308)"),
    ),
    ("copies from a tensor that the kernel writes", Verifier("copied_from_an_output", "")),
    ("two roles that store one output", Verifier("stored_by_two_roles", "")),
    ("a tile of all warps in one role", Verifier("tile_of_all_warps", "")),
];

/// The same classes for programs of the barrier dialect; the kernels are filetests.
const BARRIERS: &[(&str, &str)] = &[
    ("a release that is omitted", "never_released"),
    ("a release that is doubled", "released_twice"),
    ("a release that is early: an MMA still reads", "released_under_a_product"),
    ("a release of the wrong slot", "another_slot_is_released"),
    ("a wait for a free slot that is skipped", "slot_not_waited_for"),
    ("a wait for the bytes that is skipped", "stage_not_waited_for"),
    ("a wrong first phase, a wrong parity", "parity_inverted"),
    ("a phase that never toggles", "parity_never_turned"),
    ("a parity of another depth", "parity_of_another_depth"),
    ("transaction bytes too few: a race", "bytes_too_few"),
    ("transaction bytes too many: a hang", "bytes_too_many"),
    ("transaction bytes that are not expected", "bytes_not_announced"),
    ("transaction bytes counted twice", "bytes_announced_twice"),
    ("a copy that signals another slot's barrier", "copy_to_another_barrier"),
    ("a wrong slot filled", "another_slot_is_filled"),
    ("a wrong slot read", "another_slot_is_read"),
    ("arrival counts too high", "count_too_high"),
    ("arrival counts too low", "count_too_low"),
    ("one barrier for all slots", "one_barrier_for_all_slots"),
    ("depth that differs between the roles", "index_of_another_depth"),
    ("`wait_group` one too large", "wait_group_one_too_large"),
    ("`wait_group` omitted", "wait_group_omitted"),
    ("a group that is not committed", "group_not_closed"),
    ("groups waited for out of order", "token_out_of_order"),
    ("a proxy fence that is missing", "fence_missing"),
    ("a proxy fence that comes too late", "fence_after_the_arrival"),
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
    ("a barrier used after it is invalidated", "used_after_it_is_gone"),
    ("a barrier initialised without its fence", "initialised_without_a_fence"),
    ("a cyclic wait between roles", "wait_cycle"),
    ("a named barrier that one role misses", "turns_missed"),
    ("a named barrier of different numbers of threads", "turns_of_different_threads"),
    ("a cluster barrier that one role misses", "cluster_not_come_to"),
    ("multicast to programs that are not modelled", "copy_to_others"),
    ("registers above those of a multiprocessor", "registers_too_many"),
    ("shared memory above the maximum", "region_too_large"),
];

/// The first error of a filetest: its code, title, helps and notes.
fn said(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("filetests/verify/{name}.tir"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let comments = text.lines().map(str::trim).skip_while(|l| !l.starts_with("; error["));
    let first =
        comments.enumerate().take_while(|(i, l)| *i == 0 || (l.starts_with("; ") && !l.starts_with("; error[")));
    first.map(|(_, l)| l.trim_start_matches("; ").to_owned()).collect()
}

fn page() -> String {
    let mut out = "# Bug classes, and what rejects them\n\n<!-- Made by `TITAN_BLESS=1 cargo test -p titan-gpu-core --test ownership`. -->\n\n\
        The classes of bugs of pipelines written by hand, and what rejects each of them. *verifier*: the macro reports it at the \
        user's token, by the rules of [protocol.md](protocol.md). Where the mistake is one of ownership, rustc reports it \
        first, and the verifier stays silent. *construction*: it cannot be expressed. The messages are those of tests.\n".to_owned();
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
                for line in said(&format!("pipe_{file}")) {
                    let _ = writeln!(out, "{line}");
                }
                out.push_str("```\n");
            }
        }
    }
    out.push_str("\n## Barriers and groups\n\n\
        Programs of the barrier dialects in the text form (`ttg.region`, `ttg.nv`, `ttg.amd`) can express bugs that rings cannot. The \
        verifier rejects them, for any number of iterations.\n");
    for (class, file) in BARRIERS {
        let _ = write!(out, "\n### {}{}\n\n```text\n", class[..1].to_uppercase(), &class[1..]);
        for line in said(&format!("barrier_{file}")) {
            let _ = writeln!(out, "{line}");
        }
        out.push_str("```\n");
    }
    out.push_str("\n## Beyond the static checks\n\n\
        A role is one thread of control: synchronisation of its own warps is inserted by the lowering, and checked in emitted code by the \
        emulator's race observer. A `cp.async` copy into an unused slot is not a race, but the wrong tile: \
        rings cannot express it, and in programs with barriers only a run shows it. Descriptors and swizzles belong to a target. That \
        sums of indices do not wrap is proved, or required of the launch ([protocol.md](protocol.md)). Registers are summed by warps, not by warpgroups, until there is a target that \
        has `setmaxnreg`.\n");
    out.push_str("\n## What is accepted\n\n\
        Stages released in another order than they were acquired; a pending wait that is created long before it is completed; a copy \
        ahead of a loop and the rest in it; an accumulator that releases one iteration late; roles that feed each other, if one of them \
        sends first; guards of loop counters that hold on all iterations but the first or the last; zero iterations. Each has a kernel among the passing twins \
        of `titan-core/filetests/verify` and in `titan-core/tests/pipes`.\n");
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
