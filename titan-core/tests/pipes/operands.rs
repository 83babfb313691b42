//! What products of warpgroups read: memory that a product in flight keeps although the next one reads other memory, and registers, which a
//! fence makes visible.

use super::modulo::kernel;
use titan_core::ir::{Kernel, NvOp, OpId, OpKind, TtgOp, Value};
use titan_core::pipeline::modulo::{check, expand};
use titan_core::text::print;

/// A kernel with these operations, two pairs of operands in shared memory, and zeros to begin with.
fn text(ops: &str) -> String {
    format!(
        "kernel @k(%a: in tensor<f16>[N, K], %o: mut tensor<f32>[M, K]) grid(1) {{\n%n = dim<0> %a\n%zero = const 0 : i32\n\
         %one = const 1 : i32\n%none = const 0.0 : f32\n%pad = const 0.0 : f16\n%init = splat %none : tile<64x16xf32>\n\
         %p = ttg.local.alloc : smem<64x16xf16>\n%q = ttg.local.alloc : smem<16x16xf16>\n\
         %p2 = ttg.local.alloc : smem<64x16xf16>\n%q2 = ttg.local.alloc : smem<16x16xf16>\n\
         %from = splat %pad : tile<16x16xf16>\n{ops}\nreturn\n}}\n"
    )
}

/// The same with a loop of this body, which carries `%x`.
fn looped(body: &str) -> String {
    text(&format!(
        "%r = for %i = %zero to %n step %one carry(%x = %init) : tile<64x16xf32> peeled {{\n{body}\n}}\n\
         store_tile %o[%zero, %zero], %r"
    ))
}

/// Why a loop is refused, by the rewriter or by the checker; `None` if it is not.
fn refused(text: &str) -> Option<String> {
    let before = kernel(text);
    match expand(&before) {
        Err(why) => Some(why.message),
        Ok(made) => check(&before, &made).err().map(|why| why.message),
    }
}

fn why(what: &str, text: &str) -> String {
    let why = refused(text).unwrap_or_else(|| panic!("{what} is accepted:\n{text}"));
    println!("{what}: {why}");
    why
}

/// The wait for a product is left out, and so is the time at which its memory is free. The next product reads other memory, so that nothing else
/// keeps it.
#[test]
fn memory_of_a_product_in_flight_is_kept_although_the_next_one_reads_other_memory() {
    let one = |store: &str| {
        looped(&format!(
            "ttg.nv.wgmma.fence stage(0, 0)\n%e = ttg.nv.wgmma.mma_async %p, %q, %x : compute<64x16xf32> stage(0, 1)\n{store}\
             %d = ttg.nv.wgmma.mma_async %p2, %q2, %e : compute<64x16xf32> stage(0, 3)\n\
             %y = ttg.compute.wait %d : tile<64x16xf32> stage(1, 4)\ncontinue %y"
        ))
    };
    why("a store between two instructions", &one("ttg.local.store %from, %q2 stage(0, 2)\n"));
    let two = looped(
        "ttg.nv.wgmma.fence stage(0, 0)\n%e = ttg.nv.wgmma.mma_async %p, %q, %x : compute<64x16xf32> stage(0, 1)\n\
         %w = ttg.compute.wait %e : tile<64x16xf32> stage(0, 4)\nttg.nv.wgmma.fence stage(0, 5)\n\
         %d = ttg.nv.wgmma.mma_async %p2, %q2, %w : compute<64x16xf32> stage(0, 6)\n\
         %y = ttg.compute.wait %d : tile<64x16xf32> stage(1, 2)\nttg.local.store %from, %q2 stage(1, 3)\ncontinue %y",
    );
    why("a store behind the wait of the second product", &two);
}

/// A loop of one stage in which a fence is executed before what it follows.
fn in_one_stage(body: &str) -> String {
    text(&format!("for %i = %zero to %n step %one {{\n{body}\ncontinue\n}}"))
}

#[test]
fn a_fence_stays_behind_the_operands_of_products_in_branches() {
    let body = |[fence, operand]: [u16; 2]| {
        in_one_stage(&format!(
            "%c = lt %i, %n : bool stage(0, 0)\n%t = splat %pad : tile<64x16xf16> stage(0, {operand})\nttg.nv.wgmma.fence stage(0, {fence})\n\
             if %c stage(0, 3) {{\n%d = ttg.nv.wgmma.mma_async %t, %q, %init : compute<64x16xf32>\n\
             %y = ttg.compute.wait %d : tile<64x16xf32>\nstore_tile %o[%zero, %zero], %y\nyield\n}} else {{\nyield\n}}"
        ))
    };
    assert_eq!(refused(&body([2, 1])), None);
    assert!(why("a fence before an operand", &body([1, 2])).contains("registers of MMAs"));
    let behind = body([4, 1]);
    assert!(why("a fence behind the branch", &behind).contains("registers of MMAs"));
}

/// The fence of one iteration is in front of the product of the next one.
#[test]
fn a_fence_at_the_end_stays_behind_the_operands_of_the_next_iteration() {
    let body = |[fence, operand]: [u16; 2]| {
        text(&format!(
            "%first = splat %pad : tile<64x16xf16>\nttg.nv.wgmma.fence\n\
             %r = for %i = %zero to %n step %one carry(%t = %first) : tile<64x16xf16> {{\n\
             %d = ttg.nv.wgmma.mma_async %t, %q, %init : compute<64x16xf32> stage(0, 0)\n\
             %y = ttg.compute.wait %d : tile<64x16xf32> stage(0, 1)\nstore_tile %o[%zero, %zero], %y stage(0, 2)\n\
             %next = splat %pad : tile<64x16xf16> stage(0, {operand})\nttg.nv.wgmma.fence stage(0, {fence})\ncontinue %next\n}}"
        ))
    };
    assert_eq!(refused(&body([4, 3])), None);
    assert!(why("a fence before an operand", &body([3, 4])).contains("registers of MMAs"));
}

/// What a peeled loop computes is an operand of a product behind it: the fence of that follows the loop.
#[test]
fn a_fence_stays_behind_a_peeled_loop_that_computes_an_operand() {
    let body = |[fence, inner]: [u16; 2]| {
        in_one_stage(&format!(
            "%s = for %j = %zero to %n step %one carry(%x = %init) : tile<64x16xf32> peeled stage(0, {inner}) {{\n\
             ttg.nv.wgmma.fence stage(0, 0)\n%d = ttg.nv.wgmma.mma_async %p, %q, %x : compute<64x16xf32> stage(0, 1)\n\
             %y = ttg.compute.wait %d : tile<64x16xf32> stage(1, 2)\ncontinue %y\n}}\n\
             ttg.nv.wgmma.fence stage(0, {fence})\n%e = ttg.nv.wgmma.mma_async %p2, %q2, %s : compute<64x16xf32> stage(0, 3)\n\
             %z = ttg.compute.wait %e : tile<64x16xf32> stage(0, 4)\nstore_tile %o[%zero, %zero], %z stage(0, 5)"
        ))
    };
    assert_eq!(refused(&body([2, 1])), None);
    assert!(why("a fence before the loop", &body([1, 2])).contains("registers of MMAs"));
}

fn all(kernel: &Kernel, wanted: &OpKind) -> Vec<OpId> {
    let mut found = Vec::new();
    kernel.walk(&mut |id, op| found.extend((op.kind == *wanted).then_some(id)));
    found
}

/// Lets the second product of each copy of the body continue the first one, without the wait for that.
fn continuing(made: &mut Kernel) {
    let products = all(made, &OpKind::Nv(NvOp::Wgmma));
    let waits = all(made, &OpKind::Ttg(TtgOp::ComputeWait));
    for product in products {
        let sum: Value = made.op(product).args[2];
        let Some(wait) = waits.iter().copied().find(|wait| made.op(*wait).results.contains(&sum)) else { continue };
        let in_flight = made.op(wait).args[0];
        made.ops[product.index()].args[2] = in_flight;
        made.blocks.iter_mut().for_each(|block| block.ops.retain(|id| *id != wait));
    }
}

/// A branch may not be executed, and then nothing waits for the product.
#[test]
fn a_product_in_a_branch_does_not_continue_one_in_flight() {
    let body = "%u = add %i, %one : i32 stage(0, 0)\n%c = lt %u, %n : bool stage(0, 1)\nttg.nv.wgmma.fence stage(1, 2)\n\
                %d = ttg.nv.wgmma.mma_async %p, %q, %init : compute<64x16xf32> stage(1, 3)\n\
                %y = ttg.compute.wait %d : tile<64x16xf32> stage(1, 4)\nif %c stage(1, 5) {\nttg.nv.wgmma.fence\n\
                %e = ttg.nv.wgmma.mma_async %p, %q, %y : compute<64x16xf32>\n%z = ttg.compute.wait %e : tile<64x16xf32>\n\
                store_tile %o[%zero, %zero], %z\nyield\n} else {\nyield\n}\ncontinue %x";
    let before = kernel(&looped(body));
    let mut made = expand(&before).unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!(check(&before, &made), Ok(()), "{}", print(&made));
    continuing(&mut made);
    let why = check(&before, &made).expect_err("nothing waits for the first product");
    println!("{why:?}\n{}", print(&made));
}

/// Matrix units execute MMAs on one accumulator in order if they have one shape, which depends on the operands' elements.
#[test]
fn a_product_of_other_elements_does_not_continue_one_in_flight() {
    let body = |b: &str| {
        format!(
            "%b = ttg.local.alloc : smem<64x32x{b}>\n%c = ttg.local.alloc : smem<32x16x{b}>\n\
             %r = for %i = %zero to %n step %one carry(%x = %init) : tile<64x16xf32> peeled {{\n\
             ttg.nv.wgmma.fence stage(0, 0)\n%d = ttg.nv.wgmma.mma_async %p, %q, %x : compute<64x16xf32> stage(0, 1)\n\
             %w = ttg.compute.wait %d : tile<64x16xf32> stage(0, 2)\nttg.nv.wgmma.fence stage(0, 3)\n\
             %e = ttg.nv.wgmma.mma_async %b, %c, %w : compute<64x16xf32> stage(0, 4)\n\
             %y = ttg.compute.wait %e : tile<64x16xf32> stage(1, 5)\ncontinue %y\n}}\nstore_tile %o[%zero, %zero], %r"
        )
    };
    why("a product of fp8 behind one of f16", &text(&body("e4m3")));
}
