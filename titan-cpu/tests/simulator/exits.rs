//! Products that end early, in all ways (`ways`): a program without rows returns, or takes its next tile. On sm_90a they get roles for
//! copies and MMAs as others do, because early exits become branches.
//!
//! All numbers are small and whole, so that every sum is exact.

use super::gpu::hopper;
use super::rng::Rng;
use super::ways::{Counts, compare};
use titan_core::driver::stages;
use titan_core::ir::{Elem, OpKind};
use titan_core::num;
use titan_core::text::parse_one;
use titan_core::verify::{Verified, verify};
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
    /// It takes the next tile of a loop over tiles.
    Continues,
    /// So that a loop over tiles carries a number that differs.
    ContinuesWith,
}

const ALL: [Exit; 6] = [
    Exit::Returns,
    Exit::ReturnsTwice,
    Exit::StoresAndReturns,
    Exit::ReturnsInElse,
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
        Exit::Continues => format!("{empty}if %none {{\ncontinue\n}} else {{\nyield\n}}\n"),
        Exit::ContinuesWith => {
            format!("{empty}if %none {{\n%less = sub %count, %one : i32\ncontinue %less\n}} else {{\nyield\n}}\n")
        }
    };
    let places = match exit {
        Exit::Continues | Exit::ContinuesWith => format!(
            "%E = dim<0> %x : i32\n%M = dim<1> %x : i32\n%N = dim<1> %z : i32\n%upm = add %M, %morem : i32\n%tm = div %upm, %bm : i32\n\
             %upn = add %N, %moren : i32\n%tn = div %upn, %bn : i32\n%em = mul %E, %tm : i32\n%all = mul %em, %tn : i32\n{}\
             %e, %m, %n = unflatten %i, %E, %tm, %tn : i32, i32, i32\n",
            if exit == Exit::Continues {
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
        Exit::Continues => "continue\n}\nreturn\n",
        // Each program has its own count.
        Exit::ContinuesWith => {
            "%next = add %count, %one : i32\ncontinue %next\n}\n%p = program_id<0> : i32\nset %counts[%p], %last\nreturn\n"
        }
        Exit::Returns | Exit::ReturnsTwice | Exit::StoresAndReturns | Exit::ReturnsInElse => "return\n",
    };
    let counts = if exit == Exit::ContinuesWith { ", %counts: mut tensor<i32>[P]" } else { "" };
    let grid = if looped { " persistent".to_owned() } else { format!("(E, cdiv(M, {bm}), cdiv(N, {bn}))") };
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
        let mut counts = Counts::default();
        for (j, tile) in TILES.into_iter().enumerate() {
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
                _ => [e, m.div_ceil(bm), n.div_ceil(bn)].map(|n| n as u32),
            };
            let wrong = compare(&kernel, (&args, grid), true, &mut counts);
            found.extend(wrong.map(|w| format!("{exit:?} {tile:?} {rows:?} of {m}, {n}, {k}: {w}")));
        }
        println!("{exit:?}: {counts:?}");
        assert!(found.is_empty(), "{} wrong\n{}", found.len(), found.join("\n"));
        assert!(
            counts.kernels == TILES.len() && counts.hopper == TILES.len() && counts.mixed == 0,
            "{exit:?} {counts:?}"
        );
    }
}

#[test]
fn products_that_end_early_have_a_role_that_copies() {
    for exit in ALL {
        let made = stages(&kernel(TILES[1], exit), hopper(), true, None).unwrap_or_else(|e| panic!("{exit:?}: {e:?}"));
        let roles: Vec<&str> = made.rings.roles.iter().map(|role| role.name.as_str()).collect();
        assert_eq!(roles, ["producer", "consumer"], "{exit:?}");
        let mut returns = 0;
        made.rings.walk(&mut |_, op| returns += usize::from(op.kind == OpKind::Return));
        assert_eq!(returns, 1, "{exit:?}");
        let text = String::from_utf8(made.code.payload).expect("PTX is text");
        assert!(text.contains("cp.async.bulk.tensor") && !text.contains("cp.async.cg"), "{exit:?}: {text}");
    }
}
