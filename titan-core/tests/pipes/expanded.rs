//! The checker of expanded loops: what was not made of a loop by its schedule is refused, or computes the same.

use super::ahead;
use super::loop_mutants::{KINDS, Kind, Mutation};
use super::modulo::{Loop, kernel, plain, random, random_peeled, written};
use super::random::{Rng, below};
use std::collections::BTreeMap;
use titan_core::ir::{Kernel, OpId, OpKind};
use titan_core::pipeline::modulo::{check, expand};
use titan_core::text::print;
use titan_core::verify::well_formed;

/// Whether a kernel does what it should, for each number of iterations. A value that is used before it is defined is a difference.
fn is_right(kernel: &Kernel, right: &dyn Fn(&Kernel) -> bool) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| right(kernel))).is_ok_and(|right| right)
}

/// How many mutants of a kind were refused, and accepted although they differ from what the rewriter made: they compute the same.
pub(super) type Counts = BTreeMap<Kind, [usize; 2]>;

/// Makes a mutant of what a loop was expanded to. It is refused, or right.
pub(super) fn mutate(text: &str, kind: Kind, rng: &mut Rng, counts: &mut Counts, right: &dyn Fn(&Kernel) -> bool) {
    let before = kernel(text);
    let expanded = expand(&before).expect("it is legal");
    // Loops of prologues come before it, and none after it but those inside of operations, which have no schedules.
    let mut looped = None;
    expanded.walk(&mut |id, op| {
        let of = op.origin.filter(|_| matches!(op.kind, OpKind::For(_))).map(|origin| before.op(origin.op));
        let mut ops = of.iter().flat_map(|of| &of.regions).flat_map(|body| &before.block(*body).ops);
        if ops.any(|id| before.op(*id).planned.is_some()) {
            looped = Some(id);
        }
    });
    let looped: OpId = looped.expect("a loop");
    let mut choose = |n: usize| below(rng, n);
    let mut mutation = Mutation::new(&expanded, looped, &mut choose);
    if mutation.make(kind).is_none() {
        return;
    }
    let mutant = mutation.kernel.canonical();
    if well_formed(mutant.clone()).is_err() {
        return;
    }
    let is_accepted = check(&before, &mutant).is_ok();
    assert!(!is_accepted || is_right(&mutant, right), "{kind:?} was accepted:\n{text}\n{}", print(&mutant));
    counts.entry(kind).or_default()[usize::from(is_accepted)] += 1;
}

/// A mutant may be refused though it computes the same: the checker shows more than results, such as that nothing is executed twice.
fn report(counts: &Counts, kinds: &[Kind]) {
    println!("kind: refused, accepted with equal results\n{counts:?}");
    for kind in kinds {
        assert!(
            counts.get(kind).is_some_and(|[refused, _]| *refused > 0),
            "{kind:?}: no mutant was refused: {counts:?}"
        );
    }
}

#[test]
fn what_differs_from_the_loop_it_was_made_of_is_refused() {
    let mut rng = Rng(0x1357_9bdf_0246_8ace);
    let mut counts = Counts::new();
    for turn in 0..test_depth::cases(30_000, 2500) {
        let made: Loop = random(&mut rng);
        let text = made.text();
        let most = 2 * made.stages as i64 + 6;
        let right = |mutant: &Kernel| (0..=most).all(|n| written(&plain(&text), n) == written(mutant, n));
        mutate(&text, KINDS[turn % 19], &mut rng, &mut counts, &right);
    }
    report(&counts, &KINDS[..19]);
}

#[test]
fn what_differs_from_a_peeled_loop_is_refused() {
    let mut rng = Rng(0x7531_fdb9_8642_0eca);
    let mut counts = Counts::new();
    // These loops have no constants of their own.
    let behind = [Kind::ShortEnd, Kind::TwiceAfter, Kind::FirstCondition, Kind::Yielded];
    let kinds: Vec<Kind> = KINDS[..19].iter().copied().filter(|kind| *kind != Kind::Constant).chain(behind).collect();
    for turn in 0..test_depth::cases(30_000, 2500) {
        let made: Loop = random_peeled(&mut rng);
        let text = made.text();
        if expand(&kernel(&text)).is_err() {
            // All of it is in one stage.
            continue;
        }
        let right = |mutant: &Kernel| (-1..=9).all(|n| written(&plain(&text), n) == written(mutant, n));
        mutate(&text, kinds[turn % kinds.len()], &mut rng, &mut counts, &right);
    }
    report(&counts, &kinds);
}

#[test]
fn loops_over_rings_that_fill_read_or_release_otherwise_are_refused() {
    let mut rng = Rng(0x2468_ace0_1357_9bdf);
    let mut counts = Counts::new();
    for turn in 0..test_depth::cases(30_000, 2500) {
        let made = ahead::random(&mut rng);
        let text = made.text();
        let before = kernel(&text);
        let right = |mutant: &Kernel| ahead::difference(&before, mutant, made.most()).is_none();
        mutate(&text, KINDS[turn % KINDS.len()], &mut rng, &mut counts, &right);
    }
    // What is stated of an operation matters if its result is carried, as few are here; and tiles have no layouts.
    let none_here = [
        Kind::FirstCondition,
        Kind::Yielded,
        Kind::PassedOn,
        Kind::Initial,
        Kind::OtherOperation,
        Kind::Result,
        Kind::Ahead,
        Kind::Layout,
    ];
    let kinds: Vec<Kind> = KINDS.into_iter().filter(|kind| !none_here.contains(kind)).collect();
    report(&counts, &kinds);
}
