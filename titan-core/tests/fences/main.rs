//! The fence pass against runs of the programs that it changes. `run` knows what happened and in which order; it shares
//! nothing with the analysis that decides where fences go.

mod page;
mod passes;
mod program;
mod run;

use program::{Rng, alone, together};
use titan_core::ir::{Kernel, NvGroup, NvOp, OpId, OpKind, TtgOp};
use titan_core::pipeline::fence::{Options, fence};
use titan_core::text::parse;

/// Every run of a few arguments: trip counts, ways of two branches, an index.
fn wrong(kernel: &Kernel) -> Vec<String> {
    let mut all = Vec::new();
    for n in [0, 1, 2, 5] {
        for way in 0..4 {
            for x in 0..4 {
                all.extend(run::run(kernel, &[n, way & 1, way >> 1, x]).unwrap_or_default());
            }
        }
    }
    all
}

/// Whether some run of the arguments is stuck.
fn stuck(kernel: &Kernel) -> bool {
    (0..4).any(|n| run::run(kernel, &[n, 0, 0, 0]).is_none())
}

fn read(text: &str) -> Kernel {
    let mut kernels = parse(text).unwrap_or_else(|e| panic!("{}\n{text}", e[0].text()));
    kernels.remove(0)
}

/// What was placed: operations of the new kernel that the old one has not, by kind, in order.
fn placed(after: &Kernel, of: impl Fn(&OpKind) -> bool) -> Vec<OpId> {
    let mut found = Vec::new();
    after.walk(&mut |id, op| found.extend(of(&op.kind).then_some(id)));
    found
}

fn without(kernel: &Kernel, gone: OpId) -> Kernel {
    let mut less = kernel.clone();
    less.blocks.iter_mut().for_each(|b| b.ops.retain(|id| *id != gone));
    less
}

const fn is_fence(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Ttg(TtgOp::Fence { .. }))
}

const fn is_wait(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Nv(NvOp::WaitGroup { group: NvGroup::BulkStore, .. }))
}

#[derive(Debug, Default)]
struct Tally {
    programs: usize,
    needed_something: usize,
    fences: usize,
    fences_that_some_run_needs: usize,
    waits: usize,
    waits_that_some_run_needs: usize,
    not_mended: usize,
}

/// Fences of the program itself are left out, so that all of the result were placed.
fn bare(text: &str) -> String {
    text.lines().filter(|l| !l.contains("ttg.fence.proxy")).fold(String::new(), |all, l| all + l + "\n")
}

fn check(text: &str, tally: &mut Tally) {
    let before = read(text);
    let fenced = fence(&before, &Options::default());
    assert!(!stuck(&before), "a program that gets stuck\n{text}");
    tally.programs += 1;
    if !fenced.report.left.is_empty() {
        tally.not_mended += 1;
        return;
    }
    tally.needed_something += usize::from(!wrong(&before).is_empty());
    let after = wrong(&fenced.kernel);
    assert!(after.is_empty(), "{after:?}\n{text}\nafter the pass\n{}", titan_core::text::print(&fenced.kernel));
    let again = fence(&fenced.kernel, &Options::default());
    assert!(again.report.is_unchanged(), "a second run finds something\n{}\n{text}", again.report);
    if text.contains("ttg.fence.proxy") {
        return;
    }
    for at in placed(&fenced.kernel, is_fence) {
        tally.fences += 1;
        tally.fences_that_some_run_needs += usize::from(!wrong(&without(&fenced.kernel, at)).is_empty());
    }
    if !text.contains("bulk_group") {
        for at in placed(&fenced.kernel, is_wait) {
            tally.waits += 1;
            tally.waits_that_some_run_needs += usize::from(!wrong(&without(&fenced.kernel, at)).is_empty());
        }
    }
}

/// Of what is placed, nearly all is needed by some run of these few arguments; the rest are indices of which the analysis
/// does not know that they differ, branches on the same condition, and roles whose loops do not run.
#[expect(clippy::print_stdout, reason = "`--nocapture` shows how many are needed")]
fn enough(tally: &Tally, percent: usize) {
    println!("{tally:?}");
    assert!(tally.needed_something * 2 > tally.programs, "{tally:?}");
    assert!(tally.not_mended * 20 <= tally.programs, "{tally:?}");
    assert!(tally.fences_that_some_run_needs * 100 >= tally.fences * percent, "{tally:?}");
    assert!(tally.waits_that_some_run_needs * 100 >= tally.waits * percent, "{tally:?}");
}

/// Programs of each test.
fn programs() -> u64 {
    test_depth::cases(250, 100)
}

#[test]
fn no_run_of_one_thread_misses_a_fence() {
    let mut tally = Tally::default();
    for seed in 0..programs() {
        let text = alone(&mut Rng::new(seed), false);
        check(&text, &mut tally);
        check(&bare(&text), &mut tally);
    }
    enough(&tally, 90);
}

#[test]
fn no_run_of_two_roles_misses_a_fence() {
    let mut tally = Tally::default();
    for seed in 0..programs() {
        let text = together(&mut Rng::new(10_000 + seed));
        check(&text, &mut tally);
        check(&bare(&text), &mut tally);
    }
    enough(&tally, 80);
}

#[test]
fn no_store_is_in_flight_where_its_region_is_written() {
    let mut tally = Tally::default();
    for seed in 0..programs() {
        let text = alone(&mut Rng::new(20_000 + seed), true);
        check(&text, &mut tally);
        check(&bare(&text), &mut tally);
    }
    enough(&tally, 90);
}
