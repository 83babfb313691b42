//! Operations on tensor memory in one program: columns, operands, threads, and what is in flight.

use crate::args::make;
use titan_core::verify::{WellFormed, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{Finding, Kind, Limits, Options, Verdict, explore, replay, run};

/// A kernel with the lines of one warp and of four warps; barriers `ready`, `done` and `taken` of 1, 1 and 4 arrivals.
fn kernel(before: &str, one: &str, four: &str) -> WellFormed {
    with_roles(
        before,
        "role(one, 1) role(four, 4)",
        &format!(
            "ttg.roles one {{\n{one}\nttg.pipeline.finalize\nyield\n}} four {{\n{four}\nttg.pipeline.finalize\nyield\n}}"
        ),
    )
}

fn with_roles(before: &str, roles: &str, body: &str) -> WellFormed {
    let text = format!(
        "kernel @k(%n: i32) {roles} {{\n%zero = const 0 : i32\n%one = const 1 : i32\n%words = ttg.region {{offset = 0, bytes = 64}}\n%ready = \
         ttg.nv.mbarrier.alloc %words {{at = 0, n = 1}}\n%done = ttg.nv.mbarrier.alloc %words {{at = 8, n = 1}}\n%taken = \
         ttg.nv.mbarrier.alloc %words {{at = 16, n = 1}}\nttg.nv.mbarrier.init %ready {{count = 1}}\nttg.nv.mbarrier.init %done {{count = \
         1}}\nttg.nv.mbarrier.init %taken {{count = 4}}\nttg.nv.fence.mbarrier_init\n%a = ttg.region {{offset = 1024, bytes = 4096}}\n%b = \
         ttg.region {{offset = 8192, bytes = 2048}}\n{before}\n{body}\nreturn\n}}\n"
    );
    let kernel = titan_core::text::parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    well_formed(kernel).unwrap()
}

/// What a run finds, in turn or at random; and the same when it is replayed.
fn found(kernel: &WellFormed) -> Option<Finding> {
    let args = make(&kernel.sig, 64, 1);
    for (completion, seed) in [(Completion::Late, None), (Completion::Early, None), (Completion::Seeded(3), Some(3))] {
        let options = Options { completion, seed, ..Options::default() };
        let report = run(kernel, &mut args.clone(), None, &options).unwrap();
        if let Some(found) = report.findings.into_iter().next() {
            let again = replay(kernel, &mut args.clone(), None, &options, &found.schedule).unwrap();
            assert_eq!(again.findings.first().map(|f| f.kind), Some(found.kind), "{found}");
            return Some(found);
        }
    }
    None
}

/// Checks the kind and the words of a finding.
#[track_caller]
fn finds(kernel: &WellFormed, kind: Kind, words: &str) {
    let found = found(kernel).expect("a finding");
    assert_eq!(found.kind, kind, "{found}");
    assert!(found.to_string().contains(words), "{found}");
}

/// Checks that no run and no order finds anything.
#[track_caller]
fn clean(kernel: &WellFormed) {
    if let Some(found) = found(kernel) {
        panic!("{found}");
    }
    let verdict = explore(kernel, &make(&kernel.sig, 64, 1), None, &Limits::default()).unwrap();
    assert!(matches!(verdict, Verdict::Safe(_)), "{verdict:?}");
}

const ALLOC: &str = "%acc = ttg.nv.tcgen05.alloc {columns = 64, cta_group = 1}";
const FREE: &str = "ttg.nv.tcgen05.dealloc %acc {cta_group = 1}";
const STORE: &str = "ttg.nv.tcgen05.st %acc {shape = \"32x32b\", times = 64}\nttg.nv.tcgen05.wait_st\n\
     ttg.nv.tcgen05.fence_before_thread_sync\n%s = ttg.nv.mbarrier.arrive %taken {arrivals = 4}";
const AFTER: &str = "ttg.nv.mbarrier.wait_parity %taken, %zero\nttg.nv.tcgen05.fence_after_thread_sync";

fn mma(attributes: &str) -> String {
    format!("ttg.nv.tcgen05.mma %acc, %a, %b {{{attributes}, cta_group = 1}}")
}

const F16: &str = "kind = f16, a = f16, b = f16, d = f32, m = 128, n = 64, k = 16";

/// An MMA of one warp, on operands that it has written, with other lines around it.
fn multiplied(mma: &str, after: &str, four: &str) -> WellFormed {
    let before = format!("ttg.region.write %a\nttg.region.write %b\n{FENCE}\n{ALLOC}");
    kernel(&before, &format!("{mma}\nttg.nv.tcgen05.commit %done {{cta_group = 1}}\n{after}"), four)
}

const FENCE: &str = "ttg.fence.proxy {from = generic, to = async, scope = cta, space = shared}";
const LOADED: &str = "ttg.nv.mbarrier.wait_parity %done, %zero\nttg.nv.tcgen05.fence_after_thread_sync\nttg.nv.tcgen05.ld %acc {shape = \
     \"32x32b\", times = 64}\nttg.nv.tcgen05.wait_ld\nttg.nv.tcgen05.fence_before_thread_sync\n%s = ttg.nv.mbarrier.arrive %taken \
     {arrivals = 4}";

#[test]
fn columns_are_stored_to_and_freed() {
    clean(&kernel(ALLOC, &format!("{AFTER}\n{FREE}"), STORE));
}

#[test]
fn an_mma_is_loaded_and_its_columns_are_freed() {
    clean(&multiplied(&mma(F16), &format!("{AFTER}\n{FREE}"), LOADED));
}

#[test]
fn columns_are_freed_once() {
    finds(&kernel(ALLOC, AFTER, STORE), Kind::TensorMemory, "64 columns of `acc` are never freed");
    finds(&kernel(ALLOC, &format!("{AFTER}\n{FREE}\n{FREE}"), STORE), Kind::TensorMemory, "`acc`, which were freed");
}

#[test]
fn freed_columns_are_not_used() {
    let late = format!("ttg.nv.mbarrier.wait_parity %ready, %zero\n{STORE}");
    let free = format!("{FREE}\n%r = ttg.nv.mbarrier.arrive %ready {{arrivals = 1}}");
    finds(&kernel(ALLOC, &free, &late), Kind::TensorMemory, "`acc`, which were freed");
}

#[test]
fn columns_are_allocated_in_powers_of_two() {
    for n in [0, 16, 96, 1024] {
        let alloc = format!("%acc = ttg.nv.tcgen05.alloc {{columns = {n}, cta_group = 1}}");
        finds(&kernel(&alloc, FREE, ""), Kind::TensorMemory, "power of two");
    }
}

#[test]
fn an_allocation_waits_for_free_columns() {
    let two = "%acc = ttg.nv.tcgen05.alloc {columns = 512, cta_group = 1}\n%more = ttg.nv.tcgen05.alloc {columns = 32, cta_group = 1}";
    finds(&kernel(two, FREE, ""), Kind::Deadlock, "free columns of tensor memory");
    // Another role frees columns, and then there are enough.
    let alloc = "%acc = ttg.nv.tcgen05.alloc {columns = 512, cta_group = 1}";
    let roles = "ttg.roles x {\n%more = ttg.nv.tcgen05.alloc {columns = 32, cta_group = 1}\nttg.nv.tcgen05.dealloc %more {cta_group = 1}\n\
                 ttg.pipeline.finalize\nyield\n} y {\nttg.nv.tcgen05.dealloc %acc {cta_group = 1}\nttg.pipeline.finalize\nyield\n}";
    clean(&with_roles(alloc, "role(x, 1) role(y, 1)", roles));
}

#[test]
fn nothing_is_allocated_after_the_program_has_given_that_up() {
    let give_up = format!("ttg.nv.tcgen05.relinquish_alloc_permit {{cta_group = 1}}\n{ALLOC}");
    finds(&kernel(&give_up, &format!("{AFTER}\n{FREE}"), STORE), Kind::TensorMemory, "given that up");
    let give_up = format!("{ALLOC}\nttg.nv.tcgen05.relinquish_alloc_permit {{cta_group = 1}}");
    clean(&kernel(&give_up, &format!("{AFTER}\n{FREE}"), STORE));
}

#[test]
fn operands_are_large_enough() {
    let store = STORE.replace("times = 64", "times = 128");
    finds(&kernel(ALLOC, &format!("{AFTER}\n{FREE}"), &store), Kind::Bounds, "128 columns of `acc`, which has 64");
    let free = format!("{AFTER}\n{FREE}");
    let wide = mma(&F16.replace("n = 64", "n = 72"));
    finds(&multiplied(&wide, &free, LOADED), Kind::Bounds, "72 columns of `acc`");
    let wide = mma("kind = f16, a = f16, b = f16, d = f32, m = 64, n = 256, k = 16, ws = true");
    finds(&multiplied(&wide, &free, LOADED), Kind::Bounds, "128 columns of `acc`");
    let tall = "kind = f16, a = f16, b = f16, d = f32, m = 32, n = 128, k = 16, ws = true";
    finds(&multiplied(&mma(tall), &free, LOADED), Kind::Bounds, "4096 bytes of `b`, which has 2048");
}

#[test]
fn an_mma_must_exist() {
    let free = format!("{AFTER}\n{FREE}");
    for (attributes, words) in [
        (F16.replace("k = 16", "k = 8"), "K is 8"),
        (F16.replace("d = f32", "d = i32"), "do not give `i32`"),
        (format!("{F16}, ashift = true"), "only if A is in tensor memory"),
    ] {
        finds(&multiplied(&mma(&attributes), &free, LOADED), Kind::TensorMemory, words);
    }
    let shifted = "ttg.nv.tcgen05.mma %acc, %acc, %b {kind = f16, a = f16, b = f16, d = f32, m = 64, n = 64, k = 16, ashift = true, cta_group = 1}";
    finds(&multiplied(shifted, &free, LOADED), Kind::TensorMemory, "128 or 256 rows");
}

#[test]
fn the_right_threads_execute() {
    let body = |one: &str, four: &str| {
        format!(
            "ttg.roles x {{\n{one}\nttg.pipeline.finalize\nyield\n}} y {{\n{four}\nttg.pipeline.finalize\nyield\n}}"
        )
    };
    let free = format!("{AFTER}\n{FREE}");
    let wide = with_roles(ALLOC, "role(x, 2) role(y, 4)", &body(&free, STORE));
    finds(&wide, Kind::Participants, "one warp executes `ttg.nv.tcgen05.dealloc`, and `x` has 2");
    let narrow = with_roles(ALLOC, "role(x, 1) role(y, 2)", &body(&free, STORE));
    finds(&narrow, Kind::Participants, "4 warps access all lanes");
    let alone = with_roles(ALLOC, "", &format!("{STORE}\n{AFTER}\n{FREE}"));
    finds(&alone, Kind::Participants, "of one warp and of all warps");
    let mixed = kernel("%acc = ttg.nv.tcgen05.alloc {columns = 64, cta_group = 3}", &free, STORE);
    finds(&mixed, Kind::Participants, "it is 1 or 2");
}

#[test]
fn columns_that_were_never_written_are_not_read() {
    let free = format!("{AFTER}\n{FREE}");
    let load = "ttg.nv.tcgen05.ld %acc {shape = \"32x32b\", times = 2}\nttg.nv.tcgen05.wait_ld\nttg.nv.tcgen05.fence_before_thread_sync\n\
                %s = ttg.nv.mbarrier.arrive %taken {arrivals = 4}";
    finds(&kernel(ALLOC, &free, load), Kind::Undefined, "never written");
    let of_a = "ttg.nv.tcgen05.mma %acc, %acc, %b {kind = f16, a = f16, b = f16, d = f32, m = 128, n = 64, k = 16, cta_group = 1}";
    finds(&multiplied(of_a, &free, LOADED), Kind::Undefined, "never written");
    finds(&multiplied(&mma(&format!("{F16}, scale_input = true")), &free, LOADED), Kind::Undefined, "never written");
    // Columns that are allocated again hold nothing.
    let again = format!(
        "{AFTER}\n{FREE}\n%next = ttg.nv.tcgen05.alloc {{columns = 32, cta_group = 1}}\nttg.nv.tcgen05.shift %next {{cta_group = 1}}\n\
         ttg.nv.tcgen05.commit %done {{cta_group = 1}}\nttg.nv.mbarrier.wait_parity %done, %zero\n\
         ttg.nv.tcgen05.fence_after_thread_sync\nttg.nv.tcgen05.dealloc %next {{cta_group = 1}}"
    );
    finds(&kernel(ALLOC, &again, STORE), Kind::Undefined, "never written");
}

#[test]
fn operations_end_before_their_role_or_program() {
    let load = "ttg.nv.tcgen05.st %acc {shape = \"32x32b\", times = 2}";
    finds(&kernel(ALLOC, "", load), Kind::InFlight, "without having waited for a store to tensor memory");
    let mma = mma(F16);
    let before = format!("ttg.region.write %a\nttg.region.write %b\n{FENCE}\n{ALLOC}");
    let found = found(&kernel(&before, &mma, "")).expect("a finding");
    assert_eq!(found.kind, Kind::InFlight, "{found}");
}

#[test]
fn a_missing_fence_is_a_finding_of_its_own() {
    let free = format!("{AFTER}\n{FREE}");
    let kernel = multiplied(&mma(F16), &free, &LOADED.replacen("ttg.nv.tcgen05.fence_after_thread_sync\n", "", 1));
    finds(&kernel, Kind::Fence, "`acc`: a fence is missing");
    let found = found(&kernel).expect("a finding");
    assert_eq!((found.sides[0].what.as_str(), found.sides[1].what.as_str()), ("acc", "acc"), "{found}");
}

#[test]
fn an_mma_and_a_copy_after_it_are_in_no_order() {
    let free = format!("{AFTER}\n{FREE}");
    let both = format!("{}\nttg.nv.tcgen05.cp %acc, %a {{cta_group = 1}}", mma(F16));
    finds(&multiplied(&both, &free, LOADED), Kind::Race, "acc");
    let both = format!("ttg.nv.tcgen05.cp %acc, %a {{cta_group = 1}}\n{}", mma(F16));
    clean(&multiplied(&both, &free, LOADED));
}

#[test]
fn a_copy_an_mma_and_a_shift_are_in_order() {
    let free = format!("{AFTER}\n{FREE}");
    let copy = "ttg.nv.tcgen05.cp %acc, %a {cta_group = 1}";
    let shift = "ttg.nv.tcgen05.shift %acc {cta_group = 1}";
    clean(&multiplied(&format!("{copy}\n{}\n{shift}", mma(F16)), &free, LOADED));
    finds(&multiplied(&format!("{}\n{copy}\n{shift}", mma(F16)), &free, LOADED), Kind::Race, "acc");
}
