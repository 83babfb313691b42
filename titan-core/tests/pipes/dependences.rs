//! Dependences that are not those of values: schedules that violate one are refused by the checker of expanded loops, if not by the rewriter.

use super::ahead::{difference, kernel};
use titan_core::driver::loop_graphs;
use titan_core::ir::{Kernel, OpKind};
use titan_core::pipeline::modulo::{check, expand};
use titan_core::target::Target;
use titan_core::text::print;

/// A loop over this body, in a kernel with a ring.
fn looped(kind: &str, body: &str) -> String {
    format!(
        "kernel @k(%a: in tensor<f16>[M, K], %c: mut tensor<f16>[P, Q], %o: mut tensor<i32>[R]) grid(1) pipe(3, \"s\", tile<16x16xf16>) {{\n\
         %n = dim<1> %a\n%zero = const 0 : i32\n%one = const 1 : i32\n%h = const 0.0 : f16\n%f = const 0.0 : f32\n\
         %x = splat %h : tile<16x16xf16>\n%z = splat %f : tile<16x16xf32>\n\
         for %i = %zero to %n step %one{kind} {{\n{body}\ncontinue\n}}\nreturn\n}}\n"
    )
}

/// What is said of a schedule by the rewriter or by the checker.
fn refused(text: &str) -> String {
    let before = kernel(text);
    let made = expand(&before).and_then(|made| check(&before, &made).map(|()| made));
    made.map(|made| print(&made)).expect_err(text).message
}

fn accepted(text: &str) -> Kernel {
    let before = kernel(text);
    let made = expand(&before).unwrap_or_else(|why| panic!("{why:?}\n{text}"));
    assert_eq!(check(&before, &made), Ok(()), "{text}\n{}", print(&made));
    made
}

/// Each line of the body with the next place of one stage, in the order that is given.
fn in_order(body: &[&str], order: &[usize]) -> String {
    let place = |line: usize| order.iter().position(|at| *at == line).expect("a permutation");
    let lines: Vec<String> =
        body.iter().enumerate().map(|(at, line)| format!("{line} stage(0, {})", place(at))).collect();
    looped("", &lines.join("\n"))
}

#[test]
fn a_load_from_scratch_memory_stays_behind_its_store() {
    let body = [
        "%b = ttg.local.alloc : smem<16x16xf16>",
        "ttg.local.store %x, %b",
        "%y = ttg.local.load %b : tile<16x16xf16>",
        "store_tile %c[%zero, %i], %y",
    ];
    accepted(&in_order(&body, &[0, 1, 2, 3]));
    let message = refused(&in_order(&body, &[0, 2, 1, 3]));
    assert!(message.contains("a buffer in shared memory"), "{message}");
}

#[test]
fn a_stage_is_released_behind_the_wait_for_the_product_that_reads_it() {
    let body = [
        "%slot = ttg.stage.acquire<0> : slot<0>",
        "%s = ttg.source_tile %a[%zero, %i] or %h : source<16x16xf16>",
        "ttg.stage.async_produce %slot, %s {bytes = 512, proxy = generic}",
        "%r = ttg.stage.ready<0> : ready<0>",
        "%w = ttg.stage.wait_ready %r : stage<0>",
        "%p = ttg.stage.read_perm %w : rperm<0>",
        "%v = ttg.stage.view<0> %p : smem<16x16xf16>",
        "ttg.nv.wgmma.fence",
        "%m = ttg.nv.wgmma.mma_async %v, %v, %z : compute<16x16xf32>",
        "%y = ttg.compute.wait %m : tile<16x16xf32>",
        "%d = ttg.stage.consumed %p : consumed<0>",
        "ttg.stage.release %d",
    ];
    accepted(&in_order(&body, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]));
    let message = refused(&in_order(&body, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 9]));
    assert!(message.contains("exchanges"), "{message}");
    let message = refused(&in_order(&body, &[0, 1, 2, 3, 4, 5, 6, 8, 7, 9, 10, 11]));
    assert!(message.contains("registers of MMAs in flight"), "{message}");
    // The wait for what is not filled yet, and the slot that is not free yet.
    let message = refused(&in_order(&body, &[0, 1, 3, 4, 2, 5, 6, 7, 8, 9, 10, 11]));
    assert!(message.contains("the stage that one fills"), "{message}");
}

#[test]
fn elements_are_stored_and_printed_in_their_order() {
    let body = ["set %o[%i], %one", "set %o[%zero], %i", "%y = xor %i, %one : i32"];
    accepted(&in_order(&body, &[2, 0, 1]));
    let message = refused(&in_order(&body, &[1, 0, 2]));
    assert!(message.contains("exchanges"), "{message}");
}

/// Copies are ahead by more iterations than there are slots.
#[test]
fn a_ring_with_too_few_slots_is_refused() {
    let body = |ahead: u32| {
        let lines = [
            ("%slot = ttg.stage.acquire<0> : slot<0>", 0),
            ("%s = ttg.source_tile %a[%zero, %i] or %h : source<16x16xf16>", 0),
            ("ttg.stage.async_produce %slot, %s {bytes = 512, proxy = generic}", 0),
            ("%r = ttg.stage.ready<0> : ready<0>", ahead),
            ("%w = ttg.stage.wait_ready %r : stage<0>", ahead),
            ("%p = ttg.stage.read_perm %w : rperm<0>", ahead),
            ("%d = ttg.stage.consumed %p : consumed<0>", ahead),
            ("ttg.stage.release %d", ahead),
        ];
        let lines: Vec<String> =
            lines.iter().enumerate().map(|(at, (line, stage))| format!("{line} stage({stage}, {at})")).collect();
        looped("", &lines.join("\n"))
    };
    accepted(&body(2));
    let message = refused(&body(3));
    assert!(message.contains("too few slots"), "{message}");
}

#[test]
fn what_may_not_end_or_leaves_its_memory_does_not_run_ahead() {
    let cases = [
        // A loop whose steps are 0 in the iteration beyond the last one.
        "%step = sub %n, %i : i32 stage(1, 0)\n\
         %y = for %j = %zero to %n step %step carry(%k = %i) : i32 stage(0, 1) {\ncontinue %k\n}\nset %o[%y], %one stage(1, 2)",
        // A part of a buffer beyond its end.
        "%b = ttg.local.alloc : smem<64x16xf16> stage(1, 0)\n%part = ttg.local.slice<0, 16> %b, %i : smem<16x16xf16> stage(1, 1)\n\
         %y = ttg.local.load %part : tile<16x16xf16> stage(0, 2)\nstore_tile %c[%zero, %i], %y stage(1, 3)",
        // Stages that nothing fills.
        "%r = ttg.stage.ready<0> : ready<0> stage(0, 0)\n%w = ttg.stage.wait_ready %r : stage<0> stage(0, 1)\n\
         %p = ttg.stage.read_perm %w : rperm<0> stage(0, 2)\n%d = ttg.stage.consumed %p : consumed<0> stage(1, 3)\n\
         ttg.stage.release %d stage(1, 4)",
    ];
    for body in cases {
        let message = refused(&looped("", body));
        assert!(message.contains("exist") || message.contains("before one whose result"), "{message}\n{body}");
    }
}

/// The counter of a loop whose iterations are dealt to programs is not one step further in the next iteration.
#[test]
fn the_next_counter_of_a_distributed_loop_is_not_known() {
    let text = "kernel @k(%a: in tensor<f16>[M, K], %o: mut tensor<i32>[R]) grid persistent {\n%n = dim<1> %a\n%zero = const 0 : i32\n\
                %one = const 1 : i32\n%r = for %i = %zero to %n step %one distributed carry(%p = %zero) : i32 {\n\
                set %o[%i], %p stage(0, 0)\n%q = add %i, %one : i32 stage(0, 1)\ncontinue %q\n}\nreturn\n}\n";
    let before = kernel(text);
    let mut made = expand(&before).expect("it has one stage");
    assert_eq!(check(&before, &made), Ok(()));
    let set = made.ops.iter_mut().find(|op| op.kind == OpKind::Set).expect("a store");
    set.args[2] = set.args[1];
    assert!(check(&before, &made).is_err(), "{}", print(&made));
}

/// What is made for the schedule of a nested loop, branches and loops included, belongs to it where the loop around has a schedule too.
#[test]
fn a_loop_over_a_ring_in_a_loop_with_a_schedule_is_followed() {
    for waits in [0, 1, 2] {
        let text = format!(
            "kernel @k(%a: in tensor<f16>[M, K], %c: mut tensor<f16>[P, Q]) grid(1) pipe(5, \"s\", tile<16x16xf16>) {{\n\
             %n = dim<1> %a\n%zero = const 0 : i32\n%one = const 1 : i32\n%two = const 2 : i32\n%h = const 0.0 : f16\n\
             for %t = %zero to %two step %one {{\n%u = add %t, %one : i32 stage(0, 1)\n%m = add %u, %t : i32 stage(0, 2)\n\
             for %i = %zero to %n step %one stage(0, 0) {{\n%slot = ttg.stage.acquire<0> : slot<0> stage(0, 0)\n\
             %s = ttg.source_tile %a[%zero, %i] or %h : source<16x16xf16> stage(0, 1)\n\
             ttg.stage.async_produce %slot, %s {{bytes = 512, proxy = generic}} stage(0, 2)\n\
             %r = ttg.stage.ready<0> : ready<0> stage({waits}, 3)\n%w = ttg.stage.wait_ready %r : stage<0> stage({waits}, 4)\n\
             %p = ttg.stage.read_perm %w : rperm<0> stage({waits}, 5)\n%v = ttg.stage.view<0> %p : smem<16x16xf16> stage(2, 6)\n\
             %y = ttg.stage.read %v : tile<16x16xf16> stage(2, 7)\nstore_tile %c[%i, %zero], %y stage(2, 8)\n\
             %d = ttg.stage.consumed %p : consumed<0> stage(2, 9)\nttg.stage.release %d stage(2, 10)\ncontinue\n}}\ncontinue\n}}\nreturn\n}}\n"
        );
        let made = accepted(&text);
        let wrong = difference(&kernel(&text), &kernel(&print(&made)), 6);
        assert!(wrong.is_none(), "{}\n{}", wrong.unwrap_or_default(), print(&made));
    }
}

/// What is nested in a branch costs once, however deep it is.
#[test]
fn nested_operations_cost_once() {
    let branch = |inner: &str| format!("if %y {{\n{inner}yield\n}} else {{\nyield\n}}\n");
    let branches = branch(&branch(&branch("")));
    let text = looped("", &format!("%y = lt %i, %one : bool\n{branches}"));
    let mut target = Target::plain("a machine", 32);
    target.timing.lanes_latency = 4;
    let graphs = loop_graphs(&kernel(&text), &target).unwrap_or_else(|why| panic!("{why:?}\n{text}"));
    let ops = graphs[0].graph.draft().ops;
    // The innermost one takes a cycle, and each one around it as long as what it holds, until that is there.
    let held: Vec<_> = ops.iter().filter_map(|op| op.unit.clone()).collect();
    assert_eq!(held, [("lanes".to_owned(), 9)], "{text}");
}
