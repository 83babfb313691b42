//! Completion of MMAs of warpgroups: waits for the results that loops carry.

use titan_core::complete::{check, complete};
use titan_core::ir::{Kernel, NvGroup, NvOp, OpKind};
use titan_core::text::{parse_one, print};

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

/// A loop that adds products of an operand in registers, which each iteration takes from `set`, and passes on as `next`.
fn with_operand(set: &str, operand: &str, next: &str) -> Kernel {
    let text = format!(
        "kernel @operand(%n: i32)
    plan(4, 32, mbarrier)
    layout(64x8, reg(j1, i8), lane(j2, j4, i1, i2, i4), warp(i16, i32))
    layout(64x16, reg(j1, i8, j8), lane(j2, j4, i1, i2, i4), warp(i16, i32))
    encoding(16x8, 16, order(1, 0), row(16, 32), b32)
{{
    %zero = const 0 : i32
    %one = const 1 : i32
    %nothing = const 0.0 : f32
    %h = const 0.0 : f16
    %b = ttg.local.alloc : smem<16x8xf16, 0>
    %start = splat %nothing : tile<64x8xf32, 0>
    %p = splat %h : tile<64x16xf16, 1>
    ttg.nv.wgmma.fence
    %x = ttg.nv.wgmma.mma_async %p, %b, %start : compute<64x8xf32, 0>
    %x.4, %p.4 = for %i = %zero to %n step %one carry(%x.2 = %x, %c = %p) : compute<64x8xf32, 0>, tile<64x16xf16, 1> {{
        {set}
        ttg.nv.wgmma.fence
        %x.3 = ttg.nv.wgmma.mma_async {operand}, %b, %x.2 : compute<64x8xf32, 0>
        continue %x.3, {next}
    }}
    %last = ttg.compute.wait %x.4 : tile<64x8xf32, 0>
    return
}}
"
    );
    parse_one(&text).expect("a kernel")
}

#[test]
fn an_operand_in_registers_is_written_after_the_product_that_reads_it() {
    let branch = "%odd = eq %i, %one : bool
        %a = if %odd : tile<64x16xf16, 1> {
            yield %c
        } else {
            yield %p
        }";
    for (set, operand, next, inside) in [
        ("%a = splat %h : tile<64x16xf16, 1>", "%a", "%c", 1),
        ("%a = add %c, %p : tile<64x16xf16, 1>", "%a", "%a", 1),
        // A part of the tile may be in its registers.
        ("%w = add %c, %p : tile<64x16xf16, 1>\n%a = permute<0, 1> %w : tile<64x16xf16, 1>", "%a", "%c", 1),
        (branch, "%a", "%c", 1),
        // What the loop carries is written where the iteration ends.
        ("%a = add %c, %p : tile<64x16xf16, 1>", "%c", "%a", 1),
        // These are not written.
        ("", "%p", "%c", 0),
        ("", "%c", "%c", 0),
        ("%a = add %c, %p : tile<64x16xf16, 1>", "%p", "%a", 0),
    ] {
        let made = complete(&with_operand(set, operand, next), false);
        assert_eq!(check(&made, false, false, 4), Ok(()), "{}", print(&made));
        let waits = waits(&made);
        assert_eq!(waits.len(), 1 + inside, "{}", print(&made));
        if inside == 0 {
            continue;
        }
        // Without the wait in the loop, or if it leaves one more group in flight, the checker finds the write.
        let mut weaker = made.clone();
        let mut first = true;
        for op in &mut weaker.ops {
            if let OpKind::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, n, .. }) = &mut op.kind
                && std::mem::take(&mut first)
            {
                *n += 1;
            }
        }
        assert!(check(&weaker, false, false, 4).is_err(), "{}", print(&weaker));
    }
}
