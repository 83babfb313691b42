//! What the passes on the way to a barrier program do not invalidate still holds, on a machine with proxies and roles.

use super::established::made_true;
use super::lowered::{Gemm, compiled, kernel};
use titan_core::collections::SortedSet;
use titan_core::driver::Backend as _;
use titan_core::driver::internals::Fact;
use titan_core::ir::Elem;
use titan_core::plan::plan;
use titan_nv::Machine;

#[test]
fn what_a_pass_does_not_invalidate_still_holds() {
    let gemm = |tile: [u32; 3]| Gemm {
        elems: (Elem::F16, Elem::F16, Elem::F32),
        stored: Elem::F16,
        transposed: [false, false],
        tile,
        size: [64, 64, 64],
    };
    let target = Machine::from_name("sm_90a").expect("it is known").target();
    let mut found = SortedSet::new();
    for text in
        [kernel(&gemm([64, 64, 64])), kernel(&gemm([128, 128, 64])), include_str!("kernels/gemm_ws.tir").to_owned()]
    {
        let rings = compiled(&text).rings;
        let made = made_true(&rings.sig.name, &rings, &plan(&rings, &target, true));
        found.extend(made.expect("it has a barrier program"));
    }
    let found: Vec<Fact> = found.into_iter().collect();
    // These programs need no fences besides those that are written where rings are expanded.
    assert_eq!(found, [Fact::Placed, Fact::Synchronized], "each is not true before its pass, in some kernel");
}
