//! Products that end early, in all ways (`ways`): a program without rows returns, or takes its next tile. On sm_90a they get roles for
//! copies and MMAs as others do, because early exits become branches.
//!
//! All numbers are small and whole, so that every sum is exact.

use super::chosen::in_turn;
use super::gpu::hopper;
use super::rng::Rng;
use super::ways::{Counts, compare};
use titan_core::driver::{stages, why_not_bulk};
use titan_core::ir::{Elem, OpKind};
use titan_core::num;
use titan_core::text::{parse_one, print};
use titan_core::verify::{Verified, barrier_program, verify, well_formed};
use titan_sim::engine::Completion;
use titan_sim::sim;

/// How a program ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    /// It returns.
    Returns,
    /// It returns if one of two conditions holds, with other code between.
    ReturnsTwice,
    /// It stores zeros first.
    StoresAndReturns,
    /// It returns in the arm that has work to do before.
    ReturnsInElse,
    /// It computes no more rows of tiles: which ones are copied depends on what was found before, so that no role can copy ahead.
    Breaks,
    /// It takes the next tile of a loop over tiles.
    Continues,
    /// It takes the next tile, with another value for a number that the loop carries.
    ContinuesWith,
}

const ALL: [Exit; 7] = [
    Exit::Returns,
    Exit::ReturnsTwice,
    Exit::StoresAndReturns,
    Exit::ReturnsInElse,
    Exit::Breaks,
    Exit::Continues,
    Exit::ContinuesWith,
];

/// The extents of a tile: rows, columns, depth of a step.
type Tile = [u32; 3];

const TILES: [Tile; 4] = [[64, 64, 64], [128, 64, 64], [64, 32, 32], [128, 128, 64]];

/// A product of each of `E` matrices, of which only the first `rows` rows count, with its own second operand.
fn text([bm, bn, bk]: Tile, exit: Exit) -> String {
    let looped = matches!(exit, Exit::Continues | Exit::ContinuesWith);
    let empty = "%from = mul %m, %bm : i32\n%filled = get %rows[%e] : i32\n%none = ge %from, %filled : bool\n";
    let check = match exit {
        Exit::Returns => format!("{empty}if %none {{\nreturn\n}} else {{\nyield\n}}\n"),
        Exit::ReturnsTwice => format!(
            "{empty}if %none {{\nreturn\n}} else {{\nyield\n}}\n%second = get %rows[%0] : i32\n%too = eq %second, %one : bool\n\
             if %too {{\nreturn\n}} else {{\nyield\n}}\n"
        ),
        Exit::StoresAndReturns => format!(
            "{empty}if %none {{\n%nothing = cast %zero : tile<{bm}x{bn}xbf16>\nstore_tile %ye[%m, %n], %nothing\nreturn\n}} else {{\nyield\n}}\n"
        ),
        Exit::ReturnsInElse => format!(
            "{empty}%some = not %none : bool\n%scale = if %some : i32 {{\n%two = add %one, %one : i32\nyield %two\n}} else {{\nreturn\n}}\n"
        ),
        Exit::Breaks => format!("{empty}if %none {{\nbreak\n}} else {{\nyield\n}}\n"),
        Exit::Continues => format!("{empty}if %none {{\ncontinue\n}} else {{\nyield\n}}\n"),
        Exit::ContinuesWith => {
            format!("{empty}if %none {{\n%less = sub %count, %one : i32\ncontinue %less\n}} else {{\nyield\n}}\n")
        }
    };
    let places = match exit {
        Exit::Breaks => {
            "%e = program_id<0> : i32\n%n = program_id<1> : i32\n%M = dim<1> %x : i32\n%upm = add %M, %morem : i32\n\
             %tm = div %upm, %bm : i32\nfor %m = %0 to %tm step %one {\n"
                .to_owned()
        }
        Exit::Continues | Exit::ContinuesWith => format!(
            "%E = dim<0> %x : i32\n%M = dim<1> %x : i32\n%N = dim<1> %z : i32\n%upm = add %M, %morem : i32\n%tm = div %upm, %bm : i32\n\
             %upn = add %N, %moren : i32\n%tn = div %upn, %bn : i32\n%em = mul %E, %tm : i32\n%all = mul %em, %tn : i32\n{}\
             %e, %m, %n = unflatten %i, %E, %tm, %tn : i32, i32, i32\n",
            if exit != Exit::ContinuesWith {
                "for %i = %0 to %all step %one distributed {\n"
            } else {
                "%last = for %i = %0 to %all step %one distributed carry(%count = %0) : i32 {\n"
            }
        ),
        Exit::Returns | Exit::ReturnsTwice | Exit::StoresAndReturns | Exit::ReturnsInElse => {
            "%e = program_id<0> : i32\n%m = program_id<1> : i32\n%n = program_id<2> : i32\n".to_owned()
        }
    };
    let end = match exit {
        Exit::Breaks | Exit::Continues => "continue\n}\nreturn\n",
        // Each program has its own count.
        Exit::ContinuesWith => {
            "%next = add %count, %one : i32\ncontinue %next\n}\n%p = program_id<0> : i32\nset %counts[%p], %last\nreturn\n"
        }
        Exit::Returns | Exit::ReturnsTwice | Exit::StoresAndReturns | Exit::ReturnsInElse => "return\n",
    };
    let counts = if exit == Exit::ContinuesWith { ", %counts: mut tensor<i32>[P]" } else { "" };
    let grid = match exit {
        _ if looped => " persistent".to_owned(),
        Exit::Breaks => format!("(E, cdiv(N, {bn}))"),
        _ => format!("(E, cdiv(M, {bm}), cdiv(N, {bn}))"),
    };
    format!(
        "kernel @ends(%x: in tensor<bf16>[E, M, K], %z: in tensor<bf16>[E, N, K], %rows: in tensor<i32>[E], \
         %y: mut tensor<bf16>[E, M, N]{counts}) grid{grid} {{
    %0 = const 0 : i32
    %one = const 1 : i32
    %bm = const {bm} : i32
    %bn = const {bn} : i32
    %bk = const {bk} : i32
    %morem = const {} : i32
    %moren = const {} : i32
    %morek = const {} : i32
    %start = const 0.0 : f32
    %zero = splat %start : tile<{bm}x{bn}xf32>
    {places}
    %xe = index<0> %x, %e : tensor<bf16, 2>
    %ze = index<0> %z, %e : tensor<bf16, 2>
    %ye = index<0> %y, %e : tensor<bf16, 2>
    {check}
    %len = dim<1> %xe : i32
    %up = add %len, %morek : i32
    %steps = div %up, %bk : i32
    %sum = for %k = %0 to %steps step %one pipelined carry(%acc = %zero) : tile<{bm}x{bn}xf32> {{
        %pad = const 0.0 : bf16
        %xt = load_tile %xe[%m, %k] or %pad : tile<{bm}x{bk}xbf16>
        %zt = load_tile %ze[%n, %k] or %pad : tile<{bn}x{bk}xbf16>
        %zu = permute<1, 0> %zt : tile<{bk}x{bn}xbf16>
        %sum2 = mma %xt, %zu, %acc : tile<{bm}x{bn}xf32>
        continue %sum2
    }}
    %done = cast %sum : tile<{bm}x{bn}xbf16>
    store_tile %ye[%m, %n], %done
    {end}}}
",
        bm - 1,
        bn - 1,
        bk - 1,
    )
}

fn kernel(tile: Tile, exit: Exit) -> Verified {
    let text = text(tile, exit);
    verify(parse_one(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

fn numbers(rng: &mut Rng, shape: &[usize]) -> sim::Arg {
    // No zeros: ways may differ in the sign of a sum of zeros.
    let n: usize = shape.iter().product();
    let one = |_| num::bf16_from_f64(f64::from(rng.of(&[-3, -2, -1, 1, 2, 3])));
    let bytes = (0..n).map(one).flat_map(u16::to_le_bytes).collect();
    sim::Arg::dense(Elem::Bf16, &shape.iter().map(|n| *n as i64).collect::<Vec<_>>(), bytes)
}

#[test]
fn products_that_end_early_are_the_same_in_all_ways() {
    let mut found = Vec::new();
    for (i, exit) in ALL.into_iter().enumerate() {
        let mut counts = Counts { first: test_depth::cases(0, i), ..Counts::default() };
        let tiles = in_turn(&[0, 1, 2, 3], i);
        for j in tiles.iter().copied() {
            let tile = TILES[j];
            let mut rng = Rng::new((10 * i + j) as u64);
            let [bm, bn, bk] = tile.map(|n| n as usize);
            let kernel = kernel(tile, exit);
            let (e, m) = (1 + rng.below(3) as usize, 1 + rng.below(2 * bm as u32) as usize);
            let (n, k) = ((1 + rng.below(2 * bn as u32) as usize).next_multiple_of(8), rng.of(&[8, bk, 3 * bk + 8]));
            let rows: Vec<i32> = (0..e).map(|_| rng.of(&[0, 1, bm as i32, bm as i32 + 1, m as i32])).collect();
            let words = |all: &[i32]| all.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
            let mut args = vec![
                numbers(&mut rng, &[e, m, k]),
                numbers(&mut rng, &[e, n, k]),
                sim::Arg::dense(Elem::I32, &[e as i64], words(&rows)),
                numbers(&mut rng, &[e, m, n]),
            ];
            if exit == Exit::ContinuesWith {
                args.push(sim::Arg::dense(Elem::I32, &[2], words(&[-1, -1])));
            }
            let grid = match exit {
                Exit::Continues | Exit::ContinuesWith => [2, 1, 1],
                Exit::Breaks => [e, n.div_ceil(bn), 1].map(|n| n as u32),
                _ => [e, m.div_ceil(bm), n.div_ceil(bn)].map(|n| n as u32),
            };
            let wrong = compare(&kernel, (&args, grid), true, &mut counts);
            found.extend(wrong.map(|w| format!("{exit:?} {tile:?} {rows:?} of {m}, {n}, {k}: {w}")));
        }
        println!("{exit:?}: {counts:?}");
        assert!(found.is_empty(), "{} wrong\n{}", found.len(), found.join("\n"));
        assert!(
            counts.kernels == tiles.len() && counts.hopper == tiles.len() && counts.mixed == 0,
            "{exit:?} {counts:?}"
        );
    }
}

#[test]
fn products_that_end_early_have_a_role_that_copies() {
    for exit in ALL {
        let made = stages(&kernel(TILES[1], exit), hopper(), true, None).unwrap_or_else(|e| panic!("{exit:?}: {e:?}"));
        if exit == Exit::Breaks {
            // Threads copy, three steps ahead.
            assert!(made.rings.roles.is_empty() && made.rings.pipes.len() == 1 && made.rings.pipes[0].slots == 4);
            let why = why_not_bulk(&kernel(TILES[1], exit), hopper()).expect("reasons");
            let role = "no role of its own copies the tiles of the loop over `pipelined(..)`: what is copied depends on what is computed, or \
                on an exit from a loop or from the middle of a branch";
            assert_eq!(why, [role]);
            continue;
        }
        let roles: Vec<&str> = made.rings.roles.iter().map(|role| role.name.as_str()).collect();
        assert_eq!(roles, ["producer", "consumer"], "{exit:?}");
        let mut returns = 0;
        made.rings.walk(&mut |_, op| returns += usize::from(op.kind == OpKind::Return));
        assert_eq!(returns, 1, "{exit:?}");
        let text = String::from_utf8(made.code.payload).expect("PTX is text");
        assert!(text.contains("cp.async.bulk.tensor") && !text.contains("cp.async.cg"), "{exit:?}: {text}");
    }
}

/// Threads copy ahead for MMAs of warpgroups, so that a fence must come between the end of a copy and the MMA that reads what it brought:
/// without it, before the copies are complete, or after the MMA, the verifier refuses the program and a run shows it.
#[test]
fn copies_of_threads_are_fenced_from_the_mmas_that_read_them() {
    let kernel = kernel(TILES[0], Exit::Breaks);
    let made = stages(&kernel, hopper(), true, None).unwrap_or_else(|e| panic!("{e:?}"));
    let good = print(&made.barriers);
    let lines: Vec<&str> = good.lines().collect();
    let find = |what: &str| -> Vec<usize> { (0..lines.len()).filter(|i| lines[*i].contains(what)).collect() };
    let (fences, waits, mmas) = (find("ttg.fence.proxy"), find("cp_async.wait_group"), find("wgmma.mma_async"));
    let ([fence], [mma, ..]) = (&fences[..], &mmas[..]) else { panic!("{good}") };
    let last = mmas[mmas.len() - 1];
    assert!(fence < mma && waits.len() >= 2, "{good}");
    let moved = |to: Option<usize>| {
        let mut all = Vec::new();
        for (i, line) in lines.iter().enumerate() {
            all.extend((to == Some(i)).then_some(lines[*fence]));
            all.extend((i != *fence).then_some(*line));
        }
        all.join("\n")
    };
    let mut rng = Rng::new(1);
    let args = vec![
        numbers(&mut rng, &[1, 64, 320]),
        numbers(&mut rng, &[1, 64, 320]),
        sim::Arg::dense(Elem::I32, &[1], 64_i32.to_le_bytes().to_vec()),
        numbers(&mut rng, &[1, 64, 64]),
    ];
    let found = |text: &str| {
        let program = parse_one(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let refused = barrier_program(&program).is_err();
        let program = well_formed(program).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let options = sim::Options { completion: Completion::Late, max_steps: 300_000, ..sim::Options::default() };
        let report = sim::run(&program, &mut args.clone(), Some([1, 1, 1]), &options).unwrap();
        (refused, !report.findings.is_empty())
    };
    assert_eq!(found(&good), (false, false));
    assert_eq!(found(&moved(None)), (true, true), "no fence");
    assert_eq!(found(&moved(Some(last + 1))), (true, true), "after the MMAs");
    // The waits before the loop, and at its end.
    for wait in waits.iter().filter(|wait| **wait < last || **wait == waits[1]) {
        assert_eq!(found(&moved(Some(*wait))), (true, true), "before line {wait} of {good}");
    }

    // An MMA of raw memory of a slot, which no claim is about: while the slot is ready, or when it may be filled again, by the index of a
    // loop or by another name of it.
    let released = find("ttg.claim.released");
    let raw = |at: usize, index: &str| {
        let region =
            lines[released[0]].split_once("> ").and_then(|(_, rest)| rest.rsplit_once(", ")).expect("a region").0;
        let mma =
            format!("%raw = ttg.region.at {region}, {index} : region\n{}\nttg.nv.wgmma.mma_async %raw", lines[*fence]);
        let wait = "%rawgroup = ttg.nv.wgmma.commit_group : vtok<wgmma, 9>\nttg.nv.wgmma.wait_group {n = 0}";
        let (before, after) = lines.split_at(at);
        [before.join("\n"), mma, wait.to_owned(), after.join("\n")].join("\n")
    };
    let index = lines[released[0]].rsplit_once(", ").expect("an index").1;
    for at in [released[0], released[0] + 1] {
        let program = parse_one(&raw(at, index)).unwrap_or_else(|e| panic!("{e:?}\n{good}"));
        let errors = barrier_program(&program).expect_err("no claim is about it");
        assert!(errors.iter().any(|e| e.title.contains("not as tiles of a slot")), "{errors:?}");
    }
}
