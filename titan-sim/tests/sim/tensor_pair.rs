//! Operations of a pair of programs (`cta_group = 2`): both allocate and free together, and an MMA of one of them accesses both memories.

use crate::args::make;
use titan_core::verify::{WellFormed, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim::{Kind, Limits, Options, Verdict, explore, run};

/// The lines in which two programs differ, and what they have in common.
struct Pair {
    columns: &'static str,
    /// What the first program does between the two barriers of the cluster.
    first: &'static str,
    loads: &'static str,
    last: &'static str,
}

const MMA: &str = "ttg.nv.tcgen05.mma %acc, %a, %b {kind = f16, a = f16, b = f16, d = f32, m = 256, n = 64, k = 16, cta_group = 2}\n\
     ttg.nv.tcgen05.commit %done {cta_group = 2}\nttg.nv.mbarrier.wait_parity %done, %zero\n";
const LOADS: &str = "ttg.nv.tcgen05.fence_after_thread_sync\nttg.nv.tcgen05.ld %acc {shape = \"32x32b\", times = 64}\n\
     ttg.nv.tcgen05.wait_ld\nttg.nv.tcgen05.fence_before_thread_sync\n";
const RIGHT: Pair = Pair {
    columns: "columns = 64, cta_group = 2",
    first: MMA,
    loads: LOADS,
    last: "ttg.nv.tcgen05.dealloc %acc {cta_group = 2}\n",
};

const MEET: &str = "ttg.nv.cluster.arrive\nttg.nv.cluster.wait\n";

fn kernel(pair: &Pair) -> WellFormed {
    let text = format!(
        "kernel @pair(%n: i32) grid(2) role(math, 1) role(epilogue, 4) {{\n%zero = const 0 : i32\n%words = ttg.region {{offset = 0, bytes = \
         64}}\n%done = ttg.nv.mbarrier.alloc %words {{at = 0, n = 1}}\nttg.nv.mbarrier.init %done {{count = \
         1}}\nttg.nv.fence.mbarrier_init\n%a = ttg.region {{offset = 1024, bytes = 4096}}\n%b = ttg.region {{offset = 8192, bytes = \
         1024}}\nttg.region.write %a\nttg.region.write %b\nttg.fence.proxy {{from = generic, to = async, scope = cluster, space = \
         all}}\n%rank = ttg.nv.cluster.rank\n%leads = eq %rank, %zero\n%acc = ttg.nv.tcgen05.alloc {{{columns}}}\nttg.roles math {{\n{MEET}if \
         %leads {{\n{first}yield\n}} else {{\nyield\n}}\n{MEET}{MEET}ttg.nv.tcgen05.fence_after_thread_sync\n{last}ttg.pipeline.finalize\n\
         yield\n}} epilogue {{\n{MEET}{MEET}{loads}{MEET}ttg.pipeline.finalize\nyield\n}}\nreturn\n}}\n",
        columns = pair.columns,
        first = pair.first,
        loads = pair.loads,
        last = pair.last,
    );
    let kernel = titan_core::text::parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    well_formed(kernel).unwrap()
}

fn found(kernel: &WellFormed, cluster: u32) -> Option<(Kind, String)> {
    for (completion, seed) in [(Completion::Late, None), (Completion::Early, None), (Completion::Seeded(9), Some(9))] {
        let options = Options { cluster: Some(cluster), completion, seed, ..Options::default() };
        let report = run(kernel, &mut make(&kernel.sig, 64, 1), None, &options).unwrap();
        if let Some(found) = report.findings.into_iter().next() {
            return Some((found.kind, found.to_string()));
        }
    }
    None
}

#[track_caller]
fn finds(pair: &Pair, kind: Kind, words: &str) {
    let (found, text) = found(&kernel(pair), 2).expect("a finding");
    assert_eq!(found, kind, "{text}");
    assert!(text.contains(words), "{text}");
}

#[test]
fn an_mma_of_two_programs_is_loaded_by_both() {
    let kernel = kernel(&RIGHT);
    assert_eq!(found(&kernel, 2), None);
    let limits = Limits { cluster: 2, max_states: 50_000, ..Limits::default() };
    let verdict = explore(&kernel, &make(&kernel.sig, 64, 1), None, &limits).unwrap();
    assert!(matches!(verdict, Verdict::Safe(_) | Verdict::Bound(..)), "{verdict:?}");
}

#[test]
fn there_must_be_another_program() {
    let (kind, text) = found(&kernel(&RIGHT), 1).expect("a finding");
    assert_eq!(kind, Kind::Participants, "{text}");
    assert!(text.contains("in a cluster of 1"), "{text}");
}

#[test]
fn the_memory_of_the_other_program_is_accessed() {
    // The second program loads its own columns while the MMA of the first one may still write them.
    let early = "ttg.nv.tcgen05.mma %acc, %a, %b {kind = f16, a = f16, b = f16, d = f32, m = 256, n = 64, k = 16, cta_group = 2}\n\
                 ttg.nv.tcgen05.commit %done {cta_group = 2}\n";
    let (kind, text) = found(&kernel(&Pair { first: early, ..RIGHT }), 2).expect("a finding");
    assert!(matches!(kind, Kind::Race | Kind::InFlight), "{kind}: {text}");
    // Without an MMA, neither program has written anything.
    finds(&Pair { first: "", ..RIGHT }, Kind::Undefined, "never written");
}

#[test]
fn operations_on_both_must_be_alike() {
    finds(
        &Pair { last: "ttg.nv.tcgen05.dealloc %acc {cta_group = 1}\n", ..RIGHT },
        Kind::Participants,
        "`cta_group = 1`",
    );
    // Only one of the two frees the columns.
    let one = "if %leads {\nttg.nv.tcgen05.dealloc %acc {cta_group = 2}\nyield\n} else {\nyield\n}\n";
    let (kind, text) = found(&kernel(&Pair { last: one, ..RIGHT }), 2).expect("a finding");
    assert!(matches!(kind, Kind::Deadlock | Kind::TensorMemory | Kind::InFlight), "{kind}: {text}");
    // One frees, the other gives up allocations.
    let other = "if %leads {\nttg.nv.tcgen05.dealloc %acc {cta_group = 2}\nyield\n} else {\nttg.nv.tcgen05.relinquish_alloc_permit {cta_group = \
                 2}\nyield\n}\n";
    finds(&Pair { last: other, ..RIGHT }, Kind::Participants, "different operations");
}

#[test]
fn half_of_each_operand_is_in_each_program() {
    let wide = "ttg.nv.tcgen05.mma %acc, %a, %b {kind = f16, a = f16, b = f16, d = f32, m = 256, n = 80, k = 16, cta_group = 2}\n";
    finds(&Pair { first: wide, columns: "columns = 128, cta_group = 2", ..RIGHT }, Kind::Bounds, "1280 bytes of `b`");
}
