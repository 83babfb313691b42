//! The groups of asynchronous operations in the kernels of the tests, checked by execution; and with one wait changed.

use crate::tiles::some_kernels;
use titan_core::complete::{check, complete};
use titan_core::driver::stages;
use titan_core::ir::{Kernel, NvGroup, NvOp, OpId, OpKind};
use titan_core::text;
use titan_core::verify::verify;
use titan_nv::{Machine, target};

/// Kernels with MMAs of warpgroups on sm_90a, which the filetests do not have.
const PRODUCTS: [&str; 3] = [
    include_str!("loops/attention.tir"),
    include_str!("../hopper/kernels/gemm.tir"),
    include_str!("../hopper/kernels/gemm_ws.tir"),
];

/// The waits of a kernel, with their classes.
fn waits(kernel: &Kernel) -> Vec<(OpId, NvGroup)> {
    let mut waits = Vec::new();
    kernel.walk(&mut |id, op| {
        if let OpKind::Nv(NvOp::WaitGroup { group, .. }) = op.kind {
            waits.push((id, group));
        }
    });
    waits
}

/// Counts of at most four iterations of each loop are executed: as many as the deepest ring of these kernels has slots, and one more,
/// would show nothing new, since a wait that is too weak is so in the first iteration that fills what it waits for.
#[test]
fn counts_of_groups_hold_when_they_are_executed_and_weaker_ones_do_not() {
    for machine in ["sm_80", "sm_90a"].map(|name| Machine::from_name(name).expect("a target that exists")) {
        let copy_async = target(machine).lane_copies().is_some();
        let (mut checked, mut refused) = (0, [0; 3]);
        let read = |text: &str| {
            verify(text::parse_one(&text.replace("SIZE", "64")).expect("a kernel")).expect("a right kernel")
        };
        let products = PRODUCTS.map(read);
        for kernel in some_kernels().into_iter().chain(&products) {
            let Ok(all) = stages(kernel, machine, true, None) else { continue };
            let counted = complete(&all.laid_out, copy_async);
            assert_eq!(check(&counted, copy_async, false, 4), Ok(()), "{}\n{}", machine.name, text::print(&counted));
            checked += 1;
            for (id, group) in waits(&counted) {
                let mut weaker = counted.clone();
                if let OpKind::Nv(NvOp::WaitGroup { n, .. }) = &mut weaker.ops[id.index()].kind {
                    *n += 1;
                }
                refused[group as usize] += usize::from(check(&weaker, copy_async, false, 4).is_err());
            }
        }
        assert!(
            checked > test_depth::cases(150, 15),
            "{}: only {checked} kernels; refused with one weaker wait, by class: {refused:?}",
            machine.name
        );
        let bulk = machine.name == "sm_90a";
        assert!(refused[NvGroup::CpAsync as usize] > 0);
        assert!(!bulk || refused[NvGroup::Wgmma as usize] > 0 && refused[NvGroup::BulkStore as usize] > 0);
    }
}
