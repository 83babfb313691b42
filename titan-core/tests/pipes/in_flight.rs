//! Products of warpgroups in loops of two stages: a product continues the one in flight, and nothing may depend on that it is complete.

use super::modulo::kernel;
use titan_core::ir::{Kernel, NvOp, OpKind, TtgOp};
use titan_core::pipeline::modulo::{check, expand};
use titan_core::text::print;

/// A kernel with a loop of this body, which carries `%x`, and is entered with zeros.
fn text(body: &str) -> String {
    format!(
        "kernel @k(%a: in tensor<f16>[N, K], %o: mut tensor<f32>[M, K]) grid(1) {{\n%n = dim<0> %a\n%zero = const 0 : i32\n\
         %one = const 1 : i32\n%none = const 0.0 : f32\n%pad = const 0.0 : f16\n%init = splat %none : tile<64x16xf32>\n\
         %p = ttg.local.alloc : smem<64x16xf16>\n%q = ttg.local.alloc : smem<16x16xf16>\n\
         %from = splat %pad : tile<16x16xf16>\n\
         %r = for %i = %zero to %n step %one carry(%x = %init) : tile<64x16xf32> peeled {{\n{body}\n}}\n\
         store_tile %o[%zero, %zero], %r\nreturn\n}}\n"
    )
}

/// A body with a product, its fence and the wait for it at these stages and places, and other operations in front of them and behind them.
fn body([fence, product, wait]: [&str; 3], before: &str, behind: &str) -> String {
    format!(
        "{before}ttg.nv.wgmma.fence stage({fence})\n\
         %d = ttg.nv.wgmma.mma_async %p, %q, %x : compute<64x16xf32> stage({product})\n\
         %y = ttg.compute.wait %d : tile<64x16xf32> stage({wait})\n{behind}continue %y"
    )
}

/// The wait for the product is behind the next product.
fn late(before: &str, behind: &str) -> String {
    body(["0, 4", "0, 5", "1, 6"], before, behind)
}

fn count(kernel: &Kernel, wanted: &OpKind) -> usize {
    let mut n = 0;
    kernel.walk(&mut |_, op| n += usize::from(op.kind == *wanted));
    n
}

/// Why a loop of this body is refused, by the rewriter or by the checker; `None` if it is not.
fn refused(body: &str) -> Option<String> {
    let before = kernel(&text(body));
    match expand(&before) {
        Err(why) => Some(why.message),
        Ok(made) => check(&before, &made).err().map(|why| why.message),
    }
}

#[test]
fn a_product_continues_the_one_in_flight() {
    let before = kernel(&text(&late("", "")));
    let made = expand(&before).unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!(check(&before, &made), Ok(()), "{}", print(&made));
    // One product for the first iteration and one for the others; only the last one is waited for.
    assert_eq!(count(&made, &OpKind::Nv(NvOp::Wgmma)), 2);
    assert_eq!(count(&made, &OpKind::Ttg(TtgOp::ComputeWait)), 1);
    // Waited for in front of the next product, nothing is in flight, and each is waited for.
    let in_turn = body(["0, 1", "0, 2", "1, 0"], "", "");
    let before = kernel(&text(&in_turn));
    let made = expand(&before).unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!(check(&before, &made), Ok(()), "{}", print(&made));
    assert_eq!(count(&made, &OpKind::Ttg(TtgOp::ComputeWait)), 2);
}

#[test]
fn what_needs_a_complete_product_is_refused_behind_the_next_one() {
    let also = |what: &str, body: String| {
        let why = refused(&body).unwrap_or_else(|| panic!("{what} is accepted"));
        println!("{what}: {why}");
        why
    };
    // The result is used otherwise.
    let stored = late("", "store_tile %o[%zero, %zero], %y stage(1, 7)\n");
    assert!(also("a store of the result", stored).contains("before one whose result it uses"));
    also("a sum of the result", late("", "%w = add %y, %y : tile<64x16xf32> stage(1, 7)\n"));
    also("another use of the accumulator", late("%w = add %x, %x : tile<64x16xf32> stage(0, 3)\n", ""));
    // Threads write an operand, which the product before still reads.
    let written = late("ttg.local.store %from, %q stage(0, 3)\n", "");
    assert!(also("a store to an operand", written).contains("what this stage, tile or tensor holds"));
    let behind = late("", "ttg.local.store %from, %q stage(1, 7)\n");
    assert!(also("a store to an operand behind the wait", behind).contains("what this stage, tile or tensor holds"));
}

/// What was made of the loop, with a mistake in it.
#[test]
fn products_that_continue_others_are_refused() {
    let before = kernel(&text(&late("", "")));
    let made = expand(&before).unwrap_or_else(|why| panic!("{why:?}"));
    let products: Vec<_> = {
        let mut found = Vec::new();
        made.walk(&mut |id, op| found.extend((op.kind == OpKind::Nv(NvOp::Wgmma)).then_some(id)));
        found
    };
    let waits: Vec<_> = {
        let mut found = Vec::new();
        made.walk(&mut |id, op| found.extend((op.kind == OpKind::Ttg(TtgOp::ComputeWait)).then_some(id)));
        found
    };
    let is_refused = |change: &dyn Fn(&mut Kernel)| {
        let mut mutant = made.clone();
        change(&mut mutant);
        assert!(mutant != made && check(&before, &mutant).is_err(), "{}", print(&mutant));
    };
    let first = made.op(products[0]).results[0];
    let initial = made.op(products[0]).args[2];
    // The product of the loop continues the first one in every iteration, or none.
    is_refused(&|mutant| mutant.ops[products[1].index()].args[2] = first);
    is_refused(&|mutant| mutant.ops[products[1].index()].args[2] = initial);
    // The last wait is for the first product.
    is_refused(&|mutant| mutant.ops[waits[0].index()].args[0] = first);
    // There is none.
    is_refused(&|mutant| mutant.blocks.iter_mut().for_each(|block| block.ops.retain(|id| *id != waits[0])));
}
