//! Completion of MMAs of warpgroups: waits for the results that loops carry.

use titan_core::complete::complete;
use titan_core::ir::{Kernel, NvGroup, NvOp, OpKind};
use titan_core::text::parse_one;

/// Two MMAs in flight, of which a loop waits for the first and issues it again. The second is waited for behind the loop.
fn kernel(trips: &str) -> Kernel {
    let text = format!(
        "kernel @two(%n: i32)
    plan(4, 32, mbarrier)
    layout(64x8, reg(j1, i8), lane(j2, j4, i1, i2, i4), warp(i16, i32))
    encoding(64x16, 16, order(0, 1), row(16, 32), b32)
    encoding(16x8, 16, order(1, 0), row(16, 32), b32)
{{
    %zero = const 0 : i32
    %one = const 1 : i32
    %five = const 5 : i32
    %nothing = const 0.0 : f32
    %a = ttg.local.alloc : smem<64x16xf16, 0>
    %b = ttg.local.alloc : smem<16x8xf16, 1>
    %start = splat %nothing : tile<64x8xf32, 0>
    ttg.nv.wgmma.fence
    %x = ttg.nv.wgmma.mma_async %a, %b, %start : compute<64x8xf32, 0>
    ttg.nv.wgmma.fence
    %y = ttg.nv.wgmma.mma_async %a, %b, %start : compute<64x8xf32, 0>
    %x.4 = for %i = %zero to {trips} step %one carry(%x.2 = %x) : compute<64x8xf32, 0> {{
        %done = ttg.compute.wait %x.2 : tile<64x8xf32, 0>
        ttg.nv.wgmma.fence
        %x.3 = ttg.nv.wgmma.mma_async %a, %b, %done : compute<64x8xf32, 0>
        continue %x.3
    }}
    %last = ttg.compute.wait %x.4 : tile<64x8xf32, 0>
    %other = ttg.compute.wait %y : tile<64x8xf32, 0>
    return
}}
"
    );
    parse_one(&text).expect("a kernel")
}

/// The groups that may be in flight after each wait for results, in program order.
fn waits(kernel: &Kernel) -> Vec<u32> {
    let mut found = Vec::new();
    kernel.walk(&mut |_, op| {
        if let OpKind::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, n, .. }) = op.kind {
            found.push(n);
        }
    });
    found
}

#[test]
fn a_wait_serves_every_iteration_of_its_loop() {
    // In the first iteration `y` is younger than `x`, in the others nothing is: the count must be right for all of them.
    for trips in ["%five", "%n"] {
        assert_eq!(waits(&complete(&kernel(trips), false))[..1], [0], "{trips}");
    }
    // One iteration leaves `y` in flight.
    assert_eq!(waits(&complete(&kernel("%one"), false))[..1], [1]);
}
