//! The examples in the documentation of the machine, of parities and of cyclic values, executed.

use super::barriers::machine::{Record, What};
use super::linear::{Condition, Facts, Linear};
use super::run::{Run, Step};
use super::state::{Frame, State};
use super::values::{Env, Known, Symbols};
use crate::ir::op_table::mnemonic;
use crate::ir::{Kernel, Value};
use crate::text::parse;

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

/// Executes a role up to the next operation of this name, and that operation.
fn until(run: &mut Run<'_>, state: &mut State, role: usize, name: &str) -> Step {
    loop {
        let next = match state.roles[role].frames.last() {
            Some(Frame::Block(block, at)) => run.kernel.block(*block).ops.get(*at).copied(),
            Some(Frame::Loop(_)) | None => None,
        };
        let here = next.is_some_and(|id| mnemonic(&run.kernel.op(id).kind) == name);
        let step = run.step(state, role).expect("no fault");
        if here {
            return step;
        }
    }
}

const OBJECTS: [&str; 2] = ["full", "empty"];

/// The records about slot 0, as the table in `machine.rs` writes them.
fn records(state: &State) -> String {
    let number = |t: i64| t.to_string().replace('-', "−");
    let of_slot = |t: i64| t.rem_euclid(3) == 0;
    let line = |r: &Record| {
        let (what, time) = match r.what {
            What::Access { time, write, .. } => (if write { "write".to_owned() } else { "read".to_owned() }, time),
            What::Completed { barrier, time } => (format!("{} completed", OBJECTS[barrier]), time),
            What::Passed { barrier, time } => (format!("{} waited for", OBJECTS[barrier]), time),
            What::Touched { .. } | What::Announced { .. } => return None,
        };
        let known = ["f", "r"].iter().enumerate().filter(|(i, _)| r.known & (1 << i) != 0).map(|(_, n)| *n);
        let sent = r.phases().filter(|(_, t)| of_slot(*t)).map(|(b, t)| format!(" → {} {}", OBJECTS[b], number(t)));
        let text =
            format!("{what} {} {{{}}}{}", number(time), known.collect::<Vec<_>>().join(", "), sent.collect::<String>());
        of_slot(time).then_some(text)
    };
    state.machine.records.iter().filter_map(line).collect::<Vec<_>>().join("; ")
}

#[test]
fn the_table_of_the_machine_is_what_it_does() {
    let kernel = ring();
    let mut run = Run::new(&kernel);
    let mut state = run.start();
    let (wait, arrive, load) =
        ("ttg.nv.mbarrier.wait_parity", "ttg.nv.mbarrier.arrive_expect_tx", "ttg.nv.cp_async_bulk_tensor.load");
    let steps = [
        (0, wait, "`f` waits for the free slot"),
        (0, arrive, "`f` arrives at `full`, and expects the bytes"),
        (0, load, "`f` starts the copy, which completes `full` 0"),
        (1, wait, "`r` waits for `full` 0"),
        (1, "ttg.region.read", "`r` reads"),
        (1, "ttg.nv.mbarrier.arrive", "`r` arrives at `empty`, which completes phase 0"),
    ];
    let mut rows = Vec::new();
    for (role, name, words) in steps {
        assert!(matches!(until(&mut run, &mut state, role, name), Step::Moved));
        rows.push(format!("//! | {words} | {} |", records(&state)));
    }
    // Slots 1 and 2, and the next wait for slot 0.
    for _ in 0..3 {
        assert!(matches!(until(&mut run, &mut state, 0, wait), Step::Moved));
    }
    rows.push(format!("//! | `f` waits for `empty` 0, in step 3 | {} |", records(&state)));
    let missing: Vec<_> = rows.into_iter().filter(|row| !include_str!("barriers/machine.rs").contains(row)).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_table_of_parities_is_what_waits_wait_for() {
    let kernel = ring();
    let mut run = Run::new(&kernel);
    let mut state = run.start();
    let mut rows = Vec::new();
    let parities = ["p", "pr"].map(|name| named(&kernel, name));
    for t in 0..7 {
        let mut cells = Vec::new();
        for (role, parity) in parities.into_iter().enumerate() {
            let wait = until(&mut run, &mut state, role, "ttg.nv.mbarrier.wait_parity");
            assert!(matches!(wait, Step::Moved));
            let passed = state.machine.records.iter().rev().find_map(|r| match r.what {
                What::Passed { time, .. } if r.role == role => Some(time),
                What::Passed { .. }
                | What::Access { .. }
                | What::Completed { .. }
                | What::Touched { .. }
                | What::Announced { .. } => None,
            });
            let parity = run.symbols.known_int(parity, &state.roles[role].env).and_then(|l| l.as_constant());
            cells.push(format!("{} | {}", parity.expect("a parity"), passed.expect("a phase")));
            let last = ["ttg.nv.cp_async_bulk_tensor.load", "ttg.nv.mbarrier.arrive"][role];
            assert!(matches!(until(&mut run, &mut state, role, last), Step::Moved));
        }
        rows.push(format!("//! | {t} | {} | {} |", t % 3, cells.join(" | ")).replace("| -", "| −"));
    }
    let missing: Vec<_> = rows.into_iter().filter(|row| !include_str!("barriers/parity.rs").contains(row)).collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn values_that_are_wrapped_by_hand_stay_cyclic() {
    let kernel = ring();
    let mut symbols = Symbols::new(&kernel);
    let mut facts = Facts::default();
    let t = Linear::atom(symbols.counter());
    facts.assume(&Condition::NotNegative(t.clone(), true), true);
    let mut stage_and_parity = |t: &Linear, symbols: &mut Symbols<'_>| {
        let turns = symbols.quotient(t, 3, &mut facts).expect("a counter");
        let stage = symbols.remainder(t, 3, &mut facts).expect("a counter");
        (stage, symbols.remainder(&turns, 2, &mut facts).expect("a number of turns"))
    };
    let (stage, parity) = stage_and_parity(&t, &mut symbols);
    let next = stage_and_parity(&t.plus_const(1), &mut symbols);
    let mut env = Env::default();
    env.known.insert(named(&kernel, "sr"), Known::Int(stage));
    env.known.insert(named(&kernel, "pr"), Known::Int(parity));
    let found = ["srnext", "prnext"].map(|name| symbols.int(named(&kernel, name), &env, &mut facts));
    assert_eq!(found, [next.0, next.1]);
}
