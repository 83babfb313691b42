//! Loops for sm_90a that the modulo scheduler places: products stay in flight across iterations as by the rule, and the results are the same.

use super::attention::{options, run};
use super::harness::orders_of;
use super::kernels::{self, Mask};
use super::lowered::{self, Gemm, run_on};
use super::multicast::PLAIN;
use super::operands::carried_in_flight;
use titan_core::driver::{Stages, compile, stages};
use titan_core::ir::{OpKind, Scheduler, TtgOp};
use titan_core::text;
use titan_core::verify::{Verified, verify};
use titan_nv::Machine;

fn verified(scheduler: Scheduler, text: &str) -> Verified {
    let mut kernel = text::parse_one(text).unwrap_or_else(|e| panic!("{e:#?}\n{text}"));
    kernel.sig.scheduler = Some(scheduler);
    verify(kernel).unwrap_or_else(|e| panic!("{e:#?}\n{text}"))
}

pub(super) fn scheduled_by(scheduler: Scheduler, text: &str) -> Stages {
    let machine = Machine::from_name("sm_90a").expect("it is known");
    stages(&verified(scheduler, text), machine, true, None).unwrap_or_else(|e| panic!("{}\n{text}", e.message))
}

/// The number of loops that the modulo scheduler says it has placed: where it places none, the rule's schedule stays, which has late waits too.
fn placed(text: &str) -> usize {
    let machine = Machine::from_name("sm_90a").expect("it is known");
    let variants = compile(&verified(Scheduler::Swing, text), machine, None).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let said =
        variants.iter().flat_map(|variant| &variant.notes).find_map(|note| note.strip_prefix("schedule(swing): "));
    let number = said.and_then(|said| said.split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no note of the scheduler\n{text}"))
}

/// The stages of the waits for products in the loops that have schedules, in program order.
fn waits(made: &Stages) -> Vec<u16> {
    let mut found = Vec::new();
    made.scheduled.walk(&mut |_, op| {
        if op.kind == OpKind::Ttg(TtgOp::ComputeWait) {
            found.extend(op.planned.map(|planned| planned.stage));
        }
    });
    found
}

#[test]
fn a_product_is_continued_by_the_next_iteration() {
    for (nth, tile) in [[64, 64, 64], [64, 128, 64], [64, 256, 32]].into_iter().enumerate() {
        let gemm = Gemm { tile, ..PLAIN };
        let made = scheduled_by(Scheduler::Swing, &lowered::kernel(&gemm));
        // Each role that computes has such a loop.
        let roles = made.schedule.walk.instances.unwrap_or(1) as usize;
        assert_eq!(waits(&made), vec![1; roles], "{}", made.schedule);
        assert!(placed(&lowered::kernel(&gemm)) >= roles, "{}", made.schedule);
        for (number, size) in [[200, 300, 8], [130, 260, 200], [64, 256, 72]].into_iter().enumerate() {
            let gemm = Gemm { size, ..gemm };
            for options in orders_of(nth + number) {
                run_on(&gemm, &made, &options, number as u64, [2 * made.lanes.cluster.max(1), 1, 1])
                    .unwrap_or_else(|e| panic!("{gemm:?}, {:?}: {e}", options.completion));
            }
        }
    }
}

#[test]
fn the_second_product_of_attention_is_one_iteration_late() {
    let mut late = 0;
    for sizes in [[64, 64, 64], [128, 64, 32]] {
        for mask in [Mask::None, Mask::Tail, Mask::Causal] {
            let of = |scheduler| scheduled_by(scheduler, &kernels::text(sizes, mask));
            let (rule, swing) = (of(Scheduler::Rule), of(Scheduler::Swing));
            late += usize::from(waits(&swing).contains(&1) && placed(&kernels::text(sizes, mask)) > 0);
            let text = |made: &Stages| String::from_utf8(made.code.payload.clone()).expect("PTX is text");
            let [queries, head, keys] = sizes.map(|n| n as usize);
            for keys in [keys - 3, keys, 5 * keys + 1] {
                let sizes = [queries, head, if mask == Mask::None { keys.next_multiple_of(64) } else { keys }];
                let wanted =
                    run(&rule, &text(&rule), sizes, &options()[0]).unwrap_or_else(|e| panic!("{sizes:?}: {e}"));
                for options in options() {
                    let found = run(&swing, &text(&swing), sizes, &options);
                    assert_eq!(found.as_ref(), Ok(&wanted), "{sizes:?}, {mask:?}, {:?}", options.completion);
                }
            }
        }
    }
    assert!(late >= 4, "{late} of 6 loops have a late product");
}

/// The products of a loop that scales each of them are in flight for all of an interval, and begin anew in each iteration: at the end of an iteration, their
/// registers could only be moved while they are written. So this loop keeps the rule's schedule.
#[test]
fn no_product_is_passed_on_in_flight_to_an_iteration_that_begins_anew() {
    let text = include_str!("kernels/fp8_scaled.tir");
    let made = scheduled_by(Scheduler::Swing, text);
    let mut products = 0;
    made.loops.walk(&mut |_, op| products += usize::from(op.kind == OpKind::Ttg(TtgOp::ComputeWait)));
    let in_flight = carried_in_flight(&made);
    assert!(products > 0 && in_flight == 0, "{products} products, {in_flight} passed on in flight");
}

#[test]
fn the_notes_of_a_kernel_say_which_scheduler_placed_its_loops() {
    let machine = Machine::from_name("sm_90a").expect("it is known");
    let text = lowered::kernel(&PLAIN);
    for (scheduler, says) in [(Scheduler::Rule, "schedule(rule): "), (Scheduler::Swing, "schedule(swing): ")] {
        let variants = compile(&verified(scheduler, &text), machine, None).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let notes: Vec<_> = variants[0].notes.iter().filter(|note| note.starts_with("schedule(")).collect();
        assert!(matches!(notes[..], [note] if note.starts_with(says)), "{notes:?}");
    }
}
