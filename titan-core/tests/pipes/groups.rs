//! Completion of copies to the stages of rings: the counts never let a stage be read early, and let copies run on where they may.

use super::program::Item::{Fill, Give, If, Loop, Read, Take};
use super::program::{Count, Guard, Item, Program};
use super::random::{Rng, single};
use titan_core::complete::{check, complete};
use titan_core::ir::{Kernel, NvGroup, NvOp, OpKind};

const N: Count = Count { extent: Some(0), more: 0 };

/// The kernel of a program, with its groups counted.
fn completed(program: &Program) -> Kernel {
    let kernel = titan_core::text::parse_one(&program.text()).expect("a kernel");
    complete(&kernel, true)
}

/// The waits of a kernel in program order.
fn waits(kernel: &Kernel) -> Vec<u32> {
    let mut found = Vec::new();
    kernel.walk(&mut |_, op| {
        if let OpKind::Nv(NvOp::WaitGroup { group: NvGroup::CpAsync, n, .. }) = op.kind {
            found.push(n);
        }
    });
    found
}

/// The kernel with some of its waits, by their place in program order, letting one more group run on.
fn weaker(kernel: &Kernel, which: impl Fn(usize) -> bool) -> Kernel {
    let mut ids = Vec::new();
    kernel.walk(&mut |id, op| {
        if matches!(op.kind, OpKind::Nv(NvOp::WaitGroup { group: NvGroup::CpAsync, .. })) {
            ids.push(id);
        }
    });
    let mut weaker = kernel.clone();
    for (_, id) in ids.into_iter().enumerate().filter(|(nth, _)| which(*nth)) {
        if let OpKind::Nv(NvOp::WaitGroup { n, .. }) = &mut weaker.ops[id.index()].kind {
            *n += 1;
        }
    }
    weaker
}

/// As `pipelined(..)` is written out: P copies in front, then one of each.
fn ahead(slots: usize, distance: i64) -> Program {
    let first = Count { extent: None, more: distance };
    let body = vec![Take(0, 0), If(Guard::Below(distance, N), vec![Fill(0)]), Give(0)];
    Program {
        slots: vec![slots],
        roles: vec![vec![Loop(first, vec![If(Guard::Below(0, N), vec![Fill(0)])]), Loop(N, body)]],
    }
}

/// In the first iteration two groups are younger than the stage that it reads, in the last one none is: the wait serves all three.
#[test]
fn a_wait_has_the_least_count_of_the_iterations_of_its_loop() {
    let three = Count { extent: None, more: 3 };
    let roles = vec![vec![Loop(three, vec![Fill(0)]), Loop(three, vec![Take(0, 0), Give(0)])]];
    let program = Program { slots: vec![4], roles };
    let kernel = completed(&program);
    assert_eq!(waits(&kernel), [0], "{}", program.text());
    assert_eq!(check(&kernel, true, true, 9), Ok(()));
    assert!(check(&weaker(&kernel, |_| true), true, true, 9).is_err());
}

#[test]
fn copies_run_as_far_ahead_as_they_are_begun() {
    for slots in 2..7 {
        for distance in 1..slots as i64 {
            let program = ahead(slots, distance);
            assert_eq!(program.verdict(), None, "{}", program.text());
            let kernel = completed(&program);
            assert_eq!(waits(&kernel), [distance as u32 - 1], "{slots} slots, {distance} ahead");
            assert_eq!(check(&kernel, true, true, 3 * slots as i64 + 1), Ok(()));
            // One group more may be the awaited one.
            assert!(check(&weaker(&kernel, |_| true), true, true, 3 * slots as i64 + 1).is_err());
        }
    }
}

#[test]
fn rings_of_one_class_are_counted_together() {
    // Keys and values, as attention has them: the keys of an iteration are followed by its values and by the next ones.
    let body: Vec<Item> =
        vec![Take(0, 0), Take(1, 1), If(Guard::Below(1, N), vec![Fill(0), Fill(1)]), Give(0), Give(1)];
    let first = Count { extent: None, more: 1 };
    let front = Loop(first, vec![If(Guard::Below(0, N), vec![Fill(0), Fill(1)])]);
    let program = Program { slots: vec![2, 2], roles: vec![vec![front, Loop(N, body)]] };
    assert_eq!(program.verdict(), None);
    let kernel = completed(&program);
    assert_eq!(waits(&kernel), [0, 0], "both are in one group");
    assert_eq!(check(&kernel, true, true, 9), Ok(()));
}

#[test]
fn a_wait_out_of_turn_waits_for_everything() {
    // The second stage is waited for first, then the first one: no count names what is older.
    let program = Program { slots: vec![4, 4], roles: vec![vec![Loop(N, vec![Fill(0), Fill(1), Read(1), Read(0)])]] };
    let kernel = completed(&program);
    assert_eq!(waits(&kernel), [0, 1]);
    assert_eq!(check(&kernel, true, true, 9), Ok(()));
}

#[test]
fn no_random_program_reads_early() {
    let mut rng = Rng(0x1234_5678_9abc_def1);
    let (mut checked, mut free) = (0, 0);
    for _ in 0..2000 {
        let program = single(&mut rng);
        if program.verdict().is_some() {
            continue;
        }
        let kernel = completed(&program);
        assert_eq!(check(&kernel, true, true, 7), Ok(()), "{}", program.text());
        checked += 1;
        free += usize::from(waits(&kernel).iter().any(|n| *n > 0));
    }
    println!("{checked} programs, {free} with copies in flight after a wait");
    assert!(checked > 300 && free > 60);
}

/// Two rings, each refilled at once when it was read; a `break` between the two leaves with the groups in the other order.
fn left_between(leaves: &str) -> Kernel {
    let (read, fill) = (
        |ring: u32, n: &str| {
            format!(
                "%r{n} = ttg.stage.ready<{ring}>\n%w{n} = ttg.stage.wait_ready %r{n}\n%q{n} = ttg.stage.read_perm %w{n}\n\
                 %d{n} = ttg.stage.consumed %q{n}\nttg.stage.release %d{n}\n"
            )
        },
        |ring: u32, n: &str| format!("%s{n} = ttg.stage.acquire<{ring}>\nttg.stage.zero %s{n}\n"),
    );
    let text = [
        "kernel @p(%a: in tensor<f32>[N], %c: mut tensor<f32>[K]) grid(1) pipe(2, tile<16xf32>) pipe(2, tile<16xf32>) {\n\
         %n = dim<0> %a\n%zero = const 0 : i32\n%one = const 1 : i32\n%v = const 0.0 : f32\n",
        &fill(0, "a"),
        &fill(1, "b"),
        "for %i = %zero to %n step %one {\n",
        &read(0, "c"),
        &fill(0, "e"),
        "%g = ge %i, %one\nif %g {\n",
        leaves,
        "\n} else {\nyield\n}\n",
        &read(1, "f"),
        &fill(1, "h"),
        "continue\n}\n",
        &read(0, "k"),
        &read(1, "l"),
        "set %c[%zero], %v\nreturn\n}\n",
    ]
    .concat();
    let kernel = titan_core::text::parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    assert!(titan_core::verify::verify(kernel.clone()).is_ok(), "{text}");
    kernel
}

#[test]
fn a_loop_that_is_left_early_leaves_the_groups_of_that_path() {
    let kernel = complete(&left_between("break"), true);
    // The stage of the first ring may be in the latest group: that of the `break`.
    assert_eq!(waits(&kernel)[2..], [0, 0]);
    assert_eq!(check(&kernel, true, true, 7), Ok(()));
    assert!(check(&weaker(&kernel, |nth| nth == 2), true, true, 7).is_err(), "the checker leaves loops too");
    // Without it, the stage of the second ring is the latest.
    let kernel = complete(&left_between("yield"), true);
    assert_eq!(waits(&kernel)[2..], [1, 0]);
    assert_eq!(check(&kernel, true, true, 7), Ok(()));
}
