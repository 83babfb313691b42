//! The facts of the passes on the way to a barrier program, established from kernels alone.

use titan_core::allocate::allocate;
use titan_core::collections::SortedSet;
use titan_core::driver::internals::{Fact, followed};
use titan_core::ir::{Kernel, LocalOp, OpKind};
use titan_core::pipeline::fence::{Options, fence};
use titan_core::plan::Plan;
use titan_core::synchronize::synchronize;
use titan_core::verify::{Verified, barrier_program};

/// Whether a fact holds.
fn holds(fact: Fact, kernel: &Kernel) -> bool {
    let has_none = |wrong: &dyn Fn(&OpKind) -> bool| {
        let mut found = false;
        kernel.walk(&mut |_, op| found |= wrong(&op.kind));
        !found
    };
    match fact {
        Fact::LaidOut => kernel.laid_out.is_some(),
        Fact::Counted => has_none(&|kind| matches!(kind, OpKind::Local(LocalOp::Settle { .. }))),
        Fact::Barriers => has_none(&|kind| matches!(kind, OpKind::Ttg(ttg) if ttg.is_of_rings())),
        Fact::Placed => {
            let mut again = kernel.clone();
            allocate(&mut again);
            again == *kernel
        }
        Fact::Synchronized => synchronize(&mut kernel.clone()) == 0,
        Fact::Fenced => fence(kernel, &Options::default()).report.is_unchanged(),
        Fact::Proven => barrier_program(kernel).is_ok(),
    }
}

/// Checks behind every pass that the facts hold which it gives or does not invalidate. Returns those that a pass made true of a barrier program of
/// which they were not true before; `None` if there is no program.
pub(crate) fn made_true(name: &str, kernel: &Verified, plan: &Plan) -> Option<SortedSet<Fact>> {
    let mut before: Option<Kernel> = None;
    let mut found = SortedSet::new();
    let program = followed(kernel, plan, (0, false), &mut |pass, kernel, facts| {
        for fact in facts {
            assert!(holds(*fact, kernel), "{name}: after `{}`, {fact:?} does not hold", pass.name);
        }
        if let Some(before) = before.replace(kernel.clone()).filter(|_| pass.needs.contains(&Fact::Barriers)) {
            found.extend((!holds(pass.gives, &before)).then_some(pass.gives));
        }
    });
    program.ok().map(|_| found)
}
