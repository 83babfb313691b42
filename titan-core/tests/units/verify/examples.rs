//! The examples in the documentation of the machine, of parities and of cyclic values, executed.

use titan_core::ir::{Kernel, Value};
use titan_core::text::parse;
use titan_core::verify::internals::{Event, Walked, turn, walk};

/// A ring of three slots between two roles, with slots and parities that are carried and wrapped by hand.
const RING: &str = "
kernel @ring(%a: in tensor<f16>[M, K]) role(f, 1) role(r, 4) {
    %zero = const 0 : i32
    %one = const 1 : i32
    %three = const 3 : i32
    %steps = const 7 : i32
    %words = ttg.region {offset = 65536, bytes = 48}
    %ring = ttg.region {offset = 0, bytes = 768, parts = 3}
    %full = ttg.nv.mbarrier.alloc %words {at = 0, n = 3}
    %empty = ttg.nv.mbarrier.alloc %words {at = 24, n = 3}
    ttg.nv.mbarrier.init %full {count = 1}
    ttg.nv.mbarrier.init %empty {count = 1}
    ttg.nv.fence.mbarrier_init
    ttg.roles f {
        %x, %y = for %i = %zero to %steps step %one carry(%s = %zero, %p = %one) {
            %slot = ttg.region.at %ring, %s
            %filled = ttg.nv.mbarrier.at %full, %s
            %free = ttg.nv.mbarrier.at %empty, %s
            ttg.nv.mbarrier.wait_parity %free, %p
            %state = ttg.nv.mbarrier.arrive_expect_tx %filled {bytes = 256}
            ttg.nv.cp_async_bulk_tensor.load %a[%i, %i], %slot, %filled {bytes = 256}
            %next = add %s, %one
            %wraps = eq %next, %three
            %turn = cast %wraps : i32
            %snext = select %wraps, %zero, %next
            %pnext = xor %p, %turn
            continue %snext, %pnext
        }
        ttg.pipeline.finalize
        yield
    } r {
        %xr, %yr = for %j = %zero to %steps step %one carry(%sr = %zero, %pr = %zero) {
            %stage = ttg.region.at %ring, %sr
            %ready = ttg.nv.mbarrier.at %full, %sr
            %release = ttg.nv.mbarrier.at %empty, %sr
            ttg.nv.mbarrier.wait_parity %ready, %pr
            ttg.region.read %stage
            %stater = ttg.nv.mbarrier.arrive %release {arrivals = 1}
            %nextr = add %sr, %one
            %wrapsr = eq %nextr, %three
            %turnr = cast %wrapsr : i32
            %srnext = select %wrapsr, %zero, %nextr
            %prnext = xor %pr, %turnr
            continue %srnext, %prnext
        }
        ttg.pipeline.finalize
        yield
    }
    return
}
";

fn ring() -> Kernel {
    parse(RING).expect("the text of a kernel").remove(0)
}

/// The value of a name.
fn named(kernel: &Kernel, name: &str) -> Value {
    let mut values = (0..kernel.values.len()).map(Value::new);
    values.find(|v| kernel.display_name(*v) == name).expect("a value of this name")
}

const OBJECTS: [&str; 2] = ["full", "empty"];
const ROLES: [&str; 2] = ["f", "r"];

/// The records about slot 0, as the table in `machine.rs` writes them.
fn records(walked: &Walked) -> String {
    let number = |t: i64| t.to_string().replace('-', "−");
    let of_slot = |t: i64| t.rem_euclid(3) == 0;
    let lines = walked.records.iter().filter(|r| of_slot(r.time)).map(|r| {
        let what = match r.event {
            Event::Read => "read".to_owned(),
            Event::Write => "write".to_owned(),
            Event::Completed(barrier) => format!("{} completed", OBJECTS[barrier]),
            Event::Passed(barrier) => format!("{} waited for", OBJECTS[barrier]),
        };
        let known: Vec<&str> = r.known.iter().map(|role| ROLES[*role]).collect();
        let sent = r.sent.iter().filter(|(_, t)| of_slot(*t));
        let sent: String = sent.map(|(b, t)| format!(" → {} {}", OBJECTS[*b], number(*t))).collect();
        format!("{what} {} {{{}}}{sent}", number(r.time), known.join(", "))
    });
    lines.collect::<Vec<_>>().join("; ")
}

const WAIT: &str = "ttg.nv.mbarrier.wait_parity";
const ARRIVE: &str = "ttg.nv.mbarrier.arrive";
const EXPECT: &str = "ttg.nv.mbarrier.arrive_expect_tx";
const LOAD: &str = "ttg.nv.cp_async_bulk_tensor.load";

#[track_caller]
fn stand_in(page: &str, rows: Vec<String>) {
    let missing: Vec<_> = rows.into_iter().filter(|row| !page.contains(row)).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_table_of_the_machine_is_what_it_does() {
    let steps = [
        (0, WAIT, "`f` waits for the free slot"),
        (0, EXPECT, "`f` arrives at `full`, and expects the bytes"),
        (0, LOAD, "`f` starts the copy, which completes `full` 0"),
        (1, WAIT, "`r` waits for `full` 0"),
        (1, "ttg.region.read", "`r` reads"),
        (1, ARRIVE, "`r` arrives at `empty`, which completes phase 0"),
        // Slots 1 and 2, and the next wait for slot 0.
        (0, WAIT, ""),
        (0, WAIT, ""),
        (0, WAIT, "`f` waits for `empty` 0, in step 3"),
    ];
    let walked = walk(&ring(), &steps.map(|(role, name, _)| (role, name)));
    assert_eq!(walked.len(), steps.len(), "every step is possible");
    let rows = steps.iter().zip(&walked).filter(|((.., words), _)| !words.is_empty());
    let rows = rows.map(|((.., words), walked)| format!("//! | {words} | {} |", records(walked))).collect();
    stand_in(include_str!("../../../src/verify/coexecution/barriers/machine.rs"), rows);
}

#[test]
fn the_table_of_parities_is_what_waits_wait_for() {
    let kernel = ring();
    // In each step, a role waits, and does the rest of its iteration.
    let steps: Vec<(usize, &str)> = (0..7).flat_map(|_| [(0, WAIT), (0, LOAD), (1, WAIT), (1, ARRIVE)]).collect();
    let walked = walk(&kernel, &steps);
    assert_eq!(walked.len(), steps.len(), "every step is possible");
    let parities = ["p", "pr"].map(|name| named(&kernel, name));
    let mut rows = Vec::new();
    for (t, step) in walked.chunks(4).enumerate() {
        let mut cells = Vec::new();
        for (role, (parity, waited)) in parities.iter().zip([&step[0], &step[2]]).enumerate() {
            let passed = waited.records.iter().rev().find(|r| matches!(r.event, Event::Passed(_)) && r.role == role);
            let number = waited.numbers.iter().find(|(value, _)| value == parity).expect("a parity").1;
            cells.push(format!("{number} | {}", passed.expect("a phase").time));
        }
        rows.push(format!("//! | {t} | {} | {} |", t % 3, cells.join(" | ")).replace("| -", "| −"));
    }
    stand_in(include_str!("../../../src/verify/coexecution/barriers/parity.rs"), rows);
}

#[test]
fn values_that_are_wrapped_by_hand_stay_cyclic() {
    let kernel = ring();
    let found =
        turn(&kernel, 3, ["sr", "pr"].map(|n| named(&kernel, n)), ["srnext", "prnext"].map(|n| named(&kernel, n)));
    let found = found.expect("a counter has a quotient and a remainder");
    assert_eq!(found.computed, found.wanted);
}
