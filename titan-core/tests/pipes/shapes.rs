//! Programs whose verdict is known.

use super::program::Item::{Fill, Give, Grab, If, Loop, Put, Read, Take};
use super::program::{Args, Count, Guard, Item, Program};
use titan_core::diag::Code;

const N: Count = Count { extent: Some(0), more: 0 };
const M: Count = Count { extent: Some(1), more: 0 };

fn n_plus(more: i64) -> Count {
    Count { extent: Some(0), more }
}

fn times(more: i64) -> Count {
    Count { extent: None, more }
}

fn program(slots: &[usize], roles: &[&[Item]]) -> Program {
    Program { slots: slots.to_vec(), roles: roles.iter().map(|r| r.to_vec()).collect() }
}

fn extents(n: i64, m: i64) -> Args {
    Args { extents: [n, m], flags: Default::default() }
}

/// The verdict, and that the run of steps agrees for small extents.
fn expect(program: &Program, wanted: Option<Code>) {
    assert_eq!(program.verdict(), wanted, "{}", program.text());
    let all = (0..7).flat_map(|n| (0..4).map(move |m| extents(n, m))).all(|a| program.runs(a));
    assert_eq!(all, wanted.is_none(), "the run of steps disagrees with {wanted:?} about\n{}", program.text());
}

#[test]
fn one_fills_and_one_reads() {
    for slots in [1, 2, 3, 5] {
        expect(&program(&[slots], &[&[Loop(N, vec![Fill(0)])], &[Loop(N, vec![Read(0)])]]), None);
        expect(&program(&[slots], &[&[Loop(times(1000), vec![Fill(0)])], &[Loop(times(1000), vec![Read(0)])]]), None);
        expect(&program(&[slots], &[&[Loop(N, vec![Fill(0), Fill(0)])], &[Loop(N, vec![Read(0), Read(0)])]]), None);
    }
}

#[test]
fn one_fills_and_two_read() {
    for slots in [1, 3] {
        let fill = [Loop(N, vec![Fill(0)])];
        expect(&program(&[slots], &[&fill, &[Loop(N, vec![Read(0)])], &[Loop(N, vec![Read(0)])]]), None);
        expect(
            &program(&[slots], &[&fill, &[Loop(N, vec![Read(0)])], &[Loop(n_plus(-1), vec![Read(0)])]]),
            Some(Code::Unbalanced),
        );
    }
}

#[test]
fn clocks_run_on_from_loop_to_loop() {
    let fill = [Loop(M, vec![Loop(N, vec![Fill(0)])]), Loop(N, vec![Fill(0)])];
    let read = [Loop(M, vec![Loop(N, vec![Read(0)])]), Loop(N, vec![Read(0)])];
    expect(&program(&[3], &[&fill, &read]), None);
    expect(&program(&[3], &[&fill, &[Loop(M, vec![Loop(N, vec![Read(0)])])]]), Some(Code::Unbalanced));
}

#[test]
fn one_side_counts_further() {
    for more in [-1, 1, 2] {
        let read = [Loop(n_plus(more), vec![Read(0)])];
        expect(&program(&[2], &[&[Loop(N, vec![Fill(0)])], &read]), Some(Code::Unbalanced));
    }
    expect(&program(&[2], &[&[Loop(N, vec![Fill(0)])], &[Loop(M, vec![Read(0)])]]), Some(Code::Unbalanced));
}

#[test]
fn a_reader_that_holds_too_much_waits_for_itself() {
    let hold = |n: usize| {
        let mut items: Vec<Item> = (0..n).map(|v| Take(0, v)).collect();
        items.extend((0..n).map(Give));
        vec![Loop(N, items)]
    };
    let fill = |n: usize| vec![Loop(N, vec![Fill(0); n])];
    for slots in 1..4 {
        for n in 1..5 {
            let wanted = (n > slots).then_some(Code::TooManyHeld);
            expect(&program(&[slots], &[&fill(n), &hold(n)]), wanted);
        }
    }
}

#[test]
fn a_filler_may_hold_slots_too() {
    let fill = [Loop(N, vec![Grab(0, 0), Grab(0, 1), Put(1), Put(0)])];
    let read = [Loop(N, vec![Read(0), Read(0)])];
    expect(&program(&[2], &[&fill, &read]), None);
    expect(&program(&[1], &[&fill, &read]), Some(Code::TooManyHeld));
}

#[test]
fn rings_in_another_order_wait_in_a_circle() {
    let read = [Loop(N, vec![Read(1), Read(0)])];
    expect(&program(&[2, 2], &[&[Loop(N, vec![Fill(0), Fill(1)])], &read]), None);
    expect(
        &program(&[1, 1], &[&[Loop(N, vec![Fill(0), Fill(0), Fill(1)])], &[Loop(N, vec![Read(1), Read(0), Read(0)])]]),
        Some(Code::WaitCycle),
    );
    expect(
        &program(&[2, 2], &[&[Loop(N, vec![Fill(0)]), Loop(N, vec![Fill(1)])], &[Loop(N, vec![Read(0), Read(1)])]]),
        Some(Code::WaitCycle),
    );
}

#[test]
fn roles_that_feed_each_other() {
    let one = [Loop(N, vec![Fill(0), Read(1)])];
    let two = [Loop(N, vec![Read(0), Fill(1)])];
    expect(&program(&[1, 1], &[&one, &two]), None);
    expect(&program(&[1, 1], &[&[Loop(N, vec![Read(1), Fill(0)])], &two]), Some(Code::WaitCycle));
}

#[test]
fn a_reader_one_ahead_of_another_ring() {
    // As attention: the first key before the loop, the next one inside.
    let fill = [Loop(n_plus(1), vec![Fill(0), Fill(1)])];
    let read = [
        Take(0, 0),
        Give(0),
        Loop(n_plus(1), vec![Take(1, 1), If(Guard::Below(1, n_plus(1)), vec![Read(0)]), Give(1)]),
    ];
    expect(&program(&[2, 2], &[&fill, &read]), None);
    expect(&program(&[1, 2], &[&fill, &read]), None);
    expect(&program(&[1, 1], &[&fill, &read]), None);
    // Without a first one there is nothing to read.
    let fill = [Loop(N, vec![Fill(0), Fill(1)])];
    let read = [Take(0, 0), Give(0), Loop(N, vec![Take(1, 1), If(Guard::Below(1, N), vec![Read(0)]), Give(1)])];
    expect(&program(&[2, 2], &[&fill, &read]), Some(Code::Unbalanced));
}

#[test]
fn one_thread_fills_ahead_of_what_it_reads() {
    for slots in 1..5 {
        for ahead in 0..5i64 {
            let body = vec![If(Guard::Below(0, N), vec![Fill(0)]), If(Guard::From(ahead), vec![Read(0)])];
            let wanted = (ahead + 1 > slots as i64).then_some(Code::TooManyHeld);
            let program = program(&[slots], &[&[Loop(n_plus(ahead), body)]]);
            let verdict = program.verdict();
            assert_eq!(verdict.is_none(), wanted.is_none(), "{verdict:?} {}", program.text());
            let all = (0..9).all(|n| program.runs(extents(n, 0)));
            assert_eq!(all, wanted.is_none());
        }
    }
}

#[test]
fn a_condition_computed_once_is_one_condition_for_all_roles() {
    // Of a sum over a tile nothing is known but that both roles ask for the same one.
    let text = "kernel @p(%a: in tensor<f32>[N], %c: mut tensor<f32>[K]) grid(1) pipe(1, tile<16xf32>) role(r0, 1) role(r1, 1) {
        %zero = const 0 : i32\n %one = const 1 : i32\n %v = const 0.0 : f32\n %n = dim<0> %a
        %t = load_tile %a[%zero] or %v : tile<16xf32>\n %s = reduce_sum<0> %t\n %b = gt %s, %v
        ttg.roles r0 {
          for %i = %zero to %n step %one {\n if %b {\n %f = ttg.stage.acquire<0>\n ttg.stage.zero %f\n yield\n } else {\n yield\n }\n continue\n }
          ttg.pipeline.finalize\n yield
        } r1 {
          for %j = %zero to %n step %one {\n if %b {\n %r = ttg.stage.ready<0>\n %w = ttg.stage.wait_ready %r\n %k = ttg.stage.consumed %w\n ttg.stage.release %k\n yield\n } else {\n yield\n }\n continue\n }
          set %c[%zero], %v\n ttg.pipeline.finalize\n yield
        }
        return\n}";
    let kernel = titan_core::text::parse_one(text).unwrap();
    assert_eq!(titan_core::verify::verify(kernel).map(drop), Ok(()));
}
